"""A run's logged numbers in memory: one array a metric, one row a step, whatever the log called them.

:class:`HistoryBuilder` takes rows in the order they were logged and settles what logs are full of: evaluation rows
that share a step with a training row, steps repeated after a resume, several runs in one file, values that are
not finite. Memory stays bounded: past :data:`ROW_CAP` rows, neighbours are merged in pairs.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from rlvr.errors import DataError
from rlvr.watch.metrics import RUN_NAMES, Match, is_ignored, match, step_rank

Floats = NDArray[np.float64]

ROW_CAP: Final = 40_000
"""Rows kept; a longer log is merged in pairs until it fits."""
INTERLEAVED_SHARE: Final = 0.2
"""When steps go back more often than at this share of rows, the rows come from several runs at once."""
RUN_CAP: Final = 64


@dataclass(frozen=True)
class Component:
    """One reward function as the log shows it.

    Attributes:
        mean: Mean score by row.
        std: Spread by row; all NaN when not logged.
        held_out: Mean score on held-out prompts by row; all NaN when not logged.
    """

    mean: Floats
    std: Floats
    held_out: Floats


@dataclass(frozen=True)
class History:
    """The logged numbers of one run.

    Attributes:
        steps: Step of each row, rising.
        columns: Metric of this project to values by row, NaN where a row lacks it.
        components: Reward function's name to its scores.
        not_finite: Metric to the steps at which the log itself says NaN or infinity.
        names: Metric to the name the log has for it.
        unmapped: Names in the log that nothing here reads.
        remarks: What a reader should know about how the log was read.
    """

    steps: Floats
    columns: Mapping[str, Floats] = field(default_factory=dict)
    components: Mapping[str, Component] = field(default_factory=dict)
    not_finite: Mapping[str, list[int]] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    unmapped: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    def __len__(self) -> int:
        return int(self.steps.size)

    def has(self, metric: str, rows: int = 1) -> bool:
        """Whether at least ``rows`` finite values of a metric exist."""
        values = self.columns.get(metric)
        return values is not None and int(np.isfinite(values).sum()) >= rows

    def pairs(self, metric: str) -> tuple[Floats, Floats]:
        """Return steps and finite values of one metric (both empty when the log lacks it)."""
        values = self.columns.get(metric)
        if values is None:
            return np.empty(0), np.empty(0)
        keep = np.isfinite(values)
        return self.steps[keep], values[keep]

    def upto(self, rows: int) -> History:
        """Return the first ``rows`` rows, as a live check sees them."""
        last = self.steps[rows - 1] if rows else -math.inf
        return History(
            steps=self.steps[:rows],
            columns={name: values[:rows] for name, values in self.columns.items()},
            components={
                name: Component(c.mean[:rows], c.std[:rows], c.held_out[:rows])
                for name, c in self.components.items()
            },
            not_finite={name: [s for s in steps if s <= last] for name, steps in self.not_finite.items()},
            names=self.names,
            unmapped=self.unmapped,
            remarks=self.remarks,
        )


def history_from_rows(rows: Iterable[Mapping[str, Any]], *, run: str | None = None) -> History:
    """Build a history from rows as logs have them.

    Args:
        rows: One mapping a logged row: raw names to numbers, or to strings that hold numbers.
        run: Which run to keep when a column names several; the last one otherwise.

    Raises:
        DataError: ``watch.mixed-runs`` when rows of several runs cannot be told apart.
    """
    builder = HistoryBuilder(run=run)
    for row in rows:
        builder.add(row)
    return builder.build()


class HistoryBuilder:
    """Collects rows; :meth:`build` settles steps and names."""

    def __init__(self, *, run: str | None = None) -> None:
        self._wanted = run
        self._tables: dict[str, _Table] = {}
        self._crowded = False

    def add(self, row: Mapping[str, Any]) -> None:
        """Add one logged row."""
        run = _run_of(row)
        table = self._tables.get(run)
        if table is None:
            if len(self._tables) >= RUN_CAP:
                self._crowded = True
                return
            table = self._tables[run] = _Table()
        table.add(row)

    @property
    def runs(self) -> list[str]:
        """Names of the runs that a column tells apart, in order of appearance."""
        return [name for name in self._tables if name]

    def build(self) -> History:
        """Return the history of the chosen run.

        Raises:
            DataError: ``watch.no-such-run`` or ``watch.mixed-runs``.
        """
        name = self._choose()
        table = self._tables.get(name) or _Table()
        remarks = []
        if len(self.runs) > 1:
            others = ", ".join(sorted(set(self.runs) - {name})[:5])
            remarks.append(f"the file holds {len(self.runs)} runs; judged: {name} (others: {others})")
        return table.build(tuple(remarks))

    def _choose(self) -> str:
        if self._wanted is None:
            judged = [name for name, table in self._tables.items() if table.metric_rows]
            return judged[-1] if judged else ""
        if self._wanted not in self._tables:
            raise DataError(
                "watch.no-such-run",
                f"no run {self._wanted!r} in the file",
                expected=f"one of: {', '.join(self.runs) or 'no column names runs'}",
                fix="leave --run-id away, or name one of these",
            )
        return self._wanted


def number(value: Any) -> float | None:
    """Return a logged value as a number; None when it is none.

    Strings are read too (``"0.25"``, ``"1e-06"``, ``"nan"``, ``"12%"``), since notebooks and transformers 5 print
    values as strings.
    """
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, str):
        return _number_in(value)
    if hasattr(value, "item"):
        return number(value.item())
    return None


def _number_in(text: str) -> float | None:
    text = text.strip().strip("'\"")
    scale = 0.01 if text.endswith("%") else 1.0
    try:
        return float(text.rstrip("%").replace(",", "") if "," in text or scale != 1 else text) * scale
    except ValueError:
        head = text.split("/")[0]
        return float(head) if head != text and head.strip().isdigit() else None


def _run_of(row: Mapping[str, Any]) -> str:
    for name, value in row.items():
        if isinstance(value, str) and name.lower() in RUN_NAMES:
            return value
    return ""


class _Table:
    """Rows of one run."""

    def __init__(self) -> None:
        self.steps = array("d")
        self.columns: dict[str, array[float]] = {}
        self.matches: dict[str, Match] = {}
        self.not_finite: dict[str, list[int]] = {}
        self.unmapped: dict[str, None] = {}
        self.counted = False
        self.metric_rows = 0
        self.stride = 1
        self._row_of_step: dict[float, int] = {}
        self._merged = 1
        self._counts: dict[str, int] = {}

    def add(self, row: Mapping[str, Any]) -> None:
        values = self._values(row)
        if not values:
            return
        step = self._step(row)
        self.metric_rows += 1
        if self.stride > 1 and self._merged < self.stride:
            self._merge(step, values)
            return
        index = self._row_to_join(step, values)
        if index is None:
            index = self._new_row(step)
        for name, value in values.items():
            self._set(name, index, value, step)
        if len(self.steps) > 2 * ROW_CAP:
            self._halve()

    def _values(self, row: Mapping[str, Any]) -> dict[str, float]:
        found: dict[str, float] = {}
        for raw, value in row.items():
            matched = self.matches.get(raw) or match(raw)
            if matched is None:
                if not is_ignored(raw) and len(self.unmapped) < 500 and number(value) is not None:
                    self.unmapped.setdefault(raw)
                continue
            read = number(value)
            if read is not None:
                self.matches[raw] = matched
                found[raw] = read
        return found

    def _step(self, row: Mapping[str, Any]) -> float:
        best: tuple[int, float] | None = None
        for raw, value in row.items():
            rank = step_rank(raw)
            if rank is None or (best is not None and best[0] <= rank):
                continue
            read = number(value)
            if read is not None and math.isfinite(read):
                best = (rank, read)
        if best is not None:
            return best[1]
        self.counted = True
        return self.steps[-1] + 1 if self.steps else 1.0

    def _row_to_join(self, step: float, values: Mapping[str, float]) -> int | None:
        """Return the recent row of the same step whose metrics are others: an evaluation row joins it."""
        index = self._row_of_step.get(step)
        if index is None or len(self.steps) - index > 64:
            return None
        taken = any(name in self.columns and not math.isnan(self.columns[name][index]) for name in values)
        return None if taken else index

    def _merge(self, step: float, values: Mapping[str, float]) -> None:
        """Add a row's values to the last row, as a running mean."""
        index = len(self.steps) - 1
        for name, value in values.items():
            column = self.columns.get(name)
            before = column[index] if column is not None else math.nan
            count = self._counts[name] = self._counts.get(
                name, 0 if math.isnan(before) else 1
            ) + math.isfinite(value)
            mean = value if math.isnan(before) else before + (value - before) / max(count, 1)
            self._set(name, index, mean, step)
        self.steps[index] = max(self.steps[index], step)
        self._merged += 1

    def _new_row(self, step: float) -> int:
        self._merged, self._counts = 1, {}
        self.steps.append(step)
        for column in self.columns.values():
            column.append(math.nan)
        index = len(self.steps) - 1
        self._row_of_step[step] = index
        return index

    def _set(self, name: str, index: int, value: float, step: float) -> None:
        column = self.columns.get(name)
        if column is None:
            column = self.columns[name] = array("d", [math.nan]) * len(self.steps)
        if math.isfinite(value):
            column[index] = value
            return
        steps = self.not_finite.setdefault(name, [])
        if len(steps) < 10_000:
            steps.append(int(step))

    def _halve(self) -> None:
        """Merge neighbouring rows in pairs, by their mean."""
        count = len(self.steps) // 2
        self.steps = array("d", np.asarray(self.steps)[1 : 2 * count : 2].tobytes())
        with np.errstate(invalid="ignore"):
            for name, column in self.columns.items():
                self.columns[name] = array("d", _pair_means(np.asarray(column)[: 2 * count]).tobytes())
        self._row_of_step = {}
        self._counts = {}
        self._merged = self.stride = 2 * self.stride

    def build(self, remarks: tuple[str, ...]) -> History:
        steps = np.asarray(self.steps, dtype=float)
        raw = {name: np.asarray(column, dtype=float) for name, column in self.columns.items()}
        keep, notes = _settle_steps(steps)
        notes = [*remarks, *notes, *self._notes()]
        steps, raw = steps[keep], {name: values[keep] for name, values in raw.items()}
        columns, names, more = _by_metric(raw, self.matches)
        return History(
            steps=steps,
            columns=columns,
            components=_components(raw, self.matches, steps.size),
            not_finite=_not_finite(self.not_finite, self.matches),
            names=names,
            unmapped=tuple(self.unmapped),
            remarks=tuple(notes + more),
        )

    def _notes(self) -> list[str]:
        notes = []
        if self.counted and self.steps:
            notes.append("rows carry no step; they were counted 1, 2, 3, ... in the order they stand")
        if self.stride > 1:
            notes.append(f"{self.metric_rows:,} rows were merged in groups of {self.stride} to bound memory")
        return notes


def _pair_means(values: Floats) -> Floats:
    first, second = values[0::2], values[1::2]
    both = np.where(np.isnan(first), second, np.where(np.isnan(second), first, (first + second) / 2))
    return np.ascontiguousarray(both, dtype=float)


def _settle_steps(steps: Floats) -> tuple[NDArray[np.intp], list[str]]:
    """Return indices of the rows to keep, so that steps rise, and what was done to get there."""
    if steps.size < 2:
        return np.arange(steps.size), []
    back = np.flatnonzero(np.diff(steps) <= 0) + 1
    if back.size == 0:
        return np.arange(steps.size), []
    if back.size > max(2.0, INTERLEAVED_SHARE * steps.size):
        return _refuse_or_sort(steps, int(back.size))
    return _replay(steps, back)


def _refuse_or_sort(steps: Floats, back: int) -> tuple[NDArray[np.intp], list[str]]:
    unique, first = np.unique(steps, return_index=True)
    if unique.size == steps.size:
        return first.astype(np.intp), ["rows stood out of order and were sorted by step"]
    raise DataError(
        "watch.mixed-runs",
        f"steps go back {back} times in {steps.size} rows: rows of several runs stand mixed in one file",
        expected="one run a file, or a column named run or run_id",
        fix="split the file by run, or add a run column and choose with --run-id",
    )


def _replay(steps: Floats, back: NDArray[np.intp]) -> tuple[NDArray[np.intp], list[str]]:
    """Walk through the stretches between jumps back: a resume replaces what it repeats, a restart replaces all."""
    kept = np.arange(int(back[0]))
    notes: list[str] = []
    restarts = 1
    for start, end in zip(back, [*back[1:], steps.size], strict=True):
        stretch = np.arange(int(start), int(end))
        begins = steps[start]
        if kept.size and begins <= steps[kept[0]] and stretch.size >= min(8, kept.size):
            restarts += 1
            kept = stretch
            continue
        before = kept[steps[kept] < begins]
        notes.append(f"resumed at step {begins:g}: {kept.size - before.size} repeated rows were replaced")
        kept = np.concatenate([before, stretch])
    if restarts > 1:
        notes.append(f"the file holds {restarts} runs one after another; the last one was judged")
    return kept, notes[-5:]


def _by_metric(
    raw: Mapping[str, Floats], matches: Mapping[str, Match]
) -> tuple[dict[str, Floats], dict[str, str], list[str]]:
    """Choose one raw column a metric: the best-ranked, others only when it is empty."""
    chosen: dict[str, str] = {}
    for name in sorted(raw, key=lambda n: (matches[n].rank, n)):
        metric = matches[name].metric
        if metric.startswith("component_") or not np.isfinite(raw[name]).any():
            continue
        chosen.setdefault(metric, name)
    columns = {metric: raw[name] for metric, name in chosen.items()}
    columns, notes = _derive(columns, chosen)
    held_out = [n for n in raw if matches[n].metric == "held_out" and matches[n].rank >= 100]
    if chosen.get("held_out") in held_out and len(held_out) > 1:
        with np.errstate(all="ignore"):
            columns["held_out"] = _nanmean(np.vstack([raw[n] for n in held_out]))
        notes.append(f"held-out accuracy is the mean of {len(held_out)} columns: {', '.join(held_out[:4])}")
    return columns, chosen, notes


def _nanmean(table: Floats) -> Floats:
    present = np.isfinite(table)
    count = present.sum(axis=0)
    total: Floats = np.where(present, table, 0.0).sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _derive(columns: dict[str, Floats], names: dict[str, str]) -> tuple[dict[str, Floats], list[str]]:
    """Complete what follows from other columns, and bring units together."""
    notes: list[str] = []
    entropy = columns.get("entropy")
    if entropy is not None and np.nanmax(entropy) <= 0 and np.nanmin(entropy) < 0:
        columns["entropy"] = -entropy
        notes.append(f"{names['entropy']} is negative throughout: its sign was turned")
    for share in ("truncated_share", "zero_variance_share", "held_out", "accuracy", "informative_share"):
        values = columns.get(share)
        if values is not None and 1.5 < np.nanmax(values) <= 100:
            columns[share] = values / 100
            notes.append(f"{names[share]} was read as percent")
    if "informative_share" in columns and names.get("zero_variance_share") != "rlvr/zero_variance_groups":
        columns["zero_variance_share"] = 1 - columns["informative_share"]
        names["zero_variance_share"] = names["informative_share"]
    return columns, notes


def _components(raw: Mapping[str, Floats], matches: Mapping[str, Match], rows: int) -> dict[str, Component]:
    empty = np.full(rows, np.nan)
    found: dict[str, dict[str, Floats]] = {}
    for name, values in raw.items():
        matched = matches[name]
        if not matched.metric.startswith("component_"):
            continue
        what = "held_out" if matched.held_out else matched.metric.removeprefix("component_")
        if not (matched.held_out and matched.metric == "component_std"):
            found.setdefault(matched.component, {})[what] = values
    return {
        name: Component(parts["mean"], parts.get("std", empty), parts.get("held_out", empty))
        for name, parts in found.items()
        if "mean" in parts and np.isfinite(parts["mean"]).any()
    }


def _not_finite(raw: Mapping[str, list[int]], matches: Mapping[str, Match]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for name, steps in raw.items():
        metric = matches[name].metric
        key = f"rewards/{matches[name].component}" if metric.startswith("component_") else metric
        found.setdefault(key, []).extend(steps)
    return {name: sorted(set(steps)) for name, steps in found.items()}
