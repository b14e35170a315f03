"""The record and the page: nothing fetched, hostile text is text, both colour schemes."""

import html.parser
import re

import pytest
from made import judged

from rlvr.probe.evidence import Facts
from rlvr.probe.page import percent, render_page
from rlvr.probe.summary import build_record

HOSTILE = "</pre><script>alert(1)</script><img src=x onerror=alert(2)>"
STEERS = "\x1b\u202e\x07\u200b"


def record(chances, **options):
    pairs = judged(chances, **options)
    return build_record([one for one, _ in pairs], [one for _, one in pairs], Facts(zeros_read=0), cap=64)


class Tags(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.seen, self.depth, self.attributes = [], 0, []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.attributes += attrs
        self.depth += tag not in ("meta", "br", "img", "link")

    def handle_endtag(self, tag):
        self.depth -= 1


@pytest.mark.parametrize("chances", [[0.3] * 80, [0.0] * 80, [1.0] * 80, [0.5] * 3])
def test_the_page_stands_alone(chances):
    page = render_page(record(chances), title="my task", model="my model")
    tags = Tags()
    tags.feed(page)
    assert tags.depth == 0
    assert not {"script", "img", "link", "iframe"} & set(tags.seen)
    assert not re.search(
        r"https?://|url\(|@import", page.split("</style>")[0] + page.split("</style>")[1].split("bounds")[0]
    )
    assert "prefers-color-scheme: dark" in page
    assert "my task" in page
    assert record(chances).verdict in page


def test_hostile_completions_are_shown_as_text():
    pairs = judged([0.5] * 40)
    samples = [
        one.model_copy(
            update={"completion": [one.completion[0].model_copy(update={"content": HOSTILE + STEERS})]}
        )
        for one, _ in pairs
    ]
    found = build_record(samples, [one for _, one in pairs], Facts())
    page = render_page(found, title=HOSTILE + STEERS, model=HOSTILE + STEERS)
    tags = Tags()
    tags.feed(page)
    assert not {"script", "img"} & set(tags.seen)
    assert not [name for name, _ in tags.attributes if name.startswith("on")]
    assert "&lt;script&gt;" in page
    assert not set(STEERS) & set(page)
    assert "⟦ESC⟧" in page and "⟦U+202E⟧" in page


def test_five_completions_of_each_kind_from_different_prompts():
    found = record([0.4] * 60, cut=0.2)
    kinds = {
        kind: [one for one in found.examples if one.cause == kind] for kind in ("right", "wrong", "truncated")
    }
    assert {len(one) for one in kinds.values()} == {5}
    assert all(len({one.row for one in row}) == 5 for row in kinds.values())
    assert [one.score.completion_id for one in found.examples] == [
        one.score.completion_id for one in record([0.4] * 60, cut=0.2).examples
    ]


def test_the_record_says_what_plan_and_report_need():
    found = record([0.3] * 100)
    assert found.passed is (found.verdict == "sweet spot")
    assert found.lengths.cap == 64
    assert found.lengths.completion.p50 == 8
    assert found.informative_groups["8"] == pytest.approx(1 - 0.3**8 - 0.7**8, abs=0.1)
    assert found.group_size == 8
    assert found.pass_at["1"] == pytest.approx(0.3, abs=0.06)
    assert sum(found.histogram) == 64
    assert len(found.prompts) == 100
    assert found.samples_spent == 100 + 64 * 8
    assert type(found).model_validate(found.model_dump(mode="json")) == found


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "not judged"), (0, "0%"), (0.004, "0.4%"), (0.3, "30%"), (0.995, "99.5%"), (1, "100%")],
)
def test_percentages(value, text):
    assert percent(value) == text
