"""Tokens a second and hours for the run: an estimate from bandwidth and arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlvr.plan.devices import Device
from rlvr.plan.inputs import CompletionLengths, DataFacts
from rlvr.plan.memory.shape import RunShape
from rlvr.records.plan import Throughput

DECODE_BANDWIDTH = 0.7
"""Assumed share of the bandwidth that decoding reaches."""

DECODE_COMPUTE = 0.4
"""Assumed share of dense throughput that batched decoding reaches."""

UPDATE_COMPUTE = 0.35
"""Assumed share of dense throughput that forward and backward reach."""

TRANSFORMERS_SLOWDOWN = 5.0
"""Assumed: how much slower transformers generates than vLLM."""


def estimate(
    shape: RunShape,
    device: Device,
    config: Mapping[str, Any],
    data: DataFacts,
    completions: CompletionLengths | None,
) -> Throughput | None:
    """Return the estimate, or None when the device's bandwidth is unknown."""
    if not device.bandwidth or not device.flops:
        return None
    a = shape.architecture
    length = completions.p50 if completions else shape.completion // 2
    streams = shape.rollouts
    read = (
        2 * a.parameters
        if not a.experts
        else 2 * min(a.parameters, a.active_parameters * max(streams // 4, 1))
    )
    cache = streams * (data.prompt_p50 + length // 2) * a.kv_bytes_per_token()
    by_bandwidth = (read + cache) / (device.bandwidth * DECODE_BANDWIDTH)
    by_compute = 2 * a.active_parameters * streams / (device.flops * DECODE_COMPUTE)
    slow = TRANSFORMERS_SLOWDOWN if shape.engine == "transformers" else 1.0
    token_step = max(by_bandwidth, by_compute) * slow
    passes = 6 + 2 * shape.checkpointing + 2 * shape.old_log_probs + 2 * (shape.beta > 0)
    tokens = shape.rollouts * (data.prompt_p50 + length)
    update = passes * a.active_parameters * tokens / (device.flops * UPDATE_COMPUTE)
    rollout = length * token_step
    seconds = rollout + update
    return Throughput(
        rollout_tokens_per_second=round(streams / token_step, 1),
        update_tokens_per_second=round(tokens / update, 1),
        seconds_per_step=round(seconds, 2),
        hours=round(seconds * max(int(config.get("max_steps") or 0), 1) / 3600, 2),
        bound="bandwidth" if by_bandwidth >= by_compute else "compute",
        note=f"an estimate: {streams} streams at once, {length} tokens each",
    )
