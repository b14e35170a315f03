"""Training that is killed or interrupted: the last checkpoint is whole; a resumed run ends bit by bit the same."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.conftest import run_rlvr

pytestmark = [pytest.mark.tiny, pytest.mark.chaos]


def start(folder: Path) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "rlvr", "train", "--name", "again"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(condition, process: subprocess.Popen, seconds: float = 240) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)


def comparable_log(run: Path, *without: str) -> list[dict]:
    rows = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    left_out = {"seconds", "step_time", *without}
    return [{name: value for name, value in row.items() if name not in left_out} for row in rows]


def assert_same_run(one: Path, other: Path, *without: str) -> None:
    from rlvr.train.rollouts import NAME, read_rollouts

    assert (one / "model/model.safetensors").read_bytes() == (other / "model/model.safetensors").read_bytes()
    assert comparable_log(one, *without) == comparable_log(other, *without)
    assert list(read_rollouts(one / NAME)) == list(read_rollouts(other / NAME))


def test_killed_and_resumed_ends_like_an_unbroken_run(demo_workspace: Path):
    process = start(demo_workspace)
    run = demo_workspace / "runs" / "again"
    wait_for(lambda: (run / "trainer/checkpoint-50/trainer_state.json").is_file(), process)
    time.sleep(0.7)  # some steps past the checkpoint
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not (run / "model").exists()
    done = run_rlvr("train", "--name", "again", "--resume", folder=demo_workspace)
    assert done.returncode == 0, done.stderr
    assert_same_run(run, demo_workspace / "runs" / "base-1")
    manifest = json.loads((run / "manifest.json").read_text())["record"]
    assert manifest["state"] == "finished"
    assert manifest["resumed"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_writes_a_checkpoint_and_the_run_goes_on_later(demo_workspace: Path, number: signal.Signals):
    process = start(demo_workspace)
    run = demo_workspace / "runs" / "again"
    wait_for(lambda: (run / "log.jsonl").is_file() and len((run / "log.jsonl").read_bytes()) > 3000, process)
    process.send_signal(number)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert "--resume" in out
    assert list((run / "trainer").glob("checkpoint-*"))
    done = run_rlvr("train", "--name", "again", "--resume", folder=demo_workspace)
    assert done.returncode == 0, done.stderr
    # The trainer averages the loss since its last log, which a checkpoint between two logs does not hold.
    assert_same_run(run, demo_workspace / "runs" / "base-1", "loss")


def test_a_half_written_checkpoint_is_passed_over(demo_workspace: Path):
    from rlvr.train.run import last_checkpoint

    trainer = demo_workspace / "runs/base-1/trainer"
    newest = max(trainer.glob("checkpoint-*"), key=lambda path: int(path.name.rpartition("-")[2]))
    (newest / "trainer_state.json").write_text('{"global_st')
    found = last_checkpoint(demo_workspace / "runs/base-1")
    assert found is not None
    assert found.name == "checkpoint-100"
    assert os.path.isdir(found)
