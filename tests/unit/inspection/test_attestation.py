import pytest

from rlvr.inspection.attestation import Refusal, attest, changed_scores, renew
from rlvr.records.base import Fingerprints

PRINTS = Fingerprints(reward="r1", data="d1", model="m1", sampling="s1", labels="l1")


@pytest.fixture
def pool(made):
    return made.pool()


def attested(reading, pool, **fields):
    return attest(reading.labels, *pool, PRINTS, **fields)


def sixty():
    return [*range(30), *range(60, 90)]


def test_full_agreement_passes_with_its_bounds(made, pool):
    found = attested(made.Reading().agree(pool[1], sixty()), pool)
    assert found.passed
    assert found.refusals == []
    assert found.read == 60
    assert found.disagreement_upper == pytest.approx(0.0487, abs=1e-4)
    assert found.kappa == 1.0
    assert found.false_positives.upper == pytest.approx(1 - 0.05 ** (1 / 30))
    assert found.false_negatives.judged
    assert "ada read 60" in found.why


@pytest.mark.parametrize(("read", "passes"), [(49, False), (50, True)])
def test_fifty_readings_are_needed(made, pool, read, passes):
    numbers = [*range(25), *range(60, 60 + read - 25)]
    found = attested(made.Reading().agree(pool[1], numbers), pool)
    assert found.passed is passes
    assert passes or "49 of at least 50" in found.why


def test_an_open_disagreement_refuses(made, pool):
    found = attested(made.Reading().agree(pool[1], sixty()).judge(30, "fail"), pool)
    assert not found.passed
    assert found.open_disagreements == ["c0030"]
    assert found.table == {"pass_right": 30, "pass_unpaid": 0, "fail_right": 1, "fail_unpaid": 30}
    assert found.false_positives.errors == 1


def test_a_change_of_mind_with_a_reason_closes_it(made, pool):
    reading = made.Reading().agree(pool[1], sixty()).judge(30, "fail").change(30, "pass")
    found = attested(reading, pool)
    assert found.passed
    assert found.reversals == 1


def test_three_reversals_need_a_second_reader_who_reads_them(made, pool):
    reading = made.Reading().agree(pool[1], sixty())
    for number in (30, 31, 32):
        reading.judge(number, "fail").change(number, "pass")
    found = attested(reading, pool)
    assert not found.passed
    assert "a second person" in found.why
    reading.agree(pool[1], range(20), reader="bob")
    assert not attested(reading, pool).passed, "the reversed ones are not among them"
    reading.agree(pool[1], (30, 31, 32), reader="bob")
    found = attested(reading, pool)
    assert found.passed
    assert found.inter_reader.both_read == 23
    assert found.inter_reader.agreement == 1.0


def test_a_second_readers_own_reversals_need_the_first(made, pool):
    reading = made.Reading().agree(pool[1], sixty())
    for number in (40, 41, 42):
        reading.judge(number, "fail", reader="bob").change(number, "pass", reader="bob")
    found = attested(reading, pool)
    assert "bob changed 3 judgements" in found.why
    assert attested(reading.agree(pool[1], (40, 41, 42)), pool).passed


def test_a_second_reader_with_too_few_samples_is_not_enough(made, pool):
    reading = made.Reading().agree(pool[1], sixty())
    for number in (30, 31, 32):
        reading.judge(number, "fail").change(number, "pass")
    reading.agree(pool[1], (30, 31, 32), reader="bob")
    assert not attested(reading, pool).passed


def test_a_second_readers_disagreement_is_open_too(made, pool):
    reading = made.Reading().agree(pool[1], sixty()).judge(0, "fail", reader="bob")
    found = attested(reading, pool)
    assert found.open_disagreements == ["c0000"]
    assert found.inter_reader.agreement == 0.0


def test_unsure_waits_for_a_second_reading(made, pool):
    reading = made.Reading().agree(pool[1], sixty()).judge(31, "unsure")
    found = attested(reading, pool)
    assert not found.passed
    assert found.unsure == ["c0031"]
    assert found.read == 60
    assert attested(reading.judge(31, "pass"), pool).passed


def test_a_second_reader_decides_what_the_first_was_unsure_of(made, pool):
    reading = made.Reading().agree(pool[1], sixty()).judge(31, "unsure").judge(31, "pass", reader="bob")
    found = attested(reading, pool)
    assert found.unsure == []
    assert found.read == 61


def test_a_mend_asks_for_twenty_fresh_samples(made, pool):
    reading = made.Reading().agree(pool[1], sixty()).rescored(5)
    found = attested(reading, pool)
    assert not found.passed
    assert found.fresh.read == 0
    assert found.mends == 1
    reading.agree(pool[1], range(30, 49))
    assert not attested(reading, pool).passed
    found = attested(reading.agree(pool[1], [49]), pool)
    assert found.passed
    assert found.fresh.read == 20
    assert found.fresh.upper == pytest.approx(0.1391, abs=1e-4)
    assert found.read == 80


def test_a_rescore_without_any_change_asks_for_nothing(made, pool):
    found = attested(made.Reading().agree(pool[1], sixty()).rescored(), pool)
    assert found.passed
    assert found.fresh is None


def test_what_a_second_reader_reads_again_is_not_fresh(made, pool):
    reading = made.Reading().agree(pool[1], sixty()).rescored(5)
    found = attested(reading.agree(pool[1], range(20), reader="bob"), pool)
    assert found.fresh.read == 0


def test_labels_survive_a_mend_and_disagree_with_a_broken_one(made, pool):
    samples, scores = pool
    reading = made.Reading().agree(scores, sixty())
    broken = [made.score(n, "wrong" if n == 3 else one.outcome) for n, one in enumerate(scores)]
    found = attest(reading.labels, samples, broken, PRINTS)
    assert found.open_disagreements == ["c0003"]


def test_a_side_with_fewer_than_fifteen_is_not_judged(made):
    pool = made.pool(7, 100)
    found = attested(made.Reading().agree(pool[1], range(60)), pool)
    assert found.passed
    assert not found.false_positives.judged
    assert found.false_positives.upper is None
    assert found.false_positives.exist == 7


def test_fifteen_of_a_side_must_be_read_where_they_exist(made, pool):
    found = attested(made.Reading().agree(pool[1], [*range(14), *range(60, 110)]), pool)
    assert not found.passed
    assert "14 paid samples read, at least 15 exist" in found.why


def test_an_impossible_pace_is_refused(made, pool):
    found = attested(made.Reading().agree(pool[1], sixty(), seconds=0.4), pool)
    assert not found.passed
    assert "0.4 s" in found.why
    assert attested(made.Reading().agree(pool[1], sixty(), seconds=1.1), pool).passed


def test_a_slow_second_reader_does_not_excuse_a_fast_first_one(made, pool):
    reading = made.Reading().agree(pool[1], sixty(), seconds=0.3)
    reading.agree(pool[1], sixty(), reader="bob", seconds=9.0)
    assert not attested(reading, pool).passed


def test_infrastructure_is_neither_agreement_nor_disagreement(made, pool):
    samples, scores = pool
    failed = [made.score(n, "infrastructure") if n < 5 else one for n, one in enumerate(scores)]
    found = attest(made.Reading().agree(scores, sixty()).labels, samples, failed, PRINTS)
    assert found.read == 55
    assert found.open_disagreements == []


def test_a_run_asks_for_twenty(made, pool):
    reading = made.Reading().agree(pool[1], [*range(4), *range(60, 76)])
    found = attested(reading, pool, needed=20, source="base")
    assert found.passed


def test_nothing_read(made, pool):
    found = attested(made.Reading(), pool, reader="ada")
    assert not found.passed
    assert found.reader == "ada"
    assert found.kappa is None


class TestRenewal:
    def test_same_scores_renew(self, made, pool):
        reading = made.Reading().agree(pool[1], sixty())
        found = renew(attested(reading, pool), reading.labels, pool[1], list(pool[1]), reward="r2", at="now")
        assert found.passed
        assert found.made_from.reward == "r2"
        assert found.renewals[0].reward_before == "r1"
        assert found.renewals[0].compared == 120

    @pytest.mark.parametrize(
        "fields",
        [{"outcome": "wrong"}, {"total": 0.5}, {"total": 0.9999}],
        ids=["outcome", "total", "little"],
    )
    def test_any_other_score_closes(self, made, pool, fields):
        reading = made.Reading().agree(pool[1], sixty())
        new = [made.score(50, **fields) if n == 50 else one for n, one in enumerate(pool[1])]
        found = renew(attested(reading, pool), reading.labels, pool[1], new, reward="r2", at="now")
        assert isinstance(found, Refusal)
        assert found.changed == ["c0050"]
        assert "0 of them read" in found.why

    def test_another_reason_for_the_same_score_is_no_change(self, made, pool):
        new = [one.model_copy(update={"why": "put otherwise"}) for one in pool[1]]
        assert changed_scores(pool[1], new) == []

    def test_what_had_not_passed_is_not_renewed(self, made, pool):
        reading = made.Reading().agree(pool[1], range(10))
        found = renew(attested(reading, pool), reading.labels, pool[1], pool[1], reward="r2", at="now")
        assert isinstance(found, Refusal)
