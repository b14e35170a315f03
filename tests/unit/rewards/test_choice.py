"""Multiple choice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr.errors import DataError
from rlvr.rewards.choice import Choice

LETTERS = st.sampled_from("ABCD")
DRESSES = st.sampled_from(
    ["{}", "({})", r"\boxed{{{}}}", r"\boxed{{\text{{({})}}}}", "<answer>{}</answer>", "The answer is {}.",
     "The answer is ({}).",
     "**Answer: {}**", "Answer: {}) Paris", "The correct answer is option {}", r"\boxed{{\textbf{{{}}}}}", "{}."]
)  # fmt: skip


@given(LETTERS, LETTERS, DRESSES)
def test_a_letter_in_any_dress_is_right_exactly_when_it_is_the_one(
    gold: str, given_letter: str, dress: str
) -> None:
    reward = Choice(letters="ABCD")
    assert reward.verdict(dress.format(given_letter), gold).accepted is (gold == given_letter)
    assert reward.verdict(dress.format(given_letter), "ABCD".index(gold)).accepted is (gold == given_letter)


@pytest.mark.parametrize(
    "text",
    ["", "A or B", "The answer is A or B.", "The answer is A, B.", "A and B", r"\boxed{A, B}", "I like A",
     "The answer is E.",
     "A plan is needed.", r"\boxed{}", r"\boxed{A", "ABCD", "<think>A</think>", "The answer is A/B."],
)  # fmt: skip
def test_no_letter_or_several_pay_nothing(text: str) -> None:
    assert not Choice(letters="ABCD").verdict(text, "A").accepted


@pytest.mark.parametrize("reference", [None, "", "Z", 9, -1, True, "AB", 1.5])
def test_what_is_no_reference(reference: object) -> None:
    assert Choice(letters="ABCD").check_reference(reference)
    with pytest.raises(DataError):
        Choice(letters="ABCD").verdict("A", reference)


def test_numbers_may_count_from_one() -> None:
    assert Choice(first=1).verdict("A", 1).accepted
