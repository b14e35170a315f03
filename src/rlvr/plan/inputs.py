"""What the plan is made from: plain facts, so that :func:`rlvr.plan.build.build_plan` stays pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from rlvr.plan.devices import Device

MethodKind = Literal["full", "lora", "qlora"]


@dataclass(frozen=True)
class ModelFacts:
    """The model, from its configuration alone.

    Attributes:
        name: Path or name that TRL will load.
        config: The parsed ``config.json``.
        parameters: Exact count from the weight files' headers; None when only the configuration is known.
        dtype_on_disk: Such as ``bfloat16``.
        revision: Hub revision, or empty.
        adapter_rank: Rank of an adapter that the model folder holds; 0 for a plain model.
    """

    name: str
    config: Mapping[str, Any]
    parameters: int | None = None
    dtype_on_disk: str = "bfloat16"
    revision: str = ""
    adapter_rank: int = 0


@dataclass(frozen=True)
class Method:
    """What is trained.

    Attributes:
        kind: ``full``, ``lora`` or ``qlora``.
        rank: Rank of the adapter.
        alpha: Scale of the adapter; 0 takes twice the rank.
        target_modules: Module names, or ``all-linear``.
        dropout: Dropout of the adapter; anything but 0 is refused.
        optimizer: TRL's ``optim``; empty takes AdamW.
    """

    kind: MethodKind = "full"
    rank: int = 16
    alpha: int = 0
    target_modules: tuple[str, ...] | Literal["all-linear"] = "all-linear"
    dropout: float = 0.0
    optimizer: str = ""


@dataclass(frozen=True)
class DataFacts:
    """The training prompts.

    Attributes:
        prompts: Number of rows.
        prompt_p50: Median length in tokens, template included.
        prompt_p95: 95th percentile.
        prompt_max: Longest.
        held_out: Number of held-out rows.
        measured: False when the lengths are assumed (no tokenizer was at hand).
    """

    prompts: int = 1000
    prompt_p50: int = 128
    prompt_p95: int = 256
    prompt_max: int = 512
    held_out: int = 0
    measured: bool = True


@dataclass(frozen=True)
class CompletionLengths:
    """Lengths of the probe's completions at the training temperature, in tokens.

    Attributes:
        p50: Median.
        p95: 95th percentile.
        longest: Longest.
        cap: Cap that they were sampled under.
        truncated_share: Share that hit the cap.
    """

    p50: int
    p95: int
    longest: int
    cap: int
    truncated_share: float = 0.0


@dataclass(frozen=True)
class Sampling:
    """How completions are sampled in training.

    Attributes:
        temperature: Training temperature.
        max_completion_length: The user's cap in tokens; None derives it from the probe's lengths.
        top_p: Nucleus; 1 keeps all tokens.
        top_k: 0 keeps all tokens.
        chat_template_kwargs: Passed to the chat template.
        seed: Seed of the run.
    """

    temperature: float = 1.0
    max_completion_length: int | None = None
    top_p: float = 1.0
    top_k: int = 0
    chat_template_kwargs: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 3407


@dataclass(frozen=True)
class Override:
    """One entry of ``recipe.overrides``.

    Attributes:
        value: The value.
        why: The reason, which goes into manifest and report.
        after: Name of the inspected, stable base run that allows it (learning rate and beta).
        before_base_run: Moved without such a run; stands in red.
    """

    value: Any
    why: str = ""
    after: str = ""
    before_base_run: bool = False


@dataclass(frozen=True)
class Machine:
    """Where the run happens.

    Attributes:
        devices: Accelerators of one node, or the one CPU.
        nodes: Number of nodes.
        vllm_installed: Whether vLLM can be imported there.
        bitsandbytes_installed: Whether bitsandbytes can be imported there.
        attention: Attention implementation: ``sdpa``, ``flash_attention_2`` or ``eager``.
        versions: Installed versions by distribution name.
    """

    devices: tuple[Device, ...]
    nodes: int = 1
    vllm_installed: bool = True
    bitsandbytes_installed: bool = True
    attention: str = "sdpa"
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PlanInputs:
    """All that a plan is made from.

    Attributes:
        model: See :class:`ModelFacts`.
        machine: See :class:`Machine`.
        method: See :class:`Method`.
        data: See :class:`DataFacts`.
        completions: The probe's lengths, or None when there is no probe.
        sampling: See :class:`Sampling`.
        overrides: Field to override.
        variant: Name of an applied variant, or empty.
        variant_reason: Run and symptom that the variant was applied on.
        report_to: Trackers.
        output_dir: Folder of the run.
        stable_base_runs: Names of base runs that are stable and of which 20 completions were read.
        reward_weights: Weights of the reward components, in order; empty keeps TRL's default of 1.0 each.
        engine: ``auto``, ``colocate``, ``server`` or ``off``: how vLLM is used.
        sharding: ``none``, ``fsdp2``, ``zero2`` or ``zero3``; ``auto`` shards when several devices train.
    """

    model: ModelFacts
    machine: Machine
    method: Method = field(default_factory=Method)
    data: DataFacts = field(default_factory=DataFacts)
    completions: CompletionLengths | None = None
    sampling: Sampling = field(default_factory=Sampling)
    overrides: Mapping[str, Override] = field(default_factory=dict)
    variant: str = ""
    variant_reason: str = ""
    report_to: tuple[str, ...] = ()
    output_dir: str = "runs/base"
    stable_base_runs: tuple[str, ...] = ()
    reward_weights: tuple[float, ...] = ()
    engine: Literal["auto", "colocate", "server", "off"] = "auto"
    sharding: Literal["auto", "none", "fsdp2", "zero2", "zero3"] = "auto"
