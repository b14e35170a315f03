"""Lengths: wrong answers that lengthen, collapse, truncation."""

from __future__ import annotations

from typing import Final

import numpy as np

from rlvr.records.watch import Confidence, Finding, Level, Proof
from rlvr.watch.statistics import Mask, Series
from rlvr.watch.symptoms.case import (
    Case,
    Progress,
    Verdict,
    clear,
    early_and_late,
    levelled,
    needs,
    proofs,
)

TRUNCATED: Final = 0.10
"""Share of completions cut by the cap from which length, not skill, is trained. Source: design, trl issue 5697."""
HALF: Final = 0.5
"""Completions under this share of their early length have collapsed."""
LENGTHENED: Final = 1.25
"""Wrong completions that grew by this factor lengthen."""
FEWEST_TOKENS: Final = 4.0


def judge_lengths(case: Case) -> list[Verdict]:
    """Judge the three symptoms of length."""
    return [_wrong_lengthen(case), _collapse(case), _truncation(case)]


def _series_by_outcome(case: Case) -> tuple[Series, Series | None] | None:
    """Return lengths of wrong and of right completions by step, from columns or from completions."""
    wrong, right = case.series("wrong_length"), case.series("right_length")
    if wrong:
        return wrong, right
    found = case.completions
    if found is None or not found.knows_right:
        return None
    by_outcome = [
        found.by_step(found.group_means(np.where(mask, found.lengths, np.nan)))
        for mask in ((found.outcomes == 0) | (found.outcomes == -1), found.right)
    ]
    built = [
        Series(steps, values, case.widen, "steps") if values.size >= 8 else None
        for steps, values in by_outcome
    ]
    return (built[0], built[1]) if built[0] is not None else None


def _wrong_lengthen(case: Case) -> Verdict:
    lengths = _series_by_outcome(case)
    if lengths is None:
        return _lengthen_by_mean(case)
    wrong, right = lengths
    growth, low, high = wrong.ratio()
    unit = case.completions.length_unit if case.completions is not None else "tokens"
    against = right.ratio() if right else (1.0, 1.0, 1.0)
    faster = growth > 1.1 * against[0] and low > against[0]
    longer = right is None or wrong.late.value > right.late.value
    enough = LENGTHENED if right is not None and right.late.count else 1.5
    if not (growth >= enough and low >= 1.1 and faster and longer):
        words = f"; right ones by {against[0]:.2f}" if right else "; there are no right ones"
        return clear(
            "wrong-answers-lengthen",
            f"wrong completions changed their length by a factor of {growth:.2f} (95% interval {low:.2f} to "
            f"{high:.2f}){words}",
            f"growth by {max(LENGTHENED, high):.2f}",
        )
    progress = case.progress
    level, confidence = _lengthen_level(progress, growth / max(against[0], 1e-9))
    since = wrong.last_stretch(np.asarray(wrong.smooth > 1.15 * wrong.early.value))
    parts = [
        f"wrong completions went from {wrong.early.value:.0f} to {wrong.late.value:.0f} {unit} (factor {growth:.2f}, "
        f"95% interval {low:.2f} to {high:.2f})",
        f"right ones from {right.early.value:.0f} to {right.late.value:.0f}"
        if right
        else "there are no right ones",
        progress.words if progress else "nothing says whether the run learned",
    ]
    return Finding(
        name="wrong-answers-lengthen",
        level=level,
        since_step=wrong.step(since) if since is not None else wrong.step(0),
        evidence="; ".join(parts),
        measures=[
            *early_and_late(wrong, "wrong_length", "length of wrong completions"),
            *(early_and_late(right, "right_length", "length of right completions") if right else []),
        ],
        confidence=confidence,
        refuted_by="right completions that lengthen as much, or held-out accuracy that rises with length",
        action=_lengthen_action(case),
        source="arXiv 2503.20783, section 3: division by length spares long wrong answers",
        metrics=["wrong_length", "right_length", "length"],
        proofs=_longest_wrong(case),
    )


def _lengthen_level(progress: Progress | None, apart: float) -> tuple[Level, Confidence]:
    """Return level and confidence: a rise excuses growth only in proportion to it.

    Args:
        progress: Whether the run learns.
        apart: Growth of wrong completions over that of right ones.
    """
    if progress is None:
        return "information", "low"
    if progress.gains and (apart < 2 or progress.change.value > 0.15 or progress.saturated):
        return "information", "high"
    if progress.trend == "unknown":
        return "warning", "low"
    return levelled("flat" if progress.trend == "rising" else progress.trend, excused=False)


def _lengthen_action(case: Case) -> str:
    if str(case.facts.settings.get("loss_type", "")) == "dr_grpo":
        return "the loss no longer divides by length, so look for a reward that pays length (`rlvr audit`)"
    return "read 20 completions (`rlvr inspect --run RUN`), then Dr.GRPO alone (`rlvr variant RUN`)"


def _longest_wrong(case: Case) -> list[Proof]:
    found = case.completions
    if found is None or not found.knows_right:
        return []
    late = found.steps >= np.quantile(found.steps, 0.8)
    return proofs(case, np.asarray(late & ~found.right), found.lengths)


def _lengthen_by_mean(case: Case) -> Verdict:
    """Without outcomes: lengths that grow while training reward stands are suspicious, no more."""
    what = "completions with outcome (or columns right_length and wrong_length)"
    length = case.series("length")
    progress = case.training_progress
    if (
        length is None
        or progress is None
        or progress.trend not in ("flat", "falling")
        or progress.late.value > 0.7
    ):
        return needs("wrong-answers-lengthen", what)
    growth, low, high = length.ratio()
    if not low >= 1.5:  # NaN when the early length is 0
        return needs(
            "wrong-answers-lengthen", what, f"mean length grew by {growth:.2f}; growth by 1.5 would be named"
        )
    since = length.last_stretch(np.asarray(length.smooth > 1.25 * length.early.value))
    return Finding(
        name="wrong-answers-lengthen",
        level="warning",
        since_step=length.step(since) if since is not None else None,
        evidence=f"mean length went from {length.early.value:.0f} to {length.late.value:.0f} tokens (factor "
        f"{growth:.2f}, "
        f"95% interval {low:.2f} to {high:.2f}) while {progress.words}; without outcomes it is not known which "
        f"lengthen",
        measures=early_and_late(length, "length"),
        confidence="low",
        refuted_by="completions with outcomes that show right ones lengthening as much",
        action="keep completions with their outcome and look again; then Dr.GRPO alone (`rlvr variant RUN`)",
        source="arXiv 2503.20783, section 3",
        metrics=["length", "reward"],
    )


def _collapse(case: Case) -> Verdict:
    length = case.series("length") or _length_from_completions(case)
    if length is None:
        return needs("length-collapse", "mean completion length, or completions, at least 8 rows")
    ratio, low, high = length.ratio()
    since = length.last_stretch(np.asarray(length.smooth < HALF * length.early.value))
    if since is None or high > 0.65 or length.early.value < FEWEST_TOKENS:
        return clear(
            "length-collapse",
            f"completions have {ratio:.0%} of their early length (95% interval {low:.0%} to {high:.0%})",
            f"a fall below {HALF:.0%}",
        )
    progress = case.progress
    excused = bool(progress and progress.excuses)
    level, confidence = levelled(progress.trend if progress else None, excused, severe=ratio < 0.2)
    return Finding(
        name="length-collapse",
        level=level,
        since_step=length.step(since),
        evidence=f"mean length went from {length.early.value:.3g} to {length.late.value:.3g} tokens ({ratio:.0%}, "
        f"95% "
        f"interval {low:.0%} to {high:.0%}); "
        + (progress.words if progress else "nothing says whether it learned"),
        measures=early_and_late(length, "length"),
        confidence=confidence,
        refuted_by="short completions that are right: held-out accuracy that rises or holds near its ceiling",
        action="nothing to do; shorter and better is what one hopes for"
        if level == "information"
        else "read the short completions; check that the reward pays nothing for an empty or cut answer "
        "(`rlvr audit`), lower the learning rate, restart from a checkpoint before the stretch",
        source="this run's own early level",
        suspects_reward=level == "critical" and bool(progress and progress.metric != "reward"),
        metrics=["length", progress.metric if progress else "reward"],
        proofs=_late_shortest(case) if level != "information" else [],
    )


def _length_from_completions(case: Case) -> Series | None:
    found = case.completions
    if found is None:
        return None
    steps, values = found.by_step(found.group_means(found.lengths))
    return Series(steps, values, case.widen, "steps") if values.size >= 8 else None


def _late_shortest(case: Case) -> list[Proof]:
    found = case.completions
    if found is None:
        return []
    late = found.steps >= np.quantile(found.steps, 0.8)
    return proofs(case, np.asarray(late & ~found.right), -found.lengths)


def _truncation(case: Case) -> Verdict:
    share = case.series("truncated_share", rows=4) or _truncated_from_completions(case)
    if share is None:
        return needs("truncation", "completions/clipped_ratio, or completions with truncated")
    over = np.asarray(share.smooth > TRUNCATED)
    since = share.last_stretch(over)
    if since is None or share.late.low <= TRUNCATED:
        return _past_truncation(case, share, over)
    cap = case.facts.settings.get("max_completion_length")
    return Finding(
        name="truncation",
        level="critical" if share.late.low > 0.5 else "warning",
        since_step=share.step(since),
        evidence=f"the cap{f' of {cap} tokens' if cap else ''} ends {share.late.value:.0%} of completions in the "
        f"last {share.late.count} {share.unit} (95% interval {max(0, share.late.low):.0%} to "
        f"{min(1, share.late.high):.0%}), "
        f"{share.early.value:.0%} at first; more than {TRUNCATED:.0%} teaches the cap instead of the task",
        measures=early_and_late(share, "truncated_share"),
        confidence="high",
        refuted_by="completions at the cap that repeat themselves: then length is the illness, not the cap",
        action="raise max_completion_length to the 99th percentile of untruncated lengths (`rlvr plan` recomputes "
        "the "
        "memory); if the cap must stay, punish overlong completions softly",
        source="more than 10%: design of this project; 97% truncated at the default of 256 in trl issue 5697",
        metrics=["truncated_share", "length"],
        proofs=_truncated_proofs(case),
    )


def _past_truncation(case: Case, share: Series, over: Mask) -> Verdict:
    smallest = (
        f"a share of {max(TRUNCATED, share.late.value + 2 * share.late.error):.0%} in the last {share.unit}"
    )
    if over.mean() < 0.2 or len(share) < 8:
        return clear(
            "truncation",
            f"the cap ends {share.late.value:.1%} of completions in the last {share.edge} {share.unit}",
            smallest,
        )
    last = int(np.flatnonzero(over)[-1])
    progress = case.progress
    lost = progress is not None and progress.trend in ("flat", "falling") and progress.late.value < 0.1
    return Finding(
        name="truncation",
        level="warning" if lost else "information",
        since_step=share.step(int(np.flatnonzero(over)[0])),
        until_step=share.step(last),
        evidence=f"up to step {share.step(last)} the cap ended more than {TRUNCATED:.0%} of completions; it ends "
        f"{share.late.value:.0%} now" + ("; since then nothing is right" if lost else ""),
        measures=early_and_late(share, "truncated_share"),
        confidence="high",
        action="raise max_completion_length: what fits under this cap is not the task"
        if lost
        else "nothing to do while it falls",
        source="more than 10%: design of this project",
        metrics=["truncated_share", "length"],
    )


def _truncated_from_completions(case: Case) -> Series | None:
    found = case.completions
    if found is None or not np.isfinite(found.truncated).any():
        return None
    steps, values = found.by_step(found.group_means(found.truncated))
    return Series(steps, values, case.widen, "steps") if values.size >= 4 else None


def _truncated_proofs(case: Case) -> list[Proof]:
    found = case.completions
    if found is None:
        return []
    return proofs(case, np.asarray(found.truncated == 1), found.steps)
