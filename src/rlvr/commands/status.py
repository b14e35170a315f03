"""``rlvr status``: every gate, why it stands so, and the next command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rlvr.commands.output import console, emit_json, json_option, workspace_option

if TYPE_CHECKING:
    from rlvr.gates import ChainStatus

COLOURS = {"passed": "green", "failed": "red", "missing": "dim", "stale": "yellow"}
MARKS = {"passed": "✓", "failed": "✗", "missing": "·", "stale": "~"}


@click.command("status", epilog="Example: rlvr status -w my-task")
@workspace_option
@json_option
def command(folder: Path, as_json: bool) -> None:
    """Show every gate, why it stands so, and the next command."""
    from rlvr.commands.renewal import renewed_chain

    opened, status = renewed_chain(folder)
    runs = [run_summary(path.parent) for path in sorted(opened.workspace.runs.glob("*/manifest.json"))]
    if as_json:
        emit_json({**status.model_dump(mode="json"), "runs": runs})
    else:
        print_chain(status)
        print_runs(runs)


def run_summary(run: Path) -> dict[str, Any]:
    """Return what stands of one run: its state, and the command that comes after it."""
    from rlvr.errors import DataError
    from rlvr.inspection.folder import InspectionFolder
    from rlvr.records.run import Manifest
    from rlvr.workspace import read_record

    try:
        manifest = read_record(run / "manifest.json", Manifest)
        reading = InspectionFolder.of_run(run).attestation()
    except DataError as error:
        return {"name": run.name, "state": "damaged", "why": error.found, "next": ""}
    if manifest is None or manifest.state != "finished":
        state = manifest.state if manifest else "missing"
        return {"name": run.name, "state": state, "next": f"rlvr train --name {run.name} --resume"}
    is_read = reading is not None and reading.passed
    following = f"rlvr report {run.name}" if is_read else f"rlvr inspect --run {run.name}"
    return {"name": run.name, "state": "finished", "read": is_read, "next": following}


def print_runs(runs: Sequence[Mapping[str, Any]]) -> None:
    """Print the runs for a person, each with the command that comes after it."""
    from rich.markup import escape

    out = console()
    for run in runs:
        unread = ", unread" if run.get("read") is False else ""
        after = f"  {escape(run['next'])}" if run["next"] else ""
        out.print(f"run {escape(run['name'])}: {run['state']}{unread}{after}")


def print_chain(chain: ChainStatus) -> None:
    """Print the chain for a person."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    for gate in chain.gates:
        colour = "bold red" if gate.waived else COLOURS[gate.state]
        mark = "!" if gate.waived else MARKS[gate.state]
        table.add_row(
            f"[{colour}]{mark}[/]", f"[bold]{gate.name}[/]", f"[{colour}]{gate.state}[/]", escape(gate.why)
        )
    out = console()
    out.print(table)
    out.print(f"\nnext: [bold]{escape(chain.next)}[/]")
