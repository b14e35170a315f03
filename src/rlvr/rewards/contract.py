"""What a reward is: TRL's signature, and a verdict behind it that says why.

A reward is any callable ``(prompts, completions, **columns) -> list[float | None]``. The built-in ones are
instances of :class:`Verifier`, which reads one completion at a time and can explain its verdict; a user's own
function needs nothing from here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, TypeAlias

from rlvr.errors import RewardError, did_you_mean

Message: TypeAlias = Mapping[str, Any]
Completion: TypeAlias = str | Sequence[Message]
Scores: TypeAlias = list[float | None]


class Outcome(StrEnum):
    """What became of one completion."""

    RIGHT = "right"
    """The answer was read and is correct."""
    WRONG = "wrong"
    """The answer was read and is not correct."""
    ILL_FORMED = "ill-formed"
    """No answer could be read: a tag is missing, the JSON does not parse, the code does not compile."""
    NOT_APPLICABLE = "not-applicable"
    """The reward does not judge this row (TRL's None)."""
    INFRASTRUCTURE = "infrastructure"
    """The verifier itself failed; the row must not train anything."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One completion read by one verifier.

    Attributes:
        outcome: See :class:`Outcome`.
        score: Unweighted score, 1.0 being full; None when not applicable or on an infrastructure failure.
        extracted: The part of the completion that was judged, as text; None when nothing was found.
        why: One sentence a person can check.
        details: Further facts, plain JSON values only.
    """

    outcome: Outcome
    score: float | None
    extracted: str | None = None
    why: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def accepted(self) -> bool:
        """Whether a sound verifier accepts the completion."""
        return self.outcome is Outcome.RIGHT


class RewardFunction(Protocol):
    """TRL's calling convention."""

    __name__: str

    def __call__(self, prompts: Sequence[Any], completions: Sequence[Completion], **columns: Any) -> Scores:
        """Score a batch: one float or None a completion."""
        ...


def completion_text(completion: Completion) -> str:
    """Return the text a verifier reads: the string itself, or the assistant messages of a chat, joined.

    Raises:
        RewardError: ``reward.completion-type`` when it is neither.
    """
    if isinstance(completion, str):
        return completion
    if isinstance(completion, Sequence):
        parts = [_message_text(message) for message in completion]
        return "\n".join(part for part in parts if part)
    raise RewardError(
        "reward.completion-type",
        f"a completion of type {type(completion).__name__}",
        expected="a string or a list of chat messages",
        fix="pass completions as TRL does: all strings or all message lists",
    )


def _message_text(message: object) -> str:
    if not isinstance(message, Mapping):
        raise RewardError(
            "reward.completion-type",
            f"a chat completion holding a {type(message).__name__}",
            expected="messages with the keys role and content",
        )
    if message.get("role", "assistant") != "assistant":
        return ""
    content = message.get("content")
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence):  # multimodal form: [{"type": "text", "text": …}]
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return str(content)


def column(name: str, columns: Mapping[str, Any], *, component: str, rows: int) -> Sequence[Any]:
    """Return the reference column ``name``, one entry a completion.

    Raises:
        RewardError: ``reward.missing-column`` or ``reward.column-length``.
    """
    if name not in columns:
        known = [key for key in columns if key not in TRAINER_KEYWORDS]
        raise RewardError(
            "reward.missing-column",
            f"no column {name!r}; the data has {sorted(known) or 'no columns'}",
            where=f"reward {component}",
            expected=f"a column {name!r} with the reference of each prompt",
            fix=did_you_mean(name, known) or f"add the column, or name another one for {component}",
        )
    values = columns[name]
    if not isinstance(values, Sequence) or isinstance(values, str) or len(values) != rows:
        size = len(values) if hasattr(values, "__len__") else "no length"
        raise RewardError(
            "reward.column-length",
            f"column {name!r} has {size} entries for {rows} completions",
            where=f"reward {component}",
            expected="one reference a completion",
        )
    return values


TRAINER_KEYWORDS = frozenset(
    {"prompts", "completions", "completion_ids", "trainer_state", "log_extra", "log_metric", "environments"}
)
"""Keywords that TRL passes beside the data set's columns."""


def checked_scores(component: str, scores: object, rows: int) -> Scores:
    """Return ``scores`` as floats and None, or say which component, row and value broke the contract.

    Raises:
        RewardError: ``reward.not-a-list``, ``reward.wrong-length``, ``reward.not-a-number`` or
            ``reward.non-finite``.
    """
    where = f"reward {component}"
    if not isinstance(scores, Sequence) or isinstance(scores, str | bytes):
        raise RewardError(
            "reward.not-a-list",
            f"it returned {type(scores).__name__} {_short(scores)}",
            where=where,
            expected=f"a list of {rows} numbers or None",
            fix="return one score a completion, in order",
        )
    if len(scores) != rows:
        raise RewardError(
            "reward.wrong-length",
            f"it returned {len(scores)} scores for {rows} completions",
            where=where,
            expected=f"{rows} scores",
            fix="return one score a completion, in order; None where the reward does not apply",
        )
    return [_checked_score(where, row, score) for row, score in enumerate(scores)]


def _checked_score(where: str, row: int, score: object) -> float | None:
    if score is None:
        return None
    try:
        number = float(score)  # type: ignore[arg-type]  # numpy and torch scalars convert
    except (TypeError, ValueError):
        number = math.nan
        kind = "reward.not-a-number"
    else:
        kind = "reward.non-finite"
    if isinstance(score, str) or not math.isfinite(number):
        raise RewardError(
            "reward.not-a-number" if isinstance(score, str) else kind,
            f"row {row} got {_short(score)} ({type(score).__name__})",
            where=where,
            expected="a finite number or None",
            fix="a non-finite reward poisons the whole group: mend the function",
        )
    return number


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


class Verifier:
    """Base of the built-in rewards: subclasses say how one completion is read; batching is shared.

    A subclass sets ``role`` and ``reference_column`` and implements :meth:`verdict`. Instances are picklable
    and callable with TRL's signature.
    """

    role: str = "correctness"
    reference_column: str | None = "answer"

    @property
    def __name__(self) -> str:  # TRL logs a reward under this name
        return _snake(type(self).__qualname__.rpartition(".")[2])

    def verdict(self, completion: str, reference: Any) -> Verdict:
        """Read one completion against its reference."""
        raise NotImplementedError

    def verdicts(self, completions: Sequence[Completion], **columns: Any) -> list[Verdict]:
        """Read a batch; one verdict a completion, in order."""
        references: Sequence[Any] = [None] * len(completions)
        if self.reference_column is not None:
            references = column(
                self.reference_column, columns, component=self.__name__, rows=len(completions)
            )
        texts = [_row_text(row, completion) for row, completion in enumerate(completions)]
        return self.verdict_batch(texts, references)

    def verdict_batch(self, texts: Sequence[str], references: Sequence[Any]) -> list[Verdict]:
        """Judge a batch of texts; override where a batch is cheaper than its rows."""
        return [self.verdict(text, reference) for text, reference in zip(texts, references, strict=True)]

    def check_reference(self, reference: Any) -> str | None:
        """Return why ``reference`` cannot be used as gold, or None when it can; run when data is loaded."""
        del reference
        return None

    def __call__(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Completion],
        *,
        log_extra: Callable[[str, list[Any]], None] | None = None,
        log_metric: Callable[[str, float], None] | None = None,
        **columns: Any,
    ) -> Scores:
        """Score a batch as TRL does; what was read goes to ``log_extra`` and ``log_metric`` where TRL offers them."""
        del prompts
        found = self.verdicts(completions, **columns)
        if log_extra is not None:
            log_extra(f"{self.__name__}_outcome", [verdict.outcome.value for verdict in found])
            log_extra(f"{self.__name__}_extracted", [verdict.extracted for verdict in found])
        if log_metric is not None and found:
            failed = sum(verdict.outcome is Outcome.INFRASTRUCTURE for verdict in found)
            log_metric(
                f"{self.__name__}/right_share", sum(verdict.accepted for verdict in found) / len(found)
            )
            log_metric(f"{self.__name__}/infrastructure_share", failed / len(found))
        return [verdict.score for verdict in found]


def as_verifier(function: object) -> Verifier | None:
    """Return the verifier that a reward is, or that a user's file holds; None for a plain function."""
    found = function if isinstance(function, Verifier) else getattr(function, "verifier", None)
    return found if isinstance(found, Verifier) else None


def _row_text(row: int, completion: Completion) -> str:
    try:
        return completion_text(completion)
    except RewardError as error:
        raise RewardError(
            error.code, error.found, where=f"row {row}", expected=error.expected, fix=error.fix
        ) from None


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")
