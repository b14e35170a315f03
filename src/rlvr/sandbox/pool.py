"""The pool: jobs in, verdicts out, all cores busy, nothing left behind.

One thread of the host sends jobs to the workers and reads what comes back; callers only wait. Each worker runs one
job at a time and holds one more, so that it never waits for the host.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import weakref
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from types import TracebackType

from rlvr.errors import InfrastructureError, UsageError
from rlvr.sandbox.dispatch import Dispatcher
from rlvr.sandbox.protocol import Job, JobResult
from rlvr.sandbox.tasks import make_task
from rlvr.sandbox.worker import WorkerConfig, site_directories

RUNGS = "ABCDE"
"""From the safest to none."""

_PENDING = 64


class Pool:
    """Workers that run jobs in isolated processes.

    Args:
        workers: Processes that fork the jobs; None means one a core this process may use.
        min_isolation: Lowest rung of the ladder, "A" to "E", that is accepted. "E" is not a sandbox: only resource
            limits, for code that is trusted anyway.
        preload: Modules imported once in the warmed interpreter, such as ``("numpy",)``; only these and the
            standard library can be imported by the code.
        python: Interpreter that runs the code; None means this one.
        without: Layers to leave out, by name; to see how a lower rung does.

    Attributes:
        rung: The rung that was reached.
        counts: How many results had each status, infrastructure failures apart from the solutions' own.

    Raises:
        InfrastructureError: ``sandbox.isolation`` below the rung asked for, ``sandbox.start``,
            ``sandbox.preload``.
        UsageError: ``sandbox.rung`` for a letter that is none.
    """

    def __init__(
        self,
        workers: int | None = None,
        *,
        min_isolation: str = "D",
        preload: Sequence[str] = (),
        python: str | None = None,
        without: Iterable[str] = (),
    ) -> None:
        if min_isolation not in tuple(RUNGS):
            raise UsageError("sandbox.rung", f"min_isolation {min_isolation!r}", expected="A, B, C, D or E")
        count = workers or len(os.sched_getaffinity(0))
        interpreter = python or sys.executable
        paths = site_directories(interpreter) if preload else ()
        config = WorkerConfig(interpreter, tuple(preload), paths, frozenset(without))
        self._dispatcher = Dispatcher(config, count)
        self._slots = threading.BoundedSemaphore(_PENDING * count)
        self._pid = os.getpid()
        try:
            _demand(self._dispatcher, min_isolation)
        except BaseException:
            self._dispatcher.stop()
            raise
        self._finalizer = weakref.finalize(self, self._dispatcher.stop)
        _POOLS.add(self)

    @property
    def rung(self) -> str:
        """Letter of the rung that the workers reached."""
        return self._dispatcher.greeting.rung

    @property
    def missing(self) -> dict[str, str]:
        """Layer to the reason why it is missing here."""
        return dict(self._dispatcher.greeting.missing)

    @property
    def counts(self) -> dict[str, int]:
        """Number of results by status, and of workers that were started again."""
        return dict(self._dispatcher.counts)

    @property
    def worker_pids(self) -> list[int]:
        """Process numbers of the workers."""
        return self._dispatcher.worker_pids

    def submit(self, job: Job) -> Future[JobResult]:
        """Queue one job; waits while 64 jobs a worker are pending.

        Raises:
            DataError: ``data.code-tests`` when the tests hold what is not plain data.
            InfrastructureError: ``sandbox.closed``.
        """
        if self._pid != os.getpid():
            raise InfrastructureError(
                "sandbox.forked",
                "this pool belongs to the parent process",
                fix="make a pool after the fork, or use shared_pool()",
            )
        task = make_task(job)
        self._slots.acquire()
        task.future.add_done_callback(lambda _: self._slots.release())
        try:
            self._dispatcher.add(task)
        except InfrastructureError:
            task.future.cancel()
            raise
        return task.future

    def run(self, jobs: Iterable[Job]) -> list[JobResult]:
        """Run jobs and return their results in order."""
        return [future.result() for future in [self.submit(job) for job in jobs]]

    async def run_async(self, jobs: Iterable[Job]) -> list[JobResult]:
        """Run jobs without blocking the event loop."""
        import asyncio  # not needed, and not fast to import, for all other uses

        return await asyncio.to_thread(self.run, list(jobs))

    def close(self) -> None:
        """End all workers; returns when no process, file or descriptor is left. Pending jobs fail."""
        _POOLS.discard(self)
        if self._pid == os.getpid():
            self._finalizer()

    def _abandon(self) -> None:
        """In a forked child: close the copies of the parent's descriptors."""
        self._finalizer.detach()
        self._dispatcher.abandon()

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _demand(dispatcher: Dispatcher, min_isolation: str) -> None:
    greeting = dispatcher.greeting
    if RUNGS.index(greeting.rung) > RUNGS.index(min_isolation):
        reasons = "; ".join(f"{layer}: {why}" for layer, why in greeting.missing.items())
        raise InfrastructureError(
            "sandbox.isolation",
            f"this machine reaches rung {greeting.rung} ({reasons})",
            expected=f"rung {min_isolation} or better",
            fix="see `rlvr doctor` for how to enable the missing layers",
        )


_POOLS: weakref.WeakSet[Pool] = weakref.WeakSet()
_shared: dict[tuple[str, tuple[str, ...], str | None], Pool] = {}
_shared_lock = threading.Lock()


def shared_pool(*, min_isolation: str = "D", preload: Sequence[str] = (), python: str | None = None) -> Pool:
    """Return the process-wide pool for these settings, started when first used.

    Its workers are fresh interpreters, never forks of this process, so it may be called with torch, CUDA and threads
    loaded. A fork of this process gets a pool of its own; at exit all are closed.
    """
    key = (min_isolation, tuple(preload), python)
    with _shared_lock:
        if key not in _shared:
            _shared[key] = Pool(min_isolation=min_isolation, preload=preload, python=python)
        return _shared[key]


def close_shared_pools() -> None:
    """Close every shared pool; the next use starts a new one."""
    with _shared_lock:
        pools = list(_shared.values())
        _shared.clear()
    for pool in pools:
        pool.close()


def _close_all() -> None:
    close_shared_pools()
    for pool in list(_POOLS):
        pool.close()


def _after_fork() -> None:
    global _shared_lock  # noqa: PLW0603  # the parent's lock may be held by a thread that does not exist here
    _shared_lock = threading.Lock()
    _shared.clear()
    for pool in list(_POOLS):
        pool._abandon()
    _POOLS.clear()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_after_fork)
