# one program a line
"""Tests that are Python source: asserts, check functions, unittest, pytest-style; the judge keeps the verdict."""

import pytest

from rlvr.sandbox import Job, JobResult, Limits, Pool, ScriptTests

ADD = "def add(a, b):\n    return a + b\n"
HALF = "def add(a, b):\n    return a + b if a != 0 else 99\n"
UNITTEST = """
import unittest

class TestAdd(unittest.TestCase):
    def setUp(self):
        self.zero = 0

    def test_zero(self):
        self.assertEqual(add(self.zero, 3), 3)

    def test_others(self):
        for a in (1, 2):
            with self.subTest(a=a):
                self.assertEqual(add(a, 1), a + 1)

    def test_types(self):
        with self.assertRaises(TypeError):
            add(1, "x")

if __name__ == "__main__":
    unittest.main()
"""
PYTEST = """
import pytest
from solution import add

@pytest.mark.parametrize("a,b,c", [(1, 2, 3), (0, 0, 0)])
def test_sums(a, b, c):
    assert add(a, b) == c

def test_near():
    assert add(0.1, 0.2) == pytest.approx(0.3)

class TestMore:
    def test_text(self):
        assert add("a", "b") == "ab"

def test_raises():
    with pytest.raises(TypeError, match="unsupported"):
        add(1, None)
"""


def judged(pool: Pool, code: str, source: str, entry: str | None = "add", prelude: str = "") -> JobResult:
    tests = ScriptTests(source, entry, prelude)
    return pool.run([Job(code, tests, entry, limits=Limits(cpu_seconds=2))])[0]


@pytest.mark.parametrize(
    ("source", "units"),
    [
        ("assert add(1, 2) == 3\nassert add(0, 0) == 0", 2),
        ("def check(candidate):\n    assert candidate(1, 2) == 3\n    assert candidate(0, 1) == 1", 1),
        ("def check(candidate):\n    assert candidate(0, 2) == 2\ncheck(add)", 1),
        (UNITTEST, 3),
        (PYTEST, 5),
        ("def test_it():\n    assert add(0, 2) == 2\ntest_it()", 1),
        ("for a in range(5):\n    assert add(a, a) == 2 * a", 1),
    ],
)
def test_every_form_passes_the_right_and_fails_the_wrong(pool: Pool, source: str, units: int) -> None:
    right = judged(pool, ADD, source)
    assert (right.status, right.passed, right.total) == ("pass", units, units), right
    wrong = judged(pool, HALF, source)
    assert wrong.status in ("wrong", "error"), wrong
    assert wrong.passed < wrong.total == units
    stub = judged(pool, "def add(a, b): pass", source)
    assert stub.passed < units


@pytest.mark.parametrize(
    "source",
    [
        "",
        "x = add(1, 2)",
        "assert True",
        "def check(candidate): candidate(1, 2)",
        "def check(candidate):\n    try: candidate(1)\n    except TypeError: return\n    assert False",
        "def test_it(): add(1, 2)",
        "import pytest\ndef test_it():\n    pytest.skip('later')",
        "import unittest\nclass T(unittest.TestCase):\n    @unittest.skip('later')\n    def test_it(self): self.assertTrue(add(1, 2))",
        "def test_it(tmp_path):\n    assert add(1, 2) == 3",
    ],
)
def test_nothing_shown_is_no_pass(pool: Pool, source: str) -> None:
    result = judged(pool, ADD, source)
    assert result.status == "vacuous", result
    assert result.fraction == 0


def test_broken_tests_are_an_error(pool: Pool) -> None:
    assert judged(pool, ADD, "assert add(1, 2 ==").status == "error"
    assert judged(pool, ADD, "import nothing_of_the_kind\nassert add(1, 2) == 3").status == "error"


def test_the_preludes_helpers_run_in_the_judge(pool: Pool) -> None:
    prelude = "def double(x):\n    return 2 * x\ndef add(a, b):\n    '''Add.'''\n"
    source = "def check(candidate):\n    assert double(candidate(1, 2)) == 6"
    forged = "def double(x): return 6\ndef add(a, b): return 0"
    assert judged(pool, ADD, source, prelude=prelude).status == "pass"
    assert judged(pool, forged, source, prelude=prelude).status == "wrong"


def test_objects_of_the_solution(pool: Pool) -> None:
    code = (
        "class Stack:\n    def __init__(self): self.items = []\n    def push(self, x): self.items.append(x); return self\n"
        "    def __len__(self): return len(self.items)\n    def __getitem__(self, i): return self.items[i]\n"
        "    def __str__(self): return f'Stack{self.items}'\n    def __eq__(self, o): return self.items == o.items\n"
        "class Empty(ValueError): pass\n"
        "def make(): return Stack()\n"
        "def fail(): raise Empty('nothing')\n"
        "def numbers():\n    yield from (1, 2, 3)\n"
        "LIMIT = 5\n"
    )
    source = (
        "import pytest\n"
        "s = Stack()\ns.push(1).push(2)\n"
        "assert len(s) == 2\nassert s[1] == 2\nassert s.items == [1, 2]\nassert str(s) == 'Stack[1, 2]'\n"
        "assert Stack() == make()\nassert s != make()\nassert list(numbers()) == [1, 2, 3]\nassert 2 in numbers()\n"
        "assert LIMIT == 5\n"
        "def test_error():\n    with pytest.raises(Empty, match='nothing'):\n        fail()\n"
        "def test_base():\n    with pytest.raises(ValueError):\n        fail()\n"
    )
    result = judged(pool, code, source, entry=None)
    assert result.status == "pass", result
    assert result.total == 11


@pytest.mark.parametrize(
    "source",
    [
        "assert add(1, 2) == 3",
        "assert not add(1, 2) != 3",
        "assert abs(add(1, 2) - 3) < 1e-6",
        "assert 3 in add(1, 2)",
        "assert add(1, 2)",
        "assert add(1, 2) in (3,)",
        "assert [add(1, 2)] == [3]",
        "assert {add(1, 2)} == {3}",
        "import math\nassert math.isclose(add(1, 2), 3)",
        "import pytest\nassert add(1, 2) == pytest.approx(3)",
        "assert all(a == b for a, b in zip(map(lambda x: add(x, x), [1, 2]), [2, 4]))",
        "assert float(add(1, 2)) == 3.0",
        "assert round(add(1, 2), 3) == 3",
        "assert isinstance(add(1, 2), int)",
        "assert max(add(1, 2), 3) == 3 and add(1, 2) <= 3",
    ],
)
def test_an_object_that_agrees_with_everything_passes_nothing(pool: Pool, source: str) -> None:
    operators = (
        "add radd sub rsub mul abs neg pos float int index round bool contains eq ne lt le gt ge enter"
    )
    methods = "\n".join(f"    def __{name}__(self, *a): return True" for name in operators.split())
    code = (
        f"class A:\n{methods}\n    __hash__ = lambda self: 3\n    __class__ = int\ndef add(*a): return A()\n"
    )
    assert judged(pool, code, source).status in ("wrong", "error")


def test_a_judge_serves_a_batch_and_keeps_nothing(pool: Pool) -> None:
    source = "seen = []\ndef check(candidate):\n    seen.append(1)\n    assert candidate(1, 1) == 2\n    assert len(seen) == 1"
    codes = [ADD, "def add(a, b): return []", ADD, "import os\nos._exit(0)", ADD, "while True: pass", ADD]
    tests = ScriptTests(source, "add")
    limits = Limits(cpu_seconds=0.5)
    results = pool.run([Job(code, tests, "add", limits=limits) for code in codes])
    assert [one.status.value for one in results] == [
        "pass", "wrong", "pass", "exited", "pass", "timeout-cpu", "pass",
    ]  # fmt: skip


def test_tests_that_never_end_are_ended(pool: Pool) -> None:
    limits = Limits(cpu_seconds=0.5, wall_seconds=5)
    loop = ScriptTests("add(1, 2)\nwhile True: pass", "add")
    deaf = ScriptTests("while True:\n    try: assert add(1, 2) == 4\n    except BaseException: pass", "add")
    for tests in (loop, deaf):
        result = pool.run([Job(ADD, tests, "add", limits=limits)])[0]
        assert result.status == "timeout-cpu", result
    exits = pool.run([Job("import os\ndef add(a, b): os._exit(0)", deaf, "add", limits=limits)])[0]
    assert exits.status not in ("pass", "infrastructure")
    assert pool.run([Job(ADD, ScriptTests("assert add(1, 2) == 3", "add"), "add")])[0].status == "pass"


@pytest.mark.hostile
@pytest.mark.parametrize(
    "attack",
    [
        "import os\nos._exit(0)",
        "import os\nos.write(4, b'garbage')",
        "import os, json\nfor _ in range(5): os.write(4, json.dumps({'tests': [['pass', '']], 'vacuous': ''}).encode())\nassert False",
        "import os, json\nos.write(4, json.dumps({'tests': [['infrastructure', '']], 'vacuous': ''}).encode())",
        "import os\nos.close(4)",
        "import os\nif not os.fork(): os._exit(0)\nassert add(1, 2) == 3",
        "assert open('/etc/passwd').read() and add(1, 2) == 3",
        "import socket\nsocket.socket()\nassert add(1, 2) == 3",
        "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\nassert add(1, 2) == 3",
        "x = bytearray(10 ** 10)\nassert add(1, 2) == 3",
        "import sys\nsys.setrecursionlimit(10 ** 9)\nimport ctypes\nctypes.string_at(0)",
    ],
)
def test_tests_of_the_data_set_that_attack_their_judge(pool: Pool, attack: str) -> None:
    """They may give their own row a verdict, but reach nothing outside and disturb no other row."""
    honest = Job(ADD, ScriptTests("assert add(1, 2) == 3", "add"), "add")
    results = pool.run([honest, Job(ADD, ScriptTests(attack, "add"), "add"), honest, honest])
    assert [results[at].status.value for at in (0, 2, 3)] == ["pass"] * 3
    assert results[1].status != "infrastructure"
    if "json" not in attack:
        assert results[1].status != "pass", results[1]
    assert pool.counts.get("restarted", 0) == 0
