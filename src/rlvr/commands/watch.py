"""``rlvr watch``: name the symptoms in a run's own numbers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rlvr.commands.output import console, emit_json, json_option, workspace_option

if TYPE_CHECKING:
    from rlvr.records.watch import Findings
    from rlvr.watch.history import History


@click.command(epilog="Example: rlvr watch outputs/checkpoint-500/trainer_state.json --html watch.html")
@click.argument("source", required=False)
@json_option
@workspace_option
@click.option(
    "--html",
    "page",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a self-contained page to this file.",
)
@click.option("--run-id", help="Which run to judge when the file holds several.")
@click.option(
    "--completions",
    type=click.Path(path_type=Path),
    help="File or folder of completions that stands elsewhere.",
)
@click.option("--experts/--no-experts", default=None, help="Whether the model routes between experts.")
@click.option("--names", is_flag=True, help="List every metric and the log names it is read from.")
def command(
    source: str | None,
    as_json: bool,
    folder: Path,
    page: Path | None,
    run_id: str | None,
    completions: Path | None,
    experts: bool | None,
    names: bool,
) -> int:
    """Name the symptoms in a run's own numbers.

    SOURCE is a run of this workspace (default: the latest), or any log: trainer_state.json, standard output, a
    notebook, JSONL, CSV, TensorBoard, wandb, trackio, or a folder with one of them.
    """
    if names:
        return _list_names(as_json)
    from rlvr.watch.ingest import read_source
    from rlvr.watch.judge import judge_source

    read = read_source(source_path(source, folder), run=run_id, completions=completions)
    findings = judge_source(read, experts=experts)
    _show(findings, read.history, as_json=as_json)
    if page is not None:
        from rlvr.watch.page import render_page
        from rlvr.workspace import write_atomic

        write_atomic(page, render_page(findings, read.history).encode())
        click.echo(f"page: {page}", err=True)
    return 0


def source_path(source: str | None, folder: Path) -> Path:
    """Return the path of a source: an existing path, or the name of a run of the workspace.

    Raises:
        UsageError: ``watch.no-source`` when nothing is named and the workspace has no run.
    """
    from rlvr.errors import UsageError
    from rlvr.workspace import CONFIG_NAME, Workspace

    if source is not None and Path(source).exists():
        return Path(source)
    if not (folder / CONFIG_NAME).is_file():
        if source is not None:
            return Path(source)
        raise UsageError(
            "watch.no-source", "no log was named", fix="rlvr watch FILE, or run it in a workspace"
        )
    workspace = Workspace(folder)
    run = workspace.run_folder(source) if source else workspace.latest_run()
    if run is None:
        raise UsageError(
            "watch.no-source",
            "the workspace has no run",
            where=str(workspace.root),
            fix="rlvr train, or name a log",
        )
    return run


def _show(findings: Findings, history: History, *, as_json: bool) -> None:
    if as_json:
        emit_json(findings.model_dump(mode="json"))
        return
    from rlvr.watch.summary import render_summary

    console().print(render_summary(findings, history))


def _list_names(as_json: bool) -> int:
    from rlvr.watch.metrics import METRICS

    if as_json:
        emit_json({metric.name: list(metric.aliases) for metric in METRICS})
        return 0
    for metric in METRICS:
        click.echo(f"{metric.name}: {metric.says}\n    {', '.join(metric.aliases)}")
    return 0
