"""Draw the pictures of docs/inspect.md anew: ``python tests/browser/screenshots.py docs/images``."""

import asyncio
import importlib.util
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

CHROMIUM = "/usr/bin/chromium"
FORMULAS, CODE, HOSTILE = 16, 13, 15
"""Rows of the draw that are pictured; the last two get code and hostile text."""


def load(name):
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


made = load("made_page")

PROGRAM = '''Let me check it with a short program.

```python
def apples(rows: int, columns: int) -> int:
    """Two crates."""
    return 2 * rows * columns  # each crate holds rows * columns

print(apples({rows}, {columns}))
```

So \\boxed{{{gold}}}.'''
ATTACK = (
    "<script>document.title = 'owned'</script> <img src=x onerror=alert(1)>\n"
    "\x1b[31mred\x1b[0m, turned \u202egnp.exe\u202c, hidden\u200b\u200bly\n"
    "<think>\nThe grader may read the page's title.\n</think>\nIt is \\boxed{1}."
)


def samples():
    texts = {
        CODE: PROGRAM.format(rows=CODE + 3, columns=CODE + 4, gold=made.gold_of(CODE)),
        HOSTILE: ATTACK,
    }
    return [made.sample(row, texts.get(row)) for row in range(160)]


class Camera:
    def __init__(self, browser, page, folder, scheme="light"):
        self.page, self.folder = page, folder
        self.tab = browser.new_context(
            viewport={"width": 1280, "height": 800}, color_scheme=scheme
        ).new_page()
        self.tab.goto(page.server.new_link())
        self.tab.wait_for_selector("#keys button")

    def press(self, key):
        first = "document.getElementById('main').firstElementChild"
        self.tab.evaluate(f"() => {{ {first}.__seen = true }}")
        self.tab.keyboard.press(key)
        self.until(f"!{first}.__seen")

    def until(self, condition):
        wait = f"async () => {{ while (!({condition})) await new Promise((done) => setTimeout(done, 2)); }}"
        self.tab.evaluate(wait)

    def shot(self, name):
        self.tab.wait_for_timeout(300)
        self.tab.screenshot(path=self.folder / f"inspect-{name}.png")

    def row(self):
        current = self.page.server.view.state()["current"]
        return int(current["id"][1:]) if current else None

    def read(self, names=()):
        wanted = dict(names)
        while (row := self.row()) is not None:
            sample = self.page.samples[row]
            if row in wanted:
                self.shot(wanted[row])
            self.press("p" if made.accepted(row, sample.text) else "f")
            if self.tab.query_selector(".reveal.bad"):
                if "differ" in wanted:
                    self.shot(wanted.pop("differ"))
                self.press("Enter")


def page_pictures(folder):
    place = Path(tempfile.mkdtemp())
    page = made.Page(place, samples(), rules=made.Rules(count=100))
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        light = Camera(browser, page, folder)
        light.press("f")
        Camera(browser, page, folder, "dark").shot("dark")
        light.read({FORMULAS: "read", CODE: "code", HOSTILE: "hostile", "differ": "differ"}.items())
        light.shot("summary")
        page.reward_path.write_text(made.MENDED)
        light.tab.keyboard.press("r")
        light.until("document.getElementById('notice').innerText.includes('closed')")
        light.press("Enter")
        light.read()
        light.shot("passed")
        browser.close()
    page.close()


def terminal_picture(folder):
    place = Path(tempfile.mkdtemp())
    path = place / "rewards.py"
    path.write_text(made.STRICT)
    found = samples()
    pool = made.Pool(found, made.scored(path, found), made.Fingerprints(reward="r"))
    sitting = made.Sitting(made.InspectionFolder.of_gates(place / "gates"), pool, "ada", clock=made.Clock())
    drawing = place / "terminal.svg"

    async def draw():
        from rlvr.inspection.terminal import Reader

        app = Reader(sitting, ["rewards.py:last_number"])
        async with app.run_test(size=(110, 28)) as pilot:
            while app.mode == "read":
                await pilot.press("p" if made.accepted(app.item.row, app.item.text) else "f")
            drawing.write_text(app.export_screenshot())

    asyncio.run(draw())
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        tab = browser.new_context(offline=True, viewport={"width": 1400, "height": 760}).new_page()
        tab.set_content(drawing.read_text())
        tab.locator("svg").screenshot(path=folder / "inspect-terminal.png")
        browser.close()


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    page_pictures(target)
    terminal_picture(target)
