"""Which prompts can teach: a prompt is dropped only when its success is surely outside the band. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Literal

from rlvr.probe import sequence
from rlvr.probe.estimate import BAND

Place = Literal["inside", "unknown", "too hard", "too easy"]
"""``inside`` and ``unknown`` are kept."""

KEPT: tuple[Place, ...] = ("inside", "unknown")
ROUND = 8
"""Completions of a prompt between two looks."""
MOST = 128
"""Completions of one prompt after which it stays unknown."""
DEFAULT_SHARE, DEFAULT_MOST = 64, 50_000
"""Default budget: this many completions a distinct prompt, and this many in all."""


@lru_cache(maxsize=65_536)
def place(right: int, of: int, band: tuple[float, float] = BAND) -> Place:
    """Return where one prompt lies, by a confidence sequence over its own completions.

    Args:
        right: Right completions.
        of: Judged completions.
        band: Success between which a prompt is worth training on.
    """
    seen = {share: number for share, number in ((1.0, right), (0.0, of - right)) if number}
    if not seen:
        return "unknown"
    if sequence.upper_bound(seen) < band[0]:
        return "too hard"
    if sequence.lower_bound(seen) > band[1]:
        return "too easy"
    mixed = 0 < right < of
    if mixed and sequence.lower_bound(seen) > band[0] and sequence.upper_bound(seen) < band[1]:
        return "inside"
    return "unknown"


def open_prompts(
    counts: Mapping[str, tuple[int, int]], prompts: Sequence[str], band: tuple[float, float] = BAND
) -> list[str]:
    """Return the prompts that a further round could still place, in order.

    Args:
        counts: Prompt to (right, judged).
        prompts: All prompts.
        band: As in :func:`place`.
    """
    found = []
    for prompt in prompts:
        right, of = counts.get(prompt, (0, 0))
        if of < MOST and place(right, of, band) == "unknown":
            found.append(prompt)
    return found


def summary(places: Iterable[Place]) -> dict[str, int]:
    """Return how many prompts lie where."""
    found = Counter(places)
    return {name: found[name] for name in ("inside", "unknown", "too hard", "too easy")}


def budget(prompts: int) -> int:
    """Return the default budget, completions in all."""
    return min(DEFAULT_SHARE * prompts, DEFAULT_MOST)
