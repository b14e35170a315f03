"""Unbiased estimates, and the tables made from counts."""

import math

import pytest
from made import judged

from rlvr.probe import estimate


def expected(estimator, chance, of):
    """Expectation of an estimator over a binomial number of right completions."""
    return sum(
        math.comb(of, right) * chance**right * (1 - chance) ** (of - right) * estimator(right, of)
        for right in range(of + 1)
    )


@pytest.mark.parametrize("chance", [0.0, 0.05, 0.3, 0.5, 0.97, 1.0])
@pytest.mark.parametrize(("group", "of"), [(2, 2), (4, 8), (8, 8), (8, 16), (16, 16)])
def test_the_share_of_mixed_groups_is_unbiased(chance, group, of):
    found = expected(lambda right, n: estimate.informative_share(right, n, group), chance, of)
    assert found == pytest.approx(1 - chance**group - (1 - chance) ** group)


def test_the_plug_in_would_be_biased_as_the_design_says():
    plug_in = expected(lambda right, n: 1 - (right / n) ** 8 - (1 - right / n) ** 8, 0.05, 8)
    assert plug_in == pytest.approx(0.235, abs=0.001)
    exact = 1 - 0.05**8 - 0.95**8
    assert exact == pytest.approx(0.337, abs=0.001)


@pytest.mark.parametrize("chance", [0.05, 0.5])
@pytest.mark.parametrize("k", [1, 3, 8])
def test_pass_at_k_is_unbiased(chance, k):
    found = expected(lambda right, n: estimate.pass_at(right, n, k), chance, 8)
    assert found == pytest.approx(1 - (1 - chance) ** k)


def test_fewer_completions_than_the_group_are_not_judged():
    assert estimate.informative_share(3, 8, 16) is None
    assert estimate.pass_at(3, 8, 16) is None


def test_tallies_hold_distinct_prompts_and_leave_out_what_was_not_judged():
    pairs = judged([0.5] * 10, lost=0.3, seed=1)
    tallies = estimate.tally(pairs)
    assert len(tallies) == 10
    lost = sum(score.outcome == "infrastructure" for _, score in pairs)
    assert lost > 0
    assert sum(len(one.low) + len(one.training) for one in tallies) == 90 - lost
    assert sum(one.sampled for one in tallies) == 90


def test_the_histogram_counts_prompts_by_right_completions():
    assert estimate.histogram(estimate.tally(judged([0.0] * 3 + [1.0] * 2))) == [3, 0, 0, 0, 0, 0, 0, 0, 2]
    assert estimate.histogram([]) == []


@pytest.mark.parametrize(
    ("right", "of", "band"),
    [
        (0, 8, "too hard"),
        (1, 8, "hard"),
        (4, 8, "middle"),
        (7, 8, "easy"),
        (8, 8, "too easy"),
        (1, 2, "unknown"),
    ],
)
def test_bands(right, of, band):
    assert estimate.band([True] * right + [False] * (of - right)) == band


def test_quantiles_are_observed_values():
    found = estimate.quantiles(list(range(1, 101)))
    assert (found.p50, found.p90, found.p95, found.p99, found.longest) == (50, 90, 95, 99, 100)
    assert estimate.quantiles([-1, -1]).longest == -1
    assert estimate.quantiles([7]).p50 == 7
