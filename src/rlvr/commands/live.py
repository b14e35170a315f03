"""What runs beside training: the live watch, held-out accuracy every few steps, and the inspection reopened."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rlvr.commands.chain import Chain
from rlvr.visible import visible
from rlvr.workspace import now

if TYPE_CHECKING:
    from rlvr.records.watch import Finding
    from rlvr.watch.callback import Ending, WatchCallback
    from rlvr.watch.facts import Facts


def live_callbacks(chain: Chain, run: Path) -> tuple[WatchCallback, list[Any]]:
    """Return the live watch, and every callback that a run gets beside the trainer's own."""
    from rlvr.train.callbacks import LOG_NAME, HeldOut
    from rlvr.train.rollouts import NAME
    from rlvr.watch.callback import WatchCallback

    settings = chain.config.watch
    watch = WatchCallback(
        settings.on_critical,
        on_reward="pause",
        on_finding=_say,
        on_due=lambda step: _say_due(run.name, step),
        rollouts=run / NAME,
        facts=_facts(chain, run),
        reinspect_every=settings.reinspect_every,
        on_reinspect=settings.on_reinspect,
    )
    every = chain.config.evaluation.every
    if every is None or chain.config.task.held_out is None:
        return watch, [watch]
    return watch, [watch, HeldOut(every, lambda model, step: _measure(chain, model, step), run / LOG_NAME)]


def _facts(chain: Chain, run: Path) -> Facts:
    """Return what the manifest says of the run, and its rewards as the scorer has them."""
    from rlvr.watch.ingest.folders import facts_beside

    names = tuple(one.name for one in chain.scorer.components)
    weights = dict(zip(names, chain.scorer.weights(), strict=True))
    return replace(facts_beside(run), reward_names=names, reward_weights=weights)


def _measure(chain: Chain, model: Any, step: int) -> dict[str, float]:
    from rlvr.commands.evaluate import evaluate_policy
    from rlvr.generate.transformers import TransformersGenerator
    from rlvr.train.model import tokenizer_of

    sampling = chain.config.sampling
    generator = TransformersGenerator.wrap(
        model, tokenizer_of(chain.config, chain.base), top_p=sampling.top_p, batch_size=sampling.batch_size
    )
    found = evaluate_policy(chain, generator, step=step)
    return {
        "held_out/accuracy": found.accuracy,
        "held_out/low": found.low,
        "held_out/high": found.high,
    }


def reopen_when_suspected(chain: Chain, run: Path, ending: Ending, step: int) -> None:
    """Close the inspection again when the finding that ended a run suspects the reward."""
    from rlvr.inspection.folder import InspectionFolder
    from rlvr.records.inspection import Reopening

    finding = ending.finding
    if finding is None or not finding.suspects_reward:
        return
    InspectionFolder.of_gates(chain.workspace.gates).reopen(
        Reopening(at=now(), run=run.name, step=step, symptom=finding.name, evidence=finding.evidence)
    )


def _say(finding: Finding) -> None:
    since = f" since step {finding.since_step}" if finding.since_step is not None else ""
    click.secho(f"{finding.level}: {finding.name}{since}: {visible(finding.evidence)}", fg="yellow", err=True)
    click.echo(f"  do: {visible(finding.action)}", err=True)


def _say_due(run: str, step: int) -> None:
    click.secho(f"step {step}: a reading is due: rlvr inspect --run {run}", fg="yellow", err=True)
