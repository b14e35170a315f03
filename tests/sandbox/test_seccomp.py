# ruff: noqa: SIM905  # one program a line
"""The filter, run by a small interpreter of classic BPF, on both architectures."""

import re
import struct
from pathlib import Path

import pytest

from rlvr.sandbox.guest import seccomp

PID = 4321
EPERM, EACCES, ENOSYS = (seccomp.fail(number) for number in (1, 13, 38))
MACHINES = sorted(seccomp.ARCHITECTURES)


def verdict(machine: str, number: int, *arguments: int, arch: int | None = None) -> int:
    """Return what the filter of process PID says to a call."""
    padded = (list(arguments) + [0] * 6)[:6]
    data = struct.pack("<iIQ6Q", number, arch or seccomp.ARCHITECTURES[machine], 0, *padded)
    code = seccomp.build(machine).for_process(PID)
    program = [struct.unpack_from("<HBBI", code, at) for at in range(0, len(code), 8)]
    at, value = 0, 0
    while True:
        operation, yes, no, constant = program[at]
        at += 1
        if operation == 0x20:
            (value,) = struct.unpack_from("<I", data, constant)
        elif operation == 0x05:
            at += constant
        elif operation == 0x54:
            value &= constant
        elif operation == 0x06:
            return constant
        else:
            test = {0x15: value == constant, 0x35: value >= constant, 0x45: bool(value & constant)}[operation]
            at += yes if test else no


def call(machine: str, name: str, *arguments: int) -> int:
    return verdict(machine, seccomp.numbers(machine)[name], *arguments)


@pytest.mark.parametrize("machine", MACHINES)
def test_every_plain_call_of_the_table_is_allowed_and_its_neighbours_are_not(machine: str) -> None:
    numbers = seccomp.numbers(machine)
    special = set(seccomp._special(machine))
    for name, number in numbers.items():
        if name not in special:
            assert verdict(machine, number) == seccomp.ALLOW, name
    for number in set(range(500)) - set(numbers.values()):
        assert verdict(machine, number) == EPERM, number
    assert verdict(machine, 100_000) == EPERM


@pytest.mark.parametrize("machine", MACHINES)
def test_other_architectures_and_x32_are_killed(machine: str) -> None:
    assert verdict(machine, 0, arch=0x40000003) == seccomp.KILL
    assert verdict(machine, 0x40000000 + 1) == seccomp.KILL
    assert verdict(machine, -1) == seccomp.KILL


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("openat", (3, 0, 0o2000000), seccomp.ALLOW),
        ("openat", (3, 0, 1), EACCES),
        ("openat", (3, 0, 2), EACCES),
        ("openat", (3, 0, 0o100), EACCES),
        ("openat", (3, 0, 0o1000), EACCES),
        ("openat", (3, 0, 0o20000000), EACCES),
        ("openat2", (), ENOSYS),
        ("clone3", (), ENOSYS),
        ("clone", (0x3D0F00,), seccomp.ALLOW),
        ("clone", (17,), EPERM),
        ("clone", (0x10000 | 0x20000000,), EPERM),
        ("kill", (PID, 9), seccomp.ALLOW),
        ("kill", (PID, 19), EPERM),
        ("kill", (1, 9), EPERM),
        ("kill", (2**64 - 1, 9), EPERM),
        ("tgkill", (PID, 77, 6), seccomp.ALLOW),
        ("tgkill", (1, 77, 6), EPERM),
        ("prctl", (15,), seccomp.ALLOW),
        ("prctl", (1,), EPERM),
        ("prctl", (36,), EPERM),
        ("ioctl", (0, 0x5401), seccomp.ALLOW),
        ("ioctl", (0, 0x5412), seccomp.fail(25)),
        ("fcntl", (0, 3), seccomp.ALLOW),
        ("fcntl", (0, 8), EPERM),
        ("fcntl", (0, 1031), EPERM),
        ("socketpair", (1, 0o2000001), seccomp.ALLOW),
        ("socketpair", (1, 2), EPERM),
        ("socketpair", (2, 1), EPERM),
        ("sendto", (0, 0, 0, 0, 0), seccomp.ALLOW),
        ("sendto", (0, 0, 0, 0, 1), EPERM),
        ("sendto", (0, 0, 0, 0, 1 << 40), EPERM),
        ("prlimit64", (0, 7), seccomp.ALLOW),
        ("prlimit64", (1, 7), EPERM),
    ],
)
def test_arguments(machine: str, name: str, arguments: tuple[int, ...], expected: int) -> None:
    assert call(machine, name, *arguments) == expected


@pytest.mark.parametrize(
    "name",
    "fork vfork execve execveat socket connect bind ptrace process_vm_readv process_vm_writev memfd_create unlink "
    "unlinkat rename mkdir symlink link chmod chown mount umount2 unshare setns setuid setgid bpf io_uring_setup "
    "userfaultfd perf_event_open keyctl pidfd_open pidfd_getfd pidfd_send_signal tkill rt_sigqueueinfo shmget "
    "msgget mq_open truncate ftruncate fallocate utimensat setpriority sched_setscheduler clock_settime sendmsg "
    "sendmmsg seccomp mlockall quotactl init_module reboot swapon open_by_handle_at name_to_handle_at".split(),
)
def test_what_must_not_be_in_the_table(name: str) -> None:
    for machine in MACHINES:
        assert name not in seccomp.numbers(machine)


@pytest.mark.parametrize(
    ("machine", "header", "pattern"),
    [
        ("x86_64", "/usr/include/x86_64-linux-gnu/asm/unistd_64.h", r"#define __NR_(\w+) (\d+)"),
        ("aarch64", "/usr/include/asm-generic/unistd.h", r"#define __NR(?:3264)?_(\w+) (\d+)"),
    ],
)
def test_numbers_are_the_kernels(machine: str, header: str, pattern: str) -> None:
    if not Path(header).exists():
        pytest.skip(f"{header} is not installed")
    told = {name: int(number) for name, number in re.findall(pattern, Path(header).read_text())}
    told.setdefault("newfstatat", told.get("fstatat", -1))
    for name, number in seccomp.numbers(machine).items():
        if name in told:
            assert told[name] == number, name
    assert len(set(told) & set(seccomp.numbers(machine))) > 100


@pytest.mark.parametrize("machine", MACHINES)
def test_the_tree_is_shallow(machine: str) -> None:
    assert len(seccomp.build(machine).code) // 8 < 400
