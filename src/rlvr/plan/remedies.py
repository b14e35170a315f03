"""What to change when a run does not fit: ranked, each recomputed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rlvr.plan.devices import Device
from rlvr.plan.memory.closed_form import closed_form
from rlvr.plan.memory.shape import RunShape
from rlvr.records.plan import Memory, Remedy

Option = tuple[str, dict[str, Any], dict[str, Any], str]
"""Name, change in rlvr.yaml, change of the shape, cost."""


def remedies_for(shape: RunShape, device: Device, memory: Memory, devices: int) -> list[Remedy]:
    """Return remedies that save memory, those that fit first and the cheapest of them before the others."""
    if memory.verdict == "fits":
        return []
    found = []
    for name, change, fields, cost in _options(shape, device, devices):
        after = closed_form(replace(shape, **fields), device)
        if after.peak_bytes < memory.peak_bytes:
            found.append(
                Remedy(
                    name=name,
                    change=change,
                    peak_bytes=after.peak_bytes,
                    saves_bytes=memory.peak_bytes - after.peak_bytes,
                    verdict=after.verdict,
                    cost=cost,
                )
            )
    order = {"fits": 0, "tight": 1, "does-not-fit": 2}
    return sorted(found, key=lambda remedy: order[remedy.verdict])


def _options(shape: RunShape, device: Device, devices: int) -> list[Option]:
    """Return all options in order of what they cost."""
    options: list[Option] = []
    half = shape.micro_batch // 2
    if half >= 1:
        options.append(
            (
                "smaller-micro-batch",
                {"per_device_train_batch_size": half, "gradient_accumulation_steps": "doubled"},
                {"micro_batch": half},
                "the same step, in more and smaller forwards",
            )
        )
    if shape.completion > 128:
        options.append(
            (
                "shorter-completions",
                {"sampling.max_completion_length": shape.completion // 2},
                {"completion": shape.completion // 2, "engine_context": shape.prompt + shape.completion // 2},
                "longer completions are cut and paid nothing; see the probe's lengths",
            )
        )
    if shape.method == "full":
        options.append(
            (
                "lora",
                {"method": "lora"},
                {"method": "lora", "weight_bytes": 2},
                "an adapter learns, the base stays",
            )
        )
    if shape.method != "qlora" and device.kind == "cuda":
        options.append(
            (
                "qlora",
                {"method": "qlora"},
                {"method": "qlora", "weight_bytes": 2},
                "rollouts and updates differ more: the base is rounded to 4 bits",
            )
        )
    return options
