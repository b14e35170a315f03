"""Patterns of the user's own, runaway ones included."""

from __future__ import annotations

import pickle
import time

import pytest

from rlvr.errors import ConfigError, DataError
from rlvr.rewards.contract import Outcome
from rlvr.rewards.matching import may_run_away
from rlvr.rewards.regex import Regex


@pytest.mark.parametrize(
    ("pattern", "text", "outcome"),
    [
        (r"Answer: (\w+)", "Answer: Oslo", Outcome.RIGHT),
        (r"Answer: (\w+)", "Answer: Oslo, no, Answer: Bergen", Outcome.WRONG),
        (r"(?P<mark>\W)(?P<answer>Oslo)", "(Oslo", Outcome.RIGHT),
        (r"Oslo", "so Oslo", Outcome.RIGHT),
        (r"Answer: (\w+)", "Oslo", Outcome.ILL_FORMED),
        (r"Answer: (\w+)", "<think>Answer: Oslo</think>", Outcome.ILL_FORMED),
        (r"(?:(?:a|b)+)+: (\w+)", "ab: Oslo", Outcome.RIGHT),
        (r"Answer: (\w+)?", "Answer: ", Outcome.ILL_FORMED),
    ],
)
def test_the_last_match_decides(pattern: str, text: str, outcome: Outcome) -> None:
    assert Regex(pattern=pattern).verdict(text, "oslo").outcome is outcome


def test_the_whole_text_and_no_reference() -> None:
    reward = Regex(pattern=r"\d{3}", whole=True, reference=None)
    assert reward(prompts=["p"] * 3, completions=["123", "1234", " 123 "]) == [1.0, 0.0, 1.0]


def test_a_runaway_pattern_costs_its_own_limit_and_its_own_row() -> None:
    reward = Regex(pattern=r"(a+)+b", reference=None, timeout=0.5)
    started = time.monotonic()
    found = reward.verdict_batch(["aab", "a" * 64, "ab"], [None] * 3)
    assert [one.outcome for one in found] == [Outcome.RIGHT, Outcome.WRONG, Outcome.RIGHT]
    assert "took over 0.5 s" in found[1].why
    assert time.monotonic() - started < 15


@pytest.mark.parametrize(
    ("pattern", "risky"),
    [(r"\d+", False), (r"(\w+): (\d+)", False), (r"(a+)+", True), (r"(a|aa)*b", True), (r".*a.*b.*c", True)],
)
def test_which_patterns_may_run_away(pattern: str, risky: bool) -> None:
    assert may_run_away(pattern) is risky


@pytest.mark.parametrize("pattern", ["", "(", "a{2,1}"])
def test_broken_patterns_are_refused(pattern: str) -> None:
    with pytest.raises(ConfigError):
        Regex(pattern=pattern)


def test_a_reference_is_needed_where_one_is_read() -> None:
    with pytest.raises(DataError):
        Regex(pattern="a").verdict("a", None)


def test_it_pickles() -> None:
    assert pickle.loads(pickle.dumps(Regex(pattern="a", reference=None))).verdict("a", None).accepted
