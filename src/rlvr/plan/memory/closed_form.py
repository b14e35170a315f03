"""Memory by closed form: instant, from the configuration alone."""

from __future__ import annotations

from rlvr.plan.devices import Device
from rlvr.plan.memory.engine import rollout_parts
from rlvr.plan.memory.shape import NF4_BYTES, OPTIMIZER_BYTES, RunShape
from rlvr.records.plan import Memory, Part, Verdict

GIB = 1024**3
MIB = 1024**2

CONTEXT = 600 * MIB
"""Assumed: CUDA context with cuBLAS and kernels; 0.4 to 0.9 GiB in practice."""

FRAGMENTATION = 0.06
"""Assumed: what the caching allocator cannot hand out again, as a share of what was allocated."""


def training_parts(shape: RunShape) -> list[Part]:
    """Return weights, gradients, optimizer state, reference and activations of one device."""
    split = shape.trainers if shape.sharding in ("fsdp2", "zero3") else 1
    split_gradients = shape.trainers if shape.sharding != "none" else 1
    parts = [
        Part(name="weights", bytes=stored_weights(shape) // split, phase="always", note=_weights_note(shape)),
        Part(
            name="gradients",
            bytes=shape.trainable * trainable_bytes(shape) // split_gradients,
            phase="update",
            note=f"{shape.trainable:,} trainable parameters",
        ),
        Part(
            name="optimizer",
            bytes=optimizer_bytes(shape) // split_gradients,
            phase="always",
            note=shape.optimizer,
        ),
        Part(
            name="reference",
            bytes=reference_bytes(shape) // split,
            phase="always",
            note=_reference_note(shape),
        ),
        *activation_parts(shape),
    ]
    return [part for part in parts if part.bytes]


def stored_weights(shape: RunShape) -> int:
    """Return bytes of the policy's weights, adapters included, before sharding."""
    a = shape.architecture
    if shape.method == "full":
        return a.parameters * shape.weight_bytes
    adapters = shape.adapter_parameters * trainable_bytes(shape)
    if shape.method == "lora":
        return a.parameters * shape.weight_bytes + adapters
    packed = a.linear_parameters * NF4_BYTES
    return int(packed) + (a.parameters - a.linear_parameters) * 2 + adapters


def trainable_bytes(shape: RunShape) -> int:
    """Return bytes of one trainable parameter: TRL casts adapters on a quantized base to bf16."""
    return {"full": shape.weight_bytes, "lora": 4, "qlora": 2}[shape.method]


def optimizer_bytes(shape: RunShape) -> int:
    """Return bytes of the optimizer's state; paged states count on unified memory and on the processor only."""
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


def activation_parts(shape: RunShape) -> list[Part]:
    """Return checkpoints, the fullest layer, the head, and autocast's copy of the weights."""
    a, n, b = shape.architecture, shape.tokens, shape.compute_bytes
    kept = a.layers if shape.checkpointing else 0
    layer = layer_bytes(shape) * (1 if shape.checkpointing else a.layers)
    parts = [
        Part(
            name="checkpoints", bytes=kept * n * a.hidden * b, phase="update", note="one hidden state a layer"
        ),
        Part(name="layer", bytes=layer, phase="update", note="activations that backward needs"),
        Part(name="head", bytes=head_bytes(shape), phase="update", note="log-probabilities, in chunks"),
    ]
    if shape.method == "full" and shape.compute != "fp32":
        size = (
            a.text_parameters * 2
            if not shape.checkpointing
            else a.layer_parameters * 2 + a.head_parameters * 2
        )
        parts.append(Part(name="autocast", bytes=size, phase="update", note="16-bit copies of fp32 weights"))
    return parts


def layer_bytes(shape: RunShape) -> int:
    """Return bytes of the activations that the backward of one layer needs."""
    a, n, b = shape.architecture, shape.tokens, shape.compute_bytes
    active = max(a.experts_per_token, 1)
    feed_forward = 4 * a.intermediate * active + 2 * a.shared_intermediate
    attention = 3 * a.query_width + 4 * a.kv_width
    norms = 4 * a.hidden + 2 * a.hidden * 4 // b
    size = n * b * (attention + feed_forward + norms)
    if shape.attention == "eager":
        size += shape.micro_batch * a.heads * (shape.prompt + shape.completion) ** 2 * (4 + b)
    return size


def head_bytes(shape: RunShape) -> int:
    """Return bytes of the head's log-probabilities."""
    a = shape.architecture
    kept = shape.micro_batch * (shape.completion + 1)
    if not shape.chunked_loss:
        return kept * a.vocabulary * (shape.compute_bytes + 4 + 4)
    return kept * a.hidden * (shape.compute_bytes + 4) + 32_768 * 256 * 4


def closed_form(shape: RunShape, device: Device) -> Memory:
    """Return the verdict for one device by closed form."""
    return judge(training_parts(shape) + rollout_parts(shape, device.memory_bytes), shape, device)


def judge(parts: list[Part], shape: RunShape, device: Device) -> Memory:
    """Turn parts into a verdict: the peak is the fullest phase, the band adds what shapes do not tell."""
    always = sum(part.bytes for part in parts if part.phase == "always")
    phases = {
        phase: always + sum(part.bytes for part in parts if part.phase == phase)
        for phase in ("update", "rollout", "sync")
    }
    context = CONTEXT if device.kind == "cuda" else 0
    peak = max(phases.values()) + context
    engine = sum(part.bytes for part in parts if part.name.startswith("vllm") and part.phase == "always")
    slack = int(FRAGMENTATION * (peak - context - engine)) if device.kind == "cuda" else int(0.03 * peak)
    high = peak + slack + (300 * MIB if device.kind == "cuda" else 200 * MIB)
    extra = [
        Part(name="context", bytes=context, phase="always", note="CUDA context and libraries", assumed=True)
    ]
    return Memory(
        verdict=verdict(peak, high, device.memory_bytes),
        peak_bytes=peak,
        band_bytes=(peak, high),
        capacity_bytes=device.memory_bytes,
        margin_bytes=device.memory_bytes - high,
        parts=parts + (extra if context else []),
        phases={name: total + context for name, total in phases.items()},
        assumptions=[f"{part.name}: {part.note}" for part in parts + extra if part.assumed],
    )


def verdict(peak: int, high: int, capacity: int) -> Verdict:
    """Return *fits* when even the upper end fits, *tight* when only the expectation does."""
    if high <= capacity:
        return "fits"
    return "tight" if peak <= capacity else "does-not-fit"


def _weights_note(shape: RunShape) -> str:
    if shape.method == "full":
        return f"{shape.architecture.parameters:,} parameters of {shape.weight_bytes} bytes"
    base = "4-bit" if shape.method == "qlora" else f"{shape.weight_bytes}-byte"
    return f"{base} base of {shape.architecture.parameters:,} parameters and the adapter"


def _reference_note(shape: RunShape) -> str:
    return "a second model for the KL term" if shape.method == "full" else "a copy of the adapter"
