"""The layers between the solution and the machine: tried one by one, never assumed.

========== ==========================================================================
namespaces own processes, own empty root directory, no network, no shared memory
landlock   no file but the readable ones, no abstract socket, no signal outward
seccomp    only harmless system calls: no process, no socket, no writing, no tracing
setuid     another user than the one who started the pool; needs root
========== ==========================================================================

Rungs: A all of namespaces, Landlock, seccomp; B Landlock and seccomp; C namespaces and seccomp; D seccomp and
setuid; E none of these, only resource limits.
"""

from __future__ import annotations

import os
import resource
import socket
from typing import Any, Callable, Dict, FrozenSet, Optional

from . import files, kernel, seccomp

NAMES = ("namespaces", "landlock", "seccomp", "setuid")
_NAMESPACES = kernel.NEWNS | kernel.NEWPID | kernel.NEWNET | kernel.NEWIPC | kernel.NEWUTS
_USERS = (64123, 65534)  # a user that owns nothing, then nobody, where the first is not mapped
_DESCRIPTORS = 128
_ASIDE = "left out on request"


class Layers:
    """The state of every layer, and what a child needs to put the last ones on.

    Attributes:
        missing: Layer to the reason why it is missing; a layer without entry is active.
        ruleset: Descriptor of the Landlock ruleset; -1 without.
        process_files: Descriptor of the process file system; -1 without.
    """

    def __init__(self, without: FrozenSet[str]) -> None:
        self.missing: Dict[str, str] = {name: _ASIDE for name in NAMES if name in without}
        self.ruleset = -1
        self.process_files = -1
        self._own_numbers = False
        self._filter: Optional[kernel.Filter] = None

    def active(self, name: str) -> bool:
        """Return whether a layer is on."""
        return name not in self.missing

    @property
    def rung(self) -> str:
        """Letter of the ladder, see the module's docstring."""
        if not self.active("seccomp"):
            return "E"
        if self.active("landlock"):
            return "A" if self.active("namespaces") else "B"
        if self.active("namespaces"):
            return "C"
        return "D" if self.active("setuid") else "E"

    def _attempt(self, name: str, step: Callable[[], None]) -> None:
        if not self.active(name):
            return
        try:
            step()
        except (OSError, KeyError, ValueError) as error:
            self.missing[name] = str(error) or type(error).__name__

    def enter_namespaces(self) -> None:
        """Unshare, and go on as process 1 of the new namespaces; the former process waits and ends with it."""
        self._attempt("namespaces", _unshare)
        if not self.active("namespaces"):
            return
        child = os.fork()
        if child:
            _wait_and_leave(child)
        kernel.die_with_parent()
        self._own_numbers = True
        self._attempt("namespaces", lambda: kernel.set_host_name(b"sandbox"))

    def finish(self) -> None:
        """Put on what the zygote shares with its children, after the modules were preloaded, and prepare the rest."""
        self._attempt("namespaces", self._enter_root)
        if (
            self.process_files < 0 and not self._own_numbers
        ):  # /proc would show other processes by our numbers
            self.process_files = _open_process_files()
        os.chdir("/")
        self._attempt("setuid", _change_user)
        kernel.drop_capabilities()
        if self._own_numbers:
            kernel.die_with_parent()  # again: a change of user takes it back
        kernel.set_dumpable(False)
        kernel.no_new_privileges()
        _fixed_limits()
        self._attempt("landlock", self._prepare_landlock)
        self._attempt("seccomp", self._prepare_seccomp)

    def _enter_root(self) -> None:
        self.process_files = files.enter_private_root()

    def _prepare_landlock(self) -> None:
        self.ruleset = kernel.landlock_ruleset(files.landlock_rules())
        if not _refused(lambda: kernel.landlock_restrict(self.ruleset), lambda: os.listdir("/")):
            raise OSError("it was set, but the root directory could still be listed")

    def _prepare_seccomp(self) -> None:
        program = seccomp.build(os.uname().machine)
        filter_ = kernel.Filter(program.code, program.pid_offsets)
        for forbidden in (_start_process, _open_socket):
            if not _refused(lambda: filter_.install(os.getpid()), forbidden):
                raise OSError("it was set, but forbidden calls still work")
        self._filter = filter_

    def confine_child(self) -> None:
        """Put the last layers on this process, a child that is about to run the solution."""
        if self.ruleset >= 0:
            kernel.landlock_restrict(self.ruleset)

    def filter_child(self) -> None:
        """Install the filter in this process, once its descriptors are in place."""
        if self._filter is not None:
            self._filter.install(os.getpid())


def _unshare() -> None:
    user, group = os.geteuid(), os.getegid()
    if user == 0:
        try:
            kernel.unshare(_NAMESPACES)
        except OSError:  # root without the capability, as in containers: try as everybody does
            pass
        else:
            return
    kernel.unshare(_NAMESPACES | kernel.NEWUSER)
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{user} {user} 1")
    _write("/proc/self/gid_map", f"{group} {group} 1")


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def _wait_and_leave(child: int) -> None:
    os.closerange(0, 1024)
    while True:
        try:
            _, status = os.waitpid(child, 0)
        except InterruptedError:
            continue
        os._exit(0 if status == 0 else 1)


def _open_process_files() -> int:
    try:
        return os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return -1


def _change_user() -> None:
    if os.geteuid() != 0:
        raise OSError("needs root")
    reasons = []
    for user in _USERS:
        reason = _cannot_live_as(user)
        if not reason:
            _become(user)
            return
        reasons.append(reason)
    raise OSError(reasons[-1])


def _become(user: int) -> None:
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def _cannot_live_as(user: int) -> str:
    """Return why the interpreter would not work as another user, tried in a child."""

    def live() -> None:
        _become(user)
        with open(os.path.realpath(os.__file__), "rb") as source:
            source.read(1)

    error = _outcome(live)
    return f"as user {user}: {error}" if error else ""


def _fixed_limits() -> None:
    for name, value in (
        ("RLIMIT_CORE", 0),
        ("RLIMIT_MEMLOCK", 0),
        ("RLIMIT_MSGQUEUE", 0),
        ("RLIMIT_SIGPENDING", 64),
        ("RLIMIT_NOFILE", _DESCRIPTORS),
    ):
        number = getattr(resource, name, None)
        if number is not None:
            resource.setrlimit(number, (value, value))


def _refused(prepare: Callable[[], Any], forbidden: Callable[[], Any]) -> bool:
    """Return whether ``forbidden`` is refused in a child after ``prepare``.

    Raises:
        OSError: ``prepare`` failed.
    """

    def attempt() -> None:
        prepare()
        try:
            forbidden()
        except PermissionError:
            raise RuntimeError from None

    found = _outcome(attempt)
    if found not in ("", "refused"):
        raise OSError(found)
    return found == "refused"


def _outcome(step: Callable[[], None]) -> str:
    """Run ``step`` in a child; return "" when it succeeds, "refused" for RuntimeError, or the error."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            step()
        except RuntimeError:
            os.write(writing, b"refused")
        except BaseException as error:  # the parent must hear of anything, and the child must end here
            os.write(writing, (str(error) or type(error).__name__).encode()[:500])
        finally:
            os._exit(0)
    os.close(writing)
    text = os.read(reading, 1000).decode("utf-8", "replace")
    os.close(reading)
    _, status = os.waitpid(child, 0)
    return text or ("" if status == 0 else f"a trial process ended with status {status}")


def _start_process() -> None:
    if not os.fork():
        os._exit(0)


def _open_socket() -> None:
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()
