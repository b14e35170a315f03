"""``rlvr status``: every gate, why it stands so, and the next command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

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
    from rlvr.commands.renewal import renewed_status

    chain = renewed_status(folder)
    if as_json:
        emit_json(chain.model_dump(mode="json"))
    else:
        print_chain(chain)


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
