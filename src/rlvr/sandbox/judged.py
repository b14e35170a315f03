"""Jobs whose tests are Python source: a judge runs them and calls the solution, which runs elsewhere."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rlvr.sandbox.guest import wire
from rlvr.sandbox.protocol import Job, JobResult, ScriptTests, Status, TestResult
from rlvr.sandbox.tasks import Task, end_status

GONE = "gone"
"""The judge's word for a test that the end of the solution's process cut short."""

Verdict = Mapping[str, Any]


def read_verdict(data: bytes) -> Verdict | None:
    """Return what a judge said, or None when it is not a verdict."""
    try:
        said = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if type(said) is not dict:
        return None
    if "load" in said:
        return said if _texts(said["load"], 2) else None
    tests = said.get("tests")
    if type(tests) is not list or type(said.get("vacuous")) is not str:
        return None
    known = {*Status, GONE} - {Status.INFRASTRUCTURE}
    return said if all(_texts(test, 2) and test[0] in known for test in tests) else None


def _texts(value: Any, count: int) -> bool:
    return type(value) is list and len(value) == count and all(type(one) is str for one in value)


class JudgedTask(Task):
    """One solution before the judge of its tests."""

    def __init__(self, job: Job, tests: ScriptTests) -> None:
        super().__init__(job)
        self._known = 1
        self._payload = json.dumps(
            {
                "code": job.code,
                "imports": None if job.allowed_imports is None else sorted(job.allowed_imports),
                "size": job.limits.output_bytes,
            }
        ).encode()
        self.judge_source = json.dumps(
            {
                "source": tests.source,
                "prelude": tests.prelude,
                "entry": tests.entry_point or job.entry_point,
                "size": job.limits.output_bytes,
                "memory": job.limits.memory_bytes,
            }
        ).encode()

    @property
    def total(self) -> int:
        """Number of tests, 1 until the judge has counted them."""
        return self._known

    def start(self, number: int) -> tuple[wire.Request, list[int]]:
        """Return the request for the process that answers the judge; its channel is added by the pool."""
        return self._request(wire.SERVED, number, 0), [self._open(self._payload)]

    def finish(self, report: wire.Report) -> JobResult | None:
        """Not used: a verdict belongs to it."""
        return self.conclude(report, None)

    def conclude(self, report: wire.Report, verdict: Verdict | None) -> JobResult:
        """Return the result from the end of the solution's process and what the judge said, if it did."""
        self._account(report)
        ended = end_status(report, self.job)
        if verdict is None:
            if report.ended in (wire.BY_CPU, wire.BY_WALL):
                return self.uniform(ended.status, ended.message)
            return self.uniform(Status.ERROR, "the judge ended in the middle of the tests")
        if "load" in verdict:
            status = Status.OUT_OF_MEMORY if verdict["load"][0] == "MemoryError" else Status.ERROR
            return self.uniform(status, f"it raised {verdict['load'][0]}: {verdict['load'][1]}")
        tests = [self._one(test, ended) for test in verdict["tests"]]
        self._known = max(1, len(tests))
        if verdict["vacuous"] and all(test.status is Status.PASS for test in tests):
            return JobResult(
                Status.VACUOUS,
                0,
                len(tests),
                verdict["vacuous"],
                tuple(tests),
                self._cpu,
                self._wall,
                self.attempts,
            )
        return self.result(tests)

    @staticmethod
    def _one(test: list[str], ended: TestResult) -> TestResult:
        status, message = test
        return ended if status == GONE else TestResult(Status(status), message)
