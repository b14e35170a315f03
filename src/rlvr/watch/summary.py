"""The findings for a terminal: curves in block characters, symptoms, what to do."""

from __future__ import annotations

from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rlvr.records.watch import Finding, Findings
from rlvr.watch.figures import curves, marks, spark
from rlvr.watch.history import Floats, History

STYLES: Final = {"critical": "bold red", "warning": "yellow", "information": "cyan"}
CURVES: Final = 8
WIDTH: Final = 40


def render_summary(findings: Findings, history: History) -> Group:
    """Return what the terminal shows.

    Args:
        findings: What was found.
        history: The run's numbers, for the curves.
    """
    parts: list[RenderableType] = [_head(findings), _curves(findings, history)]
    parts += [_finding(found) for found in findings.symptoms] or [Text("no symptom", style="green")]
    parts += [Text(f"{a.question} {a.answer}", style="dim") for a in findings.answers]
    parts.append(_names("judged, not found", [c.name for c in findings.clear]))
    parts += [Text(f"not judged: {n.name}: needs {n.needs}", style="dim") for n in findings.not_judged]
    parts += [Text(f"note: {remark}", style="dim") for remark in findings.remarks]
    return Group(*parts)


def _head(findings: Findings) -> Text:
    texts = f", {findings.completions:,} completions" if findings.completions else ""
    return Text(
        f"{findings.source} ({findings.format}): {findings.rows:,} rows, steps {findings.first_step:,} to "
        f"{findings.last_step:,}{texts}",
        style="bold",
    )


def _curves(findings: Findings, history: History) -> Table:
    table = Table.grid(padding=(0, 2))
    for name, steps, values in curves(history)[:CURVES]:
        table.add_row(name, f"{values[0]:.3g}", _marked(findings, name, steps, values), f"{values[-1]:.3g}")
    return table


def _marked(findings: Findings, name: str, steps: Floats, values: Floats) -> Text:
    """Return the curve, with the stretch of the loudest symptom in its colour."""
    line = Text(spark(values, WIDTH))
    found = marks(findings, name)
    if not found or steps[-1] <= steps[0]:
        return line
    loud = found[0]
    span = float(steps[-1] - steps[0])
    start = int(((loud.since_step or steps[0]) - steps[0]) / span * len(line))
    end = len(line) if loud.until_step is None else int((loud.until_step - steps[0]) / span * len(line)) + 1
    line.stylize(STYLES[loud.level], max(0, start), end)
    return line


def _finding(found: Finding) -> Group:
    since = f" since step {found.since_step:,}" if found.since_step is not None else ""
    until = f" to {found.until_step:,}" if found.until_step is not None else ""
    head = Text.assemble((found.level, STYLES[found.level]), f" {found.name}{since}{until}")
    lines = [head, Text(f"  {found.evidence}"), Text(f"  do: {found.action}", style="bold")]
    if found.refuted_by:
        lines.append(Text(f"  refuted by: {found.refuted_by}", style="dim"))
    for proof in found.proofs[:1]:
        lines.append(
            Text(
                f"  step {proof.step} ({proof.note}): {' '.join(proof.completion.split())[:160]}", style="dim"
            )
        )
    return Group(*lines)


def _names(title: str, names: list[str]) -> Text:
    return Text(f"{title}: {', '.join(names) or 'nothing'}", style="dim")
