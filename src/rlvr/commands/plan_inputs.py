"""Gather the facts that a plan is made from: of a workspace, or from the command line alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlvr.plan.inputs import (
    CompletionLengths,
    DataFacts,
    Machine,
    Method,
    Override,
    PlanInputs,
    Sampling,
)

if TYPE_CHECKING:
    from rlvr.commands.chain import Chain
    from rlvr.plan.devices import Device
    from rlvr.records.probe import Lengths

CHARACTERS_PER_TOKEN = 2.5
"""Without a probe: fewer than any usual tokenizer needs for English, so that lengths come out too long."""

TEMPLATE_TOKENS = 32
"""Without a probe: tokens that a chat template adds."""

LIBRARIES = ("torch", "peft", "accelerate", "vllm", "bitsandbytes")


def inputs_by_name(options: Mapping[str, Any]) -> PlanInputs:
    """Return the facts that the options of ``rlvr plan --model`` give."""
    from rlvr.plan.facts import read_model

    prompt = options["max_prompt_length"]
    devices = _devices(options["device"])
    return PlanInputs(
        model=read_model(options["model"], Path.cwd()),
        machine=_machine(devices, options["nodes"], detected=options["device"] == "detect"),
        method=Method(kind=options["method"], rank=options["rank"], optimizer=options["optimizer"] or ""),
        data=DataFacts(1000, prompt // 2, prompt, prompt, measured=False),
        sampling=Sampling(max_completion_length=options["max_completion_length"]),
        overrides=_option_overrides(options),
        sharding=options["sharding"],
        engine=options["vllm"],
    )


def _option_overrides(options: Mapping[str, Any]) -> dict[str, Override]:
    given = {
        "per_device_train_batch_size": options["batch"],
        "gradient_accumulation_steps": options["accumulation"],
        "beta": options["beta"],
        "gradient_checkpointing": False if options["no_checkpointing"] else None,
    }
    why = "given on the command line, for sizing alone"
    return {
        name: Override(value, why, before_base_run=name == "beta")
        for name, value in given.items()
        if value is not None
    }


def inputs_of_workspace(chain: Chain) -> PlanInputs:
    """Return the facts of a workspace."""
    from rlvr.plan.facts import read_model

    config = chain.config
    hardware = config.hardware
    devices = _devices(hardware.device)
    if len(devices) == 1 and hardware.processes > 1:
        devices = devices * hardware.processes
    return PlanInputs(
        model=read_model(config.model, chain.base, config.adapter),
        machine=_machine(devices, hardware.nodes, detected=hardware.device == "detect"),
        method=_method(config.method),
        data=_data(chain),
        completions=_completions(chain),
        sampling=Sampling(
            temperature=config.sampling.temperature,
            max_completion_length=config.sampling.max_completion_length,
            top_p=config.sampling.top_p,
            seed=config.sampling.seed,
        ),
        overrides=plan_overrides(config.recipe.overrides),
        variant=config.variant.name if config.variant else "",
        variant_reason=f"{config.variant.symptom} in {config.variant.run}" if config.variant else "",
        report_to=tuple(name for name in config.report_to if name != "none"),
        stable_base_runs=stable_base_runs(chain),
        reward_weights=tuple(component.weight for component in chain.scorer.components),
        sharding=hardware.sharding,
        engine=hardware.vllm,
    )


def _method(method: Any) -> Method:
    targets = method.target_modules
    return Method(
        kind=method.kind,
        rank=method.rank,
        alpha=method.alpha or 0,
        target_modules=targets
        if targets == "all-linear"
        else tuple([targets] if isinstance(targets, str) else targets),
        optimizer=method.optimizer or "",
    )


def plan_overrides(overrides: Mapping[str, Any]) -> dict[str, Override]:
    """Return the configured overrides as the plan takes them."""
    return {
        name: Override(entry.value, entry.why, entry.after or "", entry.before_base_run)
        for name, entry in overrides.items()
    }


def _devices(name: str) -> tuple[Device, ...]:
    from rlvr.plan.devices import detect, parse_device

    return detect() if name == "detect" else parse_device(name)


def _machine(devices: tuple[Device, ...], nodes: int, *, detected: bool) -> Machine:
    from rlvr.plan.trl_schema import version_of

    versions = {name: version for name in LIBRARIES if (version := version_of(name))}
    # A device that was named stands elsewhere, and so do its libraries: nothing is known about them.
    return Machine(
        devices=devices,
        nodes=nodes,
        vllm_installed=not detected or bool(versions.get("vllm")),
        bitsandbytes_installed=not detected or bool(versions.get("bitsandbytes")),
        versions=versions,
    )


def _lengths(chain: Chain) -> Lengths | None:
    from rlvr.records.probe import ProbeRecord

    record = chain.records().get("probe")
    return record.lengths if isinstance(record, ProbeRecord) else None


def _data(chain: Chain) -> DataFacts:
    lengths, rows, held_out = _lengths(chain), len(chain.rows), len(chain.held_out)
    if lengths is not None and lengths.prompt.longest > 0:
        prompt = lengths.prompt
        return DataFacts(rows, prompt.p50, prompt.p95, prompt.longest, held_out)
    characters = sorted(sum(len(message.content) for message in row.prompt) for row in chain.rows)
    tokens = [int(count / CHARACTERS_PER_TOKEN) + TEMPLATE_TOKENS for count in characters] or [
        TEMPLATE_TOKENS
    ]
    middle, high = tokens[len(tokens) // 2], tokens[min(int(0.95 * len(tokens)), len(tokens) - 1)]
    return DataFacts(rows, middle, high, tokens[-1], held_out, measured=False)


def _completions(chain: Chain) -> CompletionLengths | None:
    lengths = _lengths(chain)
    if lengths is None or lengths.completion.p95 <= 0:
        return None
    completion = lengths.completion
    return CompletionLengths(
        completion.p50, completion.p95, completion.longest, max(lengths.cap, 0), lengths.truncated_share
    )


STABLE_STEPS = 50
STABLE_ROWS = 8
READ_COMPLETIONS = 20


def stable_base_runs(chain: Chain) -> tuple[str, ...]:
    """Return the names of base runs that are stable and were read.

    Stable: no variant, at least 50 optimizer steps and 8 logged rows, no critical symptom. Read: at least 20 of its
    own completions (a simulated reader counts in the demo alone).
    """
    folders = sorted(path.parent for path in chain.workspace.runs.glob("*/manifest.json"))
    return tuple(folder.name for folder in folders if _is_read(folder, chain) and _is_stable(folder))


def _is_read(folder: Path, chain: Chain) -> bool:
    from rlvr.records.inspection import Attestation
    from rlvr.workspace import read_record

    attestation = read_record(folder / "inspect.json", Attestation)
    if attestation is None or (attestation.simulated and not chain.is_demo):
        return False
    return attestation.read >= READ_COMPLETIONS


def _is_stable(folder: Path) -> bool:
    from rlvr.records.run import Manifest
    from rlvr.watch.ingest import read_source
    from rlvr.watch.judge import judge_source
    from rlvr.workspace import read_record

    manifest = read_record(folder / "manifest.json", Manifest)
    if manifest is None or manifest.variant or manifest.steps < STABLE_STEPS:
        return False
    findings = judge_source(read_source(folder))
    return findings.rows >= STABLE_ROWS and findings.loudest != "critical"
