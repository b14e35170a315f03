"""What this machine can isolate: every layer tried in a real worker, with the reason and the remedy of each lack."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rlvr.errors import InfrastructureError
from rlvr.sandbox.worker import Worker, WorkerConfig

RUNGS = {
    "A": "namespaces, Landlock and seccomp",
    "B": "Landlock and seccomp",
    "C": "namespaces and seccomp",
    "D": "seccomp and another user",
    "E": "resource limits only: not a sandbox",
}
"""The ladder, from the safest to none."""

_PURPOSE = {
    "namespaces": "own processes, own empty root directory, no network, no shared memory",
    "landlock": "no file but the standard library, no signal or abstract socket outward",
    "seccomp": "only harmless system calls",
    "setuid": "another user than yours; needed for rung D alone",
}


@dataclass(frozen=True, slots=True)
class LayerState:
    """One layer on this machine.

    Attributes:
        name: ``namespaces``, ``landlock``, ``seccomp`` or ``setuid``.
        available: Whether it could be put on, and was seen to refuse what it must.
        purpose: What it keeps in.
        reason: Why it is missing; empty when available.
        enable: What to do about it; empty when available.
    """

    name: str
    available: bool
    purpose: str
    reason: str = ""
    enable: str = ""


@dataclass(frozen=True, slots=True)
class IsolationReport:
    """The layers, and the rung of the ladder that they reach.

    Attributes:
        rung: "A" to "E"; "E" too when no worker could be started.
        meaning: The rung in words.
        layers: One entry a layer.
        user: User number that the code runs as, seen from inside; None when no worker could be started.
        error: Why no worker could be started; empty otherwise.
    """

    rung: str
    meaning: str
    layers: tuple[LayerState, ...]
    user: int | None = None
    error: str = ""


def isolation_report(*, python: str | None = None, without: Iterable[str] = ()) -> IsolationReport:
    """Start a worker, let it try every layer, and return what it found; takes about a tenth of a second.

    Args:
        python: Interpreter that would run the code; None means this one.
        without: Layers to leave out, by name.
    """
    config = WorkerConfig(without=frozenset(without))
    if python is not None:
        config = WorkerConfig(python=python, without=frozenset(without))
    try:
        worker = Worker(config)
    except InfrastructureError as error:
        return IsolationReport("E", RUNGS["E"], _all_missing(error.found), error=error.found)
    worker.close()
    missing = worker.greeting.missing
    layers = tuple(_state(name, missing.get(name, "")) for name in _PURPOSE)
    return IsolationReport(worker.greeting.rung, RUNGS[worker.greeting.rung], layers, worker.greeting.user)


def _all_missing(reason: str) -> tuple[LayerState, ...]:
    return tuple(LayerState(name, False, _PURPOSE[name], reason) for name in _PURPOSE)


def _state(name: str, reason: str) -> LayerState:
    if not reason:
        return LayerState(name, True, _PURPOSE[name])
    return LayerState(name, False, _PURPOSE[name], reason, _ENABLE[name]())


def _enable_namespaces() -> str:
    for setting, wanted in (
        ("kernel/unprivileged_userns_clone", "1"),
        ("kernel/apparmor_restrict_unprivileged_userns", "0"),
    ):
        value = _setting(setting)
        if value and value != wanted:
            return f"sudo sysctl -w {setting.replace('/', '.')}={wanted}"
    if _setting("user/max_user_namespaces") == "0":
        return "sudo sysctl -w user.max_user_namespaces=10000"
    if _in_container():
        return (
            "start the container with --security-opt seccomp=unconfined, or with a seccomp profile that allows "
            "unshare and mount; rung B does not need it"
        )
    return "allow this user to make user namespaces"


def _enable_landlock() -> str:
    release = platform.release()
    if _in_container():
        return (
            f"Linux 5.13 or later on the host (here {release}) and a seccomp profile that allows landlock_*"
        )
    return f"Linux 5.13 or later (here {release}), booted with landlock in the kernel's lsm= list"


def _enable_seccomp() -> str:
    if platform.machine() not in ("x86_64", "aarch64"):
        return f"x86-64 or aarch64; there is no table of system calls for {platform.machine()}"
    return "a kernel with CONFIG_SECCOMP_FILTER; gVisor and some emulators have none"


def _enable_setuid() -> str:
    if os.geteuid() != 0:
        return "start as root"
    return "an interpreter that other users can read, not one below /root: name it as the pool's python"


_ENABLE = {
    "namespaces": _enable_namespaces,
    "landlock": _enable_landlock,
    "seccomp": _enable_seccomp,
    "setuid": _enable_setuid,
}


def _setting(name: str) -> str:
    try:
        return Path("/proc/sys", name).read_text().strip()
    except OSError:
        return ""


def _in_container() -> bool:
    return Path("/.dockerenv").exists() or Path("/run/.containerenv").exists() or "container" in os.environ
