import subprocess
import sys

import pytest

from rlvr.audit.findings import (
    FindingFactory,
    literal,
    read_baseline,
    stable_id,
    unused_entries,
    with_baseline,
)
from rlvr.audit.runner import FileTarget
from rlvr.audit.sarif import as_sarif
from rlvr.audit.session import Convention
from rlvr.errors import ConfigError
from rlvr.records.audit import CATEGORIES, direction_of


def finding(tmp_path, severity="high", **fields):
    path = tmp_path / "my rewards.py"
    path.write_text(
        "def reward(prompts, completions, answer, **kwargs):\n    return [1.0] * len(completions)\n"
    )
    factory = FindingFactory(FileTarget(path, "reward"), "reward", str(path), Convention("trl", False))
    request = {"prompts": ["q"], "completions": ["it's\n42" * 2], "columns": {"answer": ["7"]}, "mode": "trl"}
    return factory.make(
        "wrong_accepted",
        "x",
        "it pays",
        fix="mend",
        severity=severity,
        row=0,
        request=request,
        line=2,
        **fields,
    )


def test_the_reproduction_has_five_lines_and_runs(tmp_path):
    script = finding(tmp_path).reproduction
    assert len(script.strip().splitlines()) == 5
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[1.0]"


@pytest.mark.parametrize(
    "text", ["a" * 5000, "x" + "ab " * 900 + "end", "[" * 3000 + "]", "short", "é\u202e" * 400]
)
def test_literals_read_back_as_the_same_text(text):
    written = literal([text])
    assert eval(written) == [text]
    assert len(written) < 500


def test_ids_depend_on_reward_category_and_attack_alone(tmp_path):
    assert (
        finding(tmp_path).id == finding(tmp_path, score=0.5).id == stable_id("reward", "wrong_accepted", "x")
    )
    assert stable_id("a", "b", "c") != stable_id("a", "b", "d")


def test_every_category_has_one_direction():
    names = [name for group in CATEGORIES.values() for name in group]
    assert len(names) == len(set(names)) == 38
    assert direction_of("negation") == "false_pass"


def test_an_accepted_finding_no_longer_blocks(tmp_path):
    found = finding(tmp_path)
    path = tmp_path / "baseline.yaml"
    path.write_text(
        f"accepted:\n  - id: {found.id}\n    reason: the task allows it\n  - id: gone-1\n    reason: was there\n"
    )
    reasons = read_baseline(path)
    accepted = with_baseline([found], reasons)
    assert found.blocks and not accepted[0].blocks
    assert accepted[0].accepted_because == "the task allows it"
    assert len(unused_entries(accepted, reasons)) == 1


@pytest.mark.parametrize(
    "text",
    ["accepted:\n  - id: x\n", "accepted:\n  - id: x\n    reason: no\n", "[1, 2]", "accepted: [", "x: 1"],
)
def test_a_baseline_without_reasons_is_refused(tmp_path, text):
    path = tmp_path / "baseline.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_baseline(path)
    assert caught.value.code == "audit.baseline"


def test_sarif_names_rule_place_and_suppression(tmp_path):
    accepted = with_baseline([finding(tmp_path)], {finding(tmp_path).id: "known and wanted"})
    run = as_sarif(accepted)["runs"][0]
    result = run["results"][0]
    assert result["ruleId"] == "wrong_accepted" and result["level"] == "error"
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 2
    assert result["suppressions"][0]["justification"] == "known and wanted"
