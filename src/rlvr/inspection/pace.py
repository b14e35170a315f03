"""How fast a person can read at all: a pace under it means that nobody read.

People read English silently at 238 words a minute on average (Brysbaert 2019, a meta-analysis of 190 studies),
about 24 characters a second. A reader of long reasoning jumps to the answer, so full reading is not asked for:
:data:`SKIM_RATE` is more than sixty times that rate, and its share is capped. The fixed part is the time to find
the answer, find the reference, compare and press: at least three fixations of a quarter second (Rayner 1998) and
a choice. Both are declared limits on what is *possible*, not a judgement of careful reading.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable

from rlvr.records.inspection import Pace

FIXED_SECONDS = 1.0
"""Seconds to find, compare and press, whatever the length."""
SKIM_RATE = 1500.0
"""Characters a second that nobody exceeds, even skimming."""
LONGEST_SKIM_SECONDS = 2.0
"""Most seconds that length can add."""


def least_seconds(characters: int) -> float:
    """Return the least time in seconds that a person needs for a completion of that many characters."""
    return FIXED_SECONDS + min(characters / SKIM_RATE, LONGEST_SKIM_SECONDS)


def pace(readings: Iterable[tuple[float, int]]) -> Pace:
    """Judge the pace of (seconds, characters) readings by the median of time over least time."""
    found = list(readings)
    if not found:
        return Pace(median_seconds=0.0, floor_seconds=0.0, ratio=0.0, possible=True)
    floors = [least_seconds(characters) for _, characters in found]
    ratios = [seconds / floor for (seconds, _), floor in zip(found, floors, strict=True)]
    ratio = statistics.median(ratios)
    return Pace(
        median_seconds=round(statistics.median(seconds for seconds, _ in found), 3),
        floor_seconds=round(statistics.median(floors), 3),
        ratio=round(ratio, 3),
        possible=ratio >= 1.0,
    )
