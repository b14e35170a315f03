"""``rlvr train --rehearse``: two steps on the longest prompts, every completion at its cap; weights are thrown away.

It shows in a minute what would run out of memory at step 120, and may run before the inspection: nothing is learned.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlvr.commands.output import console, emit_json
from rlvr.errors import InfrastructureError

if TYPE_CHECKING:
    from rlvr.commands.chain import Chain
    from rlvr.records.plan import PlanRecord
    from rlvr.train.run import TrainingJob, TrainingResult

STEPS = 2
GIB = 1024**3


def rehearse(chain: Chain, as_json: bool) -> int:
    """Rehearse a workspace's plan and compare the peak with its verdict; exit 4 when memory ran out."""
    from rlvr.commands.plan import plan_workspace
    from rlvr.commands.training import training_job
    from rlvr.records.plan import PlanRecord
    from rlvr.train.run import train

    plan = chain.workspace.read_record("plan", PlanRecord) or plan_workspace(chain)
    with tempfile.TemporaryDirectory(prefix="rlvr-rehearse-") as folder:
        job = training_job(chain, plan, Path(folder), quiet=as_json)
        try:
            result = train(longest(job))
        except (RuntimeError, MemoryError) as error:
            raise _out_of_memory(plan, error) from error
    _show(plan, result, as_json)
    return 0


def longest(job: TrainingJob) -> TrainingJob:
    """Return the job cut down to two steps of the longest prompts with completions at their cap."""
    settings = dict(job.settings)
    cap = int(settings["max_completion_length"])
    forced = {"ignore_eos": True} if settings.get("use_vllm") else {"min_new_tokens": cap}
    settings |= {
        "max_steps": STEPS,
        "save_strategy": "no",
        "logging_steps": 1,
        "report_to": "none",
        "shuffle_dataset": False,
        "generation_kwargs": {**(settings.get("generation_kwargs") or {}), **forced},
    }
    batch = int(settings["per_device_train_batch_size"]) * int(settings.get("gradient_accumulation_steps", 1))
    prompts = max(STEPS * batch // int(settings["num_generations"]), 1)
    rows = sorted(job.rows, key=lambda row: -sum(len(message.content) for message in row.prompt))
    kept = (rows * (prompts // len(rows) + 1))[: max(prompts, min(len(rows), prompts))]
    return replace(job, settings=settings, rows=kept, save=False)


def _out_of_memory(plan: PlanRecord, error: BaseException) -> InfrastructureError:
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    if not isinstance(error, MemoryError) and "memory" not in text.lower():
        raise error
    remedy = plan.remedies[0].name if plan.remedies else "a shorter max_completion_length or a smaller batch"
    return InfrastructureError(
        "train.memory",
        f"out of memory in the rehearsal: {text}",
        expected=f"a peak of {plan.memory.peak_bytes / GIB:.1f} GiB, as planned",
        fix=f"`rlvr plan` ranks the remedies; the first: {remedy}",
    )


def _show(plan: PlanRecord, result: TrainingResult, as_json: bool) -> None:
    low, high = plan.memory.band_bytes
    found: dict[str, Any] = {
        "steps": result.steps,
        "seconds": result.seconds,
        "peak_bytes": result.peak_bytes,
        "planned_bytes": plan.memory.peak_bytes,
        "band_bytes": [low, high],
        "seconds_per_step": result.seconds / max(result.steps, 1),
    }
    if as_json:
        emit_json(found)
        return
    out = console()
    out.print(
        f"[green]✓[/] rehearsed {result.steps} steps at full length: {found['seconds_per_step']:.1f} s a step, "
        f"peak {result.peak_bytes / GIB:.2f} GiB (planned {low / GIB:.2f} to {high / GIB:.2f})"
    )
    out.print("weights were thrown away; next: [bold]rlvr status[/]")
