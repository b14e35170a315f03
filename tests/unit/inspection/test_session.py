import pytest

from rlvr.errors import UsageError
from rlvr.inspection.folder import InspectionFolder
from rlvr.inspection.session import OutOfDate, Pool, Rules, Sitting
from rlvr.records.base import Fingerprints
from rlvr.records.inspection import Reopening


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def open_sitting(made, tmp_path):
    samples, scores = made.pool(80, 80)

    def start(
        reader="ada",
        scores=scores,
        reward="r1",
        rules=None,
        rescore=None,
        clock=None,
        at="2026-01-02T00:00:00Z",
    ):
        pool = Pool(samples, scores, Fingerprints(reward=reward, data="d", model="m", sampling="s"), ["x"])
        ticking = clock or Clock()
        sitting = Sitting(
            InspectionFolder.of_gates(tmp_path),
            pool,
            reader,
            rules or Rules(),
            clock=ticking,
            rescore=rescore,
            utc=lambda: at,
        )
        sitting.ticking = ticking
        return sitting

    return start


def judge(sitting, verdict=None, seconds=4.0):
    turn = sitting.turn()
    identifier = turn.sample.completion_id
    sitting.ticking.now += seconds
    if verdict is None:
        verdict = "pass" if sitting._accepted(identifier) else "fail"
    return identifier, sitting.judge(identifier, verdict, sitting.revision(identifier))


def read_all(sitting):
    while sitting.queue():
        judge(sitting)


def against(sitting, identifier):
    return "fail" if sitting._accepted(identifier) else "pass"


def test_sixty_are_drawn_and_read_one_by_one(open_sitting):
    sitting = open_sitting()
    assert len(sitting.drawn) == 60
    read_all(sitting)
    found = sitting.folder.attestation()
    assert found.passed
    assert found.made_from.labels == sitting.folder.labels_fingerprint()
    assert found.pace.median_seconds == 4.0


def test_seconds_run_from_the_first_time_it_was_shown(open_sitting):
    sitting = open_sitting()
    sitting.turn()
    sitting.ticking.now += 5
    sitting.turn()  # a reload of the page shows it again
    identifier, _ = judge(sitting, seconds=2.0)
    assert sitting.labels.of("ada", identifier).seconds == [7.0]


def test_what_is_not_shown_cannot_be_judged(open_sitting):
    sitting = open_sitting()
    sitting.turn()
    with pytest.raises(OutOfDate):
        sitting.judge(sitting.drawn[5], "pass", 0)
    with pytest.raises(OutOfDate):
        sitting.judge("nowhere", "pass", 0)


def test_nothing_is_revealed_before_the_key(open_sitting):
    sitting = open_sitting()
    with pytest.raises(OutOfDate):
        sitting.reveal(sitting.turn().sample.completion_id)
    identifier, found = judge(sitting, "unsure")
    assert found is None
    with pytest.raises(OutOfDate):
        sitting.reveal(identifier)


def test_an_unsure_one_comes_back_at_the_end(open_sitting):
    sitting = open_sitting()
    identifier, _ = judge(sitting, "unsure")
    assert sitting.queue()[-1] == identifier
    while len(sitting.queue()) > 1:
        judge(sitting)
    assert sitting.turn().reading == 2
    judge(sitting)
    assert sitting.close().passed


def test_twice_unsure_stays_open_until_somebody_decides(open_sitting):
    sitting = open_sitting()
    identifier, _ = judge(sitting, "unsure")
    while sitting.queue():
        turn = sitting.turn()
        judge(sitting, "unsure" if turn.sample.completion_id == identifier else None)
    assert not sitting.close().passed
    second = open_sitting("bob")
    assert second.queue()[0] == identifier
    judge(second)
    assert second.close().passed


def test_a_tab_that_is_behind_is_told(open_sitting):
    sitting = open_sitting()
    identifier, _ = judge(sitting)
    with pytest.raises(OutOfDate):
        sitting.judge(identifier, "pass", 0)
    with pytest.raises(OutOfDate):
        sitting.change(identifier, "fail", "a reason", 0)
    assert sitting.labels.events == 1


def test_a_change_needs_a_reason_and_another_verdict(open_sitting):
    sitting = open_sitting()
    identifier, found = judge(sitting)
    said = found.judgement.verdict
    other = "fail" if said == "pass" else "pass"
    with pytest.raises(UsageError, match="without a reason"):
        sitting.change(identifier, other, "  ", 1)
    with pytest.raises(UsageError, match="already"):
        sitting.change(identifier, said, "a reason", 1)
    assert sitting.change(identifier, other, "a reason", 1).agrees is False


def test_going_on_after_a_stop(open_sitting):
    first = open_sitting()
    for _ in range(10):
        judge(first)
    here = first.turn().sample.completion_id
    again = open_sitting()
    assert again.turn().sample.completion_id == here
    assert len(again.history()) == 10


def mended(made, sitting, identifiers):
    """Scores of a reward that judges these the other way round."""
    turned = {"right": "wrong", "wrong": "right"}
    return [
        made.score(int(one.completion_id[1:]), turned[one.outcome])
        if one.completion_id in identifiers
        else one
        for one in sitting.pool.scores
    ]


def test_a_mend_draws_twenty_fresh_ones_and_passes(open_sitting, made):
    sitting = open_sitting()
    wrong = []
    while sitting.queue():
        turn = sitting.turn()
        identifier = turn.sample.completion_id
        if len(wrong) < 3:
            judge(sitting, against(sitting, identifier))
            wrong.append(identifier)
        else:
            judge(sitting)
    assert len(sitting.close().open_disagreements) == 3
    new = mended(made, sitting, wrong)
    pool = Pool(sitting.pool.samples, new, sitting.pool.fingerprints.model_copy(update={"reward": "r2"}))
    sitting.rescore = lambda: pool
    found = sitting.mend()
    assert (len(found.changed), found.labelled, found.closed, found.fresh_needed) == (3, 3, 3, 20)
    assert len(sitting.queue()) == 20
    assert not sitting.close().passed
    read_all(sitting)
    assert sitting.close().passed
    assert sitting.close().made_from.reward == "r2"


def test_a_mend_scored_by_another_command_is_noticed(open_sitting, made):
    sitting = open_sitting()
    read_all(sitting)
    new = mended(made, sitting, {sitting.drawn[0]})
    again = open_sitting(scores=new, reward="r2")
    assert again.mended_before == [sitting.drawn[0]]
    assert again.close().mends == 1
    assert not again.close().passed
    assert len(again.queue()) == 20


def test_the_same_scores_under_another_reward_renew(open_sitting):
    read_all(open_sitting())
    again = open_sitting(reward="r2")
    found = again.close()
    assert found.passed
    assert found.renewals[0].reward_after == "r2"
    assert again.queue() == []


def test_a_kill_between_event_and_scores_asks_once_too_often_at_worst(open_sitting, made, monkeypatch):
    sitting = open_sitting()
    read_all(sitting)
    new = mended(made, sitting, {sitting.drawn[0]})
    monkeypatch.setattr(InspectionFolder, "keep_scores", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        open_sitting(scores=new, reward="r2")
    monkeypatch.undo()
    again = open_sitting(scores=new, reward="r2")
    assert again.close().mends == 2
    assert len(again.queue()) == 20


def test_rescoring_the_same_reward_changes_nothing(open_sitting):
    sitting = open_sitting()
    sitting.rescore = lambda: sitting.pool
    events = sitting.labels.events
    assert sitting.mend().same_reward
    assert sitting.labels.events == events


def test_where_nothing_can_be_scored_again(open_sitting):
    with pytest.raises(UsageError, match="scored again"):
        open_sitting().mend()


def test_a_pool_without_further_samples_says_so(made, tmp_path):
    samples, scores = made.pool(26, 26)
    pool = Pool(samples, scores, Fingerprints(reward="r1"))
    clock = Clock()
    sitting = Sitting(InspectionFolder.of_gates(tmp_path), pool, "ada", clock=clock)
    sitting.ticking = clock
    read_all(sitting)
    assert not sitting.exhausted
    turned = [made.score(0, "wrong"), *scores[1:]]
    sitting.rescore = lambda: Pool(samples, turned, Fingerprints(reward="r2"))
    sitting.mend()
    assert sitting.exhausted


def test_a_reopened_gate_asks_for_twenty_more(open_sitting):
    sitting = open_sitting(at="2026-01-02T00:00:00Z")
    read_all(sitting)
    folder = sitting.folder
    folder.reopen(Reopening(at="2026-01-03T00:00:00Z", run="base-1", step=40, symptom="reward pays length"))
    closed = folder.attestation()
    assert not closed.passed
    assert "reward pays length" in closed.why
    again = open_sitting(at="2026-01-04T00:00:00Z")
    assert len(again.queue()) == 20
    read_all(again)
    assert again.close().passed


def test_reading_the_run_answers_the_reopening(open_sitting):
    sitting = open_sitting()
    read_all(sitting)
    folder = sitting.folder
    folder.reopen(Reopening(at="2026-01-03T00:00:00Z", run="base-1", symptom="reward hacking"))
    assert folder.answer_reopenings("other") == 0
    assert not folder.attestation().passed
    assert folder.answer_reopenings("base-1") == 1
    assert folder.attestation().passed


def test_labels_are_kept_as_cases_after_starting_over(open_sitting):
    sitting = open_sitting()
    for _ in range(5):
        judge(sitting)
    sitting.folder.start_over()
    again = open_sitting()
    judge(again)
    cases = again.folder.cases()
    assert 5 <= len(cases) <= 6
    assert all(sample.text and judgement.decided for sample, judgement in cases)


def test_a_second_reader_is_asked_for_twenty(open_sitting):
    first = open_sitting()
    read_all(first)
    second = open_sitting("bob")
    assert second.goal() == 20
    assert len(second.queue()) == 60
