"""The hostile suite: nothing forged, leaked or harmed, at every rung on offer, as root and as nobody."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import rlvr

FOLDER = Path(__file__).parent / "hostile"
SYSTEM_PYTHON = "/usr/bin/python3"
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
QUICK = "harm,leak,forge,odd"

pytestmark = pytest.mark.hostile


def _programs() -> list[Any]:
    spec = importlib.util.spec_from_file_location("hostile_programs", FOLDER / "programs.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["hostile_programs"] = module
    spec.loader.exec_module(module)
    return list(module.ALL)


def _command(user: str, place: Path) -> tuple[list[str], Path, Path]:
    """Return the interpreter, the folder of the programs and that of the package, for one user."""
    source = Path(rlvr.__file__).parent.parent
    if user == "self":
        return [sys.executable], FOLDER, source
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("only root can become nobody, by setpriv")
    for parent in (place, *place.parents[:-1]):
        if parent.is_relative_to("/tmp") and parent != Path("/tmp"):
            parent.chmod(0o755)
    shutil.copytree(FOLDER, place / "hostile", ignore=shutil.ignore_patterns("__pycache__"))
    package = place / "source" / "rlvr"
    shutil.copytree(
        source / "rlvr" / "sandbox", package / "sandbox", ignore=shutil.ignore_patterns("__pycache__")
    )
    for name in ("__init__.py", "errors.py"):
        shutil.copy(source / "rlvr" / name, package / name)
    return [*NOBODY, _readable_python()], place / "hostile", place / "source"


def _readable_python() -> str:
    check = (
        "import subprocess, sys; assert sys.version_info >= (3, 11); "
        "subprocess.run([sys.executable, '-c', ''], check=True)"
    )
    for python in (sys.executable, SYSTEM_PYTHON):
        command = [*NOBODY, python, "-c", check]
        if Path(python).exists() and not subprocess.run(command, capture_output=True).returncode:
            return python
    pytest.skip("no interpreter of version 3.11 or later that nobody can read")


def _run(user: str, rung: str, kinds: str, place: Path) -> dict[str, Any]:
    command, folder, source = _command(user, place)
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(source),
        "PYTHONDONTWRITEBYTECODE": "1",
        "RLVR_TEST_SECRET": "kX93" + "secretQ",
    }
    done = subprocess.run(
        [*command, "run.py", rung, kinds],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    report: dict[str, Any] = json.loads(done.stdout)
    if report["rung"] != rung:
        pytest.skip(f"this machine reaches rung {report['rung']}, see `rlvr doctor`")
    return report


def _check(report: dict[str, Any]) -> None:
    results = report["results"]
    passed = [name for name, one in results.items() if one["status"] == "pass"]
    assert not passed, f"forged, leaked or harmed: {passed}"
    blamed = {name: one["message"] for name, one in results.items() if one["status"] == "infrastructure"}
    assert not blamed, "a hostile program must not look like a failure of the sandbox"
    assert report["harm"] == []
    assert report["left"] == []
    assert report["restarted"] == 0
    assert set(report["honest"]) == {"pass"}


def test_there_are_enough_programs_of_every_kind() -> None:
    kinds = Counter(program.kind for program in _programs())
    assert min(kinds[kind] for kind in ("hang", "harm", "leak", "forge", "odd")) >= 15
    assert kinds.total() >= 200


@pytest.mark.parametrize(("user", "rung"), [("self", "A"), ("nobody", "B")])
def test_most_programs(user: str, rung: str, tmp_path: Path) -> None:
    _check(_run(user, rung, QUICK, tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("user", ["self", "nobody"])
@pytest.mark.parametrize("rung", ["A", "B", "C"])
def test_all_programs(user: str, rung: str, tmp_path: Path) -> None:
    report = _run(user, rung, QUICK + ",hang", tmp_path)
    _check(report)
    for name, one in report["results"].items():
        if name.startswith("hang"):
            assert one["cpu"] <= 1.5 * 0.6, name
            if one["status"] == "timeout-wall":
                assert one["wall"] <= 1.5 * 1.5, name
