"""A job on its way: what must be started for it, and the verdict from what came back. No clock, no threads."""

from __future__ import annotations

import json
import os
import signal
from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from rlvr.errors import DataError
from rlvr.sandbox.compare import printable, shown, text_equal, values_equal
from rlvr.sandbox.guest import wire
from rlvr.sandbox.guest.codec import Encoder, NotPlainError
from rlvr.sandbox.protocol import CallTest, Comparison, Job, JobResult, Status, StdioTest, TestResult
from rlvr.sandbox.worker import anonymous_file

_LARGEST_TESTS = 256 * 1024 * 1024
_RESULTS = 4
"""The results of all calls of a job together may take this many times the limit of one."""
_NEAR = 0.8
_NOT_RUN = "not run: the job ended before"


class Task(ABC):
    """One job with its open files, its attempts and what it has used.

    Attributes:
        future: Where the result goes.
        alone: Whether the next start must run while nothing else does.
        judge_source: Payload of the judge that must be there; None when the host compares.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.future: Future[JobResult] = Future()
        self.attempts = 1
        self.alone = False
        self.judge_source: bytes | None = None
        self._cpu = 0.0
        self._wall = 0.0
        self._files: list[int] = []

    @property
    @abstractmethod
    def total(self) -> int:
        """Number of tests."""

    @abstractmethod
    def start(self, number: int) -> tuple[wire.Request, list[int]]:
        """Return the request, and the descriptors to send, of the next process."""

    @abstractmethod
    def finish(self, report: wire.Report) -> JobResult | None:
        """Take in a process's end; return the result, or None when another process must be started."""

    def release(self) -> None:
        """Close the files of the process that ended."""
        for descriptor in self._files:
            os.close(descriptor)
        self._files.clear()

    def _open(self, data: bytes = b"") -> int:
        descriptor = anonymous_file(data)
        self._files.append(descriptor)
        return descriptor

    def _request(self, kind: bytes, number: int, file_size: int, judge: int = 0) -> wire.Request:
        limits = self.job.limits
        return wire.Request(
            kind, number, limits.cpu_seconds, limits.wall_guard, limits.memory_bytes, file_size, judge
        )

    def _account(self, report: wire.Report) -> None:
        self._cpu += report.cpu
        self._wall += report.wall

    def result(self, tests: Sequence[TestResult]) -> JobResult:
        """Return the job's result from those of its tests."""
        tests = [TestResult(test.status, printable(test.message)) for test in tests]
        failed = next((test for test in tests if test.status is not Status.PASS), None)
        return JobResult(
            status=failed.status if failed else Status.PASS if tests else Status.VACUOUS,
            passed=sum(test.status is Status.PASS for test in tests),
            total=len(tests),
            message=failed.message if failed else "" if tests else "there is no test",
            tests=tuple(tests),
            cpu_seconds=self._cpu,
            wall_seconds=self._wall,
            attempts=self.attempts,
        )

    def uniform(self, status: Status, message: str) -> JobResult:
        """Return a result in which every test has the same status."""
        if not self.total:
            return JobResult(status, 0, 0, message, (), self._cpu, self._wall, self.attempts)
        return self.result([TestResult(status, message)] * self.total)


def make_task(job: Job) -> Task:
    """Return the task of a job.

    Raises:
        DataError: ``data.code-tests`` when the tests are mixed, unknown or hold what is not plain data.
    """
    from rlvr.sandbox.judged import JudgedTask
    from rlvr.sandbox.protocol import ScriptTests

    tests = job.tests
    if isinstance(tests, ScriptTests):
        return JudgedTask(job, tests)
    if all(isinstance(test, CallTest) for test in tests):
        return CallTask(job, [test for test in tests if isinstance(test, CallTest)])
    if all(isinstance(test, StdioTest) for test in tests):
        return ProgramTask(job, [test for test in tests if isinstance(test, StdioTest)])
    raise DataError(
        "data.code-tests", "tests of several kinds in one job", expected="CallTest, StdioTest or ScriptTests"
    )


class CallTask(Task):
    """Calls of a function, compared with literals here."""

    def __init__(self, job: Job, tests: list[CallTest]) -> None:
        super().__init__(job)
        self._tests = tests
        self._payload = json.dumps(
            {
                "code": job.code,
                "entry": job.entry_point,
                "imports": None if job.allowed_imports is None else sorted(job.allowed_imports),
                "size": job.limits.output_bytes,
                "calls": [_encoded_call(test) for test in tests],
            }
        ).encode()

    @property
    def total(self) -> int:
        """Number of calls."""
        return len(self._tests)

    def start(self, number: int) -> tuple[wire.Request, list[int]]:
        """Return the request for the process that answers all calls."""
        files = [self._open(self._payload), self._open()]
        return self._request(wire.CALLS, number, _RESULTS * self.job.limits.output_bytes), files

    def finish(self, report: wire.Report) -> JobResult:
        """Compare what came back."""
        self._account(report)
        size = _RESULTS * self.job.limits.output_bytes
        data = os.pread(self._files[1], size, 0)
        if len(data) >= size:
            return self.uniform(Status.ERROR, f"the results take more than {size} bytes")
        rows = _rows(data)
        if rows and "load" in rows[0]:
            return self.uniform(*_raised(rows[0]["load"]))
        ended = end_status(report, self.job)
        answers = {row["i"]: row for row in reversed(rows[1:]) if type(row.get("i")) is int}
        return self.result([self._judge(i, answers.get(i), ended) for i in range(self.total)])

    def _judge(self, index: int, row: dict[str, Any] | None, ended: TestResult) -> TestResult:
        test = self._tests[index]
        if row is None:
            return ended
        if "x" in row:
            return TestResult(*_raised(row["x"]))
        if "v" not in row:
            return TestResult(Status.ERROR, f"the result is {shown(row.get('n', 'malformed'))}")
        tolerance = self.job.float_tol if self.job.comparison is Comparison.FLOAT else None
        if values_equal(test.expect, row["v"], tolerance):
            return TestResult(Status.PASS)
        got = shown(json.dumps(row["v"]))
        return TestResult(Status.WRONG, f"call {index + 1} returned {got}, expected {shown(test.expect)}")


class ProgramTask(Task):
    """Runs of a program, one process a test, compared with text here."""

    def __init__(self, job: Job, tests: list[StdioTest]) -> None:
        super().__init__(job)
        self._tests = tests
        self._done: list[TestResult] = []
        self._payload = json.dumps(
            {
                "code": job.code,
                "imports": None if job.allowed_imports is None else sorted(job.allowed_imports),
            }
        ).encode()

    @property
    def total(self) -> int:
        """Number of runs."""
        return len(self._tests)

    def start(self, number: int) -> tuple[wire.Request, list[int]]:
        """Return the request for the next run."""
        given = self._tests[len(self._done)].input.encode("utf-8", "surrogateescape")
        files = [self._open(self._payload), self._open(), self._open(given), self._open()]
        return self._request(wire.PROGRAM, number, self.job.limits.output_bytes), files

    def finish(self, report: wire.Report) -> JobResult | None:
        """Compare one run's output; return the result after the last run that is needed."""
        self._account(report)
        verdict = self._judge(report)
        self._done.append(verdict)
        endless = verdict.status in (Status.TIMEOUT_CPU, Status.TIMEOUT_WALL, Status.OUT_OF_MEMORY)
        failed = verdict.status is not Status.PASS
        if endless or (failed and self.job.stop_at_first_failure):
            left = len(self._tests) - len(self._done)
            self._done += [TestResult(verdict.status, _NOT_RUN)] * left
        return self.result(self._done) if len(self._done) == len(self._tests) else None

    def _judge(self, report: wire.Report) -> TestResult:
        limit, index = self.job.limits.output_bytes, len(self._done)
        printed = os.pread(self._files[3], limit, 0)
        if len(printed) >= limit:
            return TestResult(Status.ERROR, f"run {index + 1} printed {limit} bytes or more")
        remarks = _rows(os.pread(self._files[1], 4096, 0))
        if report.ended or report.status:
            ended = end_status(report, self.job)
            if remarks and "x" in remarks[0] and ended.status is Status.EXITED:
                return TestResult(*_raised(remarks[0]["x"]))
            return ended
        test = self._tests[index]
        if text_equal(test.output, printed, self.job.comparison, self.job.float_tol):
            return TestResult(Status.PASS)
        got = shown(printed[:400].decode("utf-8", "replace"))
        return TestResult(Status.WRONG, f"run {index + 1} printed {got!r}, expected {shown(test.output)!r}")


def end_status(report: wire.Report, job: Job) -> TestResult:
    """Return why a process ended before it had done its work."""
    limits = job.limits
    exited = os.WIFEXITED(report.status)
    killed_by = 0 if exited else os.WTERMSIG(report.status)
    if report.ended == wire.BY_CPU or (
        killed_by == signal.SIGKILL and report.cpu >= _NEAR * limits.cpu_seconds
    ):
        return TestResult(Status.TIMEOUT_CPU, f"{limits.cpu_seconds:g} s of CPU time were used up")
    if report.ended == wire.BY_THREADS:
        return TestResult(Status.ERROR, "it started too many threads")
    if report.ended == wire.BY_WALL:
        return TestResult(
            Status.TIMEOUT_WALL,
            f"{limits.wall_guard:g} s passed with {report.cpu:.2f} s of CPU used: it slept or waited",
        )
    if not exited and report.peak >= _NEAR * limits.memory_bytes:
        return TestResult(Status.OUT_OF_MEMORY, f"killed by signal {killed_by} near the limit of memory")
    how = f"exit code {os.WEXITSTATUS(report.status)}" if exited else f"signal {killed_by}"
    return TestResult(Status.EXITED, f"the process ended before its tests did, with {how}")


def _encoded_call(test: CallTest) -> list[Any]:
    try:
        encoder = Encoder(_LARGEST_TESTS, strict=True)
        encoder.encode(test.expect)
        return [encoder.encode(list(test.args)), encoder.encode(dict(test.kwargs))]
    except NotPlainError as error:
        raise DataError(
            "data.code-tests",
            f"a test that is {error}",
            expected="arguments and expected values of plain built-in types",
        ) from error


def _rows(data: bytes) -> list[dict[str, Any]]:
    """Return the lines that are JSON objects, up to the first that is not."""
    rows: list[dict[str, Any]] = []
    for line in data.split(b"\n"):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            break
        if type(row) is not dict:
            break
        rows.append(row)
    return rows


def _raised(error: Any) -> tuple[Status, str]:
    """Return the status and text of an error that the solution reported."""
    kind, text = error if type(error) is list and len(error) == 2 else ("", "")
    status = Status.OUT_OF_MEMORY if kind == "MemoryError" else Status.ERROR
    return status, f"it raised {shown(str(kind))}: {shown(str(text))}"
