"""Memory by closed form: instant, from the configuration alone.

    peak = weights + optimizer + reference + max(update, rollout, sync)

An update holds the gradients and the activations of its fullest moment (see :mod:`rlvr.plan.memory.moments`), a
rollout the engine's budget or a key-value cache, a sync both copies of the weights.
"""

from __future__ import annotations

from dataclasses import replace

from rlvr.plan.devices import Device
from rlvr.plan.memory.engine import engine_weights, rollout_parts
from rlvr.plan.memory.moments import Moment, largest_moment
from rlvr.plan.memory.shape import NF4_BYTES, OPTIMIZER_BYTES, RunShape
from rlvr.records.plan import Memory, Part, Verdict

GIB = 1024**3
MIB = 1024**2

CONTEXT = 600 * MIB
"""Assumed: CUDA context with cuBLAS and kernels; 0.4 to 0.9 GiB in practice."""

FRAGMENTATION = 0.06
"""Assumed: what the caching allocator cannot hand out again, as a share of what was allocated."""

BATCH_BYTES = 28
"""Bytes a token of the rollouts that wait to be trained on: ids, masks, log-probabilities (measured)."""

ZERO_BUCKETS = 2 * 200_000_000 * 2
"""DeepSpeed's reduce and all-gather buckets, as this project's configuration sets them, in 16 bits."""

GATHERED_LAYERS = 2
"""Assumed: layers that FSDP2 or ZeRO-3 holds whole at once, one in use and one fetched ahead."""


def closed_form(shape: RunShape, device: Device) -> Memory:
    """Return the verdict for one device by closed form."""
    return judge(training_parts(shape) + rollout_parts(shape, device.memory_bytes), shape, device)


def training_parts(shape: RunShape) -> list[Part]:
    """Return everything but the rollouts, on one device."""
    update = largest_moment(shape)
    parts = state_parts(shape) + update_parts(shape, update) + sharding_parts(shape)
    return [part for part in parts if part.bytes > 0]


def state_parts(shape: RunShape) -> list[Part]:
    """Return weights, optimizer state and reference: what is there all the time."""
    return [
        Part(name="weights", bytes=weight_bytes(shape), phase="always", note=_weights_note(shape)),
        Part(
            name="optimizer",
            bytes=optimizer_bytes(shape) // _shards(shape, "zero2", "zero3", "fsdp2"),
            phase="always",
            note=f"{shape.optimizer}, {shape.trainable:,} trainable parameters",
        ),
        Part(
            name="reference",
            bytes=reference_bytes(shape) // _shards(shape, "zero3", "fsdp2"),
            phase="always",
            note="a second model for the KL term" if shape.method == "full" else "a copy of the adapter",
        ),
        Part(
            name="rollout-buffers",
            bytes=shape.rollouts * (shape.prompt + shape.completion) * BATCH_BYTES,
            phase="always",
            note=f"ids, masks and log-probabilities of {shape.rollouts} completions",
        ),
    ]


def update_parts(shape: RunShape, moment: Moment) -> list[Part]:
    """Return gradients, checkpoints, and the rest of the fullest moment."""
    gradients = min(shape.trainable * trainable_bytes(shape), moment.total)
    checkpoints = moment.checkpoints if shape.checkpointing else 0
    rest = max(moment.total - gradients - checkpoints, 0)
    is_head = "head" in moment.name
    note = "log-probabilities, projected in chunks" if is_head else f"fullest moment: {moment.name}"
    return [
        Part(
            name="gradients",
            bytes=gradients // _shards(shape, "zero2", "zero3", "fsdp2"),
            phase="update",
            note=f"{trainable_bytes(shape)} bytes a trainable parameter",
        ),
        Part(name="checkpoints", bytes=checkpoints, phase="update", note="one hidden state a layer"),
        Part(name="head" if is_head else "layer", bytes=rest, phase="update", note=note),
        *_eager_scores(shape),
    ]


def _eager_scores(shape: RunShape) -> list[Part]:
    if shape.attention != "eager":
        return []
    a, length = shape.architecture, shape.prompt + shape.completion
    layers = 1 if shape.checkpointing else a.layers
    size = layers * shape.micro_batch * a.heads * length * length * (4 + 3 * shape.compute_bytes)
    note = "eager attention keeps every score: quadratic in the length"
    return [Part(name="attention-scores", bytes=size, phase="update", note=note, assumed=True)]


def sharding_parts(shape: RunShape) -> list[Part]:
    """Return buckets and gathered layers of a run over several devices."""
    if shape.trainers == 1:
        return []
    a = shape.architecture
    if shape.sharding == "none":
        size = shape.trainable * trainable_bytes(shape)
        return [Part(name="buckets", bytes=size, phase="update", note="DDP's gradient buckets", assumed=True)]
    gathered = GATHERED_LAYERS * a.layer_parameters * 2 + 4 * a.embedding_parameters
    whole = Part(
        name="gathered",
        bytes=gathered,
        phase="update",
        note="layers and head held whole at once",
        assumed=True,
    )
    buckets = Part(
        name="buckets", bytes=ZERO_BUCKETS, phase="update", note="DeepSpeed's buckets", assumed=True
    )
    return {"fsdp2": [whole], "zero2": [buckets], "zero3": [whole, buckets]}[shape.sharding]


def _shards(shape: RunShape, *kinds: str) -> int:
    return shape.trainers if shape.sharding in kinds else 1


def weight_bytes(shape: RunShape) -> int:
    """Return bytes of the policy's weights on one device, adapters included."""
    if shape.sharding == "zero2" and shape.method == "full":  # a 16-bit copy whole, fp32 masters in shards
        a = shape.architecture
        return 2 * a.parameters + 4 * a.parameters // shape.trainers
    return stored_weights(shape) // _shards(shape, "fsdp2", "zero3")


def stored_weights(shape: RunShape) -> int:
    """Return bytes of the policy's weights, adapters included, before sharding."""
    a = shape.architecture
    if shape.method == "full":
        return a.parameters * shape.weight_bytes
    adapters = shape.adapter_parameters * trainable_bytes(shape)
    if shape.method == "lora":
        return a.parameters * shape.weight_bytes + adapters
    return int(a.linear_parameters * NF4_BYTES) + (a.parameters - a.linear_parameters) * 2 + adapters


def trainable_bytes(shape: RunShape) -> int:
    """Return bytes of one trainable parameter: TRL casts adapters on a quantized base to bf16."""
    return {"full": shape.weight_bytes, "lora": 4, "qlora": 2}[shape.method]


def optimizer_bytes(shape: RunShape) -> int:
    """Return bytes of the optimizer's state; paged states count where processor and device share one memory."""
    if shape.optimizer.startswith("paged") and shape.device == "cuda" and not shape.unified:
        return 0
    per_fp32 = OPTIMIZER_BYTES.get(shape.optimizer, 8.0)
    scale = trainable_bytes(shape) / 4 if per_fp32 in (4.0, 8.0) else 1.0
    return int(shape.trainable * per_fp32 * scale)


def reference_bytes(shape: RunShape) -> int:
    """Return bytes of the reference model: only with beta above 0 and without an adapter to switch off."""
    if shape.beta == 0:
        return 0
    if shape.method == "full":
        return shape.architecture.parameters * shape.weight_bytes
    return shape.adapter_parameters * trainable_bytes(shape) if shape.reference_adapter else 0


def judge(parts: list[Part], shape: RunShape, device: Device) -> Memory:
    """Turn parts into a verdict: the peak is the fullest phase, the band adds what shapes do not tell."""
    context = CONTEXT if device.kind == "cuda" else 0
    if context:
        note = "CUDA context and libraries"
        parts = [*parts, Part(name="context", bytes=context, phase="always", note=note, assumed=True)]
    always = sum(part.bytes for part in parts if part.phase == "always")
    phases = {
        phase: always + sum(part.bytes for part in parts if part.phase == phase)
        for phase in ("update", "rollout")
    }
    phases["sync"] = always + _awake(shape)
    peak = max(phases.values())
    high = peak + _slack(parts, phases, context, device)
    return Memory(
        verdict=verdict(peak, high, device.memory_bytes),
        peak_bytes=peak,
        band_bytes=(peak, high),
        capacity_bytes=device.memory_bytes,
        margin_bytes=device.memory_bytes - high,
        parts=parts,
        phases=phases,
        assumptions=[
            f"{part.name} ({part.bytes / GIB:.2f} GiB): {part.note}" for part in parts if part.assumed
        ],
    )


def _awake(shape: RunShape) -> int:
    # A sleeping engine wakes its weights to receive the new ones, while the trainer still holds its own.
    return engine_weights(shape) if shape.engine == "colocate" and shape.sleep and not shape.unified else 0


def _slack(parts: list[Part], phases: dict[str, int], context: int, device: Device) -> int:
    if device.kind != "cuda":
        return int(0.03 * max(phases.values())) + 200 * MIB
    # The engine's budget is allocated once and does not fragment.
    engine = sum(part.bytes for part in parts if part.name.startswith("vllm"))
    update, rollout = phases["update"] - context, phases["rollout"] - context
    return int(FRAGMENTATION * (update if update >= rollout else max(rollout - engine, 0))) + 300 * MIB


def verdict(peak: int, high: int, capacity: int) -> Verdict:
    """Return *fits* when even the upper end fits, *tight* when only the expectation does."""
    if high <= capacity:
        return "fits"
    return "tight" if peak <= capacity else "does-not-fit"


def largest_micro_batch(shape: RunShape, device: Device, most: int = 64) -> int:
    """Return the largest micro-batch (a power of two) that fits; 0 when not even one completion does."""
    sizes = [2**i for i in range(most.bit_length()) if 2**i <= most]
    fitting = [n for n in sizes if closed_form(replace(shape, micro_batch=n), device).verdict == "fits"]
    return max(fitting, default=0)


def _weights_note(shape: RunShape) -> str:
    if shape.method == "full":
        return f"{shape.architecture.parameters:,} parameters of {shape.weight_bytes} bytes"
    base = "4-bit" if shape.method == "qlora" else f"{shape.weight_bytes}-byte"
    return f"{base} base of {shape.architecture.parameters:,} parameters, and the adapter"
