"""The same pool on several machines: one Ray actor a machine, each with a local pool; needs the extra ``ray``.

A machine that dies takes no verdict along: its jobs run again elsewhere, and a new actor starts where there is room.
"""

from __future__ import annotations

import collections
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rlvr.errors import InfrastructureError, RlvrError, UsageError
from rlvr.sandbox.protocol import Job, JobResult, Status

if TYPE_CHECKING:
    from rlvr.sandbox.pool import Pool

_CHUNK = 16
_DEPTH = 2
_ATTEMPTS = 5
_START_SECONDS = 120.0


class _Host:
    """What an actor is: one local pool on its machine."""

    def __init__(self, workers: int, settings: dict[str, Any]) -> None:
        from rlvr.sandbox.pool import Pool

        self._pool: Pool = Pool(workers, **settings)

    def rung(self) -> str:
        return self._pool.rung

    def run(self, jobs: list[Job]) -> list[JobResult]:
        return self._pool.run(jobs)

    def close(self) -> None:
        self._pool.close()


@dataclass
class _Chunk:
    start: int
    jobs: list[Job]
    attempts: int = 0


@dataclass(eq=False)
class _Actor:
    handle: Any
    ready: bool = False
    refs: set[Any] = field(default_factory=set)


class RayPool:
    """Pools on the machines of a Ray cluster, used as one.

    Args:
        actors: Number of local pools; they are spread over the machines.
        workers: Workers of each, which are also the cores it asks Ray for.
        min_isolation: As for :class:`~rlvr.sandbox.Pool`; demanded on every machine.
        preload: As for :class:`~rlvr.sandbox.Pool`.
        python: As for :class:`~rlvr.sandbox.Pool`; a path that exists on every machine.

    Attributes:
        lost: How many actors died and were replaced.

    Raises:
        UsageError: ``sandbox.ray-missing`` when Ray is not installed.
        InfrastructureError: ``sandbox.isolation`` and the like, from the machine where it happened.
    """

    def __init__(
        self,
        actors: int,
        workers: int = 1,
        *,
        min_isolation: str = "D",
        preload: Sequence[str] = (),
        python: str | None = None,
    ) -> None:
        self._ray = _import_ray()
        self._workers = workers
        self._settings = {"min_isolation": min_isolation, "preload": tuple(preload), "python": python}
        self.lost = 0
        self._actors: list[_Actor] = []
        self._starting: dict[Any, _Actor] = {}
        try:
            for _ in range(actors):
                self._add_actor()
            self._await_first()
        except BaseException:
            self.close()
            raise

    def run(self, jobs: Iterable[Job]) -> list[JobResult]:
        """Run jobs and return their results in order.

        Raises:
            DataError: ``data.code-tests``, as the local pool does.
            InfrastructureError: ``sandbox.ray`` when no machine is left.
        """
        listed = list(jobs)
        pending = collections.deque(
            _Chunk(start, listed[start : start + _CHUNK]) for start in range(0, len(listed), _CHUNK)
        )
        results: dict[int, list[JobResult]] = {}
        flying: dict[Any, tuple[_Actor, _Chunk]] = {}
        deadline = time.monotonic() + _START_SECONDS
        while pending or flying:
            self._send(pending, flying)
            if flying:
                deadline = time.monotonic() + _START_SECONDS
            elif time.monotonic() > deadline:
                raise InfrastructureError("sandbox.ray", "no machine of the Ray cluster took the jobs")
            done, _ = self._ray.wait([*flying, *self._starting], num_returns=1, timeout=1.0)
            for ref in done:
                if ref in self._starting:
                    self._started(ref)
                else:
                    self._landed(ref, flying.pop(ref), pending, results)
        return [result for start in sorted(results) for result in results[start]]

    def _send(self, pending: collections.deque[_Chunk], flying: dict[Any, tuple[_Actor, _Chunk]]) -> None:
        for actor in sorted(self._actors, key=lambda one: len(one.refs)):
            while pending and actor.ready and len(actor.refs) < _DEPTH:
                chunk = pending.popleft()
                ref = actor.handle.run.remote(chunk.jobs)
                actor.refs.add(ref)
                flying[ref] = (actor, chunk)

    def _landed(
        self,
        ref: Any,
        flight: tuple[_Actor, _Chunk],
        pending: collections.deque[_Chunk],
        results: dict[int, list[JobResult]],
    ) -> None:
        actor, chunk = flight
        actor.refs.discard(ref)
        try:
            results[chunk.start] = self._ray.get(ref)
        except self._ray.exceptions.RayTaskError as error:
            raise _cause(error) from None
        except self._ray.exceptions.RayError as error:
            self._replace(actor)
            chunk.attempts += 1
            if chunk.attempts < _ATTEMPTS:
                pending.appendleft(chunk)
            else:
                lost = JobResult(
                    Status.INFRASTRUCTURE, 0, 0, f"its machines were lost: {type(error).__name__}"
                )
                results[chunk.start] = [lost] * len(chunk.jobs)

    def _add_actor(self) -> None:
        options = {"num_cpus": self._workers, "scheduling_strategy": "SPREAD", "max_restarts": 0}
        handle = self._ray.remote(_Host).options(**options).remote(self._workers, self._settings)
        actor = _Actor(handle)
        self._actors.append(actor)
        self._starting[handle.rung.remote()] = actor

    def _started(self, ref: Any) -> None:
        actor = self._starting.pop(ref)
        try:
            self._ray.get(ref)
            actor.ready = True
        except self._ray.exceptions.RayTaskError as error:
            raise _cause(error) from None
        except self._ray.exceptions.RayActorError as error:
            refused = getattr(error, "cause", None)
            if isinstance(refused, self._ray.exceptions.RayTaskError):
                raise _cause(refused) from None
            if "InfrastructureError" in str(
                error
            ):  # its constructor refused: the isolation, a missing module
                raise InfrastructureError("sandbox.ray", str(error).strip().splitlines()[-1]) from None
            self._replace(actor)

    def _replace(self, actor: _Actor) -> None:
        if actor in self._actors:
            self.lost += 1
            self._actors.remove(actor)
            self._add_actor()

    def _await_first(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while not any(actor.ready for actor in self._actors):
            if time.monotonic() > deadline:
                raise InfrastructureError(
                    "sandbox.ray",
                    f"no machine of the Ray cluster has {self._workers} free cores",
                    fix="see `ray status`, or ask for fewer workers",
                )
            done, _ = self._ray.wait(list(self._starting), num_returns=1, timeout=1.0)
            for ref in done:
                self._started(ref)

    def close(self) -> None:
        """End the local pools, then the actors."""
        actors, self._actors = self._actors, []
        self._starting.clear()
        closing = [actor.handle.close.remote() for actor in actors if actor.ready]
        if closing:
            self._ray.wait(closing, num_returns=len(closing), timeout=10.0)
        for actor in actors:
            self._ray.kill(actor.handle)

    def __enter__(self) -> RayPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _import_ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise UsageError(
            "sandbox.ray-missing", "Ray is not installed", fix="pip install 'rlvr[ray]'"
        ) from error
    return ray


def _cause(error: Any) -> BaseException:
    """Return the sandbox's own error that a machine reported, or Ray's."""
    cause = getattr(error, "cause", None)
    return cause if isinstance(cause, RlvrError) else InfrastructureError("sandbox.ray", str(error)[-500:])
