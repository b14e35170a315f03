"""System calls that Python's standard library does not offer, through the C library."""

from __future__ import annotations

import ctypes
import os
import struct
from typing import Iterable, List, Tuple

_libc = ctypes.CDLL(None, use_errno=True)
_syscall = _libc.syscall
_syscall.restype = ctypes.c_long

NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET = (
    0x00020000,
    0x04000000,
    0x08000000,
    0x10000000,
    0x20000000,
    0x40000000,
)
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 32, 4096, 16384, 1 << 18
MNT_DETACH = 2

_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS, _PR_CAPBSET_DROP, _PR_SET_DUMPABLE = 1, 38, 24, 4
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
_SET_MODE_FILTER, _NO_FLAGS = ctypes.c_ulong(1), ctypes.c_ulong(0)
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446  # the same on both architectures
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_CAPSET = {"x86_64": 126, "aarch64": 91}
_MACHINE = os.uname().machine

READ_FILE, READ_DIR = 1 << 2, 1 << 3
_FILE_RIGHTS_BY_ABI = {1: 13, 2: 14, 3: 15, 5: 16}  # number of rights that each version of Landlock knows
_NET_RIGHTS, _SCOPES = 0b11, 0b11  # bind and connect TCP; abstract sockets and signals


def _check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def _call(number: int, what: str, *arguments: object) -> int:
    return _check(_syscall(ctypes.c_long(number), *arguments), what)


def _prctl(option: int, *arguments: int) -> int:
    padded = [ctypes.c_ulong(value) for value in (*arguments, 0, 0, 0, 0)[:4]]
    return _check(_libc.prctl(ctypes.c_int(option), *padded), "prctl")


def unshare(flags: int) -> None:
    """Move this process (and for processes, its children) into new namespaces."""
    _check(_libc.unshare(ctypes.c_int(flags)), "unshare")


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    """Attach a file system to a directory; the arguments are those of the system call."""
    result = _libc.mount(
        source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), options.encode()
    )
    _check(result, f"mount {target}")


def unmount(target: str) -> None:
    """Detach a mount and all below it."""
    _check(_libc.umount2(target.encode(), ctypes.c_int(MNT_DETACH)), f"umount {target}")


def pivot_root(new: str, old: str) -> None:
    """Make ``new`` the root directory and put the old one at ``old``."""
    _call(_PIVOT_ROOT[_MACHINE], "pivot_root", new.encode(), old.encode())


def set_host_name(name: bytes) -> None:
    """Set the host's name in this namespace."""
    _check(_libc.sethostname(name, ctypes.c_size_t(len(name))), "sethostname")


def die_with_parent() -> None:
    """Be killed when the parent (thread) ends."""
    _prctl(_PR_SET_PDEATHSIG, 9)


def no_new_privileges() -> None:
    """Give up what set-user-id programs would add."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def set_dumpable(value: bool) -> None:
    """Let processes of the same user look at this one, or not."""
    _prctl(_PR_SET_DUMPABLE, int(value))


def drop_capabilities() -> None:
    """Give up every capability, for good."""
    for capability in range(64):
        try:
            _prctl(_PR_CAPBSET_DROP, capability)
        except OSError:  # not permitted, or beyond the last one
            break
    try:
        _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    except OSError:  # an old kernel has none
        pass
    header = struct.pack("<Ii", 0x20080522, 0)
    _call(_CAPSET[_MACHINE], "capset", header, bytes(24))


class Filter:
    """A seccomp program that lies ready, up to the number of the process that installs it."""

    def __init__(self, code: bytes, pid_offsets: Iterable[int]) -> None:
        self._buffer = ctypes.create_string_buffer(code, len(code))
        self._pid_offsets = tuple(pid_offsets)
        self._program = struct.pack("<HxxxxxxQ", len(code) // 8, ctypes.addressof(self._buffer))

    def install(self, pid: int) -> None:
        """Restrict this process, whose number is ``pid``, for good; needs :func:`no_new_privileges`."""
        for offset in self._pid_offsets:
            struct.pack_into("<I", self._buffer, offset, pid)
        _call(_SECCOMP.get(_MACHINE, -1), "seccomp", _SET_MODE_FILTER, _NO_FLAGS, self._program)


def landlock_version() -> int:
    """Return the kernel's Landlock version; raises OSError where there is none."""
    return _call(_LANDLOCK_CREATE, "landlock", None, ctypes.c_size_t(0), ctypes.c_uint(1))


def landlock_ruleset(rules: Iterable[Tuple[str, int]]) -> int:
    """Return a descriptor of a ruleset that allows only ``rules``: pairs of a path and its rights."""
    version = landlock_version()
    rights = max(count for least, count in _FILE_RIGHTS_BY_ABI.items() if least <= version)
    attributes: List[int] = [(1 << rights) - 1]
    if version >= 4:
        attributes.append(_NET_RIGHTS)
    if version >= 6:
        attributes.append(_SCOPES)
    packed = struct.pack(f"<{len(attributes)}Q", *attributes)
    ruleset = _call(_LANDLOCK_CREATE, "landlock", packed, ctypes.c_size_t(len(packed)), ctypes.c_uint(0))
    for path, allowed in rules:
        _add_rule(ruleset, path, allowed)
    return ruleset


def _add_rule(ruleset: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # gone, or not to be reached: nothing to allow
        return
    try:
        packed = struct.pack("<Qi", rights, place)
        _call(_LANDLOCK_ADD, "landlock", ctypes.c_int(ruleset), ctypes.c_int(1), packed, ctypes.c_uint(0))
    finally:
        os.close(place)


def landlock_restrict(ruleset: int) -> None:
    """Restrict this process for good; needs :func:`no_new_privileges`."""
    _call(_LANDLOCK_RESTRICT, "landlock", ctypes.c_int(ruleset), ctypes.c_uint(0))
