"""Tokens a second and hours for the run: an estimate from bandwidth and arithmetic, never a promise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

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

WAKE_SECONDS = 3.0
"""Assumed: waking a sleeping engine and sending it the weights, once a generation."""


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
    length = completions.p50 if completions else max(shape.completion // 2, 1)
    token, bound = token_seconds(shape, device, data.prompt_p50 + length // 2)
    update = update_seconds(shape, device, data.prompt_p50 + length)
    wake = WAKE_SECONDS if shape.engine == "colocate" and shape.sleep else 0.0
    per_generation = length * token + update + wake
    steps = max(int(config.get("steps_per_generation") or shape.accumulation) // shape.accumulation, 1)
    seconds = per_generation / steps
    return Throughput(
        rollout_tokens_per_second=round(shape.rollouts * shape.trainers / token, 1),
        update_tokens_per_second=round(
            shape.rollouts * shape.trainers * (data.prompt_p50 + length) / update, 1
        ),
        seconds_per_step=round(seconds, 2),
        hours=round(seconds * max(int(config.get("max_steps") or 0), 1) / 3600, 2),
        bound=bound,
        note=_note(shape, device, length, token),
    )


def token_seconds(
    shape: RunShape, device: Device, context: int
) -> tuple[float, Literal["bandwidth", "compute"]]:
    """Return seconds for one token of every stream at once, and what limits them.

    Args:
        shape: The run.
        device: The device.
        context: Tokens in the cache of one stream, on average.
    """
    a, streams = shape.architecture, shape.rollouts
    cache = streams * context * a.kv_bytes_per_token()
    by_bandwidth = (bytes_read(shape) + cache) / (device.bandwidth * DECODE_BANDWIDTH)
    by_compute = 2 * a.active_parameters * streams / (device.flops * DECODE_COMPUTE)
    slow = TRANSFORMERS_SLOWDOWN if shape.engine == "transformers" else 1.0
    return max(by_bandwidth, by_compute) * slow, "bandwidth" if by_bandwidth >= by_compute else "compute"


def bytes_read(shape: RunShape) -> int:
    """Return bytes of 16-bit weights that one token of all streams reads; of the experts only those that are hit."""
    a = shape.architecture
    if not a.experts:
        return 2 * a.active_parameters
    hit = 1 - (1 - a.experts_per_token / a.experts) ** shape.rollouts
    shared = a.active_parameters - (a.layers - a.dense_layers) * a.experts_per_token * a.expert_parameters
    return int(2 * (shared + hit * (a.layers - a.dense_layers) * a.experts * a.expert_parameters))


def update_seconds(shape: RunShape, device: Device, tokens: int) -> float:
    """Return seconds of forward and backward over one generation.

    Two operations a parameter and token forward, four backward, two more to recompute checkpointed layers, two for
    each pass without gradients (old policy, reference).
    """
    passes = 6 + 2 * shape.checkpointing + 2 * shape.old_log_probs + 2 * (shape.beta > 0)
    work = passes * shape.architecture.active_parameters * tokens * shape.rollouts
    return work / (device.flops * UPDATE_COMPUTE)


def _note(shape: RunShape, device: Device, length: int, token: float) -> str:
    alone = device.bandwidth * DECODE_BANDWIDTH / (2 * shape.architecture.active_parameters)
    return (
        f"an estimate: {shape.rollouts} streams a device, {length} tokens each, {1 / token:.0f} tokens/s a stream; "
        f"one stream alone reaches {alone:.0f} tokens/s from {device.bandwidth / 1e9:.0f} GB/s"
    )
