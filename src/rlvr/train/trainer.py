"""``GRPOTrainer``, less forgetful and less forgiving.

Four additions: every rollout is kept, groups are counted, a broken reward stops the run, and a checkpoint holds the
rollouts that are not yet trained on. Loss, advantages, sampling and optimisation are TRL's own. Plain TRL trains to
the end on constant rewards.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from accelerate.utils import gather_object
from trl import GRPOTrainer

from rlvr.errors import StopTraining
from rlvr.rewards.composite import Scorer
from rlvr.rewards.contract import Outcome
from rlvr.train.data import ROW
from rlvr.train.rollouts import RolloutWriter

CONSTANT_BATCHES = 25
"""Batches in a row without any difference of reward within a group, after which a run learns nothing more."""


class GroupShares(NamedTuple):
    """Shares of the groups of one batch, each in [0, 1]."""

    informative: float
    all_right: float
    all_wrong: float


def group_shares(totals: Sequence[float], right: Sequence[bool], size: int) -> GroupShares:
    """Count groups with a difference of reward, and those that are right or wrong throughout.

    Args:
        totals: Reward of each completion, NaN where neutral; groups of ``size`` stand together.
        right: Whether each completion is right.
        size: Completions a group.
    """
    groups = [slice(start, start + size) for start in range(0, len(totals), size)]
    informative = [
        len({round(total, 6) for total in totals[group] if total == total}) > 1 for group in groups
    ]
    all_right = [all(right[group]) for group in groups]
    all_wrong = [not any(right[group]) for group in groups]
    count = max(len(groups), 1)
    return GroupShares(sum(informative) / count, sum(all_right) / count, sum(all_wrong) / count)


class GatedTrainer(GRPOTrainer):  # type: ignore[misc]  # trl is untyped
    """TRL's trainer, which also keeps rollouts and stops for a stated reason.

    Args:
        *args: As for ``GRPOTrainer``.
        scorer: The rewards; its failure count decides when infrastructure stops the run.
        writer: Where rollouts go.
        **kwargs: As for ``GRPOTrainer``.
    """

    _name = "GRPO"

    def __init__(self, *args: Any, scorer: Scorer, writer: RolloutWriter, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.scorer = scorer
        self.writer = writer
        self.completion_tokens = 0
        self._constant = 0

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        output: dict[str, Any] = super()._generate_and_score_completions(inputs)
        if self.model.training:
            self._keep(inputs, output)
        return output

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        # Before the rest: a checkpoint counts as whole once the trainer's own state is there, and that comes last.
        folder = Path(self._get_output_dir(trial=trial)) / f"checkpoint-{self.state.global_step}"
        folder.mkdir(parents=True, exist_ok=True)
        torch.save(self._between_steps(), folder / self._state_name)
        super()._save_checkpoint(model, trial)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        path = Path(checkpoint) / self._state_name if checkpoint else None
        if path is not None and path.is_file():
            self._restore(torch.load(path, map_location=self.accelerator.device, weights_only=False))

    @property
    def _state_name(self) -> str:
        return f"rollout_state_{self.accelerator.process_index}.pt"

    def _between_steps(self) -> dict[str, Any]:
        """Return what TRL forgets: rollouts not yet trained on, and metrics gathered since the last log."""
        return {
            "step": self._step,
            "buffered": self._buffered_inputs,
            "metrics": {mode: dict(values) for mode, values in self._metrics.items()},
            "tokens": self.completion_tokens,
            "constant": self._constant,
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self._step = state["step"]
        self._buffered_inputs = state["buffered"]
        for mode, values in state["metrics"].items():
            self._metrics[mode].update(values)
        self.completion_tokens = state["tokens"]
        self._constant = state["constant"]

    def _keep(self, inputs: list[dict[str, Any]], output: dict[str, Any]) -> None:
        lengths = output["completion_mask"].sum(dim=1)
        tokens = self.accelerator.gather(lengths).tolist()
        truncated = self.accelerator.gather(self._truncated(output, lengths)).tolist()
        rows = gather_object([one[ROW] for one in inputs])
        self.completion_tokens += int(sum(tokens))
        batch = self._rollouts(rows, tokens, truncated)
        self._count_groups(batch)
        if self.accelerator.is_main_process:
            self.writer.append(batch)
        self._stop_when_broken(batch)

    def _truncated(self, output: dict[str, Any], lengths: torch.Tensor) -> torch.Tensor:
        ids = output["completion_ids"]
        last = ids.gather(1, (lengths - 1).clamp(min=0).unsqueeze(1)).squeeze(1)
        ends = torch.tensor(self.eos_token_ids, device=ids.device)
        return ~torch.isin(last, ends)

    def _rollouts(
        self, rows: Sequence[int], tokens: Sequence[int], truncated: Sequence[bool]
    ) -> list[dict[str, Any]]:
        logs, extra, step = self._logs, self._logs["extra"], self.state.global_step
        count = len(rows)
        prompts, completions = list(logs["prompt"])[-count:], list(logs["completion"])[-count:]
        advantages = list(logs["advantages"])[-count:]
        scores = {name: list(values)[-count:] for name, values in logs["rewards"].items()}
        kept = {name: list(extra[name])[-count:] for name in ("outcome", "extracted") if name in extra}
        return [
            {
                "step": step,
                "group": index // self.num_generations,
                "row": rows[index],
                "prompt": prompts[index],
                "completion": completions[index],
                **{name: _finite(values[index]) for name, values in scores.items()},
                "advantage": advantages[index],
                **{name: values[index] for name, values in kept.items()},
                "tokens": tokens[index],
                "truncated": truncated[index],
            }
            for index in range(count)
        ]

    def _count_groups(self, batch: Sequence[dict[str, Any]]) -> None:
        weights = dict(zip(self.reward_func_names, self.reward_weights.tolist(), strict=True))
        totals = [_total(row, weights) for row in batch]
        right = [row.get("outcome") == Outcome.RIGHT.value for row in batch]
        shares = group_shares(totals, right, self.num_generations)
        metrics = self._metrics["train"]
        metrics["rlvr/informative_groups"].append(shares.informative)
        metrics["rlvr/all_right_groups"].append(shares.all_right)
        metrics["rlvr/all_wrong_groups"].append(shares.all_wrong)
        metrics["rlvr/right_share"].append(sum(right) / max(len(right), 1))
        self._constant = 0 if shares.informative > 0 else self._constant + 1

    def _stop_when_broken(self, batch: Sequence[dict[str, Any]]) -> None:
        reason = self.scorer.failures.stop_reason()
        if reason:
            raise StopTraining(
                "train.infrastructure",
                reason,
                where=f"step {self.state.global_step}",
                fix="mend what failed, then `rlvr train --resume`",
            )
        if self._constant >= CONSTANT_BATCHES:
            raise self._nothing_to_learn(batch)

    def _nothing_to_learn(self, batch: Sequence[dict[str, Any]]) -> StopTraining:
        solved = sum(row.get("outcome") == Outcome.RIGHT.value for row in batch) > len(batch) / 2
        fix = (
            "the task is solved: `rlvr report`, or harder prompts"
            if solved
            else "`rlvr probe`, then `rlvr inspect`"
        )
        return StopTraining(
            "train.constant-reward",
            f"no group had two different rewards in {CONSTANT_BATCHES} batches in a row",
            where=f"step {self.state.global_step}",
            expected="groups in which some completions are better than others; without them nothing is learned",
            fix=fix,
        )


def _finite(value: float) -> float | None:
    return value if value == value else None


def _total(row: dict[str, Any], weights: dict[str, float]) -> float:
    paid = [weight * row[name] for name, weight in weights.items() if row[name] is not None]
    return sum(paid) if paid else float("nan")
