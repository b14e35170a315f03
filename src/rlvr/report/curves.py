"""Which curves the page draws from a log, under which names; pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlvr.report.figures import Band, Point, Series, line_chart, short

if TYPE_CHECKING:
    from markupsafe import Markup

    from rlvr.records.watch import Findings

Row = Mapping[str, Any]
LENGTH_BINS = 40
"""Stretches of steps over which lengths of right and wrong completions are averaged."""


@dataclass(frozen=True)
class Wanted:
    """One line of a chart: its name, the log's names for it in order of preference, and its colour."""

    name: str
    columns: tuple[str, ...]
    tone: int


@dataclass(frozen=True)
class Panel:
    """One chart.

    Attributes:
        key: For anchors and tests.
        title: Heading.
        unit: Unit, shown beside the heading.
        says: What to look for, in one line.
        lines: See :class:`Wanted`.
        percent: Shares on a scale from 0 to 100%.
        absent: What to say where the log has none of its columns; empty: leave the chart out.
        metrics: Names of watching's metrics whose symptoms are marked here.
    """

    key: str
    title: str
    unit: str
    says: str
    lines: tuple[Wanted, ...]
    percent: bool = False
    absent: str = ""
    metrics: tuple[str, ...] = ()


@dataclass(frozen=True)
class Curve:
    """A chart as the page shows it; ``svg`` is empty where the log has nothing to draw."""

    key: str
    title: str
    unit: str
    says: str
    svg: Markup | str
    legend: tuple[tuple[str, int, str], ...]
    symptoms: tuple[str, ...] = ()
    absent: str = ""


PANELS: tuple[Panel, ...] = (
    Panel(
        "reward",
        "Reward",
        "weighted sum",
        "What was optimised; alone it is no evidence of skill.",
        (Wanted("total", ("reward",), 1),),
        metrics=("reward",),
        absent="The log has no column reward.",
    ),
    Panel(
        "right",
        "Right answers",
        "share",
        "Training prompts as the reward judges them, held-out prompts where they were measured.",
        (
            Wanted("training", ("rlvr/right_share", "accuracy"), 1),
            Wanted("held out", ("held_out/accuracy", "held_out"), 2),
        ),
        percent=True,
        metrics=("accuracy", "held_out"),
    ),
    Panel(
        "groups",
        "Groups that teach",
        "share",
        "A group whose completions are all paid alike moves nothing.",
        (
            Wanted("informative", ("rlvr/informative_groups",), 1),
            Wanted("all right", ("rlvr/all_right_groups", "all_right_share"), 3),
            Wanted("all wrong", ("rlvr/all_wrong_groups", "all_wrong_share"), 2),
        ),
        percent=True,
        metrics=("zero_variance_share", "all_wrong_share", "all_right_share"),
        absent="Shares of informative groups are not in this log.",
    ),
    Panel(
        "length",
        "Length",
        "tokens a completion",
        "Growth among wrong answers alone is a symptom; growth with skill is not.",
        (Wanted("mean", ("completions/mean_length", "completion_length", "length"), 1),),
        metrics=("length", "wrong_length", "right_length"),
        absent="The log has no column completions/mean_length.",
    ),
    Panel(
        "truncated",
        "Cut off by the cap",
        "share",
        "Over 10% the cap decides what is learned.",
        (Wanted("truncated", ("completions/clipped_ratio", "truncated_share"), 1),),
        percent=True,
        metrics=("truncated_share",),
    ),
    Panel(
        "entropy",
        "Entropy",
        "nats a token",
        "Falls as the policy sharpens; a collapse needs more than this curve.",
        (Wanted("entropy", ("entropy",), 1),),
        metrics=("entropy",),
        absent="The log has no column entropy (TRL before 0.18).",
    ),
    Panel(
        "kl",
        "KL to the reference",
        "nats a token",
        "How far the policy has moved.",
        (Wanted("KL", ("kl",), 1),),
        metrics=("kl",),
        absent="Not logged; with beta 0 there is no reference model to compare with.",
    ),
    Panel(
        "gradient",
        "Gradient norm",
        "before clipping",
        "Spikes and NaN come before a crash.",
        (Wanted("norm", ("grad_norm",), 1),),
        metrics=("grad_norm",),
    ),
    Panel(
        "engine",
        "Engine against trainer",
        "difference of log-probabilities",
        "About .02 is healthy; more means that the two disagree about the policy.",
        (Wanted("mean difference", ("sampling/sampling_logp_difference/mean", "logp_difference"), 1),),
        metrics=("logp_difference", "ratio_max"),
    ),
)


def curves(
    log: Sequence[Row], rollouts: Sequence[Row], findings: Findings | None, *, hide_absent: bool = False
) -> list[Curve]:
    """Return every chart that a log allows, in the order of the page."""
    found = [_curve(panel, log, rollouts, findings) for panel in PANELS]
    return [one for one in found if one.svg or (one.absent and not hide_absent)]


def points(log: Sequence[Row], *columns: str) -> list[Point]:
    """Return (step, value) of the first of these columns that the log has."""
    for column in columns:
        found = [
            (float(row["step"]), float(row[column]))
            for row in log
            if is_number(row.get(column)) and is_number(row.get("step"))
        ]
        if found:
            return found
    return []


def is_number(value: Any) -> bool:
    """Return whether a value is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def component_names(log: Sequence[Row]) -> list[str]:
    """Return the reward components that a log names, in order of appearance."""
    names: dict[str, None] = {}
    for row in log:
        for column in row:
            if column.startswith("rewards/") and column.endswith("/mean"):
                names.setdefault(column[len("rewards/") : -len("/mean")], None)
    return list(names)


def _curve(panel: Panel, log: Sequence[Row], rollouts: Sequence[Row], findings: Findings | None) -> Curve:
    series = [Series(one.name, points(log, *one.columns), one.tone) for one in panel.lines]
    series += _extra(panel.key, log, rollouts)
    series = [_dotted(one) for one in series if one.points]
    bands = _bands(panel, findings)
    svg = line_chart(series, title=panel.title, percent=panel.percent, bands=bands)
    legend = tuple((one.name, one.tone, _last(one, panel.percent)) for one in series)
    labels = tuple(band.label for band in bands)
    return Curve(panel.key, panel.title, panel.unit, panel.says, svg, legend, labels, panel.absent)


def _extra(key: str, log: Sequence[Row], rollouts: Sequence[Row]) -> list[Series]:
    if key == "reward":
        names = component_names(log)[:5]
        if len(names) < 2:
            return []
        return [
            Series(name, points(log, f"rewards/{name}/mean"), tone)
            for tone, name in enumerate(names, start=2)
        ]
    if key == "groups" and not points(log, "rlvr/informative_groups"):
        plain = points(log, "frac_reward_zero_std", "zero_variance_share")
        return [Series("informative", [(x, 1 - y) for x, y in plain], 1)] if plain else []
    if key == "length":
        return [
            Series("right", _lengths(rollouts, right=True), 3),
            Series("wrong", _lengths(rollouts, right=False), 2),
        ]
    return []


def _lengths(rollouts: Sequence[Row], *, right: bool) -> list[Point]:
    """Return mean lengths of right or of wrong completions over stretches of steps."""
    known = [
        (int(row["step"]), float(row["tokens"]))
        for row in rollouts
        if is_number(row.get("tokens"))
        and is_number(row.get("step"))
        and row.get("outcome") in (("right",) if right else ("wrong", "ill-formed"))
    ]
    if not known:
        return []
    last = max(step for step, _ in known)
    width = max(1, -(-(last + 1) // LENGTH_BINS))
    bins: dict[int, list[float]] = {}
    for step, tokens in known:
        bins.setdefault(step // width, []).append(tokens)
    return [
        (number * width + (width - 1) / 2, sum(values) / len(values))
        for number, values in sorted(bins.items())
    ]


def _dotted(one: Series) -> Series:
    few = len(one.points) <= 12
    return Series(one.name, one.points, one.tone, dots=few)


def _bands(panel: Panel, findings: Findings | None) -> list[Band]:
    if findings is None:
        return []
    return [
        Band(
            float(one.since_step or findings.first_step),
            one.until_step,
            f"{one.name} ({one.level})",
            one.level,
        )
        for one in findings.symptoms
        if one.level != "information" and _shows(one.metrics) & set(panel.metrics)
    ]


def _shows(metrics: Sequence[str]) -> set[str]:
    """Return the metrics whose charts carry a finding's mark; reward is company unless it comes first."""
    first = {"reward"} if metrics and metrics[0].startswith("reward") else set()
    return first | {name for name in metrics if not name.startswith("reward")}


def _last(one: Series, percent: bool) -> str:
    value = one.points[-1][1]
    return f"{value:.0%}" if percent else short(value)
