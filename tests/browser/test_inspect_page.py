"""A real browser reads by keyboard. Skipped, with the reason, where no Chromium is installed."""

import importlib.util
import re
import shutil
import time
from pathlib import Path

import pytest

CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(shutil.which(CHROMIUM) is None, reason=f"no {CHROMIUM}: apt-get install chromium"),
]


def load(name):
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


made = load("made_page")


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as running:
        opened = running.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield opened
        opened.close()


@pytest.fixture
def serve(tmp_path):
    pages = []

    def start(samples=None, **options):
        found = samples if samples is not None else [made.sample(row) for row in range(160)]
        pages.append(made.Page(tmp_path, found, **options))
        return pages[-1]

    yield start
    for one in pages:
        one.close()


class Tab:
    """One tab of the browser, with everything that it complained of."""

    def __init__(self, browser, page, **options):
        self.context = browser.new_context(viewport={"width": 1280, "height": 800}, **options)
        self.tab = self.context.new_page()
        self.complaints, self.asked = [], []
        self.tab.on("console", lambda message: self.complaints.append(message.text))
        self.tab.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.tab.on("request", lambda request: self.asked.append(request.url))
        self.tab.goto(page.server.new_link())
        self.settle()

    def settle(self):
        self.tab.wait_for_selector("#keys button")

    def text(self, selector="body"):
        return self.tab.inner_text(selector)

    def count(self):
        return int(self.text("#count").split()[0])

    def shown(self, page):
        """Return the sample on screen, by its prompt."""
        prompt = self.text(".asked .message")
        rows = int(re.search(r"holds (\d+) rows", prompt).group(1))
        return page.sitting.sample(f"c{rows - 3:04d}")

    def until(self, condition, tab=None):
        """Wait in the page; its policy forbids what the driver's own waiting would evaluate."""
        wait = f"""async () => {{
            const late = performance.now() + 20000;
            while (!({condition})) {{
                if (performance.now() > late) throw new Error("waited in vain");
                await new Promise((done) => setTimeout(done, 2));
            }}
        }}"""
        (tab or self.tab).evaluate(wait)

    def press(self, key):
        """Press a key and wait until the page has answered."""
        before = self.tab.evaluate("document.getElementById('main').firstElementChild.__seen = true")
        assert before
        self.tab.keyboard.press(key)
        self.until("!document.getElementById('main').firstElementChild.__seen")

    def timed(self, key, done="!document.getElementById('main').firstElementChild.__seen"):
        """Press a key and return the milliseconds until the page has drawn the answer."""
        wait = """async ([key, done]) => {
            document.getElementById('main').firstElementChild.__seen = true;
            const started = performance.now();
            document.dispatchEvent(new KeyboardEvent('keydown', { key }));
            const there = () => done === 'fold' ? !document.querySelector('.fold')
                : !document.getElementById('main').firstElementChild.__seen;
            while (!there()) await new Promise((next) => setTimeout(next, 1));
            await new Promise((next) => requestAnimationFrame(next));
            return performance.now() - started;
        }"""
        return self.tab.evaluate(wait, [key, "fold" if "fold" in done else "next"])

    def worked(self):
        """Return the milliseconds that the page has computed so far; waiting for a busy machine is not in it."""
        if not hasattr(self, "devtools"):
            self.devtools = self.context.new_cdp_session(self.tab)
            self.devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
        found = self.devtools.send("Performance.getMetrics")["metrics"]
        return 1000 * next(one["value"] for one in found if one["name"] == "TaskDuration")

    def read(self, page, judge, most=1000):
        """Judge by keyboard until the summary comes; returns the rows that were disagreed on."""
        differing = []
        for _ in range(most):
            if self.tab.query_selector(".summary"):
                return differing
            one = self.shown(page)
            self.press("p" if judge(one) else "f")
            if self.tab.query_selector(".reveal.bad"):
                differing.append(one.row)
                self.press("Enter")
        return differing


def careful(one):
    return made.accepted(one.row, one.text)


def test_sixty_by_keyboard_three_disagreements_a_mend_and_fresh_ones(browser, serve):
    page = serve()
    tab = Tab(browser, page)
    differing = tab.read(page, careful)
    assert page.folder.labels().events == 60, "one key a sample"
    assert sorted(differing) == sorted(set(differing) & set(made.HEDGED))
    assert len(differing) == len(page.sitting.attestation().open_disagreements) >= 3
    assert "open disagreement" in tab.text("h1")

    page.reward_path.write_text(made.MENDED)
    tab.press("r")
    tab.until("document.getElementById('notice').innerText.includes('closed')")
    assert f"{len(differing)} disagreements closed" in tab.text("#notice")
    assert "20 fresh samples" in tab.text("#notice")
    tab.press("Enter")
    assert tab.read(page, careful) == []
    assert "Passed" in tab.text("h1")

    found = page.folder.attestation()
    assert found.passed
    assert (found.read, found.fresh.read, found.mends) == (80, 20, 1)
    assert tab.complaints == []
    assert all(url.startswith((page.address, "data:")) for url in tab.asked), (
        "nothing is fetched from elsewhere"
    )


@pytest.fixture
def hostile():
    attack = (
        "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
        "<style>body{display:none}</style> \x1b[31mred\x1b]0;owned\x07 \u202egnp.exe\u202c a\u200bb "
        "$\\href{javascript:alert(1)}{x}$ \\boxed{<img src=x onerror=alert(1)>}"
    )
    return [made.sample(row, f"{row}: {attack}") for row in range(80)]


def test_hostile_text_does_nothing(browser, serve, hostile):
    page = serve(hostile, scores=half_right(hostile))
    tab = Tab(browser, page)
    for _ in range(3):
        shown = tab.text("#completion")
        assert "<script>document.title='owned'</script>" in shown
        assert "U+202E" in shown and "ESC" in shown and "U+200B" in shown
        tab.press("f")
        if tab.tab.query_selector(".reveal"):
            tab.press("Enter")
    tab.press("s")
    assert tab.tab.title() == "rlvr inspect"
    assert tab.tab.evaluate("document.querySelectorAll('img, main script, main style, a').length") == 0
    assert "\u202e" not in tab.tab.content()
    assert tab.complaints == []


def half_right(samples):
    from rlvr.records.samples import ScoredSample

    return [
        ScoredSample(
            completion_id=one.completion_id,
            outcome="right" if one.row % 2 else "wrong",
            total=float(one.row % 2),
            extracted=one.columns["answer"],
        )
        for one in samples
    ]


def test_blind_until_the_key(browser, serve):
    page = serve()
    tab = Tab(browser, page)
    state = tab.tab.evaluate("fetch('/api/state').then((r) => r.json())")
    told = str(state["current"])
    for word in ("outcome", "accepted", "extracted", "total", "its last number"):
        assert word not in told
    answer = tab.tab.evaluate(
        "(id) => fetch(`/api/sample/${id}`).then((r) => r.json())", state["current"]["id"]
    )
    assert answer["reveal"] is None
    text = tab.tab.evaluate("(id) => fetch(`/api/text/${id}`).then((r) => r.json())", state["current"]["id"])
    assert "mark" not in str(text)


def agreeing(page, one):
    """Return the key that says what the reward says."""
    return "p" if page.sitting._accepted(one.completion_id) else "f"


def test_note_back_change_and_unsure(browser, serve):
    page = serve()
    tab = Tab(browser, page)
    first = tab.shown(page)
    tab.tab.keyboard.press("n")
    tab.tab.keyboard.type("p f u: typed, not pressed")
    tab.press("Enter")
    assert page.sitting.labels.of("ada", first.completion_id).note == "p f u: typed, not pressed"
    tab.press(agreeing(page, first))
    assert tab.count() == 1

    unsure = tab.shown(page)
    tab.press("u")
    assert unsure.completion_id in page.sitting.labels.unsure()

    tab.press("b")
    assert "Is this completion right" in tab.text("#keys"), "an unsure one stays blind"
    tab.press(agreeing(page, unsure))
    assert page.sitting.labels.of("ada", unsure.completion_id).readings == 2

    agreed = tab.shown(page)
    tab.press("f" if agreeing(page, agreed) == "p" else "p")
    assert "differ" in tab.text(".reveal h1")
    tab.tab.keyboard.press("c")
    tab.tab.keyboard.type("I misread the reference")
    tab.press("Enter")
    held = page.sitting.labels.of("ada", agreed.completion_id)
    assert (held.reversals, held.reasons) == (1, ["I misread the reference"])
    assert "agree" in tab.text(".reveal h1")


def test_two_tabs_do_not_corrupt(browser, serve):
    page = serve()
    one = Tab(browser, page)
    two = one.context.new_page()
    two.goto(page.address)
    two.wait_for_selector("#keys button")
    first = one.shown(page)
    one.press(agreeing(page, first))
    two.keyboard.press("u")
    one.until("document.getElementById('notice').innerText.includes('judged meanwhile')", two)
    assert page.folder.labels().events == 1
    assert page.sitting.labels.of("ada", first.completion_id).decided
    assert two.inner_text(".asked .message") == one.text(".asked .message"), "the second tab caught up"
    two.keyboard.press("u")
    one.until("document.getElementById('count').innerText.startsWith('2 ')", two)
    assert page.folder.labels().events == 2


def test_going_on_after_the_browser_was_closed(browser, serve):
    page = serve()
    tab = Tab(browser, page)
    for _ in range(3):
        tab.press("u")
    here = tab.text(".asked .message")
    tab.context.close()
    again = Tab(browser, page)
    assert again.text(".asked .message") == here
    assert again.count() == 3


def test_the_page_says_when_the_server_is_gone(browser, serve):
    page = serve()
    tab = Tab(browser, page)
    page.close()
    tab.tab.keyboard.press("p")
    tab.until("document.body.innerText.includes('The server has stopped')")
    assert "rlvr inspect" in tab.text("main")


@pytest.mark.slow
def test_a_hundred_samples_of_thirty_thousand_characters(browser, serve):
    line = "Step {}: take $x_{{{}}}^2 + \\frac{{a}}{{b}} = {}$ and go on to the next line.\n"
    long = "".join(line.format(n, n, n) for n in range(500))[:29_900]
    samples = [made.sample(row, f"{row} {long}\n{made.completion_of(row)}") for row in range(130)]
    page = serve(samples, scores=half_right(samples), rules=made.Rules(count=100))
    answered = timed_by_thread(page.server.view, "judged")
    tab = Tab(browser, page)
    waits, unfolds, drawn = [], [], []
    while not tab.tab.query_selector(".summary"):
        one = tab.shown(page)
        time.sleep(0.15)  # nobody reads faster; what is rendered ahead needs no more
        if len(waits) % 20 == 10:
            before = tab.worked()
            tab.timed("e", "!document.querySelector('.fold')")
            unfolds.append(tab.worked() - before)
        before = tab.worked()
        waits.append(tab.timed("p" if one.row % 2 else "f"))
        drawn.append(tab.worked() - before)
    wall, server, browsing = (sorted(times)[len(times) // 2] for times in (waits, answered, drawn))
    print(f"a key, median: server {server:.0f} ms and page {browsing:.0f} ms of work; {wall:.0f} ms in all")
    print(f"unfolding 30,000 characters: {max(unfolds):.0f} ms of work in the page")
    assert len(page.folder.labels().standing()) == 100
    assert server + browsing < 100
    assert max(unfolds) < 100


def timed_by_thread(view, name):
    """Note the milliseconds of work, without waiting, of each call of a method."""
    times, call = [], getattr(view, name)

    def timed(*values):
        before = time.thread_time()
        found = call(*values)
        times.append(1000 * (time.thread_time() - before))
        return found

    setattr(view, name, timed)
    return times


def test_a_second_reader_is_told_what_is_enough_and_stops(browser, serve):
    first = serve()
    made_by_first = first.sitting
    while (turn := made_by_first.turn()) is not None:
        identifier = turn.sample.completion_id
        verdict = "pass" if made_by_first._accepted(identifier) else "fail"
        made_by_first.judge(identifier, verdict, made_by_first.revision(identifier))
    first.close()
    page = serve(reader="bob")
    tab = Tab(browser, page)
    assert "20 samples are enough" in tab.text(".strip")
    for _ in range(20):
        tab.press(agreeing(page, tab.shown(page)))
    assert "enough for a second reader" in tab.text(".strip")
    tab.press("s")
    assert "ada and bob: 20 of 20 alike" in tab.text(".figures")
    tab.press("q")
    assert "The gate is open" in tab.text("h1")
    page.thread.join(10)
    assert page.folder.attestation().inter_reader.both_read == 20
