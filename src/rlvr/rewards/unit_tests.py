"""Code: run in the sandbox against the tests of its reference, call by call or program by program."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlvr.errors import DataError, InfrastructureError
from rlvr.rewards.builtin import Builtin
from rlvr.rewards.contract import Outcome, Verdict
from rlvr.rewards.reading import outside_thinking, without_end_tokens


@dataclass(frozen=True)
class UnitTests(Builtin):
    """Accept code that passes every test of its reference.

    A reference is ``{"tests": [{"input", "output"}, …]}`` for programs, ``{"fn", "tests": [{"args", "expect"}, …]}``
    for functions, or ``{"tests": "assert …"}`` for test source, with ``float_tol`` where floats may differ; or the
    JSON text of one.

    Attributes:
        partial: Pay the share of tests that passed instead of all or nothing; only all of them is *right*.
        extraction: ``last-block`` (fenced), ``first-block`` or ``whole``.
        cpu_seconds: Processor time of one job.
        memory_mb: Memory of one job beyond the interpreter's own, in MiB.
        min_isolation: Lowest rung of the sandbox's ladder that is accepted, A to E.
        preload: Modules that the code may import besides the standard library, such as ``["numpy"]``.
        think_prefilled: The chat template opens ``<think>``, so the completion starts inside it.
    """

    partial: bool = False
    extraction: str = "last-block"
    cpu_seconds: float = 4.0
    memory_mb: int = 512
    min_isolation: str = "D"
    preload: tuple[str, ...] = ()
    think_prefilled: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "preload", tuple(self.preload))

    def verdict(self, completion: str, reference: Any) -> Verdict:
        """Run one completion's code."""
        return self.verdict_batch([completion], [reference])[0]

    def verdict_batch(self, texts: Sequence[str], references: Sequence[Any]) -> list[Verdict]:
        """Run a batch, all jobs at once."""
        from rlvr.sandbox import shared_pool

        jobs = [self._job(text, reference) for text, reference in zip(texts, references, strict=True)]
        wanted = [job for job in jobs if job is not None]
        if not wanted:
            return [_NO_CODE for _ in jobs]
        try:
            pool = shared_pool(min_isolation=self.min_isolation, preload=self.preload)
            results = iter(pool.run(wanted))
        except InfrastructureError as error:
            failed = Verdict(Outcome.INFRASTRUCTURE, None, None, error.found)
            return [_NO_CODE if job is None else failed for job in jobs]
        return [_NO_CODE if job is None else self._verdict(job, next(results)) for job in jobs]

    def check_reference(self, reference: Any) -> str | None:
        """Return why ``reference`` holds no tests, or None."""
        from rlvr.sandbox import job_from_reference

        try:
            job_from_reference("", _mapping(reference))
        except DataError as error:
            return error.found
        return None

    def _job(self, text: str, reference: Any) -> Any:
        from rlvr.sandbox import Limits, extract_code, job_from_reference

        limits = Limits(cpu_seconds=self.cpu_seconds, memory_bytes=self.memory_mb * 1024 * 1024)
        visible = without_end_tokens(outside_thinking(text, prefilled=self.think_prefilled))
        code = extract_code(visible, self.extraction)
        try:
            job = job_from_reference(code or "", _mapping(reference), limits)
        except DataError as error:
            raise self.bad_reference(reference, error.found) from error
        return job if code is not None else None

    def _verdict(self, job: Any, result: Any) -> Verdict:
        from rlvr.sandbox import Status

        why = f"{result.passed} of {result.total} tests passed"
        why += f"; {result.status.value}: {result.message}" if result.status is not Status.PASS else ""
        details = {"status": result.status.value, "passed": result.passed, "total": result.total}
        if result.status is Status.INFRASTRUCTURE:
            return Verdict(Outcome.INFRASTRUCTURE, None, job.code, why, details)
        if result.status is Status.PASS:
            return Verdict(Outcome.RIGHT, 1.0, job.code, why, details)
        score = result.fraction if self.partial else 0.0
        outcome = Outcome.ILL_FORMED if "SyntaxError" in result.message else Outcome.WRONG
        return Verdict(outcome, score, job.code, why, details)


_NO_CODE = Verdict(Outcome.ILL_FORMED, 0.0, None, "no complete fenced block of code")


def _mapping(reference: Any) -> Mapping[str, Any]:
    if isinstance(reference, str):
        try:
            value = json.loads(reference)
        except json.JSONDecodeError:
            value = {"tests": reference}  # the source of tests, as it stands
        reference = value
    if not isinstance(reference, Mapping):
        raise DataError("data.code-reference", f"a {type(reference).__name__} holds no tests")
    return {key: value for key, value in reference.items() if value is not None}
