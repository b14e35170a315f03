import pytest

from rlvr.errors import ConfigError
from rlvr.plan.combinations import Facts, refuse_harmful, remarks
from rlvr.plan.inputs import CompletionLengths
from rlvr.plan.trl_schema import installed_schema

LENGTHS = CompletionLengths(p50=300, p95=700, longest=1024, cap=1024)
BASE = {
    "loss_type": "grpo",
    "epsilon": 0.2,
    "importance_sampling_level": "token",
    "gradient_accumulation_steps": 4,
    "steps_per_generation": 4,
    "num_iterations": 1,
    "beta": 0.01,
    "max_completion_length": 1024,
    "learning_rate": 5e-7,
    "use_vllm": True,
    "vllm_importance_sampling_mode": "token_truncate",
}


def found(facts=None, **changes):
    return {remark.code: remark for remark in remarks(BASE | changes, facts or Facts(completions=LENGTHS))}


@pytest.mark.parametrize(
    ("code", "changes"),
    [
        ("plan.sequence-epsilon", {"importance_sampling_level": "sequence"}),
        ("plan.sequence-loss", {"importance_sampling_level": "sequence", "loss_type": "dapo"}),
        ("plan.sequence-kl", {"importance_sampling_level": "sequence", "epsilon": 3e-4}),
        ("plan.clipping-does-nothing", {"epsilon_high": 0.28}),
        ("plan.zero-std-under-batch-scaling", {"scale_rewards": "batch"}),
        ("plan.sequence-mask", {"vllm_importance_sampling_mode": "sequence_mask"}),
        ("plan.cap-under-p95", {"max_completion_length": 512}),
        ("plan.all-masked", {"mask_truncated_completions": True, "max_completion_length": 256}),
        ("plan.no-reference", {"beta": 0.0, "sync_ref_model": True}),
        ("plan.warmup-only", {"max_steps": 10, "warmup_steps": 10}),
        ("plan.truncated-sampling", {"top_p": 0.9}),
        ("plan.completions-leave", {"log_completions": True}),
        ("plan.engine-off", {"use_vllm": False}),
        ("plan.epochs-ignored", {"max_steps": 10, "num_train_epochs": 3.0}),
        ("plan.dr-grpo-constant", {"loss_type": "dr_grpo"}),
    ],
)
def test_remarks(code, changes):
    remark = found(**changes)[code]
    assert remark.found and remark.where in installed_schema().fields


def test_nothing_loud_about_the_base_recipe():
    assert not [remark for remark in found().values() if remark.level == "warning"]


def test_sequence_mask_is_fine_on_short_completions():
    assert "plan.sequence-mask" not in found(
        vllm_importance_sampling_mode="sequence_mask", max_completion_length=128
    )


def test_gspo_as_it_should_be_has_no_warning():
    values = {
        "importance_sampling_level": "sequence",
        "epsilon": 3e-4,
        "epsilon_high": 4e-4,
        "use_bias_correction_kl": False,
        "steps_per_generation": 16,
    }
    assert not [remark for remark in found(**values).values() if remark.level == "warning"]


def test_clipping_acts_when_a_generation_feeds_several_steps():
    assert "plan.clipping-does-nothing" not in found(steps_per_generation=16, epsilon_high=0.28)


def test_experts_want_sequence_ratios():
    assert "plan.experts-need-sequence-ratios" in found(Facts(experts=True))


@pytest.mark.parametrize(
    ("code", "facts", "changes"),
    [
        ("plan.over-context", Facts(context=1200, prompt_max=300), {}),
        ("plan.over-engine-context", Facts(context=9000, prompt_max=300), {"vllm_max_model_length": 1200}),
        ("plan.two-precisions", Facts(), {"bf16": True, "fp16": True}),
        ("plan.half-precision-weights", Facts(), {"model_init_kwargs": {"dtype": "bfloat16"}}),
        ("plan.two-generation-sizes", Facts(), {"generation_batch_size": 32}),
        ("plan.not-with-grpo", Facts(), {"auto_find_batch_size": True}),
        ("plan.not-with-grpo", Facts(), {"neftune_noise_alpha": 5.0}),
        ("plan.epsilon-order", Facts(), {"epsilon_high": 0.1}),
        ("plan.delta", Facts(), {"delta": 1.1}),
        (
            "plan.clip-order",
            Facts(),
            {"vllm_importance_sampling_clip_min": 3.0, "vllm_importance_sampling_clip_max": 2.0},
        ),
        ("plan.two-engines", Facts(), {"use_transformers_continuous_batching": True}),
    ],
)
def test_refused(code, facts, changes):
    with pytest.raises(ConfigError) as caught:
        refuse_harmful(BASE | changes, facts)
    assert caught.value.code == code and caught.value.expected and caught.value.fix


@pytest.mark.parametrize(
    "changes",
    [
        {"learning_rate": 1e-3},
        {"optim": "adamw_anyprecision", "optim_args": "use_kahan_summation=True"},
        {"model_init_kwargs": {"dtype": "float32"}},
    ],
)
def test_half_precision_weights_with_care_are_allowed(changes):
    refuse_harmful(BASE | {"model_init_kwargs": {"dtype": "bfloat16"}} | changes, Facts())


def test_half_precision_of_a_frozen_base_is_allowed():
    refuse_harmful(BASE | {"model_init_kwargs": {"dtype": "bfloat16"}}, Facts(method="lora"))
