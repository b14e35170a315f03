"""One training run of a workspace: gates required, evaluated before and after, with its manifest kept true."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlvr.errors import DataError, RlvrError, StopTraining, UsageError

if TYPE_CHECKING:
    from rlvr.commands.chain import Chain
    from rlvr.gates import ChainStatus
    from rlvr.records.plan import PlanRecord
    from rlvr.records.run import Evaluation, Manifest
    from rlvr.train.run import TrainingJob, TrainingResult


def train_workspace(
    chain: Chain, status: ChainStatus, *, name: str | None = None, resume: bool = False, quiet: bool = False
) -> tuple[Manifest, Evaluation | None, Evaluation | None]:
    """Train one run and evaluate before and after.

    Raises:
        GateRefused: ``gate.closed``; no model was loaded.
    """
    from rlvr.gates import require_passed

    require_passed(status)
    run = _run_folder(chain, name, resume)
    before = _before(chain, quiet)
    manifest = _train(chain, status, run, resume, quiet)
    after = _after(chain, run, manifest, quiet)
    return manifest, before, after


def _run_folder(chain: Chain, name: str | None, resume: bool) -> Path:
    runs = chain.workspace.runs
    if resume:
        run = chain.workspace.run_folder(name) if name else chain.workspace.latest_run()
        if run is None:
            raise DataError("run.missing", "no run to resume", where=str(runs), fix="`rlvr train`")
        return run
    if name is None:
        numbers = [int(path.name[5:]) for path in runs.glob("base-*") if path.name[5:].isdigit()]
        return runs / f"base-{max(numbers, default=0) + 1}"
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise UsageError("run.name", f"{name!r} is no name for a folder", expected="letters, digits, . _ -")
    if (runs / name).exists():
        raise UsageError(
            "run.exists",
            f"a run {name!r} exists",
            where=str(runs / name),
            fix=f"`rlvr train --name {name} --resume` goes on with it; or choose another name",
        )
    return runs / name


def _before(chain: Chain, quiet: bool) -> Evaluation | None:
    from rlvr.commands.evaluate import base_evaluation
    from rlvr.commands.progress import counting

    if chain.config.task.held_out is None:
        return None
    total = len(chain.held_out) * chain.config.evaluation.rollouts
    with counting("held-out before", total, quiet=quiet) as count:
        return base_evaluation(chain, count)


def _after(chain: Chain, run: Path, manifest: Manifest, quiet: bool) -> Evaluation | None:
    from rlvr.commands.evaluate import run_evaluation
    from rlvr.commands.progress import counting

    if chain.config.task.held_out is None or manifest.state != "finished":
        return None
    total = len(chain.held_out) * chain.config.evaluation.rollouts
    with counting("held-out after", total, quiet=quiet) as count:
        return run_evaluation(chain, run, manifest.steps, count)


def _train(chain: Chain, status: ChainStatus, run: Path, resume: bool, quiet: bool) -> Manifest:
    from rlvr.commands.live import live_callbacks, reopen_when_suspected
    from rlvr.records.run import Manifest
    from rlvr.train.run import train
    from rlvr.workspace import read_record, write_record

    plan = _plan(chain)
    path = run / "manifest.json"
    manifest = _manifest(chain, status, plan, run.name, read_record(path, Manifest) if resume else None)
    write_record(path, manifest)
    watch, callbacks = live_callbacks(chain, run)
    with chain.workspace.lock("train"):
        try:
            result = train(training_job(chain, plan, run, callbacks, resume=resume, quiet=quiet))
        except (RlvrError, KeyboardInterrupt) as error:
            state = "stopped" if isinstance(error, StopTraining) else "failed"
            write_record(path, _ended(manifest, state, str(error)))
            raise
    if watch.ended is not None:
        write_record(path, _ended(manifest, watch.ended.how, watch.ended.why, result))
        reopen_when_suspected(chain, run, watch.ended, result.steps)
        raise StopTraining(
            f"train.{watch.ended.how}", watch.ended.why, where=f"step {result.steps}", fix=watch.ended.fix
        )
    state = "interrupted" if result.interrupted else "finished"
    manifest = _ended(manifest, state, result.interrupted, result)
    write_record(path, manifest)
    return manifest


def _plan(chain: Chain) -> PlanRecord:
    from rlvr.records.plan import PlanRecord

    plan = chain.workspace.read_record("plan", PlanRecord)
    if plan is None:  # the gates were checked before; only a deletion in between comes here
        raise DataError("plan.missing", "the plan is gone", fix="`rlvr plan`")
    return plan


def training_job(
    chain: Chain,
    plan: PlanRecord,
    run: Path,
    callbacks: Sequence[Any] = (),
    *,
    resume: bool = False,
    quiet: bool = False,
) -> TrainingJob:
    """Return everything that one training run needs, from the workspace and its plan."""
    from rlvr.commands.evaluate import prompt_of
    from rlvr.task.prompt import for_trainer
    from rlvr.train.model import prepare
    from rlvr.train.run import TrainingJob

    config = chain.config
    template = chain.base / config.sampling.chat_template if config.sampling.chat_template else None
    checkpoint = prepare(
        config.model,
        chain.base,
        adapter=config.adapter,
        chat_template=template,
        cache=chain.workspace.runs / ".checkpoints",
    )
    has_template = bool(checkpoint.tokenizer.chat_template)
    return TrainingJob(
        folder=run,
        model=checkpoint.path,
        tokenizer=checkpoint.tokenizer,
        settings={**plan.config(), "reward_weights": chain.scorer.weights()},
        rows=chain.rows,
        render=lambda row: for_trainer(prompt_of(chain, row), row.is_chat, has_template),
        scorer=chain.scorer,
        lora=plan.method.lora,
        quantization=plan.method.quantization,
        callbacks=callbacks,
        resume=resume,
        quiet=quiet,
    )


def _manifest(
    chain: Chain, status: ChainStatus, plan: PlanRecord, name: str, known: Manifest | None
) -> Manifest:
    from rlvr.records.run import Manifest
    from rlvr.workspace import stamp

    config = chain.config
    return Manifest(
        **stamp(chain.fingerprints),
        name=name,
        model=config.model,
        method=config.method.model_dump(mode="json"),
        settings={field: setting.model_dump(mode="json") for field, setting in plan.settings.items()},
        rewards=[reward.model_dump(mode="json") for reward in config.rewards],
        sampling=config.sampling.model_dump(mode="json"),
        seed=int(plan.settings["seed"].value) if "seed" in plan.settings else config.sampling.seed,
        gates=[gate.model_dump(mode="json", exclude={"evidence"}) for gate in status.gates],
        waivers={gate.name: gate.waived for gate in status.gates if gate.waived},
        variant=config.variant.name if config.variant else "",
        versions=plan.versions,
        machine={"cores": os.cpu_count(), "device": plan.device},
        is_demo=chain.is_demo,
        resumed=known.resumed + 1 if known else 0,
        seconds=known.seconds if known else 0.0,
        tokens=known.tokens if known else 0,
    )


def _ended(manifest: Manifest, state: str, stopped: str, result: TrainingResult | None = None) -> Manifest:
    update: dict[str, Any] = {"state": state, "stopped": stopped, "passed": state == "finished"}
    if result is not None:
        update |= {
            "steps": result.steps,
            "total_steps": result.total_steps,
            "seconds": manifest.seconds + result.seconds,
            "tokens": manifest.tokens + result.tokens,
            "peak_bytes": result.peak_bytes,
            "why": f"{result.steps} of {result.total_steps} steps",
        }
    return manifest.model_copy(update=update)


def accuracy_object(found: Evaluation | None) -> dict[str, float] | None:
    """Return the three numbers that machines read, or None where nothing was measured."""
    return {"accuracy": found.accuracy, "low": found.low, "high": found.high} if found else None
