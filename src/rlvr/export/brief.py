"""The brief: what was decided, on which evidence, for whoever trains; a program reads it by its JSON Schema."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from rlvr.records.base import Frozen

if TYPE_CHECKING:
    from rlvr.export.inputs import ExportInputs

EXAMPLES = 6
"""Completions in the brief."""
FORMAT = "rlvr-brief/1"


class GateBrief(Frozen):
    """One gate: ``state`` is what counts, ``changed`` names what differs from what was judged."""

    name: str
    state: Literal["passed", "failed", "missing", "stale"]
    why: str
    made_at: str = ""
    changed: list[str] = []
    waived: str | None = None


class TaskBrief(Frozen):
    """The task: what decides success, and how much data there is."""

    name: str
    signal: str
    prompts: int
    held_out: int
    columns: list[str]


class InspectionBrief(Frozen):
    """What a person's reading of scored samples says of the reward.

    Attributes:
        agreement: Share of readings on the reward's side; None before any.
        disagreement_upper: Exact one-sided 95% bound on the share of disagreement in the drawn sample.
        simulated: A program read; then nothing may be trained on it outside the demo.
    """

    reader: str
    read: int
    agreement: float | None
    kappa: float | None
    disagreement_upper: float | None
    simulated: bool
    made_at: str


class SettingBrief(Frozen):
    """One field of GRPOConfig with its reason."""

    value: Any
    why: str
    source: str
    before_base_run: bool = False


class MemoryBrief(Frozen):
    """The memory verdict, in bytes for the fullest device."""

    verdict: Literal["fits", "tight", "does-not-fit"]
    peak_bytes: int
    band_bytes: tuple[int, int]
    capacity_bytes: int
    device: str


class RunBrief(Frozen):
    """One run that was trained here."""

    name: str
    state: str
    steps: int
    why: str


class RewardBrief(Frozen):
    """One reward function of ``rewards.py``."""

    name: str
    use: str
    weight: float
    arguments: dict[str, Any]


class ExampleBrief(Frozen):
    """One completion that the probe sampled, with what the reward said of it."""

    prompt: str
    completion: str
    outcome: str
    total: float | None


class Brief(Frozen):
    """The hand-over of one task.

    Attributes:
        format: Name and number of this format; keys are added, never renamed.
        ready: Whether every gate is passed and fresh; when false, do not train before `next`.
        next: The command that opens the first gate that is not passed.
        red: Waivers and departures that a reader must not miss.
        routing: The decision that brought the task here, as it was given.
        probe: The probe's verdict: ``verdict``, ``success``, ``informative_groups``, ``why``.
        audit: ``passed``, ``why`` and the open findings.
        configuration: Field of GRPOConfig to value, reason and source.
        launch: Name to the command lines that start the run.
        hashes: Fingerprints of reward, data, model, sampling and recipe as they stood.
        files: Path in this folder to SHA-256.
    """

    format: Literal["rlvr-brief/1"] = "rlvr-brief/1"
    made_at: str
    version: str
    ready: bool
    next: str
    red: list[str] = []
    task: TaskBrief
    routing: dict[str, str] | None = None
    gates: list[GateBrief]
    probe: dict[str, Any] | None = None
    audit: dict[str, Any] | None = None
    inspection: InspectionBrief | None = None
    model: str
    method: dict[str, Any]
    configuration: dict[str, SettingBrief]
    memory: MemoryBrief
    rewards: list[RewardBrief]
    launch: dict[str, list[str]]
    runs: list[RunBrief] = []
    examples: list[ExampleBrief] = []
    versions: dict[str, str]
    hashes: dict[str, str]
    files: dict[str, str] = Field(default_factory=dict)


def brief_schema() -> dict[str, Any]:
    """Return the JSON Schema of the brief."""
    schema = Brief.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def schema_text() -> str:
    """Return the published JSON Schema as text."""
    return json.dumps(brief_schema(), indent=2, ensure_ascii=False) + "\n"


def make_brief(inputs: ExportInputs, files: Mapping[str, bytes], launch: Mapping[str, list[str]]) -> Brief:
    """Return the brief of an export.

    Args:
        inputs: The workspace.
        files: Everything else that the export writes.
        launch: Name to the command lines that start it in this folder.
    """
    evidence = {gate.name: gate.evidence for gate in inputs.status.gates}
    plan = inputs.plan
    return Brief(
        made_at=inputs.made_at,
        version=inputs.version,
        ready=inputs.status.passed,
        next="" if inputs.status.passed else inputs.status.next,
        red=_red(inputs),
        task=_task(inputs),
        routing=_routing(inputs),
        gates=[_gate(gate) for gate in inputs.status.gates],
        probe=_probe(evidence.get("probe") or {}),
        audit=_audit(evidence.get("audit") or {}),
        inspection=_inspection(evidence.get("inspect") or {}),
        model=inputs.model,
        method=plan.method.model_dump(mode="json"),
        configuration={
            name: SettingBrief(
                value=one.value, why=one.why, source=one.source, before_base_run=one.before_base_run
            )
            for name, one in plan.settings.items()
        },
        memory=MemoryBrief(
            verdict=plan.memory.verdict,
            peak_bytes=plan.memory.peak_bytes,
            band_bytes=plan.memory.band_bytes,
            capacity_bytes=plan.memory.capacity_bytes,
            device=plan.device,
        ),
        rewards=[
            RewardBrief(name=name, use=reward.use, weight=weight, arguments=dict(reward.arguments))
            for reward, (name, weight) in zip(inputs.config.rewards, inputs.weights.items(), strict=True)
        ],
        launch=dict(launch),
        runs=[RunBrief(name=run.name, state=run.state, steps=run.steps, why=run.why) for run in inputs.runs],
        examples=_examples(evidence.get("probe") or {}) if inputs.samples else [],
        versions=plan.versions,
        hashes={name: value for name, value in inputs.fingerprints.model_dump().items() if value},
        files={name: hashlib.sha256(content).hexdigest() for name, content in sorted(files.items())},
    )


def _red(inputs: ExportInputs) -> list[str]:
    lines = [f"gate {gate.name} waived: {gate.waived}" for gate in inputs.status.gates if gate.waived]
    lines += [
        f"{gate.name} is {gate.state}: {gate.why}" for gate in inputs.status.gates if gate.state != "passed"
    ]
    return lines + [
        f"{name} was moved before a base run: {inputs.plan.settings[name].why}"
        for name in inputs.plan.moved_before_base_run
    ]


def _task(inputs: ExportInputs) -> TaskBrief:
    columns = sorted({name for row in inputs.training for name in row.columns})
    return TaskBrief(
        name=inputs.name,
        signal=inputs.config.task.signal,
        prompts=len(inputs.training),
        held_out=len(inputs.held_out),
        columns=columns,
    )


def _routing(inputs: ExportInputs) -> dict[str, str] | None:
    routing = inputs.config.task.routing
    return routing.model_dump(mode="json") if routing else None


def _gate(gate: Any) -> GateBrief:
    return GateBrief(
        name=gate.name,
        state=gate.state,
        why=gate.why,
        made_at=str(gate.evidence.get("made_at", "")),
        changed=gate.changed,
        waived=gate.waived,
    )


def _probe(record: Mapping[str, Any]) -> dict[str, Any] | None:
    if not record:
        return None
    names = ("verdict", "why", "success", "informative_groups", "pass_at", "group_size", "lengths")
    return {name: record[name] for name in names if name in record}


def _audit(record: Mapping[str, Any]) -> dict[str, Any] | None:
    if not record:
        return None
    findings = [
        {name: one.get(name) for name in ("id", "category", "severity", "message")}
        for reward in record.get("rewards", [])
        for one in reward.get("findings", [])
    ]
    return {"passed": record.get("passed"), "why": record.get("why", ""), "findings": findings}


def _inspection(record: Mapping[str, Any]) -> InspectionBrief | None:
    if not record:
        return None
    names = ("reader", "read", "agreement", "kappa", "disagreement_upper", "simulated", "made_at")
    return InspectionBrief(**{name: record[name] for name in names})


def _examples(probe: Mapping[str, Any]) -> list[ExampleBrief]:
    return [
        ExampleBrief(
            prompt=one["prompt"][-1]["content"],
            completion=one["completion"],
            outcome=one["score"]["outcome"],
            total=one["score"]["total"],
        )
        for one in probe.get("examples", [])[:EXAMPLES]
    ]
