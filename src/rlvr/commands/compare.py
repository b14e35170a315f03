"""``rlvr compare``: what a change did, with intervals."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rlvr.commands.output import console, emit_json, json_option, workspace_option

if TYPE_CHECKING:
    from rlvr.records.run import Evaluation
    from rlvr.records.watch import Findings
    from rlvr.watch.compare import Comparison, Effect, HeldOut
    from rlvr.watch.symptoms.case import Case


@click.command(epilog="Example: rlvr compare base-1 dapo-1")
@click.argument("first")
@click.argument("second")
@click.option("--variant", help="Variant that SECOND carries, when its folder does not say so.")
@workspace_option
@json_option
def command(first: str, second: str, variant: str | None, folder: Path, as_json: bool) -> None:
    """Compare two runs (or logs): held-out accuracy, every metric's difference, symptoms gone and come.

    Differences have 95% intervals; held-out accuracy is paired by prompt.
    """
    from rlvr.commands.variant import applied_variant
    from rlvr.commands.watch import source_path
    from rlvr.watch.compare import compare_runs

    places = source_path(first, folder), source_path(second, folder)
    name = variant or applied_variant(places[1])
    found = compare_runs(
        _judged(places[0]), _judged(places[1]), variant=name, held_out=_held_out(places[0], places[1])
    )
    if as_json:
        emit_json(_object(found, name))
    else:
        _print(found, first, second)


def _judged(place: Path) -> tuple[Case, Findings]:
    from rlvr.watch.ingest import read_source
    from rlvr.watch.judge import judge_source
    from rlvr.watch.symptoms.case import Case

    source = read_source(place)
    return Case(source.history, source.completions, source.facts), judge_source(source)


def _held_out(first: Path, second: Path) -> HeldOut | None:
    """Return held-out accuracy after two runs, where both folders have it."""
    from rlvr.commands.evaluate import RUN_FILE
    from rlvr.records.run import Evaluation
    from rlvr.report.verdict import compared_differently
    from rlvr.watch.compare import paired_held_out
    from rlvr.workspace import read_record

    one, other = (read_record(place / RUN_FILE, Evaluation) for place in (first, second))
    if one is None or other is None:
        return None
    before = _before(first, one), _before(second, other)
    differs = compared_differently(one, other)
    if one.independent and other.independent:  # the check is other code: another reward does not move it
        differs = [what for what in differs if what != "the reward"]
    return paired_held_out(one, other, before=before, differs=differs)


def _before(place: Path, after: Evaluation) -> Evaluation | None:
    """Return the base model's evaluation in a run's workspace, when it was measured as the run was."""
    from rlvr.commands.evaluate import BASE_NAME
    from rlvr.records.run import Evaluation
    from rlvr.report.verdict import compared_differently
    from rlvr.workspace import CONFIG_NAME, Workspace, read_record

    base = place.absolute().parent.parent
    if not (base / CONFIG_NAME).is_file():
        return None
    found = read_record(Workspace(base).record_path(BASE_NAME), Evaluation)
    if found is None or compared_differently(found, after) or found.made_from.model != after.made_from.model:
        return None
    return found


def _object(found: Comparison, variant: str) -> dict[str, Any]:
    return {
        "variant": variant or None,
        "held_out": _held_out_object(found.held_out) if found.held_out else None,
        "shared_steps": found.shared_steps,
        "effects": [
            {
                "metric": effect.metric,
                "first": effect.first.value,
                "second": effect.second.value,
                "difference": effect.difference.value,
                "low": effect.difference.low,
                "high": effect.difference.high,
                "expected": effect.expected,
                "verdict": effect.verdict,
            }
            for effect in found.effects
        ],
        "settings": {name: {"first": a, "second": b} for name, (a, b) in found.settings.items()},
        "symptoms_gone": found.gone,
        "symptoms_came": found.came,
        "warnings": found.warnings,
    }


def _held_out_object(found: HeldOut) -> dict[str, Any]:
    from rlvr.commands.training import accuracy_object

    runs = (("first", found.before[0], found.first), ("second", found.before[1], found.second))
    return {
        **{
            name: {"before": accuracy_object(before), "after": accuracy_object(after)}
            for name, before, after in runs
        },
        "difference": found.change._asdict() if found.change else None,
        "why_not": found.why_not,
    }


def _held_out_lines(found: HeldOut, first: str, second: str) -> list[str]:
    from rlvr.report.verdict import p_text, points

    lines = []
    for name, before, after in (
        (first, found.before[0], found.first),
        (second, found.before[1], found.second),
    ):
        earlier = f"{before.accuracy:.1%} before, " if before else ""
        lines.append(
            f"held-out accuracy of {name}: {earlier}{after.accuracy:.1%} after "
            f"(95% interval {after.low:.1%} to {after.high:.1%}, {after.prompts:,} prompts)"
        )
    if found.change:
        difference, low, high, p_value, prompts = found.change
        lines.append(
            f"{second} less {first}, paired by prompt: {points(difference)} points (95% interval {points(low)} to "
            f"{points(high)}, {p_text(p_value)}, {prompts:,} prompts)"
        )
    return lines


def _print(found: Comparison, first: str, second: str) -> None:
    from rich.table import Table

    out = console()
    table = Table("metric", first, second, "difference (95% interval)", "", box=None, header_style="bold")
    for effect in found.effects:
        table.add_row(
            effect.metric, f"{effect.first.value:.3g}", f"{effect.second.value:.3g}", *_words(effect)
        )
    for line in _held_out_lines(found.held_out, first, second) if found.held_out else []:
        out.print(line, markup=False)
    out.print(f"last rows up to step {found.shared_steps:,}, which both reached")
    out.print(table)
    for name, (a, b) in found.settings.items():
        out.print(f"set differently: {name}: {a} | {b}", markup=False)
    out.print(
        f"symptoms gone: {', '.join(found.gone) or 'none'}; come: {', '.join(found.came) or 'none'}",
        markup=False,
    )
    for line in found.warnings:
        out.print(f"note: {line}", style="yellow", markup=False)


def _words(effect: Effect) -> tuple[str, str]:
    difference = effect.difference
    verdict = "" if effect.verdict == "no expectation" else effect.verdict
    return f"{difference.value:+.3g} ({difference.low:+.3g} to {difference.high:+.3g})", verdict
