"""The live watch as a callback of transformers, for this project's runs and for any TRL script.

One line in a TRL script, before ``trainer.train()``::

    trainer.add_callback(WatchCallback())            # numbers only
    WatchCallback.attach(trainer, action="pause")    # numbers and completions

What it reports is confirmed and corrected for repeated looking (:mod:`rlvr.watch.live`).
"""

from __future__ import annotations

import gzip
import json
import logging
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from rlvr.errors import StopTraining, UsageError
from rlvr.records.watch import Finding, Findings
from rlvr.watch.facts import Facts
from rlvr.watch.live import LiveWatch

Action = Literal["warn", "pause", "stop"]
"""What a critical finding does: say so; write a checkpoint and end for a reading; write a checkpoint and give up."""

_log = logging.getLogger("rlvr.watch")


@dataclass(frozen=True)
class Ending:
    """Why the callback ended a run.

    Attributes:
        how: ``paused`` for a reading, or ``stopped``.
        why: The reason, in a sentence.
        fix: The next thing to do.
        finding: The finding behind it; None when a reading was due.
    """

    how: Literal["paused", "stopped"]
    why: str
    fix: str
    finding: Finding | None = None


class WatchCallback(TrainerCallback):  # type: ignore[misc]  # transformers is untyped
    """Names symptoms while a run trains.

    Args:
        action: What a critical finding does.
        on_reward: What a critical finding does that suspects the reward; the louder of the two counts.
        on_finding: Called with every confirmed finding; prints a line by default.
        on_pause: Called with the finding that pauses the run, after the checkpoint was asked for.
        on_due: Called with the step when a reading is due.
        rollouts: File that a rollout writer appends gzip members to, or a function that returns the completions
            added since it was last called.
        facts: What is known of the run (experts, settings).
        reinspect_every: Steps after which completions should be read again; None for never.
        on_reinspect: What happens then, ``warn`` or ``pause``.
        raise_at_end: Whether a paused or stopped run ends with StopTraining (exit 3) instead of returning.
        alpha: Probability of a false alarm that all looks may spend on one symptom.
    """

    def __init__(
        self,
        action: Action = "warn",
        *,
        on_reward: Action = "warn",
        on_finding: Callable[[Finding], None] | None = None,
        on_pause: Callable[[Finding], None] | None = None,
        on_due: Callable[[int], None] | None = None,
        rollouts: Path | Callable[[], Iterable[Mapping[str, Any]]] | None = None,
        facts: Facts | None = None,
        reinspect_every: int | None = None,
        on_reinspect: Literal["warn", "pause"] = "warn",
        raise_at_end: bool = False,
        alpha: float = 0.02,
    ) -> None:
        for given in (action, on_reward, on_reinspect):
            if given not in ("warn", "pause", "stop"):
                raise UsageError("watch.action", f"no action {given!r}", expected="warn, pause or stop")
        self.action = action
        self.on_reward = on_reward
        self.on_finding = on_finding or _say
        self.on_pause = on_pause
        self.watch = LiveWatch(facts or Facts(), alpha)
        self.reinspect_every = reinspect_every
        self.on_reinspect = on_reinspect
        self.raise_at_end = raise_at_end
        self.on_due = on_due or _say_due
        self.ended: Ending | None = None
        self._fresh = _Appended(rollouts) if isinstance(rollouts, Path) else rollouts
        self._inspected_at = 0

    @classmethod
    def attach(cls, trainer: Any, action: Action = "warn", **keywords: Any) -> WatchCallback:
        """Add a callback to a GRPOTrainer that also reads its completions; returns it."""
        keywords.setdefault("facts", _rewards_of(trainer))
        callback = cls(action, rollouts=_TrainerLogs(trainer), **keywords)
        trainer.add_callback(callback)
        return callback

    @property
    def findings(self) -> Findings | None:
        """The latest judgement, None before the first look."""
        return self.watch.latest

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Begin where the run does: log and completions are judged from here on, also after a resume."""
        every = self.reinspect_every or 1
        self._inspected_at = state.global_step // every * every
        if isinstance(self._fresh, _Appended):
            self._fresh.skip()

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Take the completions of this step, and see whether a reading is due."""
        if not state.is_world_process_zero:
            return
        if self._fresh is not None:
            self.watch.add_completions(self._fresh())
        if self.reinspect_every and state.global_step - self._inspected_at >= self.reinspect_every:
            self._inspected_at = state.global_step
            self._due(state.global_step, control)

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Judge the run with the new row."""
        if not state.is_world_process_zero or not logs or "train_runtime" in logs:
            return
        for finding in self.watch.add({**logs, "step": state.global_step}):
            self.on_finding(finding)
            self._act(finding, control)

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Say why the run ended, where this callback ended it."""
        if self.ended is None or not self.raise_at_end:
            return
        raise StopTraining(
            f"train.{self.ended.how}", self.ended.why, where=f"step {state.global_step}", fix=self.ended.fix
        )

    def _act(self, finding: Finding, control: TrainerControl) -> None:
        if finding.level != "critical" or self.ended is not None:
            return
        order = ("warn", "pause", "stop")
        action = max(self.action, self.on_reward if finding.suspects_reward else "warn", key=order.index)
        if action == "warn":
            return
        how: Literal["paused", "stopped"] = "paused" if action == "pause" else "stopped"
        self._end(Ending(how, f"{finding.name}: {finding.evidence}", finding.action, finding), control)
        if how == "paused" and self.on_pause is not None:
            self.on_pause(finding)

    def _end(self, ending: Ending, control: TrainerControl) -> None:
        control.should_save = True
        control.should_training_stop = True
        self.ended = ending

    def _due(self, step: int, control: TrainerControl) -> None:
        self.on_due(step)
        if self.on_reinspect == "pause" and self.ended is None:
            reason = f"{self.reinspect_every} steps since the last reading"
            self._end(Ending("paused", reason, "rlvr inspect --run RUN, then rlvr train --resume"), control)


def _rewards_of(trainer: Any) -> Facts:
    """Return the names and weights of a trainer's rewards, where it has them."""
    names = tuple(str(name) for name in getattr(trainer, "reward_func_names", None) or ())
    given = getattr(trainer, "reward_weights", None)
    weights = [float(weight) for weight in given] if given is not None else []
    return Facts(
        reward_names=names,
        reward_weights=dict(zip(names, weights, strict=False)) if len(weights) == len(names) else {},
    )


class _TrainerLogs:
    """New completions from what GRPOTrainer keeps for its own log (one generation batch)."""

    def __init__(self, trainer: Any) -> None:
        self._trainer = trainer
        self._seen: tuple[int, Any] = (-1, None)

    def __call__(self) -> list[dict[str, Any]]:
        logs = getattr(self._trainer, "_logs", None) or {}
        texts = list(logs.get("completion", ()))
        mark = (len(texts), hash(tuple(str(text) for text in texts)))
        if not texts or mark == self._seen:
            return []
        self._seen = mark
        prompts, advantages = list(logs["prompt"]), list(logs.get("advantages", ()))
        scores = {name: list(values) for name, values in logs.get("rewards", {}).items()}
        extra = {name: list(values) for name, values in logs.get("extra", {}).items()}
        size = int(getattr(self._trainer, "num_generations", 1))
        step = int(self._trainer.state.global_step)
        rows = []
        for index, text in enumerate(texts):
            row = {"step": step, "group": index // size, "prompt": prompts[index], "completion": text}
            row |= {name: values[index] for name, values in scores.items() if index < len(values)}
            row |= {name: values[index] for name, values in extra.items() if index < len(values)}
            rows.append(row | ({"advantage": advantages[index]} if index < len(advantages) else {}))
        return rows


class _Appended:
    """New lines of a file to which gzip members are appended."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0
        self.skip()

    def skip(self) -> None:
        """Pass over what stands in the file: a resume has written it anew, at another size."""
        self._read = self._path.stat().st_size if self._path.is_file() else 0

    def __call__(self) -> list[dict[str, Any]]:
        if not self._path.is_file():
            return []
        size = self._path.stat().st_size
        if size < self._read:
            self._read = 0
        with self._path.open("rb") as file:
            file.seek(self._read)
            data = file.read()
        try:
            text = gzip.decompress(data).decode("utf-8", "replace") if data else ""
        except (EOFError, zlib.error, gzip.BadGzipFile):
            return []  # a member is being written; the next call reads it whole
        self._read += len(data)
        return [json.loads(line) for line in text.splitlines() if line.strip()]


def _say(finding: Finding) -> None:
    """Print a finding as a warning of the log."""
    loud = _log.error if finding.level == "critical" else _log.warning
    since = f" since step {finding.since_step}" if finding.since_step is not None else ""
    loud("%s: %s%s: %s. Do: %s", finding.level, finding.name, since, finding.evidence, finding.action)


def _say_due(step: int) -> None:
    _log.warning("step %s: a reading is due: rlvr inspect --run RUN (20 completions of this run)", step)
