"""Held-out completions before and after, side by side, those that changed most first; pure.

Completions are untrusted text: here every character that could hide or reorder text is made visible, and the
template escapes the rest.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from rlvr.evaluation import exact_interval
from rlvr.report.figures import Point, Series

if TYPE_CHECKING:
    from rlvr.records.run import PromptResult

LONGEST = 4000
"""Characters of one completion on the page."""
MOST = 300
"""Pairs on the page."""

Kind = Literal["broken", "mended", "still wrong", "still right"]
KINDS: tuple[Kind, ...] = ("broken", "mended", "still wrong", "still right")
"""In the order of the page: what got worse is what a reader must see first."""


@dataclass(frozen=True)
class Pair:
    """One held-out prompt before and after.

    Attributes:
        kind: See :data:`KINDS`.
        prompt: The prompt, safe to show.
        before: First completion of the base model, safe to show.
        after: First completion of the trained model, safe to show.
        before_outcome: What the check said of it.
        after_outcome: Likewise.
        before_share: Accepted completions of those judged, as text.
        after_share: Likewise.
        difference: After less before, in [-1, 1].
    """

    kind: Kind
    prompt: str
    before: str
    after: str
    before_outcome: str
    after_outcome: str
    before_share: str
    after_share: str
    difference: float


def pairs(before: Sequence[PromptResult], after: Sequence[PromptResult]) -> list[Pair]:
    """Return the prompts that both measurements judged, those that changed most first."""
    earlier = {one.row_hash: one for one in before if one.judged}
    found = [_pair(earlier[one.row_hash], one) for one in after if one.judged and one.row_hash in earlier]
    return sorted(found, key=lambda pair: (KINDS.index(pair.kind), -abs(pair.difference)))


def counts(found: Sequence[Pair]) -> dict[Kind, int]:
    """Return how many pairs there are of each kind."""
    return {kind: sum(pair.kind == kind for pair in found) for kind in KINDS}


def shown(found: Sequence[Pair], most: int = MOST) -> list[Pair]:
    """Return the pairs that fit on the page: every kind keeps a fair part of the room."""
    if len(found) <= most:
        return list(found)
    kept: list[Pair] = []
    room = most
    groups = sorted(([pair for pair in found if pair.kind == kind] for kind in KINDS), key=len)
    for position, group in enumerate(groups):
        part = room // (len(groups) - position)
        kept += group[:part]
        room -= min(part, len(group))
    return sorted(kept, key=lambda pair: (KINDS.index(pair.kind), -abs(pair.difference)))


def telling_steps(steps: Iterable[object]) -> list[int]:
    """Return the first, the middle and the last of the steps that a run sampled at."""
    known = sorted({step for step in steps if isinstance(step, int)})
    return sorted({known[0], known[len(known) // 2], known[-1]}) if known else []


def pass_at_k(results: Sequence[PromptResult], name: str, tone: int) -> Series:
    """Return unbiased pass@k over prompts, for every k up to the fewest completions judged.

    The estimate for one prompt with c right of n is 1 - C(n-c, k) / C(n, k) (Chen et al., arXiv 2107.03374).
    """
    judged = [one for one in results if one.judged]
    most = min((one.judged for one in judged), default=0)
    curve: list[Point] = [
        (float(k), sum(_pass_at(one.correct, one.judged, k) for one in judged) / len(judged))
        for k in range(1, most + 1)
    ]
    return Series(name, curve, tone)


def _pass_at(correct: int, judged: int, k: int) -> float:
    if judged - correct < k:
        return 1.0
    missed = 1.0
    for number in range(judged - correct + 1, judged + 1):
        missed *= 1.0 - k / number
    return 1.0 - missed


def share_interval(successes: int, trials: int) -> tuple[float, float]:
    """Return the exact 95% interval of a share; the whole range for no trials."""
    return exact_interval(successes, trials) if trials else (0.0, 1.0)


def safe_text(text: str, longest: int = LONGEST) -> str:
    """Return text in which nothing hides: controls, bidirectional marks and invisible characters by name.

    Args:
        text: Any text.
        longest: Characters to keep; the rest is counted.
    """
    kept = text[:longest]
    rest = len(text) - len(kept)
    return f"{visible(kept)}\n… {rest:,} more characters" if rest > 0 else visible(kept)


def visible(text: str) -> str:
    """Return text with every character that hides or reorders text named."""
    return text if text.isprintable() else "".join(_visible(character) for character in text)


def _visible(character: str) -> str:
    if character in "\n\t":
        return character
    category = unicodedata.category(character)
    if category in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"):
        return f"⟨U+{ord(character):04X}⟩"
    return character


def _pair(before: PromptResult, after: PromptResult) -> Pair:
    old, new = before.correct / before.judged, after.correct / after.judged
    return Pair(
        kind=_kind(old, new),
        prompt=safe_text(after.prompt),
        before=safe_text(before.completion),
        after=safe_text(after.completion),
        before_outcome=before.outcome,
        after_outcome=after.outcome,
        before_share=f"{before.correct} of {before.judged}",
        after_share=f"{after.correct} of {after.judged}",
        difference=new - old,
    )


def _kind(old: float, new: float) -> Kind:
    if new < old:
        return "broken"
    if new > old:
        return "mended"
    return "still right" if new >= 0.5 else "still wrong"
