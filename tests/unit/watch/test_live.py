import pytest

from rlvr.watch.facts import Facts
from rlvr.watch.live import FIRST_LOOK, LiveWatch, widening


def test_looking_again_costs_more_each_time() -> None:
    factors = [widening(look, 0.02) for look in range(1, 60)]
    assert factors == sorted(factors)
    assert factors[0] >= 1.0
    assert factors[-1] < 2.0
    assert widening(5, 0.001) > widening(5, 0.05)


def watch_all(run) -> tuple[list, LiveWatch]:
    live = LiveWatch(run.facts)
    told = []
    for row in run.rows:
        told += [(row["step"], finding) for finding in live.add(row)]
    return told, live


@pytest.mark.parametrize("seed", range(4))
def test_a_healthy_run_is_left_alone(make, seed: int) -> None:
    told, live = watch_all(make(None, seed, False))
    assert told == []
    assert live.latest is not None


def test_a_crash_is_told_soon_and_each_level_once(make) -> None:
    run = make("reward-crash", 3, False)
    told, _ = watch_all(run)
    names = [(finding.name, finding.level) for _, finding in told]
    assert len(names) == len(set(names))
    first = min(step for step, finding in told if finding.name == "reward-crash")
    assert run.onset_step < first <= run.onset_step + 40


def test_nothing_is_looked_at_before_there_is_something_to_see(make) -> None:
    live = LiveWatch(Facts())
    for row in make("no-signal", 1, False).rows[: FIRST_LOOK - 2]:
        assert live.add(row) == []
    assert live.latest is None


def test_one_look_is_not_enough(make) -> None:
    run = make("reward-crash", 3, False)
    live = LiveWatch(run.facts, confirmations=10_000)
    assert [finding for row in run.rows for finding in live.add(row)] == []


def test_completions_are_judged_live(make) -> None:
    run = make("reward-pays-length", 3)
    live = LiveWatch(run.facts)
    told = []
    for row in run.rows:
        live.add_completions(r for r in run.completion_rows if r["step"] == row["step"])
        told += live.add(row)
    assert "reward-pays-length" in {finding.name for finding in told}


def test_live_completions_count_by_the_weights_of_the_run() -> None:
    facts = Facts(reward_names=("correct", "tags"), reward_weights={"correct": 1.0, "tags": 0.2})
    live = LiveWatch(facts)
    scores = [(1.0, 0.0), (0.0, 1.0)] * 4  # alike when both count once
    live.add_completions(
        {"step": 1, "group": 0, "prompt": "p", "completion": "a", "correct": c, "tags": t, "digits": 4}
        for c, t in scores
    )
    found = live._texts.build()
    assert found is not None
    assert found.zero_variance.tolist() == [0.0]
    assert found.rewards.tolist() == pytest.approx([1.0, 0.2] * 4)
