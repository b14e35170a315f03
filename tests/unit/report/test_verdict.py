import pytest

from rlvr.report.verdict import judge


def test_improved_needs_a_gain_and_twenty_readings(made):
    found = judge(
        made.manifest(),
        made.evaluation(made.results(20, 80)),
        made.evaluation(made.results(70, 30)),
        made.reading(),
    )
    assert found.word == "improved"
    assert "from 20.0% to 70.0% (+50.0 points" in found.sentence
    assert found.change.low > 0


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"read": 19}, "improved, unread"),
        ({"simulated": True}, "improved, unread"),
        ({"open_disagreements": ["x"]}, "improved, disputed"),
    ],
)
def test_a_gain_that_was_not_read_properly(made, changes, word):
    before, after = made.evaluation(made.results(20, 80)), made.evaluation(made.results(70, 30))
    found = judge(made.manifest(), before, after, made.reading(**changes))
    assert found.word == word
    assert found.next == "rlvr inspect --run base-1"


def test_nobody_read(made):
    before, after = made.evaluation(made.results(20, 80)), made.evaluation(made.results(70, 30))
    found = judge(made.manifest(), before, after, None)
    assert found.word == "improved, unread"
    assert found.notes[0].startswith("0 of the 20 on-policy completions")


def test_the_simulated_reader_counts_in_the_demo_alone(made):
    before, after = made.evaluation(made.results(20, 80)), made.evaluation(made.results(70, 30))
    assert judge(made.manifest(is_demo=True), before, after, made.reading(simulated=True)).word == "improved"


def test_worse_and_no_change(made):
    base = made.evaluation(made.results(50, 50))
    assert judge(made.manifest(), base, made.evaluation(made.results(20, 80)), made.reading()).word == "worse"
    assert (
        judge(made.manifest(), base, made.evaluation(made.results(51, 49)), made.reading()).word
        == "no change shown"
    )
    same = judge(made.manifest(), base, base, made.reading())
    assert same.word == "no change shown"
    assert same.next == "rlvr watch base-1"


@pytest.mark.parametrize(
    ("part", "words"),
    [("reward", "the reward"), ("held_out", "the held-out prompts"), ("sampling", "sampling")],
)
def test_measurements_of_different_things_are_not_compared(made, part, words):
    moved = made.FINGERPRINTS.model_copy(update={part: "other"})
    before = made.evaluation(made.results(20, 80))
    found = judge(made.manifest(), before, made.evaluation(made.results(70, 30), moved), made.reading())
    assert found.word == "not comparable"
    assert words in found.sentence


def test_no_shared_prompt(made):
    before = made.evaluation(made.results(20, 80))
    after = made.evaluation(made.results(70, 30, start=1000))
    assert judge(made.manifest(), before, after, None).word == "not comparable"


def test_the_same_code_as_the_reward_is_said(made):
    before = made.evaluation(made.results(20, 80), independent=False)
    after = made.evaluation(made.results(70, 30), independent=False)
    assert "is the reward's own code" in " ".join(judge(made.manifest(), before, after, made.reading()).notes)


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("running", "Not measured yet: the run is running at step 100."),
        ("stopped", "Not measured: the run stopped (constant reward)."),
        ("finished", "Not measured: held-out accuracy after training is missing."),
    ],
)
def test_without_an_evaluation_the_reason_is_said(made, state, said):
    run = made.manifest(state=state, stopped="constant\nreward" if state == "stopped" else "")
    assert judge(run, made.evaluation(made.results(1, 1)), None, None).sentence == said


def test_statement_leaves_the_word_out(made):
    found = judge(
        made.manifest(), made.evaluation(made.results(20, 80)), made.evaluation(made.results(70, 30)), None
    )
    assert found.statement.startswith("Held-out accuracy rose")
    assert judge(None, None, None, None).statement.startswith("This folder holds no held-out")
