"""What can go wrong, as one tree; every error tells where, what was found, what was expected and what to do.

    RlvrError
    ├── UsageError            exit 2: the command line, the configuration or the data must be changed
    │   ├── ConfigError       rlvr.yaml is wrong at a line that the error names
    │   └── DataError         prompts, references or completions are wrong at a row that the error names
    ├── RewardError           exit 2: a reward function broke its contract (component, row and value named)
    ├── GateRefused           exit 3: a gate is missing, failed or stale
    ├── StopTraining          exit 3: training stopped itself; the last checkpoint is intact
    └── InfrastructureError   exit 4: disk, network, memory or a helper process failed; nothing was judged

A ``code`` is stable: it is what documentation pages and scripts refer to.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import ClassVar


class RlvrError(Exception):
    """Base of all errors that a user may see.

    Args:
        code: Stable name such as ``config.unknown-key``.
        found: What is there, in one sentence.
        where: File and line, row, component or command; empty when the error has no place.
        expected: What should be there instead.
        fix: The next thing to do, as a command where one exists.
    """

    exit_code: ClassVar[int] = 2

    def __init__(self, code: str, found: str, *, where: str = "", expected: str = "", fix: str = "") -> None:
        self.code = code
        self.found = found
        self.where = where
        self.expected = expected
        self.fix = fix
        super().__init__(self.message())

    def message(self) -> str:
        """Return the error as plain lines: where and found, then expected, then what to do."""
        lines = [f"{self.where}: {self.found}" if self.where else self.found]
        if self.expected:
            lines.append(f"expected: {self.expected}")
        if self.fix:
            lines.append(f"do: {self.fix}")
        return "\n".join(lines)

    def as_dict(self) -> dict[str, str | int]:
        """Return the error as the object that ``--json`` prints."""
        return {
            "code": self.code,
            "where": self.where,
            "found": self.found,
            "expected": self.expected,
            "fix": self.fix,
            "exit_code": self.exit_code,
        }

    def __reduce__(self) -> tuple[object, ...]:
        """Keep errors picklable, since they cross process boundaries."""
        return (_rebuild, (type(self), self.code, self.found, self.where, self.expected, self.fix))


class UsageError(RlvrError):
    """The command line, the configuration or the data must be changed."""


class ConfigError(UsageError):
    """The configuration file is wrong."""


class DataError(UsageError):
    """Prompts, references or completions are wrong."""


class RewardError(RlvrError):
    """A reward function broke its contract."""


class GateRefused(RlvrError):
    """A gate is missing, failed or stale."""

    exit_code = 3


class StopTraining(RlvrError):
    """Training stopped itself for a stated reason; the last checkpoint is intact."""

    exit_code = 3


class InfrastructureError(RlvrError):
    """Something outside the task failed, so nothing was judged."""

    exit_code = 4


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``"did you mean 'x'?"`` for the nearest known name, or an empty string."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"did you mean {near[0]!r}?" if near else ""


def in_words(error: BaseException) -> str:
    """Return ``Kind: text`` of any exception, also of one whose own text cannot be read."""
    try:
        return f"{type(error).__name__}: {error}"
    except KeyboardInterrupt:
        raise
    except BaseException as second:  # a user's class may do anything in __str__
        return f"{type(error).__name__} (its text raised {type(second).__name__})"


def _rebuild(kind: type[RlvrError], code: str, found: str, where: str, expected: str, fix: str) -> RlvrError:
    return kind(code, found, where=where, expected=expected, fix=fix)
