# ruff: noqa: I001  # one script a line; the programs lie beside this file
"""Run the hostile programs in a process of their own and print, as JSON, what they achieved.

Usage: ``python run.py RUNG KIND[,KIND] [quick]``. A process apart, so that it can be another user's, be killed by an
attack without taking the tests along, and count what is left behind.
"""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import programs
from rlvr.sandbox import CallTest, Comparison, Job, Limits, Pool, ScriptTests, StdioTest

WITHOUT = {
    "A": (),
    "B": ("namespaces",),
    "C": ("landlock",),
    "D": ("namespaces", "landlock"),
    "E": programs.LAYERS,
}
HANG_LIMITS = Limits(cpu_seconds=0.6, wall_seconds=1.5)
LIMITS = Limits(cpu_seconds=3.0, wall_seconds=8.0, memory_bytes=700 * 1024 * 1024)
CHECK = "def check(candidate):\n    assert candidate(2) == 4\n    assert candidate(3) == 9\n"
SCRIPTS = {
    "script": CHECK,
    "script near": "def check(candidate):\n    assert abs(candidate(2) - 4) < 1e-6\n    assert abs(candidate(3) - 9) < 1e-6\n",
    "script iterates": "def check(candidate):\n    assert list(candidate(1)) == [1]\n",
    "script lenient": "def check(candidate):\n    try:\n        found = candidate(2)\n    except ValueError:\n        return\n    assert found == 4\n",
    "member": "def check(candidate):\n    assert 4 in candidate(2)\n",
    "zip": "def check(candidate):\n    assert all(a == b for a, b in zip(map(candidate, [2, 3]), [4, 9]))\n",
    "unittest": "import unittest\nclass T(unittest.TestCase):\n    def test_it(self):\n        self.assertEqual(solve(2), 4)\n",
    "pytest": "import pytest\n@pytest.mark.parametrize('x,y', [(2, 4), (3, 9)])\ndef test_it(x, y):\n    assert solve(x) == y\n",
}


def job(code: str, mode: str, limits: Limits) -> Job:
    if mode == "stdio":
        tests = [StdioTest("3 4\n", "7\n"), StdioTest("10 5\n", "15\n")]
        return Job(code, tests, limits=limits)
    if mode == "attack":
        return Job(code, [CallTest((), {}, "done")], "attack", limits=limits)
    if mode in SCRIPTS:
        return Job(code, ScriptTests(SCRIPTS[mode], "solve"), limits=limits)
    values = {"call": (4, 9), "list": ([2], [3]), "float": (4.0, 9.0)}[mode]
    tests = [CallTest((2,), {}, values[0]), CallTest((3,), {}, values[1])]
    comparison = Comparison.FLOAT if mode == "float" else Comparison.EXACT
    return Job(code, tests, "solve", comparison, limits=limits)


class Surroundings:
    """What the programs could harm or read: a file, a process, sockets that listen."""

    def __init__(self) -> None:
        self.secret = os.environ["RLVR_TEST_SECRET"]
        self.folder = Path(tempfile.mkdtemp(prefix="rlvr-hostile-"))
        self.folder.chmod(0o755)
        self.file = self.folder / "secret.txt"
        self.file.write_text(f"{self.secret} expect assert")
        self.file.chmod(0o644)
        self.victim = subprocess.Popen(
            ["/bin/sleep", "600"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.contacts: list[str] = []
        self.abstract = f"rlvr-{os.getpid()}"
        self.path = str(self.folder / "socket")
        self._sockets = [
            self._listen(socket.AF_INET, ("127.0.0.1", 0)),
            self._listen(socket.AF_UNIX, "\0" + self.abstract),
            self._listen(socket.AF_UNIX, self.path),
        ]
        self.port = self._sockets[0].getsockname()[1]
        self._packages = Path(json.__file__).parent.parent / "site-packages"
        self._package_file = next(iter(self._packages.glob("*/*.py")), "/nowhere")
        self._before = self._files()

    def _listen(self, family: int, address: object) -> socket.socket:
        listener = socket.socket(family)
        listener.bind(address)
        listener.listen()
        threading.Thread(target=self._accept, args=(listener, str(address)), daemon=True).start()
        return listener

    def _accept(self, listener: socket.socket, address: str) -> None:
        while True:
            try:
                listener.accept()[0].close()
            except OSError:
                return
            self.contacts.append(address)

    def _files(self) -> dict[str, tuple[int, int, bytes]]:
        found = {}
        for path in sorted(self.folder.rglob("*")):
            state = path.lstat()
            found[str(path)] = (
                state.st_mode,
                state.st_mtime_ns,
                path.read_bytes() if path.is_file() else b"",
            )
        return found

    def fill(self, code: str) -> str:
        for name, value in {
            "SECRET": self.secret,
            "FILE": self.file,
            "FOLDER": self.folder,
            "HOST": os.getpid(),
            "VICTIM": self.victim.pid,
            "PORT": self.port,
            "ABSTRACT": self.abstract,
            "SOCKET": self.path,
            "SOURCE": Path(sys.modules["rlvr.sandbox.pool"].__file__),
            "PACKAGES": self._packages,
            "PACKAGE_FILE": self._package_file,
        }.items():
            code = code.replace(f"@{name}@", str(value))
        return code

    def harm(self) -> list[str]:
        """Return what was changed outside."""
        found = []
        after = self._files()
        if after != self._before:
            found.append(f"files changed: {sorted(set(after.items()) ^ set(self._before.items()))}")
        for path in ("/tmp/rlvr-planted", "/dev/shm/rlvr-planted"):
            if os.path.exists(path):
                found.append(f"{path} was written")
        state = Path(f"/proc/{self.victim.pid}/stat").read_text().rpartition(")")[2].split()
        if self.victim.poll() is not None or state[0] in "TZ":
            found.append("the bystander was killed or stopped")
        if state[16] != "0":
            found.append("the bystander's priority was changed")
        found += [f"something connected to {address!r}" for address in self.contacts]
        return found

    def close(self) -> None:
        for one in self._sockets:
            one.shutdown(socket.SHUT_RDWR)
            one.close()
        self.victim.kill()
        self.victim.wait()
        shutil.rmtree(self.folder)


def children() -> set[int]:
    found = set()
    for task in Path("/proc/self/task").iterdir():
        found |= {int(pid) for pid in (task / "children").read_text().split()}
    return found


def descriptors() -> set[str]:
    return set(os.listdir("/proc/self/fd"))


def selected(kinds: set[str], quick: bool) -> list[tuple[str, programs.Program, str]]:
    found = []
    for program in programs.ALL:
        if program.kind not in kinds or (quick and not program.quick):
            continue
        found.append((f"{program.kind}: {program.name}", program, program.mode))
        if program.kind == "forge" and program.mode == "call":
            for other in ("script", "pytest"):
                found.append((f"{program.kind}: {program.name} ({other})", program, other))
    return found


def main(rung: str, kinds: set[str], quick: bool) -> None:
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # orphans come here, where they are counted
    surroundings = Surroundings()
    atexit.register(surroundings.victim.kill)
    open_before, children_before = descriptors(), children()
    results = {}
    with Pool(2, min_isolation="E", without=WITHOUT[rung]) as pool:
        reached = pool.rung
        warm = job(f"KEPT = {surroundings.secret!r}\ndef solve(x): return x * x", "call", LIMITS)
        honest = pool.run([warm] * 4)
        chosen = selected(kinds, quick)
        jobs = [
            job(surroundings.fill(one.code), mode, HANG_LIMITS if one.kind == "hang" else LIMITS)
            for _, one, mode in chosen
        ]
        started = time.monotonic()
        for (name, _, _), result in zip(chosen, pool.run(jobs), strict=True):
            results[name] = {
                "status": result.status.value,
                "message": result.message,
                "cpu": result.cpu_seconds,
                "wall": result.wall_seconds,
                "attempts": result.attempts,
            }
        elapsed = time.monotonic() - started
        honest += pool.run([warm] * 4)
        restarted = pool.counts.get("restarted", 0)
    time.sleep(0.1)
    left = [f"process {pid}" for pid in children() - children_before]
    left += [f"descriptor {number}" for number in descriptors() - open_before]
    report = {
        "user": os.getuid(),
        "rung": reached,
        "honest": [one.status.value for one in honest],
        "restarted": restarted,
        "results": results,
        "harm": surroundings.harm(),
        "left": left,
        "elapsed": elapsed,
    }
    surroundings.close()
    print(json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1], set(sys.argv[2].split(",")), "quick" in sys.argv[3:])
