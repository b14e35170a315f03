"""Memory of the rollouts: vLLM's budget, its weights and KV cache, or the cache of transformers' generation."""

from __future__ import annotations

from rlvr.plan.memory.shape import RunShape
from rlvr.records.plan import Part

GIB = 1024**3
MIB = 1024**2

ENGINE_ACTIVATIONS = 1 * GIB
"""Assumed: activations of vLLM's profiling run (2048 to 8192 batched tokens) and its own buffers."""

GRAPHS = 600 * MIB
"""Assumed: CUDA graphs, captured outside of vLLM's budget; 0.3 to 1 GiB in practice."""

MIN_SEQUENCES = 8
"""Sequences whose cache must fit at once for the engine to be of use."""


def engine_weights(shape: RunShape) -> int:
    """Return bytes of the engine's 16-bit copy of the weights on one device."""
    return 2 * shape.architecture.parameters // max(shape.engine_parallel, 1)


def engine_floor(shape: RunShape) -> int:
    """Return the smallest useful budget: weights, activations, and the cache of a few sequences."""
    cache = MIN_SEQUENCES * shape.engine_context * shape.architecture.kv_bytes_per_token()
    return engine_weights(shape) + ENGINE_ACTIVATIONS + cache // max(shape.engine_parallel, 1)


def utilization_for(shape: RunShape, capacity: int) -> float:
    """Return the share of the card that holds weights and the cache of all rollouts, in steps of 0.05.

    The cache of more sequences than are generated at once would stay empty, so the budget ends there.
    """
    a = shape.architecture
    cache = shape.rollouts * shape.engine_context * a.kv_bytes_per_token() // max(shape.engine_parallel, 1)
    wanted = engine_weights(shape) + ENGINE_ACTIVATIONS + cache
    share = max(engine_floor(shape), min(wanted, int(0.5 * capacity))) / capacity
    return min(0.9, max(0.1, -(-share // 0.05) * 0.05))


def rollout_parts(shape: RunShape, capacity: int) -> list[Part]:
    """Return the parts that exist while completions are generated."""
    if shape.engine == "server":
        return []
    if shape.engine == "transformers":
        return [_generation_cache(shape)]
    return _colocated(shape, capacity)


def _colocated(shape: RunShape, capacity: int) -> list[Part]:
    budget = max(int(shape.utilization * capacity), engine_floor(shape))
    weights = engine_weights(shape)
    phase = "rollout" if shape.sleep and not shape.unified else "always"
    cache = max(budget - weights - ENGINE_ACTIVATIONS, 0)
    return [
        Part(name="vllm-weights", bytes=weights, phase=phase, note="16-bit copy of the policy for rollouts"),
        Part(
            name="vllm-kv-cache",
            bytes=cache,
            phase=phase,
            note=f"what is left of the budget of {shape.utilization:.2f} of the card",
        ),
        Part(
            name="vllm-activations",
            bytes=ENGINE_ACTIVATIONS,
            phase=phase,
            note="vLLM's own profiling run",
            assumed=True,
        ),
        Part(
            name="cuda-graphs",
            bytes=GRAPHS,
            phase="always",
            note="captured outside of vLLM's budget",
            assumed=True,
        ),
    ]


def _generation_cache(shape: RunShape) -> Part:
    a = shape.architecture
    tokens = shape.rollouts * (shape.prompt + shape.completion)
    size = tokens * a.kv_bytes_per_token(shape.compute_bytes if shape.device == "cuda" else 4)
    note = (
        f"{shape.rollouts} completions generated at once, {a.kv_bytes_per_token():,} bytes a token in 16 bits"
    )
    return Part(name="kv-cache", bytes=size, phase="rollout", note=note)
