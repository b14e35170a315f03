"""What the plan stage writes: every setting with its reason, the memory verdict, and how to launch the run."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from rlvr.records.base import Frozen, Record

Source = Literal["reference", "override", "fallback", "variant", "derived"]
"""Where a value comes from.

``reference``: the project's own base recipe. ``override``: the user's, under ``recipe.overrides``. ``fallback``:
the hardware or the installed software does not allow the reference. ``variant``: a named variant that was applied
on its evidence. ``derived``: computed from the task, the model, the device or another part of the configuration.
"""

Verdict = Literal["fits", "tight", "does-not-fit"]
"""``fits``: even the upper end of the band is under the capacity. ``tight``: only the band's upper end is over."""


class Setting(Frozen):
    """One field of GRPOConfig.

    Attributes:
        value: What the field is set to.
        why: The reason, in one or two sentences.
        source: See :data:`Source`.
        origin: Paper, page or thread that the figure comes from; empty where it is our own arithmetic.
        before_base_run: Whether learning rate or beta was moved before a base run was inspected; shown in red.
        after: The inspected, stable base run that allows a moved learning rate or beta.
    """

    value: Any
    why: str
    source: Source
    origin: str = ""
    before_base_run: bool = False
    after: str = ""


class Remark(Frozen):
    """Something that the plan noticed about the settings.

    Attributes:
        code: Stable name, such as ``plan.clipping-does-nothing``.
        level: ``warning`` changes the outcome of the run; ``information`` has no effect on it.
        where: The user's own field.
        found: What is there.
        fix: What to do about it.
    """

    code: str
    level: Literal["warning", "information"]
    where: str
    found: str
    fix: str = ""


class Part(Frozen):
    """One part of the memory of one device.

    Attributes:
        name: Such as ``weights`` or ``kv-cache``.
        bytes: Size on one device.
        phase: When it is there: ``always``, ``update`` (forward, backward, optimizer step), ``rollout``, ``sync``.
        note: The arithmetic behind it.
        assumed: True where the figure is an assumption and not derived from shapes.
    """

    name: str
    bytes: int
    phase: Literal["always", "update", "rollout", "sync"]
    note: str = ""
    assumed: bool = False


class Memory(Frozen):
    """The verdict on memory.

    Attributes:
        verdict: See :data:`Verdict`.
        peak_bytes: Expected peak on the fullest device, allocated and reserved for the engine.
        band_bytes: Lower and upper end: context, fragmentation and CUDA graphs are not derivable from shapes.
        capacity_bytes: What one device can give.
        margin_bytes: Capacity less the upper end of the band; negative when it does not fit for sure.
        parts: The breakdown.
        phases: Phase to the total in that phase.
        method: ``closed-form`` or ``trace``.
        keyed_to: Versions that the figures hold for.
        assumptions: Every term that remains an assumption.
    """

    verdict: Verdict
    peak_bytes: int
    band_bytes: tuple[int, int]
    capacity_bytes: int
    margin_bytes: int
    parts: list[Part]
    phases: dict[str, int] = Field(default_factory=dict)
    method: Literal["closed-form", "trace"] = "closed-form"
    keyed_to: dict[str, str] = Field(default_factory=dict)
    assumptions: list[str] = Field(default_factory=list)


class Remedy(Frozen):
    """One change that would make the run fit, recomputed.

    Attributes:
        name: Stable name, such as ``lora``.
        change: The exact fields to set, as ``{field: value}`` of rlvr.yaml.
        peak_bytes: Peak with this change alone.
        saves_bytes: Peak before less peak after.
        verdict: With this change alone.
        cost: What it costs in quality, time or effort.
    """

    name: str
    change: dict[str, Any]
    peak_bytes: int
    saves_bytes: int
    verdict: Verdict
    cost: str


class Throughput(Frozen):
    """An estimate, never a promise.

    Attributes:
        rollout_tokens_per_second: All streams of all devices together.
        update_tokens_per_second: Forward and backward.
        seconds_per_step: One optimizer step with its rollouts.
        hours: The whole run.
        bound: What limits the rollouts: ``bandwidth`` or ``compute``.
        note: The arithmetic behind it.
    """

    rollout_tokens_per_second: float
    update_tokens_per_second: float
    seconds_per_step: float
    hours: float
    bound: Literal["bandwidth", "compute"]
    note: str


class Launch(Frozen):
    """One way to start the run.

    Attributes:
        name: ``single``, ``accelerate``, ``server`` or ``slurm``.
        commands: Command lines, in the order in which they are started.
        files: Relative path to the text of a file that the commands read.
        note: When to choose it.
    """

    name: str
    commands: list[str]
    files: dict[str, str] = Field(default_factory=dict)
    note: str = ""


class MethodPlan(Frozen):
    """What is trained.

    Attributes:
        kind: ``full``, ``lora`` or ``qlora``.
        lora: Arguments of ``peft.LoraConfig``; empty for full tuning.
        quantization: Arguments of ``transformers.BitsAndBytesConfig``; empty unless QLoRA.
    """

    kind: Literal["full", "lora", "qlora"]
    lora: dict[str, Any] = Field(default_factory=dict)
    quantization: dict[str, Any] = Field(default_factory=dict)


class PlanRecord(Record):
    """The plan: the exact run, and whether it fits; ``passed`` unless memory *does not fit*.

    Attributes:
        model: Name or path as the user gave it.
        revision: Revision, where the model has one.
        method: See :class:`MethodPlan`.
        settings: Field of GRPOConfig to its value and reason.
        memory: See :class:`Memory`.
        remedies: Ranked; empty when it fits.
        throughput: See :class:`Throughput`; None on a machine that is not in the table of devices.
        launch: The commands.
        remarks: What the checks noticed.
        device: The devices in words.
        versions: Installed versions that the plan holds for.
        variant: Applied variant, or empty.
        run_defaults: Which launch ``rlvr train`` takes.
    """

    model: str
    revision: str = ""
    method: MethodPlan
    settings: dict[str, Setting]
    memory: Memory
    remedies: list[Remedy] = Field(default_factory=list)
    throughput: Throughput | None = None
    launch: list[Launch] = Field(default_factory=list)
    remarks: list[Remark] = Field(default_factory=list)
    device: str
    versions: dict[str, str] = Field(default_factory=dict)
    variant: str = ""
    run_defaults: str = "single"

    @property
    def moved_before_base_run(self) -> list[str]:
        """Fields that were moved before a base run was inspected; they stand in red."""
        return [name for name, setting in self.settings.items() if setting.before_base_run]

    def config(self) -> dict[str, Any]:
        """Return the plain arguments, as in ``GRPOConfig(**plan.config())``."""
        return {name: setting.value for name, setting in self.settings.items()}
