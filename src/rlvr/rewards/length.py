"""Shorter right answers: a wrapper that shapes what a right answer earns and leaves every other row alone.

TRL divides by the deviation within a group, so a length term of a thousandth in a group of wrong answers becomes a
full-size push towards short nonsense. Here a wrong answer keeps its score whatever its length, and a right one keeps
at least ``least`` of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from rlvr.errors import ConfigError, RewardError
from rlvr.rewards.builtin import Builtin
from rlvr.rewards.contract import Completion, Outcome, Verdict, Verifier, column

CORRECTNESS_COLUMN = "correctness_outcome"
"""Column in which the scorer tells a length component the outcome of each row."""

Form = Literal["overlong", "cosine"]


@dataclass(frozen=True)
class Length(Builtin):
    """Pay a right answer less the longer it is; clamped, right answers only, None stays None.

    With ``base`` it wraps that reward and is a correctness reward itself. Without, it is a component of role
    ``length`` beside others: 0 for the shortest right answer down to ``least - 1``, and 0 for every other row.

    Attributes:
        base: Name of the reward to wrap, or the reward itself.
        base_arguments: Its arguments.
        max_length: Tokens at which the shape has reached its end.
        cache: ``overlong`` only: tokens before ``max_length`` from which on a right answer earns less.
        form: ``overlong`` (flat, then linear: soft overlong punishment) or ``cosine`` (half a wave from 0 tokens on).
        least: Share of its score that the longest right answer keeps, above 0 and at most 1.
        folder: Workspace that ``base`` is relative to where it is a file.
    """

    base: Any = field(default=None, hash=False)
    base_arguments: Mapping[str, Any] = field(default_factory=dict, hash=False)
    max_length: int = 0
    cache: int = 0
    form: Form = "overlong"
    least: float = 0.5
    folder: str = ""
    reference: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check()
        object.__setattr__(self, "role", "length" if self.base is None else "correctness")
        inner = None if self.base is None else self._load()
        object.__setattr__(self, "inner", inner)
        if isinstance(inner, Verifier):
            object.__setattr__(self, "reference_column", inner.reference_column)

    def shape(self, tokens: int) -> float:
        """Return the share of its score that a right answer of this length keeps, from 1 down to ``least``."""
        if self.form == "cosine":
            reached = min(tokens / self.max_length, 1.0)
            return self.least + (1 - self.least) * 0.5 * (1 + math.cos(math.pi * reached))
        start = self.max_length - self.cache
        reached = 0.0 if tokens <= start else min((tokens - start) / max(self.cache, 1), 1.0)
        return 1 - (1 - self.least) * reached

    def shaped(self, verdict: Verdict, tokens: int) -> Verdict:
        """Return the verdict of the wrapped reward with the score that its length leaves."""
        if verdict.outcome is not Outcome.RIGHT or verdict.score is None or verdict.score <= 0:
            return verdict
        score = verdict.score * self.shape(tokens)
        why = f"{verdict.why}; {tokens} tokens keep {score:.3f}"
        return Verdict(verdict.outcome, score, verdict.extracted, why, {**verdict.details, "tokens": tokens})

    def verdicts(self, completions: Sequence[Completion], **columns: Any) -> list[Verdict]:
        """Judge a batch; needs ``completion_ids``, which TRL passes."""
        lengths = self._lengths(columns, len(completions))
        if self.base is None:
            outcomes = column(CORRECTNESS_COLUMN, columns, component=self.__name__, rows=len(completions))
            return [self._term(outcome, tokens) for outcome, tokens in zip(outcomes, lengths, strict=True)]
        from rlvr.rewards.composite import Component
        from rlvr.rewards.evaluate import evaluate

        component = Component(self.__name__, self.__dict__["inner"])
        prompts = columns.get("prompts") or [None] * len(completions)
        given = {key: value for key, value in columns.items() if key not in ("prompts", "completions")}
        found = evaluate(component, prompts, completions, given)
        return [self.shaped(verdict, tokens) for verdict, tokens in zip(found, lengths, strict=True)]

    def check_reference(self, reference: Any) -> str | None:
        """Return why the wrapped reward cannot use ``reference``, or None."""
        inner = self.__dict__["inner"]
        return inner.check_reference(reference) if isinstance(inner, Verifier) else None

    def _term(self, outcome: str, tokens: int) -> Verdict:
        if outcome in (Outcome.NOT_APPLICABLE, Outcome.INFRASTRUCTURE):
            return Verdict(Outcome.NOT_APPLICABLE, None, None, "the row was not judged")
        if outcome != Outcome.RIGHT:
            return Verdict(Outcome.WRONG, 0.0, None, "only right answers are shaped")
        return Verdict(Outcome.RIGHT, self.shape(tokens) - 1, None, f"{tokens} tokens")

    def _lengths(self, columns: Mapping[str, Any], rows: int) -> list[int]:
        ids = columns.get("completion_ids")
        if ids is None or len(ids) != rows:
            raise RewardError(
                "reward.completion-ids",
                "no completion_ids, one list of token numbers a completion",
                where=f"reward {self.__name__}",
                expected="what TRL passes to every reward",
                fix="pass completion_ids=, or leave the length reward out here",
            )
        return [one if isinstance(one, int) else len(one) for one in ids]

    def _load(self) -> Any:
        if not isinstance(self.base, str):
            return self.base
        from rlvr.rewards import load_reward

        return load_reward(self.base, self.base_arguments, Path(self.folder))

    def _check(self) -> None:
        problem = ""
        if self.max_length <= 0:
            problem = (
                f"max_length {self.max_length}: it must be above 0 (use the run's max_completion_length)"
            )
        elif not 0 <= self.cache <= self.max_length:
            problem = f"cache {self.cache}: it must lie between 0 and max_length {self.max_length}"
        elif not 0 < self.least <= 1:
            problem = (
                f"least {self.least}: above 0, so that a right answer stays above a wrong one, and at most 1"
            )
        elif self.form not in ("overlong", "cosine"):
            problem = f"form {cast('str', self.form)!r}: overlong or cosine"
        if problem:
            raise ConfigError("reward.length", problem, where=f"reward {self.__name__}")
