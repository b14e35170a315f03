"""Which completions a person reads: across score levels and prompts, both sides, no near-duplicates."""

from __future__ import annotations

import functools
import random
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from rlvr.errors import DataError
from rlvr.records.samples import Sample, ScoredSample

LEAST_A_SIDE = 15
"""Paid, and unpaid, samples that a reading needs before that side's errors are judged."""
LEAST_READINGS = 50
DEFAULT_COUNT = 60
FRESH_AFTER_MEND = 20
LEAST_ON_POLICY = 20
JUDGEABLE = ("right", "wrong", "ill-formed")
NEAR_DUPLICATE = 0.9
"""Share of common five-word pieces from which two completions of one prompt count as the same."""
SHINGLE_WORDS = 5
MOST_LEVELS = 5
"""Score levels told apart on each side; more distinct scores are grouped."""


class Candidate(NamedTuple):
    """A sample with its score, as the selection sees it."""

    sample: Sample
    score: ScoredSample

    @property
    def paid(self) -> bool:
        """Whether the reward accepts it."""
        return self.score.outcome == "right"


def select_samples(
    samples: Sequence[Sample],
    scores: Sequence[ScoredSample],
    count: int = DEFAULT_COUNT,
    seed: int = 0,
    *,
    exclude: Collection[str] = (),
    least_paid: int = LEAST_A_SIDE,
    least_unpaid: int = LEAST_A_SIDE,
) -> list[str]:
    """Draw samples to read: half paid and half not, where both exist.

    Args:
        samples: The pool.
        scores: What the reward says of it.
        count: How many to draw; fewer come back when fewer distinct ones exist.
        seed: Decides every random choice.
        exclude: Completions already drawn; neither they nor their near-duplicates come again.
        least_paid: Paid samples to reach, where that many exist.
        least_unpaid: Unpaid samples to reach, where that many exist.

    Returns:
        Completion ids in reading order, which says nothing of their scores.
    """
    chance = random.Random(seed)  # noqa: S311  a draw that can be repeated, not a secret
    pool = candidates(samples, scores)
    seen = _Seen(one for one in pool if one.sample.completion_id in exclude)
    fresh = [one for one in pool if one.sample.completion_id not in exclude]
    chance.shuffle(fresh)
    paid = _spread([one for one in fresh if one.paid], seen, count, chance)
    unpaid = _spread([one for one in fresh if not one.paid], seen, count, chance)
    quota = paid_quota(len(paid), len(unpaid), count, least_paid, least_unpaid)
    drawn = [*paid[:quota], *unpaid[: count - quota]]
    chance.shuffle(drawn)
    return [one.sample.completion_id for one in drawn]


def paid_quota(paid: int, unpaid: int, count: int, least_paid: int, least_unpaid: int) -> int:
    """Return how many paid samples to draw: half, moved by what exists and by what each side still needs."""
    low, high = min(least_paid, count), max(count - least_unpaid, 0)
    half = count // 2
    quota = min(max(half, low), high) if low <= high else half
    return min(paid, max(quota, count - unpaid))


def candidates(samples: Iterable[Sample], scores: Iterable[ScoredSample]) -> list[Candidate]:
    """Pair samples with scores; those that the reward did not judge are left out."""
    by_id = {score.completion_id: score for score in scores}
    paired = [
        Candidate(sample, by_id[sample.completion_id]) for sample in samples if sample.completion_id in by_id
    ]
    return [one for one in paired if one.score.outcome in JUDGEABLE]


def require_enough(samples: Sequence[Sample], scores: Sequence[ScoredSample], least: int) -> None:
    """Make sure that the pool holds enough distinct samples.

    Raises:
        DataError: ``inspect.too-few-samples``.
    """
    found = len(select_samples(samples, scores, least))
    if found < least:
        raise DataError(
            "inspect.too-few-samples",
            f"{found} distinct completions that the reward judged, of {len(samples)} sampled",
            where="inspect",
            expected=f"at least {least}",
            fix="sample more prompts: raise gates.probe.prompts and run `rlvr probe`",
        )


def count_sides(samples: Sequence[Sample], scores: Sequence[ScoredSample]) -> tuple[int, int]:
    """Return how many distinct paid and unpaid samples the pool holds."""
    pool = candidates(samples, scores)
    seen = _Seen(())
    kept = [one for one in pool if seen.take(one)]
    paid = sum(one.paid for one in kept)
    return paid, len(kept) - paid


def _spread(pool: Sequence[Candidate], seen: _Seen, count: int, chance: random.Random) -> list[Candidate]:
    """Take up to ``count``, going round the score levels, prompts not yet met first."""
    levels = _levels(pool)
    chance.shuffle(levels)
    queues = [_prompts_first(level) for level in levels]
    taken: list[Candidate] = []
    while queues and len(taken) < count:
        for queue in list(queues):
            one = None if len(taken) >= count else next((found for found in queue if seen.take(found)), None)
            if one is None:
                queues.remove(queue)
            else:
                taken.append(one)
    return taken


def _levels(pool: Sequence[Candidate]) -> list[list[Candidate]]:
    groups: dict[tuple[str, float], list[Candidate]] = defaultdict(list)
    for one in pool:
        groups[one.score.outcome, round(one.score.total or 0.0, 3)].append(one)
    ordered = [groups[key] for key in sorted(groups)]
    if len(ordered) <= MOST_LEVELS:
        return ordered
    flat = [one for group in ordered for one in group]
    size = -(-len(flat) // MOST_LEVELS)
    return [flat[start : start + size] for start in range(0, len(flat), size)]


def _prompts_first(level: Sequence[Candidate]) -> Iterable[Candidate]:
    """Yield one completion of each prompt, then a second of each, and so on."""
    by_prompt: dict[str, list[Candidate]] = defaultdict(list)
    for one in level:
        by_prompt[one.sample.row_hash].append(one)
    depth = max((len(found) for found in by_prompt.values()), default=0)
    for place in range(depth):
        yield from (found[place] for found in by_prompt.values() if place < len(found))


class _Seen:
    """What was drawn already, for telling near-duplicates.

    Two texts on different sides of the reward are never duplicates: a small difference that changes the verdict
    is what a reader should see.
    """

    def __init__(self, drawn: Iterable[Candidate]) -> None:
        self._texts: set[tuple[bool, str, str]] = set()
        self._known: dict[tuple[bool, str], list[_Pieces]] = defaultdict(list)
        for one in drawn:
            self.take(one)

    def take(self, one: Candidate) -> bool:
        """Remember the candidate; False when one like it is there already."""
        text = " ".join(one.sample.text.casefold().split())
        # Unreadable text is one case whatever the prompt; a readable answer means something else at each prompt.
        place = "" if one.score.outcome == "ill-formed" else one.sample.row_hash
        if (one.paid, place, text) in self._texts:
            return False
        pieces = _Pieces(text)
        known = self._known[one.paid, one.sample.row_hash]
        if any(_alike(pieces.found, other.found) for other in known):
            return False
        self._texts.add((one.paid, place, text))
        known.append(pieces)
        return True


class _Pieces:
    """The five-word pieces of a text, cut only when there is something to compare with."""

    def __init__(self, text: str) -> None:
        self._text = text

    @functools.cached_property
    def found(self) -> frozenset[int]:
        words = self._text.split()
        if len(words) < 4 * SHINGLE_WORDS:
            return frozenset()  # short texts differ by one word that may be the answer: only equal ones count
        shifted = (words[start:] for start in range(SHINGLE_WORDS))
        return frozenset(map(hash, zip(*shifted, strict=False)))


def _alike(left: frozenset[int], right: frozenset[int]) -> bool:
    if not left or not right:
        return False
    return len(left & right) >= NEAR_DUPLICATE * len(left | right)
