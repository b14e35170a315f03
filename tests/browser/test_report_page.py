"""The report in a real browser: nothing overflows, nothing is loaded, hostile text does nothing, the filter works."""

import importlib.util
import shutil
from pathlib import Path

import pytest

from rlvr.report.compare import write_comparison
from rlvr.report.report import write_report

CHROMIUM = "/usr/bin/chromium"
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(shutil.which(CHROMIUM) is None, reason=f"no {CHROMIUM}: apt-get install chromium"),
]
COLOURS = ["paper", "raised", "ink", "soft", "accent"] + [
    name + end for name in ("good", "warning", "bad", "neutral") for end in ("", "-back")
]
HOSTILE = "</textarea><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>" + "W" * 400


def _load():
    place = Path(__file__).parents[1] / "unit" / "report" / "made.py"
    spec = importlib.util.spec_from_file_location("report_made", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as running:
        opened = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    made, folder = _load(), tmp_path_factory.mktemp("pages")
    hostile = [one.model_copy(update={"completion": HOSTILE}) for one in made.results(20, 80)]
    inputs = made.inputs(
        name="a-run-with-a-rather-long-name-that-somebody-chose-2026",
        manifest=made.manifest(waivers={"probe": "known from " + "x" * 200}),
        before=made.evaluation(hostile),
    )
    (folder / "report.html").write_text(write_report(inputs), encoding="utf-8")
    (folder / "compare.html").write_text(
        write_comparison(inputs, made.inputs(name="base-2")), encoding="utf-8"
    )
    return folder


@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [
        *(("report", width, scheme) for width in (360, 820, 1600) for scheme in ("light", "dark")),
        ("compare", 360, "light"),
        ("compare", 1600, "dark"),
    ],
)
def test_nothing_overflows_loads_or_runs(browser, pages, name, width, scheme):
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    said, asked = [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto((pages / f"{name}.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate("window.hacked === undefined")
    assert said == []
    assert len(asked) == 1
    page.close()


def test_the_filter_shows_one_kind(browser, pages):
    page = browser.new_page()
    page.goto((pages / "report.html").as_uri())
    page.get_by_role("button", name="still wrong").click()
    groups = page.locator("div[data-kind]")
    shown = [
        groups.nth(number).get_attribute("data-kind")
        for number in range(groups.count())
        if groups.nth(number).is_visible()
    ]
    assert shown == ["still wrong"]
    page.close()


def test_text_can_be_read_on_its_ground(browser, pages):
    """Every colour of text has a contrast of at least 4.5 to the page, in both themes (WCAG 2.2, 1.4.3)."""
    for scheme in ("light", "dark"):
        page = browser.new_page(color_scheme=scheme)
        page.goto((pages / "report.html").as_uri())
        found = page.evaluate(
            f"const NAMES = {COLOURS};"
            """(() => {
              const style = getComputedStyle(document.documentElement);
              const of = (name) => style.getPropertyValue(name).trim();
              return Object.fromEntries(NAMES.map((name) => [name, of("--" + name)]));
            })()"""
        )
        pairs = [
            ("ink", "paper"),
            ("ink", "raised"),
            ("soft", "paper"),
            ("soft", "raised"),
            ("accent", "paper"),
        ]
        pairs += [(tone, f"{tone}-back") for tone in ("good", "warning", "bad", "neutral")]
        for text, ground in pairs:
            assert contrast(found[text], found[ground]) >= 4.5, (scheme, text, ground)
        page.close()


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour):
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
