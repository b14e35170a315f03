"""``rlvr watch``: name the symptoms in a run's own numbers."""

from __future__ import annotations

from pathlib import Path

import click

from rlvr.commands.output import emit_json, json_option, workspace_option


@click.command()
@click.argument("source", required=False)
@json_option
@workspace_option
@click.option("--run-id", help="Which run to judge when the file holds several.")
@click.option(
    "--completions",
    type=click.Path(path_type=Path),
    help="File or folder of completions that stands elsewhere.",
)
@click.option("--experts/--no-experts", default=None, help="Whether the model routes between experts.")
def command(
    source: str | None,
    as_json: bool,
    folder: Path,
    run_id: str | None,
    completions: Path | None,
    experts: bool | None,
) -> int:
    r"""Name the symptoms in a run's own numbers.

    SOURCE is a run of this workspace, or any log: trainer_state.json, standard output, JSONL, CSV, TensorBoard,
    wandb, trackio, or a folder with one of them.

    \b
    rlvr watch outputs/checkpoint-500/trainer_state.json
    rlvr watch train.log --json
    """
    from rlvr.watch.ingest import read_source
    from rlvr.watch.judge import judge_source

    path = Path(source or ".")
    findings = judge_source(read_source(path, run=run_id, completions=completions), experts=experts)
    if as_json:
        emit_json(findings.model_dump(mode="json"))
    return 0
