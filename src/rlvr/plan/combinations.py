"""Combinations of settings that do nothing, or that harm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rlvr.errors import ConfigError
from rlvr.plan.inputs import CompletionLengths
from rlvr.records.plan import Remark

MANY_TOKENS = 1000
"""Above this length a whole-sequence mask drops a sizeable share of the completions."""

BF16_LEARNING_RATE = 1e-4
"""Below it, an AdamW step is mostly smaller than half a unit of a bf16 weight."""


@dataclass(frozen=True)
class Facts:
    """What the combinations are judged against.

    Attributes:
        context: The model's longest position; 0 when unknown.
        prompt_max: Longest prompt in tokens.
        completions: The probe's lengths.
        method: ``full``, ``lora`` or ``qlora``.
        unified: One memory for processor and accelerator.
        experts: Whether the model has experts.
        processes: Devices that train.
        held_out: Number of held-out rows.
    """

    context: int = 0
    prompt_max: int = 0
    completions: CompletionLengths | None = None
    method: str = "full"
    unified: bool = False
    experts: bool = False
    processes: int = 1
    held_out: int = 0


def refuse_harmful(config: Mapping[str, Any], facts: Facts) -> None:
    """Refuse combinations that cannot train, or that TRL would refuse later.

    Raises:
        ConfigError: The first that was found.
    """
    for check in (
        _context,
        _precision,
        _bf16_weights,
        _generation,
        _always_refused,
        _epsilons,
        _delta,
        _server,
    ):
        check(config, facts)


def remarks(config: Mapping[str, Any], facts: Facts) -> list[Remark]:
    """Return remarks on combinations that do nothing or that may harm."""
    found: list[Remark] = []
    for check in (
        _on_policy,
        _sequence,
        _scaling,
        _engine,
        _lengths,
        _reference,
        _quantized,
        _schedule,
        _idle,
    ):
        found.extend(check(config, facts))
    return found


def _refuse(code: str, where: str, found: str, expected: str, fix: str) -> ConfigError:
    return ConfigError(f"plan.{code}", found, where=f"recipe.overrides.{where}", expected=expected, fix=fix)


def _warn(code: str, where: str, found: str, fix: str) -> Remark:
    return Remark(code=f"plan.{code}", level="warning", where=where, found=found, fix=fix)


def _tell(code: str, where: str, found: str, fix: str = "") -> Remark:
    return Remark(code=f"plan.{code}", level="information", where=where, found=found, fix=fix)


def _context(config: Mapping[str, Any], facts: Facts) -> None:
    needed = facts.prompt_max + int(config.get("max_completion_length") or 0)
    if facts.context and needed > facts.context:
        raise ConfigError(
            "plan.over-context",
            f"the longest prompt has {facts.prompt_max} tokens and max_completion_length is "
            f"{config.get('max_completion_length')}: {needed} together",
            where="sampling.max_completion_length",
            expected=f"at most {facts.context}, the model's context",
            fix=f"set max_completion_length to {max(facts.context - facts.prompt_max, 0)} or drop long prompts",
        )
    engine = config.get("vllm_max_model_length")
    if config.get("use_vllm") and engine and needed > engine:
        raise _refuse(
            "over-engine-context",
            "vllm_max_model_length",
            f"vllm_max_model_length is {engine} but prompt and completion take {needed}",
            f"at least {needed}",
            f"set vllm_max_model_length to {needed}",
        )


def _precision(config: Mapping[str, Any], facts: Facts) -> None:
    if config.get("bf16") and config.get("fp16"):
        raise _refuse(
            "two-precisions", "fp16", "bf16 and fp16 are both on", "one of them", "set fp16 to false"
        )


def _bf16_weights(config: Mapping[str, Any], facts: Facts) -> None:
    kwargs = config.get("model_init_kwargs")
    dtype = str(kwargs.get("dtype", "float32")) if isinstance(kwargs, Mapping) else "float32"
    if facts.method != "full" or dtype not in ("bfloat16", "float16", "auto") or _careful_optimizer(config):
        return
    rate = float(config.get("learning_rate") or 0)
    if rate < BF16_LEARNING_RATE:
        raise _refuse(
            "half-precision-weights",
            "model_init_kwargs",
            f"weights are stored in {dtype} at learning_rate {rate:g}: most steps are smaller than half a unit of "
            "such a weight and are lost (200 AdamW steps at 5e-7 moved 1.0% of bf16 weights, and 100% of fp32 ones)",
            "dtype: float32, or an optimizer with Kahan summation",
            "remove dtype, or set optim: adamw_anyprecision with optim_args: use_kahan_summation=True",
        )


def _careful_optimizer(config: Mapping[str, Any]) -> bool:
    arguments = str(config.get("optim_args") or "").replace(" ", "").lower()
    return config.get("optim") == "adamw_anyprecision" and "use_kahan_summation=true" in arguments


def _generation(config: Mapping[str, Any], facts: Facts) -> None:
    if config.get("generation_batch_size") is not None and config.get("steps_per_generation") is not None:
        raise _refuse(
            "two-generation-sizes",
            "generation_batch_size",
            "generation_batch_size and steps_per_generation say the same thing twice; TRL refuses both",
            "steps_per_generation alone",
            "remove generation_batch_size; set per_device_train_batch_size and gradient_accumulation_steps",
        )


ALWAYS_REFUSED: dict[str, tuple[Any, str]] = {
    "auto_find_batch_size": (True, "halving the batch on out-of-memory would break the groups"),
    "prediction_loss_only": (True, "metrics of the rollouts would be lost"),
    "neftune_noise_alpha": (0.0, "noise on the embeddings makes log-probabilities of one completion differ"),
    "label_smoothing_factor": (0.0, "GRPO's loss has no labels"),
    "torch_compile": (True, "TRL replaces the model's forward, and every batch has another length"),
    "load_best_model_at_end": (True, "it needs TRL's evaluation, which is off"),
}
"""Field to the value that is refused (0.0 stands for anything above) and the reason."""


def _always_refused(config: Mapping[str, Any], facts: Facts) -> None:
    for name, (value, why) in ALWAYS_REFUSED.items():
        found = config.get(name)
        if found is not None and (found is True if value is True else found > value):
            raise _refuse("not-with-grpo", name, f"{name} = {found!r}: {why}", f"no {name}", f"remove {name}")


def _epsilons(config: Mapping[str, Any], facts: Facts) -> None:
    low, high = config.get("epsilon"), config.get("epsilon_high")
    if low is not None and high is not None and high < low:
        raise _refuse(
            "epsilon-order",
            "epsilon_high",
            f"epsilon_high {high} is below epsilon {low}",
            f"{low} or more",
            "raise it",
        )
    minimum, maximum = (
        config.get("vllm_importance_sampling_clip_min"),
        config.get("vllm_importance_sampling_clip_max"),
    )
    if minimum is not None and maximum is not None and minimum >= maximum:
        raise _refuse(
            "clip-order",
            "vllm_importance_sampling_clip_min",
            f"vllm_importance_sampling_clip_min {minimum} is not below vllm_importance_sampling_clip_max {maximum}",
            f"below {maximum}",
            "lower it, or remove it",
        )


def _delta(config: Mapping[str, Any], facts: Facts) -> None:
    delta, low = config.get("delta"), config.get("epsilon") or 0.2
    if delta is not None and delta <= 1 + low:
        raise _refuse(
            "delta", "delta", f"delta {delta} is not above 1 + epsilon {1 + low}", f"above {1 + low}", "raise"
        )


def _server(config: Mapping[str, Any], facts: Facts) -> None:
    if config.get("use_vllm") and facts.method == "qlora" and config.get("vllm_mode") == "server":
        return
    if config.get("use_vllm") and config.get("use_transformers_continuous_batching"):
        raise _refuse(
            "two-engines",
            "use_transformers_continuous_batching",
            "use_vllm and use_transformers_continuous_batching are both on",
            "one engine",
            "remove use_transformers_continuous_batching",
        )


def _on_policy(config: Mapping[str, Any], facts: Facts) -> Iterator[Remark]:
    steps, accumulation = config.get("steps_per_generation"), config.get("gradient_accumulation_steps", 1)
    on_policy = (steps is None or steps <= accumulation) and config.get("num_iterations", 1) == 1
    if on_policy and config.get("epsilon_high") is not None:
        yield _warn(
            "clipping-does-nothing",
            "steps_per_generation",
            "every update is on-policy (steps_per_generation is not above gradient_accumulation_steps), so the ratio "
            f"is 1 and epsilon {config.get('epsilon')} and epsilon_high {config.get('epsilon_high')} never clip",
            f"set steps_per_generation to {4 * accumulation}",
        )
    elif on_policy:
        yield _tell("clipping-does-nothing", "epsilon", "every update is on-policy, so epsilon never clips")


def _sequence(config: Mapping[str, Any], facts: Facts) -> Iterator[Remark]:
    if config.get("importance_sampling_level") != "sequence":
        if facts.experts:
            yield _warn(
                "experts-need-sequence-ratios",
                "importance_sampling_level",
                "token ratios of a mixture-of-experts model jump when its routing changes",
                "apply the GSPO variant",
            )
        return
    if float(config.get("epsilon") or 0.2) > 0.05:
        yield _warn(
            "sequence-epsilon",
            "epsilon",
            f"sequence-level ratios stay near 1 (thousandths), so epsilon {config.get('epsilon')} never clips",
            "epsilon 3e-4 and epsilon_high 4e-4, as GSPO has them",
        )
    if config.get("loss_type") in ("bnpo", "dr_grpo", "dapo", "cispo"):
        yield _warn(
            "sequence-loss",
            "loss_type",
            f"loss_type {config['loss_type']} sums tokens, so a sequence-level ratio counts once a token",
            "loss_type grpo, as GSPO has it",
        )
    if config.get("use_bias_correction_kl", True) and float(config.get("beta") or 0) > 0:
        yield _warn(
            "sequence-kl",
            "use_bias_correction_kl",
            "the corrected KL term is unbiased at token level only",
            "use_bias_correction_kl false, or beta 0",
        )


def _scaling(config: Mapping[str, Any], facts: Facts) -> Iterator[Remark]:
    if config.get("scale_rewards") == "batch":
        yield _warn(
            "zero-std-under-batch-scaling",
            "scale_rewards",
            "TRL's frac_reward_zero_std compares the batch's deviation with 0, so it stays 0 while groups carry no "
            "signal",
            "read the share of groups without variance from the rollouts (`rlvr watch` does)",
        )
    if config.get("loss_type") == "dr_grpo":
        yield _tell(
            "dr-grpo-constant",
            "max_completion_length",
            "Dr. GRPO divides by max_completion_length: changing that rescales the gradient",
        )


def _engine(config: Mapping[str, Any], facts: Facts) -> Iterator[Remark]:
    if not config.get("use_vllm"):
        idle = [name for name in config if name.startswith("vllm_")]
        if idle:
            yield _tell(
                "engine-off", idle[0], f"use_vllm is false, so {', '.join(sorted(idle))} do nothing", "remove"
            )
        return
    mode = str(config.get("vllm_importance_sampling_mode", "sequence_mask"))
    cap = int(config.get("max_completion_length") or 0)
    if (
        config.get("vllm_importance_sampling_correction", True)
        and mode.startswith("sequence")
        and cap >= MANY_TOKENS
    ):
        yield _warn(
            "sequence-mask",
            "vllm_importance_sampling_mode",
            f"{mode} judges a whole sequence by one product over up to {cap} tokens: at a mean difference of .02 a "
            "token 8% of 1,000-token and 25% of 4,000-token completions drop out unseen",
            "vllm_importance_sampling_mode token_truncate, vllm_importance_sampling_clip_max 2.0",
        )
    if facts.unified and config.get("vllm_enable_sleep_mode"):
        yield _warn(
            "sleep-on-unified", "vllm_enable_sleep_mode", "sleep frees nothing on unified memory", "false"
        )
    if config.get("vllm_mode") == "server" and "vllm_gpu_memory_utilization" in config:
        yield _tell(
            "server-utilization",
            "vllm_gpu_memory_utilization",
            "the server takes its own --gpu-memory-utilization; this field does nothing in server mode",
        )
    if float(config.get("top_p") or 1) < 1 or int(config.get("top_k") or 0) > 0:
        yield _warn(
            "truncated-sampling",
            "top_p",
            "tokens are drawn from a truncated distribution while the trainer scores them under the whole one",
            "top_p 1.0 and top_k 0",
        )


def _lengths(config: Mapping[str, Any], facts: Facts) -> Iterator[Remark]:
    lengths, cap = facts.completions, int(config.get("max_completion_length") or 0)
    if lengths is None or not cap:
        return
    if cap < lengths.p95:
        yield _warn(
            "cap-under-p95",
            "max_completion_length",
            f"max_completion_length {cap} is below the probe's 95th percentile of {lengths.p95}: at least 5% of the "
            "completions would be cut and paid nothing",
            f"max_completion_length {-(-lengths.p95 * 5 // 4 // 64) * 64}",
        )
    if config.get("mask_truncated_completions") and cap <= lengths.p50:
        yield _warn(
            "all-masked",
            "mask_truncated_completions",
            f"half of the completions or more reach the cap of {cap} and would be masked; groups of masked "
            "completions train nothing",
            f"a cap above {lengths.p95}, or mask_truncated_completions false",
        )


def _reference(config: Mapping[str, Any], facts: Facts) -> Iterator[Remark]:
    if float(config.get("beta") or 0) > 0:
        return
    if config.get("sync_ref_model"):
        yield _warn(
            "no-reference", "sync_ref_model", "beta is 0, so there is no reference to synchronise", "false"
        )
    if config.get("use_bias_correction_kl"):
        yield _tell("no-kl", "use_bias_correction_kl", "beta is 0, so the KL correction does nothing")


def _quantized(config: Mapping[str, Any], facts: Facts) -> Iterator[Remark]:
    if facts.method == "qlora":
        yield _warn(
            "bf16-adapter",
            "method",
            "TRL casts the adapter on a quantized base to bf16; a small step may be lost to rounding",
            "watch that the adapter moves, or use LoRA where the memory allows",
        )


def _schedule(config: Mapping[str, Any], facts: Facts) -> Iterator[Remark]:
    steps, warmup = int(config.get("max_steps") or -1), float(config.get("warmup_steps") or 0)
    if steps > 0 and warmup >= steps:
        yield _warn(
            "warmup-only",
            "warmup_steps",
            f"warmup_steps {warmup:g} is not below max_steps {steps}: the rate is never reached",
            f"warmup_steps {max(steps // 10, 1)}",
        )
    if steps > 0 and float(config.get("save_steps") or 0) > steps:
        yield _tell(
            "save-after-end", "save_steps", f"save_steps {config['save_steps']} is above max_steps {steps}"
        )


def _idle(config: Mapping[str, Any], facts: Facts) -> Iterator[Remark]:
    if int(config.get("max_steps") or -1) > 0 and config.get("num_train_epochs") is not None:
        yield _tell(
            "epochs-ignored", "num_train_epochs", "max_steps is set, so num_train_epochs does nothing"
        )
    if config.get("gradient_checkpointing_kwargs") and not config.get("gradient_checkpointing", True):
        yield _tell(
            "checkpointing-off",
            "gradient_checkpointing_kwargs",
            "gradient_checkpointing is false; this does nothing",
        )
    if config.get("eval_strategy", "no") == "no" and config.get("eval_steps") is not None:
        yield _tell("evaluation-off", "eval_steps", "eval_strategy is no, so eval_steps does nothing")
    if config.get("use_liger_kernel"):
        yield _warn(
            "liger-deprecated",
            "use_liger_kernel",
            "deprecated by TRL, which has its own chunked head",
            "model_init_kwargs: {use_kernels: true}",
        )
    if config.get("log_completions"):
        yield _warn(
            "completions-leave",
            "log_completions",
            "TRL prints completions and hands them to every tracker that is named",
            "leave it off; rollouts are kept in the run's folder",
        )
