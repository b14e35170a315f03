"""Real runs of the demo model, kept as they were logged: healthy ones stay quiet, broken ones are named."""

from pathlib import Path

import pytest

from rlvr.watch.history import History
from rlvr.watch.ingest import read_source
from rlvr.watch.judge import judge_source
from rlvr.watch.live import LiveWatch
from rlvr.watch.symptoms import judge_history

DATA = Path(__file__).parents[1] / "data" / "watch"


@pytest.mark.parametrize("name", ["healthy-0", "healthy-kl-1", "healthy-dapo-0"])
@pytest.mark.parametrize("with_completions", [True, False])
def test_healthy_runs_raise_no_alarm(name: str, with_completions: bool) -> None:
    source = read_source(DATA / name)
    texts = source.completions if with_completions else None
    found = judge_history(source.history, texts, source.facts)
    assert [(a.name, a.evidence) for a in found.alarms] == []


@pytest.mark.parametrize("name", ["healthy-0", "healthy-kl-1"])
def test_healthy_runs_stay_quiet_live(name: str) -> None:
    source = read_source(DATA / name)
    live = LiveWatch(source.facts)
    assert [finding for row in as_rows(source.history) for finding in live.add(row)] == []


def as_rows(history: History) -> list[dict[str, float]]:
    rows = []
    for index, step in enumerate(history.steps):
        values = {history.names[m]: float(v[index]) for m, v in history.columns.items() if m in history.names}
        rows.append({"step": int(step), **{name: value for name, value in values.items() if value == value}})
    return rows


@pytest.mark.parametrize(
    ("name", "symptoms"),
    [
        ("rate-high-0", {"reward-crash", "no-signal"}),
        ("format-only-0", {"reward-hacking"}),
        ("sorted-only-0", {"reward-hacking"}),
        ("unreachable-0", {"no-signal"}),
        ("tiny-cap-0", {"truncation", "no-signal"}),
    ],
)
def test_failures_are_named(name: str, symptoms: set[str]) -> None:
    assert symptoms <= {a.name for a in judge_source(read_source(DATA / name)).alarms}


def test_a_suspected_reward_is_marked_and_proved() -> None:
    found = judge_source(read_source(DATA / "sorted-only-0")).named("reward-hacking")
    assert found is not None
    assert found.suspects_reward
    assert found.proofs
    assert all("wrong" in proof.note or "ill-formed" in proof.note for proof in found.proofs)


def test_the_groups_say_more_than_trl_s_share() -> None:
    """TRL logs 0% here: eight rewards of 1.2 have a standard deviation of 1e-7, which is not close enough to 0."""
    source = read_source(DATA / "healthy-0")
    assert source.history.columns["zero_variance_share"][-20:].max() == 0
    found = judge_source(source).named("no-signal")
    assert found is not None
    assert found.level == "information"
    assert "all right" in found.evidence
