import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rlvr.inspection.agreement import Table, binomial_cdf, interval, kappa, tabulate, upper_bound


@pytest.mark.parametrize(("errors", "read", "bound"), [(0, 60, 0.0487), (0, 20, 0.1391), (0, 299, 0.00997)])
def test_bounds_of_the_design(errors, read, bound):
    assert upper_bound(errors, read) == pytest.approx(bound, abs=5e-5)


@given(st.integers(1, 300), st.data())
def test_bound_is_the_beta_quantile(read, data):
    errors = data.draw(st.integers(0, read))
    expected = 1.0 if errors == read else stats.beta.ppf(0.95, errors + 1, read - errors)
    assert upper_bound(errors, read) == pytest.approx(expected, abs=1e-9)


def test_bound_covers_as_often_as_it_says():
    share, read = 0.1, 40
    covered = sum(
        stats.binom.pmf(errors, read, share)
        for errors in range(read + 1)
        if upper_bound(errors, read) >= share
    )
    assert covered >= 0.95


def test_bound_of_nothing_and_of_impossible_counts():
    assert upper_bound(0, 0) is None
    with pytest.raises(ValueError, match="3 errors in 2"):
        upper_bound(3, 2)


@given(st.integers(1, 200), st.data())
def test_interval_is_clopper_pearson(read, data):
    successes = data.draw(st.integers(0, read))
    low, high = interval(successes, read)
    found = stats.binomtest(successes, read).proportion_ci(0.95, method="exact")
    assert (low, high) == pytest.approx((found.low, found.high), abs=1e-9)


def test_binomial_tail():
    assert binomial_cdf(3, 10, 0.25) == pytest.approx(stats.binom.cdf(3, 10, 0.25))
    assert binomial_cdf(0, 10, 0.0) == 1.0
    assert binomial_cdf(9, 10, 1.0) == 0.0


def test_kappa_by_hand():
    # Two by two of 45, 15, 25, 15: observed 0.60, chance 0.54 (Cohen's own kind of example).
    assert kappa(Table(45, 15, 25, 15)).value == pytest.approx((0.60 - 0.54) / 0.46)


def test_kappa_of_full_agreement_and_of_full_disagreement():
    assert kappa(Table(30, 0, 0, 30)).value == 1.0
    assert kappa(Table(0, 30, 30, 0)).value == -1.0


def test_kappa_is_undefined_when_all_say_one_thing():
    found = kappa(Table(60, 0, 0, 0))
    assert found.value is None
    assert "undefined" in found.note
    assert kappa(Table()).value is None


def test_table_counts_each_cell():
    pairs = [(True, True), (True, True), (True, False), (False, True), (False, False)]
    assert tabulate(pairs) == Table(2, 1, 1, 1)
    assert tabulate(pairs).agreed == 3
