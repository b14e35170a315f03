"""``rlvr audit`` in a real process: its object, exit codes, files, and errors without a traceback."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

REWARDS = """
import re

def sound(prompts, completions, answer, **kwargs):
    found = [re.findall(r"<answer>(.*?)</answer>", text, re.DOTALL) for text in completions]
    return [1.0 if one and one[-1].strip() == gold else 0.0 for one, gold in zip(found, answer)]

def contains(prompts, completions, answer, **kwargs):
    return [1.0 if gold in text else 0.0 for text, gold in zip(completions, answer)]

def pays_empty(completions, answer, **kwargs):
    return [1.0 if text.strip() == gold or not text.strip() else 0.0 for text, gold in zip(completions, answer)]
"""
ROWS = [{"prompt": f"What is {n} * 9?", "answer": str(9 * n)} for n in range(3, 13)]
CONFIG = """\
model: ./model
task:
  prompts: data.jsonl
  signal: answer
rewards:
  - use: rewards.py:{function}
    name: mine
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "rewards.py").write_text(REWARDS)
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return tmp_path


def audit(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rlvr", "audit", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)


def test_a_sound_reward_passes_quietly(folder: Path):
    done = audit(folder, "rewards.py:sound", "--dataset", "data.jsonl", "--json")
    assert done.returncode == 0, done.stdout
    found = json.loads(done.stdout)
    assert found["passed"] is True
    assert not [one for one in found["findings"] if one["severity"] != "info"]
    assert found["rewards"][0]["reference_column"] == "answer"
    assert "string completions" in found["rewards"][0]["convention"]
    assert all({"what", "why"} <= set(one) for one in found["not_checked"])


def test_findings_carry_what_the_design_promises(folder: Path):
    done = audit(folder, "rewards.py:contains", "--dataset", "data.jsonl", "--json", "--sarif", "out.sarif")
    assert done.returncode == 3
    found = json.loads(done.stdout)["findings"]
    by_category = {one["category"]: one for one in found}
    assert {"answer_enumeration", "wrong_accepted"} <= set(by_category)
    listed = by_category["answer_enumeration"]
    assert listed["direction"] == "false_pass" and listed["severity"] == "high"
    assert listed["score"] == listed["full_score"] == 1.0
    assert ROWS[listed["row"]]["answer"] in listed["completion"]
    assert listed["rows_hit"] == listed["rows_tried"] == 8
    script = subprocess.run(
        [sys.executable, "-c", listed["reproduction"]], capture_output=True, text=True, check=True
    )
    assert script.stdout.strip() == "[1.0]"
    sarif = json.loads((folder / "out.sarif").read_text())
    assert sarif["version"] == "2.1.0" and len(sarif["runs"][0]["results"]) == len(found)


def test_ids_are_stable_and_a_baseline_lets_findings_stand(folder: Path):
    first = json.loads(audit(folder, "rewards.py:pays_empty", "--dataset", "data.jsonl", "--json").stdout)[
        "findings"
    ]
    assert [one["category"] for one in first if one["severity"] == "critical"] == ["empty_completion"]
    lines = "".join(f"  - id: {one['id']}\n    reason: accepted in this test\n" for one in first)
    (folder / "known.yaml").write_text(f"accepted:\n{lines}")
    done = audit(
        folder, "rewards.py:pays_empty", "--dataset", "data.jsonl", "--json", "--baseline", "known.yaml"
    )
    assert done.returncode == 0
    again = json.loads(done.stdout)["findings"]
    assert [one["id"] for one in again] == [one["id"] for one in first]
    assert all(one["accepted_because"] == "accepted in this test" for one in again)


def test_a_person_reads_what_was_found_and_what_was_not_checked(folder: Path):
    done = audit(folder, "rewards.py:pays_empty", "--dataset", "data.jsonl")
    assert done.returncode == 3
    for words in ("empty_completion", "called as:", "paid form:", "do: ", "critical"):
        assert words in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["rewards.py:sound"], "--dataset"),
        (["rewards.py:nothing", "--dataset", "data.jsonl"], "no function 'nothing'"),
        (["reward.py:sound", "--dataset", "data.jsonl"], "did you mean 'rewards.py'"),
        (["rewards.py", "--dataset", "data.jsonl"], "FILE.py:FUNCTION"),
        (["rewards.py:sound", "--dataset", "dta.jsonl"], "did you mean 'data.jsonl'"),
        (["rewards.py:sound", "--dataset", "empty.jsonl"], "no rows"),
        (["rewards.py:sound", "--dataset", "noprompt.jsonl"], "prompt"),
        (["rewards.py:sound", "--dataset", "data.jsonl", "--baseline", "none.yaml"], "accepted:"),
        ([], "rlvr.yaml"),
    ],
)
def test_a_mistake_is_one_message(folder: Path, arguments: list[str], words: str):
    (folder / "empty.jsonl").write_text("")
    (folder / "noprompt.jsonl").write_text('{"x": 1}\n')
    done = audit(folder, *arguments)
    assert done.returncode == 2, done.stderr
    assert words in done.stderr and "Traceback" not in done.stderr


def test_no_heavy_library_is_imported(folder: Path):
    code = (
        "import sys; from rlvr.cli import main; "
        "main(['audit', 'rewards.py:sound', '--dataset', 'data.jsonl', '--json']); "
        "print([name for name in ('torch', 'transformers', 'trl', 'datasets') if name in sys.modules],"
        "      file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=120
    )
    assert done.stderr.strip().endswith("[]")


@pytest.mark.parametrize(("function", "passed"), [("sound", True), ("contains", False)])
def test_the_workspace_form_writes_the_gate(folder: Path, function: str, passed: bool):
    (folder / "rlvr.yaml").write_text(CONFIG.format(function=function))
    (folder / "model").mkdir()
    (folder / "model" / "config.json").write_text(
        '{"model_type": "llama", "architectures": ["LlamaForCausalLM"]}'
    )
    (folder / "model" / "model.safetensors").write_bytes(b"\0" * 16)
    done = audit(folder, "--json")
    assert done.returncode == (0 if passed else 3), done.stderr
    record = json.loads((folder / "gates" / "audit.json").read_text())["record"]
    assert record["passed"] is passed
    assert record["made_from"]["reward"] and record["made_from"]["data"]
    status = subprocess.run(
        [sys.executable, "-m", "rlvr", "status", "--json"], cwd=folder, capture_output=True, text=True
    )
    gate = next(one for one in json.loads(status.stdout)["gates"] if one["name"] == "audit")
    assert gate["state"] == ("passed" if passed else "failed")


IN_WORKSPACE = """
def reads_strings(completions, answer, **kwargs):
    return [float(text.strip() == gold) for text, gold in zip(completions, answer)]

def compares_whole(completions, answer, **kwargs):
    return [float(text == gold) for text, gold in zip(completions, answer)]

def never(completions, answer, **kwargs):
    return [None for _ in completions]

def reads_messages(completions, answer, **kwargs):
    return [float(one[0]["content"] == gold) for one, gold in zip(completions, answer)]
"""


def workspace(folder: Path, function: str, *, template: bool) -> Path:
    (folder / "rewards.py").write_text(IN_WORKSPACE)
    (folder / "rlvr.yaml").write_text(CONFIG.format(function=function))
    (folder / "model").mkdir()
    (folder / "model" / "config.json").write_text(
        '{"model_type": "llama", "architectures": ["LlamaForCausalLM"]}'
    )
    (folder / "model" / "model.safetensors").write_bytes(b"\0" * 16)
    if template:
        (folder / "model" / "chat_template.jinja").write_text("{{ messages }}")
    return folder


@pytest.mark.parametrize(
    ("function", "template", "shape", "attacks"),
    [
        ("reads_messages", True, "; chat completions (lists of messages)", set()),
        ("reads_messages", False, "messages); the trainer passes strings", {"completion-form"}),
        ("reads_strings", True, "string completions; the trainer passes chat messages", {"completion-form"}),
        ("compares_whole", True, "string completions; the trainer passes chat messages", {"completion-form"}),
        ("compares_whole", False, "; string completions", set()),
        ("never", True, "; chat completions (lists of messages)", {"not-attacked"}),
    ],
)
def test_a_workspace_is_attacked_in_the_shape_of_the_trainer(
    folder: Path, function: str, template: bool, shape: str, attacks: set[str]
):
    done = audit(workspace(folder, function, template=template), "--json")
    found = json.loads(done.stdout)
    assert found["rewards"][0]["convention"].endswith(shape)
    open_ones = [one for one in found["findings"] if one["severity"] in ("high", "critical")]
    assert {one["attack"] for one in open_ones} == attacks, found["why"]
    assert done.returncode == (3 if attacks else 0)
    if function == "reads_strings":
        assert "AttributeError" in open_ones[0]["message"] and "messages" in open_ones[0]["message"]
    if function == "never":
        assert found["why"].startswith("1 of 1 reward(s) could not be attacked: no completion was paid")


def test_a_failed_audit_says_how_its_finding_can_stand(folder: Path):
    done = audit(workspace(folder, "never", template=True))
    assert done.returncode == 3
    printed = done.stdout[done.stdout.index("next: ") :]
    assert "--baseline known.yaml" in printed and "gates.audit.baseline" in printed
    entry = printed[printed.index("accepted:") :]
    (folder / "known.yaml").write_text(entry)
    assert audit(folder, "--baseline", "known.yaml").returncode == 0
