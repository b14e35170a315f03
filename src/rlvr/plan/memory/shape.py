"""What the memory of a run depends on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from rlvr.plan.memory.architecture import Architecture

Sharding = Literal["none", "fsdp2", "zero2", "zero3"]

LORA_LINEAR = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
"""What ``all-linear`` means for the usual decoder: every linear layer but the head."""

PHI3_LINEAR = ("qkv_proj", "o_proj", "gate_up_proj", "down_proj")
"""The same for the family that fuses its projections."""

NF4_BYTES = 0.5 + 1 / 64 + 4 / (64 * 256)
"""Bytes of a weight in NF4 with double quantization: half a byte, one 8-bit scale for 64 weights, one fp32 scale for
256 of those (s: QLoRA, arXiv 2305.14314, section 3)."""

OPTIMIZER_BYTES = {
    "adamw_torch": 8.0,
    "adamw_torch_fused": 8.0,
    "adamw_torch_8bit": 2.0,
    "adamw_8bit": 2.0,
    "adamw_bnb_8bit": 2.0,
    "paged_adamw_8bit": 2.0,
    "paged_adamw_32bit": 8.0,
    "adamw_anyprecision": 6.0,
    "adafactor": 0.02,
    "lion_8bit": 1.0,
    "lion_32bit": 4.0,
    "paged_lion_8bit": 1.0,
    "paged_lion_32bit": 4.0,
    "sgd": 0.0,
}
"""State bytes for one fp32 parameter. 8-bit states keep one scale for each block of 256 values (1.6% more)."""


@dataclass(frozen=True)
class RunShape:
    """One device's share of a run.

    Attributes:
        architecture: The model.
        method: ``full``, ``lora`` or ``qlora``.
        rank: Rank of the adapter.
        targets: Modules with an adapter.
        compute: ``bf16``, ``fp16`` or ``fp32``: the autocast type.
        weight_bytes: Bytes of a stored weight: 4 for master weights, 2 for a frozen base.
        optimizer: Name as in GRPOConfig.
        micro_batch: Completions of one forward.
        prompt: Padded prompt length in tokens.
        completion: Completion length in tokens.
        accumulation: Forwards before an optimizer step.
        padded: Whether sequences differ in length, so that attention takes a mask.
        rollouts: Completions that one device generates at once.
        beta: Coefficient of the KL term.
        checkpointing: Gradient checkpointing.
        attention: ``sdpa``, ``flash_attention_2`` or ``eager``.
        device: ``cuda`` or ``cpu``.
        unified: One memory for processor and accelerator.
        engine: ``transformers``, ``colocate`` or ``server``.
        utilization: vLLM's share of the whole card.
        sleep: vLLM's sleep mode.
        engine_parallel: Tensor-parallel size of a colocated engine.
        engine_context: Longest sequence of the engine.
        trainers: Devices that train.
        sharding: How the state is spread over them.
        old_log_probs: Whether TRL runs a forward without gradients before the update.
        reference_adapter: A copy of a loaded adapter serves as reference.
        chunked_loss: TRL computes the head's log-probabilities in chunks (1.13 and newer).
    """

    architecture: Architecture
    method: Literal["full", "lora", "qlora"] = "full"
    rank: int = 16
    targets: tuple[str, ...] = LORA_LINEAR
    compute: Literal["bf16", "fp16", "fp32"] = "bf16"
    weight_bytes: int = 4
    optimizer: str = "adamw_torch_fused"
    micro_batch: int = 8
    prompt: int = 512
    completion: int = 512
    accumulation: int = 4
    padded: bool = True
    rollouts: int = 32
    beta: float = 0.01
    checkpointing: bool = True
    attention: str = "sdpa"
    device: Literal["cuda", "cpu", "mps"] = "cuda"
    unified: bool = False
    engine: Literal["transformers", "colocate", "server"] = "colocate"
    utilization: float = 0.3
    sleep: bool = True
    engine_parallel: int = 1
    engine_context: int = 1024
    trainers: int = 1
    sharding: Sharding = "none"
    old_log_probs: bool = False
    reference_adapter: bool = False
    chunked_loss: bool = True

    @property
    def tokens(self) -> int:
        """Tokens of one forward, padding included."""
        return self.micro_batch * (self.prompt + self.completion)

    @property
    def adapter_parameters(self) -> int:
        """Trainable parameters of the adapter; 0 for full tuning."""
        if self.method == "full":
            return 0
        if self.targets == LORA_LINEAR and self.architecture.family == "phi3":
            return replace(self, targets=PHI3_LINEAR).adapter_parameters
        return self.rank * self.architecture.layers * sum(self._adapter_width(name) for name in self.targets)

    def _adapter_width(self, name: str) -> int:
        a = self.architecture
        attention = {
            "q_proj": a.hidden + a.query_width,
            "k_proj": a.hidden + a.kv_width,
            "v_proj": a.hidden + a.kv_width,
            "o_proj": a.query_width + a.hidden,
            "qkv_proj": a.hidden + a.query_width + 2 * a.kv_width,
        }
        return attention.get(name) or self._feed_forward_width(name)

    def _feed_forward_width(self, name: str) -> int:
        a = self.architecture
        if (
            a.experts
        ):  # PEFT gives the fused gate and up projection of each expert twice the rank, and adapts the router
            fused = a.experts * (a.hidden + 2 * a.intermediate)
            down = a.experts * (a.hidden + a.intermediate) + a.hidden + a.experts
            return {"gate_proj": fused, "up_proj": fused, "down_proj": down}.get(name, 0)
        plain = a.hidden + a.intermediate
        return {
            "gate_proj": plain,
            "up_proj": plain,
            "down_proj": plain,
            "gate_up_proj": a.hidden + 2 * a.intermediate,
        }.get(name, 0)

    @property
    def trainable(self) -> int:
        """Trainable parameters."""
        return self.architecture.text_parameters if self.method == "full" else self.adapter_parameters

    @property
    def half(self) -> Literal["bf16", "fp16"]:
        """16-bit type of a frozen base."""
        return "fp16" if self.compute == "fp16" else "bf16"

    @property
    def compute_bytes(self) -> int:
        """Bytes of an activation."""
        return 4 if self.compute == "fp32" else 2
