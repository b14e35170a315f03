"""Every example is a workspace that `rlvr check` passes, with no prompt in both of its halves."""

import json
import shutil
from pathlib import Path

import pytest
from tests.conftest import run_rlvr

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("name", sorted(path.parent.name for path in EXAMPLES.glob("*/rlvr.yaml")))
def test_example_passes_check(name: str, tmp_path: Path):
    if name == "reasoning-gym":
        pytest.importorskip("reasoning_gym")
    shutil.copytree(EXAMPLES / name, tmp_path / name)
    done = run_rlvr("check", "--json", folder=tmp_path / name)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["passed"] is True
    assert found["admit"]["overlap"] <= 0.05 * found["held_out"]
