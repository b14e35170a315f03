import math

import pytest

from rlvr.errors import ConfigError, GateRefused
from rlvr.plan.checks import SUCCESSORS, check_override
from rlvr.plan.inputs import Override
from rlvr.plan.trl_schema import installed_schema
from rlvr.variants import OWNED_FIELDS

SCHEMA = installed_schema()


def refused(name, value, why="a reason", **keys):
    with pytest.raises((ConfigError, GateRefused)) as caught:
        check_override(name, Override(value, why, **keys), SCHEMA, ())
    error = caught.value
    assert error.where.startswith("recipe.overrides.") and error.found and error.expected and error.fix
    return error


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("learning_rat", 1e-6, "plan.unknown-field"),
        ("max_prompt_length", 512, "plan.renamed-field"),
        ("vllm_importance_sampling_cap", 2.0, "plan.renamed-field"),
        ("warmup_ratio", 0.1, "plan.renamed-field"),
        ("kl_coef", 0.1, "plan.renamed-field"),
        ("max_new_tokens", 100, "plan.renamed-field"),
        ("loss_type", "dapo", "plan.variant-field"),
        ("report_to", "wandb", "plan.set-elsewhere"),
        ("temperature", 0.5, "plan.set-elsewhere"),
        ("max_steps", "ten", "plan.wrong-type"),
        ("max_steps", 10.5, "plan.wrong-type"),
        ("max_steps", True, "plan.wrong-type"),
        ("max_steps", 0, "plan.out-of-range"),
        ("weight_decay", -0.1, "plan.out-of-range"),
        ("weight_decay", math.nan, "plan.out-of-range"),
        ("max_grad_norm", math.inf, "plan.out-of-range"),
        ("lr_scheduler_type", "cosin", "plan.not-allowed"),
        ("vllm_mode", "collocate", "plan.not-allowed"),
        ("optim", "adam", "plan.not-allowed"),
        ("num_generations", 4, "plan.too-few-generations"),
    ],
)
def test_refusals(name, value, code):
    assert refused(name, value).code == code


@pytest.mark.parametrize("name", sorted(OWNED_FIELDS & set(SCHEMA.fields)))
def test_every_variant_field_is_refused(name):
    assert refused(name, SCHEMA.fields[name].default).code == "plan.variant-field"


@pytest.mark.parametrize(
    ("name", "near"), [("learning_rat", "learning_rate"), ("num_generation", "num_generations")]
)
def test_did_you_mean(name, near):
    assert near in refused(name, 1).found


def test_renamed_names_the_successor():
    assert "vllm_importance_sampling_clip_max" in refused("vllm_importance_sampling_cap", 2.0).found


def test_successors_exist():
    for name, (successor, _) in SUCCESSORS.items():
        assert not successor or successor in SCHEMA.fields, name


@pytest.mark.parametrize("why", ["", "   "])
def test_reason_is_needed(why):
    assert refused("max_grad_norm", 0.5, why).code == "plan.override-without-why"


def test_a_value_of_another_type_is_told_in_words():
    assert refused("learning_rate", "fast").expected == "a number, such as 1e-3"
    assert refused("max_steps", True).expected == "a whole number, such as 8"


def test_a_moved_rate_is_told_where_to_say_so():
    line = 'recipe: {overrides: {learning_rate: {value: 1e-3, why: "a reason", before_base_run: true}}}'
    assert refused("learning_rate", 1e-3).fix.endswith(line)


@pytest.mark.parametrize("name", ["learning_rate", "beta"])
def test_rate_and_beta_wait_for_a_base_run(name):
    error = refused(name, 1e-5)
    assert isinstance(error, GateRefused) and error.exit_code == 3
    assert "base-1" in refused(name, 1e-5, after="base-1").found
    check_override(name, Override(1e-5, "a reason", after="base-1"), SCHEMA, ("base-1",))
    check_override(name, Override(1e-5, "a reason", before_base_run=True), SCHEMA, ())


@pytest.mark.parametrize(
    ("name", "value"),
    [("learning_rate", 1), ("max_grad_norm", 1), ("max_steps", -1), ("bf16", None), ("warmup_steps", 0.1)],
)
def test_accepted(name, value):
    check_override(name, Override(value, "a reason", before_base_run=True), SCHEMA, ())


def test_eight_generations_are_the_least_whatever_the_reason():
    refused("num_generations", 7, "it saves memory")
    check_override("num_generations", Override(8, "a reason"), SCHEMA, ())
