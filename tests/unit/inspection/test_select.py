import collections

import pytest

from rlvr.errors import DataError
from rlvr.inspection.select import count_sides, paid_quota, require_enough, select_samples


def sides(drawn, scores):
    paid = {one.completion_id for one in scores if one.outcome == "right"}
    return sum(one in paid for one in drawn), sum(one not in paid for one in drawn)


def test_half_paid_half_not_and_repeatable(made):
    samples, scores = made.pool(100, 300)
    drawn = select_samples(samples, scores, 60, seed=1)
    assert sides(drawn, scores) == (30, 30)
    assert drawn == select_samples(samples, scores, 60, seed=1)
    assert drawn != select_samples(samples, scores, 60, seed=2)


def test_order_says_nothing_of_the_score(made):
    samples, scores = made.pool()
    paid = {one.completion_id for one in scores if one.outcome == "right"}
    drawn = select_samples(samples, scores, 60, seed=3)
    runs = sum(one in paid for one in drawn[:30])
    assert 8 <= runs <= 22


def test_all_that_exist_when_few_are_paid(made):
    samples, scores = made.pool(7, 200)
    assert sides(select_samples(samples, scores, 60), scores) == (7, 53)
    samples, scores = made.pool(200, 7)
    assert sides(select_samples(samples, scores, 60), scores) == (53, 7)


@pytest.mark.parametrize(
    ("paid", "unpaid", "count", "least_paid", "least_unpaid", "quota"),
    [
        (50, 50, 20, 0, 0, 10),
        (50, 50, 20, 14, 0, 14),
        (50, 50, 20, 0, 14, 6),
        (3, 50, 20, 14, 0, 3),
        (50, 4, 20, 0, 0, 16),
        (0, 50, 60, 15, 15, 0),
        (50, 50, 20, 15, 15, 10),
    ],
)
def test_quota(paid, unpaid, count, least_paid, least_unpaid, quota):
    assert paid_quota(paid, unpaid, count, least_paid, least_unpaid) == quota


def test_every_score_level_is_drawn(made):
    samples = [made.sample(number) for number in range(200)]
    scores = [
        made.score(number, "wrong", total=level)
        for number, level in enumerate([0.0] * 170 + [0.1] * 15 + [0.2] * 15)
    ]
    drawn = select_samples(samples, scores, 60)
    totals = {one.completion_id: one.total for one in scores}
    counts = collections.Counter(totals[one] for one in drawn)
    assert counts[0.1] == 15
    assert counts[0.2] == 15


def test_distinct_prompts_come_first(made):
    samples = [made.sample(number, f"it is {number}", row=number // 8) for number in range(480)]
    scores = [made.score(number, "wrong") for number in range(480)]
    rows = {one.completion_id: one.row for one in samples}
    drawn = select_samples(samples, scores, 60)
    assert len({rows[one] for one in drawn}) == 60


def test_near_duplicates_are_removed_but_not_across_the_verdict(made):
    long = " ".join(f"word{number}" for number in range(200))
    samples = [
        made.sample(0, long + " 4", row=2),
        made.sample(1, long + "  4", row=2),
        made.sample(2, long + " so 4", row=2),
        made.sample(3, long + " 5", row=2),
    ]
    scores = [made.score(number) for number in range(3)] + [made.score(3, "wrong")]
    drawn = select_samples(samples, scores, 10)
    assert len(drawn) == 2
    assert "c0003" in drawn


def test_the_same_unreadable_text_counts_once(made):
    samples = [made.sample(number, "!!!!!!!!") for number in range(40)]
    scores = [made.score(number, "ill-formed") for number in range(40)]
    assert len(select_samples(samples, scores, 20)) == 1
    scores = [made.score(number, "wrong") for number in range(40)]
    assert len(select_samples(samples, scores, 20)) == 20


def test_unjudged_samples_are_left_out(made):
    samples, scores = made.pool(30, 30)
    scores += [made.score(60, "infrastructure"), made.score(61, "not-applicable")]
    samples += [made.sample(60), made.sample(61)]
    drawn = select_samples(samples, scores, 100)
    assert len(drawn) == 60
    assert not {"c0060", "c0061"} & set(drawn)


def test_excluded_ones_never_come_again(made):
    samples, scores = made.pool()
    first = select_samples(samples, scores, 60, seed=1)
    second = select_samples(samples, scores, 60, seed=1, exclude=set(first))
    assert not set(first) & set(second)
    assert len(second) == 60


def test_too_few_are_refused(made):
    samples, scores = made.pool(20, 20)
    with pytest.raises(DataError, match="40 distinct completions"):
        require_enough(samples, scores, 50)
    samples, scores = made.pool(25, 25)
    require_enough(samples, scores, 50)
    assert count_sides(samples, scores) == (25, 25)
