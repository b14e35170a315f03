"""Put the plan together: recipe, variant, overrides, checks, memory, remedies, launch. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from rlvr.errors import ConfigError
from rlvr.plan.batch import Batch, check_batch
from rlvr.plan.checks import check_overrides, check_value
from rlvr.plan.combinations import Facts, refuse_harmful, remarks
from rlvr.plan.devices import describe
from rlvr.plan.inputs import PlanInputs
from rlvr.plan.launch import launches
from rlvr.plan.memory.architecture import Architecture, read_architecture
from rlvr.plan.memory.closed_form import closed_form
from rlvr.plan.memory.engine import utilization_for
from rlvr.plan.memory.shape import LORA_LINEAR, RunShape, Sharding
from rlvr.plan.recipe import ACCUMULATION, Context, Settings, base_settings, steps_setting
from rlvr.plan.remedies import remedies_for
from rlvr.plan.throughput import estimate
from rlvr.plan.trl_schema import ConfigSchema, installed_schema
from rlvr.records.plan import Memory, MethodPlan, PlanRecord, Remark, Setting
from rlvr.variants import VARIANTS, required_for, trl_settings

SERVER_SHARE = 0.85
"""Share of a card that the server's weights may take at most."""


@dataclass(frozen=True)
class Layout:
    """Which devices train and which serve.

    Attributes:
        trainers: Devices that train, over all nodes.
        servers: Devices of the server; 0 without one.
        engine: ``transformers``, ``colocate`` or ``server``.
    """

    trainers: int
    servers: int
    engine: str


def build_plan(inputs: PlanInputs, schema: ConfigSchema | None = None) -> PlanRecord:
    """Return the plan.

    Args:
        inputs: All facts; see :class:`rlvr.plan.inputs.PlanInputs`.
        schema: Fields of GRPOConfig; the installed ones when None.

    Raises:
        ConfigError: An override, a combination, the batch or the model's configuration cannot work.
        GateRefused: Learning rate or beta moved without an inspected, stable base run.
    """
    schema = schema or installed_schema()
    architecture = architecture_of(inputs)
    check_overrides(inputs.overrides, schema, inputs.stable_base_runs)
    _check_method(inputs, architecture)
    _check_optimizer(inputs, schema)
    layout = layout_for(inputs, architecture)
    settings = _settings(inputs, architecture, layout)
    settings = {name: setting for name, setting in settings.items() if name in schema.fields}
    config = {name: setting.value for name, setting in settings.items()}
    facts = _facts(inputs, architecture, layout)
    check_batch(batch_of(config, layout.trainers), inputs.data.prompts)
    refuse_harmful(config, facts)
    shape = shape_of(inputs, architecture, config, layout)
    memory = closed_form(shape, inputs.machine.devices[0])
    memory = memory.model_copy(update={"keyed_to": _versions(inputs, schema)})
    record = PlanRecord(
        passed=memory.verdict != "does-not-fit",
        why=_why(memory),
        model=inputs.model.name,
        revision=inputs.model.revision,
        method=_method_plan(inputs),
        settings=settings,
        memory=memory,
        remedies=remedies_for(shape, inputs.machine.devices[0], memory, len(inputs.machine.devices)),
        throughput=estimate(shape, inputs.machine.devices[0], config, inputs.data, inputs.completions),
        remarks=[*remarks(config, facts), *_data_remarks(inputs, architecture)],
        device=describe(inputs.machine.devices),
        versions=_versions(inputs, schema),
        variant=_variant_name(inputs, architecture),
        run_defaults=_default_launch(inputs, layout),
    )
    return record.model_copy(update={"launch": launches(record, shape, inputs.machine, layout.servers)})


def _why(memory: Memory) -> str:
    gib = 1024**3
    low, high = (value / gib for value in memory.band_bytes)
    words = memory.verdict.replace("-", " ")
    return f"{words}: {low:.1f} to {high:.1f} GiB of {memory.capacity_bytes / gib:.1f} GiB"


def layout_for(inputs: PlanInputs, architecture: Architecture) -> Layout:
    """Decide which devices train and which serve."""
    devices = len(inputs.machine.devices) * inputs.machine.nodes
    use_vllm = inputs.machine.devices[0].kind == "cuda" and inputs.machine.vllm_installed
    use_vllm = _override(inputs, "use_vllm", use_vllm and inputs.engine != "off")
    if not use_vllm:
        return Layout(devices, 0, "transformers")
    default = "colocate" if devices == 1 else "server"
    mode = _override(inputs, "vllm_mode", default if inputs.engine == "auto" else inputs.engine)
    if mode == "colocate" or devices == 1:
        return Layout(devices, 0, mode)
    servers = _servers(inputs, architecture)
    if inputs.machine.nodes == 1:
        servers = min(servers, devices - 1)
        return Layout(devices - servers, servers, "server")
    # Over several nodes the server has whole nodes of its own, since every training node starts as many processes.
    count = len(inputs.machine.devices)
    serving = min(-(-servers // count), inputs.machine.nodes - 1)
    return Layout((inputs.machine.nodes - serving) * count, min(servers, serving * count), "server")


def _servers(inputs: PlanInputs, architecture: Architecture) -> int:
    # Tensor parallelism splits the heads evenly.
    room = int(SERVER_SHARE * inputs.machine.devices[0].memory_bytes)
    needed = -(-2 * architecture.parameters // room)
    even = (n for n in (1, 2, 4, 8, 16) if n >= needed and architecture.kv_heads % n == 0)
    return next(even, max(needed, 1))


def _override(inputs: PlanInputs, name: str, default: Any) -> Any:
    return inputs.overrides[name].value if name in inputs.overrides else default


def _check_method(inputs: PlanInputs, architecture: Architecture) -> None:
    method = inputs.method
    if method.kind == "full":
        return
    if method.dropout:
        raise ConfigError(
            "plan.adapter-dropout",
            f"the adapter's dropout is {method.dropout}",
            where="method.dropout",
            expected="0: two passes over one completion must give one probability",
            fix="set method.dropout to 0",
        )
    if not 1 <= method.rank <= architecture.hidden:
        raise ConfigError(
            "plan.adapter-rank",
            f"the adapter's rank is {method.rank}",
            where="method.rank",
            expected=f"1 to {architecture.hidden}",
            fix="set method.rank to 16",
        )
    if method.target_modules != "all-linear" and {"lm_head", "embed_tokens"} & set(method.target_modules):
        raise ConfigError(
            "plan.adapter-on-head",
            "target_modules names lm_head or embed_tokens: TRL reads the head's weight directly, so an adapter on it "
            "would never be trained",
            where="method.target_modules",
            expected="modules inside the layers",
            fix="remove it, or write all-linear",
        )
    if method.kind == "qlora" and inputs.machine.devices[0].kind != "cuda":
        raise ConfigError(
            "plan.qlora-needs-cuda",
            f"qlora on {inputs.machine.devices[0].kind}: the 4-bit kernels need a CUDA device",
            where="method",
            expected="lora or full",
            fix="set method to lora",
        )


def _check_optimizer(inputs: PlanInputs, schema: ConfigSchema) -> None:
    name = str(_override(inputs, "optim", inputs.method.optimizer))
    if inputs.method.optimizer:
        check_value(schema.fields["optim"], inputs.method.optimizer, "method.optimizer")
    wanted = "qlora" if inputs.method.kind == "qlora" else name if _needs_bitsandbytes(name) else ""
    if wanted and not inputs.machine.bitsandbytes_installed:
        raise ConfigError(
            "plan.needs-bitsandbytes",
            f"{wanted} needs bitsandbytes, which is not installed",
            where="method",
            expected="bitsandbytes, or another method or optimizer",
            fix="pip install 'rlvr[bitsandbytes]'",
        )


def _needs_bitsandbytes(optimizer: str) -> bool:
    return optimizer.startswith("paged_") or (optimizer.endswith("8bit") and "torch" not in optimizer)


def _variant_name(inputs: PlanInputs, architecture: Architecture) -> str:
    required = required_for(architecture.experts)
    return inputs.variant or (required.name if required else "")


def _settings(inputs: PlanInputs, architecture: Architecture, layout: Layout) -> Settings:
    context = Context(layout.engine != "transformers", layout.engine, layout.trainers)
    settings = base_settings(inputs, context)
    settings |= _variant_settings(inputs, architecture)
    settings |= _override_settings(inputs, settings)
    config = {name: setting.value for name, setting in settings.items()}
    if "max_steps" not in settings and "num_train_epochs" not in settings:
        settings["max_steps"] = steps_setting(batch_of(config, layout.trainers), inputs.data.prompts)
    if layout.engine == "colocate":
        settings |= _engine_size(inputs, architecture, layout, config)
    return settings


def _variant_settings(inputs: PlanInputs, architecture: Architecture) -> Settings:
    name = _variant_name(inputs, architecture)
    if not name:
        return {}
    variant = VARIANTS.get(name)
    if variant is None:
        raise ConfigError(
            "plan.unknown-variant",
            f"no variant {name!r}",
            where="variant.name",
            expected="one of " + ", ".join(VARIANTS),
            fix="`rlvr variant RUN` names the one that the evidence supports",
        )
    accumulation = _override(inputs, "gradient_accumulation_steps", ACCUMULATION)
    reason = (
        inputs.variant_reason or "required for a model with experts: token ratios are unsound under routing"
    )
    found = {}
    for field, value in trl_settings(variant, accumulation).items():
        own = variant.settings.get(field)
        why = (
            f"{variant.title}: {own.why}"
            if own
            else f"{variant.title}: several updates a generation, so it clips"
        )
        found[field] = Setting(
            value=value, why=f"{why} ({reason})", source="variant", origin=own.source if own else ""
        )
    return found


def _override_settings(inputs: PlanInputs, settings: Settings) -> Settings:
    found = {
        name: Setting(
            value=override.value,
            why=override.why,
            source="override",
            before_base_run=override.before_base_run,
            after=override.after,
        )
        for name, override in inputs.overrides.items()
    }
    accumulation = found.get("gradient_accumulation_steps")
    if accumulation is not None and settings["steps_per_generation"].source != "variant":
        found["steps_per_generation"] = settings["steps_per_generation"].model_copy(
            update={"value": accumulation.value, "source": "derived"}
        )
    if "generation_batch_size" in found:
        settings.pop("steps_per_generation", None)
        found.pop("steps_per_generation", None)
    if "num_train_epochs" in found and "max_steps" not in found:
        settings.pop("max_steps", None)
    if isinstance(kwargs := (found.get("model_init_kwargs")), Setting) and isinstance(kwargs.value, dict):
        merged = {**settings["model_init_kwargs"].value, **kwargs.value}
        found["model_init_kwargs"] = kwargs.model_copy(update={"value": merged})
    return found


def _engine_size(
    inputs: PlanInputs, architecture: Architecture, layout: Layout, config: dict[str, Any]
) -> Settings:
    needed = inputs.data.prompt_max + int(config["max_completion_length"])
    length = -(-needed // 64) * 64
    if architecture.context:
        length = min(length, architecture.context)
    found: Settings = {}
    if "vllm_max_model_length" not in inputs.overrides:
        found["vllm_max_model_length"] = Setting(
            value=length, why=f"longest prompt and completion take {needed} tokens", source="derived"
        )
    device = inputs.machine.devices[0]
    config = config | {name: setting.value for name, setting in found.items()}
    if "vllm_enable_sleep_mode" not in inputs.overrides:
        config["vllm_enable_sleep_mode"] = not device.unified
        found["vllm_enable_sleep_mode"] = Setting(
            value=not device.unified,
            why="sleep frees nothing on unified memory"
            if device.unified
            else "the engine gives its memory back during the update, at the price of waking it each step",
            source="fallback" if device.unified else "derived",
        )
    if "vllm_gpu_memory_utilization" not in inputs.overrides:
        shape = shape_of(inputs, architecture, config, layout)
        found["vllm_gpu_memory_utilization"] = Setting(
            value=round(utilization_for(shape, device.memory_bytes), 2),
            why="share of the whole card: the engine's weights, its activations and the cache of one generation",
            source="derived",
        )
    return found


def batch_of(config: dict[str, Any], processes: int) -> Batch:
    """Return the batch that a configuration means on a number of processes."""
    micro, accumulation = config["per_device_train_batch_size"], config["gradient_accumulation_steps"]
    steps = config.get("steps_per_generation")
    if steps is None and config.get("generation_batch_size"):
        steps = max(config["generation_batch_size"] // (micro * processes), 1)
    return Batch(micro, accumulation, processes, steps or accumulation, config["num_generations"])


def shape_of(
    inputs: PlanInputs, architecture: Architecture, config: dict[str, Any], layout: Layout
) -> RunShape:
    """Return what the memory depends on, from the settings."""
    device, method = inputs.machine.devices[0], inputs.method
    batch = batch_of(config, layout.trainers)
    targets = LORA_LINEAR if method.target_modules == "all-linear" else tuple(method.target_modules)
    kwargs = config.get("model_init_kwargs") or {}
    shape = RunShape(
        architecture=architecture,
        method=method.kind,
        rank=method.rank,
        targets=targets,
        compute="bf16" if config.get("bf16") else "fp16" if config.get("fp16") else "fp32",
        weight_bytes=4 if str(kwargs.get("dtype", "float32")) == "float32" else 2,
        optimizer=str(config.get("optim", "adamw_torch_fused")),
        micro_batch=batch.micro,
        prompt=inputs.data.prompt_max,
        completion=int(config["max_completion_length"]),
        accumulation=batch.accumulation,
        rollouts=max(batch.generation // layout.trainers, 1),
        beta=float(config.get("beta") or 0),
        checkpointing=bool(config.get("gradient_checkpointing", True)),
        attention=str(kwargs.get("attn_implementation", inputs.machine.attention)),
        device=device.kind,
        unified=device.unified,
        engine=layout.engine,  # type: ignore[arg-type]
        utilization=float(config.get("vllm_gpu_memory_utilization", 0.3)),
        sleep=bool(config.get("vllm_enable_sleep_mode", False)),
        engine_parallel=int(config.get("vllm_tensor_parallel_size", 1)),
        engine_context=int(config.get("vllm_max_model_length") or inputs.data.prompt_max + 512),
        trainers=layout.trainers,
        sharding="none",
        old_log_probs=batch.steps_per_generation > batch.accumulation or layout.engine != "transformers",
        reference_adapter=inputs.model.adapter_rank > 0,
    )
    return replace(shape, sharding=_sharding(inputs, shape))


def architecture_of(inputs: PlanInputs) -> Architecture:
    """Return the model's shape; what its weight files hold beyond the language model is counted as frozen."""
    found = read_architecture(inputs.model.config, where=f"model {inputs.model.name}")
    if inputs.model.parameters is None or "quantization_config" in inputs.model.config:
        return found
    beyond = inputs.model.parameters - found.text_parameters
    return replace(found, vision_parameters=max(beyond, 0)) if found.vision_parameters else found


def with_trace(record: PlanRecord, inputs: PlanInputs) -> PlanRecord:
    """Return the plan with the memory of a trace of the real model code (imports torch; seconds)."""
    from rlvr.plan.memory.trace import traced

    architecture = architecture_of(inputs)
    layout = layout_for(inputs, architecture)
    shape = shape_of(inputs, architecture, record.config(), layout)
    device = inputs.machine.devices[0]
    memory = traced(shape, device, dict(inputs.model.config))
    memory = memory.model_copy(update={"keyed_to": record.memory.keyed_to})
    found = remedies_for(shape, device, memory, len(inputs.machine.devices))
    passed = memory.verdict != "does-not-fit"
    return record.model_copy(
        update={"memory": memory, "remedies": found, "passed": passed, "why": _why(memory)}
    )


def _sharding(inputs: PlanInputs, shape: RunShape) -> Sharding:
    if inputs.sharding != "auto":
        return inputs.sharding if shape.trainers > 1 else "none"
    if shape.trainers == 1 or shape.method == "qlora" or shape.device != "cuda":
        return "none"
    whole = closed_form(shape, inputs.machine.devices[0])
    return "none" if whole.verdict == "fits" else "fsdp2"


def _facts(inputs: PlanInputs, architecture: Architecture, layout: Layout) -> Facts:
    return Facts(
        context=architecture.context,
        prompt_max=inputs.data.prompt_max,
        completions=inputs.completions,
        method=inputs.method.kind,
        unified=inputs.machine.devices[0].kind == "cuda" and inputs.machine.devices[0].unified,
        experts=architecture.experts > 0,
        processes=layout.trainers,
        held_out=inputs.data.held_out,
    )


def _method_plan(inputs: PlanInputs) -> MethodPlan:
    method = inputs.method
    if method.kind == "full":
        return MethodPlan(kind="full")
    targets = "all-linear" if method.target_modules == "all-linear" else list(method.target_modules)
    lora = {
        "r": method.rank,
        "lora_alpha": method.alpha or 2 * method.rank,
        "lora_dropout": 0.0,
        "target_modules": targets,
        "bias": "none",
        "task_type": "CAUSAL_LM",
    }
    half = "bfloat16" if inputs.machine.devices[0].bf16 else "float16"
    quantization = {
        "load_in_4bit": True,
        "bnb_4bit_quant_type": "nf4",
        "bnb_4bit_use_double_quant": True,
        "bnb_4bit_compute_dtype": half,
    }
    return MethodPlan(
        kind=method.kind, lora=lora, quantization=quantization if method.kind == "qlora" else {}
    )


def _data_remarks(inputs: PlanInputs, architecture: Architecture) -> list[Remark]:
    found = []
    if not inputs.data.measured:
        text = f"prompt lengths are assumed (longest {inputs.data.prompt_max} tokens)"
        found.append(_information("plan.lengths-assumed", "task.prompts", text))
    if inputs.completions is None and inputs.sampling.max_completion_length is None:
        text = "completion lengths are assumed; the probe measures them"
        found.append(_information("plan.no-probe", "sampling.max_completion_length", text))
    if not architecture.known:
        text = f"family {architecture.family!r} was not checked against real runs; the band is wider than it says"
        found.append(Remark(code="plan.unknown-family", level="warning", where="model", found=text))
    if architecture.experts and inputs.method.kind != "full":
        found += _expert_remarks(inputs)
    if architecture.vision_parameters:
        text = f"a vision tower of about {architecture.vision_parameters:,} parameters stays frozen and is counted"
        found.append(_information("plan.vision-tower", "model", text))
    return found


def _expert_remarks(inputs: PlanInputs) -> list[Remark]:
    found = []
    if inputs.method.target_modules == "all-linear":
        text = "all-linear adapts every expert and the router, whose decisions then move with the policy"
        fix = "method.target_modules: [q_proj, k_proj, v_proj, o_proj]"
        found.append(
            Remark(
                code="plan.adapted-router",
                level="warning",
                where="method.target_modules",
                found=text,
                fix=fix,
            )
        )
    if inputs.method.kind == "qlora":
        text = "experts are one three-dimensional parameter, which bitsandbytes leaves in 16 bits: little is saved"
        found.append(_information("plan.experts-not-quantized", "method", text))
    return found


def _information(code: str, where: str, found: str) -> Remark:
    return Remark(code=code, level="information", where=where, found=found)


def _versions(inputs: PlanInputs, schema: ConfigSchema) -> dict[str, str]:
    return {"trl": schema.trl, "transformers": schema.transformers, **inputs.machine.versions}


def _default_launch(inputs: PlanInputs, layout: Layout) -> str:
    if inputs.machine.nodes > 1:
        return "slurm"
    if layout.servers:
        return "server"
    return "accelerate" if layout.trainers > 1 else "single"
