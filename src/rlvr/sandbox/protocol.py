"""What goes into the sandbox and what comes out: plain frozen values, picklable, without any behaviour.

A :class:`Job` is one completion with its tests. Three kinds of tests exist:

- :class:`CallTest`: the function is called with literals and its result is compared by the host;
- :class:`StdioTest`: the program reads standard input and its output is compared by the host;
- :class:`ScriptTests`: Python source with asserts, ``check(candidate)``, unittest or pytest-style functions, run in
  a judge process that only exchanges plain data with the process of the solution.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

from rlvr.errors import UsageError


class Status(StrEnum):
    """What became of a job, or of one of its tests."""

    PASS = "pass"  # noqa: S105  # a verdict, not a password
    """Every test passed."""
    WRONG = "wrong"
    """A test ran and its result was not the expected one."""
    ERROR = "error"
    """The code does not compile, raised, lacks the function, or wrote too much."""
    TIMEOUT_CPU = "timeout-cpu"
    """The CPU limit was reached."""
    TIMEOUT_WALL = "timeout-wall"
    """The wall guard passed with little CPU used, because the program slept or waited."""
    OUT_OF_MEMORY = "out-of-memory"
    """The memory limit was reached."""
    EXITED = "exited"
    """The process ended before its tests did: ``exit()``, ``os._exit``, a crash."""
    VACUOUS = "vacuous"
    """No test, no assert, or the solution was never called: nothing was shown."""
    INFRASTRUCTURE = "infrastructure"
    """The sandbox itself failed; the row must not be judged."""


class Comparison(StrEnum):
    """How a result is compared with the expected one."""

    EXACT = "exact"
    """Values: Python equality (4.0 == 4), a tuple equals a list. Text: byte for byte."""
    LINES = "lines"
    """Text: line by line, ignoring spaces around tokens and empty lines at the end. Values: as ``exact``."""
    FLOAT = "float"
    """As ``lines`` and ``exact``, but an expected float may differ by ``float_tol``, absolutely or relatively."""


@dataclass(frozen=True, slots=True)
class CallTest:
    """One call and the value it must return; all plain data.

    Attributes:
        args: Positional arguments.
        kwargs: Keyword arguments.
        expect: The expected value.
    """

    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    expect: Any = None


@dataclass(frozen=True, slots=True)
class StdioTest:
    """One run of the program: text on standard input, text expected on standard output."""

    input: str = ""
    output: str = ""


@dataclass(frozen=True, slots=True)
class ScriptTests:
    """Tests as Python source, run in the judge process.

    Attributes:
        source: Asserts at top level, a function ``check(candidate)``, ``unittest.TestCase`` classes or ``test_*``
            functions; all that are found are run.
        entry_point: Name of the function that ``check`` receives; names that the tests use without defining them
            are looked up in the solution too.
        prelude: Trusted source run before the tests, such as the prompt whose helpers the tests call.
    """

    source: str
    entry_point: str | None = None
    prelude: str = ""


Tests: TypeAlias = Sequence[CallTest] | Sequence[StdioTest] | ScriptTests


@dataclass(frozen=True, slots=True)
class Limits:
    """What one job may use.

    Attributes:
        cpu_seconds: CPU time, user and system; of the whole job for calls and scripts, of each run for programs.
        wall_seconds: Loose guard against sleepers, counted from the start of the process; None means
            ``max(10, 4 * cpu_seconds)``.
        memory_bytes: Address space beyond that of the warmed interpreter.
        output_bytes: Standard output of one run, and the encoded result of one call.
    """

    cpu_seconds: float = 4.0
    wall_seconds: float | None = None
    memory_bytes: int = 512 * 1024 * 1024
    output_bytes: int = 1024 * 1024

    def __post_init__(self) -> None:
        values = (self.cpu_seconds, self.wall_guard, self.memory_bytes, self.output_bytes)
        if not all(math.isfinite(value) and value > 0 for value in values):
            raise UsageError("sandbox.limits", f"limits {values}", expected="finite numbers above zero")

    @property
    def wall_guard(self) -> float:
        """Seconds of wall time after which the process is ended."""
        return self.wall_seconds if self.wall_seconds is not None else max(10.0, 4 * self.cpu_seconds)


@dataclass(frozen=True, slots=True)
class Job:
    """One completion's code with its tests.

    Attributes:
        code: Source of the solution, as :func:`rlvr.sandbox.extract_code` returns it.
        tests: See the module's docstring; a sequence holds one kind only.
        entry_point: Function to call; ``Class.method`` is allowed, and a method of the only class ``Solution`` is
            found by its bare name. None: the last function that the code defines.
        comparison: See :class:`Comparison`.
        float_tol: Used by ``Comparison.FLOAT`` alone.
        limits: See :class:`Limits`.
        allowed_imports: Top-level modules the code may import; None allows all that the interpreter has. A rule
            for style, not a boundary: the sandbox does not rest on it.
        stop_at_first_failure: End at the first test that fails, where only all-or-nothing counts; the others count
            as failed. A timeout or an exhausted memory ends the job in any case.
    """

    code: str
    tests: Tests
    entry_point: str | None = None
    comparison: Comparison = Comparison.LINES
    float_tol: float = 1e-6
    limits: Limits = field(default_factory=Limits)
    allowed_imports: frozenset[str] | None = None
    stop_at_first_failure: bool = False


@dataclass(frozen=True, slots=True)
class TestResult:
    """One test's verdict; ``message`` may quote the solution's own text and is to be shown as text only."""

    __test__ = False  # not a test class, whatever its name says to pytest

    status: Status
    message: str = ""


@dataclass(frozen=True, slots=True)
class JobResult:
    """One job's verdict.

    Attributes:
        status: ``pass`` when all tests passed; otherwise that of the first test that did not.
        passed: Number of tests that passed.
        total: Number of tests; a script's ``check``, top-level assert and test method count one each.
        message: What went wrong, in one line; may quote the solution.
        tests: One entry a test, in order.
        cpu_seconds: CPU time used by the solution (and its share of the judge).
        wall_seconds: Wall time from the first start to the last end, waiting in the queue not counted.
        attempts: More than one when the job was retried alone, or after a worker died.
    """

    status: Status
    passed: int
    total: int
    message: str = ""
    tests: tuple[TestResult, ...] = ()
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    attempts: int = 1

    @property
    def fraction(self) -> float:
        """Share of the tests that passed; 0.0 when nothing was shown."""
        return self.passed / self.total if self.total and self.status is not Status.VACUOUS else 0.0
