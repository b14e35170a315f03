"""A probe that is killed goes on where it stopped: nothing is sampled twice, nothing is lost."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.conftest import run_rlvr

from rlvr.records.samples import Sample
from rlvr.workspace import read_lines

pytestmark = pytest.mark.chaos

PROMPTS, ROLLED, ROLLOUTS = 192, 16, 8
LONG = 64
"""Tokens: the untaught model hardly ever ends, so that there is time to kill it."""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    from rlvr.demo.model import build_model, build_tokenizer, save

    tokenizer = build_tokenizer()
    save(build_model(len(tokenizer), seed=2), tokenizer, tmp_path / "model")
    rows = [json.dumps({"prompt": f"sort {n}", "answer": "x"}) for n in range(1000, 1000 + PROMPTS)]
    (tmp_path / "prompts.jsonl").write_text("\n".join(rows) + "\n")
    (tmp_path / "rlvr.yaml").write_text(
        "model: ./model\ntask: {prompts: prompts.jsonl, signal: answer}\nrewards: [{use: exact}]\n"
        f"sampling: {{max_completion_length: {LONG}}}\n"
        f"gates: {{probe: {{prompts: {PROMPTS}, rollouts: {ROLLOUTS}, rollout_prompts: {ROLLED}}}}}\n"
    )
    return tmp_path


def kill_after(folder: Path, lines: int, number: signal.Signals, code: int) -> int:
    """Start the probe, send it a signal once so many completions are on disk, and return how many there are."""
    path = folder / "gates" / "probe" / "completions.jsonl"
    command = [sys.executable, "-m", "rlvr", "probe", "--json"]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 240
    while time.monotonic() < end and process.poll() is None:
        if path.is_file() and path.read_bytes().count(b"\n") >= lines:
            os.kill(process.pid, number)
            break
        time.sleep(0.01)
    assert process.wait(timeout=60) == code
    return len(read_lines(path, Sample))


def test_a_killed_probe_goes_on_where_it_stopped(workspace: Path):
    path = workspace / "gates" / "probe" / "completions.jsonl"
    first = kill_after(workspace, 1, signal.SIGKILL, -signal.SIGKILL)
    assert 0 < first < PROMPTS
    kept = path.read_bytes()
    second = kill_after(workspace, first + 1, signal.SIGINT, 130)
    assert path.read_bytes().startswith(kept)
    assert first < second
    kept = path.read_bytes()
    with path.open("ab") as file:
        file.write(b'{"completion_id": "torn')  # what a kill in the middle of a line leaves
    done = run_rlvr("probe", "--json", folder=workspace)
    found = json.loads(done.stdout)
    assert done.returncode == 3, done.stderr
    assert found["causes"]["main"] == "truncated"
    assert path.read_bytes().startswith(kept)
    samples = read_lines(path, Sample)
    keys = [(one.row_hash, one.source, one.index) for one in samples]
    assert len(keys) == len(set(keys)) == PROMPTS + ROLLED * ROLLOUTS
    assert found["samples_spent"] == len(samples)


def test_two_probes_at_once_do_not_mix(workspace: Path):
    path = workspace / "gates" / "probe" / "completions.jsonl"
    process = subprocess.Popen(
        [sys.executable, "-m", "rlvr", "probe", "--json"],
        cwd=workspace,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        end = time.monotonic() + 120
        while not path.is_file() and process.poll() is None and time.monotonic() < end:
            time.sleep(0.01)
        done = run_rlvr("probe", "--json", folder=workspace)
        assert done.returncode == 4
        assert json.loads(done.stdout)["error"]["code"] == "workspace.busy"
    finally:
        process.kill()
        process.wait()
