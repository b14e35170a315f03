"""The verdict and the named cause, on models that are what they are said to be; 20 seeds each."""

import random

import pytest
from made import judged

from rlvr.probe.evidence import Facts
from rlvr.probe.steps import FILE, SFT
from rlvr.probe.verdict import judge

SEEDS = range(20)
READ = Facts(zeros_read=10, population=2000)


def verdict(pairs, facts=READ):
    ruling, evidence, _ = judge(pairs, facts)
    return ruling.verdict, evidence.causes.main


def spread(mean, concentration, seed, prompts=400):
    rng = random.Random(seed)
    return [rng.betavariate(mean * concentration, (1 - mean) * concentration) for _ in range(prompts)]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_model_that_succeeds_sometimes(seed):
    assert verdict(judged(spread(0.3, 2, seed), rolled=64, seed=seed)) == ("sweet spot", "wrong")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_model_that_never_succeeds(seed):
    pairs = judged([0.0] * 300, seed=seed)
    assert verdict(pairs) == ("no support", "wrong")
    assert judge(pairs, READ)[0].route == SFT


@pytest.mark.parametrize("seed", SEEDS)
def test_a_model_that_always_succeeds(seed):
    assert verdict(judged([0.995] * 64, seed=seed))[0] == "saturated"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_grader_that_pays_nothing(seed):
    facts = Facts(gold_checked=20, gold_paid=0, zeros_read=10, population=2000)
    pairs = judged([0.0] * 300, seed=seed)
    assert verdict(pairs, facts) == ("undecided", "grader")
    assert not judge(pairs, facts)[0].route


@pytest.mark.parametrize("seed", SEEDS)
def test_a_cap_that_ends_completions(seed):
    pairs = judged([0.0] * 300, cut=0.4, seed=seed)
    assert verdict(pairs) == ("undecided", "truncated")
    assert "max_completion_length" in judge(pairs, READ)[0].next_step


@pytest.mark.parametrize("seed", SEEDS)
def test_prompts_that_always_or_never_succeed_train_nothing(seed):
    chances = [float(random.Random(seed).random() < 0.5) for _ in range(1)] + [
        float(row % 2) for row in range(99)
    ]
    ruling, evidence, _ = judge(judged(chances, seed=seed), READ)
    assert 0.4 < evidence.rate < 0.6
    assert ruling.verdict == "saturated"
    assert "trains nothing" in ruling.why


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_well_formed(seed):
    assert verdict(judged([0.0] * 300, missed="ill-formed", seed=seed)) == ("no support", "ill-formed")


@pytest.mark.parametrize("seed", SEEDS)
def test_one_lucky_sample_opens_nothing(seed):
    chances = [0.0] * 400
    chances[seed * 7] = 1.0
    assert verdict(judged(chances, seed=seed))[0] == "rare"


def test_nobody_is_sent_to_sft_before_ten_zeros_are_read():
    pairs = judged([0.0] * 300)
    for read in (0, 9):
        ruling, _, _ = judge(pairs, Facts(zeros_read=read))
        assert (ruling.verdict, ruling.route) == ("undecided", "")
        assert f"({read} are)" in ruling.why
        assert "rlvr inspect" in ruling.next_step
    assert judge(pairs, Facts(zeros_read=10))[0].route == SFT


def test_a_file_without_a_reader_shows_the_zeros_and_names_no_route():
    ruling, _, _ = judge(judged([0.0] * 300), Facts(zeros_read=None, steps=FILE))
    assert (ruling.verdict, ruling.route) == ("no support", "")
    assert "read the ten zeros" in ruling.next_step


@pytest.mark.parametrize(("prompts", "more"), [(10, 289), (298, 1)])
def test_too_few_prompts_say_how_many_more_decide(prompts, more):
    ruling, _, _ = judge(judged([0.0] * prompts, training=8, rolled=prompts), Facts(zeros_read=10))
    assert (ruling.verdict, ruling.more) == ("undecided", more)
    assert f"{more} more distinct prompts" in ruling.why


def test_all_prompts_of_a_small_data_set_bound_its_mean():
    pairs = judged([0.0] * 60, training=8, rolled=60)
    assert judge(pairs, Facts(zeros_read=10, population=60))[0].verdict == "no support"
    assert judge(pairs, Facts(zeros_read=10, population=600))[0].verdict == "undecided"
    assert (
        judge(judged([0.0] * 60, training=3), Facts(zeros_read=10, population=60))[0].verdict == "undecided"
    )


def test_many_rollouts_of_few_prompts_are_few_prompts():
    """512 completions without success over 8 prompts say little; so do 200 with half of them right."""
    assert judge(judged([0.0] * 8, training=64), READ)[0].more == 291
    ruling, _, _ = judge(judged([0.5] * 5, training=40), READ)
    assert (ruling.verdict, ruling.more) == ("undecided", 15)


def test_one_completion_a_prompt_cannot_tell_groups():
    ruling, _, _ = judge(judged([0.4] * 200, training=0), READ)
    assert ruling.verdict == "undecided"
    assert "one completion a prompt" in ruling.why


def test_a_temperature_that_loses_everything_is_named():
    pairs = judged([0.6] * 200, training=0) + judged([0.0] * 64, low=0)
    ruling, _, _ = judge(pairs, READ)
    assert ruling.verdict == "rare"
    assert "temperature" in ruling.why
    assert "sampling.temperature" in ruling.next_step


def test_success_in_between_says_how_many_more():
    chances = [0.0] * 400
    for place in range(6):
        chances[100 + place] = 1.0
    ruling, _, _ = judge(judged(chances, rolled=0), READ)
    assert ruling.verdict == "undecided"
    assert ruling.more is not None
    assert 100 <= ruling.more <= 12_800


def test_a_verifier_that_fails_says_nothing_of_the_model():
    ruling, evidence, _ = judge(judged([0.3] * 100, lost=0.2), READ)
    assert ruling.verdict == "undecided"
    assert str(evidence.causes.infrastructure) in ruling.why
    assert judge(judged([0.3] * 100, lost=1.0), READ)[0].verdict == "undecided"
    assert judge(judged([0.3] * 100, lost=0.01), READ)[0].verdict == "sweet spot"


def test_unpaid_completions_that_hold_the_reference_doubt_the_grader():
    facts = Facts(unpaid_matches=60, zeros_read=10)
    assert verdict(judged([0.0] * 300), facts) == ("undecided", "grader")


def test_small_groups_of_a_hard_task_are_not_called_silent():
    """Two completions a prompt seldom differ at 6% success; eight would in 39% of prompts."""
    pairs = judged([0.06] * 400, low=0, training=2, rolled=400, seed=3)
    assert judge(pairs, READ)[0].verdict == "sweet spot"


def test_one_temperature_can_be_made_to_decide():
    """Success at the low temperature alone: enough when that decides, not when the other one does."""
    pairs = judged([0.3] * 200, training=0) + judged([0.02] * 64, low=0, seed=5)
    low = judge(pairs, Facts(zeros_read=10, decide_by="low"))[0]
    training = judge(pairs, Facts(zeros_read=10, decide_by="training"))[0]
    assert (low.verdict, low.decided_by) == ("sweet spot", "low")
    assert training.verdict == "undecided"
