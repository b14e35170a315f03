"""What every symptom looks at: the run's series, whether it learns, and where its rewards end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

import numpy as np

from rlvr.records.watch import Clear, Confidence, Finding, Level, Measure, NotJudged, Proof, SymptomName
from rlvr.watch.completions import UNKNOWN, Completions
from rlvr.watch.facts import Facts
from rlvr.watch.history import Floats, History
from rlvr.watch.metrics import UNITS, is_correctness
from rlvr.watch.statistics import Estimate, Mask, Series

Verdict = Finding | NotJudged | Clear
Trend = Literal["rising", "flat", "falling", "unknown"]

FEWEST_ROWS: Final = 8
"""Rows from which a run is judged."""
RISE: Final = 0.03
"""Smallest change of a share (of the full score) that counts as learning or its loss."""
WORTH: Final = 0.08
"""Smallest rise of a share that pays for a loss of entropy, or explains growing lengths."""
NEAR_CEILING: Final = 0.85
"""Share of the full score from which there is little left to learn."""


@dataclass(frozen=True)
class Progress:
    """Whether the run learns, by the best witness that the log has.

    Attributes:
        trend: Rising, flat, falling, or unknown when noise hides it.
        metric: The witness: ``held_out``, ``accuracy``, a reward component, or ``reward``.
        label: The witness in words.
        early: Its first rows, as a share of the full score.
        late: Its last rows.
        change: Late minus early.
        best: The best window.
        after_peak: Late minus the best window.
    """

    trend: Trend
    metric: str
    label: str
    early: Estimate
    late: Estimate
    change: Estimate
    best: Estimate
    after_peak: Estimate

    @property
    def saturated(self) -> bool:
        """Whether little is left to learn."""
        return self.late.value >= NEAR_CEILING

    @property
    def excuses(self) -> bool:
        """Whether what was lost (entropy, length) bought something worth having."""
        return self.gains or (self.saturated and self.trend != "falling")

    @property
    def gains(self) -> bool:
        """Whether it rises by more than a trifle."""
        return self.trend == "rising" and (self.change.value >= WORTH or self.late.value > 0.75)

    @property
    def words(self) -> str:
        """The change in words, with its interval."""
        return (
            f"{self.label} went from {self.early.value:.2f} to {self.late.value:.2f} "
            f"({self.change.value:+.2f}, 95% interval {self.change.low:+.2f} to {self.change.high:+.2f})"
        )


class Case:
    """One run under judgement.

    Args:
        history: Its logged numbers.
        completions: Its completions, where there are any.
        facts: What else is known.
        widen: Factor on every standard error, see :mod:`rlvr.watch.live`.
    """

    def __init__(
        self, history: History, completions: Completions | None, facts: Facts, widen: float = 1.0
    ) -> None:
        self.widen = widen
        self.history = history
        self.completions = completions if completions is not None and len(completions) else None
        self.facts = facts
        self._series: dict[str, Series | None] = {}

    def series(self, metric: str, rows: int = FEWEST_ROWS) -> Series | None:
        """Return one metric's series, or None with fewer than ``rows`` finite values."""
        if metric not in self._series:
            steps, values = self.history.pairs(metric)
            self._series[metric] = Series(steps, values, self.widen) if values.size else None
        found = self._series[metric]
        return found if found is not None and len(found) >= rows else None

    def component(self, name: str) -> Series | None:
        """Return a reward component's series of means."""
        values = self.history.components[name].mean
        keep = np.isfinite(values)
        return (
            Series(self.history.steps[keep], values[keep], self.widen) if keep.sum() >= FEWEST_ROWS else None
        )

    @cached_property
    def correctness(self) -> str | None:
        """Name of the reward component that pays correctness."""
        named = [name for name in self.history.components if is_correctness(name)]
        return named[0] if named else None

    @cached_property
    def weights(self) -> dict[str, float]:
        """Weights of the reward components: known, or solved from the log (the reward is their weighted sum)."""
        if self.facts.reward_weights:
            return dict(self.facts.reward_weights)
        reward = self.history.columns.get("reward")
        names = list(self.history.components)
        if reward is None or not names:
            return {}
        table = np.stack([self.history.components[name].mean for name in names], axis=1)
        keep = np.isfinite(reward) & np.isfinite(table).all(axis=1)
        if keep.sum() <= len(names) + 2:
            return {}
        found, _, rank, _ = np.linalg.lstsq(table[keep], reward[keep], rcond=None)
        exact = np.allclose(table[keep] @ found, reward[keep], atol=2e-3)
        found = np.where(self._never_paid(names), 1.0, found)  # its weight does not show; 1 is TRL's default
        # Rewards that rise and fall together share their weight in more than one way.
        unique = rank + int(np.sum(self._never_paid(names))) == len(names)
        return {name: float(w) for name, w in zip(names, found, strict=True)} if exact and unique else {}

    def _never_paid(self, names: Sequence[str]) -> Mask:
        """Return which reward components are zero in every row that has all of them."""
        table = np.stack([self.history.components[name].mean for name in names], axis=1)
        whole = table[np.isfinite(table).all(axis=1)]
        return np.asarray(np.abs(whole).max(axis=0, initial=0.0) < 1e-9)

    @cached_property
    def shown_weights(self) -> dict[str, float]:
        """The weights that are stated, or that the log shows; it shows none of a reward that was never paid."""
        if self.facts.reward_weights or not self.weights:
            return dict(self.facts.reward_weights)
        never = self._never_paid(list(self.weights))
        return {name: w for (name, w), zero in zip(self.weights.items(), never, strict=True) if not zero}

    @cached_property
    def ceiling(self) -> float:
        """The full reward, as far as the log tells."""
        reward = self.history.columns.get("reward")
        seen = float(np.nanmax(reward)) if reward is not None and np.isfinite(reward).any() else 1.0
        if self.weights:
            parts = [
                weight * max(1.0, float(np.nanmax(self.history.components[name].mean)))
                for name, weight in self.weights.items()
                if name in self.history.components and weight > 0
            ]
            return max(sum(parts), seen)
        highest = self.history.columns.get("reward_max")
        if highest is not None and np.isfinite(highest).any():
            return max(float(np.nanmax(highest)), seen, 1e-9)
        return max(1.0, seen)

    @cached_property
    def ceiling_known(self) -> bool:
        """Whether the full reward is known, rather than the largest that was seen."""
        reward = self.history.columns.get("reward")
        return bool(self.weights) or (reward is not None and float(np.nanmax(reward)) <= 1.0)

    @cached_property
    def floor(self) -> float:
        """The smallest reward, as far as the log tells; 0 unless rewards go below it."""
        lowest = [self.history.columns.get("reward_min"), self.history.columns.get("reward")]
        seen = [float(np.nanmin(v)) for v in lowest if v is not None and np.isfinite(v).any()]
        return min([0.0, *seen])

    def scaled_reward(self) -> Series | None:
        """Return the reward as a share of its range."""
        reward = self.series("reward")
        if reward is None:
            return None
        return Series(
            reward.steps, (reward.values - self.floor) / max(self.ceiling - self.floor, 1e-9), self.widen
        )

    @cached_property
    def progress(self) -> Progress | None:
        """Whether the run learns; None when nothing in the log can tell."""
        return self.held_out_progress or self.training_progress

    @cached_property
    def held_out_progress(self) -> Progress | None:
        """The same by the held-out check alone."""
        series = self.series("held_out", rows=3)
        return progress_of(series, "held_out", "held-out accuracy") if series else None

    @cached_property
    def training_progress(self) -> Progress | None:
        """The same by what was trained on: accuracy, the correctness component, else the reward."""
        witness = self.training_witness
        return progress_of(*witness) if witness else None

    @cached_property
    def correctness_series(self) -> tuple[Series, str, str] | None:
        """Training accuracy by a column, by the component that pays correctness, or by completions."""
        accuracy = self.series("accuracy")
        if accuracy:
            return accuracy, "accuracy", "training accuracy"
        if self.correctness and (series := self.component(self.correctness)):
            top = max(1.0, float(series.values.max()))
            return (
                Series(series.steps, series.values / top),
                f"rewards/{self.correctness}",
                f"{self.correctness}",
            )
        found = self.completions
        if found is not None and found.knows_right and found.right_by == "outcome":
            steps, values = found.by_step(found.group_right_share)
            if values.size >= FEWEST_ROWS:
                return Series(steps, values, self.widen, "steps"), "accuracy", "share of right completions"
        return None

    @cached_property
    def training_witness(self) -> tuple[Series, str, str] | None:
        """The best training series of success, as a share, with its metric and its words."""
        if self.correctness_series:
            return self.correctness_series
        reward = self.scaled_reward()
        return (reward, "reward", f"reward (share of {self.ceiling:.3g})") if reward else None

    @cached_property
    def all_wrong_bounds(self) -> tuple[float, float] | None:
        """Least and largest share of all-wrong groups in the last rows.

        The mean reward m and the zero-variance share z bound it when nothing else is logged: all-right groups are
        at most m, and at least m - (1 - z), since a mixed group earns less than the full reward.
        """
        direct = self.series("all_wrong_share", rows=3)
        if direct:
            return max(0.0, direct.late.low), min(1.0, direct.late.high)
        zero, witness = self.series("zero_variance_share", rows=3), self.training_witness
        if zero is None or witness is None:
            return None
        z, m = zero.late.value, min(1.0, max(0.0, witness[0].late.value))
        return max(0.0, z - m), min(z, 1.0 - m)


def progress_of(series: Series, metric: str, label: str) -> Progress:
    """Judge whether a series of shares rises."""
    best, _ = series.peak
    after_peak = series.late.minus(best)
    few = len(series) < FEWEST_ROWS
    trend = _few_trend(series) if few else _trend(series)
    return Progress(trend, metric, label, series.early, series.late, series.change, best, after_peak)


def _trend(series: Series) -> Trend:
    change = series.change
    if change.value >= RISE and change.z >= 2.5:
        return "rising"
    if change.value <= -RISE and change.z <= -2.5:
        return "falling"
    if change.high < 0.10 and change.low > -0.10:
        return "flat"
    return "flat" if change.value < RISE and change.high < 0.15 else "unknown"


def _few_trend(series: Series) -> Trend:
    """Judge three to seven values: a change must exceed what one evaluation of some hundred prompts scatters."""
    half = max(1, len(series) // 2)
    change = float(series.values[-half:].mean() - series.values[:half].mean())
    if abs(change) < 0.04:
        return "flat"
    if change > 0:
        return "rising" if change > 0.08 else "unknown"
    return "falling" if change < -0.2 else "unknown"


def measure(what: str, estimate: Estimate) -> Measure:
    """Return an estimate as a measure."""
    finite = math.isfinite(estimate.error)
    return Measure(
        what=what,
        value=_rounded(estimate.value),
        low=_rounded(estimate.low) if finite else None,
        high=_rounded(estimate.high) if finite else None,
    )


def early_and_late(series: Series, metric: str, label: str = "") -> list[Measure]:
    """Return the first and last rows of a series as measures."""
    unit = f" ({UNITS[metric]})" if UNITS.get(metric) else ""
    name = label or metric
    return [
        measure(f"{name}, first {series.edge} {series.unit}{unit}", series.early),
        measure(f"{name}, last {series.edge} {series.unit}{unit}", series.late),
    ]


def proofs(case: Case, wanted: Mask, score: Floats, count: int = 3) -> list[Proof]:
    """Return the completions of highest ``score`` among those wanted.

    Args:
        case: The run.
        wanted: Mask by completion.
        score: Score by completion; the highest are shown.
        count: How many.
    """
    found = case.completions
    if found is None:
        return []
    index = np.flatnonzero(wanted)
    index = index[np.argsort(-score[index], kind="stable")][:count]
    return [
        Proof(
            step=int(found.steps[i]),
            prompt=found.prompts[int(found.prompt_ids[i])],
            completion=found.texts[int(i)],
            note=_note(found, int(i)),
        )
        for i in index
    ]


def _note(found: Completions, i: int) -> str:
    words = {1: "right", 0: "wrong", -1: "ill-formed", UNKNOWN: "correctness unknown"}
    reward = f"reward {found.rewards[i]:.3g}, " if np.isfinite(found.rewards[i]) else ""
    cut = ", cut off" if found.truncated[i] == 1 else ""
    return f"{reward}{words[int(found.outcomes[i])]}, {found.lengths[i]:.0f} {found.length_unit}{cut}"


def _rounded(value: float) -> float | None:
    return float(f"{value:.5g}") if math.isfinite(value) else None


def needs(name: SymptomName, what: str, smallest_effect: str = "") -> NotJudged:
    """Return that a symptom could not be judged."""
    return NotJudged(name=name, needs=what, smallest_effect=smallest_effect)


def clear(name: SymptomName, why: str, smallest_effect: str = "") -> Clear:
    """Return that a symptom was judged and not found."""
    return Clear(name=name, why=why, smallest_effect=smallest_effect)


def levelled(trend: Trend | None, excused: bool, *, severe: bool = False) -> tuple[Level, Confidence]:
    """Return level and confidence of a loss, given whether the run learned meanwhile.

    Args:
        trend: The run's trend, None when nothing tells.
        excused: Whether the run learned, or has little left to learn.
        severe: Whether the loss is extreme, which makes it critical when nothing was gained.
    """
    if excused:
        return "information", "high"
    if trend is None or trend == "unknown":
        return "information", "low"
    return ("critical", "high") if trend == "falling" or severe else ("warning", "medium")
