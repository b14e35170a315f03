"""The scorer: one evaluation a batch, neutral rows, the order of outcomes, and errors that name their place."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from rlvr.errors import ConfigError, InfrastructureError, RewardError
from rlvr.rewards.composite import Component, RowScore, Scorer
from rlvr.rewards.contract import Outcome
from rlvr.rewards.exact import Exact
from rlvr.rewards.tags import Tags

GOOD = "<think>a</think><answer>{}</answer>"


def scorer(*more: Component, **keywords: Any) -> Scorer:
    return Scorer(
        [
            Component("right", Exact()),
            Component("tags", Tags(), weight=0.2, role="format"),
            *more,
        ],
        **keywords,
    )


def rows(one: Scorer, completions: list[Any], answer: str = "4", **keywords: Any) -> list[RowScore]:
    return one.score_batch(
        ["p"] * len(completions), completions, {"answer": [answer] * len(completions)}, **keywords
    )


def even(prompts: Any, completions: Any, **_: Any) -> list[float]:
    if any("bomb" in text for text in completions):
        raise ValueError("boom")
    return [1.0 if len(text) % 2 == 0 else 0.25 for text in completions]


async def slow_even(prompts: Any, completions: Any, **keywords: Any) -> list[float]:
    return even(prompts, completions, **keywords)


def test_the_order_right_then_wrong_then_ill_formed() -> None:
    right, wrong, ill_formed, bare = rows(
        scorer(), [GOOD.format(4), GOOD.format(5), "<answer>4</answer>", "4"]
    )
    assert (right.total, wrong.total, ill_formed.total, bare.total) == (1.2, 0.2, 0.0, 0.0)
    assert [row.outcome for row in (right, wrong, ill_formed, bare)] == [
        "right",
        "wrong",
        "ill-formed",
        "ill-formed",
    ]
    assert "not paid" in ill_formed.why and ill_formed.extracted == "4"


def test_gating_can_be_switched_off() -> None:
    (row,) = rows(scorer(format_gates=False), ["<answer>4</answer>"])
    assert (row.outcome, row.total) == (Outcome.RIGHT, 1.0)


def test_a_component_that_raises_loses_only_its_rows_and_names_them() -> None:
    one = scorer(Component("even", even, weight=0.5))
    fine, lost = rows(one, [GOOD.format(4), GOOD.format("bomb")])
    assert fine.total is not None and fine.components["even"] in (1.0, 0.25)
    assert lost.outcome is Outcome.INFRASTRUCTURE
    assert lost.total is None and set(lost.components.values()) == {None}
    assert "even: row 1 raised ValueError: boom" in lost.why and "bomb" in lost.why
    assert (one.failures.rows, one.failures.failed) == (2, 1)


def test_an_infrastructure_error_of_a_component_is_never_a_wrong_answer() -> None:
    def fails(prompts: Any, completions: Any, **_: Any) -> list[float]:
        raise InfrastructureError("judge.down", "the judge is down")

    (row,) = rows(scorer(Component("judge", fails)), [GOOD.format(5)])
    assert row.outcome is Outcome.INFRASTRUCTURE and row.total is None and "the judge is down" in row.why


@pytest.mark.parametrize("function", [even, slow_even])
def test_a_cut_reads_a_float(function: Any) -> None:
    full = Scorer([Component("even", function)]).score_batch(["p"], ["abc"], {})
    cut = Scorer([Component("even", function, cut=0.25)]).score_batch(["p"], ["abc"], {})
    assert (full[0].outcome, cut[0].outcome) == (Outcome.WRONG, Outcome.RIGHT)


def test_none_of_a_user_means_not_applicable_and_the_rest_still_counts() -> None:
    def skip(prompts: Any, completions: Any, **_: Any) -> list[None]:
        return [None] * len(completions)

    (row,) = Scorer([Component("skip", skip), Component("tags", Tags(), 0.2, "format")]).score_batch(
        ["p"], [GOOD.format(4)], {}
    )
    assert (row.outcome, row.total) == (Outcome.NOT_APPLICABLE, 0.2)


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ([1.0], "1 scores for 2"),
        (None, "NoneType"),
        ([1.0, float("nan")], "row 1 got nan"),
        (["1", 1], "row 0"),
    ],
)
def test_a_broken_contract_names_component_row_and_value(returned: Any, message: str) -> None:
    def broken(prompts: Any, completions: Any, **_: Any) -> Any:
        return returned

    with pytest.raises(RewardError, match=message) as caught:
        Scorer([Component("mine", broken)]).score_batch(["p"] * 2, ["a", "b"], {})
    assert "reward mine" in str(caught.value)


def test_a_parameter_without_a_column_is_found_before_the_call() -> None:
    def needs(prompts: Any, completions: Any, solution: Any, **_: Any) -> list[float]:
        return [1.0]

    with pytest.raises(RewardError, match="did you mean 'solutions'"):
        Scorer([Component("mine", needs)]).score_batch(["p"], ["a"], {"solutions": ["x"]})


def test_a_function_without_keywords_is_refused_with_its_remedy() -> None:
    def closed(prompts: Any, completions: Any) -> list[float]:
        return [1.0]

    with pytest.raises(RewardError, match=r"\*\*kwargs"):
        Scorer([Component("mine", closed)]).score_batch(["p"], ["a"], {})


class Counted:
    __name__ = "counted"

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, prompts: Any, completions: Any, **_: Any) -> list[float]:
        self.calls += 1
        return [float(self.calls)] * len(completions)


def test_all_functions_of_a_batch_share_one_evaluation() -> None:
    counted = Counted()
    one = scorer(Component("counted", counted, weight=0.1))
    functions = one.reward_functions()
    completions, prompts, answer = [GOOD.format(4)], ["p"], ["4"]
    assert [function.__name__ for function in functions] == ["right", "tags", "counted"]
    for expected in (1, 2):  # the same objects again are a new batch once every component has been served
        scores = [function(prompts=prompts, completions=completions, answer=answer) for function in functions]
        assert scores == [[1.0], [1.0], [float(expected)]] and counted.calls == expected
    functions[0](prompts=prompts, completions=list(completions), answer=answer)
    assert counted.calls == 3
    assert one.weights() == [1.0, 0.2, 0.1]
    assert one.failures.rows == 3


def test_functions_pickle_together_and_still_share() -> None:
    functions = pickle.loads(pickle.dumps(scorer().reward_functions()))
    assert functions[0].scorer is functions[1].scorer
    assert functions[0](prompts=["p"], completions=[GOOD.format(4)], answer=["4"]) == [1.0]


def test_logs_reach_the_trainer_once_a_batch() -> None:
    columns: dict[str, list[Any]] = {}
    metrics: list[tuple[str, float]] = []

    def extra(name: str, values: list[Any]) -> None:
        columns.setdefault(name, []).extend(values)

    completions, prompts, answer = [GOOD.format(4), "4"], ["p", "p"], ["4", "4"]
    for function in scorer().reward_functions():
        function(
            prompts=prompts,
            completions=completions,
            answer=answer,
            log_extra=extra,
            log_metric=lambda name, value: metrics.append((name, value)),
        )
    assert columns["outcome"] == ["right", "ill-formed"]
    assert ("rewards/right_share", 0.5) in metrics and len(metrics) == 2


def test_half_logged_columns_of_a_raising_batch_are_dropped() -> None:
    def chatty(prompts: Any, completions: Any, log_extra: Any = None, **_: Any) -> list[float]:
        log_extra("seen", list(completions))
        if "bad" in completions:
            raise ValueError
        return [1.0] * len(completions)

    columns: dict[str, list[Any]] = {}
    found = Scorer([Component("chatty", chatty)]).score_batch(
        ["p"] * 3,
        ["a", "bad", "b"],
        {},
        log_extra=lambda name, values: columns.setdefault(name, []).extend(values),
    )
    assert [row.outcome for row in found] == ["right", "infrastructure", "right"]
    assert columns["seen"] == ["a", "bad", "b"]


def test_references_are_checked_when_data_is_loaded() -> None:
    bad = scorer().check_references([{"answer": "4"}, {"answer": None}, {"answer": " "}])
    assert [(one.row, one.component) for one in bad] == [(1, "right"), (2, "right")]
    with pytest.raises(RewardError, match="did you mean 'anwser'"):
        scorer().check_references([{"anwser": "4"}])


def test_a_parameter_that_no_column_fills_is_found_when_data_is_loaded() -> None:
    def needs(prompts: Any, completions: Any, solution: Any, **_: Any) -> list[float]:
        return [1.0]

    with pytest.raises(RewardError, match="did you mean 'solutions'"):
        Scorer([Component("mine", needs)]).check_references([{"solutions": "x"}])
    assert not Scorer([Component("mine", needs)]).check_references([{"solution": "x"}])


def test_names_must_differ_and_there_must_be_one() -> None:
    with pytest.raises(ConfigError, match="two rewards are named 'right'"):
        scorer(Component("right", Exact()))
    with pytest.raises(ConfigError, match="no reward"):
        Scorer([])
