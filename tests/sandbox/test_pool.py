"""The pool: alive when its workers die, shared, forked, closed without a trace."""

import asyncio
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from rlvr.errors import InfrastructureError, UsageError
from rlvr.sandbox import CallTest, Job, Limits, Pool, ScriptTests, StdioTest, close_shared_pools, shared_pool

RIGHT = Job("def solve(x): return x * x", (CallTest((2,), {}, 4),), "solve")
SLOW = Job(
    "import time\ndef solve(x):\n    time.sleep(0.3)\n    return x * x", (CallTest((2,), {}, 4),), "solve"
)
JUDGED = Job("def solve(x): return x * x", ScriptTests("assert solve(2) == 4", "solve"), "solve")
PROGRAM = Job("print(int(input()) ** 2)", (StdioTest("2", "4"),))
PATIENT = Limits(cpu_seconds=5, wall_seconds=60)


def children(pid: int | str = "self") -> set[int]:
    found: set[int] = set()
    for task in Path(f"/proc/{pid}/task").iterdir():
        found |= {int(one) for one in (task / "children").read_text().split()}
    return found


def descendants(pid: int) -> set[int]:
    found = children(pid)
    return found.union(*(descendants(child) for child in found))


def descriptors() -> set[str]:
    return set(os.listdir("/proc/self/fd"))


def wait_for(condition: object, seconds: float = 20) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():  # type: ignore[operator]
            return True
        time.sleep(0.01)
    return False


def test_nothing_is_left_behind() -> None:
    with Pool(1):  # what Python itself opens once
        pass
    open_before, children_before, threads = descriptors(), children(), threading.active_count()
    with Pool(2) as pool:
        results = pool.run([RIGHT, JUDGED, PROGRAM] * 5)
        assert {one.status.value for one in results} == {"pass"}
        below = set().union(*(descendants(pid) | {pid} for pid in pool.worker_pids))
    assert descriptors() == open_before
    assert children() == children_before
    assert threading.active_count() == threads
    assert wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in below))


def test_closing_ends_what_still_runs() -> None:
    pool = Pool(1)
    future = pool.submit(
        Job("import time\ntime.sleep(600)", RIGHT.tests, "solve", limits=Limits(wall_seconds=600))
    )
    assert wait_for(lambda: len(descendants(pool.worker_pids[0])) >= 1)
    started = time.monotonic()
    pool.close()
    assert time.monotonic() - started < 5
    with pytest.raises(InfrastructureError, match="closed"):
        future.result(timeout=5)
    with pytest.raises(InfrastructureError, match="closed"):
        pool.run([RIGHT])
    pool.close()


@pytest.mark.chaos
def test_a_worker_that_dies_costs_no_verdict() -> None:
    with Pool(2) as pool:
        futures = [pool.submit(job) for job in [SLOW, JUDGED, RIGHT, PROGRAM] * 6]
        time.sleep(0.2)
        os.kill(pool.worker_pids[0], signal.SIGKILL)
        time.sleep(0.3)
        os.kill(pool.worker_pids[-1], signal.SIGKILL)
        assert {future.result(timeout=60).status.value for future in futures} == {"pass"}
        assert pool.counts["restarted"] == 2
        assert pool.counts.get("infrastructure", 0) == 0
        assert len(pool.worker_pids) == 2


@pytest.mark.chaos
def test_workers_that_always_die_are_an_infrastructure_failure() -> None:
    with Pool(1) as pool:
        future = pool.submit(Job("import time\ntime.sleep(50)", RIGHT.tests, "solve", limits=PATIENT))
        for _ in range(3):
            before = pool.worker_pids[0]
            assert wait_for(lambda: len(descendants(pool.worker_pids[0])) >= 1)
            os.kill(pool.worker_pids[0], signal.SIGKILL)
            assert wait_for(lambda before=before: pool.worker_pids and pool.worker_pids[0] != before)
        result = future.result(timeout=30)
        assert (result.status, result.attempts) == ("infrastructure", 3)
        assert pool.run([RIGHT])[0].status == "pass"


@pytest.mark.chaos
def test_one_that_was_kept_from_running_is_tried_again_alone() -> None:
    """Stopped from outside, it uses no CPU though it would: that is not the program's fault."""
    job = Job(
        "import time\ntime.sleep(0.5)\ndef solve(x): return 4",
        RIGHT.tests,
        "solve",
        limits=Limits(wall_seconds=1.5),
    )
    with Pool(1, without=("namespaces",)) as pool:
        future = pool.submit(job)
        assert wait_for(lambda: children(pool.worker_pids[0]))
        os.kill(next(iter(children(pool.worker_pids[0]))), signal.SIGSTOP)
        result = future.result(timeout=30)
        assert (result.status, result.attempts) == ("pass", 2), result


def test_all_workers_are_busy_and_order_is_kept() -> None:
    jobs = [Job(SLOW.code, (CallTest((n,), {}, n * n),), "solve") for n in range(8)]
    with Pool(4) as pool:
        pool.run([RIGHT] * 4)
        started = time.monotonic()
        results = pool.run(jobs)
        elapsed = time.monotonic() - started
    assert [one.passed for one in results] == [1] * 8
    assert elapsed < 0.8 * 8 * 0.3


def test_submitting_waits_when_too_much_is_pending() -> None:
    with Pool(1) as pool:
        pool._slots = threading.BoundedSemaphore(2)
        started = time.monotonic()
        futures = [pool.submit(SLOW) for _ in range(4)]
        assert time.monotonic() - started > 0.5
        assert {one.result().status.value for one in futures} == {"pass"}


def test_many_threads_and_an_event_loop_share_one_pool(pool: Pool) -> None:
    found: list[str] = []

    def use() -> None:
        found.extend(one.status.value for one in pool.run([RIGHT, JUDGED] * 5))

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["pass"] * 40

    async def both() -> list[str]:
        rows = await asyncio.gather(pool.run_async([RIGHT] * 3), pool.run_async([PROGRAM] * 3))
        return [one.status.value for row in rows for one in row]

    assert asyncio.run(both()) == ["pass"] * 6


def test_a_cancelled_future_is_not_run() -> None:
    with Pool(1) as pool:
        futures = [pool.submit(SLOW) for _ in range(6)]
        assert futures[-1].cancel()
        assert [one.result().status.value for one in futures[:-1]] == ["pass"] * 5
        assert pool.counts["pass"] == 5


def test_a_rung_that_is_not_reached_is_refused() -> None:
    children_before = children()
    with pytest.raises(InfrastructureError, match="rung B or better") as caught:
        Pool(1, min_isolation="B", without=("landlock", "seccomp"))
    assert caught.value.exit_code == 4
    assert "left out on request" in str(caught.value)
    with pytest.raises(InfrastructureError, match="rung D or better"):
        Pool(1, without=("seccomp",))
    with pytest.raises(UsageError, match="A, B, C, D or E"):
        Pool(1, min_isolation="F")
    assert children() == children_before


def test_resource_limits_alone_only_by_name() -> None:
    with Pool(1, min_isolation="E", without=("namespaces", "landlock", "seccomp", "setuid")) as pool:
        assert pool.rung == "E"
        assert pool.run([RIGHT])[0].status == "pass"


def test_what_cannot_start_says_why() -> None:
    with pytest.raises(InfrastructureError, match="no-such-python"):
        Pool(1, python="/no-such-python")
    with pytest.raises(InfrastructureError, match="no_such_module"):
        Pool(1, preload=("no_such_module",))


def _in_a_fork(answers: "multiprocessing.Queue[list[str]]", inherited: Pool) -> None:
    try:
        inherited.run([RIGHT])
        refused = "not refused"
    except InfrastructureError as error:
        refused = error.code
    answers.put([refused, shared_pool().run([RIGHT])[0].status.value])
    close_shared_pools()


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_gets_a_shared_pool_of_its_own() -> None:
    ours = shared_pool()
    assert shared_pool() is ours
    assert ours.run([RIGHT])[0].status == "pass"
    context = multiprocessing.get_context("fork")
    answers: multiprocessing.Queue[list[str]] = context.Queue()
    process = context.Process(target=_in_a_fork, args=(answers, ours))
    process.start()
    assert answers.get(timeout=60) == ["sandbox.forked", "pass"]
    process.join(60)
    assert process.exitcode == 0
    assert ours.run([RIGHT])[0].status == "pass"
    close_shared_pools()
    assert shared_pool() is not ours
    close_shared_pools()


@pytest.mark.parametrize("ending", ["", "import os; os.kill(os.getpid(), 9)", "raise SystemExit(3)"])
def test_workers_end_with_the_host(ending: str) -> None:
    code = (
        "from rlvr.sandbox import *\n"
        "p = shared_pool()\n"
        "p.run([Job('def solve(x): return 1', [CallTest((1,), {}, 1)])])\n"
        "p.submit(Job('while True: pass', [CallTest()], limits=Limits(cpu_seconds=500, wall_seconds=500)))\n"
        f"print(*p.worker_pids, flush=True)\n{ending}\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    pids = done.stdout.split()
    assert pids
    assert wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))


def test_the_hosts_environment_and_modules_stay_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLVR_TEST_SECRET", "kX93")
    code = "import os, sys\ndef solve(): return ('kX93' in str(os.environ), 'pytest' in sys.modules, len(sys.argv))"
    with Pool(1) as pool:
        result = pool.run([Job(code, [CallTest((), {}, (False, False, 4))], "solve")])[0]
    assert result.passed or "[false, false" in result.message


@pytest.mark.slow
def test_memory_does_not_grow() -> None:
    def resident(pid: int) -> int:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1])

    with Pool(2) as pool:
        pool.run([RIGHT, JUDGED] * 500)
        pids = [
            os.getpid(),
            *pool.worker_pids,
            *(one for pid in pool.worker_pids for one in descendants(pid)),
        ]
        before = [resident(pid) for pid in pids]
        for _ in range(4):
            pool.run([RIGHT, JUDGED] * 500)
        after = [resident(pid) for pid in pids]
    assert all(late <= early * 1.1 + 256 for early, late in zip(before, after, strict=True)), (before, after)
