"""The reward: hacking, length that is paid, crash."""

from __future__ import annotations

from typing import Final

import numpy as np

from rlvr.records.watch import LEVELS, Finding, Level, Measure, Proof
from rlvr.watch.completions import Completions, Ints
from rlvr.watch.history import Floats
from rlvr.watch.metrics import is_correctness
from rlvr.watch.statistics import Estimate, Series, correlation_interval
from rlvr.watch.symptoms.case import (
    RISE,
    Case,
    Progress,
    Verdict,
    clear,
    early_and_late,
    measure,
    needs,
    progress_of,
    proofs,
)

PAID: Final = 0.5
"""Correlation of reward and length within groups at equal correctness from which length is paid."""
AFFECTED: Final = 0.05
"""Share of completions whose reward must differ at equal correctness for the correlation to matter."""
AT_CEILING: Final = 0.9
CRASH: Final = 0.4
"""Share of what was reached, lost from the best stretch, that is a crash."""


def judge_reward(case: Case) -> list[Verdict]:
    """Judge the three symptoms of the reward."""
    return [_hacking(case), _pays_length(case), _crash(case)]


# --- reward hacking -------------------------------------------------------------------------------------------


def _hacking(case: Case) -> Verdict:
    reward = case.scaled_reward()
    if reward is None:
        return needs("reward-hacking", "reward, at least 8 rows")
    by_component = _stalled_component(case)
    checks = _checks(case)
    if not checks:
        return by_component or needs(
            "reward-hacking",
            "an independent check on held-out prompts (held_out/accuracy); what is logged is the reward's own code",
        )
    found = [finding for check in checks if (finding := _diverges(case, reward, check))]
    return (found[0] if found else None) or by_component or _not_hacked(reward, checks[0])


def _checks(case: Case) -> list[Progress]:
    """Return progress by checks that can part from the reward: held-out first, then training correctness."""
    checks = []
    if case.held_out_progress and case.facts.held_out_independent is not False:
        checks.append(case.held_out_progress)
    correctness = case.correctness_series
    if correctness is not None and (correctness[1] == "accuracy" or len(case.history.components) > 1):
        checks.append(progress_of(*correctness))
    return checks


def _diverges(case: Case, reward: Series, check: Progress) -> Finding | None:
    watched = _watched(case, check)
    if watched is None:
        return None
    gained = reward.change
    falls = check.trend == "falling"
    full = _full_but_wrong(case, reward, check)
    if not full and (not _gains(gained) or (check.saturated and not falls)):
        return None
    few = len(watched) < 8
    together = _shared(reward, watched).change
    still = not few and _gains(together) and _stands(check, together, few=few)
    apart = (
        case.ceiling_known
        and reward.late.value - check.late.value > (0.4 if few else 0.25)
        and _stands(check, gained, few=few)
    )
    ahead = not few and _runs_ahead(together, check)
    if not (full or (falls and _gains(gained)) or still or apart or ahead):
        return None
    since = _departs(reward)
    nothing_right = full and check.late.value < 0.25
    level: Level = "critical" if falls or nothing_right or gained.value > 0.25 else "warning"
    return Finding(
        name="reward-hacking",
        level=level,
        since_step=since,
        evidence=f"the reward went from {reward.early.value:.2f} to {reward.late.value:.2f} of its range "
        f"({gained.value:+.2f}, 95% interval {gained.low:+.2f} to {gained.high:+.2f}) while {check.words}",
        measures=[
            measure("change of the reward (share of its range)", gained),
            measure(f"change of {check.label} (share)", check.change),
        ],
        confidence="low" if few else "high",
        refuted_by=f"{check.label} on more prompts that rises with the reward",
        action="stop and read 20 completions with high reward (`rlvr inspect --run RUN`); run `rlvr audit` on what "
        "they "
        "have in common; mend the reward before anything else changes",
        source="reward and independent check part: arXiv 2210.10760; this run's own noise",
        suspects_reward=True,
        metrics=["reward", check.metric],
        proofs=_paid_but_wrong(case),
    )


def _watched(case: Case, check: Progress) -> Series | None:
    if check.metric == "held_out":
        return case.series("held_out", rows=3)
    return case.correctness_series[0] if case.correctness_series else None


def _full_but_wrong(case: Case, reward: Series, check: Progress) -> bool:
    """Whether the reward is paid nearly in full while the check says that most is wrong."""
    if reward.late.low <= AT_CEILING or check.trend == "rising":
        return False
    return (
        check.late.value < 0.5 if check.trend == "falling" else case.ceiling_known and check.late.high < 0.5
    )


def _gains(change: Estimate) -> bool:
    return change.value > 0.08 and change.z > 3.5


def _shared(reward: Series, watched: Series) -> Series:
    """Return the reward from the check's first value on: what was gained before it, the check cannot show."""
    rest = reward.after(int(np.searchsorted(reward.steps, watched.steps[0] - 1)))
    return rest if len(rest) >= 8 else reward


def _stands(check: Progress, gained: Estimate, *, few: bool) -> bool:
    """Whether the check stands still while the reward gained."""
    if check.trend == "rising":
        return False
    return (
        check.change.value < 0.2 * gained.value if few else check.change.high < max(0.5 * gained.value, RISE)
    )


def _runs_ahead(together: Estimate, check: Progress) -> bool:
    """Whether the reward rose several times as much as the check, over the stretch that both cover."""
    if together.value < 0.25 or check.saturated:
        return False
    return check.change.high < 0.4 * together.low and check.change.value < 0.25 * together.value


def _departs(reward: Series) -> int:
    """Return the first step at which the reward has clearly left its early level for good."""
    above = reward.smooth > reward.early.value + max(0.25 * reward.change.value, 2 * reward.early.error)
    since = reward.last_stretch(np.asarray(above))
    return reward.step(since if since is not None else 0)


def _stalled_component(case: Case) -> Finding | None:
    """A component that pays form rises to its ceiling while the one that pays correctness does not move."""
    right = case.component(case.correctness) if case.correctness else None
    if right is None or case.correctness is None:
        return None
    for name in case.history.components:
        series = case.component(name)
        if name == case.correctness or is_correctness(name) or series is None or len(series) < 20:
            continue
        top = max(1.0, float(series.values.max()))
        rose = series.change.value > 0.2 * top and series.change.z > 4
        if not rose or series.late.value <= AT_CEILING * top:
            continue
        meanwhile = right.after(_takes_off(series))
        if len(meanwhile) < 12:
            continue
        correct = progress_of(meanwhile, f"rewards/{case.correctness}", case.correctness)
        if correct.change.value < 0.04 and correct.change.high < 0.12 and correct.late.value <= 0.7:
            return _stalled(case, name, series, correct)
    return None


def _takes_off(series: Series) -> int:
    """Return the row at which a series leaves its early level for good."""
    low = series.early.value + 0.15 * series.change.value
    below = np.flatnonzero(series.smooth <= low)
    return int(below[-1]) if below.size else 0


def _stalled(case: Case, name: str, series: Series, correct: Progress) -> Finding:
    since = series.last_stretch(np.asarray(series.smooth > AT_CEILING * max(1.0, float(series.values.max()))))
    return Finding(
        name="reward-hacking",
        level="critical" if correct.trend == "falling" else "warning",
        since_step=series.step(since if since is not None else 0),
        evidence=f"{name} went from {series.early.value:.2f} to its ceiling ({series.late.value:.2f}) while "
        f"{correct.words}",
        measures=[*early_and_late(series, "reward", name), measure(correct.label, correct.change)],
        confidence="medium",
        refuted_by=f"{correct.label} that begins to rise now that {name} is learnt",
        action=f"read 20 completions (`rlvr inspect --run RUN`); give {name} less weight than correctness, or pay it "
        f"only "
        "on answers that could be read",
        source="a component at its ceiling while correctness stalls; this run's own noise",
        suspects_reward=True,
        metrics=["reward", f"rewards/{name}", correct.metric],
        proofs=_paid_but_wrong(case),
    )


def _not_hacked(reward: Series, check: Progress) -> Verdict:
    return clear(
        "reward-hacking",
        f"the reward changed by {reward.change.value:+.2f} of its range; {check.words}",
        f"the independent check staying {max(0.0, check.change.high - check.change.value):.2f} behind",
    )


def _paid_but_wrong(case: Case) -> list[Proof]:
    found = case.completions
    if found is None:
        return []
    late = found.steps >= np.quantile(found.steps, 0.8)
    wanted = late & ~found.right if found.knows_right and found.right_by == "outcome" else late
    return proofs(case, np.asarray(wanted), np.nan_to_num(found.rewards, nan=-np.inf))


# --- reward pays length ---------------------------------------------------------------------------------------


def _pays_length(case: Case) -> Verdict:
    found = case.completions
    if found is None:
        return _length_by_log(case) or needs("reward-pays-length", "completions with rewards and outcome")
    if not found.knows_right:
        return _length_by_log(case) or needs(
            "reward-pays-length", "outcome, or a reward that says correctness, by completion"
        )
    r, slope, pairs, silent = _within_correlation(found)
    low, high = correlation_interval(r, pairs)
    if silent:
        return _length_by_log(case) or clear(
            "reward-pays-length", "within groups, equal correctness earned equal reward throughout"
        )
    strong = (low > 0.25 if r > 0 else high < -0.25) and abs(r) > 0.35
    if not strong or pairs < 20:
        smallest = f"a correlation beyond {max(abs(low), abs(high), 0.35):.2f}"
        return clear("reward-pays-length", f"within groups at equal correctness reward and length correlate by "
        f"{r:+.2f} "
                     f"(95% interval {low:+.2f} to {high:+.2f}, {pairs:.0f} pairs)", smallest)  # fmt: skip
    return _length_paid(case, found, (r, low, high, slope, pairs))


def _within_correlation(found: Completions) -> tuple[float, float, float, bool]:
    """Correlate reward with length within groups at equal correctness.

    Components of few levels that pay form (a tag is there or not) are held equal too, since a cut-off answer lacks
    its tag for a reason.

    Returns:
        Correlation, reward per length unit, independent pairs, and whether hardly any stratum has reward variance.
    """
    keys = [found.groups, found.outcomes.astype(np.int64)]
    for name, values in found.components.items():
        levels, index = np.unique(np.nan_to_num(values, nan=-1e9), return_inverse=True)
        known = is_correctness(name) is not None or found.right_by != "outcome"
        if levels.size <= 4 and known and "len" not in name.lower():
            keys.append(index)
    strata = np.unique(np.stack(keys), axis=1, return_inverse=True)[1].ravel()
    finite = np.isfinite(found.rewards) & np.isfinite(found.lengths) & (found.outcomes >= 0)
    return _pooled(found.rewards[finite], found.lengths[finite], strata[finite])


def _pooled(rewards: Floats, lengths: Floats, strata: Ints) -> tuple[float, float, float, bool]:
    if rewards.size == 0:
        return 0.0, 0.0, 0.0, True
    count = np.maximum(np.bincount(strata), 1)
    x = lengths - (np.bincount(strata, weights=lengths) / count)[strata]
    y = rewards - (np.bincount(strata, weights=rewards) / count)[strata]
    moves = (np.bincount(strata, weights=np.abs(y)) > 1e-7)[strata] & (
        np.bincount(strata, weights=np.abs(x)) > 0
    )[strata]
    if moves.sum() < max(8, AFFECTED * rewards.size):
        return 0.0, 0.0, 0.0, True
    xx, yy, xy = float(x[moves] @ x[moves]), float(y[moves] @ y[moves]), float(x[moves] @ y[moves])
    pairs = float(moves.sum() - np.unique(strata[moves]).size)
    return (xy / np.sqrt(xx * yy) if xx * yy > 0 else 0.0), (xy / xx if xx > 0 else 0.0), pairs, False


def _length_paid(
    case: Case, found: Completions, numbers: tuple[float, float, float, float, float]
) -> Finding:
    r, low, high, slope, pairs = numbers
    declared = bool(case.facts.pays_length) and r < 0
    strong = abs(r) > PAID
    growth = _length_growth(case)
    follows = growth is not None and (growth[0] > 1.3 if r > 0 else growth[0] < 0.75)
    level: Level = "information" if declared or not strong else "critical" if follows else "warning"
    direction = "longer" if r > 0 else "shorter"
    moved = f"; mean length changed by a factor of {growth[0]:.2f}" if growth else ""
    return Finding(
        name="reward-pays-length",
        level=level,
        since_step=int(found.steps[0]),
        evidence=f"within groups at equal correctness, {direction} completions earn more: correlation {r:+.2f} (95% "
        f"interval {low:+.2f} to {high:+.2f}, {pairs:.0f} pairs), {slope * 100:+.3g} reward per 100 "
        f"{found.length_unit}"
        + moved
        + (f"; {', '.join(case.facts.pays_length)} does so as configured" if declared else ""),
        measures=[measure_r(r, low, high)],
        confidence="high" if pairs > 100 else "medium",
        refuted_by="a partial credit that longer answers deserve: read pairs of equal correctness and different "
        "length",
        action="nothing to do: it was asked for"
        if declared
        else "mend the reward so that equal answers earn the same, "
        "rescore (`rlvr inspect --rescore`), read again, then train; a variant of the loss does not help",
        source="GRPO divides by the group's spread, so even .001 a token is a full-size push in an all-wrong group",
        suspects_reward=not declared,
        metrics=["length", "reward"],
        proofs=_length_pair(case, found, r),
    )


def measure_r(r: float, low: float, high: float) -> Measure:
    """Return a correlation as a measure."""
    return Measure(what="correlation of reward and length within groups at equal correctness", value=round(r, 4),
                   low=round(low, 4), high=round(high, 4))  # fmt: skip


def _length_growth(case: Case) -> tuple[float, float, float] | None:
    length = case.series("length")
    return length.ratio() if length else None


def _length_pair(case: Case, found: Completions, r: float) -> list[Proof]:
    """Return the best and the worst paid completion of the group with the widest spread at equal correctness."""
    spread = found.group_spread.copy()
    mixed = found.group_right_share
    spread[~np.isfinite(spread) | ((mixed > 0) & (mixed < 1))] = -1
    if not spread.size or spread.max() <= 0:
        return []
    members = found.groups == int(spread.argmax())
    best = proofs(case, np.asarray(members), found.rewards, 1)
    worst = proofs(case, np.asarray(members), -found.rewards, 1)
    return best + worst


def _length_by_log(case: Case) -> Finding | None:
    """Without outcomes: reward and length that rise in step while correctness hardly moves."""
    length, reward = case.series("length"), case.scaled_reward()
    witness = held_out_witness(case) or case.correctness_series
    if length is None or reward is None or witness is None or not length.ratio()[1] > 1.3:
        return None
    start = length.steps[_takes_off(length)]
    part = [s.after(int(np.searchsorted(s.steps, start))) for s in (length, reward, witness[0])]
    if min(len(p) for p in part[:2]) < 12 or len(part[2]) < 4:
        return None
    check = progress_of(part[2], witness[1], witness[2])
    gained = part[1].change
    if (
        not _gains(gained)
        or check.change.value > 0.4 * gained.value
        or check.change.high > 0.6 * gained.value
    ):
        return None
    shared, at_length, at_reward = np.intersect1d(part[0].steps, part[1].steps, return_indices=True)
    r = (
        float(np.corrcoef(part[0].values[at_length], part[1].values[at_reward])[0, 1])
        if shared.size > 8
        else 0.0
    )
    if not r > 0.6:
        return None
    return Finding(
        name="reward-pays-length",
        level="warning",
        since_step=int(start),
        evidence=f"since step {start:.0f} reward and length rise together (correlation over steps {r:+.2f}; length "
        f"by a "
        f"factor of {length.ratio()[0]:.2f}, reward by {gained.value:+.2f} of its range) while {check.words}",
        measures=early_and_late(length, "length"),
        confidence="low",
        refuted_by="completions: within groups at equal correctness, no correlation of reward and length",
        action="keep completions with their outcome and look again; read 20 of the longest "
        "(`rlvr inspect --run RUN`)",
        source="this run's own noise",
        suspects_reward=True,
        metrics=["length", "reward", check.metric],
    )


# --- crash ----------------------------------------------------------------------------------------------------


def _crash(case: Case) -> Verdict:
    reward = _reward_witness(case)
    witnesses = [w for w in (reward, case.correctness_series, held_out_witness(case)) if w]
    if not witnesses:
        return needs("reward-crash", "reward, at least 8 rows")
    if reward is not None and reward[0].change.value > 0.05 and reward[0].change.z > 3:
        witnesses = [reward]  # accuracy that falls while the reward rises is hacking, not a crash
    found = [finding for witness in witnesses if (finding := _crashed(*witness))]
    if found:
        return max(found, key=lambda f: LEVELS.index(f.level))
    series, _, label = witnesses[0]
    best, _ = series.peak
    smallest = f"a loss of {max(CRASH * best.value, 5 * series.late.error):.2f}"
    return clear(
        "reward-crash",
        f"{label} ends at {series.late.value:.2f}, its best stretch is {best.value:.2f}",
        smallest,
    )


def held_out_witness(case: Case) -> tuple[Series, str, str] | None:
    """Return held-out accuracy, where the log has enough of it."""
    series = case.series("held_out")
    return (series, "held_out", "held-out accuracy") if series else None


def _reward_witness(case: Case) -> tuple[Series, str, str] | None:
    series = case.scaled_reward()
    return (series, "reward", f"reward (share of {case.ceiling:.3g})") if series else None


def _crashed(series: Series, metric: str, label: str) -> Finding | None:
    best, at = series.peak
    floor = min(0.0, float(series.values.min()))
    reached = best.value - floor
    rest = series.after(at)
    if (at_once := _gone_at_once(series, floor)) is not None:
        return _crash_finding(
            series, metric, label, at_once + floor, 0, 1, gone=1 - (series.late.value - floor) / at_once
        )
    if reached < 0.05 or len(rest) < 3:
        return None
    lowest = float(rest.smooth.min())
    late = series.window(len(series) - max(series.edge, 6), len(series)) if len(series) >= 16 else series.late
    lost, deepest = best.minus(late), best.value - lowest
    if lost.value >= CRASH * reached and lost.z > (5 if len(series) >= 50 else 6.5) and lost.value > 0.05:
        since = series.last_stretch(np.asarray(series.smooth < best.value - 0.5 * lost.value))
        return _crash_finding(series, metric, label, best.value, at, since, gone=lost.value / reached)
    if lost.value >= 0.25 * reached and lost.z > 6 and lost.value > 0.1:
        since = series.last_stretch(np.asarray(series.smooth < best.value - 0.5 * lost.value))
        return _crash_finding(
            series, metric, label, best.value, at, since, gone=lost.value / reached, level="warning"
        )
    if deepest >= 0.5 * reached and deepest > 5 * series.noise and len(rest) >= 8:
        return _crash_finding(
            series, metric, label, best.value, at, None, gone=deepest / reached, level="information"
        )
    return None


def _gone_at_once(series: Series, floor: float) -> float | None:
    """Return the level of the first two rows when nearly all of it is gone from the next rows on."""
    first = float(series.values[:2].max()) - floor
    rest = series.after(2)
    left = max(float(rest.values[: max(3, len(rest) // 2)].mean()) - floor, series.late.high - floor)
    return first if first > 0.15 and left < 0.35 * first and first - left > 4 * rest.noise else None


def _crash_finding(
    series: Series, metric: str, label: str, best: float, at: int, since: int | None, *, gone: float,
    level: Level = "critical",
) -> Finding:  # fmt: skip
    recovered = level == "information"
    tail = "and came back" if recovered else f"to {series.late.value:.2f}"
    return Finding(
        name="reward-crash",
        level=level,
        since_step=series.step(since if since is not None else at),
        until_step=series.step(len(series) - series.edge) if recovered else None,
        evidence=f"{label} fell from {best:.2f} around step {series.step(at)} {tail}: {gone:.0%} of what was reached "
        f"was "
        f"lost (noise of single rows: {series.noise:.2f})",
        measures=early_and_late(series, metric, label),
        confidence="high",
        refuted_by="harder prompts from that step on (a curriculum), or a reward that changed",
        action="go back to the checkpoint before the fall; lower the learning rate (a third), warm it up, keep "
        "max_grad_norm" if not recovered else "look at the learning rate and the gradient norm at that step",
        source="the run's own best stretch; five standard errors",
        metrics=[metric, "grad_norm"],
    )  # fmt: skip
