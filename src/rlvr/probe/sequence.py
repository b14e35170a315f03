"""A confidence sequence for a mean over prompts: valid at every sample size at once, so that one may look and stop.

Source: Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting", JRSS B 86 (2024),
arXiv 2010.09686. A gambler who bets against "the mean is at most m" multiplies the capital, prompt by prompt, by
``1 + bet * (x - m)``. Under the hypothesis the capital is a supermartingale, so it ever reaches 1/alpha with
probability at most alpha (Ville 1939), wherever one stops. Here the capital is spread over a grid of bets, each the
best one for one alternative mean; for 0/1 outcomes that is a mixture of likelihood ratios (Robbins 1970).

One observation is one *prompt*: the share of its completions that are right, in [0, 1]. Rollouts of one prompt
depend on each other, prompts do not, so no further assumption is needed on how success spreads.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

ALPHA = 0.05
"""Error of each one-sided bound, over all sample sizes together."""

LOG_NEEDED_FROM_ONE = math.log(2 / ALPHA)
"""Log capital of one temperature that suffices whatever the other one says."""

GRID = 40
"""Alternatives between the hypothesis and the end of the range, evenly spaced in log-odds."""

NEARNESS = 0.3
"""Less capital is put on far alternatives, by this power of the odds: they win quickly anyhow."""

METHOD = (
    "betting confidence sequence over distinct prompts (Waudby-Smith and Ramdas 2024, arXiv 2010.09686), capital "
    "mixed over a grid of bets, one-sided 95% at every sample size at once"
)

Observations = Mapping[float, float]
"""Share of right completions of a prompt, in [0, 1], to the number of prompts with that share."""


def count(shares: Iterable[float]) -> Observations:
    """Return the observations of prompts with these shares."""
    return Counter(shares)


def log_capital_above(seen: Observations, mean: float) -> float:
    """Return the log of the capital won against "the mean is at most ``mean``"."""
    return _mixed(seen, mean, alternatives_above(mean))


def log_capital_below(seen: Observations, mean: float) -> float:
    """Return the log of the capital won against "the mean is at least ``mean``"."""
    return _mixed(seen, mean, alternatives_below(mean))


def lower_bound(seen: Observations, alpha: float = ALPHA) -> float:
    """Return the largest mean that the capital refutes from below, in [0, 1]; 0 without any success."""
    middle = mean_of(seen)
    if not seen or middle == 0:
        return 0.0
    return _edge(lambda mean: log_capital_above(seen, mean) >= -math.log(alpha), 0.0, middle)


def upper_bound(seen: Observations, alpha: float = ALPHA) -> float:
    """Return the smallest mean that the capital refutes from above, in [0, 1]; 1 without any failure."""
    middle = mean_of(seen)
    if not seen or middle == 1:
        return 1.0
    return 1 - _edge(lambda rest: log_capital_below(seen, 1 - rest) >= -math.log(alpha), 0.0, 1 - middle)


def mean_of(seen: Observations) -> float:
    """Return the mean share; 0 without prompts."""
    prompts = sum(seen.values())
    return sum(share * times for share, times in seen.items()) / prompts if prompts else 0.0


def zero_bound(prompts: int, alpha: float = ALPHA) -> float:
    """Return the exact one-sided bound on success in one draw of a prompt when none of ``prompts`` succeeded.

    It is looked at in one case alone (no success at all), so it needs no correction for looking.
    """
    return 1 - alpha ** (1 / prompts) if prompts else 1.0


def prompts_for_zero_bound(bound: float, alpha: float = ALPHA) -> int:
    """Return how many prompts without success bring :func:`zero_bound` under ``bound`` (299 for 1%)."""
    return math.floor(math.log(alpha) / math.log1p(-bound)) + 1


def _weights() -> tuple[float, ...]:
    raw = [-NEARNESS * 10 * (place + 0.5) / GRID for place in range(GRID)]
    total = math.log(sum(map(math.exp, raw)))
    return tuple(one - total for one in raw)


LOG_WEIGHTS = _weights()
"""Log of the share of the capital that each alternative starts with; they sum to one."""


@lru_cache(maxsize=4096)
def alternatives_above(mean: float) -> tuple[float, ...]:
    """Return alternative means above ``mean``, evenly spaced in log-odds."""
    return tuple(_spaced(mean, 1.0))


@lru_cache(maxsize=4096)
def alternatives_below(mean: float) -> tuple[float, ...]:
    """Return alternative means below ``mean``, evenly spaced in log-odds."""
    return tuple(1 - other for other in _spaced(1 - mean, 1.0))


def _spaced(start: float, end: float) -> list[float]:
    low, high = _log_odds(start), max(_log_odds(start) + 1, _log_odds(end))
    step = (high - low) / GRID
    return [1 / (1 + math.exp(-(low + step * (place + 0.5)))) for place in range(GRID)]


def _log_odds(share: float) -> float:
    inside = min(max(share, 1e-6), 1 - 1e-3)
    return math.log(inside / (1 - inside))


def log_factors(
    shares: Sequence[float], mean: float, alternatives: Sequence[float]
) -> NDArray[numpy.float64]:
    """Return the log of what one prompt multiplies each bet's capital by, (shares, alternatives).

    The factor is ``share * other / mean + (1 - share) * (1 - other) / (1 - mean)``: linear in the share, and of
    expectation one when the share's expectation is ``mean``.
    """
    import numpy

    share = numpy.asarray(shares, dtype=float)[:, None]
    other = numpy.asarray(alternatives, dtype=float)[None, :]
    inside = min(max(mean, 1e-9), 1 - 1e-9)
    found: NDArray[numpy.float64] = numpy.log(
        share * other / inside + (1 - share) * (1 - other) / (1 - inside)
    )
    return found


def _mixed(seen: Observations, mean: float, alternatives: Sequence[float]) -> float:
    import numpy

    if not seen:
        return 0.0
    totals = numpy.asarray(list(seen.values()), dtype=float) @ log_factors(list(seen), mean, alternatives)
    return float(numpy.logaddexp.reduce(totals + LOG_WEIGHTS))


def _edge(refuted: Callable[[float], bool], low: float, high: float) -> float:
    # The capital falls as the hypothesis nears the observed mean, so the edge is found by halving.
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low
