"""The scorer that a reasoning-gym task brings along, on the entry that travels with each row as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from rlvr.errors import ConfigError
from rlvr.rewards.builtin import Builtin
from rlvr.rewards.contract import Outcome, Verdict
from rlvr.rewards.reading import last_tag, outside_thinking, without_end_tokens

_FULL = 1.0 - 1e-9


@dataclass(frozen=True)
class ReasoningGym(Builtin):
    """Accept what the task's own scorer pays in full; its partial credit is the score of a wrong answer.

    A scorer that raises judges nothing: the row is an infrastructure failure, never a wrong answer.

    Attributes:
        reference: Column with the task's entry as JSON, which ``reasoning-gym:NAME`` writes.
        tag: Name of the tag that holds the answer; the last complete one decides. Empty: the whole text outside
            thinking is the answer.
        partial: Whether a wrong answer keeps the scorer's partial credit; False: it is paid nothing.
    """

    reference: str | None = "gym_entry"
    tag: str = "answer"
    partial: bool = False

    def verdict(self, completion: str, reference: Any) -> Verdict:
        """Read one completion against the entry of its row."""
        problem = self.check_reference(reference)
        if problem:
            raise self.bad_reference(reference, problem)
        visible = without_end_tokens(outside_thinking(completion)).strip()
        if self.tag:
            reading = last_tag(visible, self.tag)
            if reading.content is None:
                return Verdict(Outcome.ILL_FORMED, 0.0, None, reading.why)
            visible = reading.content.strip()
        if not visible:
            return Verdict(Outcome.ILL_FORMED, 0.0, visible, "the answer is empty")
        entry = json.loads(reference)
        score = float(_task(entry["metadata"]["source_dataset"]).score_answer(answer=visible, entry=entry))
        if score >= _FULL:
            return Verdict(Outcome.RIGHT, 1.0, visible, "the task's scorer pays it in full")
        why = f"the task's scorer pays {score:g}; its answer is {str(entry.get('answer'))[:80]!r}"
        return Verdict(Outcome.WRONG, score if self.partial else 0.0, visible, why)

    def check_reference(self, reference: Any) -> str | None:
        """Return why ``reference`` is no entry of a reasoning-gym task, or None."""
        try:
            name = json.loads(reference)["metadata"]["source_dataset"]
        except (TypeError, ValueError, KeyError):
            return "not an entry of a reasoning-gym task as JSON"
        return None if isinstance(name, str) else "an entry that does not name its task"


@lru_cache(maxsize=32)
def _task(name: str) -> Any:
    try:
        from reasoning_gym.factory import create_dataset
    except ImportError:
        raise ConfigError(
            "reward.reasoning-gym",
            "reasoning-gym is not installed",
            where="reward reasoning_gym",
            fix="pip install 'rlvr[reasoning-gym]'",
        ) from None
    return create_dataset(name, size=1)
