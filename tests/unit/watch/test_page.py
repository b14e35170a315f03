from html.parser import HTMLParser

from rlvr.watch.figures import spark, thin
from rlvr.watch.page import render_page
from rlvr.watch.summary import render_summary


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict]] = []

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.seen.append((tag, dict(attrs)))


def page(make, judge, illness: str) -> tuple[str, list]:
    found, history = judge(illness, 3), make(illness, 3).history()
    text = render_page(found, history)
    parser = Tags()
    parser.feed(text)
    return text, parser.seen


def test_the_page_is_whole_by_itself(make, judge) -> None:
    text, tags = page(make, judge, "answer-collapse")
    assert not [t for t, a in tags if t in ("script", "link", "img", "iframe") or "src" in a or "href" in a]
    assert "url(" not in text
    assert "prefers-color-scheme:dark" in text


def test_curves_have_the_stretch_of_their_symptom_marked(make, judge) -> None:
    text, tags = page(make, judge, "reward-crash")
    bands = [a for t, a in tags if t == "rect"]
    assert any("critical" in b["class"] for b in bands)
    assert all(float(b["width"]) > 0 for b in bands)
    assert "reward-crash from step" in text


def test_text_of_a_model_is_shown_as_text(make, judge) -> None:
    found, history = judge("answer-collapse", 3), make("answer-collapse", 3).history()
    proof = found.symptoms[0].proofs or next(s.proofs for s in found.symptoms if s.proofs)
    hostile = proof[0].model_copy(update={"completion": "<script>alert(1)</script>", "prompt": "</pre><b>x"})
    bad = found.symptoms[0].model_copy(update={"proofs": [hostile]})
    text = render_page(found.model_copy(update={"symptoms": [bad]}), history)
    assert "<script" not in text
    assert "&lt;script&gt;" in text


def test_the_terminal_shows_evidence_and_what_to_do(make, judge) -> None:
    from rich.console import Console

    console = Console(record=True, width=300)
    with console.capture() as captured:
        console.print(render_summary(judge("truncation", 3), make("truncation", 3).history()))
    text = captured.get()
    assert "truncation" in text
    assert "do: raise max_completion_length" in text
    assert any(block in text for block in "▁▂▃▄▅▆▇█")


def test_curves_are_thinned_by_their_mean() -> None:
    import numpy as np

    _, values = thin(np.arange(1000.0), np.arange(1000.0), 10)
    assert len(values) == 10
    assert values.mean() == 499.5
    assert len(spark(np.arange(100.0), 20)) == 20
    assert spark(np.zeros(3)) == "▁▁▁"
