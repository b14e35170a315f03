import pytest

from rlvr.records.run import Evaluation, PromptResult
from rlvr.records.watch import Findings
from rlvr.watch.compare import compare_runs, paired_held_out
from rlvr.watch.facts import Facts
from rlvr.watch.history import history_from_rows
from rlvr.watch.symptoms import judge_history
from rlvr.watch.symptoms.case import Case


def side(entropy: float, accuracy: float, steps: int = 40, **settings):
    rows = [
        {"step": i, "reward": 0.3 + 0.01 * (i % 3), "entropy": entropy + 0.01 * (i % 2),
         "held_out/accuracy": accuracy + 0.01 * (i % 4)}
        for i in range(1, steps + 1)
    ]  # fmt: skip
    history = history_from_rows(rows)
    facts = Facts(settings=settings)
    return Case(history, None, facts), judge_history(history, None, facts)


def test_effects_have_intervals_and_are_held_against_what_was_expected() -> None:
    found = compare_runs(side(0.2, 0.5, epsilon_high=0.2), side(0.6, 0.6, epsilon_high=0.28), variant="dapo")
    effects = {e.metric: e for e in found.effects}
    assert effects["entropy"].verdict == "as expected"
    assert effects["entropy"].difference.low < 0.4 < effects["entropy"].difference.high
    assert effects["held_out"].expected is None
    assert found.settings == {"epsilon_high": (0.2, 0.28)}
    assert not any("more than one thing" in w for w in found.warnings)


def test_against_expectation_and_not_told_apart() -> None:
    lower = compare_runs(side(0.6, 0.5), side(0.2, 0.5), variant="dapo")
    same = compare_runs(side(0.4, 0.5), side(0.4, 0.5), variant="dapo")
    assert {e.metric: e.verdict for e in lower.effects}["entropy"] == "against expectation"
    assert {e.metric: e.verdict for e in same.effects}["entropy"] == "not told apart"


def test_only_steps_that_both_reached_are_compared_and_weak_points_are_said() -> None:
    found = compare_runs(side(0.4, 0.5, 40, lr=1, beta=0), side(0.4, 0.5, 20, lr=2, beta=1))
    assert found.shared_steps == 20
    assert any("more than one thing differs: beta, lr" in w for w in found.warnings)


def evaluation(correct: list[int], **fields) -> Evaluation:
    results = [PromptResult(row_hash=str(i), prompt="p", correct=c, judged=1) for i, c in enumerate(correct)]
    return Evaluation(
        version="0", made_at="", accuracy=sum(correct) / len(correct), low=0.0, high=1.0, prompts=len(correct),
        results=results, **fields,
    )  # fmt: skip


def test_held_out_accuracy_is_paired_by_prompt() -> None:
    # 60 prompts alike in both, 20 that the second alone solves: unpaired, a quarter would drown.
    first, second = evaluation([1, 0] * 30 + [0] * 20), evaluation([1, 0] * 30 + [1] * 20)
    held_out = paired_held_out(first, second)
    assert held_out.change is not None
    assert held_out.change.difference == pytest.approx(0.25)
    assert 0.15 < held_out.change.low < 0.25 < held_out.change.high < 0.36
    assert held_out.change.prompts == 80
    logs = [(Case(history_from_rows([{"step": 1, "reward": 0.1}]), None, Facts()), Findings())] * 2
    assert any("no held-out accuracy" in w for w in compare_runs(*logs).warnings)
    assert not any("held-out" in w for w in compare_runs(*logs, held_out=held_out).warnings)


def test_measurements_that_differ_give_no_difference_but_say_why() -> None:
    held_out = paired_held_out(evaluation([1, 0]), evaluation([1, 1]), differs=["the reward"])
    assert held_out.change is None
    assert "the reward changed" in held_out.why_not
