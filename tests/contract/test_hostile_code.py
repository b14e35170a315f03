"""What the user's own code, the terminal or the disk do to a command: one clear answer, never a traceback."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rlvr.cli import main

PROMPTS = [{"prompt": f"sort {n}", "answer": "".join(sorted(str(n)))} for n in range(1000, 1020)]
CONFIG = (
    "model: ./model\ntask: {prompts: prompts.jsonl, signal: answer}\nrewards:\n  - use: reward.py:right\n"
)
RIGHT = "def right(prompts, completions, answer, **kw):\n    return [float(c == a) for c, a in zip(completions, answer)]\n"


def rlvr(*arguments: str, folder: Path, **options) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rlvr", *arguments]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.run(command, cwd=folder, text=True, timeout=120, **streams)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "rlvr.yaml").write_text(CONFIG)
    (tmp_path / "reward.py").write_text(RIGHT)
    (tmp_path / "prompts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in PROMPTS))
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text('{"model_type": "llama"}')
    (tmp_path / "model" / "model.safetensors").write_bytes(b"\0" * 16)
    return tmp_path


@pytest.mark.parametrize("command", ["check", "gate"])
@pytest.mark.parametrize(
    "text", ["import sys\nsys.exit(0)\n", "class Odd(BaseException): ...\nraise Odd('x')\n"]
)
def test_a_reward_that_ends_the_process_never_looks_like_success(workspace: Path, command: str, text: str):
    (workspace / "reward.py").write_text(text + RIGHT)
    done = rlvr(command, "--json", folder=workspace)
    assert done.returncode in (2, 3), done.stderr
    assert "Traceback" not in done.stderr
    assert "reward" in json.dumps(json.loads(done.stdout))


NOISE = (
    "import os, sys\nprint('noise')\nos.write(1, b'more noise')\nos.system('echo child')\nsys.stdout = None\n"
)


@pytest.mark.parametrize("text", [NOISE + RIGHT, NOISE + "1 / 0\n"])
def test_what_a_reward_prints_stays_out_of_the_object(workspace: Path, text: str):
    (workspace / "reward.py").write_text(text)
    done = rlvr("check", "--json", folder=workspace)
    assert ("error" in json.loads(done.stdout)) == ("1 / 0" in text)
    assert "more noise" in done.stderr and "child" in done.stderr


def test_it_stays_out_where_standard_output_is_no_descriptor(workspace: Path, capsys):
    (workspace / "reward.py").write_text("import sys\nprint('noise')\nsys.stdout = None\n" + RIGHT)
    assert main(["check", "-w", str(workspace), "--json"]) == 0
    found = capsys.readouterr()
    assert json.loads(found.out)["prompts"] == len(PROMPTS)
    assert "noise" in found.err


def test_standard_output_is_given_back(workspace: Path):
    code = "from rlvr.cli import main\nmain(['status', '--json'])\nprint('after', flush=True)\n"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=workspace, capture_output=True, text=True, timeout=60
    )
    first, second = done.stdout.splitlines()
    assert "gates" in json.loads(first) and second == "after"


@pytest.mark.parametrize("arguments", [["status"], ["status", "--json"]])
def test_a_full_disk_under_standard_output(workspace: Path, arguments: list[str]):
    with open("/dev/full", "w") as full:
        done = rlvr(*arguments, folder=workspace, stdout=full)
    assert done.returncode == 4, done.stderr
    assert done.stderr.count("\n") <= 2 and "No space left" in done.stderr


@pytest.mark.parametrize("arguments", [["status"], ["status", "--json"]])
def test_a_reader_that_left_is_no_success_and_no_complaint(workspace: Path, arguments: list[str]):
    reading, writing = os.pipe()
    os.close(reading)
    done = rlvr(*arguments, folder=workspace, stdout=writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (4, "")


def test_a_terminal_without_unicode(workspace: Path):
    ascii_only = {**os.environ, "LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    text, record = (rlvr("status", *more, folder=workspace, env=ascii_only) for more in ([], ["--json"]))
    assert (text.returncode, record.returncode) == (0, 0), text.stderr + record.stderr
    assert "gates" in json.loads(record.stdout)


def test_what_nobody_foresaw_is_one_message(workspace: Path, monkeypatch, capsys):
    def broken(_chain):
        raise LookupError("odd \x1b]0;title\x07")

    monkeypatch.setattr("rlvr.commands.check.check_workspace", broken)
    monkeypatch.delenv("RLVR_TRACEBACK", raising=False)
    assert main(["check", "-w", str(workspace), "--json"]) == 4
    found = capsys.readouterr()
    error = json.loads(found.out)["error"]
    assert error["code"] == "internal" and "LookupError: odd" in error["found"]
    assert error["where"].startswith(__file__)
    assert "\x1b" not in found.err and "Traceback" not in found.err and "RLVR_TRACEBACK=1" in found.err
    monkeypatch.setenv("RLVR_TRACEBACK", "1")
    assert main(["check", "-w", str(workspace)]) == 4
    assert "Traceback" in capsys.readouterr().err


def test_exit_called_anywhere_is_an_error(workspace: Path, monkeypatch, capsys):
    monkeypatch.setattr("rlvr.commands.check.check_workspace", lambda _chain: sys.exit(0))
    assert main(["check", "-w", str(workspace), "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "command.ended"


@pytest.mark.parametrize("after", [0.1, 0.25])
def test_an_interrupt_while_modules_are_imported(workspace: Path, after: float):
    (workspace / "reward.py").write_text("import time\ntime.sleep(20)\n" + RIGHT)
    code = "import sys, time\nprint(flush=True)\nfrom rlvr.__main__ import main\nmain()\n"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "check"],
        cwd=workspace,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stdout.readline()
    time.sleep(after)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130, told
    assert "Traceback" not in told
