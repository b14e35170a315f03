"""Memory by a trace: the real model code of transformers, PEFT and TRL, run on tensors that have no content.

``FakeTensorMode`` gives every operation its shapes, and a dispatch mode counts the bytes of every storage that is
alive. The fake device is always *cpu*, since a fake CUDA device aborts a CPU build of torch; for a CUDA run the two
places where the devices differ have stand-ins: attention is called as the CUDA kernels (whose shape functions exist
everywhere), and TRL's head runs with its Triton kernels replaced by nothing, since they work in place.

Not seen: what a kernel allocates inside itself, the allocator's rounding, the CUDA context.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from rlvr.errors import InfrastructureError
from rlvr.plan.devices import Device
from rlvr.plan.memory.closed_form import judge, training_parts
from rlvr.plan.memory.engine import rollout_parts
from rlvr.plan.memory.shape import LORA_LINEAR, NF4_BYTES, RunShape
from rlvr.records.plan import Memory, Part

PROBE_LAYERS = (2, 4)
"""Layers that are traced for adapters; the rest follows by a straight line, since all layers are alike."""

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}


@dataclass
class Meter:
    """Bytes that are alive, by part, and what they were when they were most.

    Attributes:
        live: Part to bytes.
        peak: Largest sum so far.
        at_peak: Part to bytes at that moment.
        phase: What a new storage belongs to.
    """

    live: dict[str, int] = field(default_factory=dict)
    peak: int = 0
    at_peak: dict[str, int] = field(default_factory=dict)
    phase: str = "weights"
    _known: dict[int, tuple[str, int, Any]] = field(default_factory=dict)

    def see(self, tensor: torch.Tensor) -> None:
        """Count the tensor's storage, once, until it is freed."""
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self._known:
            return
        size = storage.nbytes()
        self._known[key] = (self.phase, size, weakref.ref(storage, lambda _: self._free(key)))
        self.live[self.phase] = self.live.get(self.phase, 0) + size
        self._look()

    def rename(self, tensor: torch.Tensor, part: str) -> None:
        """Give a storage to another part."""
        key = tensor.untyped_storage()._cdata
        if key in self._known:
            before, size, reference = self._known[key]
            self.live[before] -= size
            self.live[part] = self.live.get(part, 0) + size
            self._known[key] = (part, size, reference)

    def add(self, part: str, size: int) -> None:
        """Count bytes that no tensor stands for."""
        self.live[part] = self.live.get(part, 0) + size
        self._look()

    def _free(self, key: int) -> None:
        part, size, _ = self._known.pop(key)
        self.live[part] -= size

    def _look(self) -> None:
        total = sum(self.live.values())
        if total > self.peak:
            self.peak, self.at_peak = total, dict(self.live)


class _Counting(TorchDispatchMode):  # type: ignore[misc]
    """Reports every tensor that an operation returns."""

    def __init__(self, meter: Meter) -> None:
        super().__init__()
        self.meter = meter

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(out):
            if isinstance(leaf, torch.Tensor):
                self.meter.see(leaf)
        return out


def trace_parts(shape: RunShape, config: dict[str, Any]) -> dict[str, int]:
    """Return part to bytes at the peak of one update, before sharding.

    Args:
        shape: The run.
        config: The model's ``config.json``.
    """
    layers = shape.architecture.layers
    if shape.method == "full" or layers <= PROBE_LAYERS[1]:
        return _trace(shape, config, layers)
    low, high = (_trace(shape, config, count) for count in PROBE_LAYERS)
    per_layer = {
        name: (high.get(name, 0) - low.get(name, 0)) / (PROBE_LAYERS[1] - PROBE_LAYERS[0]) for name in high
    }
    return {name: int(low.get(name, 0) + per_layer[name] * (layers - PROBE_LAYERS[0])) for name in high}


def _trace(shape: RunShape, config: dict[str, Any], layers: int) -> dict[str, int]:
    meter = Meter()
    shape = replace(shape, architecture=replace(shape.architecture, layers=layers))
    with _quiet(), _stand_ins(shape):
        with torch.device("meta"):
            model = _model(shape, config, layers)
        with FakeTensorMode(), _Counting(meter):
            _materialize(model)
            _update(model, shape, meter)
            result = dict(meter.at_peak)
    return result


def _model(shape: RunShape, config: dict[str, Any], layers: int) -> Any:
    from transformers import AutoModelForCausalLM

    add_fused_lm_head = _fused_head()

    dtype = torch.float32 if shape.weight_bytes == 4 and shape.method != "qlora" else DTYPES[shape.half]
    attention = "eager" if shape.attention == "eager" else "rlvr_trace"
    parsed = _configuration(config, layers)
    model = AutoModelForCausalLM.from_config(parsed, dtype=dtype, attn_implementation=attention)
    add_fused_lm_head(model, temperature=1.0, outputs=("log_probs", "entropy"))
    if shape.checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    if shape.method != "full":
        model = _with_adapter(model, shape)
        if shape.checkpointing:
            model.enable_input_require_grads()
    return model.train()


def _fused_head() -> Any:
    try:
        from trl.trainer.utils import add_fused_lm_head
    except ImportError:
        raise InfrastructureError(
            "plan.trace-needs-newer-trl",
            "this TRL has no fused head that a trace could run",
            expected="TRL 1.16 for --trace; the closed form works for every supported version",
            fix="pip install 'trl==1.16.*', or leave --trace out",
        ) from None
    return add_fused_lm_head


def _configuration(config: dict[str, Any], layers: int) -> Any:
    from transformers import AutoConfig

    text = dict(config.get("text_config") or config)
    family = text.pop("model_type")
    for name in ("architectures", "transformers_version", "quantization_config", "dtype", "torch_dtype"):
        text.pop(name, None)
    text["num_hidden_layers"] = layers
    if "layer_types" in text:
        text["layer_types"] = list(text["layer_types"])[:layers]
    return AutoConfig.for_model(family, **text)


def _with_adapter(model: Any, shape: RunShape) -> Any:
    from peft import LoraConfig, get_peft_model

    targets = "all-linear" if shape.targets == LORA_LINEAR else list(shape.targets)
    config = LoraConfig(
        r=shape.rank, lora_alpha=2 * shape.rank, target_modules=targets, task_type="CAUSAL_LM"
    )
    if shape.method == "qlora":
        _quantize(model)
    wrapped = get_peft_model(model, config)
    if shape.method == "qlora":  # TRL casts the adapter on a quantized base
        for parameter in wrapped.parameters():
            if parameter.requires_grad:
                parameter.data = parameter.data.to(torch.bfloat16)
    return wrapped


class _Dequantized(torch.autograd.Function):  # type: ignore[misc]
    """A 4-bit product: the 16-bit weight exists only while it is multiplied, in forward and in backward."""

    @staticmethod
    def forward(ctx: Any, states: torch.Tensor, packed: torch.Tensor, size: tuple[int, int]) -> torch.Tensor:
        ctx.size = size
        return states @ torch.empty(size, dtype=states.dtype, device=states.device).t()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        return gradient @ torch.empty(ctx.size, dtype=gradient.dtype, device=gradient.device), None, None


class _Linear4bit(torch.nn.Linear):  # type: ignore[misc]
    """A linear layer whose stored weight has half a byte a value; PEFT wraps it as any linear layer."""

    def __init__(self, original: torch.nn.Linear) -> None:
        super().__init__(
            original.in_features, original.out_features, original.bias is not None, device="meta"
        )
        self.bias = original.bias
        count = original.in_features * original.out_features
        packed = torch.empty(int(count * NF4_BYTES), dtype=torch.uint8, device="meta")
        self.weight = torch.nn.Parameter(packed, requires_grad=False)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = _Dequantized.apply(states, self.weight, (self.out_features, self.in_features))
        return out if self.bias is None else out + self.bias


def _quantize(model: Any) -> None:
    head = model.get_output_embeddings()
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if type(child) is torch.nn.Linear and child is not head:
                setattr(module, name, _Linear4bit(child))


def _materialize(model: Any) -> None:
    """Give every parameter and buffer storage that is counted, tied ones once."""
    made: dict[int, torch.Tensor] = {}
    for module in model.modules():
        for name, parameter in module._parameters.items():
            if parameter is not None:
                if id(parameter) not in made:
                    empty = torch.empty(parameter.shape, dtype=parameter.dtype)
                    made[id(parameter)] = torch.nn.Parameter(empty, requires_grad=parameter.requires_grad)
                module._parameters[name] = made[id(parameter)]
        for name, buffer in module._buffers.items():
            if buffer is not None:
                module._buffers[name] = torch.empty(buffer.shape, dtype=buffer.dtype)


def _update(model: Any, shape: RunShape, meter: Meter) -> None:
    """Run two micro-batches of one optimizer step, so that all gradients exist while activations peak."""
    meter.phase = "activations"
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    for parameter in trainable:
        parameter.register_post_accumulate_grad_hook(lambda p: meter.rename(p.grad, "gradients"))
    batch = _batch(shape)
    _micro_step(model, shape, batch)
    if shape.accumulation > 1:
        _micro_step(model, shape, batch)


def _batch(shape: RunShape) -> dict[str, torch.Tensor]:
    size, length = shape.micro_batch, shape.prompt + shape.completion
    ids = torch.zeros(size, length, dtype=torch.long)
    # Labels that are already shifted keep the stand-in from copying every position first.
    batch = {"input_ids": ids, "shift_labels" if shape.device == "cuda" else "labels": torch.zeros_like(ids)}
    if shape.padded:
        batch["attention_mask"] = torch.ones(size, 1, length, length, dtype=torch.bool)
    return batch


def _micro_step(model: Any, shape: RunShape, batch: dict[str, torch.Tensor]) -> None:
    autocast = contextlib.nullcontext()
    if shape.compute != "fp32":
        autocast = torch.autocast("cpu", dtype=DTYPES[shape.compute])
    with autocast:
        out = model(**batch, fused_lm_head=True, use_cache=False)
    log_probs = out.log_probs[:, -shape.completion :]
    _loss(log_probs, shape).backward()


def _loss(log_probs: torch.Tensor, shape: RunShape) -> torch.Tensor:
    ratio = torch.exp(log_probs - log_probs.detach())
    advantages = torch.ones(log_probs.shape[0], 1)
    mask = torch.ones(log_probs.shape, dtype=torch.long)
    loss = -torch.min(ratio * advantages, torch.clamp(ratio, 0.8, 1.2) * advantages)
    if shape.beta:
        reference = torch.zeros(log_probs.shape)
        difference = reference - log_probs
        loss = loss + shape.beta * (torch.exp(difference) - difference - 1) * ratio
    return ((loss * mask).sum(-1) / mask.sum(-1).clamp(min=1.0)).mean()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    import warnings

    import transformers

    before = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        transformers.logging.set_verbosity(before)


@contextlib.contextmanager
def _stand_ins(shape: RunShape) -> Iterator[None]:
    """Call attention as the device does, and leave out Triton's kernels for a CUDA run."""
    from transformers import AttentionInterface

    attention = _cuda_attention if shape.device == "cuda" else _cpu_attention
    AttentionInterface.register("rlvr_trace", attention)
    from transformers.integrations import moe

    with _replaced(moe, {"_grouped_mm": _grouped}):
        if shape.device != "cuda":
            yield
            return
        from trl.kernels import chunked_logprob as kernels
        from trl.trainer import utils

        head = _CompactHead(shape.micro_batch, shape.completion, utils._ChunkedLogProbFunction)
        caller = {"_use_triton": lambda device: False, "_ChunkedLogProbFunction": head}
        with _replaced(utils, caller), _replaced(kernels, _kernels_on_cuda()):
            yield


@dataclass(frozen=True)
class _CompactHead:
    """TRL's head as it runs with Triton: only scored positions are copied out and projected.

    TRL picks them by a mask, whose size a tensor without content cannot tell; a slice copies as much.
    """

    size: int
    scored: int
    function: Any

    def apply(self, hidden: Any, weight: Any, bias: Any, labels: Any, *rest: Any) -> tuple[Any, ...]:
        length = hidden.shape[0] // self.size
        place = slice(length - self.scored - 1, length - 1)
        kept = hidden.view(self.size, length, -1)[:, place].reshape(-1, hidden.shape[-1])
        targets = labels.view(self.size, length)[:, place].reshape(-1)
        found = self.function.apply(kept, weight, bias, targets, *rest)
        return tuple(None if x is None else self._back(x, length) for x in found)

    def _back(self, values: torch.Tensor, length: int) -> torch.Tensor:
        padding = (length - self.scored - 1, 1)
        return torch.nn.functional.pad(values.view(self.size, self.scored), padding).reshape(-1)


def _kernels_on_cuda() -> dict[str, Any]:
    return {
        "_use_triton": lambda device: True,
        "_forward_kernel": _Nothing(),
        "_backward_kernel": _Nothing(),
        "_addmm_fp32": lambda total, left, right: None,
        "triton": SimpleNamespace(cdiv=lambda a, b: -(-a // b)),
    }


@contextlib.contextmanager
def _replaced(module: Any, values: dict[str, Any]) -> Iterator[None]:
    missing = object()
    before = {name: getattr(module, name, missing) for name in values}
    for name, value in values.items():
        setattr(module, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is missing:
                delattr(module, name)
            else:
                setattr(module, name, value)


class _Grouped(torch.autograd.Function):  # type: ignore[misc]
    """Products of tokens with their experts; the kernel's own shape function refuses fp32."""

    @staticmethod
    def forward(ctx: Any, states: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(states, weight)
        return torch.empty(states.shape[0], weight.shape[-1], dtype=states.dtype)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        states, weight = ctx.saved_tensors
        return torch.empty_like(states), torch.empty_like(weight) if ctx.needs_input_grad[1] else None


def _grouped(states: torch.Tensor, weight: torch.Tensor, offs: Any) -> torch.Tensor:
    out: torch.Tensor = _Grouped.apply(states.to(weight.dtype), weight)
    return out


class _Nothing:
    """A kernel that works in place: launching it allocates nothing."""

    def __getitem__(self, grid: Any) -> Any:
        return lambda *args, **kwargs: None


def _repeated(states: torch.Tensor, times: int) -> torch.Tensor:
    if times == 1:
        return states
    size, heads, length, width = states.shape
    return (
        states[:, :, None]
        .expand(size, heads, times, length, width)
        .reshape(size, heads * times, length, width)
    )


def _autocast(*tensors: torch.Tensor) -> list[torch.Tensor]:
    """Cast as autocast does for ``scaled_dot_product_attention``, whose kernels are called here by name."""
    if not torch.is_autocast_enabled("cpu"):
        return list(tensors)
    return [tensor.to(torch.get_autocast_dtype("cpu")) for tensor in tensors]


def _cpu_attention(
    module: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: Any, **kwargs: Any
) -> tuple[torch.Tensor, None]:
    query, key, value = _autocast(query, key, value)
    bias = None
    if mask is not None:  # without a mask, grouped heads go in as they are
        groups = getattr(module, "num_key_value_groups", 1)
        key, value = _repeated(key, groups), _repeated(value, groups)
        bias = mask.to(query.dtype) if mask.dtype == torch.bool else mask
    attend = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    out = attend(query, key, value, 0.0, mask is None, attn_mask=bias)[0]
    return out.transpose(1, 2).contiguous(), None


def _cuda_attention(
    module: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: Any, **kwargs: Any
) -> tuple[torch.Tensor, None]:
    query, key, value = _autocast(query, key, value)
    if mask is None:
        out = torch.ops.aten._scaled_dot_product_flash_attention(query, key, value, 0.0, True)[0]
        return out.transpose(1, 2).contiguous(), None
    groups = getattr(module, "num_key_value_groups", 1)
    key, value = _repeated(key, groups), _repeated(value, groups)
    bias = mask.to(query.dtype).expand(query.shape[0], query.shape[1], query.shape[2], key.shape[2])
    out = torch.ops.aten._scaled_dot_product_efficient_attention(query, key, value, bias, True)[0]
    return out.transpose(1, 2).contiguous(), None


def traced(shape: RunShape, device: Device, config: dict[str, Any]) -> Memory:
    """Return the verdict for one device, with the update's activations from the trace.

    Args:
        shape: The run.
        device: The device.
        config: The model's ``config.json``.
    """
    found = trace_parts(shape, config)
    parts = [part for part in training_parts(shape) if part.name in ("optimizer", "reference")]
    split = shape.trainers if shape.sharding in ("fsdp2", "zero3") else 1
    parts += [
        Part(
            name="weights", bytes=found["weights"] // split, phase="always", note="every parameter and buffer"
        ),
        Part(name="gradients", bytes=found.get("gradients", 0) // split, phase="update", note="at the peak"),
        Part(name="activations", bytes=found["activations"], phase="update", note="traced"),
    ]
    memory = judge(parts + rollout_parts(shape, device.memory_bytes), shape, device)
    return memory.model_copy(update={"method": "trace"})
