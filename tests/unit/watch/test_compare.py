from rlvr.watch.compare import compare_runs
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
