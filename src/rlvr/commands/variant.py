"""``rlvr variant``: the one change that a run's evidence supports, and its application."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rlvr.commands.output import console, emit_json, json_option, workspace_option

if TYPE_CHECKING:
    from rlvr.records.watch import Findings
    from rlvr.watch.ingest import Source
    from rlvr.watch.variants import Decision


@click.command(epilog="Example: rlvr variant base-1, then rlvr variant base-1 --apply")
@click.argument("run", required=False)
@click.option("--name", "wanted", help="Ask for one variant: dapo, dr_grpo or gspo.")
@click.option("--apply", "apply_it", is_flag=True, help="Write it into rlvr.yaml, with its evidence.")
@click.option("--experts/--no-experts", default=None, help="Whether the model routes between experts.")
@workspace_option
@json_option
def command(
    run: str | None, wanted: str | None, apply_it: bool, experts: bool | None, folder: Path, as_json: bool
) -> int:
    """Show the one change that the evidence of RUN supports, as a difference of settings.

    Without its symptom a variant is refused, with what the run shows instead (exit 3). --apply writes the next
    configuration: the variant and its evidence, nothing else.
    """
    from rlvr.commands.watch import source_path
    from rlvr.watch.ingest import read_source

    place = source_path(run, folder)
    source = read_source(place)
    decision = decision_for(source, place, wanted, experts)[1]
    if as_json:
        emit_json(as_object(decision))
    else:
        _print(decision)
    if apply_it and decision.ready:
        _apply(decision, folder, place)
    return 0 if decision.ready else 3


def decision_for(
    source: Source, place: Path, wanted: str | None, experts: bool | None
) -> tuple[Findings, Decision]:
    """Judge a source and decide; settings in effect are the run's own over the installed TRL's defaults."""
    import dataclasses

    from rlvr.watch.judge import judge_source
    from rlvr.watch.variants import decide

    findings = judge_source(source, experts=experts)
    facts = source.facts if experts is None else dataclasses.replace(source.facts, experts=experts)
    decision = decide(
        findings,
        {**_defaults(), **facts.settings},
        facts,
        wanted=wanted,
        applied=applied_variant(place),
        read=_read(place),
    )
    return findings, decision


def as_object(decision: Decision) -> dict[str, Any]:
    """Return the decision as the object that ``--json`` prints."""
    return {
        "variant": decision.variant.name if decision.variant else None,
        "ready": decision.ready,
        "symptom": decision.symptom.model_dump(mode="json") if decision.symptom else None,
        "changes": [
            {
                "field": c.field,
                "before": c.before,
                "after": c.after,
                "effect": c.effect,
                "why": c.why,
                "source": c.source,
            }
            for c in decision.changes
        ],
        "leaves": list(decision.variant.leaves) if decision.variant else [],
        "expects": dict(decision.expects),
        "refusals": list(decision.refusals),
        "later": list(decision.later),
    }


def _defaults() -> dict[str, Any]:
    """Return the installed GRPOConfig's literal defaults, read without importing trl."""
    from rlvr.plan.trl_schema import MISSING, installed_schema

    fields = installed_schema().fields
    return {name: field.default for name, field in fields.items() if field.default is not MISSING}


def _manifest(place: Path) -> Mapping[str, Any]:
    import json

    try:
        found = json.loads((place / "manifest.json").read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    inner = found.get("record", found) if isinstance(found, dict) else {}
    return inner if isinstance(inner, dict) else {}


def applied_variant(place: Path) -> str:
    """Return the variant that a run carries, or an empty string."""
    return str(_manifest(place).get("variant") or "")


def _read(place: Path) -> int:
    """Return how many completions of the run a person has read (a simulated reader counts in the demo alone)."""
    from rlvr.records.inspection import Attestation
    from rlvr.workspace import read_record

    found = read_record(place / "inspect.json", Attestation) if place.is_dir() else None
    return found.read if found is not None else 0


def _print(decision: Decision) -> None:
    out = console()
    if decision.variant is None:
        out.print("[bold]no variant is supported[/bold]")
    else:
        cause = f"for {decision.symptom.name}" if decision.symptom else "required for a model with experts"
        out.print(f"[bold]{decision.variant.title}[/bold], {cause}")
        if decision.symptom:
            out.print(f"  {decision.symptom.evidence}", markup=False)
        for change in decision.changes:
            out.print(
                f"  {change.field}: {change.before} -> {change.after}  ({change.effect}; {change.why})",
                markup=False,
            )
        for line in decision.variant.leaves:
            out.print(f"  does not change: {line}", markup=False)
        signs = {1: "rises", -1: "falls", 0: "stays"}
        expected = ", ".join(f"{metric} {signs[sign]}" for metric, sign in decision.expects.items())
        out.print(f"  expect: {expected}", markup=False)
    for line in decision.refusals:
        out.print(f"  not now: {line}", style="yellow", markup=False)
    for line in decision.later:
        out.print(f"  {line}", markup=False)
    if decision.ready:
        out.print("  one change at a time: train it alone, then `rlvr compare` it with this run")


def _apply(decision: Decision, folder: Path, place: Path) -> None:
    """Write the ``variant`` section; everything else of the file stays as it is, comments included."""
    import io

    from ruamel.yaml import YAML

    from rlvr.config.file import read_config
    from rlvr.workspace import Workspace, now, write_atomic

    workspace = Workspace(folder)
    yaml = YAML()
    yaml.preserve_quotes = True
    document = yaml.load(workspace.config_path.read_text("utf-8"))
    document["variant"] = {
        "name": decision.variant.name if decision.variant else "",
        "run": place.name,
        "symptom": decision.symptom.name if decision.symptom else "required: the model has experts",
        "evidence": decision.symptom.evidence
        if decision.symptom
        else "token ratios are unsound under routing",
        "at": now(),
    }
    text = io.StringIO()
    yaml.dump(document, text)
    before = workspace.config_path.read_bytes()
    write_atomic(workspace.config_path, text.getvalue().encode())
    try:
        read_config(workspace.config_path)
    except Exception:
        write_atomic(workspace.config_path, before)
        raise
    click.echo(f"written to {workspace.config_path}; next: rlvr plan, then rlvr train", err=True)
