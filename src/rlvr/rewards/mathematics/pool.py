"""Children that compare formulas, each killed when a comparison outlasts its wall clock.

A child that was killed while it computed makes the answer *too hard to verify* (wrong); one that got no
processor time in its limit, that cannot start, or that dies by itself is a failure of infrastructure.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import selectors
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

import rlvr
from rlvr.errors import InfrastructureError

START_SECONDS = 60.0
"""Wall clock for a child to import its libraries."""
BUSY_SHARE = 0.25
"""Share of its limit that a child must have computed for its answer to be called too hard."""
_TICKS = os.sysconf("SC_CLK_TCK")


class Ending(StrEnum):
    """How a comparison ended."""

    ANSWERED = "answered"
    """The child answered."""
    TOO_HARD = "too-hard"
    """The child computed until its limit."""
    STARVED = "starved"
    """The child's limit passed although it had hardly computed."""
    DIED = "died"
    """The child ended by itself."""


@dataclass(frozen=True, slots=True)
class Job:
    """Two formulas to compare; no answer: whether the gold parses."""

    gold: str
    answer: str | None


@dataclass(frozen=True, slots=True)
class Result:
    """What a child said: ``same`` is None when the gold does not parse or nothing was decided."""

    ending: Ending
    same: bool | None = None
    why: str = ""


class Pool:
    """Runs comparisons in up to ``size`` children that are started when first needed.

    Args:
        size: Children that compute at a time.
        command: Command line of a child.
    """

    def __init__(self, size: int, command: Sequence[str] = ()) -> None:
        self.size = size
        self.command = list(command) or [sys.executable, "-P", "-m", "rlvr.rewards.mathematics.symbolic"]
        self._children: list[_Child] = []
        self._lock = threading.Lock()
        self._owner = os.getpid()

    def run(self, jobs: Sequence[Job], limit: float) -> list[Result]:
        """Return one result a job, in order; each job may take ``limit`` seconds of wall clock.

        Raises:
            InfrastructureError: ``reward.math-child`` when no child can be started.
        """
        with self._lock:
            try:
                return self._run(jobs, limit)
            except BaseException:
                self._end_all()  # an interrupted child would answer the next caller with this one's result
                raise

    def close(self) -> None:
        """End all children."""
        if os.getpid() != self._owner:
            return  # a forked process inherits the exit handler, not the children
        with self._lock:
            self._end_all()

    def _end_all(self) -> None:
        for child in self._children:
            child.kill()
        self._children.clear()

    def _run(self, jobs: Sequence[Job], limit: float) -> list[Result]:
        results: dict[int, Result] = {}
        waiting = list(enumerate(jobs))[::-1]
        busy: dict[_Child, int] = {}
        wanted = min(self.size, len(jobs))
        self._staff(wanted)
        with selectors.DefaultSelector() as selector:
            for child in self._children:
                selector.register(child.output, selectors.EVENT_READ, child)
            while len(results) < len(jobs):
                self._hand_out(waiting, busy, jobs, limit)
                wait = min((child.deadline for child in self._children), default=0) - time.monotonic()
                ready = {key.data for key, _ in selector.select(max(wait, 0))}
                for child in list(self._children):
                    self._attend(child, child in ready, busy, results, selector)
                self._restaff(selector, len(waiting) + len(busy))
        with contextlib.suppress(InfrastructureError):
            self._staff(wanted)  # replacements of killed children warm up while the trainer goes on
        return [results[number] for number in range(len(jobs))]

    def _staff(self, wanted: int) -> None:
        self._children = [child for child in self._children if child.alive()]
        while len(self._children) < wanted:
            self._children.append(_Child(self.command))

    def _restaff(self, selector: selectors.BaseSelector, work: int) -> None:
        """Replace children that ended while there is work for them."""
        while len(self._children) < min(self.size, work):
            child = _Child(self.command)
            self._children.append(child)
            selector.register(child.output, selectors.EVENT_READ, child)

    def _hand_out(
        self, waiting: list[tuple[int, Job]], busy: dict[_Child, int], jobs: Sequence[Job], limit: float
    ) -> None:
        for child in self._children:
            if waiting and child.ready and child not in busy:
                number, job = waiting.pop()
                busy[child] = number
                child.send(job, limit)

    def _attend(
        self,
        child: _Child,
        readable: bool,
        busy: dict[_Child, int],
        results: dict[int, Result],
        selector: selectors.BaseSelector,
    ) -> None:
        line = child.read() if readable else None
        if line == "":  # the child ended
            self._remove(child, selector)
            if child in busy:
                results[busy.pop(child)] = Result(Ending.DIED, why="the comparing child ended by itself")
            elif not child.ready:
                raise _cannot_start("it ended while starting")
        elif line is not None and not child.ready:
            child.ready, child.deadline = True, float("inf")
        elif line is not None and child in busy:
            results[busy.pop(child)] = _result(line)
            child.deadline = float("inf")
        elif time.monotonic() >= child.deadline:
            self._expire(child, busy, results, selector)

    def _expire(
        self,
        child: _Child,
        busy: dict[_Child, int],
        results: dict[int, Result],
        selector: selectors.BaseSelector,
    ) -> None:
        worked = child.processor_seconds() - child.worked_before
        self._remove(child, selector)
        if child not in busy:
            raise _cannot_start(f"it was not ready after {START_SECONDS:.0f} s")
        if worked >= BUSY_SHARE * child.limit:
            result = Result(Ending.TOO_HARD, why=f"not decided in {child.limit:g} s")
        else:
            result = Result(Ending.STARVED, why=f"the comparing child got {worked:.2f} s of processor time")
        results[busy.pop(child)] = result

    def _remove(self, child: _Child, selector: selectors.BaseSelector) -> None:
        selector.unregister(child.output)
        self._children.remove(child)
        child.kill()


class _Child:
    """One child process with line-wise JSON on both sides."""

    def __init__(self, command: Sequence[str]) -> None:
        package = str(Path(rlvr.__file__).parents[1])
        path = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH", ""))))
        environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
        try:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            raise _cannot_start(str(error)) from error
        assert self.process.stdout is not None and self.process.stdin is not None
        self.output, self.input = self.process.stdout, self.process.stdin
        self.ready = False
        self.deadline = time.monotonic() + START_SECONDS
        self.limit = 0.0
        self.worked_before = 0.0

    def alive(self) -> bool:
        if self.process.poll() is not None:
            self.kill()
            return False
        return True

    def send(self, job: Job, limit: float) -> None:
        self.limit, self.worked_before = limit, self.processor_seconds()
        self.deadline = time.monotonic() + limit
        line = json.dumps({"gold": job.gold, "answer": job.answer, "limit": limit}) + "\n"
        try:
            self.input.write(line.encode("ascii"))
            self.input.flush()
        except BrokenPipeError:
            return  # its end is read as an empty line and attributed there

    def read(self) -> str:
        return self.output.readline().decode("ascii", "replace")

    def processor_seconds(self) -> float:
        """Return the processor time that the child has used so far."""
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return self.limit  # no /proc: every expiry counts as computed
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.output.close()
        try:
            self.input.close()
        except BrokenPipeError:
            return


def _result(line: str) -> Result:
    answer = json.loads(line)
    return Result(Ending.ANSWERED, answer["same"], answer["why"])


def _cannot_start(why: str) -> InfrastructureError:
    return InfrastructureError(
        "reward.math-child",
        f"the child that compares formulas cannot be used: {why}",
        where="reward math",
        fix="see that `python -c 'import math_verify'` works, and that memory and processes are not used up",
    )


@lru_cache(maxsize=1)
def shared_pool() -> Pool:
    """Return this process's pool; a forked process gets its own."""
    pool = Pool(min(4, max(1, os.cpu_count() or 1)))
    atexit.register(pool.close)
    return pool


os.register_at_fork(after_in_child=shared_pool.cache_clear)  # the parent's children answer the parent alone
