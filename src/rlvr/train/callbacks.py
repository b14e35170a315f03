"""What happens around TRL's steps: the log, the progress bar, and leaving on a signal with a checkpoint."""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from rlvr.workspace import append_lines, read_objects, write_lines

LOG_NAME = "log.jsonl"


class LogWriter(TrainerCallback):  # type: ignore[misc]  # transformers is untyped
    """Appends every logged step to ``log.jsonl``: TRL's names, plain numbers, the step and the seconds so far."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / LOG_NAME
        self._start = time.monotonic()

    def keep_until(self, step: int) -> None:
        """Drop the rows after ``step``: a resumed run logs them again."""
        rows = [row for row in read_objects(self.path) if row["step"] <= step]
        if rows:
            write_lines(self.path, rows)

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Write one row."""
        if not state.is_world_process_zero or not logs or "train_runtime" in logs:
            return
        numbers = {name: _plain(value) for name, value in logs.items() if isinstance(value, int | float)}
        row = {"step": state.global_step, **numbers, "seconds": round(time.monotonic() - self._start, 3)}
        append_lines(self.path, [row])


class ProgressBar(TrainerCallback):  # type: ignore[misc]
    """Steps, reward, right share, tokens a second and time left: a bar on a terminal, lines in a file."""

    LINES = 10
    """Lines that a whole run writes where there is no terminal."""

    def __init__(self, *, quiet: bool = False) -> None:
        console = Console(stderr=True)
        self._lines = not quiet and not console.is_terminal
        self._progress = Progress(
            TextColumn("train"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            TimeRemainingColumn(),
            console=console,
            disable=quiet or self._lines,
        )
        self._task: Any = None
        self._said = 0
        self._tokens = 0.0
        self._time = time.monotonic()

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Start the bar where a resumed run stands."""
        if not state.is_world_process_zero:
            return
        self._said = state.global_step
        self._task = self._progress.add_task(
            "train", total=state.max_steps, completed=state.global_step, note="reward   –    "
        )
        self._progress.start()

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Advance by one step."""
        if self._task is not None:
            self._progress.update(self._task, completed=state.global_step)

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Show the latest numbers."""
        if self._task is None or not logs or "reward" not in logs:
            return
        note = self._note(logs)
        self._progress.update(self._task, note=note)
        if self._lines and state.global_step - self._said >= max(state.max_steps // self.LINES, 1):
            self._said = state.global_step
            click.echo(f"step {state.global_step}/{state.max_steps}  {note}", err=True)

    def _note(self, logs: dict[str, Any]) -> str:
        now, tokens = time.monotonic(), float(logs.get("num_tokens", 0.0))
        rate = (tokens - self._tokens) / max(now - self._time, 1e-9)
        self._tokens, self._time = tokens, now
        right = _shown(logs.get("rlvr/right_share"), percent=True)
        return f"reward {_shown(logs['reward'])}  right {right}  {rate:,.0f} tokens/s"

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Leave the bar as it stands."""
        self.close()

    def close(self) -> None:
        """Stop drawing; safe to call twice."""
        self._progress.stop()


class HeldOut(TrainerCallback):  # type: ignore[misc]
    """Measures held-out accuracy every few steps and writes it into the log.

    Args:
        every: Optimizer steps between measurements.
        measure: Takes the model and the step, returns ``{metric: value}``.
        log: Where the row goes.
    """

    def __init__(self, every: int, measure: Callable[[Any, int], dict[str, float]], log: Path) -> None:
        self.every = every
        self.measure = measure
        self.path = log

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Measure when it is due; the last step is measured after training."""
        due = state.global_step % self.every == 0 and state.global_step < state.max_steps
        if due and state.is_world_process_zero:
            append_lines(
                self.path, [{"step": state.global_step, **self.measure(kwargs["model"], state.global_step)}]
            )


class StopOnSignal(TrainerCallback):  # type: ignore[misc]
    """SIGTERM, SIGUSR1 and the first Ctrl-C end the step, write a checkpoint and leave.

    A second Ctrl-C leaves at once. Slurm sends SIGUSR1 ahead of the time limit.
    """

    SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> StopOnSignal:
        """Install the handlers."""
        for number in self.SIGNALS:
            self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        """Restore the handlers that were there before."""
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.received is not None and number == signal.SIGINT:
            os._exit(130)  # the person asked twice
        self.received = signal.Signals(number)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Ask for a checkpoint and the end of training once a signal came."""
        if self.received is not None:
            control.should_save = True
            control.should_training_stop = True


def _plain(value: float) -> float | str:
    # JSON knows no NaN and no infinity, and a gradient that became one must not vanish from the log.
    return value if math.isfinite(value) else str(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _shown(value: Any, *, percent: bool = False) -> str:
    if not _is_number(value):
        return "–"
    return f"{value:.0%}" if percent else f"{value:+.3f}"
