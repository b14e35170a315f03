"""``rlvr gate``: pass or refuse, for other programs; exit 0 or 3."""

from __future__ import annotations

from pathlib import Path

import click

from rlvr.commands.output import emit_json, json_option, workspace_option
from rlvr.gates import CHAIN


@click.command("gate", epilog="Example: rlvr gate inspect --json")
@click.argument("name", required=False, type=click.Choice(CHAIN))
@workspace_option
@json_option
def command(name: str | None, folder: Path, as_json: bool) -> int:
    """Say whether the chain, or one gate of it, is passed: exit 0 when it is, 3 when it is not.

    With --json the object holds {passed, next, gates}; each gate carries its record as evidence.
    """
    from rlvr.commands.renewal import renewed_status
    from rlvr.commands.status import print_chain

    chain = renewed_status(folder)
    if name is not None:
        kept = [gate for gate in chain.gates if gate.name == name]
        passed = all(gate.state == "passed" for gate in kept)
        chain = chain.model_copy(update={"gates": kept, "passed": passed})
    if as_json:
        emit_json(chain.model_dump(mode="json"))
    else:
        print_chain(chain)
    return 0 if chain.passed else 3
