"""Fixtures shared by all lanes: the demo is run once a session, and each test gets a copy of its workspace."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # two workers share two cores; more threads wait for each other


def run_rlvr(
    *arguments: str, folder: Path, timeout: float = 280, **options
) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own."""
    command = [sys.executable, "-m", "rlvr", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=timeout, **options)


@pytest.fixture(scope="session")
def demo_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict]:
    """The workspace of one whole demo, seed 0, and the object that it printed; never changed by a test."""
    folder = tmp_path_factory.mktemp("demo")
    done = run_rlvr("demo", "--json", "--output", "demo", folder=folder)
    assert done.returncode == 0, done.stderr
    return folder / "demo", json.loads(done.stdout)


@pytest.fixture
def demo_workspace(demo_run: tuple[Path, dict], tmp_path: Path) -> Path:
    """A copy of the demo's workspace, for a test to change."""
    target = tmp_path / "demo"
    shutil.copytree(demo_run[0], target)
    return target
