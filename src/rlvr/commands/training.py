"""One training run of a workspace: gates required, evaluated before and after, with its manifest kept true."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlvr.errors import DataError, GateRefused, InfrastructureError, RlvrError, StopTraining, UsageError
from rlvr.records.run import Manifest
from rlvr.workspace import checked_name, read_record, stamp, write_record

if TYPE_CHECKING:
    from rlvr.commands.chain import Chain
    from rlvr.gates import ChainStatus
    from rlvr.records.plan import PlanRecord
    from rlvr.records.run import Evaluation
    from rlvr.train.run import TrainingJob, TrainingResult

MANIFEST = "manifest.json"


def train_workspace(
    chain: Chain, status: ChainStatus, *, name: str | None = None, resume: bool = False, quiet: bool = False
) -> tuple[Manifest, Evaluation | None, Evaluation | None]:
    """Train one run and evaluate before and after.

    Raises:
        GateRefused: ``gate.closed``; no model was loaded.
    """
    from rlvr.gates import require_passed

    require_passed(status)
    with chain.workspace.lock("train"):
        run = _run_folder(chain, name, resume)
        known = _resumable(chain, run) if resume else None
        _ = chain.scorer  # loaded now, so that what trains is what the fingerprints below are compared with
        before = _before(chain, quiet)
        _require_unmoved(chain)
        manifest = _train(chain, status, run, known, quiet)
        after = _after(chain, run, manifest, quiet)
    return manifest, before, after


def _run_folder(chain: Chain, name: str | None, resume: bool) -> Path:
    runs = chain.workspace.runs
    if resume:
        return chain.workspace.run_folder(name) if name else _latest_unfinished(runs)
    if name is None:
        numbers = [int(path.name[5:]) for path in runs.glob("base-*") if path.name[5:].isdigit()]
        return runs / f"base-{max(numbers, default=0) + 1}"
    run = runs / checked_name(name)
    if (run / MANIFEST).exists():
        raise UsageError(
            "run.exists",
            f"a run {name!r} exists",
            where=str(run),
            fix=f"`rlvr train --name {name} --resume` goes on with it; or choose another name",
        )
    return run


def _latest_unfinished(runs: Path) -> Path:
    found = sorted(runs.glob(f"*/{MANIFEST}"), key=lambda path: -path.stat().st_mtime)
    for path in found:
        manifest = read_record(path, Manifest)
        if manifest is not None and manifest.state != "finished":
            return path.parent
    raise DataError(
        "run.missing",
        "no unfinished run to resume" if found else "no run to resume",
        where=str(runs),
        fix="`rlvr train` starts a new one",
    )


RESUMED_PARTS = ("reward", "data", "model", "sampling", "recipe")
"""What a run may not change half way: one run has one reward, one data set, one recipe."""


def _resumable(chain: Chain, run: Path) -> Manifest:
    known = read_record(run / MANIFEST, Manifest)
    if known is None:
        raise DataError("run.no-manifest", "no manifest", where=str(run), fix="`rlvr train` starts a new run")
    if known.state == "finished":
        raise UsageError(
            "run.finished",
            f"{run.name} is finished: {known.steps} of {known.total_steps} steps",
            fix=f"`rlvr report {run.name}`, or `rlvr train` for a new run",
        )
    now = chain.fingerprints
    moved = [part for part in RESUMED_PARTS if getattr(known.made_from, part) != getattr(now, part)]
    if moved:
        raise GateRefused(
            "run.moved",
            f"{' and '.join(moved)} changed since {run.name} began",
            where=str(run),
            expected="one run with one reward, data, model and recipe",
            fix="`rlvr train` starts a new run; or put back what changed",
        )
    return known


def _require_unmoved(chain: Chain) -> None:
    """Refuse when a file was changed between the reading of the gates and now; evaluation can take minutes."""
    now = type(chain)(chain.base).fingerprints
    moved = [part for part in RESUMED_PARTS if getattr(now, part) != getattr(chain.fingerprints, part)]
    if moved:
        raise GateRefused(
            "gate.moved",
            f"{' and '.join(moved)} changed while the run was being prepared",
            where="gates",
            expected="the workspace as its gates have passed it",
            fix="`rlvr status`",
        )


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


def _train(chain: Chain, status: ChainStatus, run: Path, known: Manifest | None, quiet: bool) -> Manifest:
    from rlvr.commands.live import live_callbacks, reopen_when_suspected
    from rlvr.train.run import train

    plan = _plan(chain)
    path = run / MANIFEST
    manifest = _manifest(chain, status, plan, run.name, known)
    write_record(path, manifest)
    watch, callbacks = live_callbacks(chain, run)
    try:
        result = train(training_job(chain, plan, run, callbacks, resume=known is not None, quiet=quiet))
    except BaseException as error:
        _note_failure(path, manifest, error)
        raise _plain_failure(run, error) from error
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


def _note_failure(path: Path, manifest: Manifest, error: BaseException) -> None:
    state = "stopped" if isinstance(error, StopTraining) else "failed"
    with contextlib.suppress(RlvrError):  # a full disk cannot note that it is full
        write_record(path, _ended(manifest, state, str(error) or type(error).__name__))


OUT_OF_SPACE = ("no space left", "enforce fail", "disk quota")
"""How the libraries that write checkpoints say that the disk is full."""


def _plain_failure(run: Path, error: BaseException) -> BaseException:
    """Return the error to raise: a full disk and memory that ran out get a message, everything else stays."""
    text = str(error).lower()
    if isinstance(error, RlvrError | KeyboardInterrupt):
        return error
    if isinstance(error, OSError) or any(words in text for words in OUT_OF_SPACE):
        return InfrastructureError(
            "train.write",
            f"cannot write a checkpoint or a log: {str(error).splitlines()[0]}",
            where=str(run),
            expected="free space and permission to write",
            fix=f"make room, then `rlvr train --name {run.name} --resume`; the last whole checkpoint is intact",
        )
    if isinstance(error, MemoryError) or "out of memory" in text:
        return InfrastructureError(
            "train.memory",
            f"out of memory: {str(error).splitlines()[0] if str(error) else 'the system gave none'}",
            where=str(run),
            fix="`rlvr plan` ranks the remedies; `rlvr train --rehearse` tries them in a minute",
        )
    return error


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
