"""``rlvr plan`` for a person: the verdict and what would make it fit, first and last; the figures between."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rlvr.commands.output import console

if TYPE_CHECKING:
    from rlvr.records.plan import PlanRecord, Remedy, Setting

GIB = 1024**3
COLOURS = {"fits": "green", "tight": "yellow", "does-not-fit": "red"}
WIDE = 120
"""Columns of the terminal from which a setting and its reason stand on one line."""
VALUE_WIDTH = 28
LAST_REMEDIES = 3
OPTIONS = {
    "method": "--method",
    "method.optimizer": "--optimizer",
    "hardware.vllm": "--vllm",
    "per_device_train_batch_size": "--batch",
    "gradient_accumulation_steps": "--accumulation",
    "sampling.max_completion_length": "--max-completion-length",
    "beta": "--beta",
}
"""Field of a remedy to the option of ``rlvr plan --model`` that sizes it."""


def print_plan(record: PlanRecord, *, sizing: bool = False) -> None:
    """Print a plan.

    Args:
        record: The plan.
        sizing: Whether it is of a model and a device by name: no file was written, so none is named.
    """
    _print_verdict(record)
    _print_remedies(record, sizing)
    _print_parts(record)
    _print_settings(record)
    _print_remarks(record)
    _print_estimate(record)
    if not sizing:
        _print_launches(record)
    elif record.passed:
        console().print(
            "next: rlvr init FOLDER, set model, method and hardware in rlvr.yaml, then rlvr plan",
            markup=False,
        )
    if record.remedies:
        _print_end(record, sizing)


def _print_verdict(record: PlanRecord) -> None:
    out, memory = console(), record.memory
    colour, words = COLOURS[memory.verdict], memory.verdict.replace("-", " ")
    low, high = (value / GIB for value in memory.band_bytes)
    capacity, margin = memory.capacity_bytes / GIB, memory.margin_bytes / GIB
    out.print(f"[bold {colour}]{words}[/]  {record.model} ({record.method.kind}) on {record.device}")
    out.print(f"{low:.2f} to {high:.2f} GiB of {capacity:.1f} GiB; margin {margin:.1f} GiB")


def _print_remedies(record: PlanRecord, sizing: bool) -> None:
    from rich.markup import escape

    out = console()
    for remedy in record.remedies:
        words, peak, saves = (
            remedy.verdict.replace("-", " "),
            remedy.peak_bytes / GIB,
            remedy.saves_bytes / GIB,
        )
        change = escape(_change(remedy.change, sizing))
        out.print(f"remedy [bold]{remedy.name}[/]: {words} at {peak:.1f} GiB (saves {saves:.1f}); {change}")
        out.print(f"       costs: {escape(remedy.cost)}")


def _change(change: Mapping[str, Any], sizing: bool) -> str:
    """Return the change as options where the plan is of a model by name, else as fields of ``rlvr.yaml``."""
    if sizing and all(name in OPTIONS for name in change):
        return " ".join(f"{OPTIONS[name]} {value}" for name, value in change.items())
    return json.dumps(dict(change))


def _print_end(record: PlanRecord, sizing: bool) -> None:
    """Repeat the verdict and the first remedies, since they have scrolled away."""
    from rich.markup import escape

    memory, out = record.memory, console()
    colour, words = COLOURS[memory.verdict], memory.verdict.replace("-", " ")
    high, capacity = memory.band_bytes[1] / GIB, memory.capacity_bytes / GIB
    out.print(
        f"\n[bold {colour}]{words}[/]: up to {high:.1f} GiB of {capacity:.1f} GiB; {_remedy_words(record)}"
    )
    for remedy in _fitting(record)[:LAST_REMEDIES]:
        out.print(f"  [bold]{remedy.name}[/]: {escape(_change(remedy.change, sizing))}")


def _fitting(record: PlanRecord) -> list[Remedy]:
    return [one for one in record.remedies if one.verdict != "does-not-fit"]


def _remedy_words(record: PlanRecord) -> str:
    count = len(_fitting(record))
    if not count:
        return "no single change makes it fit: take a smaller model or a larger device"
    return f"{count} changes make it fit, the first of them:" if count > 1 else "one change makes it fit:"


def _print_parts(record: PlanRecord) -> None:
    from rich.table import Table

    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
    for title in ("memory", "GiB", "when", ""):
        table.add_column(title, justify="right" if title == "GiB" else "left", no_wrap=bool(title))
    for part in record.memory.parts:
        note = f"{part.note} (assumed)" if part.assumed else part.note
        table.add_row(part.name, f"{part.bytes / GIB:.2f}", part.phase, note)
    console().print("", table)


def _print_settings(record: PlanRecord) -> None:
    from rich.markup import escape
    from rich.padding import Padding
    from rich.table import Table

    out = console()
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
    wide = out.width >= WIDE
    table.add_column("setting", no_wrap=True)
    table.add_column("value", max_width=VALUE_WIDTH, overflow="fold")
    table.add_column("from", no_wrap=True)
    if wide:
        table.add_column("why")
    for name, setting in record.settings.items():
        cells = _cells(name, setting)
        if wide:
            table.add_row(*cells, escape(setting.why))
        else:
            table.add_row(*cells)
    out.print("", table)
    if not wide:
        out.print("", "[dim]why[/]")
        for name, setting in record.settings.items():
            reasons = Table.grid()
            reasons.add_row(Padding(f"[dim]{name}[/] {escape(setting.why)}", (0, 0, 0, 2)))
            out.print(reasons)


def _cells(name: str, setting: Setting) -> tuple[str, str, str]:
    from rich.markup import escape

    colour = "red" if setting.before_base_run else "yellow" if setting.source == "override" else "default"
    source = "before base run" if setting.before_base_run else setting.source
    return f"[{colour}]{name}[/]", escape(json.dumps(setting.value, default=str)), source


def _print_remarks(record: PlanRecord) -> None:
    from rich.markup import escape

    out = console()
    for remark in record.remarks:
        colour = "yellow" if remark.level == "warning" else "dim"
        fix = f" → {remark.fix}" if remark.fix else ""
        out.print(f"[{colour}]{remark.level}[/] {escape(remark.where)}: {escape(remark.found)}{escape(fix)}")


def _print_estimate(record: PlanRecord) -> None:
    rate = record.throughput
    if rate is not None:
        speed = f"{rate.rollout_tokens_per_second:,.0f} rollout tokens/s, bound by {rate.bound}"
        console().print(f"estimate: {speed}; {rate.seconds_per_step:.1f} s a step, {rate.hours:.1f} h in all")


def _print_launches(record: PlanRecord) -> None:
    from rich.markup import escape

    for launch in record.launch:
        console().print(f"[dim]{launch.name}[/] {escape(' && '.join(launch.commands))}")
