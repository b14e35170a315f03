"""What the machine offers, what is missing and why, and the code that runs on each rung."""

import platform
import subprocess
import sys

import pytest

from rlvr.sandbox import CallTest, Job, Pool, isolation_report

RIGHT = Job("def solve(x): return x * x", (CallTest((2,), {}, 4),), "solve")


def test_the_report_names_every_layer_and_its_remedy() -> None:
    report = isolation_report()
    assert [layer.name for layer in report.layers] == ["namespaces", "landlock", "seccomp", "setuid"]
    for layer in report.layers:
        assert layer.available == (not layer.reason) == (not layer.enable)
        assert layer.purpose
    assert report.meaning
    assert not report.error


def test_a_layer_left_out_lowers_the_rung() -> None:
    report = isolation_report(without=("namespaces", "seccomp"))
    assert report.rung == "E"
    missing = {layer.name: layer for layer in report.layers if not layer.available}
    assert missing["seccomp"].reason == "left out on request"
    assert missing["namespaces"].enable


def test_an_interpreter_that_does_not_start() -> None:
    report = isolation_report(python="/no-such-python")
    assert report.rung == "E"
    assert "no-such-python" in report.error
    assert not any(layer.available for layer in report.layers)


@pytest.mark.parametrize(("without", "rung"), [((), "A"), (("namespaces",), "B"), (("landlock",), "C")])
def test_rungs(without: tuple[str, ...], rung: str) -> None:
    if isolation_report().rung != "A":
        pytest.skip("this machine does not reach rung A, see `rlvr doctor`")
    with Pool(1, without=without, min_isolation=rung) as pool:
        assert pool.rung == rung
        assert set(without) <= set(pool.missing)
        assert pool.run([RIGHT])[0].status == "pass"


BLOCKED = """
import struct, sys
from rlvr.sandbox.guest import kernel
code = [(0x20, 0, 0, 0)]
for number in map(int, sys.argv[1].split(",")):
    code += [(0x15, 0, 1, number), (0x06, 0, 0, 0x50001)]
code.append((0x06, 0, 0, 0x7FFF0000))
kernel.no_new_privileges()
kernel.Filter(b"".join(struct.pack("<HBBI", *one) for one in code), ()).install(0)
from rlvr.sandbox import CallTest, Job, Pool, isolation_report
report = isolation_report()
print(report.rung, *[layer.name for layer in report.layers if not layer.available and layer.name != "setuid"])
with Pool(1, min_isolation="E") as pool:
    print(pool.run([Job("def solve(x): return x", [CallTest((1,), {}, 1)])])[0].status.value)
"""
UNSHARE, MOUNT, LANDLOCK, SECCOMP = 272, 165, 444, 317


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers are those of x86-64")
@pytest.mark.parametrize(
    ("refused", "rungs", "missing"),
    [
        ((UNSHARE,), "B", "namespaces"),
        ((MOUNT,), "B", "namespaces"),
        ((UNSHARE, LANDLOCK), "DE", "namespaces landlock"),
        ((SECCOMP,), "E", "seccomp"),
    ],
)
def test_calls_that_a_container_refuses_lower_the_rung(
    refused: tuple[int, ...], rungs: str, missing: str
) -> None:
    """The ladder is found by trying: here under a filter like that of a container."""
    if isolation_report().rung != "A":
        pytest.skip("this machine does not reach rung A, see `rlvr doctor`")
    command = [sys.executable, "-c", BLOCKED, ",".join(map(str, refused))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr[-2000:]
    first, status = done.stdout.splitlines()
    assert first[0] in rungs
    assert first[2:] == missing
    assert status == "pass"
