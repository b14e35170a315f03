"""Curves of a run as static SVG, and as a line of block characters, with the symptoms' stretches marked."""

from __future__ import annotations

from html import escape
from typing import Final

import numpy as np

from rlvr.records.watch import Finding, Findings
from rlvr.watch.history import Floats, History
from rlvr.watch.metrics import SAYS, UNITS
from rlvr.watch.statistics import moving_average

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 440, 170, 52, 24, 10, 10
POINTS: Final = 400
"""Points drawn a curve; a longer one is averaged."""
BLOCKS: Final = "▁▂▃▄▅▆▇█"
SHOWN: Final = (
    "reward",
    "held_out",
    "accuracy",
    "entropy",
    "length",
    "zero_variance_share",
    "truncated_share",
    "kl",
    "grad_norm",
    "logp_difference",
    "probability_difference",
    "ratio_max",
    "wrong_length",
    "right_length",
)
"""Metrics that have a figure, in this order, where the log has them."""


def curves(history: History) -> list[tuple[str, Floats, Floats]]:
    """Return name, steps and values of every curve worth a figure."""
    found = [(name, *history.pairs(name)) for name in SHOWN if history.has(name, 2)]
    for name, component in history.components.items():
        keep = np.isfinite(component.mean)
        if keep.sum() >= 2:
            found.insert(min(2, len(found)), (f"rewards/{name}", history.steps[keep], component.mean[keep]))
    return found


def marks(findings: Findings, metric: str) -> list[Finding]:
    """Return the findings whose stretch belongs on a metric's curve."""
    return [finding for finding in findings.symptoms if metric in finding.metrics]


def spark(values: Floats, width: int = 32) -> str:
    """Return a curve as block characters."""
    values = thin(np.arange(values.size, dtype=float), values, width)[1]
    low, high = float(values.min()), float(values.max())
    scaled = (values - low) / (high - low) if high > low else np.zeros_like(values)
    return "".join(BLOCKS[min(7, int(v * 8))] for v in scaled)


def thin(steps: Floats, values: Floats, points: int) -> tuple[Floats, Floats]:
    """Average neighbouring points until at most ``points`` remain."""
    if values.size <= points:
        return steps, values
    edges = np.linspace(0, values.size, points + 1).astype(int)
    count = np.diff(edges)
    return np.add.reduceat(steps, edges[:-1]) / count, np.add.reduceat(values, edges[:-1]) / count


def figure(name: str, steps: Floats, values: Floats, found: list[Finding]) -> str:
    """Return one curve as SVG: raw points faint, the moving average strong, symptoms as bands."""
    smooth = moving_average(values, max(3, (values.size // 20) | 1))
    x0, x1 = float(steps[0]), float(max(steps[-1], steps[0] + 1))
    low, high = float(values.min()), float(np.quantile(values, 0.995) if values.size > 50 else values.max())
    low, high = (low, high) if high > low else (low - 0.5, low + 0.5)
    if UNITS.get(name) == "share":
        low, high = min(0.0, low), max(1.0, high)
    scale = _Scale(x0, x1, low, high)
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(_title(name))}">',
        *(_band(finding, scale) for finding in found),
        *_axes(scale),
        f'<path class="raw" d="{_path(*thin(steps, values, POINTS), scale)}"/>',
        f'<path class="line" d="{_path(*thin(steps, smooth, POINTS), scale)}"/>',
        "</svg>",
    ]
    words = ", ".join(f"{f.name} from step {f.since_step}" for f in found if f.since_step is not None)
    caption = (
        f"<figcaption>{escape(_title(name))}{f' · <b>{escape(words)}</b>' if words else ''}</figcaption>"
    )
    return f"<figure>{''.join(parts)}{caption}</figure>"


class _Scale:
    def __init__(self, x0: float, x1: float, low: float, high: float) -> None:
        self.x0, self.x1, self.low, self.high = x0, x1, low, high

    def x(self, step: float) -> float:
        part = min(1.0, max(0.0, (step - self.x0) / (self.x1 - self.x0)))
        return LEFT + part * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        part = min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))
        return HEIGHT - BOTTOM - part * (HEIGHT - BOTTOM - TOP)


def _path(steps: Floats, values: Floats, scale: _Scale) -> str:
    points = (f"{scale.x(s):.1f} {scale.y(v):.1f}" for s, v in zip(steps, values, strict=True))
    return "M" + " L".join(points)


def _band(finding: Finding, scale: _Scale) -> str:
    start = scale.x(finding.since_step if finding.since_step is not None else scale.x0)
    end = scale.x(finding.until_step if finding.until_step is not None else scale.x1)
    return (
        f'<rect class="band {finding.level}" x="{start:.1f}" y="{TOP}" width="{max(2.0, end - start):.1f}" '
        f'height="{HEIGHT - BOTTOM - TOP}"><title>{escape(finding.name)}</title></rect>'
    )


def _axes(scale: _Scale) -> list[str]:
    base = HEIGHT - BOTTOM
    middle = (scale.low + scale.high) / 2
    ticks = [
        f'<text class="tick" x="{LEFT - 5}" y="{scale.y(v) + 3:.1f}" text-anchor="end">{v:.3g}</text>'
        for v in (scale.low, middle, scale.high)
    ]
    return [
        f'<path class="axis" d="M{LEFT} {TOP} V{base} H{WIDTH - RIGHT}"/>',
        *ticks,
        f'<text class="tick" x="{LEFT}" y="{HEIGHT - 8}">{scale.x0:g}</text>',
        f'<text class="tick" x="{WIDTH - RIGHT}" y="{HEIGHT - 8}" text-anchor="end">step {scale.x1:g}</text>',
    ]


def _title(name: str) -> str:
    unit = UNITS.get(name, "")
    says = SAYS.get(name, "")
    return f"{name}{f' ({unit})' if unit else ''}{f': {says}' if says else ''}"
