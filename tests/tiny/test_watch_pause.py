"""A finding that suspects the reward pauses `rlvr train`; nothing goes on until the run's own completions were read."""

import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.tiny

BATCH = 64


@pytest.fixture
def suspicion(monkeypatch: pytest.MonkeyPatch):
    """Make the watch find a reward that pays length at chosen steps; everything after the finding is real."""
    from rlvr.records.watch import Finding
    from rlvr.watch.live import LiveWatch

    steps: set[int] = set()
    watches: list[LiveWatch] = []
    finding = Finding(
        name="reward-pays-length", level="critical", since_step=3, evidence="r = 0.6 within groups",
        confidence="high", action="read completions", source="made for this test", suspects_reward=True,
    )  # fmt: skip

    def add(watch: LiveWatch, row: dict) -> list[Finding]:
        if watch not in watches:
            watches.append(watch)
        return [finding] if row["step"] in steps else []

    monkeypatch.setattr(LiveWatch, "add", add)
    return steps, watches


def state_of(workspace: Path) -> tuple[str, int]:
    record = json.loads((workspace / "runs/base-2/manifest.json").read_text())["record"]
    return record["state"], record["steps"]


def inspect_gate(workspace: Path):
    from rlvr.commands.chain import Chain

    return next(gate for gate in Chain(workspace).status().gates if gate.name == "inspect")


def test_a_suspected_reward_pauses_and_closes_the_inspection(
    demo_workspace: Path, suspicion, capsys: pytest.CaptureFixture[str]
) -> None:
    from rlvr.cli import main
    from rlvr.inspection.folder import InspectionFolder
    from rlvr.train.rollouts import NAME, read_rollouts

    steps, watches = suspicion
    steps |= {10, 20}
    run = demo_workspace / "runs" / "base-2"
    asked = ["--workspace", str(demo_workspace), "--json"]

    assert main(["train", *asked]) == 3
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "train.paused"
    assert state_of(demo_workspace) == ("paused", 10)
    assert (run / "trainer/checkpoint-10/trainer_state.json").is_file()
    assert not (run / "evaluation.json").exists()
    gate = inspect_gate(demo_workspace)
    assert gate.state == "failed"
    assert "reward-pays-length" in gate.why

    assert main(["train", "--name", "base-2", "--resume", *asked]) == 3
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "gate.closed"
    assert state_of(demo_workspace) == ("paused", 10)

    InspectionFolder.of_gates(demo_workspace / "gates").answer_reopenings("base-2")
    assert inspect_gate(demo_workspace).state == "passed"
    assert main(["train", "--name", "base-2", "--resume", *asked]) == 3
    assert state_of(demo_workspace) == ("paused", 20)
    assert len(list(read_rollouts(run / NAME))) == 20 * BATCH
    # Each watch judges what was sampled since its own process began, once.
    seen = [watch._texts.build() for watch in watches]
    assert [len(found) for found in seen if found] == [10 * BATCH, 10 * BATCH]
    assert sorted(set(seen[1].steps.tolist())) == list(range(10, 20))
    # ... by the total that the run is trained on.
    assert set(seen[0].components) == {"correct", "well_formed"}
    assert seen[0].rewards.max() == pytest.approx(1.2)
    assert seen[0].remarks == ()
