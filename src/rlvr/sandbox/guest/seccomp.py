"""The seccomp filter: an allowlist of system calls, compiled to classic BPF for x86-64 and aarch64.

Built once, as bytes; only the process's own number is written into a copy, so that a program may signal itself and
nobody else. The system calls are found by a balanced tree rather than a chain, because the kernel walks the
program once for each known system call when a filter is installed.
"""

from __future__ import annotations

import struct
from typing import Dict, List, NamedTuple, Tuple

# Name, number on x86-64, number on aarch64; "-" where the architecture lacks it. From the kernel's own headers.
_TABLE = """
read 0 63; write 1 64; readv 19 65; writev 20 66; pread64 17 67; pwrite64 18 68; preadv 295 69
pwritev 296 70; close 3 57; close_range 436 436; lseek 8 62; dup 32 23; dup2 33 -; dup3 292 24
pipe 22 -; pipe2 293 59; fstat 5 80; stat 4 -; lstat 6 -; newfstatat 262 79; statx 332 291
access 21 -; faccessat 269 48; faccessat2 439 439; readlink 89 -; readlinkat 267 78; getdents 78 -
getdents64 217 61; getcwd 79 17; chdir 80 49; fchdir 81 50; umask 95 166; fsync 74 82
fdatasync 75 83; poll 7 -; ppoll 271 73; select 23 -; pselect6 270 72; epoll_create 213 -
epoll_create1 291 20; epoll_ctl 233 21; epoll_wait 232 -; epoll_pwait 281 22; epoll_pwait2 441 441
eventfd 284 -; eventfd2 290 19; timerfd_create 283 85; timerfd_settime 286 86
timerfd_gettime 287 87; signalfd4 289 74; mmap 9 222; munmap 11 215; mremap 25 216; mprotect 10 226
madvise 28 233; brk 12 214; membarrier 324 283; futex 202 98; futex_waitv 449 449
set_robust_list 273 99; set_tid_address 218 96; rseq 334 293; gettid 186 178; sched_yield 24 124
sched_getaffinity 204 123; sched_getparam 143 121; sched_getscheduler 145 120
sched_get_priority_max 146 125; sched_get_priority_min 147 126; getcpu 309 168; rt_sigaction 13 134
rt_sigprocmask 14 135; rt_sigreturn 15 139; rt_sigpending 127 136; rt_sigsuspend 130 133
rt_sigtimedwait 128 137; sigaltstack 131 132; pause 34 -; alarm 37 -; setitimer 38 103
getitimer 36 102; timer_create 222 107; timer_settime 223 110; timer_gettime 224 108
timer_getoverrun 225 109; timer_delete 226 111; clock_gettime 228 113; clock_getres 229 114
clock_nanosleep 230 115; nanosleep 35 101; gettimeofday 96 169; time 201 -; times 100 153
getrusage 98 165; restart_syscall 219 128; getpid 39 172; getppid 110 173; getuid 102 174
geteuid 107 175; getgid 104 176; getegid 108 177; getresuid 118 148; getresgid 120 150
getgroups 115 158; getpgrp 111 -; getpgid 121 155; getsid 124 156; getpriority 140 141
getrlimit 97 163; setrlimit 160 164; uname 63 160; sysinfo 99 179; getrandom 318 278
arch_prctl 158 -; exit 60 93; exit_group 231 94; wait4 61 260; waitid 247 95; recvfrom 45 207
recvmsg 47 212; getsockopt 55 209; getsockname 51 204; getpeername 52 205; shutdown 48 210; open 2 -
openat 257 56; clone 56 220; clone3 435 435; kill 62 129; tgkill 234 131; prctl 157 167; ioctl 16 29
fcntl 72 25; socketpair 53 199; sendto 44 206; prlimit64 302 261; openat2 437 437
"""

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""``uname -m``: the audit number that the kernel reports to a filter."""

ALLOW = 0x7FFF0000
KILL = 0x80000000
_ERRNO = 0x00050000
EPERM, EACCES, ENOTTY, ENOSYS = 1, 13, 25, 38

_LOAD, _JUMP, _EQUAL, _ABOVE, _ANY_BIT, _RETURN, _AND = 0x20, 0x05, 0x15, 0x35, 0x45, 0x06, 0x54
_NUMBER, _ARCH = 0, 4
_OWN_PID = 0x7FFFFFF1  # a place holder: no process has this number
_X32 = 0x40000000
_SIGSTOP = 19

_WRITE_FLAGS = 0x3 | 0x40 | 0x200 | 0x400000  # O_ACCMODE, O_CREAT, O_TRUNC, __O_TMPFILE
_CLONE_THREAD = 0x00010000
_CLONE_NEW = 0x7E020080  # namespaces, and CLONE_NEWTIME
_PRCTL = (15, 16, 3, 23, 0x53564D41)  # PR_SET_NAME, PR_GET_NAME, PR_GET_DUMPABLE, PR_CAPBSET_READ, PR_SET_VMA
_IOCTL = (
    0x5401,
    0x5413,
    0x541B,
    0x5421,
    0x5450,
    0x5451,
)  # TCGETS, window size, FIONREAD, FIONBIO, FIO(N)CLEX
_FCNTL = (0, 1, 2, 3, 4, 1030)  # duplicate, descriptor and status flags; no owner, no signal, no lease

Instruction = Tuple[int, int, int, int]


def fail(errno: int) -> int:
    """Return the filter's verdict that makes a call fail with ``errno``."""
    return _ERRNO | errno


class Program(NamedTuple):
    """A compiled filter: instructions of 8 bytes, and where the own process number goes."""

    code: bytes
    pid_offsets: Tuple[int, ...]

    def for_process(self, pid: int) -> bytes:
        """Return the filter of the process ``pid``."""
        code = bytearray(self.code)
        for offset in self.pid_offsets:
            struct.pack_into("<I", code, offset, pid)
        return bytes(code)


def numbers(machine: str) -> Dict[str, int]:
    """Return the system calls that the filter knows on ``machine``: name to number."""
    column = list(ARCHITECTURES).index(machine) + 1
    rows = [row.split() for row in _TABLE.replace("\n", ";").split(";") if row.strip()]
    return {row[0]: int(row[column]) for row in rows if row[column] != "-"}


def build(machine: str) -> Program:
    """Return the filter for ``machine``.

    Raises:
        KeyError: The architecture has no table here.
    """
    calls = numbers(machine)
    special = _special(machine)
    leaves = {number: special.get(name, _verdict(ALLOW)) for name, number in calls.items()}
    head = [
        (_LOAD, 0, 0, _ARCH),
        (_EQUAL, 1, 0, ARCHITECTURES[machine]),
        (_RETURN, 0, 0, KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_ABOVE, 0, 1, _X32),
        (_RETURN, 0, 0, KILL),
    ]
    program = head + _tree(_intervals(leaves))
    code = b"".join(struct.pack("<HBBI", *instruction) for instruction in program)
    places = tuple(8 * i + 4 for i, one in enumerate(program) if one[0] == _EQUAL and one[3] == _OWN_PID)
    return Program(code, places)


def _verdict(value: int) -> List[Instruction]:
    return [(_RETURN, 0, 0, value)]


def _low(argument: int) -> int:
    return 16 + 8 * argument


def _high(argument: int) -> int:
    return _low(argument) + 4


def _special(machine: str) -> Dict[str, List[Instruction]]:
    """Return the calls whose arguments are looked at."""
    return {
        "open": _read_only(1),
        "openat": _read_only(2),
        "openat2": _verdict(fail(ENOSYS)),  # its flags stand in memory, which a filter cannot read
        "clone": _thread_only(),
        "clone3": _verdict(fail(ENOSYS)),  # likewise; the C library then uses clone
        "kill": _own_signal(1),
        "tgkill": _own_signal(2),
        "prctl": _one_of(0, _PRCTL, EPERM),
        "ioctl": _one_of(1, _IOCTL, ENOTTY),
        "fcntl": _one_of(1, _FCNTL, EPERM),
        "socketpair": _stream_pair(),
        "sendto": _without_address(),
        "prlimit64": _one_of(0, (0,), EPERM),
    }


def _read_only(argument: int) -> List[Instruction]:
    return [
        (_LOAD, 0, 0, _low(argument)),
        (_ANY_BIT, 0, 1, _WRITE_FLAGS),
        (_RETURN, 0, 0, fail(EACCES)),
        (_RETURN, 0, 0, ALLOW),
    ]


def _thread_only() -> List[Instruction]:
    return [
        (_LOAD, 0, 0, _low(0)),
        (_ANY_BIT, 2, 0, _CLONE_NEW),
        (_ANY_BIT, 0, 1, _CLONE_THREAD),
        (_RETURN, 0, 0, ALLOW),
        (_RETURN, 0, 0, fail(EPERM)),
    ]


def _one_of(argument: int, values: Tuple[int, ...], errno: int) -> List[Instruction]:
    tests = [(_EQUAL, len(values) - i, 0, value) for i, value in enumerate(values)]
    return [(_LOAD, 0, 0, _low(argument)), *tests, (_RETURN, 0, 0, fail(errno)), (_RETURN, 0, 0, ALLOW)]


def _own_signal(argument: int) -> List[Instruction]:
    """Allow signals to the own process, except the one that would only make it wait."""
    return [
        (_LOAD, 0, 0, _low(0)),
        (_EQUAL, 0, 2, _OWN_PID),
        (_LOAD, 0, 0, _low(argument)),
        (_EQUAL, 0, 1, _SIGSTOP),
        (_RETURN, 0, 0, fail(EPERM)),
        (_RETURN, 0, 0, ALLOW),
    ]


def _stream_pair() -> List[Instruction]:
    """Allow an unnamed pair of Unix stream sockets, which event loops wake themselves with."""
    return [
        (_LOAD, 0, 0, _low(0)),
        (_EQUAL, 0, 3, 1),  # AF_UNIX
        (_LOAD, 0, 0, _low(1)),
        (_AND, 0, 0, 0xF),
        (_EQUAL, 1, 0, 1),  # SOCK_STREAM: a datagram socket could send to any address
        (_RETURN, 0, 0, fail(EPERM)),
        (_RETURN, 0, 0, ALLOW),
    ]


def _without_address() -> List[Instruction]:
    return [
        (_LOAD, 0, 0, _low(4)),
        (_EQUAL, 0, 3, 0),
        (_LOAD, 0, 0, _high(4)),
        (_EQUAL, 0, 1, 0),
        (_RETURN, 0, 0, ALLOW),
        (_RETURN, 0, 0, fail(EPERM)),
    ]


def _intervals(leaves: Dict[int, List[Instruction]]) -> List[Tuple[int, List[Instruction]]]:
    """Return the whole range of numbers as ``(first, leaf)``, neighbours with the same leaf merged."""
    refused = _verdict(fail(EPERM))
    rows: List[Tuple[int, List[Instruction]]] = []
    for number in range(max(leaves) + 2):
        leaf = leaves.get(number, refused)
        if not rows or rows[-1][1] != leaf:
            rows.append((number, leaf))
    return rows


def _tree(rows: List[Tuple[int, List[Instruction]]]) -> List[Instruction]:
    if len(rows) == 1:
        return rows[0][1]
    middle = len(rows) // 2
    below, above = _tree(rows[:middle]), _tree(rows[middle:])
    first = rows[middle][0]
    if len(below) < 256:
        return [(_ABOVE, len(below), 0, first), *below, *above]
    return [(_ABOVE, 0, 1, first), (_JUMP, 0, 0, len(below)), *below, *above]
