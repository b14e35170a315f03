"""``rlvr train``: refuses unless every gate has passed, then trains exactly what the plan says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rlvr.commands.output import console, emit_json, json_option, workspace_option

if TYPE_CHECKING:
    from rlvr.records.run import Evaluation, Manifest


@click.command("train", epilog="Example: rlvr train --name base-1, and after a kill: rlvr train --resume")
@click.option("--name", help="Name of the run, a folder under runs/.  [default: base-1, base-2, …]")
@click.option("--resume", is_flag=True, help="Go on from the last complete checkpoint of the run.")
@click.option("--rehearse", is_flag=True, help="Two steps on the longest prompts; weights are thrown away.")
@workspace_option
@json_option
def command(name: str | None, resume: bool, rehearse: bool, folder: Path, as_json: bool) -> int:
    """Train by TRL's GRPO with the settings of the plan; refuses (exit 3) while a gate is not passed."""
    from rlvr.commands.renewal import renewed_chain
    from rlvr.commands.training import train_workspace

    chain, status = renewed_chain(folder)
    if rehearse:
        from rlvr.commands.rehearse import rehearse as run_rehearsal

        return run_rehearsal(chain, as_json)
    manifest, before, after = train_workspace(chain, status, name=name, resume=resume, quiet=as_json)
    if as_json:
        emit_json(_object(manifest, before, after))
    else:
        _print(manifest, before, after)
    return 130 if manifest.state == "interrupted" else 0


def _object(manifest: Manifest, before: Evaluation | None, after: Evaluation | None) -> dict[str, Any]:
    from rlvr.commands.training import accuracy_object

    return {
        "run": manifest.name,
        "state": manifest.state,
        "steps": manifest.steps,
        "seconds": manifest.seconds,
        "before": accuracy_object(before),
        "after": accuracy_object(after),
    }


def _print(manifest: Manifest, before: Evaluation | None, after: Evaluation | None) -> None:
    out = console()
    if manifest.state == "interrupted":
        out.print(
            f"[yellow]{manifest.stopped}: stopped at step {manifest.steps} with a checkpoint.[/]\n"
            f"next: [bold]rlvr train --name {manifest.name} --resume[/]"
        )
        return
    out.print(f"[green]✓[/] {manifest.name}: {manifest.steps} steps in {manifest.seconds:.0f} s")
    for title, found in (("before", before), ("after", after)):
        if found:
            out.print(f"  {title:<7}{found.accuracy:.1%} [{found.low:.1%}, {found.high:.1%}]")
    out.print(f"next: [bold]rlvr report {manifest.name}[/]")
