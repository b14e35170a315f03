"""What to change when a run does not fit: each change recomputed; those that fit come first, the cheapest ahead."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from rlvr.plan.devices import Device
from rlvr.plan.memory.closed_form import closed_form
from rlvr.plan.memory.engine import utilization_for
from rlvr.plan.memory.shape import RunShape
from rlvr.records.plan import Memory, Remedy

UNSLOTH_CHUNKS = 4
"""Chunks of the sequence in Unsloth's long-context loss (its ``unsloth_num_chunks``)."""


@dataclass(frozen=True)
class Option:
    """One change.

    Attributes:
        name: Stable name.
        change: Fields of rlvr.yaml or of GRPOConfig, as the user writes them.
        shape: Fields of the run's shape that change with it.
        cost: What it costs.
    """

    name: str
    change: dict[str, Any]
    cost: str
    shape: dict[str, Any] = field(default_factory=dict)


def remedies_for(shape: RunShape, device: Device, memory: Memory, devices: int) -> list[Remedy]:
    """Return ranked remedies; an empty list when everything fits."""
    if memory.verdict == "fits":
        return []
    found = [
        remedy
        for option in _options(shape, device, devices)
        if (remedy := _try(option, shape, device, memory))
    ]
    order = {"fits": 0, "tight": 1, "does-not-fit": 2}
    return sorted(found, key=lambda remedy: order[remedy.verdict])


def _try(option: Option, shape: RunShape, device: Device, memory: Memory) -> Remedy | None:
    after = closed_form(fitted(replace(shape, **option.shape), device), device)
    if after.peak_bytes >= memory.peak_bytes:
        return None
    return Remedy(
        name=option.name,
        change=option.change,
        peak_bytes=after.peak_bytes,
        saves_bytes=memory.peak_bytes - after.peak_bytes,
        verdict=after.verdict,
        cost=option.cost,
    )


def fitted(shape: RunShape, device: Device) -> RunShape:
    """Return the shape with the engine's budget that the plan would give it."""
    if shape.engine != "colocate":
        return shape
    return replace(shape, utilization=utilization_for(shape, device.memory_bytes))


def _options(shape: RunShape, device: Device, devices: int) -> Iterator[Option]:
    """Yield all options in the order of what they cost."""
    yield from _free(shape)
    yield from _batch(shape)
    yield from _optimizer(shape)
    yield from _several(shape, devices)
    yield from _adapters(shape, device)
    yield from _lengths(shape)
    yield from _unsloth(shape, device)


def _free(shape: RunShape) -> Iterator[Option]:
    if not shape.checkpointing:
        yield Option(
            "gradient-checkpointing",
            {"gradient_checkpointing": True},
            "about 20% more time an update",
            {"checkpointing": True},
        )
    if shape.engine == "colocate" and not shape.sleep and not shape.unified:
        yield Option(
            "sleep-mode",
            {"vllm_enable_sleep_mode": True},
            "waking the engine takes seconds a step",
            {"sleep": True},
        )
    if shape.attention == "eager":
        yield Option(
            "sdpa", {"model_init_kwargs.attn_implementation": "sdpa"}, "nothing", {"attention": "sdpa"}
        )


def _batch(shape: RunShape) -> Iterator[Option]:
    for size in dict.fromkeys((shape.micro_batch // 2, shape.micro_batch // 4, 1)):
        if 1 <= size < shape.micro_batch and shape.micro_batch % size == 0:
            times = shape.micro_batch // size
            yield Option(
                f"micro-batch-{size}",
                {
                    "per_device_train_batch_size": size,
                    "gradient_accumulation_steps": shape.accumulation * times,
                },
                f"the same step in forwards of {size}: somewhat slower",
                {"micro_batch": size, "accumulation": shape.accumulation * times},
            )


def _optimizer(shape: RunShape) -> Iterator[Option]:
    if shape.method != "full" or shape.device != "cuda":
        return
    if shape.optimizer.startswith("adamw_torch") and not shape.optimizer.endswith("8bit"):
        yield Option(
            "8-bit-optimizer",
            {"method.optimizer": "adamw_8bit"},
            "moments in 8 bits; needs bitsandbytes",
            {"optimizer": "adamw_8bit"},
        )
        if not shape.unified:
            yield Option(
                "paged-8-bit-optimizer",
                {"method.optimizer": "paged_adamw_8bit"},
                "moments in 8 bits in the processor's memory when the device is full; slower; needs bitsandbytes",
                {"optimizer": "paged_adamw_8bit"},
            )
        yield Option(
            "adafactor",
            {"method.optimizer": "adafactor"},
            "no second moment a parameter: other dynamics than AdamW",
            {"optimizer": "adafactor"},
        )


def _several(shape: RunShape, devices: int) -> Iterator[Option]:
    if devices == 1:
        trainers = 2
        if shape.engine == "colocate":
            yield Option(
                "server",
                {"hardware.device": "2x of this device", "hardware.vllm": "server"},
                "a second device for the rollouts",
                {"engine": "server"},
            )
    else:
        trainers = shape.trainers
    if shape.sharding == "none" and shape.method != "qlora":
        change: dict[str, Any] = {"hardware.sharding": "fsdp2"}
        if devices == 1:
            change["hardware.device"] = "3x of this device: two train, one serves"
        yield Option(
            "fsdp2",
            change,
            "weights, gradients and optimizer are shared out; every layer is gathered again in each pass",
            {"sharding": "fsdp2", "trainers": max(trainers, 2), "engine": "server"},
        )


def _adapters(shape: RunShape, device: Device) -> Iterator[Option]:
    half = {"weight_bytes": 2, "beta": shape.beta}
    if shape.method == "full" and device.kind == "cuda":
        yield Option(
            "lora",
            {"method": "lora"},
            "an adapter is trained at its own reference rate of 5e-6; the base stays",
            {"method": "lora", **half},
        )
    if shape.method != "qlora" and device.kind == "cuda":
        yield Option(
            "qlora",
            {"method": "qlora"},
            "a base rounded to 4 bits, slower passes, adapters in bf16; needs bitsandbytes",
            {"method": "qlora", **half},
        )
        quarter = max(shape.micro_batch // 8, 1)
        yield Option(
            "qlora-and-micro-batch",
            {
                "method": "qlora",
                "per_device_train_batch_size": quarter,
                "gradient_accumulation_steps": shape.accumulation * shape.micro_batch // quarter,
            },
            "as qlora, in smaller forwards",
            {
                "method": "qlora",
                "micro_batch": quarter,
                "accumulation": shape.accumulation * shape.micro_batch // quarter,
                **half,
            },
        )


def _lengths(shape: RunShape) -> Iterator[Option]:
    half = shape.completion // 2
    if half >= 64:
        yield Option(
            "shorter-completions",
            {"sampling.max_completion_length": half},
            "longer completions are cut and paid nothing: compare the probe's lengths",
            {"completion": half, "engine_context": shape.prompt + half},
        )


def _unsloth(shape: RunShape, device: Device) -> Iterator[Option]:
    if device.kind != "cuda" or shape.prompt + shape.completion < 4096:
        return
    yield Option(
        "unsloth-long-context",
        {
            "environment": {"UNSLOTH_VLLM_STANDBY": "1"},
            "unsloth_num_chunks": UNSLOTH_CHUNKS,
            "from_pretrained": {"fast_inference": True, "gpu_memory_utilization": 0.95},
            "use_gradient_checkpointing": "unsloth",
        },
        "another library patches the trainer: run the exported script with it. Its chunked loss and offloaded "
        "checkpoints are counted here as a quarter of the micro-batch; standby shares the engine's weights",
        {"micro_batch": max(shape.micro_batch // UNSLOTH_CHUNKS, 1), "sleep": True},
    )
