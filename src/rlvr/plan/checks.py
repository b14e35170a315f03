"""Checks of one field at a time against the installed TRL: name, owner, type, allowed value, range."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rlvr.config.overrides import override_example
from rlvr.errors import ConfigError, GateRefused
from rlvr.plan.batch import MIN_GENERATIONS
from rlvr.plan.inputs import Override
from rlvr.plan.trl_schema import ConfigSchema, FieldSpec
from rlvr.variants import OWNED_FIELDS, VARIANTS

WHERE = "recipe.overrides"

SUCCESSORS: dict[str, tuple[str, str]] = {
    "max_prompt_length": (
        "",
        "TRL removed it; long prompts are dropped from the data instead (`rlvr check`)",
    ),
    "vllm_importance_sampling_cap": ("vllm_importance_sampling_clip_max", "deprecated by TRL"),
    "use_transformers_paged": ("use_transformers_continuous_batching", "deprecated by TRL"),
    "vllm_guided_decoding_regex": ("vllm_structured_outputs_regex", "renamed by TRL"),
    "wandb_log_unique_prompts": ("log_unique_prompts", "renamed by TRL"),
    "vllm_device": ("vllm_mode", "removed by TRL; choose colocate or server"),
    "vllm_dtype": ("model_init_kwargs", "removed by TRL; the engine takes the model's type"),
    "vllm_max_model_len": ("vllm_max_model_length", "the engine's own name"),
    "use_liger_loss": ("", "removed by TRL; its own chunked head does the same"),
    "ref_model_mixup": ("ref_model_mixup_alpha", "renamed by TRL"),
    "evaluation_strategy": ("eval_strategy", "renamed by transformers"),
    "warmup_ratio": ("warmup_steps", "transformers 5 reads a warmup_steps below 1 as a share of all steps"),
    "no_cuda": ("use_cpu", "renamed by transformers"),
    "torch_dtype": ("model_init_kwargs", "put dtype there"),
    "dtype": ("model_init_kwargs", "put dtype there"),
    "attn_implementation": ("model_init_kwargs", "put attn_implementation there"),
    "group_by_length": ("train_sampling_strategy", "renamed by transformers"),
    "push_to_hub_token": ("hub_token", "renamed by transformers"),
    "push_to_hub_model_id": ("hub_model_id", "renamed by transformers"),
    "per_gpu_train_batch_size": ("per_device_train_batch_size", "renamed by transformers"),
    "per_gpu_eval_batch_size": ("per_device_eval_batch_size", "renamed by transformers"),
    "logging_dir": ("output_dir", "removed by transformers; logs go into the output folder"),
    "overwrite_output_dir": ("", "removed by transformers; every run has a folder of its own"),
    "save_safetensors": ("", "removed by transformers; safetensors is the only format"),
    "fp16_opt_level": ("fp16", "removed by transformers with apex"),
    "half_precision_backend": ("bf16", "removed by transformers"),
    "use_ipex": ("", "removed by transformers"),
    "jit_mode_eval": ("", "removed by transformers"),
    "past_index": ("", "removed by transformers"),
    "include_inputs_for_metrics": ("include_for_metrics", "renamed by transformers"),
    "lr": ("learning_rate", "the name in GRPOConfig"),
    "kl_coef": ("beta", "the name in GRPOConfig"),
    "kl_beta": ("beta", "the name in GRPOConfig"),
    "kl_loss_coef": ("beta", "the name in GRPOConfig"),
    "init_kl_coef": ("beta", "the name in GRPOConfig"),
    "clip_range": ("epsilon", "the name in GRPOConfig"),
    "clip_ratio": ("epsilon", "the name in GRPOConfig"),
    "cliprange": ("epsilon", "the name in GRPOConfig"),
    "clip_ratio_low": ("epsilon", "the name in GRPOConfig"),
    "clip_ratio_high": ("epsilon_high", "the name in GRPOConfig"),
    "group_size": ("num_generations", "the name in GRPOConfig"),
    "rollout_n": ("num_generations", "the name in GRPOConfig"),
    "n_samples_per_prompt": ("num_generations", "the name in GRPOConfig"),
    "max_new_tokens": ("max_completion_length", "the name in GRPOConfig"),
    "max_tokens": ("max_completion_length", "the name in GRPOConfig"),
    "max_response_length": ("max_completion_length", "the name in GRPOConfig"),
    "batch_size": ("per_device_train_batch_size", "the name in GRPOConfig"),
    "micro_batch_size": ("per_device_train_batch_size", "the name in GRPOConfig"),
    "train_batch_size": ("per_device_train_batch_size", "the name in GRPOConfig"),
    "epochs": ("num_train_epochs", "the name in GRPOConfig"),
    "gpu_memory_utilization": ("vllm_gpu_memory_utilization", "the name in GRPOConfig"),
    "tensor_parallel_size": ("vllm_tensor_parallel_size", "the name in GRPOConfig"),
    "optimizer": ("optim", "the name in GRPOConfig"),
    "scheduler": ("lr_scheduler_type", "the name in GRPOConfig"),
    "grad_clip": ("max_grad_norm", "the name in GRPOConfig"),
}
"""A name that was, or that other programs use: its successor and why; an empty successor means there is none."""

ELSEWHERE: dict[str, str] = {
    "output_dir": "every run has its own folder under runs/",
    "report_to": "set report_to at the top of rlvr.yaml",
    "reward_weights": "set weight at each entry of rewards",
    "temperature": "set sampling.temperature, since probe and inspection must see the same distribution",
    "chat_template_kwargs": "set it under sampling, since probe and inspection must see the same prompts",
    "resume_from_checkpoint": "use `rlvr train --resume`",
    "local_rank": "the launcher sets it",
    "do_train": "it has no effect on a trainer that is called",
    "hub_token": "a secret does not belong into a configuration; log in with `hf auth login`",
}
"""Fields that another part of the configuration owns."""

POSITIVE = "above 0"
RANGES: dict[str, tuple[float, float, str]] = {
    "learning_rate": (1e-12, 1.0, "above 0 and at most 1"),
    "beta": (0.0, 10.0, "0 to 10"),
    "top_p": (1e-9, 1.0, "above 0 and at most 1"),
    "min_p": (0.0, 1.0, "0 to 1"),
    "top_k": (0, 10_000_000, "from 0"),
    "repetition_penalty": (1e-3, 10.0, POSITIVE),
    "num_train_epochs": (1e-6, 100_000, POSITIVE),
    "warmup_steps": (0, 10_000_000, "0 or more; below 1 it is a share of all steps"),
    "weight_decay": (0.0, 1.0, "0 to 1"),
    "adam_beta1": (0.0, 0.999999, "0 to below 1"),
    "adam_beta2": (0.0, 0.99999999, "0 to below 1"),
    "adam_epsilon": (1e-20, 1e-1, POSITIVE),
    "max_grad_norm": (0.0, 1e6, "0 (off) or above"),
    "gradient_accumulation_steps": (1, 1_000_000, "from 1"),
    "per_device_train_batch_size": (1, 65_536, "from 1"),
    "per_device_eval_batch_size": (1, 65_536, "from 1"),
    "max_completion_length": (1, 1_000_000, "from 1"),
    "vllm_gpu_memory_utilization": (0.02, 0.98, "0.02 to 0.98"),
    "vllm_max_model_length": (2, 10_000_000, "from 2"),
    "vllm_tensor_parallel_size": (1, 1024, "from 1"),
    "vllm_server_port": (1, 65_535, "1 to 65535"),
    "vllm_group_port": (1, 65_535, "1 to 65535"),
    "vllm_server_timeout": (1e-3, 1e7, POSITIVE),
    "vllm_importance_sampling_clip_max": (1e-6, 1e6, POSITIVE),
    "vllm_importance_sampling_clip_min": (0.0, 1e6, "from 0"),
    "ref_model_mixup_alpha": (0.0, 1.0, "0 to 1"),
    "ref_model_sync_steps": (1, 1e9, "from 1"),
    "save_steps": (1e-6, 1e9, POSITIVE),
    "logging_steps": (1e-6, 1e9, POSITIVE),
    "num_completions_to_print": (0, 1e6, "from 0"),
    "seed": (0, 2**32 - 1, "0 to 4294967295"),
}
"""Field to its lowest and highest sensible value and the range in words."""


def check_override(name: str, override: Override, schema: ConfigSchema, runs: tuple[str, ...]) -> None:
    """Refuse an override that TRL does not know, that another part owns, or that has no reason.

    Args:
        name: The field.
        override: Its value and reason.
        schema: The installed GRPOConfig.
        runs: Stable, inspected base runs.

    Raises:
        ConfigError: Unknown, owned elsewhere, wrong type, not allowed, out of range, or without a reason.
        GateRefused: Learning rate or beta without an inspected, stable base run.
    """
    where = f"{WHERE}.{name}"
    check_name(name, schema, where, override.value)
    check_value(schema.fields[name], override.value, where)
    if not override.why.strip():
        raise ConfigError(
            "plan.override-without-why",
            f"{name} = {override.value!r} has no reason",
            where=where,
            expected="a why, which goes into the manifest and the report",
            fix=override_example(name, override.value, "", override.after),
        )
    if name == "num_generations":
        check_generations(override.value, where)
    if name in ("learning_rate", "beta"):
        check_base_run(name, override, runs, where)


def check_name(name: str, schema: ConfigSchema, where: str, value: Any = "...") -> None:
    """Refuse a field that is unknown, deprecated, owned by a variant, or set elsewhere; the fix shows ``value``."""
    if name in OWNED_FIELDS:
        owners = [variant.name for variant in VARIANTS.values() if name in variant.settings]
        raise ConfigError(
            "plan.variant-field",
            f"{name} belongs to {' or '.join(owners) or 'a variant'}, which comes only with the symptom that calls "
            "for it",
            where=where,
            expected="no override of a field that a variant owns",
            fix="train the base recipe, then `rlvr variant RUN` says whether its evidence supports one",
        )
    if name in ELSEWHERE:
        raise ConfigError(
            "plan.set-elsewhere",
            f"{name} is not set here: {ELSEWHERE[name]}",
            where=where,
            expected="another field of rlvr.yaml",
            fix=ELSEWHERE[name],
        )
    if name in SUCCESSORS and (name not in schema.fields or SUCCESSORS[name][1].startswith("deprecated")):
        raise _renamed(name, where, value)
    if name not in schema.fields or name.startswith("_"):
        hint = schema.nearest(name)
        near = hint.partition("'")[2].partition("'")[0]
        raise ConfigError(
            "plan.unknown-field",
            f"GRPOConfig of TRL {schema.trl} has no field {name!r}. {hint}".rstrip(),
            where=where,
            expected="a field of GRPOConfig",
            fix=override_example(near, value) if near else "see `rlvr plan --fields`",
        )


def _renamed(name: str, where: str, value: Any) -> ConfigError:
    successor, why = SUCCESSORS[name]
    return ConfigError(
        "plan.renamed-field",
        f"{name} is not a field any more: {why}" if not successor else f"{name} is now {successor}: {why}",
        where=where,
        expected=successor or "no such field",
        fix=override_example(successor, value) if successor else f"remove {name}",
    )


def check_value(spec: FieldSpec, value: Any, where: str) -> None:
    """Refuse a value of the wrong kind, one that is not allowed, or one out of range."""
    if not spec.accepts(value):
        raise ConfigError(
            "plan.wrong-type",
            f"{spec.name} is {value!r}, a {type(value).__name__}",
            where=where,
            expected=spec.expected(),
            fix=override_example(spec.name, spec.sample()),
        )
    if spec.allowed and isinstance(value, str) and value not in spec.allowed:
        raise _not_allowed(spec, value, where)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        check_range(spec.name, value, where)


def _not_allowed(spec: FieldSpec, value: str, where: str) -> ConfigError:
    from rlvr.errors import did_you_mean

    hint = did_you_mean(value, spec.allowed)
    return ConfigError(
        "plan.not-allowed",
        f"{spec.name} is {value!r}. {hint}".rstrip(),
        where=where,
        expected=spec.expected(),
        fix=hint or f"choose {spec.expected()}",
    )


def check_range(name: str, value: float, where: str) -> None:
    """Refuse a number out of its range."""
    low, high, words = RANGES.get(name, (-math.inf, math.inf, "a finite number"))
    steps = name == "max_steps" and (value == -1 or value > 0)
    if name == "max_steps":
        low, high, words = (value, value, "") if steps else (1, 1e9, "-1 (use epochs) or from 1")
    if not math.isfinite(value) or not low <= value <= high:
        raise ConfigError(
            "plan.out-of-range",
            f"{name} is {value!r}",
            where=where,
            expected=words,
            fix=f"set {name} to {words}",
        )


def check_generations(value: int, where: str) -> None:
    """Refuse fewer than eight completions a prompt, whatever the reason: their mean is the baseline."""
    if value < MIN_GENERATIONS:
        raise ConfigError(
            "plan.too-few-generations",
            f"num_generations is {value}: the mean of the group is the baseline of the advantage, and a mean of "
            "few completions is noise",
            where=where,
            expected=f"{MIN_GENERATIONS} or more, whatever the reason",
            fix="keep num_generations at 8 and lower per_device_train_batch_size to save memory",
        )


def check_base_run(name: str, override: Override, runs: tuple[str, ...], where: str) -> None:
    """Refuse a moved learning rate or beta without an inspected, stable base run."""
    if override.before_base_run or (override.after and override.after in runs):
        return
    found = f"{name} = {override.value!r} moves before a base run was inspected"
    if override.after:
        known = ", ".join(runs) or "none"
        found = f"{name} names the run {override.after!r}, which is no inspected, stable base run (those: {known})"
    raise GateRefused(
        "plan.base-run",
        found,
        where=where,
        expected="after: RUN, a base run of at least 50 optimizer steps and 8 logged rows without a critical "
        "symptom, with 20 of its own completions read",
        fix="train the base recipe and read it (`rlvr inspect --run RUN`); or, in red in the report, "
        + override_example(name, override.value, override.why),
    )


def check_overrides(overrides: Mapping[str, Override], schema: ConfigSchema, runs: tuple[str, ...]) -> None:
    """Check every override; see :func:`check_override`."""
    for name, override in overrides.items():
        check_override(name, override, schema, runs)
