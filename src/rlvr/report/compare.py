"""The page that compares two runs: which is better on the same held-out prompts, and what differed; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlvr.evaluation import Change, change
from rlvr.report import samples as sampling
from rlvr.report.curves import PANELS, points
from rlvr.report.figures import Interval, Series, interval_chart, line_chart, short
from rlvr.report.report import plain_value, red_flags, render
from rlvr.report.verdict import compared_differently, p_text
from rlvr.report.verdict import points as signed_points

if TYPE_CHECKING:
    from rlvr.records.run import Manifest
    from rlvr.report.inputs import ReportInputs


@dataclass(frozen=True)
class Comparison:
    """What two runs' held-out measurements say of each other.

    Attributes:
        word: ``better``, ``worse``, ``no difference shown``, ``not comparable`` or ``not measured``, of the second.
        sentence: The same with its numbers.
        change: Second less first, paired by prompt; None when nothing was compared.
    """

    word: str
    sentence: str
    change: Change | None = None

    @property
    def statement(self) -> str:
        """Return the sentence without names and word in front of it, for where they stand already."""
        return self.sentence.partition(": ")[2].removeprefix(f"{self.word}. ")

    @property
    def tone(self) -> str:
        """Return how the page colours it."""
        return {"better": "good", "worse": "bad", "not comparable": "warning"}.get(self.word, "neutral")


def compare(first: ReportInputs, second: ReportInputs) -> Comparison:
    """Return how the second run stands to the first, on the held-out prompts that both were measured on."""
    if first.after is None or second.after is None:
        without = " and ".join(one.name for one in (first, second) if one.after is None)
        return Comparison("not measured", f"Not measured: {without} has no held-out accuracy.")
    moved = compared_differently(first.after, second.after)
    if moved:
        differ = "differs" if len(moved) == 1 else "differ"
        return Comparison("not comparable", f"Not comparable: {' and '.join(moved)} {differ}.")
    found = change(first.after.results, second.after.results)
    if not found.prompts:
        return Comparison("not comparable", "Not comparable: the two runs share no held-out prompt.")
    word = "better" if found.low > 0 else "worse" if found.high < 0 else "no difference shown"
    sentence = (
        f"{second.name} against {first.name}: {word}. {first.after.accuracy:.1%} and {second.after.accuracy:.1%} "
        f"({signed_points(found.difference)} points, 95% interval {signed_points(found.low)} to "
        f"{signed_points(found.high)}, {p_text(found.p_value)}, {found.prompts} prompts)."
    )
    return Comparison(word, sentence, found)


def write_comparison(first: ReportInputs, second: ReportInputs) -> str:
    """Return the page that compares two runs as HTML."""
    both = (first, second)
    return render(
        "compare.html",
        first=first,
        second=second,
        comparison=compare(first, second),
        held_out=interval_chart(_intervals(both), title="Held-out accuracy after training"),
        curves=_curves(first, second),
        settings=differences(first.manifest, second.manifest),
        red=[(one.name, red_flags(one)) for one in both if red_flags(one)],
        pairs=_pairs(first, second),
        missing=[(one.name, line) for one in both for line in one.missing],
        symptoms=[(one.name, one.findings.alarms if one.findings else None) for one in both],
    )


def differences(first: Manifest | None, second: Manifest | None) -> list[tuple[str, str, str, str]]:
    """Return (field, first's value, second's value, second's reason) wherever two runs were set differently."""
    if first is None or second is None:
        return []
    one, other = _plain_settings(first), _plain_settings(second)
    names = dict.fromkeys([*other, *one])
    return [
        (name, one.get(name, ("–", ""))[0], other.get(name, ("–", ""))[0], other.get(name, ("", ""))[1])
        for name in names
        if one.get(name, ("–",))[0] != other.get(name, ("–",))[0]
    ]


def _plain_settings(manifest: Manifest) -> dict[str, tuple[str, str]]:
    found = {
        "model": (manifest.model, ""),
        "method": (plain_value(manifest.method), ""),
        "variant": (manifest.variant or "–", ""),
        "rewards": (plain_value(manifest.rewards), ""),
        "sampling": (plain_value(manifest.sampling), ""),
        "seed": (str(manifest.seed), ""),
    }
    for name, setting in manifest.settings.items():
        known: Mapping[str, Any] = setting if isinstance(setting, Mapping) else {"value": setting}
        found[name] = (plain_value(known.get("value")), str(known.get("why", "")))
    return found


def _intervals(both: tuple[ReportInputs, ReportInputs]) -> list[Interval]:
    return [
        Interval(one.name, one.after.accuracy, one.after.low, one.after.high, tone)
        for one, tone in zip(both, (2, 1), strict=True)
        if one.after is not None
    ]


def _curves(first: ReportInputs, second: ReportInputs) -> list[dict[str, Any]]:
    found = []
    for panel in PANELS:
        wanted = panel.lines[0]
        series = [
            Series(one.name, points(one.log, *wanted.columns), tone)
            for one, tone in ((first, 2), (second, 1))
        ]
        series = [one for one in series if one.points]
        if not series:
            continue
        title = panel.title if len(panel.lines) == 1 else f"{panel.title}: {wanted.name}"
        found.append(
            {
                "title": title,
                "unit": panel.unit,
                "svg": line_chart(series, title=title, percent=panel.percent),
                "legend": [(one.name, one.tone, _last(one, panel.percent)) for one in series],
            }
        )
    return found


def _last(one: Series, percent: bool) -> str:
    value = one.points[-1][1]
    return f"{value:.0%}" if percent else short(value)


def _pairs(first: ReportInputs, second: ReportInputs) -> dict[str, Any] | None:
    if first.after is None or second.after is None:
        return None
    found = sampling.pairs(first.after.results, second.after.results)
    moved = [pair for pair in found if pair.kind in ("broken", "mended")]
    visible = first.samples and second.samples
    return {
        "counts": sampling.counts(found),
        "shown": sampling.shown(moved, 60) if visible else [],
        "rollouts": second.after.rollouts,
    }
