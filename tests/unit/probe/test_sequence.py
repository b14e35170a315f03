"""The confidence sequence: fair under the hypothesis, right at every sample size at once."""

import math

import numpy
import pytest

from rlvr.probe import sequence


@pytest.mark.parametrize("mean", [0.01, 0.05, 0.5, 0.9])
@pytest.mark.parametrize("other", [0.001, 0.02, 0.5, 0.99])
def test_each_bet_is_fair_under_its_hypothesis(mean, other):
    zero, one = numpy.exp(sequence.log_factors([0.0, 1.0], mean, [other]))[:, 0]
    assert mean * one + (1 - mean) * zero == pytest.approx(1)
    half = numpy.exp(sequence.log_factors([0.5], mean, [other]))[0, 0]
    assert half == pytest.approx((one + zero) / 2)  # linear, so fair for shares in between too


def test_the_starting_capital_is_one():
    assert sum(math.exp(one) for one in sequence.LOG_WEIGHTS) == pytest.approx(1)


@pytest.mark.parametrize("mean", [0.01, 0.05, 0.3])
@pytest.mark.parametrize("side", ["above", "below"])
def test_looking_again_and_again_keeps_the_error(mean, side):
    """Ville: the capital ever reaches 20 in at most one of 20 models, although few prompts hold all success."""
    rng = numpy.random.default_rng(7)
    models, looks = 1000, numpy.arange(10, 1001, 10)
    chances = 0.5 * (rng.random((models, 1000)) < 2 * mean)
    right = (rng.random(chances.shape) < chances).cumsum(axis=1)[:, looks - 1]
    others = sequence.alternatives_above(mean) if side == "above" else sequence.alternatives_below(mean)
    zero, one = sequence.log_factors([0.0, 1.0], mean, others)
    totals = (looks - right)[:, :, None] * zero + right[:, :, None] * one + numpy.array(sequence.LOG_WEIGHTS)
    ever = (numpy.logaddexp.reduce(totals, axis=2).max(axis=1) >= math.log(20)).mean()
    assert 0 < ever <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / models)


@pytest.mark.parametrize(("right", "of"), [(1, 10), (5, 50), (20, 400), (64, 64), (0, 64)])
def test_bounds_stand_around_the_mean_and_refute_what_is_outside(right, of):
    seen = {share: number for share, number in ((1.0, right), (0.0, of - right)) if number}
    low, high = sequence.lower_bound(seen), sequence.upper_bound(seen)
    assert 0 <= low <= right / of <= high <= 1
    if low > 0:
        assert sequence.log_capital_above(seen, low * 0.99) > math.log(20)
    if high < 1:
        assert sequence.log_capital_below(seen, high * 1.01) > math.log(20)
    assert (low == 0) == (right == 0)
    assert (high == 1) == (right == of)


def test_more_prompts_narrow_the_bounds():
    widths = []
    for times in (1, 4, 16):
        seen = {1.0: 3 * times, 0.0: 17 * times}
        widths.append(sequence.upper_bound(seen) - sequence.lower_bound(seen))
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < widths[0] / 2


def test_shares_in_between_say_more_than_luck():
    """64 prompts that each succeed a little are surer than 64 prompts of which a few always do."""
    spread = sequence.log_capital_above({0.0: 48, 0.125: 16}, 0.01)
    held = sequence.log_capital_above({0.0: 62, 1.0: 2}, 0.01)
    assert spread > held + 1


def test_zero_of_299_prompts_is_under_one_percent():
    assert sequence.prompts_for_zero_bound(0.01) == 299
    assert sequence.zero_bound(299) < 0.01 <= sequence.zero_bound(298)
    assert sequence.zero_bound(0) == 1.0


def test_nothing_seen_says_nothing():
    assert (sequence.lower_bound({}), sequence.upper_bound({})) == (0.0, 1.0)
    assert sequence.log_capital_above({}, 0.5) == 0.0
