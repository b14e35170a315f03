"""Counts of each prompt, and unbiased estimates from them. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rlvr.records.probe import Band, Cause, Lengths, PromptResult, Quantiles
from rlvr.records.samples import Message, Sample, ScoredSample

BAND = (0.05, 0.95)
"""Success between which a prompt is worth training on, by default."""

PREVIEW = 120
LOW_TEMPERATURE = 0.3
"""Completions of a file at or below this temperature count as the low one."""


@dataclass(slots=True)
class Tally:
    """One distinct prompt with everything that was judged of it.

    Attributes:
        row: First row of the data with this prompt.
        row_hash: Hash of that row.
        prompt: Its messages.
        low: Judged completions at the low temperature, right or not.
        training: Judged completions at the training temperature (or of a file), right or not.
        sampled: Completions, judged or not.
        truncated: Completions that the cap ended.
    """

    row: int
    row_hash: str
    prompt: list[Message]
    low: list[bool] = field(default_factory=list)
    training: list[bool] = field(default_factory=list)
    sampled: int = 0
    truncated: int = 0

    @property
    def successes(self) -> int:
        """Right completions at either temperature."""
        return sum(self.low) + sum(self.training)


Judged = tuple[Sample, ScoredSample]


def join(samples: Iterable[Sample], scores: Iterable[ScoredSample]) -> list[Judged]:
    """Return each sample with its score, in the order of the samples; those without a score are left out."""
    known = {score.completion_id: score for score in scores}
    return [(one, known[one.completion_id]) for one in samples if one.completion_id in known]


def tally(judged: Iterable[Judged]) -> list[Tally]:
    """Return one tally a distinct prompt, in order of appearance."""
    found: dict[tuple[tuple[str, str], ...], Tally] = {}
    for sample, score in judged:
        key = tuple((message.role, message.content.strip()) for message in sample.prompt)
        one = found.get(key)
        if one is None:
            one = found[key] = Tally(sample.row, sample.row_hash, sample.prompt)
        one.sampled += 1
        one.truncated += sample.truncated
        if is_judged(score):
            (one.low if sample.source == "low" else one.training).append(score.outcome == "right")
    return list(found.values())


def is_judged(score: ScoredSample) -> bool:
    """Return whether the reward said anything of the completion; a failure of the verifier says nothing."""
    return score.outcome not in ("infrastructure", "not-applicable")


def cause_of(sample: Sample, score: ScoredSample) -> Cause:
    """Return why this completion was paid or not; the grader's own fault is seen only over many."""
    if not is_judged(score):
        return "infrastructure"
    if score.outcome == "right":
        return "right"
    if sample.truncated:
        return "truncated"
    return "ill-formed" if score.outcome == "ill-formed" else "wrong"


def informative_share(right: int, of: int, group: int) -> float | None:
    """Return the unbiased estimate of the chance that a group of one prompt holds both outcomes.

    ``1 - C(c, G) / C(n, G) - C(n - c, G) / C(n, G)``, the share of subsets of ``group`` completions among the ``of``
    that are mixed; None when there are fewer completions than that.
    """
    if of < group:
        return None
    alike = math.comb(right, group) + math.comb(of - right, group)
    return 1 - alike / math.comb(of, group)


def pass_at(right: int, of: int, k: int) -> float | None:
    """Return unbiased pass@k of one prompt (Chen et al. 2021, arXiv 2107.03374); None when ``k`` exceeds ``of``."""
    if of < k:
        return None
    return 1 - math.comb(of - right, k) / math.comb(of, k)


def share(outcomes: Sequence[bool]) -> float:
    """Return the share of right completions of one prompt."""
    return sum(outcomes) / len(outcomes)


def band(outcomes: Sequence[bool], edges: tuple[float, float] = BAND) -> Band:
    """Return the difficulty of a prompt by its observed share; fewer than four completions say too little."""
    if len(outcomes) < 4:
        return "unknown"
    seen = share(outcomes)
    if seen < edges[0]:
        return "too hard"
    if seen > edges[1]:
        return "too easy"
    return "hard" if seen < 1 / 3 else ("middle" if seen <= 2 / 3 else "easy")


def histogram(tallies: Iterable[Tally]) -> list[int]:
    """Return how many prompts had 0, 1, … n right completions at the training temperature.

    Prompts with fewer than the most common number of completions are left out, so that bars are alike; one
    completion a prompt makes no histogram.
    """
    full = [one.training for one in tallies if one.training]
    if not full:
        return []
    sizes = [len(one) for one in full]
    size = max(set(sizes), key=lambda one: (sizes.count(one), one))
    if size < 2:
        return []
    counts = [0] * (size + 1)
    for outcomes in full:
        if len(outcomes) == size:
            counts[sum(outcomes)] += 1
    return counts


def prompt_results(tallies: Iterable[Tally]) -> list[PromptResult]:
    """Return the table of prompts."""
    return [
        PromptResult(
            row=one.row,
            row_hash=one.row_hash,
            preview=preview(one.prompt),
            low_samples=len(one.low),
            low_right=sum(one.low),
            samples=len(one.training),
            right=sum(one.training),
            truncated=one.truncated,
            band=band(one.training),
        )
        for one in tallies
    ]


def preview(prompt: Sequence[Message]) -> str:
    """Return the beginning of the last user message on one line."""
    text = " ".join(next((one.content for one in reversed(prompt) if one.role == "user"), "").split())
    return text if len(text) <= PREVIEW else text[: PREVIEW - 1] + "…"


def quantiles(values: Sequence[int]) -> Quantiles:
    """Return length quantiles, each an observed value (the smallest at or above the share)."""
    known = sorted(value for value in values if value >= 0)
    if not known:
        return Quantiles()

    def at(part: float) -> int:
        return known[max(0, math.ceil(part * len(known)) - 1)]

    return Quantiles(p50=at(0.5), p90=at(0.9), p95=at(0.95), p99=at(0.99), longest=known[-1])


def lengths(judged: Sequence[Judged], prompt_tokens: Mapping[str, int], cap: int) -> Lengths:
    """Return what ``plan`` needs to know of lengths.

    Args:
        judged: Samples with scores.
        prompt_tokens: Row hash to prompt length, tokens.
        cap: ``max_completion_length`` of the sampling, tokens; -1 when unknown.
    """
    training = [pair for pair in judged if pair[0].source != "low"] or list(judged)
    cut = sum(sample.truncated for sample, _ in training)
    return Lengths(
        prompt=quantiles(list(prompt_tokens.values())),
        completion=quantiles([sample.tokens for sample, _ in training]),
        right=quantiles([sample.tokens for sample, score in training if score.outcome == "right"]),
        cap=cap,
        truncated_share=cut / len(training) if training else 0.0,
    )
