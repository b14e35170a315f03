"""Usual misunderstandings, answered with the run's own numbers."""

from __future__ import annotations

import numpy as np

from rlvr.records.watch import Answer
from rlvr.watch.statistics import Series
from rlvr.watch.symptoms.case import Case


def answer_questions(case: Case) -> list[Answer]:
    """Return the answers that this run's numbers call for."""
    found = [
        _loss(case),
        _entropy(case),
        _zero_std(case),
        _clipping(case),
        _kl(case),
        _scale(case),
        _length(case),
    ]
    return [answer for answer in found if answer is not None]


def _loss(case: Case) -> Answer | None:
    loss = case.series("loss")
    if loss is None or float(np.median(np.abs(loss.values))) > 0.05:
        return None
    gradient = case.series("grad_norm")
    moved = (
        f"; the gradient norm's median is {np.median(gradient.values):.2g}, so it does learn"
        if gradient
        else ""
    )
    return Answer(
        question="Why is the loss about 0?",
        answer=f"Its median size is {np.median(np.abs(loss.values)):.1g}. Advantages of a group sum to zero, and "
        f"on-policy "
        f"every ratio is 1, so the value is 0 while its gradient is not{moved}. Look at reward and held-out "
        f"accuracy.",
    )


def _entropy(case: Case) -> Answer | None:
    entropy, progress = case.series("entropy"), case.progress
    if entropy is None or progress is None or progress.trend != "rising":
        return None
    ratio, low, high = entropy.ratio()
    if not ratio < 0.5:
        return None
    return Answer(
        question="Entropy fell. Has the run collapsed?",
        answer=f"It keeps {ratio:.0%} of its early level (95% interval {low:.0%} to {high:.0%}) while "
        f"{progress.words}. "
        "That is what learning a task with one right answer looks like; collapse is entropy lost for nothing.",
    )


def _zero_std(case: Case) -> Answer | None:
    logged, found = case.series("zero_variance_share"), case.completions
    if (
        logged is None
        or found is None
        or "frac_reward_zero_std" not in case.history.names.get("zero_variance_share", "")
    ):
        return None
    steps, values = found.by_step(found.zero_variance)
    if values.size < 8:
        return None
    counted = Series(steps, values).late.value
    if abs(counted - logged.late.value) < 0.1:
        return None
    return Answer(
        question="Why does frac_reward_zero_std differ from the groups?",
        answer=f"The log says {logged.late.value:.0%}, the groups themselves say {counted:.0%}. TRL compares a "
        f"rounded "
        "standard deviation with zero (rewards such as 1.2 leave 1e-8), and under batch scaling it has one spread "
        "for all.",
    )


def _clipping(case: Case) -> Answer | None:
    clipped = case.series("clipped_token_share")
    if clipped is None or float(np.max(np.abs(clipped.values))) > 0:
        return None
    return Answer(
        question="Why is clip_ratio 0 throughout?",
        answer="Every batch serves one update (on-policy), so every ratio is 1 and epsilon does nothing. It begins "
        "to act "
        "with steps_per_generation above gradient_accumulation_steps, or num_iterations above 1.",
    )


def _kl(case: Case) -> Answer | None:
    if case.series("kl") is not None or case.series("reward") is None:
        return None
    beta = case.facts.settings.get("beta")
    if beta not in (None, 0, 0.0):
        return None
    return Answer(
        question="Why is there no KL in the log?",
        answer="beta is 0"
        + (" (TRL's default)" if beta is None else "")
        + ", so no reference model is kept and no KL is "
        "computed; drift shows in held-out accuracy and in the completions.",
    )


def _scale(case: Case) -> Answer | None:
    reward = case.series("reward")
    names = list(case.weights or case.facts.reward_names or case.history.components)
    if reward is None or float(reward.values.max()) <= 1.0 or len(names) < 2:
        return None
    known = [f"{case.shown_weights[n]:.2g} × {n}" if n in case.shown_weights else n for n in names]
    hidden = len(names) - len(case.shown_weights)
    what = (
        f"It is a weighted sum ({' + '.join(known)})"
        if not hidden
        else f"It is summed over {', '.join(known)}"
    )
    tail = (
        f", full at {case.ceiling:.2g}"
        if not hidden
        else "; weights that are not shown stand nowhere in the log"
    )
    return Answer(
        question="Why is the reward above 1?",
        answer=f"{what}{tail}; accuracy is the correctness component alone.",
    )


def _length(case: Case) -> Answer | None:
    length, progress = case.series("length"), case.progress
    if length is None or progress is None or progress.trend != "rising":
        return None
    ratio, low, high = length.ratio()
    if not low > 1.2:
        return None
    return Answer(
        question="Completions lengthen. Is that a fault?",
        answer=f"By a factor of {ratio:.2f} (95% interval {low:.2f} to {high:.2f}) while {progress.words}. It is one "
        f"when "
        "wrong answers lengthen alone, or when the reward pays length at equal correctness; both are judged above.",
    )
