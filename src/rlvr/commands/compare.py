"""``rlvr compare``: what a change did, with intervals."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rlvr.commands.output import console, emit_json, json_option, workspace_option

if TYPE_CHECKING:
    from rlvr.records.watch import Findings
    from rlvr.watch.compare import Comparison, Effect
    from rlvr.watch.symptoms.case import Case


@click.command(epilog="Example: rlvr compare base-1 dapo-1")
@click.argument("first")
@click.argument("second")
@click.option("--variant", help="Variant that SECOND carries, when its folder does not say so.")
@workspace_option
@json_option
def command(first: str, second: str, variant: str | None, folder: Path, as_json: bool) -> None:
    """Compare two runs (or logs): every metric's difference with its 95% interval, symptoms gone and come."""
    from rlvr.commands.variant import applied_variant
    from rlvr.commands.watch import source_path
    from rlvr.watch.compare import compare_runs

    places = source_path(first, folder), source_path(second, folder)
    name = variant or applied_variant(places[1])
    found = compare_runs(_judged(places[0]), _judged(places[1]), variant=name)
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


def _object(found: Comparison, variant: str) -> dict[str, Any]:
    return {
        "variant": variant or None,
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


def _print(found: Comparison, first: str, second: str) -> None:
    from rich.table import Table

    out = console()
    table = Table("metric", first, second, "difference (95% interval)", "", box=None, header_style="bold")
    for effect in found.effects:
        table.add_row(
            effect.metric, f"{effect.first.value:.3g}", f"{effect.second.value:.3g}", *_words(effect)
        )
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
