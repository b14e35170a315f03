"""Agreement between a reader and the reward: exact binomial bounds, Cohen's kappa, the table of four counts.

Bounds are Clopper and Pearson's (1934): they invert the binomial tail, so the stated confidence is a minimum.
They speak of the samples that were drawn, which are balanced on purpose, not of all completions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple


class Table(NamedTuple):
    """Counts of reader against reward; *right* means that the reward accepts the completion."""

    pass_right: int = 0
    pass_unpaid: int = 0
    fail_right: int = 0
    fail_unpaid: int = 0

    @property
    def total(self) -> int:
        """All samples counted."""
        return sum(self)

    @property
    def agreed(self) -> int:
        """Samples where reader and reward say the same."""
        return self.pass_right + self.fail_unpaid


class Kappa(NamedTuple):
    """Cohen's kappa, or None with the reason."""

    value: float | None
    note: str = ""


def tabulate(pairs: Iterable[tuple[bool, bool]]) -> Table:
    """Count pairs of (reader passes, reward accepts)."""
    counts = {(True, True): 0, (True, False): 0, (False, True): 0, (False, False): 0}
    for pair in pairs:
        counts[pair] += 1
    return Table(counts[True, True], counts[True, False], counts[False, True], counts[False, False])


def kappa(table: Table) -> Kappa:
    """Return Cohen's kappa: agreement beyond what the two sides' own rates would give by chance.

    It is undefined when chance alone already agrees always, that is when both say the same one thing of every
    sample.
    """
    total = table.total
    if total == 0:
        return Kappa(None, "nothing was read")
    reader_pass = (table.pass_right + table.pass_unpaid) / total
    reward_right = (table.pass_right + table.fail_right) / total
    chance = reader_pass * reward_right + (1 - reader_pass) * (1 - reward_right)
    if math.isclose(chance, 1.0):
        return Kappa(None, "undefined: reader and reward both gave one answer to every sample")
    return Kappa((table.agreed / total - chance) / (1 - chance))


def upper_bound(errors: int, read: int, confidence: float = 0.95) -> float | None:
    """Return the exact one-sided upper bound on a share; None when nothing was read.

    ``upper_bound(0, 60)`` is 4.9%, ``upper_bound(0, 20)`` is 13.9%.

    Raises:
        ValueError: The counts are impossible.
    """
    if not 0 <= errors <= read:
        raise ValueError(f"{errors} errors in {read} readings")
    if read == 0:
        return None
    if errors == read:
        return 1.0
    miss = 1.0 - confidence
    if errors == 0:
        return 1.0 - math.pow(miss, 1.0 / read)
    return _bisect(lambda share: binomial_cdf(errors, read, share) - miss)


def interval(successes: int, read: int, confidence: float = 0.95) -> tuple[float, float] | None:
    """Return the exact two-sided interval of a share; None when nothing was read."""
    if read == 0:
        return None
    one_sided = 1.0 - (1.0 - confidence) / 2
    high = upper_bound(successes, read, one_sided)
    low = upper_bound(read - successes, read, one_sided)
    assert high is not None and low is not None
    return 1.0 - low, high


def binomial_cdf(successes: int, trials: int, share: float) -> float:
    """Return P(X <= successes) for a binomial of ``trials`` with probability ``share``."""
    if share <= 0.0:
        return 1.0
    if share >= 1.0:
        return 1.0 if successes >= trials else 0.0
    terms = (_log_term(count, trials, share) for count in range(successes + 1))
    return min(1.0, math.fsum(math.exp(term) for term in terms))


def _log_term(count: int, trials: int, share: float) -> float:
    choose = math.lgamma(trials + 1) - math.lgamma(count + 1) - math.lgamma(trials - count + 1)
    return choose + count * math.log(share) + (trials - count) * math.log1p(-share)


def _bisect(falling: Callable[[float], float]) -> float:
    """Return the root in (0, 1) of a falling function, to the last bit that matters."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if falling(middle) > 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2
