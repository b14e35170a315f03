"""Accuracy over held-out prompts, with an interval; pure.

Completions of one prompt are not independent, so prompts are the unit: with one completion a prompt the exact
binomial interval (Clopper and Pearson, Biometrika 26, 1934), with several a bias-corrected bootstrap over prompts
(Efron, JASA 82, 1987).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from rlvr.records.run import PromptResult

CONFIDENCE = 0.95
RESAMPLES = 2000


class Accuracy(NamedTuple):
    """A share of accepted completions and its 95% interval."""

    value: float
    low: float
    high: float
    interval: str


class Change(NamedTuple):
    """After less before, over the prompts that both have.

    Attributes:
        difference: Mean over prompts, in [-1, 1].
        low: Lower end of the paired interval at 95%.
        high: Upper end of it.
        p_value: Two-sided, of a paired sign-flip test at the prompt level.
        prompts: Number of prompts that both have.
    """

    difference: float
    low: float
    high: float
    p_value: float
    prompts: int


def accuracy(results: Sequence[PromptResult], seed: int = 0) -> Accuracy:
    """Return the accuracy over prompts.

    Args:
        results: One entry a prompt; those with nothing judged are left out.
        seed: Of the bootstrap.
    """
    judged = [result for result in results if result.judged]
    if not judged:
        return Accuracy(math.nan, 0.0, 1.0, "nothing was judged")
    shares = [result.correct / result.judged for result in judged]
    mean = sum(shares) / len(shares)
    if all(result.judged == 1 for result in judged) or len(set(shares)) == 1:
        low, high = exact_interval(round(mean * len(shares)), len(shares))
        return Accuracy(mean, low, high, "Clopper-Pearson over prompts, 95%")
    low, high = _bootstrap(shares, seed)
    return Accuracy(mean, low, high, "bias-corrected bootstrap over prompts, 95%")


def exact_interval(successes: int, trials: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return the two-sided Clopper-Pearson interval."""
    from scipy.special import betaincinv

    tail = (1 - confidence) / 2
    low = 0.0 if successes == 0 else float(betaincinv(successes, trials - successes + 1, tail))
    high = 1.0 if successes == trials else float(betaincinv(successes + 1, trials - successes, 1 - tail))
    return low, high


def change(before: Sequence[PromptResult], after: Sequence[PromptResult], seed: int = 0) -> Change:
    """Compare two policies on the same prompts.

    The interval is a bootstrap over prompts; the test flips the sign of each prompt's difference at random
    (Fisher's paired randomisation test), exact but for its 10,000 draws.
    """
    import numpy as np

    earlier = {result.row_hash: result for result in before if result.judged}
    pairs = [(earlier[one.row_hash], one) for one in after if one.judged and one.row_hash in earlier]
    if not pairs:
        return Change(math.nan, -1.0, 1.0, math.nan, 0)
    differences = np.array([new.correct / new.judged - old.correct / old.judged for old, new in pairs])
    mean = float(differences.mean())
    rng = np.random.default_rng(seed)
    signs = rng.choice([-1.0, 1.0], size=(10_000, len(differences)))
    flipped = (signs * differences).mean(axis=1)
    p_value = float((np.sum(np.abs(flipped) >= abs(mean) - 1e-12) + 1) / (len(flipped) + 1))
    low, high = (
        (mean, mean) if len(set(differences.tolist())) == 1 else _bootstrap(differences.tolist(), seed)
    )
    return Change(mean, low, high, p_value, len(pairs))


def _bootstrap(values: Sequence[float], seed: int) -> tuple[float, float]:
    import numpy as np
    from scipy.stats import bootstrap

    found = bootstrap(
        (np.array(values),),
        np.mean,
        confidence_level=CONFIDENCE,
        n_resamples=RESAMPLES,
        method="BCa",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return float(found.low), float(found.high)
