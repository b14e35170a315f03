import re

import pytest

from rlvr.audit.patterns import matching_texts, pumps

PATTERNS = [
    r"<answer>(.*?)</answer>",
    r"####\s*(-?\d[\d,]*)",
    r"^<think>\n.*?\n</think>\n<answer>\n(.*?)\n</answer>$",
    r"\\boxed\{([^{}]+)\}",
    r"(?:final answer|answer)\s*:\s*\(?([A-D])\)?",
    r"\[\[(\w+)\]\]",
    r"^(Step \d+: .+\n){2,}Answer: (.+)$",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_made_text_matches_its_pattern_and_holds_the_answer(pattern):
    answer = "B" if "A-D" in pattern else "42"
    texts = matching_texts(pattern, answer, "some words")
    assert texts
    assert any(re.search(pattern, text, re.DOTALL) and answer in text for text in texts)


def test_a_pattern_that_does_not_compile_gives_nothing():
    assert matching_texts("(", "1", "x") == []
    assert pumps("[") == []


@pytest.mark.parametrize("pattern", [r"^(a+)+$", r"(\s*\w+\s*)*:", r"(x|xx)+y", r"^(\w+\s?)*$"])
def test_nested_repeats_give_a_short_text_that_blows_up(pattern):
    assert any(len(text) < 200 for text in pumps(pattern))


def test_a_plain_pattern_gives_no_nested_pump():
    assert all(len(text) > 200 for text in pumps(r"<answer>(.*?)</answer>"))
