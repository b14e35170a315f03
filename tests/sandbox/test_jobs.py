# one program a line
"""Calls and programs: every status, and no false refusal."""

import pytest

from rlvr.errors import DataError
from rlvr.sandbox import CallTest, Comparison, Job, JobResult, Limits, Pool, StdioTest

SQUARES = (CallTest((2,), {}, 4), CallTest((-3,), {}, 9))
SUMS = (StdioTest("3 4\n", "7\n"), StdioTest("10 5\n", "15\n"))
ADD = "a, b = map(int, input().split())\nprint(a + b)\n"


def call(
    pool: Pool, code: str, tests: object = SQUARES, entry: str | None = "solve", **more: object
) -> JobResult:
    return pool.run([Job(code, tests, entry, **more)])[0]  # type: ignore[arg-type]


def program(pool: Pool, code: str, tests: object = SUMS, **more: object) -> JobResult:
    return pool.run([Job(code, tests, **more)])[0]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "code",
    [
        "def solve(x): return x * x",
        "def solve(x): return float(x * x)",
        "solve = lambda x: x ** 2",
        "class Solution:\n    def solve(self, x): return x * x",
        "import functools\n@functools.lru_cache\ndef solve(x: int) -> int: return x * x",
        "from dataclasses import dataclass\n@dataclass\nclass A:\n    x: int\ndef solve(x): return A(x).x ** 2",
        "import threading\ndef solve(x):\n    out = []\n    t = threading.Thread(target=lambda: out.append(x * x))\n"
        "    t.start(); t.join()\n    return out[0]",
        "import asyncio\nasync def f(x):\n    await asyncio.sleep(0)\n    return x * x\ndef solve(x): return asyncio.run(f(x))",
        "def solve(x):\n    print('noise' * 100)\n    return x * x\nif __name__ == '__main__':\n    input()",
        "import decimal, fractions, sqlite3, zoneinfo, hashlib, ssl, ctypes\ndef solve(x): return x * x",
        "import signal\ndef solve(x):\n    signal.setitimer(signal.ITIMER_REAL, 5)\n    return x * x",
        "from zoneinfo import ZoneInfo\nZoneInfo('Europe/Paris')\ndef solve(x): return x * x",
        "import sys\nsys.setrecursionlimit(50000)\ndef r(n): return 0 if n == 0 else 1 + r(n - 1)\ndef solve(x): return x * x + r(9000) - 9000",
    ],
)  # fmt: skip
def test_right_functions_pass(pool: Pool, code: str) -> None:
    result = call(pool, code)
    assert result.status == "pass", result
    assert (result.passed, result.total, result.fraction) == (2, 2, 1.0)


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("def solve(x): return x + x", "wrong"),
        ("def solve(x): return None", "wrong"),
        ("def solve(x): return str(x * x)", "wrong"),
        ("def solve(x): raise ValueError('no')", "error"),
        ("def solve(x)\n    return x", "error"),
        ("def other(x): return x * x", "error"),
        ("", "error"),
        ("import numpy\ndef solve(x): return x * x", "error"),
        ("def solve(x): return x * x\nexit()", "exited"),
        ("import os\ndef solve(x): os._exit(0)", "exited"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "exited"),
        ("x = bytearray(10 ** 10)", "out-of-memory"),
        ("def solve(x):\n    l = []\n    while True: l.append(bytearray(10 ** 6))", "out-of-memory"),
        ("while True: pass", "timeout-cpu"),
    ],
)
def test_wrong_functions_get_their_status(pool: Pool, code: str, status: str) -> None:
    result = call(pool, code, limits=Limits(cpu_seconds=0.5, memory_bytes=256 << 20))
    assert result.status == status, result
    assert result.fraction < 1
    assert result.message


def test_sleepers_meet_the_wall_guard_once(pool: Pool) -> None:
    result = call(pool, "import time\ntime.sleep(60)", limits=Limits(wall_seconds=0.5))
    assert (result.status, result.attempts) == ("timeout-wall", 1)
    assert result.wall_seconds < 0.75


def test_the_fraction_that_passed(pool: Pool) -> None:
    result = call(pool, "def solve(x): return 4")
    assert (result.status, result.passed, result.total, result.fraction) == ("wrong", 1, 2, 0.5)
    assert [one.status.value for one in result.tests] == ["pass", "wrong"]
    late = call(
        pool, "def solve(x):\n    while x < 0: pass\n    return x * x", limits=Limits(cpu_seconds=0.3)
    )
    assert [one.status.value for one in late.tests] == ["pass", "timeout-cpu"]


def test_entry_points(pool: Pool) -> None:
    last = "def helper(x): return 0\ndef main(x): return x * x\n"
    assert call(pool, last, entry=None).status == "pass"
    assert call(pool, "class A:\n    def go(self, x): return x * x", entry="A.go").status == "pass"
    assert call(pool, "class Solution:\n    def _h(self): pass\n    def go(self, x): return x * x", entry=None).status == "pass"  # fmt: skip


def test_arguments_are_fresh_and_of_their_own_type(pool: Pool) -> None:
    code = "def solve(a, *, k):\n    a.append(type(k).__name__)\n    return a"
    tests = [CallTest(([1],), {"k": (1,)}, [1, "tuple"]), CallTest(([1],), {"k": {2}}, [1, "set"])]
    assert call(pool, code, tests).status == "pass"


def test_tolerance_is_declared(pool: Pool) -> None:
    tests = [CallTest((), {}, 0.3)]
    code = "def solve(): return 0.1 + 0.2"
    assert call(pool, code, tests).status == "wrong"
    assert call(pool, code, tests, comparison=Comparison.FLOAT).status == "pass"


def test_tests_that_are_not_plain_data_are_the_data_sets_fault(pool: Pool) -> None:
    with pytest.raises(DataError, match="plain"):
        call(pool, "", [CallTest((object(),))])
    with pytest.raises(DataError, match="kinds"):
        call(pool, "", [CallTest(), StdioTest()])


def test_no_tests_show_nothing(pool: Pool) -> None:
    assert call(pool, "def solve(x): return 1", []).status == "vacuous"
    assert call(pool, "def solve(x): return 1", []).fraction == 0


def test_allowed_imports(pool: Pool) -> None:
    allowed = frozenset({"math"})
    assert (
        call(pool, "import math\ndef solve(x): return math.prod((x, x))", allowed_imports=allowed).status
        == "pass"
    )
    for code in ("import os", "from os import path", "__import__('os')"):
        refused = call(pool, code + "\ndef solve(x): return x * x", allowed_imports=allowed)
        assert refused.status == "error"
        assert "not allowed" in refused.message


def test_code_in_the_data_is_data(pool: Pool) -> None:
    tests = [CallTest(("__import__('os')._exit(0)",), {}, "'); raise SystemExit(0)")]
    assert call(pool, "def solve(x): return 0", tests).status == "wrong"
    assert call(pool, "def solve(x): return '\\'); raise SystemExit(0)'", tests).status == "pass"


@pytest.mark.parametrize(
    "code",
    [
        ADD,
        "a,b=map(int,input().split())\nprint(a+b,end='')",
        f"if __name__ == '__main__':\n    {ADD.splitlines()[0]}\n    print(a + b)",
        "import sys\nprint(sum(map(int, sys.stdin.read().split())))",
        "import sys\nsys.stdout.buffer.write(b'%d' % sum(map(int, sys.stdin.buffer.read().split())))",
        "import os\nos.write(1, str(sum(map(int, os.read(0, 99).split()))).encode())",
        "print(sum(map(int, open(0).read().split())))",
        "print(sum(map(int, open('/dev/stdin').read().split())))",
        ADD + "import sys\nsys.exit(0)",
        ADD + "exit()",
        ADD + "import os, sys\nsys.stdout.flush()\nos._exit(0)",
        "import threading\ndef main():\n    "
        + ADD.replace("\n", "\n    ")
        + "\nthreading.Thread(target=main).start()",
        "import atexit\natexit.register(lambda: print(sum(map(int, input().split()))))",
        "import sys, io\nsys.stdout = io.TextIOWrapper(open(1, 'wb', closefd=False))\n" + ADD,
        "import sys\nprint('noise', file=sys.stderr)\n" + ADD,
    ],
)
def test_right_programs_pass(pool: Pool, code: str) -> None:
    result = program(pool, code)
    assert result.status == "pass", result


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("print(7)", "wrong"),
        (ADD + "raise ValueError", "error"),
        (ADD + "import sys; sys.exit(2)", "exited"),
        ("print(", "error"),
        ("while True: print('x' * 1000)", "error"),
        ("while True: pass", "timeout-cpu"),
        ("import sys\nsys.stdout.close()", "wrong"),
        ("x = bytearray(10 ** 10)", "out-of-memory"),
    ],
)
def test_wrong_programs_get_their_status(pool: Pool, code: str, status: str) -> None:
    result = program(pool, code, limits=Limits(cpu_seconds=0.5, memory_bytes=256 << 20, output_bytes=100_000))
    assert result.status == status, result


def test_each_run_is_a_process_of_its_own(pool: Pool) -> None:
    code = "import builtins\nassert not hasattr(builtins, 'mark')\nbuiltins.mark = 1\n" + ADD
    assert program(pool, code).status == "pass"


def test_a_job_ends_at_its_first_failure_when_told(pool: Pool) -> None:
    result = program(pool, "print(15)", stop_at_first_failure=True)
    assert [one.message.split(":")[0] for one in result.tests] == [
        "run 1 printed '15\\n', expected '7\\n'",
        "not run",
    ]
    assert program(pool, "print(15)").passed == 1


def test_large_inputs_and_outputs_pass_through(pool: Pool) -> None:
    text = "x" * 900_000
    assert program(pool, "print(input())", [StdioTest(text + "\n", text)]).status == "pass"
    values = list(range(50_000))
    assert call(pool, "def solve(x): return x", [CallTest((values,), {}, values)]).status == "pass"
