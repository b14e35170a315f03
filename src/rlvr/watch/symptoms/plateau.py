"""Plateau: a run that never rose, or rose and stands still with much left to learn."""

from __future__ import annotations

from typing import Final

from rlvr.records.watch import Finding, Level
from rlvr.watch.statistics import Series
from rlvr.watch.symptoms.case import RISE, Case, Progress, Verdict, clear, early_and_late, needs, progress_of
from rlvr.watch.symptoms.reward import held_out_witness

LEFT_TO_LEARN: Final = 0.6
"""A run that stands still below this share of the full score has much left to learn."""
LONG: Final = 0.6
"""Share of the run that must stand still for a warning."""

Witness = tuple[Series, str, str]


def judge_plateau(case: Case) -> list[Verdict]:
    """Judge whether the run stands still."""
    witnesses = [w for w in (case.training_witness, held_out_witness(case)) if w]
    if not witnesses:
        return [needs("plateau", "reward, at least 8 rows")]
    return [_plateau(case, max(witnesses, key=lambda w: len(w[0])), witnesses)]


def _plateau(case: Case, witness: Witness, witnesses: list[Witness]) -> Verdict:
    series, _, label = witness
    smallest = f"a rise of {max(RISE, 1.96 * series.change.error):.2f} over the run"
    all_progress = [progress_of(*w) for w in witnesses]
    progress = all_progress[witnesses.index(witness)]
    if any(p.saturated for p in all_progress):
        return clear("plateau", f"{label} stands at {series.late.value:.2f}: little is left", smallest)
    if len(series) < 12 or series.change.error * 1.96 > 0.12:
        return needs("plateau", "more rows, or less noise", smallest)
    if _never_rose(series, progress) and not any(p.trend == "rising" for p in all_progress):
        return _flat(case, witness, 0, since_start=True)
    start = _flat_from(series)
    stands = start is not None and all(_stands_from(w[0], series.steps[start]) for w in witnesses)
    if start is not None and stands and progress.trend == "rising":
        return _flat(case, witness, start, since_start=False)
    return clear("plateau", progress.words, smallest)


def _never_rose(series: Series, progress: Progress) -> bool:
    best, _ = series.peak
    most = 0.13 if len(series) >= 60 else 0.1
    little = series.change.value < 0.04 and series.change.high < most and progress.late.value < 0.7
    return little and best.value - series.early.value < 0.1 + 2 * series.early.error


def _flat_from(series: Series) -> int | None:
    """Return the row from which the last 40% or more stand still; None when they move."""
    for start in (int(0.25 * len(series)), int(0.4 * len(series)), int(0.6 * len(series))):
        change = series.after(start).change
        if (
            len(series) - start >= 16
            and abs(change.value) < 0.02
            and change.low > -0.06
            and change.high < 0.06
        ):
            return start
    return None


def _stands_from(series: Series, step: float) -> bool:
    rest = series.after(int((series.steps < step).sum()))
    return len(rest) < 4 or rest.change.value < 0.04 or rest.change.z < 2


def _flat(case: Case, witness: Witness, start: int, *, since_start: bool) -> Finding:
    series, metric, label = witness
    rest = series.after(start)
    long = len(rest) >= 40 and len(rest) >= LONG * len(series) and series.late.value < LEFT_TO_LEARN
    level: Level = "warning" if since_start or long else "information"
    change = rest.change
    return Finding(
        name="plateau",
        level=level,
        since_step=series.step(start),
        evidence=f"{label} stands at {series.late.value:.2f} since step {series.step(start)}: {change.value:+.3f} "
        f"over {len(rest)} rows (95% interval {change.low:+.3f} to {change.high:+.3f})"
        + ("; it never rose" if since_start else ""),
        measures=early_and_late(series, metric, label),
        confidence="medium",
        refuted_by="a rise on more held-out prompts, or after the learning rate's warm-up",
        action=_action(case, since_start=since_start),
        source="a change under .03 of the full score, by this run's own noise",
        metrics=[metric, "zero_variance_share", "learning_rate"],
    )


def _action(case: Case, *, since_start: bool) -> str:
    zero = case.series("zero_variance_share")
    if zero is not None and zero.late.value > 0.5:
        return "too few groups carry signal: see no-signal"
    rate = case.series("learning_rate")
    top = f" ({rate.values.max():.1e} at most)" if rate is not None else ""
    if since_start:
        return f"look at the learning rate{top} and the precision (bf16 weights at 5e-7 train nothing); then groups"
    return (
        f"look at the learning rate{top}, whether its schedule has ended, and the share of groups with signal; read "
        "20 of the wrong completions"
    )
