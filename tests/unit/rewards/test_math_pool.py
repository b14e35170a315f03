"""The children that compare formulas: killed in time, replaced, and never blamed on the answer without cause."""

from __future__ import annotations

import os
import sys
import time

import pytest

from rlvr.errors import InfrastructureError
from rlvr.rewards.contract import Outcome
from rlvr.rewards.math import Math
from rlvr.rewards.mathematics.pool import Ending, Job, Pool

HARD = Job("1", r"\int_0^{1} e^{x^{x^{x}}} \sin(x^{99}) dx")
EASY = Job("1", r"\int_0^1 2x dx")


def child(body: str) -> list[str]:
    return [
        sys.executable,
        "-c",
        "import json, os, sys, time\nprint(json.dumps({'ready': True}), flush=True)\n" + body,
    ]


ECHO = "for line in sys.stdin: print(json.dumps({'same': True, 'why': line[:40]}), flush=True)"


def test_a_hard_formula_costs_its_own_limit_and_the_others_are_answered() -> None:
    pool = Pool(2)
    try:
        pool.run([EASY, EASY], 30)  # both children are warm
        started = time.monotonic()
        hard, *easy = pool.run([HARD, EASY, EASY, EASY], 1.5)
        assert time.monotonic() - started < 1.5 + 8
        assert hard.ending in (Ending.TOO_HARD, Ending.STARVED)
        assert [one.same for one in easy] == [True] * 3
    finally:
        pool.close()


def test_a_busy_child_is_too_hard_and_an_idle_one_is_starved() -> None:
    busy = Pool(1, child("sys.stdin.readline()\nwhile True: pass"))
    idle = Pool(1, child("sys.stdin.readline()\ntime.sleep(60)"))
    try:
        assert busy.run([EASY], 2.0)[0].ending in (Ending.TOO_HARD, Ending.STARVED)
        assert idle.run([EASY], 0.5)[0].ending is Ending.STARVED
    finally:
        busy.close()
        idle.close()


def test_a_child_that_dies_is_infrastructure_and_is_replaced() -> None:
    pool = Pool(1, child("sys.stdin.readline()\nos._exit(9)"))
    try:
        assert [one.ending for one in pool.run([EASY, EASY], 5)] == [Ending.DIED] * 2
    finally:
        pool.close()


def test_children_are_reused_and_die_with_the_pool() -> None:
    pool = Pool(2, child(ECHO))
    pool.run([EASY] * 8, 5)
    pids = [one.process.pid for one in pool._children]
    pool.run([EASY] * 8, 5)
    assert [one.process.pid for one in pool._children] == pids
    pool.close()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_child_that_cannot_start_is_named() -> None:
    with pytest.raises(InfrastructureError, match="cannot be used"):
        Pool(1, ["/no/such/program"]).run([EASY], 1)
    with pytest.raises(InfrastructureError, match="ended while starting"):
        Pool(1, [sys.executable, "-c", "raise SystemExit(3)"]).run([EASY], 1)


def test_an_interrupted_run_leaves_no_answer_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = "for line in sys.stdin: time.sleep(0.3); print(json.dumps({'same': True, 'why': line[:40]}), flush=True)"
    pool = Pool(1, child(slow))
    try:
        pool.run([Job("first", None)], 5)
        monkeypatch.setattr(pool, "_attend", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            pool.run([Job("second", None)], 5)
        monkeypatch.undo()
        (found,) = pool.run([Job("third", None)], 5)
        assert "third" in found.why
    finally:
        pool.close()


def test_results_keep_the_order_of_their_jobs() -> None:
    pool = Pool(2, child(ECHO))
    try:
        found = pool.run([Job(str(number), None) for number in range(20)], 5)
        assert [one.why[10:].split('"')[0] for one in found] == [str(number) for number in range(20)]
    finally:
        pool.close()


@pytest.mark.parametrize(
    ("answer", "gold", "outcome"),
    [
        (r"\int_0^1 2x\,dx", "1", Outcome.RIGHT),
        (r"\sum_{k=1}^{4} k", "10", Outcome.RIGHT),
        (r"\sum_{k=1}^{4} k", "11", Outcome.WRONG),
        ("10", r"\sum_{k=1}^{4} k", Outcome.RIGHT),
        (r"5 \foo{bar}", "5", Outcome.WRONG),
        (r"\frac{1}{}", "1", Outcome.WRONG),
    ],
)
def test_formulas_beyond_the_fast_path(answer: str, gold: str, outcome: Outcome) -> None:
    assert Math(timeout=20).verdict(rf"\boxed{{{answer}}}", gold).outcome is outcome


def test_a_gold_that_no_parser_reads_is_found() -> None:
    assert "does not parse" in (Math(timeout=20).check_reference(r"\foo{x}") or "")
    assert Math(timeout=20).check_reference(r"\int_0^1 x dx") is None
