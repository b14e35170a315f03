"""When failures of infrastructure stop a run."""

from __future__ import annotations

import pytest
from scipy.stats import binomtest

from rlvr.rewards.failures import FailureCount


@pytest.mark.parametrize(("failed", "rows"), [(1, 10), (11, 600), (30, 1000), (500, 500)])
def test_the_bound_is_the_exact_one(failed: int, rows: int) -> None:
    expected = binomtest(failed, rows, alternative="greater").proportion_ci(0.95, method="exact").low
    assert FailureCount(rows, failed).lower_bound() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("failed", "rows", "stops"),
    [
        (0, 10_000, False),
        (499, 499, False),
        (9, 500, False),
        (10, 500, True),
        (12, 500, True),
        (500, 500, True),
        (110, 10_000, False),
        (130, 10_000, True),
    ],
)
def test_it_stops_only_when_sure(failed: int, rows: int, stops: bool) -> None:
    assert (FailureCount(rows, failed, "why").stop_reason() is not None) is stops


def test_counts_add_up_and_keep_the_latest_reason() -> None:
    count = FailureCount().add(8, 1, "first").add(8, 0)
    assert (count.rows, count.failed, count.last, count.share) == (16, 1, "first", 1 / 16)
