"""The pool of sandbox workers: synchronous, asynchronous and shared use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from types import TracebackType

from rlvr.errors import InfrastructureError
from rlvr.sandbox.protocol import Job, JobResult


class Pool:
    """Workers that run jobs in isolated processes.

    Args:
        workers: Processes that fork the jobs; None means one a core this process may use.
        min_isolation: Lowest rung of the ladder, "A" to "E", that is accepted; starting below it is refused.
        preload: Modules imported once in the warmed interpreter, such as ``("numpy",)``; only these and the
            standard library can be imported by the code.
        python: Interpreter that runs the code; None means this one.
    """

    def __init__(
        self,
        workers: int | None = None,
        *,
        min_isolation: str = "D",
        preload: Sequence[str] = (),
        python: str | None = None,
    ) -> None:
        raise InfrastructureError("sandbox.unavailable", "the sandbox's workers are not built yet")

    def run(self, jobs: Iterable[Job]) -> list[JobResult]:
        """Run jobs and return their results in order."""
        raise NotImplementedError

    def submit(self, job: Job) -> Future[JobResult]:
        """Queue one job; waits while the queue is full."""
        raise NotImplementedError

    async def run_async(self, jobs: Iterable[Job]) -> list[JobResult]:
        """Run jobs without blocking the event loop."""
        raise NotImplementedError

    def close(self) -> None:
        """End all workers; nothing is left behind."""

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def shared_pool(*, min_isolation: str = "D", preload: Sequence[str] = (), python: str | None = None) -> Pool:
    """Return the process-wide pool for these settings, started when first used."""
    return Pool(min_isolation=min_isolation, preload=preload, python=python)
