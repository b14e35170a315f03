"""Exit codes, error texts and JSON of the command line, in a real process."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROMPTS = [{"prompt": f"sort {n}", "answer": "".join(sorted(str(n)))} for n in range(1000, 1100)]
CONFIG = """\
model: ./model
task:
  prompts: prompts.jsonl
  signal: answer
rewards:
  - use: exact
"""


def rlvr(*arguments: str, folder: Path, **options) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rlvr", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, **options)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "rlvr.yaml").write_text(CONFIG)
    (tmp_path / "prompts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in PROMPTS))
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text('{"model_type": "llama", "architectures": ["LlamaForCausalLM"]}')
    (model / "model.safetensors").write_bytes(b"\0" * 16)
    return tmp_path


def assert_plain_error(done: subprocess.CompletedProcess[str], code: int, *words: str) -> None:
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr, done.stderr


def test_check_passes_and_writes_the_admission(workspace: Path):
    done = rlvr("check", "--json", folder=workspace)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["passed"] is True
    assert found["prompts"] == 100
    assert (workspace / "gates" / "admit.json").is_file()


def test_status_prints_one_object_with_every_gate(workspace: Path):
    done = rlvr("status", "--json", folder=workspace)
    found = json.loads(done.stdout)
    assert done.returncode == 0
    assert found["passed"] is False
    assert found["next"] == "rlvr audit"
    assert [gate["name"] for gate in found["gates"]] == ["admit", "audit", "probe", "inspect", "plan"]
    assert {"name", "state", "why", "evidence"} <= set(found["gates"][0])


def test_gate_answers_with_its_exit_code(workspace: Path):
    assert rlvr("gate", folder=workspace).returncode == 3
    assert rlvr("gate", "admit", folder=workspace).returncode == 0
    assert json.loads(rlvr("gate", "inspect", "--json", folder=workspace).stdout)["passed"] is False


def test_train_is_refused_before_any_model_is_loaded(workspace: Path):
    start = time.monotonic()
    done = rlvr("train", folder=workspace)
    assert_plain_error(done, 3, "gate.closed", "audit is missing", "rlvr audit")
    assert time.monotonic() - start < 20  # importing the trainer alone can take as long on a busy machine
    assert not (workspace / "runs").exists()


@pytest.mark.parametrize(
    ("name", "content", "code", "words"),
    [
        ("prompts.jsonl", None, 2, ["data.missing", "prompts.jsonl"]),
        ("prompts.jsonl", "", 2, ["data.empty"]),
        ("prompts.jsonl", '{"promt": "a", "answer": "b"}\n', 2, ["prompt", "did you mean"]),
        ("prompts.jsonl", '{"prompt": "a"\n', 2, ["line 1"]),
        ("prompts.jsonl", '{"prompt": "a", "answr": "b"}\n', 2, ["answer", "did you mean"]),
        ("rlvr.yaml", CONFIG.replace("exact", "exakt"), 2, ["reward", "exact"]),
        ("rlvr.yaml", CONFIG.replace("exact", "reward.py:f"), 2, ["reward.py"]),
        ("rlvr.yaml", CONFIG + "oops: 1\n", 2, ["rlvr.yaml:7", "oops"]),
        ("rlvr.yaml", CONFIG.replace("signal: answer", "signal: preference"), 3, ["preference-optimization"]),
        ("rlvr.yaml", CONFIG.replace("signal: answer", "signal: demonstration"), 3, ["lora-qlora-recipes"]),
        ("rlvr.yaml", CONFIG.replace("signal: answer", "signal: judgement"), 3, ["eval-harness-first"]),
        ("rlvr.yaml", CONFIG.replace("./model", "./modle"), 2, ["model.missing"]),
    ],
)
def test_bad_input_gets_one_clear_message(workspace: Path, name, content, code, words):
    path = workspace / name
    path.unlink() if content is None else path.write_text(content)
    done = rlvr("check", folder=workspace)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert all(word in done.stderr + done.stdout for word in words), done.stderr + done.stdout


def test_errors_are_one_json_object_too(tmp_path: Path):
    done = rlvr("status", "--json", folder=tmp_path)
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["code"] == "workspace.missing"


def test_misspelt_command_is_answered_with_the_nearest(tmp_path: Path):
    assert_plain_error(rlvr("trian", folder=tmp_path), 2, "did you mean 'train'?")


def test_full_disk_is_an_infrastructure_error(workspace: Path):
    if os.geteuid() == 0:
        (workspace / "gates").write_text("a file where a folder belongs")
    else:
        workspace.chmod(0o555)
    try:
        assert_plain_error(rlvr("check", folder=workspace), 4, "workspace.write")
    finally:
        workspace.chmod(0o755)


def test_interrupt_exits_130(workspace: Path):
    code = (
        "import os, signal, sys\n"
        "import rlvr.commands.check as check\n"
        "check.check_workspace = lambda chain: os.kill(os.getpid(), signal.SIGINT)\n"
        "from rlvr.cli import main\n"
        "sys.exit(main(['check']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=workspace, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 130
    assert "Traceback" not in done.stderr
    assert signal.SIGINT == 2
