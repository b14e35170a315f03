"""A pattern of the user's own, matched in a child that is killed when it takes too long."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rlvr.errors import ConfigError, InfrastructureError
from rlvr.rewards.builtin import Builtin
from rlvr.rewards.contract import Outcome, Verdict
from rlvr.rewards.exact import Exact
from rlvr.rewards.matching import search_all
from rlvr.rewards.reading import outside_thinking, without_end_tokens


@dataclass(frozen=True)
class Regex(Builtin):
    """Accept what a pattern captures when it equals the reference, or any match where no reference is read.

    The last match outside thinking decides. Its group ``answer``, else its first group, else all of it is compared
    with the reference as ``exact`` compares texts. With ``reference: null`` a match alone is right.

    Attributes:
        pattern: A Python regular expression, searched for in the visible text.
        whole: Whether the pattern must match all of the visible text, stripped.
        ignore_case: Whether the pattern ignores case.
        timeout: Wall clock of one completion in seconds; a text that makes the pattern slower is wrong.
        think_prefilled: The chat template opens ``<think>``, so the completion starts inside it.
    """

    pattern: str = field(default="", kw_only=True)
    whole: bool = False
    ignore_case: bool = False
    timeout: float = 1.0
    think_prefilled: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            re.compile(self.pattern)
        except re.error as error:
            raise ConfigError(
                "reward.pattern", f"the pattern does not compile: {error}", where="reward regex"
            ) from error
        if not self.pattern:
            raise ConfigError(
                "reward.pattern", "no pattern", where="reward regex", fix="set arguments.pattern"
            )

    def verdict(self, completion: str, reference: Any) -> Verdict:
        """Read one completion."""
        return self.verdict_batch([completion], [reference])[0]

    def verdict_batch(self, texts: Sequence[str], references: Sequence[Any]) -> list[Verdict]:
        """Read a batch; patterns that may run away are matched in a child."""
        visible = [
            without_end_tokens(outside_thinking(text, prefilled=self.think_prefilled)).strip()
            for text in texts
        ]
        flags = re.IGNORECASE if self.ignore_case else 0
        try:
            found = search_all(self.pattern, flags, self.whole, visible, self.timeout)
        except InfrastructureError as error:
            return [Verdict(Outcome.INFRASTRUCTURE, None, None, error.found) for _ in texts]
        return [self._judge(one, reference) for one, reference in zip(found, references, strict=True)]

    def check_reference(self, reference: Any) -> str | None:
        """Return why ``reference`` cannot be compared with, or None."""
        return Exact(tag="").check_reference(reference)

    def _judge(self, found: str | TimeoutError | None, reference: Any) -> Verdict:
        if isinstance(found, TimeoutError):
            return Verdict(Outcome.WRONG, 0.0, None, f"the pattern took over {self.timeout:g} s on this text")
        if found is None:
            return Verdict(Outcome.ILL_FORMED, 0.0, None, f"the pattern {self.pattern!r} matches nothing")
        if self.reference_column is None:
            return Verdict(Outcome.RIGHT, 1.0, found, "the pattern matches")
        problem = self.check_reference(reference)
        if problem:
            raise self.bad_reference(reference, problem)
        compared = Exact(tag="").verdict(found, reference)
        return Verdict(compared.outcome, compared.score, found, compared.why)
