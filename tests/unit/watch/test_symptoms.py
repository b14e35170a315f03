"""Each symptom on runs whose answer is known, and on small histories made for one rule."""

import math
from itertools import pairwise

import numpy as np
import pytest

from rlvr.watch.facts import Facts
from rlvr.watch.history import history_from_rows
from rlvr.watch.simulate import ILLNESSES, Setting, simulate
from rlvr.watch.symptoms import judge_history


@pytest.mark.parametrize("seed", range(6))
def test_a_healthy_run_raises_no_alarm(judge, seed: int) -> None:
    found = judge(None, seed, seed % 2 == 0)
    assert [(a.name, a.evidence) for a in found.alarms] == []


@pytest.mark.parametrize("illness", ILLNESSES)
def test_every_illness_is_named_at_full_strength(judge, make, illness: str) -> None:
    found = judge(illness, 3).named(illness)
    assert found is not None, [c for c in judge(illness, 3).clear if c.name == illness]
    assert found.level != "information"
    assert found.evidence
    assert found.action
    assert found.source
    assert found.refuted_by
    onset = make(illness, 3).onset_step
    if onset > 1 and found.since_step is not None:
        assert found.since_step >= 0.5 * onset


@pytest.mark.parametrize("illness", ILLNESSES)
def test_nothing_is_claimed_twice_and_everything_is_accounted_for(judge, illness: str) -> None:
    found = judge(illness, 3)
    names = [v.name for v in (*found.symptoms, *found.clear, *found.not_judged)]
    assert sorted(names) == sorted(ILLNESSES)


def test_findings_stand_loudest_first(judge) -> None:
    levels = [
        ("information", "warning", "critical").index(s.level) for s in judge("reward-crash", 3).symptoms
    ]
    assert all(a >= b for a, b in pairwise(levels))


def test_judging_is_pure(make) -> None:
    run = make("reward-hacking", 3)
    once = judge_history(run.history(), run.completions(), run.facts)
    assert once == judge_history(run.history(), run.completions(), run.facts)


def rows(count: int, **curves) -> list[dict]:
    rng = np.random.default_rng(0)
    return [
        {
            "step": i + 1,
            **{n.replace("__", "/"): f(i / (count - 1)) + 0.01 * rng.normal() for n, f in curves.items()},
        }
        for i in range(count)
    ]


def verdict(name: str, facts: Facts | None = None, **curves):
    found = judge_history(history_from_rows(rows(60, **curves)), None, facts or Facts())
    return found, found.named(name)


def test_entropy_lost_while_reward_rises_is_learning() -> None:
    found, symptom = verdict(
        "entropy-collapse", entropy=lambda t: math.exp(-3 * t), reward=lambda t: 0.2 + 0.7 * t
    )
    assert symptom is not None
    assert symptom.level == "information"
    assert "no collapse" in symptom.evidence
    assert any("collapsed" in a.question for a in found.answers)


def test_entropy_lost_for_nothing_is_a_collapse() -> None:
    _, symptom = verdict("entropy-collapse", entropy=lambda t: math.exp(-4 * t), reward=lambda t: 0.3)
    assert symptom is not None
    assert symptom.level == "warning"
    assert symptom.since_step is not None
    assert 30 <= symptom.since_step <= 50
    assert symptom.measures[0].low is not None


def test_a_run_that_stands_still_with_its_entropy_spent_is_a_collapse_although_it_rose_before() -> None:
    _, symptom = verdict(
        "entropy-collapse",
        entropy=lambda t: math.exp(-8 * t),
        reward=lambda t: min(0.2 + 0.8 * t, 0.4),
        frac_reward_zero_std=lambda t: min(0.3 + t, 0.9),
    )
    assert symptom is not None
    assert symptom.level != "information"
    assert "all wrong" in symptom.evidence


def test_the_real_collapse_that_other_tools_passed() -> None:
    """Entropy .96 to .07, length 53 to 3, groups without variance .4 to .9."""
    found, symptom = verdict(
        "entropy-collapse",
        entropy=lambda t: 0.96 * (0.07 / 0.96) ** min(1, 1.3 * t),
        completions__mean_length=lambda t: 53 * (3 / 53) ** t,
        frac_reward_zero_std=lambda t: 0.4 + 0.5 * t,
        reward=lambda t: 0.25 - 0.2 * t,
    )
    assert symptom is not None
    assert symptom.level == "critical"
    assert {"length-collapse", "no-signal", "reward-crash"} <= {a.name for a in found.alarms}


def test_all_right_and_all_wrong_groups_get_opposite_advice() -> None:
    _, right = verdict(
        "no-signal", reward=lambda t: 0.5 + 0.4 * t, frac_reward_zero_std=lambda t: 0.3 + 0.45 * t
    )
    _, wrong = verdict("no-signal", reward=lambda t: 0.05, frac_reward_zero_std=lambda t: 0.8)
    assert right is not None
    assert wrong is not None
    assert (right.level, wrong.level) == ("information", "warning")
    assert "harder prompts" in right.action
    assert "SFT" in wrong.action


def test_trl_s_share_is_not_believed_where_it_cannot_be() -> None:
    _, symptom = verdict("no-signal", reward=lambda t: 0.97, frac_reward_zero_std=lambda t: 0.0)
    assert symptom is None or symptom.level == "information"
    silent = [
        {"step": i, "reward": 0.2, "reward_std": 1.2e-7, "frac_reward_zero_std": 0.0} for i in range(1, 40)
    ]
    symptom = judge_history(history_from_rows(silent)).named("no-signal")
    assert symptom is not None
    assert symptom.level == "critical"


def test_truncation_that_falls_is_information_and_one_that_stays_a_warning() -> None:
    _, falls = verdict("truncation", completions__clipped_ratio=lambda t: max(0.0, 0.4 - t))
    _, stays = verdict("truncation", completions__clipped_ratio=lambda t: 0.25)
    _, none = verdict("truncation", completions__clipped_ratio=lambda t: 0.03)
    assert falls is not None
    assert falls.level == "information"
    assert stays is not None
    assert stays.level == "warning"
    assert none is None


def test_hacking_is_not_judged_by_the_reward_s_own_code() -> None:
    found, symptom = verdict("reward-hacking", reward=lambda t: 0.2 + 0.6 * t)
    assert symptom is None
    needs = next(n for n in found.not_judged if n.name == "reward-hacking")
    assert "same code" in needs.needs or "own code" in needs.needs


def test_form_at_its_ceiling_while_correctness_stalls_is_hacking() -> None:
    _, symptom = verdict(
        "reward-hacking",
        reward=lambda t: 0.3 + 0.2 * min(1, 3 * t),
        rewards__format_reward__mean=lambda t: min(1.0, 0.3 + 2.5 * t),
        rewards__accuracy_reward__mean=lambda t: 0.25,
    )
    assert symptom is not None
    assert symptom.suspects_reward
    assert "accuracy_reward went from 0.25 to 0.25" in symptom.evidence


def test_engine_mismatch_has_a_limit_for_each_unit() -> None:
    healthy = {"sampling__sampling_logp_difference__mean": lambda t: 0.02, "reward": lambda t: 0.3 + 0.5 * t}
    assert verdict("engine-mismatch", **healthy)[1] is None
    _, nats = verdict("engine-mismatch", sampling__sampling_logp_difference__mean=lambda t: 0.02 + 0.2 * t)
    rng = np.random.default_rng(1)
    probable = [
        {"step": i, "training/rollout_probs_diff_mean": 0.025 + 0.001 * rng.normal(), "reward": 0.3}
        for i in range(1, 60)
    ]
    _, shares = None, judge_history(history_from_rows(probable)).named("engine-mismatch")
    assert nats is not None
    assert "nats" in nats.measures[0].what
    assert shares is not None
    assert shares.level == "warning"


def test_experts_are_judged_only_where_there_are_any() -> None:
    curves = {"sampling__importance_sampling_ratio__max": lambda t: 1.4 + 12 * t, "reward": lambda t: 0.4}
    unknown, nothing = verdict("moe-instability", **curves)
    assert nothing is None
    assert any(n.name == "moe-instability" and "config.json" in n.needs for n in unknown.not_judged)
    assert verdict("moe-instability", Facts(experts=False), **curves)[1] is None
    _, symptom = verdict("moe-instability", Facts(experts=True), **curves)
    assert symptom is not None
    assert "GSPO" in symptom.action


@pytest.mark.parametrize(
    ("kl", "level"),
    [
        (lambda t: 0.2 * t, None),
        (lambda t: 0.02 + 3 * t**8, "warning"),
        (lambda t: 0.02 + 12 * t**6, "critical"),
        (lambda t: -0.5 * t, "warning"),
    ],
)
def test_kl_in_both_directions(kl, level: str | None) -> None:
    _, symptom = verdict("kl-blow-up", kl=kl, reward=lambda t: 0.4)
    assert (symptom.level if symptom else None) == level


def test_gradients_that_are_not_finite() -> None:
    base = [{"step": i, "grad_norm": 0.5, "reward": 0.3 + i / 100} for i in range(1, 61)]
    lasting = [row | ({"grad_norm": math.nan} if row["step"] > 40 else {}) for row in base]
    found = judge_history(history_from_rows(lasting)).named("gradient-spike")
    assert found is not None
    assert (found.level, found.since_step, found.until_step) == ("critical", 41, None)
    early = [row | ({"grad_norm": math.inf} if row["step"] == 2 else {}) for row in base]
    found = judge_history(history_from_rows(early)).named("gradient-spike")
    assert found is not None
    assert found.level == "information"


def test_gradients_that_fall_by_a_hundred_are_no_spike_and_spikes_are() -> None:
    _, falls = verdict(
        "gradient-spike", grad_norm=lambda t: math.exp(-4.6 * t) + 0.05, reward=lambda t: 0.2 + 0.6 * t
    )
    assert falls is None
    rng = np.random.default_rng(2)
    spiky = [
        {
            "step": i,
            "grad_norm": float(np.exp(rng.normal(0, 0.2))) * (40 if i in (30, 41, 52) else 1),
            "reward": 0.4,
        }
        for i in range(1, 70)
    ]
    found = judge_history(history_from_rows(spiky)).named("gradient-spike")
    assert found is not None
    assert found.level == "warning"
    assert (found.since_step, found.until_step) == (30, 52)


def test_a_crash_in_the_very_first_steps_is_seen() -> None:
    early = [{"step": i, "reward": 0.5 if i == 1 else 0.0} for i in range(1, 41)]
    found = judge_history(history_from_rows(early)).named("reward-crash")
    assert found is not None
    assert found.level == "critical"


def test_short_runs_are_judged_by_what_they_hold() -> None:
    eight = [
        {"step": i, "reward": 0.6 if i < 5 else 0.0, "entropy": 1.0 if i < 5 else 0.01} for i in range(1, 9)
    ]
    found = judge_history(history_from_rows(eight))
    assert {"reward-crash", "entropy-collapse"} <= {a.name for a in found.alarms}
    seven = judge_history(history_from_rows(eight[:5]))
    assert seven.symptoms == []
    assert {"reward-crash", "entropy-collapse"} <= {n.name for n in seven.not_judged}


def test_an_empty_history_claims_nothing() -> None:
    found = judge_history(history_from_rows([]))
    assert found.symptoms == []
    assert len(found.not_judged) == len(ILLNESSES)


def test_constant_and_zero_columns_do_no_harm() -> None:
    flat = [
        {
            "step": i,
            "reward": 0.0,
            "entropy": 0.0,
            "kl": 0.0,
            "grad_norm": 0.0,
            "completions/mean_length": 0.0,
        }
        for i in range(1, 40)
    ]
    names = {a.name for a in judge_history(history_from_rows(flat)).alarms}
    assert names <= {"plateau", "no-signal"}


def test_length_that_is_paid_is_told_apart_from_division_by_length(judge) -> None:
    paid, spared = judge("reward-pays-length", 3), judge("wrong-answers-lengthen", 3)
    assert "reward-pays-length" in {a.name for a in paid.alarms}
    assert "wrong-answers-lengthen" not in {a.name for a in paid.alarms}
    assert "wrong-answers-lengthen" in {a.name for a in spared.alarms}
    assert "reward-pays-length" not in {a.name for a in spared.alarms}


def test_completions_prove_the_symptom(judge) -> None:
    found = judge("answer-collapse", 3).named("answer-collapse")
    assert found is not None
    assert found.proofs
    assert found.proofs[0].completion == "<answer>0</answer>"


def test_milder_illness_is_less_loud(make) -> None:
    def loudness(strength: float) -> int:
        run = make("truncation", 5, False, strength)
        found = judge_history(run.history(), None, run.facts).named("truncation")
        return 0 if found is None else ("information", "warning", "critical").index(found.level) + 1

    assert loudness(0.0) <= loudness(1.0)
    assert loudness(0.0) == 0


def test_the_simulation_is_the_same_for_the_same_seed() -> None:
    setting = Setting(steps=20, keep=True)
    assert simulate(setting, 7).rows == simulate(setting, 7).rows
    assert simulate(setting, 7).rows != simulate(setting, 8).rows


def scale_answer(facts: Facts, tags: list[float]) -> str:
    rows = [
        {"step": s, "reward": 0.9 + 0.02 * (s % 5) + 0.2 * tags[s], "rewards/correct/mean": 0.9 + 0.02 * (s % 5),
         "rewards/tags/mean": tags[s]}
        for s in range(20)
    ]  # fmt: skip
    answers = judge_history(history_from_rows(rows), None, facts).answers
    return next(a.answer for a in answers if a.question == "Why is the reward above 1?")


def test_weights_are_named_where_they_are_known_and_nowhere_else() -> None:
    varied = [0.8 + 0.05 * (s % 3) for s in range(20)]
    together = [0.9 + 0.02 * (s % 5) for s in range(20)]
    stated = Facts(reward_weights={"correct": 1.0, "tags": 0.2})
    assert "1 × correct + 0.2 × tags" in scale_answer(stated, together)
    assert "1 × correct + 0.2 × tags" in scale_answer(Facts(), varied)
    assert "×" not in scale_answer(Facts(), together)  # 1 and 0.2, or 0.6 and 0.6: the log cannot tell
