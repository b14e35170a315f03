"""Static drawings as inline SVG: lines over steps, intervals on one scale, and pass@k.

Colours are names of CSS variables, so that one drawing reads well in light, dark and print. Text is always escaped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

WIDTH, HEIGHT = 420, 220
LEFT, RIGHT, TOP, BOTTOM = 46, 14, 12, 30
SMOOTH_FROM = 60
"""Points above which a line is drawn as its running mean, with the raw points faint behind it."""
HOVER_POINTS = 200
NAME_WIDTH = 150
"""Room for names beside an interval, at about 7 units a character."""

Point = tuple[float, float]


@dataclass(frozen=True)
class Series:
    """One line.

    Attributes:
        name: As the legend has it.
        points: (x, y) in order of x; not finite values are left out.
        tone: Number of the colour, 1 to 6.
        dots: Draw points alone, as for few measurements.
    """

    name: str
    points: Sequence[Point]
    tone: int = 1
    dots: bool = False


@dataclass(frozen=True)
class Band:
    """A stretch of steps to mark; ``end`` None runs to the right edge."""

    start: float
    end: float | None
    label: str
    level: str = "warning"


@dataclass(frozen=True)
class Interval:
    """One estimate with its interval, in [0, 1]."""

    name: str
    value: float
    low: float
    high: float
    tone: int = 1


@dataclass(frozen=True)
class Frame:
    """The drawing area and its two linear scales."""

    x: tuple[float, float]
    y: tuple[float, float]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT

    def px(self, value: float) -> float:
        """Return the horizontal position of a value."""
        low, high = self.x
        share = (value - low) / (high - low) if high > low else 0.5
        return self.left + share * (self.width - self.left - RIGHT)

    def py(self, value: float) -> float:
        """Return the vertical position of a value."""
        low, high = self.y
        share = (value - low) / (high - low) if high > low else 0.5
        return self.height - BOTTOM - share * (self.height - TOP - BOTTOM)


def line_chart(
    series: Sequence[Series],
    *,
    title: str,
    percent: bool = False,
    from_zero: bool = True,
    bands: Sequence[Band] = (),
    x_name: str = "step",
) -> Markup:
    """Draw lines over steps.

    Args:
        series: Lines; those without points are left out.
        title: For readers that cannot see it.
        percent: The values are shares; the axis goes from 0 to 100%.
        from_zero: Whether the axis starts at zero.
        bands: Stretches to mark.
        x_name: Name of the horizontal axis.
    """
    clean = [Series(one.name, _finite(one.points), one.tone, one.dots) for one in series]
    clean = [one for one in clean if one.points]
    if not clean:
        return Markup("")
    frame = Frame(_x_range(clean), (0.0, 1.0) if percent else _y_range(clean, from_zero))
    parts = [*_grid(frame, percent), *_x_axis(frame, x_name)]
    parts += [_band(frame, band) for band in bands]
    for one in clean:
        parts += _draw(frame, one)
    parts += _hover(frame, clean, percent, x_name)
    return _svg(frame, parts, f"{title}: {_summary(clean, percent)}")


def interval_chart(rows: Sequence[Interval], *, title: str) -> Markup:
    """Draw estimates with their intervals on one scale from 0 to 100%."""
    height = TOP + BOTTOM + 34 * len(rows)
    longest = max((len(row.name) for row in rows), default=0)
    left = min(max(64, 12 + 7 * longest), NAME_WIDTH)
    frame = Frame((0.0, 1.0), (0.0, 1.0), width=WIDTH, height=height, left=left)
    parts = []
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        x = frame.px(tick)
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{height - BOTTOM}"/>')
        anchor = "end" if tick == 1.0 else "middle"
        parts.append(_text(x, height - 10, f"{tick:.0%}", anchor))
    for index, row in enumerate(rows):
        parts += _interval(frame, row, TOP + 34 * index + 17)
    summary = "; ".join(f"{row.name} {row.value:.1%} [{row.low:.1%}, {row.high:.1%}]" for row in rows)
    return _svg(frame, parts, f"{title}: {summary}")


def _interval(frame: Frame, row: Interval, y: float) -> list[str]:
    low, high, x = frame.px(row.low), frame.px(row.high), frame.px(row.value)
    label = f"{row.name}: {row.value:.1%}, 95% interval {row.low:.1%} to {row.high:.1%}"
    above = "start" if row.value < 0.15 else "end" if row.value > 0.9 else "middle"
    return [
        _text(0, y + 4, _shortened(row.name), "start", "name"),
        f'<g class="tone{row.tone}"><title>{escape(label)}</title>'
        f'<line class="whisker" x1="{low:.1f}" x2="{high:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<circle class="mark" cx="{x:.1f}" cy="{y:.1f}" r="5"/></g>',
        _text(x, y - 9, f"{row.value:.1%}", above, "value"),
    ]


def _shortened(name: str) -> str:
    most = NAME_WIDTH // 7 - 2
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _draw(frame: Frame, one: Series) -> list[str]:
    group = f'<g class="tone{one.tone}">'
    if one.dots or len(one.points) == 1:
        marks = [
            f'<circle class="mark" cx="{frame.px(x):.1f}" cy="{frame.py(y):.1f}" r="4"/>'
            for x, y in one.points
        ]
        line = f'<path class="line thin" d="{_path(frame, one.points)}"/>' if len(one.points) > 1 else ""
        return [group, line, *marks, "</g>"]
    if len(one.points) < SMOOTH_FROM:
        return [group, f'<path class="line" d="{_path(frame, one.points)}"/>', "</g>"]
    faint = f'<path class="line faint" d="{_path(frame, one.points)}"/>'
    return [group, faint, f'<path class="line" d="{_path(frame, _smoothed(one.points))}"/>', "</g>"]


def _path(frame: Frame, points: Sequence[Point]) -> str:
    moves = [f"{frame.px(x):.1f},{_clamped(frame, y):.1f}" for x, y in points]
    return "M" + "L".join(moves)


def _clamped(frame: Frame, y: float) -> float:
    return min(max(frame.py(y), TOP), frame.height - BOTTOM)


def _smoothed(points: Sequence[Point]) -> list[Point]:
    half = max(len(points) // 40, 2)
    found = []
    for index, (x, _) in enumerate(points):
        near = points[max(0, index - half) : index + half + 1]
        found.append((x, sum(y for _, y in near) / len(near)))
    return found


def _grid(frame: Frame, percent: bool) -> list[str]:
    parts = []
    for tick in _ticks(*frame.y):
        y = frame.py(tick)
        parts.append(
            f'<line class="grid" x1="{frame.left}" x2="{frame.width - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        )
        parts.append(_text(frame.left - 7, y + 4, f"{tick:.0%}" if percent else short(tick), "end"))
    return parts


def _x_axis(frame: Frame, name: str) -> list[str]:
    parts = []
    ticks = [tick for tick in _ticks(*frame.x) if frame.x[0] <= tick <= frame.x[1]]
    for tick in ticks:
        parts.append(_text(frame.px(tick), frame.height - 12, short(tick), "middle"))
    parts.append(_text(frame.left - 7, frame.height - 12, name, "end", "axis"))
    return parts


def _band(frame: Frame, band: Band) -> str:
    start = frame.px(min(max(band.start, frame.x[0]), frame.x[1]))
    end = frame.px(frame.x[1] if band.end is None else min(max(band.end, frame.x[0]), frame.x[1]))
    height = frame.height - TOP - BOTTOM
    return (
        f'<g class="band {escape(band.level)}"><title>{escape(band.label)}</title>'
        f'<rect x="{start:.1f}" y="{TOP}" width="{max(end - start, 3):.1f}" height="{height}"/>'
        f'<line x1="{start:.1f}" x2="{start:.1f}" y1="{TOP}" y2="{frame.height - BOTTOM}"/></g>'
    )


def _hover(frame: Frame, series: Sequence[Series], percent: bool, x_name: str) -> list[str]:
    by_x: dict[float, list[str]] = {}
    for one in series:
        for x, y in one.points:
            by_x.setdefault(x, []).append(f"{one.name} {f'{y:.1%}' if percent else short(y)}")
    places = sorted(by_x)
    places = places[:: max(1, len(places) // HOVER_POINTS)]
    edges = [frame.px(x) for x in places]
    parts = []
    for index, x in enumerate(places):
        left = frame.left if index == 0 else (edges[index - 1] + edges[index]) / 2
        right = frame.width - RIGHT if index == len(places) - 1 else (edges[index] + edges[index + 1]) / 2
        label = f"{x_name} {short(x)}\n" + "\n".join(by_x[x])
        parts.append(
            f'<g class="hover"><title>{escape(label)}</title><rect x="{left:.1f}" y="{TOP}" '
            f'width="{max(right - left, 0.5):.1f}" height="{frame.height - TOP - BOTTOM}"/>'
            f'<line x1="{edges[index]:.1f}" x2="{edges[index]:.1f}" y1="{TOP}" y2="{frame.height - BOTTOM}"/></g>'
        )
    return parts


def _svg(frame: Frame, parts: Sequence[str], label: str) -> Markup:
    head = (
        f'<svg viewBox="0 0 {frame.width} {frame.height}" role="img" aria-label="{escape(label)}" '
        'xmlns="http://www.w3.org/2000/svg">'
    )
    return Markup(head + "".join(parts) + "</svg>")  # noqa: S704  # every text in it was escaped above


def _text(x: float, y: float, text: str, anchor: str, kind: str = "tick") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _finite(points: Sequence[Point]) -> list[Point]:
    return [(x, y) for x, y in points if math.isfinite(x) and math.isfinite(y)]


def _x_range(series: Sequence[Series]) -> tuple[float, float]:
    every = [x for one in series for x, _ in one.points]
    return (min(every), max(every)) if min(every) < max(every) else (min(every) - 1, max(every) + 1)


def _y_range(series: Sequence[Series], from_zero: bool) -> tuple[float, float]:
    every = [y for one in series for _, y in one.points]
    low, high = min(every), max(every)
    if from_zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if low == high:
        low, high = (
            (0.0, 1.0) if low == 0 else (min(low, 0.0), max(low, 0.0)) if from_zero else (low - 1, low + 1)
        )
    ticks = _ticks(low, high)
    step = ticks[1] - ticks[0] if len(ticks) > 1 else high - low
    return math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step


def _ticks(low: float, high: float, about: int = 4) -> list[float]:
    """Return round numbers that span a range."""
    span = high - low
    if span < 1e-300 or not math.isfinite(span):  # smaller spans have no tenth
        return [low]
    raw = span / about
    base = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * base for factor in (1, 2, 5, 10) if factor * base >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def short(value: float) -> str:
    """Return a number as short as a tick needs it: 1200 becomes 1.2k, 0.00005 becomes 5e-05."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else "–"
    size = abs(value)
    if size >= 1e6:
        return f"{value / 1e6:.3g}M"
    if size >= 1e4:
        return f"{value / 1e3:.3g}k"
    return f"{value:.3g}" if size < 1000 else f"{value:.4g}"


def _summary(series: Sequence[Series], percent: bool) -> str:
    def said(value: float) -> str:
        return f"{value:.1%}" if percent else short(value)

    return "; ".join(
        f"{one.name} from {said(one.points[0][1])} to {said(one.points[-1][1])}" for one in series
    )
