"""``rlvr eval``: held-out accuracy of the base model or of a run's final model."""

from __future__ import annotations

from pathlib import Path

import click

from rlvr.commands.output import console, emit_json, json_option, workspace_option


@click.command("eval", epilog="Example: rlvr eval base-1 --json")
@click.argument("run", required=False)
@workspace_option
@json_option
def command(run: str | None, folder: Path, as_json: bool) -> None:
    """Measure held-out accuracy, with its interval: of RUN's final model, or of the base model without RUN."""
    from rlvr.commands.chain import Chain
    from rlvr.commands.evaluate import base_evaluation, run_evaluation
    from rlvr.commands.progress import counting
    from rlvr.records.run import Manifest
    from rlvr.workspace import read_record

    chain = Chain(folder)
    total = min(len(chain.held_out), chain.config.evaluation.max_prompts) * chain.config.evaluation.rollouts
    with counting("held-out", total, quiet=as_json) as count:
        if run is None:
            found = base_evaluation(chain, count)
        else:
            place = chain.workspace.run_folder(run)
            manifest = read_record(place / "manifest.json", Manifest)
            found = run_evaluation(chain, place, manifest.steps if manifest else -1, count)
    if as_json:
        emit_json(found.model_dump(mode="json", exclude={"results"}))
        return
    who = run or "base model"
    console().print(
        f"{who}: {found.accuracy:.1%} [{found.low:.1%}, {found.high:.1%}] of {found.prompts} held-out prompts "
        f"({found.check}; {found.interval})"
    )
