"""Measures held-out accuracy: samples with a generator, judges with the evaluation check, writes the record."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlvr.commands.chain import Chain, columns_of, component
from rlvr.errors import ConfigError, InfrastructureError
from rlvr.evaluation import accuracy
from rlvr.records.run import Evaluation, PromptResult
from rlvr.workspace import read_record, stamp, write_record

if TYPE_CHECKING:
    from rlvr.generate import Generated, Generator
    from rlvr.rewards.composite import RowScore, Scorer
    from rlvr.task.dataset import Row

BASE_NAME = "evaluation"
RUN_FILE = "evaluation.json"
DEFAULT_CAP = 512
"""Tokens, where the configuration sets no cap."""


def evaluation_scorer(chain: Chain) -> tuple[Scorer, str, bool]:
    """Return what judges held-out completions, its name, and whether it is apart from the reward."""
    from rlvr.config.schema import Reward
    from rlvr.rewards.composite import Scorer

    chosen = chain.config.evaluation
    if chosen.use is None:
        name = next(
            (one.name for one in chain.scorer.components if one.role == "correctness"),
            chain.scorer.components[0].name,
        )
        return chain.scorer, name, False
    reward = Reward(use=chosen.use, arguments=chosen.arguments, name="held_out_check", role="correctness")
    return Scorer([component(reward, chain.base)]), chosen.use, True


def evaluate_policy(chain: Chain, generator: Generator, *, step: int = 0, progress: Any = None) -> Evaluation:
    """Sample every held-out prompt and judge it.

    Args:
        chain: The workspace.
        generator: The policy.
        step: Optimizer step of the policy.
        progress: Called with the number of completions done since the last call.

    Raises:
        ConfigError: ``evaluation.no-held-out``.
        InfrastructureError: ``evaluation.nothing-judged`` when the check failed on every completion.
    """
    rows = _held_out(chain)
    settings, sampling = chain.config.evaluation, chain.config.sampling
    temperature = settings.temperature or sampling.temperature
    scorer, check, independent = evaluation_scorer(chain)
    found = generator.generate(
        [prompt_of(chain, row) for row in rows],
        count=settings.rollouts,
        temperature=temperature,
        max_tokens=cap(chain),
        seed=sampling.seed,
        progress=progress,
    )
    results = _results(rows, found, scorer)
    within = accuracy(results)
    failed = sum(len(one) for one in found) - sum(result.judged for result in results)
    if not any(result.judged for result in results):
        raise InfrastructureError(
            "evaluation.nothing-judged", f"{check} could judge none of {failed} completions"
        )
    return Evaluation(
        **stamp(chain.fingerprints),
        accuracy=within.value,
        low=within.low,
        high=within.high,
        interval=within.interval,
        prompts=len(rows),
        rollouts=settings.rollouts,
        temperature=temperature,
        check=check,
        independent=independent,
        failed=failed,
        step=step,
        results=results,
        passed=True,
        why=f"{within.value:.1%} of {len(rows)} held-out prompts",
    )


def base_evaluation(chain: Chain, progress: Any = None) -> Evaluation:
    """Return held-out accuracy of the model before training, measured again only when something moved."""
    path = chain.workspace.record_path(BASE_NAME)
    known = read_record(path, Evaluation)
    now = chain.fingerprints
    parts = ("model", "held_out", "sampling", "reward")
    if known and all(getattr(known.made_from, part) == getattr(now, part) for part in parts):
        return known
    from rlvr.generate import open_generator

    generator = open_generator(chain.config, chain.base)
    try:
        found = evaluate_policy(chain, generator, progress=progress)
    finally:
        generator.close()
    write_record(path, found)
    return found


def run_evaluation(chain: Chain, run: Path, step: int, progress: Any = None) -> Evaluation:
    """Measure a run's final model and write ``evaluation.json`` into its folder."""
    from rlvr.generate import open_generator

    config = chain.config.model_copy(update={"model": str(run / "model"), "adapter": None})
    generator = open_generator(config, chain.base)
    try:
        found = evaluate_policy(chain, generator, step=step, progress=progress)
    finally:
        generator.close()
    write_record(run / RUN_FILE, found)
    return found


def prompt_of(chain: Chain, row: Row) -> Any:
    """Return a row's messages with the configured system prompt."""
    from rlvr.task.prompt import with_system

    return with_system(row.prompt, chain.config.sampling.system_prompt)


def cap(chain: Chain) -> int:
    """Return the longest completion in tokens."""
    return chain.config.sampling.max_completion_length or DEFAULT_CAP


def _held_out(chain: Chain) -> list[Row]:
    if chain.config.task.held_out is None:
        raise ConfigError(
            "evaluation.no-held-out",
            "no held-out prompts",
            where="task.held_out",
            expected="prompts that are never trained on, so that a gain can be told from memory",
            fix="name a file under task.held_out",
        )
    return chain.held_out[: chain.config.evaluation.max_prompts]


def _results(rows: Sequence[Row], found: Sequence[Sequence[Generated]], scorer: Scorer) -> list[PromptResult]:
    flat = [(row, one) for row, completions in zip(rows, found, strict=True) for one in completions]
    scores = scorer.score_batch(
        [[message.model_dump() for message in row.prompt] for row, _ in flat],
        [[{"role": "assistant", "content": one.text}] for _, one in flat],
        columns_of([row for row, _ in flat]),
    )
    results, position = [], 0
    for row, completions in zip(rows, found, strict=True):
        part = scores[position : position + len(completions)]
        position += len(completions)
        results.append(_result(row, completions, part))
    return results


def _result(row: Row, completions: Sequence[Generated], scores: Sequence[RowScore]) -> PromptResult:
    judged = [score for score in scores if score.outcome.value not in ("infrastructure", "not-applicable")]
    return PromptResult(
        row_hash=row.row_hash,
        prompt=row.prompt[-1].content,
        correct=sum(score.outcome.value == "right" for score in judged),
        judged=len(judged),
        completion=completions[0].text if completions else "",
        outcome=scores[0].outcome.value if scores else "",
    )
