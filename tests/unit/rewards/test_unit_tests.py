"""The reward on the sandbox: outcomes, partial credit and references; the sandbox has its own tests."""

from __future__ import annotations

import json

import pytest

from rlvr.errors import DataError
from rlvr.rewards.contract import Outcome
from rlvr.rewards.unit_tests import UnitTests

SUM = {"tests": [{"input": "3 4", "output": "7"}, {"input": "1 1", "output": "2"}]}
SQUARE = {"fn": "solve", "tests": [{"args": [2], "expect": 4}, {"args": [3], "expect": 9}]}


def fenced(code: str) -> str:
    return f"```python\n{code}\n```"


@pytest.mark.parametrize(
    ("completion", "reference", "outcome"),
    [
        (fenced("a,b=map(int,input().split())\nprint(a+b)"), SUM, Outcome.RIGHT),
        (fenced("print(7)"), SUM, Outcome.WRONG),
        ("print(7)", SUM, Outcome.ILL_FORMED),
        (fenced("def solve(x): return x*x"), SQUARE, Outcome.RIGHT),
        (fenced("def solve(x): return x*x"), json.dumps(SQUARE), Outcome.RIGHT),
        (fenced("def solve(x): return x*x"), {**SQUARE, "float_tol": None}, Outcome.RIGHT),
        (fenced("def solve(x) return x"), SQUARE, Outcome.ILL_FORMED),
        (fenced("def solve(x): return x*x"), "assert solve(2) == 4", Outcome.RIGHT),
        (fenced("def solve(x): return x"), "assert solve(2) == 4", Outcome.WRONG),
        ("<think>" + fenced("def solve(x): return x*x") + "</think>", SQUARE, Outcome.ILL_FORMED),
    ],
)
def test_outcomes(completion: str, reference: object, outcome: Outcome) -> None:
    assert UnitTests().verdict(completion, reference).outcome is outcome


def test_an_endless_loop_is_wrong_within_its_limit() -> None:
    assert UnitTests(cpu_seconds=0.3).verdict(fenced("while True: pass"), SUM).outcome is Outcome.WRONG


def test_partial_credit_is_paid_where_it_is_asked_for() -> None:
    half = fenced("def solve(x): return 4")
    assert UnitTests().verdict(half, SQUARE).score == 0.0
    found = UnitTests(partial=True).verdict(half, SQUARE)
    assert (found.score, found.outcome) == (0.5, Outcome.WRONG)


@pytest.mark.parametrize("reference", [None, 3, {}, {"tests": []}, {"tests": [{"args": [1]}]}, {"test": []}])
def test_what_is_no_reference(reference: object) -> None:
    assert UnitTests().check_reference(reference)
    with pytest.raises(DataError):
        UnitTests().verdict(fenced("x=1"), reference)
