"""Entropy collapse and explosion.

Entropy that falls is what learning looks like: healthy runs of this project's demo lose 79 to 88% of it while
accuracy rises to .85. So a collapse is entropy under a tenth of its early level *and* no gain for it, or a run that
stands still with its entropy spent and prompts unsolved.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from rlvr.records.watch import Confidence, Finding, Level, Proof
from rlvr.watch.statistics import Series
from rlvr.watch.symptoms.case import (
    Case,
    Progress,
    Trend,
    Verdict,
    clear,
    early_and_late,
    levelled,
    measure,
    needs,
    progress_of,
    proofs,
)

TENTH: Final = 0.1
"""Entropy under this share of its early level is collapsed. Source: healthy runs keep 12 to 21%."""
DOUBLE: Final = 2.0
"""Entropy above this many times its early level explodes."""
EXPLOSION_NATS: Final = 0.3
"""An explosion has at least this entropy: doubling .02 means nothing."""
STUCK_SHARE: Final = 0.3
"""Share of all-wrong groups from which a standing run has prompts left that it no longer explores."""

HOPELESS_SHARE: Final = 0.45
"""Share of all-wrong groups from which a run with no entropy left (under 2%) is collapsed, even if it creeps up."""
STUCK_STRETCH: Final = 0.4
"""Share of the run that stands still with its entropy spent, when all-wrong groups are not
known; half of it with entropy under a twentieth."""
STUCK_LEVEL: Final = 0.6
"""Share of the full score below which such a stand leaves much unsolved."""

_SOURCE: Final = (
    "healthy demo runs to .85 accuracy keep 12 to 21% of their entropy; arXiv 2505.22617 for entropy as what is "
    "spent "
    "on reward"
)
_NEEDS: Final = "entropy (TRL logs it from 0.19 on), at least 8 rows"


def judge_entropy(case: Case) -> list[Verdict]:
    """Judge both directions of entropy."""
    series = case.series("entropy")
    if series is None:
        return [needs("entropy-collapse", _NEEDS), needs("entropy-explosion", _NEEDS)]
    return [_collapse(case, series), _explosion(case, series)]


def _collapse(case: Case, series: Series) -> Verdict:
    ratio, low, high = series.ratio()
    since = series.last_stretch(np.asarray(series.smooth < TENTH * series.early.value))
    if since is None or not high < 1.6 * TENTH:
        return clear(
            "entropy-collapse",
            f"entropy keeps {ratio:.0%} of its early level (95% interval {low:.0%} to {high:.0%})",
            f"a fall below {TENTH:.0%} of the early level",
        )
    progress = case.progress
    diversity = _unsolved_diversity(case)
    stuck = _stuck(case, series, since)
    level, confidence = _collapse_level(progress, diversity, stuck, ratio)
    parts = [
        f"entropy went from {series.early.value:.3g} to {series.late.value:.3g} nats a token, {ratio:.1%} of its "
        f"early level (95% interval {low:.1%} to {high:.1%})",
        progress.words if progress else "nothing in the log says whether the run learned",
        *([diversity[1]] if diversity else []),
        *([stuck] if stuck else []),
    ]
    if level == "information" and progress and progress.excuses:
        parts.append("entropy was spent on learning, so this is no collapse")
    return Finding(
        name="entropy-collapse",
        level=level,
        since_step=series.step(since),
        evidence="; ".join(parts),
        measures=[
            *early_and_late(series, "entropy"),
            *([measure(progress.label, progress.change)] if progress else []),
        ],
        confidence=confidence,
        refuted_by="held-out accuracy that still rises, or distinct answers among unsolved prompts that hold their "
        "level",
        action=_collapse_action(level),
        source=_SOURCE,
        metrics=["entropy", progress.metric if progress else "reward"],
        proofs=_collapse_proofs(case) if level != "information" else [],
    )


def _collapse_level(
    progress: Progress | None, diversity: tuple[bool, str] | None, stuck: str, ratio: float
) -> tuple[Level, Confidence]:
    excused = progress is not None and progress.excuses and not stuck
    if diversity is not None and not diversity[0] and not stuck:
        excused = True
    trend = _trend_that_counts(progress, stuck)
    narrowed = diversity is not None and diversity[0]
    if trend == "unknown" and narrowed and progress is not None and progress.late.value < STUCK_LEVEL:
        return "warning", "medium"  # noise hides the trend, but unsolved prompts are no longer explored
    return levelled(trend, excused, severe=ratio < 0.02)


def _trend_that_counts(progress: Progress | None, stuck: str) -> Trend | None:
    """Return the trend; a trifling rise, or standing still since the collapse, counts as none."""
    if progress is None:
        return "flat" if stuck else None
    trifle = progress.trend == "rising" and not progress.gains
    return "flat" if trifle or (stuck and progress.trend != "falling") else progress.trend


def _collapse_action(level: Level) -> str:
    if level == "information":
        return "nothing to do; go on watching held-out accuracy"
    return (
        "read 20 completions of this run (`rlvr inspect --run RUN`), then change one thing: DAPO's wider upper clip "
        "range with several updates a batch (`rlvr variant RUN`), from a checkpoint before the stretch"
    )


def _unsolved_diversity(case: Case) -> tuple[bool, str] | None:
    """Return whether distinct answers among unsolved prompts fell, and the words for it."""
    found = case.completions
    if found is None or not found.knows_right:
        return None
    share = found.group_right_share
    steps, values = found.by_step(np.where(share < 0.5, found.distinct_answers, np.nan))
    if values.size < 8:
        return None
    series = Series(steps, values, case.widen, "steps")
    ratio, low, high = series.ratio()
    words = (
        f"distinct answers among unsolved groups went from {series.early.value:.2f} to {series.late.value:.2f} of "
        f"the "
        f"group ({ratio:.0%}, 95% interval {low:.0%} to {high:.0%})"
    )
    return high < 0.9 and ratio < 0.7, words


def _stuck(case: Case, entropy: Series, since: int) -> str:
    """Return why a run whose entropy is spent stands still with prompts unsolved; empty when it does not.

    Unsolved prompts show in groups that are all wrong; without them, in a stand for much of the run at a low level.
    """
    witness, spent = case.training_witness, (len(entropy) - since) / len(entropy)
    if witness is None or spent < 0.2:
        return ""
    rest = _rest(witness[0], entropy.steps[since])
    if rest is None or rest.late.value > 0.7 or rest.change.value > 0.15:
        return ""
    held_out = case.series("held_out")
    checked = _rest(held_out, entropy.steps[since]) if held_out else None
    bounds = case.all_wrong_bounds
    unsolved = bounds is not None and bounds[0] >= STUCK_SHARE
    found = [part for part in (rest, checked) if part is not None]
    needed = STUCK_STRETCH if entropy.ratio()[0] > 0.05 else 0.5 * STUCK_STRETCH
    stands = any(map(_stands, found)) if unsolved else all(map(_stands, found))
    hopeless = bounds is not None and bounds[0] >= HOPELESS_SHARE and entropy.ratio()[0] < 0.02
    stands = stands or (hopeless and rest.late.value < STUCK_LEVEL)
    if not stands or not (unsolved or (spent >= needed and rest.late.value < STUCK_LEVEL)):
        return ""
    left = f" with at least {bounds[0]:.0%} of groups all wrong" if unsolved and bounds else ""
    return (
        f"since step {entropy.step(since)} {witness[2]} stands at {rest.late.value:.2f} "
        f"({rest.change.value:+.2f}){left}"
    )


def _rest(series: Series, step: float) -> Series | None:
    """Return the rows from a step on, when there are enough of them."""
    rest = series.after(int(np.searchsorted(series.steps, step)))
    return rest if len(rest) >= 8 and len(rest) >= 0.2 * len(series) else None


def _stands(rest: Series) -> bool:
    return rest.change.value < 0.08 and (rest.change.value < 0.03 or rest.change.z < 2.5)


def _collapse_proofs(case: Case) -> list[Proof]:
    found = case.completions
    if found is None:
        return []
    late = found.steps >= np.quantile(found.steps, 0.9)
    return proofs(case, np.asarray(late & ~found.right), found.steps)


def _explosion(case: Case, series: Series) -> Verdict:
    low_at = int(np.argmin(series.smooth[: max(1, len(series) - series.edge)]))
    lowest = series.window(max(0, low_at - series.edge // 2), low_at + series.edge // 2 + 1)
    base, start = (series.early, 0) if series.early.value <= lowest.value else (lowest, low_at)
    rise = series.late.minus(base)
    ratio = series.late.value / max(base.value, 1e-9)
    since = series.last_stretch(np.asarray(series.smooth > DOUBLE * base.value))
    if since is None or ratio < DOUBLE or series.late.value < EXPLOSION_NATS or rise.z < 4:
        return clear(
            "entropy-explosion",
            f"entropy ends at {series.late.value:.3g} nats a token, {ratio:.1f} times its lowest level",
            f"a rise to {DOUBLE:.0f} times that level and above {EXPLOSION_NATS} nats",
        )
    progress = _progress_after(case, series.step(start))
    beyond = series.late.value > DOUBLE * series.early.value
    level, confidence = levelled(
        progress.trend if progress else None, bool(progress and progress.trend == "rising")
    )
    if progress and progress.trend == "flat" and not beyond:
        level, confidence = "information", "medium"
    parts = [
        f"entropy went from {base.value:.3g} (around step {series.step(start)}) to {series.late.value:.3g} nats a "
        f"token, "
        f"{ratio:.1f} times as much",
        f"since then {progress.words}" if progress else "nothing in the log says whether the run learned",
    ]
    return Finding(
        name="entropy-explosion",
        level=level,
        since_step=series.step(since),
        evidence="; ".join(parts),
        measures=[
            measure("entropy, lowest stretch (nats a token)", base),
            *early_and_late(series, "entropy"),
        ],
        confidence=confidence,
        refuted_by="reward and held-out accuracy that rise together with entropy",
        action="lower the learning rate (a tenth) and the temperature to 1, and restart from a checkpoint before the "
        "stretch; look for an entropy bonus or a clip range that is too wide above",
        source="this run's own lowest level; arXiv 2503.14476, figure 2, for entropies under a wider clip range",
        metrics=["entropy", progress.metric if progress else "reward"],
    )


def _progress_after(case: Case, step: int) -> Progress | None:
    """Return the run's progress from a step on."""
    witness = case.training_witness
    if witness is None:
        return None
    rest = witness[0].after(int(np.searchsorted(witness[0].steps, step)))
    return progress_of(rest, witness[1], witness[2]) if len(rest) >= 8 else case.training_progress
