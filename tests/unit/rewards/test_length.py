"""The length wrapper: right answers only, monotone, clamped, and None stays None."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr.errors import ConfigError, RewardError
from rlvr.rewards.composite import Component, Scorer
from rlvr.rewards.contract import Outcome
from rlvr.rewards.exact import Exact
from rlvr.rewards.length import Length

RIGHT, WRONG = "<answer>4</answer>", "<answer>5</answer>"
FORMS = st.sampled_from(["overlong", "cosine"])
TOKENS = st.integers(min_value=0, max_value=5000)


def scores(reward: Any, completions: list[str], lengths: list[int], **columns: Any) -> list[float | None]:
    rows = len(completions)
    return reward(
        prompts=["p"] * rows,
        completions=completions,
        completion_ids=[[0] * length for length in lengths],
        **({"answer": ["4"] * rows} | columns),
    )


def test_the_overlong_form_is_flat_then_linear_then_clamped() -> None:
    reward = Length(base="exact", max_length=100, cache=50)
    assert scores(reward, [RIGHT] * 5, [0, 50, 75, 100, 9999]) == [1.0, 1.0, 0.75, 0.5, 0.5]


def test_the_cosine_form_falls_once_and_stays() -> None:
    reward = Length(base="exact", max_length=100, form="cosine", least=0.2)
    found = scores(reward, [RIGHT] * 4, [0, 50, 100, 150])
    assert found == pytest.approx([1.0, 0.6, 0.2, 0.2])


@given(FORMS, TOKENS, TOKENS, st.integers(1, 2000), st.floats(0.01, 1.0))
def test_longer_never_pays_more_and_right_stays_above_wrong(
    form: Any, one: int, two: int, size: int, least: float
) -> None:
    reward = Length(base=Exact(), max_length=size, cache=size // 2, form=form, least=least)
    short, long = sorted((one, two))
    found = scores(reward, [RIGHT, RIGHT, WRONG], [short, long, short])
    assert found[0] is not None and found[1] is not None
    assert 1.0 >= found[0] >= found[1] >= least - 1e-9 > 0 == found[2]


@given(FORMS, st.lists(TOKENS, min_size=2, max_size=6))
def test_a_group_of_wrong_answers_has_no_spread(form: Any, lengths: list[int]) -> None:
    reward = Length(base=Exact(), max_length=512, cache=100, form=form)
    assert set(scores(reward, [WRONG] * len(lengths), lengths)) == {0.0}


def skip(prompts: Any, completions: Any, **_: Any) -> list[None]:
    return [None] * len(completions)


def full(prompts: Any, completions: Any, **_: Any) -> list[float]:
    return [1.0] * len(completions)


def test_none_stays_none_and_plain_functions_are_wrapped() -> None:
    assert scores(Length(base=skip, max_length=10), [RIGHT], [5000]) == [None]
    assert scores(Length(base=full, max_length=10, cache=5), [RIGHT], [5000]) == [0.5]


def test_beside_other_components_it_sees_their_outcome() -> None:
    scorer = Scorer(
        [
            Component("length", Length(max_length=100, cache=100), weight=0.2, role="length"),
            Component("right", Exact()),
        ]
    )
    found = scorer.score_batch(
        ["p"] * 3,
        [RIGHT, RIGHT, WRONG],
        {"answer": ["4"] * 3},
        completion_ids=[[0] * 0, [0] * 100, [0] * 100],
    )
    assert [row.total for row in found] == pytest.approx([1.0, 0.9, 0.0])
    assert [row.outcome for row in found] == [Outcome.RIGHT, Outcome.RIGHT, Outcome.WRONG]


def test_without_token_numbers_it_says_what_is_missing() -> None:
    with pytest.raises(RewardError, match="completion_ids"):
        Length(base="exact", max_length=10)(prompts=["p"], completions=[RIGHT], answer=["4"])


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"max_length": 0},
        {"max_length": 5, "cache": 6},
        {"max_length": 5, "least": 0.0},
        {"max_length": 5, "form": "x"},
    ],
)
def test_shapes_that_make_no_sense_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        Length(base="exact", **arguments)


def test_it_pickles_with_its_base() -> None:
    reward = pickle.loads(pickle.dumps(Length(base="exact", max_length=100, cache=50)))
    assert scores(reward, [RIGHT], [100]) == [0.5]
