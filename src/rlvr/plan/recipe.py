"""The base recipe: every field of GRPOConfig that matters, written out with its reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rlvr.plan.batch import Batch
from rlvr.plan.inputs import PlanInputs
from rlvr.records.plan import Setting, Source

LEARNING_RATE = {"full": 5e-7, "lora": 5e-6, "qlora": 5e-6}
MICRO_BATCH = 8
ACCUMULATION = 4
GENERATIONS = 8
COMPLETION_WITHOUT_PROBE = 512
LOGGING_STEPS = 10
MIN_STEPS = 100
MAX_STEPS = 500
WARMUP_STEPS = 10

Settings = dict[str, Setting]


@dataclass(frozen=True)
class Context:
    """Decisions that precede the settings.

    Attributes:
        use_vllm: Whether vLLM generates.
        vllm_mode: ``colocate`` or ``server``.
        trainers: Devices that train.
        utilization: vLLM's share of a card.
        sleep: vLLM's sleep mode.
        engine_parallel: Tensor-parallel size of the engine.
    """

    use_vllm: bool
    vllm_mode: str
    trainers: int
    utilization: float = 0.3
    sleep: bool = True
    engine_parallel: int = 1


def _set(value: Any, why: str, source: Source = "reference", origin: str = "") -> Setting:
    return Setting(value=value, why=why, source=source, origin=origin)


def base_settings(inputs: PlanInputs, context: Context) -> Settings:
    """Return the whole recipe before overrides and variants."""
    return {
        **_place(inputs),
        **_precision(inputs),
        **_engine(inputs, context),
        **_sampling(inputs),
        **_batch(inputs),
        **_optimizer(inputs),
        **_objective(inputs),
        **_bookkeeping(inputs),
    }


def _place(inputs: PlanInputs) -> Settings:
    device = inputs.machine.devices[0]
    settings = {
        "output_dir": _set(inputs.output_dir, "the folder of this run", "derived"),
        "seed": _set(inputs.sampling.seed, "one fixed seed, so that two runs differ by their settings alone"),
    }
    if device.kind == "cpu":
        settings["use_cpu"] = _set(True, "no accelerator was found", "fallback")
        settings["dataloader_pin_memory"] = _set(
            False, "pinned memory serves an accelerator only", "fallback"
        )
    return settings


def _precision(inputs: PlanInputs) -> Settings:
    device, full = inputs.machine.devices[0], inputs.method.kind == "full"
    if device.kind != "cuda":
        why = "this processor gains nothing from 16-bit autocast; fp32 throughout"
        return {
            "bf16": _set(False, why, "fallback"),
            "fp16": _set(False, why, "fallback"),
            "model_init_kwargs": _set({"dtype": "float32"}, "master weights in fp32", "fallback"),
        }
    half = "bfloat16" if device.bf16 else "float16"
    source: Source = "reference" if device.bf16 else "fallback"
    fallback = f"{device.name} has no bfloat16: fp16 with loss scaling"
    return {
        "bf16": _set(
            device.bf16, "bf16 autocast over fp32 master weights" if device.bf16 else fallback, source
        ),
        "fp16": _set(not device.bf16, "not with bf16" if device.bf16 else fallback, source),
        "model_init_kwargs": _model_kwargs(inputs, half, full),
    }


def _model_kwargs(inputs: PlanInputs, half: str, full: bool) -> Setting:
    kwargs: dict[str, Any] = {
        "dtype": "float32" if full else half,
        "attn_implementation": inputs.machine.attention,
    }
    if inputs.model.revision:
        kwargs["revision"] = inputs.model.revision
    why = (
        "fp32 master weights: at 5e-7 an AdamW step is smaller than half a bf16 unit, so 200 steps moved 100% of "
        "fp32 weights and 1.0% of bf16 ones"
        if full
        else "the frozen base may stay in 16 bits, since only the adapter is updated"
    )
    return _set(kwargs, why)


def _engine(inputs: PlanInputs, context: Context) -> Settings:
    if not context.use_vllm:
        why = (
            "vLLM is not installed; transformers generates, several times slower"
            if inputs.machine.devices[0].kind == "cuda"
            else "vLLM needs an accelerator here; transformers generates"
        )
        return {"use_vllm": _set(False, why, "fallback")}
    settings = {
        "use_vllm": _set(True, "rollouts take most of the time, and vLLM makes them several times faster"),
        "vllm_mode": _set(context.vllm_mode, _mode_reason(context)),
        **_engine_correction(),
    }
    if context.vllm_mode == "colocate":
        settings |= _colocate(inputs, context)
    else:
        settings |= _server(inputs)
    return settings


def _mode_reason(context: Context) -> str:
    if context.vllm_mode == "colocate":
        return "one device: engine and trainer take turns on it"
    return "several devices: rollouts on their own, so that the trainer keeps its memory"


def _colocate(inputs: PlanInputs, context: Context) -> Settings:
    unified = inputs.machine.devices[0].unified
    return {
        "vllm_gpu_memory_utilization": _set(
            context.utilization,
            "share of the whole card for the engine: its weights, its activations and the cache of the rollouts",
            "derived",
        ),
        "vllm_enable_sleep_mode": _set(
            context.sleep,
            "sleep frees nothing on unified memory"
            if unified
            else "the engine gives its memory back during the update, at the price of waking it each step",
            "fallback" if unified else "derived",
        ),
        "vllm_tensor_parallel_size": _set(
            context.engine_parallel, "the engine's weights fit one device", "derived"
        ),
    }


def _server(inputs: PlanInputs) -> Settings:
    host = "127.0.0.1" if inputs.machine.nodes == 1 else "rlvr-server"
    return {
        "vllm_server_base_url": _set(
            f"http://{host}:8000",
            "the server that is started beside the trainer, bound privately",
            "derived",
        ),
        "vllm_server_timeout": _set(600.0, "loading a large model takes minutes; TRL waits 240 s", "derived"),
        "vllm_group_port": _set(
            51216, "port of the weight transfer, written out since firewalls matter", "derived"
        ),
    }


def _engine_correction() -> Settings:
    return {
        "vllm_importance_sampling_correction": _set(
            True, "engine and trainer do not compute the same probabilities"
        ),
        "vllm_importance_sampling_mode": _set(
            "token_truncate",
            "TRL's default sequence_mask drops whole sequences unseen: at a mean difference of .02 a token 8% of "
            "1,000-token and 25% of 4,000-token completions",
        ),
        "vllm_importance_sampling_clip_max": _set(
            2.0, "cap of the per-token ratio; the masked share is logged"
        ),
    }


def _sampling(inputs: PlanInputs) -> Settings:
    sampling = inputs.sampling
    settings = {
        "temperature": _set(
            sampling.temperature, "the temperature that probe and inspection saw; from sampling", "derived"
        ),
        "top_p": _set(sampling.top_p, "all tokens: a cut tail makes log-probabilities of other tokens wrong"),
        "top_k": _set(sampling.top_k, "all tokens, as top_p"),
        "repetition_penalty": _set(1.0, "none: it would change the distribution that is being trained"),
        "max_completion_length": _completion_length(inputs),
        "num_generations": _set(
            GENERATIONS, "the mean of eight completions is the baseline of the advantage"
        ),
    }
    if sampling.chat_template_kwargs:
        settings["chat_template_kwargs"] = _set(
            dict(sampling.chat_template_kwargs), "from sampling", "derived"
        )
    return settings


def _completion_length(inputs: PlanInputs) -> Setting:
    lengths, cap = inputs.completions, inputs.sampling.max_completion_length
    if cap is not None:
        return _set(cap, "the user's cap, from sampling", "derived")
    if lengths is None:
        return _set(
            COMPLETION_WITHOUT_PROBE,
            "TRL's default, an assumption until the probe has measured lengths: a cap of 256 truncated 97% of a "
            "quickstart run",
            "derived",
            "https://github.com/huggingface/trl/issues/5697",
        )
    return _set(length_from_probe(inputs), _length_reason(inputs), "derived")


def length_from_probe(inputs: PlanInputs) -> int:
    """Return the cap from the probe's lengths: a quarter above the 95th percentile, in steps of 64 tokens."""
    lengths = inputs.completions
    assert lengths is not None
    base = 2 * lengths.cap if lengths.truncated_share > 0.05 else lengths.p95 * 5 // 4
    return max(64, -(-base // 64) * 64)


def _length_reason(inputs: PlanInputs) -> str:
    lengths = inputs.completions
    assert lengths is not None
    if lengths.truncated_share > 0.05:
        return f"{lengths.truncated_share:.0%} of the probe's completions hit its cap of {lengths.cap}: twice that"
    return (
        f"a quarter above the probe's 95th percentile of {lengths.p95} tokens, since lengths grow in training"
    )


def _batch(inputs: PlanInputs) -> Settings:
    return {
        "per_device_train_batch_size": _set(MICRO_BATCH, "one group of eight completions a forward"),
        "gradient_accumulation_steps": _set(ACCUMULATION, "four groups an optimizer step on one device"),
        "steps_per_generation": _set(
            ACCUMULATION,
            "equal to the accumulation: every update is on-policy, so the base run has no clipping",
        ),
        "num_iterations": _set(1, "one update a completion: on-policy"),
        "gradient_checkpointing": _set(
            True, "one hidden state a layer instead of all activations, for 20% of time"
        ),
        "shuffle_dataset": _set(True, "prompts in random order, by the seed"),
        "remove_unused_columns": _set(False, "the reward reads the other columns"),
        "dataloader_num_workers": _set(0, "prompts are short texts; a worker gains nothing"),
    }


def _optimizer(inputs: PlanInputs) -> Settings:
    kind = inputs.method.kind
    scaling = kind != "full"
    return {
        "learning_rate": _set(
            LEARNING_RATE[kind],
            "reference for adapters, ten times that of full tuning: LoRA does not learn at 5e-7"
            if scaling
            else "reference for full tuning; it moves only after an inspected, stable base run",
            "reference",
            "https://github.com/huggingface/trl/issues/2872" if scaling else "",
        ),
        "optim": _optim(inputs),
        "adam_beta1": _set(0.9, "AdamW's usual value, written out"),
        "adam_beta2": _set(0.999, "AdamW's usual value, written out"),
        "adam_epsilon": _set(1e-8, "AdamW's usual value, written out"),
        "weight_decay": _set(0.0, "the KL term already holds the policy near its start"),
        "max_grad_norm": _set(
            1.0, "clips spikes; transformers' default, written out since a spike is a symptom"
        ),
        "lr_scheduler_type": _set(
            "constant_with_warmup",
            "transformers decays linearly in silence; a constant rate lets a plateau be told from the schedule's end",
        ),
        "warmup_steps": _set(WARMUP_STEPS, "AdamW's second moment settles first"),
    }


def _optim(inputs: PlanInputs) -> Setting:
    if inputs.method.optimizer:
        return _set(inputs.method.optimizer, "the user's choice, from method.optimizer", "derived")
    fused = inputs.machine.devices[0].kind == "cuda"
    name = "adamw_torch_fused" if fused else "adamw_torch"
    return _set(
        name, "AdamW; 8 bytes of state a trainable fp32 parameter", "reference" if fused else "fallback"
    )


def _objective(inputs: PlanInputs) -> Settings:
    return {
        "beta": _set(0.01, "weight of the KL term to the start; TRL's default of 0 has none"),
        "loss_type": _set("grpo", "written out, since TRL's default is dapo"),
        "epsilon": _set(0.2, "clip range; without effect while every update is on-policy"),
        "scale_rewards": _set("group", "advantages are divided by the group's standard deviation"),
        "importance_sampling_level": _set("token", "one ratio a token"),
        "mask_truncated_completions": _set(
            False, "sources disagree; truncated completions count until shown to hurt"
        ),
        "multi_objective_aggregation": _set("sum_then_normalize", "components are summed by weight first"),
        "use_bias_correction_kl": _set(
            True,
            "makes the KL term's gradient unbiased at token level; TRL's default, which changes training",
        ),
        "disable_dropout": _set(True, "both passes over one completion must give one probability"),
    }


def _bookkeeping(inputs: PlanInputs) -> Settings:
    settings = {
        "logging_steps": _set(LOGGING_STEPS, "eight logged rows need 80 optimizer steps"),
        "logging_nan_inf_filter": _set(
            False, "transformers hides a non-finite loss by default; it must be seen"
        ),
        "save_strategy": _set("steps", "a killed run resumes from the last checkpoint"),
        "save_steps": _set(50, "at most 50 optimizer steps are lost"),
        "save_total_limit": _set(3, "keeps the disk from filling"),
        "eval_strategy": _set("no", "held-out accuracy is measured by its own check"),
        "log_completions": _set(
            False, "rollouts are kept by our own writer; TRL would upload them to trackers"
        ),
        "report_to": _set(
            list(inputs.report_to) or "none", "nothing leaves the machine unless named", "derived"
        ),
        "push_to_hub": _set(False, "nothing leaves the machine unless named"),
    }
    if inputs.reward_weights:
        settings["reward_weights"] = _set(list(inputs.reward_weights), "weights of the components", "derived")
    return settings


def steps_setting(batch: Batch, prompts: int) -> Setting:
    """Return ``max_steps``: one pass over the prompts, but enough to judge and not more than a base run needs."""
    one_pass = batch.optimizer_steps(prompts)
    steps = max(MIN_STEPS, min(one_pass, MAX_STEPS))
    return _set(
        steps,
        f"one pass over {prompts} prompts is {one_pass} optimizer steps; a base run has {MIN_STEPS} to {MAX_STEPS}, "
        "enough to be judged stable",
        "derived",
    )
