"""One training run from a plan: data, trainer, signals, checkpoints, the final model.

Everything that decides a number comes from the plan's settings; nothing is defaulted here.
"""

from __future__ import annotations

import json
import logging
import resource
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlvr.errors import DataError, InfrastructureError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase, TrainerCallback

    from rlvr.rewards.composite import Scorer
    from rlvr.task.dataset import Row
    from rlvr.train.trainer import GatedTrainer

TRAINER_FOLDER = "trainer"
MODEL_FOLDER = "model"


@dataclass(frozen=True)
class TrainingJob:
    """What one run needs.

    Attributes:
        folder: The run's folder.
        model: Checkpoint folder or Hub id.
        tokenizer: The model's tokenizer, with the chat template that the probe used.
        settings: Keyword arguments of ``GRPOConfig``, as planned.
        rows: Training rows; those over the context are already left out.
        render: Makes a row's prompt as TRL takes it.
        scorer: The rewards.
        lora: Keyword arguments of ``peft.LoraConfig``; empty for full fine-tuning.
        quantization: Keyword arguments of ``BitsAndBytesConfig``; empty without QLoRA.
        callbacks: Further callbacks, such as the live watch.
        resume: Whether to go on from the last complete checkpoint.
        quiet: Draw no progress bar.
        save: Whether the final model is kept.
    """

    folder: Path
    model: str
    tokenizer: PreTrainedTokenizerBase
    settings: Mapping[str, Any]
    rows: Sequence[Row]
    render: Callable[[Row], Any]
    scorer: Scorer
    lora: Mapping[str, Any] = field(default_factory=dict)
    quantization: Mapping[str, Any] = field(default_factory=dict)
    callbacks: Sequence[TrainerCallback] = ()
    resume: bool = False
    quiet: bool = False
    save: bool = True


@dataclass(frozen=True)
class TrainingResult:
    """What became of a run.

    Attributes:
        steps: Optimizer steps done.
        total_steps: Optimizer steps planned.
        seconds: Wall time of this process's share.
        tokens: Completion tokens sampled.
        peak_bytes: Peak memory of the device, or resident memory on a CPU.
        interrupted: Name of the signal that ended it, or empty.
    """

    steps: int
    total_steps: int
    seconds: float
    tokens: int
    peak_bytes: int
    interrupted: str = ""


def train(job: TrainingJob) -> TrainingResult:
    """Run TRL's GRPO to the end, to a signal, or to a stated stop.

    Raises:
        DataError: ``train.too-few-prompts``.
        StopTraining: The run stopped itself; the last checkpoint is intact.
        RewardError: A reward broke its contract.
    """
    from rlvr.train.callbacks import LogWriter, ProgressBar, StopOnSignal

    job.folder.mkdir(parents=True, exist_ok=True)
    _quiet()
    writer, log, bar = _outputs(job, LogWriter, ProgressBar)
    with StopOnSignal() as signals:
        trainer = _build(job, writer, [log, bar, signals, *job.callbacks])
        checkpoint = _resume_point(job, writer, log)
        start = time.monotonic()
        try:
            trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
        finally:
            bar.close()
        if signals.received is None and job.save:
            _save_model(trainer, job)
    return TrainingResult(
        steps=trainer.state.global_step,
        total_steps=trainer.state.max_steps,
        seconds=time.monotonic() - start,
        tokens=trainer.completion_tokens,
        peak_bytes=peak_memory(),
        interrupted=signals.received.name if signals.received else "",
    )


def _outputs(job: TrainingJob, log_writer: Any, progress_bar: Any) -> tuple[Any, Any, Any]:
    from rlvr.train.rollouts import RolloutWriter

    return RolloutWriter(job.folder), log_writer(job.folder), progress_bar(quiet=job.quiet)


def _build(job: TrainingJob, writer: Any, callbacks: list[TrainerCallback]) -> GatedTrainer:
    from transformers.trainer_callback import PrinterCallback, ProgressCallback
    from trl import GRPOConfig

    from rlvr.generate.threads import fit_threads
    from rlvr.train.data import RowColumns, RowReward, as_dataset
    from rlvr.train.trainer import GatedTrainer

    settings = dict(job.settings)
    settings["output_dir"] = str(job.folder / TRAINER_FOLDER)
    settings["model_init_kwargs"] = _model_arguments(job, settings)
    arguments = GRPOConfig(**settings)
    _require_enough(job.rows, arguments)
    columns = RowColumns(job.rows)
    trainer = GatedTrainer(
        model=job.model,
        reward_funcs=[RowReward(function, columns) for function in job.scorer.reward_functions()],
        args=arguments,
        train_dataset=as_dataset(job.rows, job.render),
        processing_class=job.tokenizer,
        peft_config=_lora(job.lora),
        callbacks=callbacks,
        scorer=job.scorer,
        writer=writer,
    )
    fit_threads(trainer.model)
    trainer.remove_callback(PrinterCallback)
    trainer.remove_callback(ProgressCallback)
    return trainer


def _model_arguments(job: TrainingJob, settings: Mapping[str, Any]) -> dict[str, Any]:
    given = dict(settings.get("model_init_kwargs") or {})
    if job.quantization:
        from transformers import BitsAndBytesConfig

        given["quantization_config"] = BitsAndBytesConfig(**job.quantization)
    return given


def _lora(arguments: Mapping[str, Any]) -> Any:
    if not arguments:
        return None
    from peft import LoraConfig

    return LoraConfig(**arguments)


def _require_enough(rows: Sequence[Row], arguments: Any) -> None:
    # With fewer prompts than one generation batch TRL's sampler yields nothing, and training "succeeds" at step 0.
    needed = arguments.generation_batch_size // arguments.num_generations
    if len(rows) >= needed:
        return
    raise DataError(
        "train.too-few-prompts",
        f"{len(rows)} prompts for generation batches of {needed} prompts",
        where="task.prompts",
        expected=f"at least {needed} prompts (generation_batch_size {arguments.generation_batch_size} / "
        f"num_generations {arguments.num_generations})",
        fix="add prompts, or lower per_device_train_batch_size or gradient_accumulation_steps",
    )


def _resume_point(job: TrainingJob, writer: Any, log: Any) -> Path | None:
    checkpoint = last_checkpoint(job.folder) if job.resume else None
    step = int(checkpoint.name.rpartition("-")[2]) if checkpoint else -1
    if not checkpoint:
        writer.path.unlink(missing_ok=True)
        log.path.unlink(missing_ok=True)
        return None
    # Rollouts carry the step before their update, so those of a checkpoint at step N go up to N - 1.
    writer.keep_until(step - 1)
    log.keep_until(step)
    return checkpoint


def last_checkpoint(folder: Path) -> Path | None:
    """Return the newest complete checkpoint of a run; one that a kill left half written is passed over."""
    found = sorted(
        (folder / TRAINER_FOLDER).glob("checkpoint-*"), key=lambda path: int(path.name.rpartition("-")[2])
    )
    return next((path for path in reversed(found) if _is_complete(path)), None)


def _is_complete(checkpoint: Path) -> bool:
    # The trainer writes its state last.
    try:
        json.loads((checkpoint / "trainer_state.json").read_text())
    except (OSError, ValueError):
        return False
    return True


def _save_model(trainer: GatedTrainer, job: TrainingJob) -> None:
    try:
        trainer.save_model(str(job.folder / MODEL_FOLDER))
    except OSError as error:
        raise InfrastructureError(
            "train.save",
            f"cannot save the model: {error}",
            where=str(job.folder / MODEL_FOLDER),
            fix="make room, then `rlvr train --resume`: the last checkpoint is intact",
        ) from error


def peak_memory() -> int:
    """Return the peak in bytes: allocated on the GPU where there is one, otherwise resident."""
    import torch

    if torch.cuda.is_available():
        return int(torch.cuda.max_memory_allocated())
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _quiet() -> None:
    import datasets
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    datasets.disable_progress_bars()
    for name in ("trl", "accelerate", "peft"):
        logging.getLogger(name).setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", category=FutureWarning)
