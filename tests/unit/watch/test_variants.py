import pytest

from rlvr.records.watch import Finding, Findings, NotJudged
from rlvr.variants import OWNED_FIELDS, VARIANTS, required_for, steps_per_generation, trl_settings
from rlvr.watch.facts import Facts
from rlvr.watch.variants import decide, in_effect

BASE = {
    "loss_type": "grpo",
    "epsilon": 0.2,
    "epsilon_high": None,
    "beta": 0.01,
    "gradient_accumulation_steps": 4,
    "steps_per_generation": None,
    "scale_rewards": "group",
    "importance_sampling_level": "token",
    "num_iterations": 1,
    "use_bias_correction_kl": True,
}


def findings(*names: str, level: str = "warning", suspects: bool = False) -> Findings:
    found = [
        Finding(
            name=n, level=level, since_step=5, evidence=f"{n} seen", action="act", suspects_reward=suspects
        )
        for n in names
    ]
    return Findings(symptoms=found, rows=100, source="runs/base-1/log.jsonl")


@pytest.mark.parametrize(
    ("symptom", "variant"),
    [("entropy-collapse", "dapo"), ("wrong-answers-lengthen", "dr_grpo"), ("moe-instability", "gspo")],
)
def test_each_variant_is_offered_on_its_symptom(symptom: str, variant: str) -> None:
    decision = decide(findings(symptom), BASE, Facts(), read=20)
    assert decision.variant is not None
    assert decision.variant.name == variant
    assert decision.ready
    assert decision.symptom is not None
    assert decision.symptom.evidence == f"{symptom} seen"


def test_the_difference_is_against_what_is_in_effect() -> None:
    decision = decide(findings("entropy-collapse"), BASE, Facts(), read=20)
    changes = {c.field: c for c in decision.changes}
    assert changes["epsilon"].effect == "is so already"
    assert (changes["epsilon_high"].before, changes["epsilon_high"].after) == (0.2, 0.28)
    assert (changes["steps_per_generation"].before, changes["steps_per_generation"].after) == (4, 16)
    already = {**BASE, "loss_type": "dapo", "beta": 0.0}
    changes = {c.field: c for c in decide(findings("entropy-collapse"), already, Facts(), read=20).changes}
    assert changes["loss_type"].effect == "is so already"
    assert changes["beta"].effect == "is so already"


def test_a_variant_that_changes_nothing_is_refused() -> None:
    full = {**BASE, **trl_settings(VARIANTS["dapo"], 4)}
    decision = decide(findings("entropy-collapse"), full, Facts(), read=20)
    assert not decision.ready
    assert any("nothing to change" in r for r in decision.refusals)


def test_without_its_symptom_it_is_refused_with_what_the_run_shows() -> None:
    run = Findings(rows=100, not_judged=[NotJudged(name="entropy-collapse", needs="entropy")])
    decision = decide(run, BASE, Facts(), wanted="dapo", read=20)
    assert decision.variant is None
    assert decision.refusals == ("DAPO answers entropy-collapse, which could not be judged: needs entropy",)
    mild = decide(findings("entropy-collapse", level="information"), BASE, Facts(), wanted="dapo", read=20)
    assert mild.variant is None
    assert "information here" in mild.refusals[0]


@pytest.mark.parametrize(
    ("keywords", "why"),
    [
        ({"read": 3}, "3 of 20 completions"),
        ({"applied": "dr_grpo"}, "one change at a time"),
    ],
)
def test_order_is_kept(keywords: dict, why: str) -> None:
    decision = decide(findings("entropy-collapse"), BASE, Facts(), **{"read": 20, **keywords})
    assert not decision.ready
    assert any(why in r for r in decision.refusals)


def test_a_suspected_reward_comes_first() -> None:
    both = findings("entropy-collapse")
    suspect = findings("reward-hacking", suspects=True).symptoms
    decision = decide(both.model_copy(update={"symptoms": both.symptoms + suspect}), BASE, Facts(), read=20)
    assert any("reward is suspected first" in r for r in decision.refusals)


def test_experts_need_gspo_without_a_symptom_and_do_not_leave_it() -> None:
    decision = decide(Findings(rows=100), BASE, Facts(experts=True))
    assert decision.variant is not None
    assert decision.variant.name == "gspo"
    assert decision.ready
    has = {**BASE, **trl_settings(VARIANTS["gspo"], 4)}
    after = decide(findings("entropy-collapse"), has, Facts(experts=True), read=20)
    assert any("not left again" in r for r in after.refusals)


def test_unknown_names_are_refused() -> None:
    assert "there are dapo" in decide(Findings(), BASE, Facts(), wanted="ppo").refusals[0]


def test_what_trl_fills_in() -> None:
    assert in_effect("epsilon_high", {"epsilon": 0.3}) == 0.3
    assert in_effect("steps_per_generation", {"gradient_accumulation_steps": 8}) == 8
    assert in_effect("scale_rewards", {"scale_rewards": False}) == "none"


def test_definitions_hold_together() -> None:
    symptoms = {s for v in VARIANTS.values() for s in (*v.answers, *v.also_helps)}
    assert symptoms <= set(Finding.model_fields["name"].annotation.__args__)
    owned = {name for v in VARIANTS.values() for name in v.settings} - {"beta", "use_bias_correction_kl"}
    assert owned <= OWNED_FIELDS
    assert steps_per_generation(VARIANTS["dr_grpo"], 4) == 4
    assert required_for(64) is VARIANTS["gspo"]
    assert required_for(1) is None


def test_every_setting_is_a_field_of_the_installed_trl() -> None:
    from rlvr.plan.trl_schema import installed_schema

    fields = installed_schema().fields
    for variant in VARIANTS.values():
        for name, value in trl_settings(variant, 4).items():
            assert fields[name].accepts(value), (variant.name, name)
            assert not fields[name].allowed or value in fields[name].allowed
