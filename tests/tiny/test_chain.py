"""The whole chain on the embedded model: it improves, and nothing trains past a gate."""

import json
import shutil
from pathlib import Path

import pytest
from tests.conftest import run_rlvr

pytestmark = pytest.mark.tiny


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_the_demo_gains_at_least_forty_points(demo_run):
    _, found = demo_run
    assert found["after"]["accuracy"] - found["before"]["accuracy"] >= 0.4
    assert found["after"]["low"] > found["before"]["high"]
    assert Path(found["report"]).name == "report.html"


def test_the_demo_leaves_an_ordinary_workspace_with_every_gate_passed(demo_run):
    folder, _ = demo_run
    done = run_rlvr("gate", "--json", folder=folder)
    found = json.loads(done.stdout)
    assert done.returncode == 0, found
    assert found["next"] == "rlvr train"
    inspect = next(gate for gate in found["gates"] if gate["name"] == "inspect")
    assert inspect["evidence"]["simulated"] is True
    assert "simulated" in inspect["evidence"]["reader"]


def test_every_rollout_and_log_row_is_kept(demo_run):
    from rlvr.train.rollouts import NAME, read_rollouts

    run = demo_run[0] / "runs" / "base-1"
    rows = list(read_rollouts(run / NAME))
    assert len(rows) == 150 * 64
    assert {row["step"] for row in rows} == set(range(150))
    assert {"prompt", "completion", "correct", "well_formed", "advantage", "outcome", "tokens"} <= set(
        rows[0]
    )
    logs = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    assert logs[-1]["step"] == 150
    assert logs[-1]["rlvr/right_share"] > logs[0]["rlvr/right_share"]


def test_group_statistics_agree_with_the_rollouts(demo_run):
    from rlvr.train.rollouts import NAME, read_rollouts

    run = demo_run[0] / "runs" / "base-1"
    last = [row for row in read_rollouts(run / NAME) if row["step"] >= 145]
    share = sum(row["outcome"] == "right" for row in last) / len(last)
    logged = json.loads((run / "log.jsonl").read_text().splitlines()[-1])
    assert logged["rlvr/right_share"] == pytest.approx(share)


CHANGES = {
    "admit: signal": (lambda w: replace(w / "rlvr.yaml", "signal: answer", "signal: preference"), "admit"),
    "audit: record gone": (lambda w: (w / "gates/audit.json").unlink(), "audit"),
    "audit: record edited": (
        lambda w: replace(w / "gates/audit.json", '"passed": true', '"passed": false'),
        "audit",
    ),
    "reward: argument": (
        lambda w: replace(w / "rlvr.yaml", "{layout: answer}", "{layout: 'think? answer'}"),
        "audit",
    ),
    "reward: weight": (lambda w: replace(w / "rlvr.yaml", "name: well_formed", "weight: 0.4"), "audit"),
    "data: one row": (lambda w: replace(w / "prompts.jsonl", '"sort ', '"Sort '), "audit"),
    "probe: record gone": (lambda w: (w / "gates/probe.json").unlink(), "probe"),
    "sampling": (
        lambda w: replace(w / "rlvr.yaml", "max_completion_length: 16", "max_completion_length: 24"),
        "probe",
    ),
    "model": (
        lambda w: replace(w / "model/config.json", '"rms_norm_eps": 1e-06', '"rms_norm_eps": 2e-06'),
        "probe",
    ),
    "inspect: record gone": (lambda w: (w / "gates/inspect.json").unlink(), "inspect"),
    "inspect: record half written": (
        lambda w: (w / "gates/inspect.json").write_text('{"kind": "Att'),
        "inspect",
    ),
    "inspect: a label": (lambda w: replace(w / "gates/inspect/labels.jsonl", '"pass"', '"fail"'), "inspect"),
    "plan: record gone": (lambda w: (w / "gates/plan.json").unlink(), "plan"),
    "plan: learning rate": (lambda w: replace(w / "rlvr.yaml", "value: 1e-3", "value: 2e-3"), "plan"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_training_is_refused_after_any_change(demo_workspace: Path, change: str):
    mutate, gate = CHANGES[change]
    mutate(demo_workspace)
    done = run_rlvr("train", folder=demo_workspace, timeout=100)
    assert done.returncode in (2, 3), done.stderr
    assert "Traceback" not in done.stderr
    assert gate in done.stderr
    assert [path.name for path in (demo_workspace / "runs").iterdir()] == ["base-1"]


def test_a_simulated_attestation_is_refused_in_any_other_workspace(demo_workspace: Path):
    # The same files, but the workspace is no longer the demo's own: a comment is enough.
    with (demo_workspace / "rlvr.yaml").open("a") as file:
        file.write("# mine\n")
    done = run_rlvr("train", folder=demo_workspace, timeout=100)
    assert done.returncode == 3
    assert "simulated" in done.stderr


def test_a_reward_that_judges_as_before_renews_itself(demo_workspace: Path):
    # Written out defaults change the closure's text and no score.
    replace(demo_workspace / "rlvr.yaml", "{layout: answer}", "{layout: answer, strict_end: true}")
    found = json.loads(run_rlvr("status", "--json", folder=demo_workspace).stdout)
    states = {gate["name"]: gate["state"] for gate in found["gates"]}
    assert states["audit"] == "stale"
    assert states["probe"] == "passed"
    renewed = next(gate for gate in found["gates"] if gate["name"] == "inspect")["evidence"]["renewals"]
    assert len(renewed) == 1


def test_a_reward_that_judges_differently_closes_the_inspection(demo_workspace: Path):
    replace(demo_workspace / "rlvr.yaml", "{layout: answer}", "{layout: 'think answer'}")
    found = json.loads(run_rlvr("status", "--json", folder=demo_workspace).stdout)
    states = {gate["name"]: gate["state"] for gate in found["gates"]}
    assert states["inspect"] == states["probe"] == states["audit"] == "stale"


def test_rehearsal_runs_before_the_gates_and_leaves_nothing(demo_workspace: Path):
    (demo_workspace / "gates/inspect.json").unlink()
    done = run_rlvr("train", "--rehearse", "--json", folder=demo_workspace)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["steps"] == 2
    assert found["peak_bytes"] > 0
    assert [path.name for path in (demo_workspace / "runs").iterdir()] == ["base-1"]


def test_the_demo_refuses_a_folder_that_is_not_its_own(tmp_path: Path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "work.txt").write_text("precious")
    done = run_rlvr("demo", "--output", "mine", folder=tmp_path)
    assert done.returncode == 2
    assert (tmp_path / "mine" / "work.txt").read_text() == "precious"


def test_held_out_accuracy_can_be_measured_again(demo_workspace: Path):
    shutil.rmtree(demo_workspace / "gates" / "inspect")
    done = run_rlvr("eval", "base-1", "--json", folder=demo_workspace)
    assert done.returncode == 0, done.stderr
    again = json.loads(done.stdout)
    before = json.loads((demo_workspace / "runs/base-1/evaluation.json").read_text())["record"]
    assert again["accuracy"] == before["accuracy"]


def test_a_run_name_never_leaves_the_runs_folder(demo_workspace: Path):
    before = (demo_workspace / "model/model.safetensors").read_bytes()
    done = run_rlvr("train", "--resume", "--name", "..", "--json", folder=demo_workspace, timeout=100)
    assert done.returncode == 2, done.stderr
    assert json.loads(done.stdout)["error"]["code"] == "run.name"
    assert (demo_workspace / "model/model.safetensors").read_bytes() == before


def test_a_finished_run_is_not_trained_further(demo_workspace: Path):
    done = run_rlvr("train", "--resume", "--name", "base-1", folder=demo_workspace, timeout=100)
    assert done.returncode == 2
    assert "run.finished" in done.stderr
    manifest = json.loads((demo_workspace / "runs/base-1/manifest.json").read_text())["record"]
    assert manifest["state"] == "finished"


def test_a_second_training_is_refused_and_leaves_no_phantom(demo_workspace: Path):
    import fcntl

    with (demo_workspace / "gates/.train.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = run_rlvr("train", folder=demo_workspace, timeout=100)
    assert done.returncode == 4, done.stderr
    assert "workspace.busy" in done.stderr
    assert [path.name for path in (demo_workspace / "runs").iterdir()] == ["base-1"]


def test_a_resumed_run_keeps_its_reward(demo_workspace: Path):
    from rlvr.commands.chain import Chain
    from rlvr.commands.training import _resumable
    from rlvr.errors import GateRefused
    from rlvr.records.run import Manifest
    from rlvr.workspace import read_record, write_record

    path = demo_workspace / "runs/base-1/manifest.json"
    manifest = read_record(path, Manifest)
    write_record(path, manifest.model_copy(update={"state": "interrupted", "steps": 50}))
    assert _resumable(Chain(demo_workspace), path.parent).steps == 50
    replace(demo_workspace / "rlvr.yaml", "name: well_formed", "weight: 0.9")
    with pytest.raises(GateRefused) as caught:
        _resumable(Chain(demo_workspace), path.parent)
    assert "reward" in caught.value.found
