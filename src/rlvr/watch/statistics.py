"""Estimates from logged series: windows, changes and stretches, each with an interval.

Logged values of neighbouring steps are not independent and their noise is rarely normal, so a window's standard
error uses the spread around a moving average and its first autocorrelation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

FEW: Final = 20
"""Values below which noise is taken around two levels instead of a moving average."""
Z95: Final = NormalDist().inv_cdf(0.975)
"""Half-width of a 95% interval in standard errors."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its standard error.

    Attributes:
        value: The estimate.
        error: Its standard error; infinite when one value is all there is.
        count: Values behind it.
    """

    value: float
    error: float
    count: int

    @property
    def low(self) -> float:
        """Lower end of the 95% interval."""
        return self.value - Z95 * self.error

    @property
    def high(self) -> float:
        """Upper end of the 95% interval."""
        return self.value + Z95 * self.error

    @property
    def z(self) -> float:
        """Distance from zero in standard errors."""
        if self.error == 0:
            return math.copysign(math.inf, self.value) if self.value else 0.0
        return self.value / self.error

    def minus(self, other: Estimate) -> Estimate:
        """Return the difference of two independent estimates."""
        return Estimate(
            self.value - other.value, math.hypot(self.error, other.error), min(self.count, other.count)
        )


@dataclass(frozen=True)
class Series:
    """One metric's finite values in order of steps.

    Attributes:
        steps: Step of each.
        values: The values, all finite.
        widen: Factor on every standard error; above 1 when the run is looked at repeatedly.
        unit: What one value stands for: ``rows`` of a log, or ``steps`` where completions were counted.
    """

    steps: Floats
    values: Floats
    widen: float = 1.0
    unit: str = "rows"

    def __len__(self) -> int:
        return int(self.values.size)

    @cached_property
    def smooth_width(self) -> int:
        """Width of the moving average, in rows (odd)."""
        return max(3, (len(self) // 20) | 1)

    @cached_property
    def smooth(self) -> Floats:
        """Centred moving average, narrower at the ends."""
        return moving_average(self.values, self.smooth_width)

    @cached_property
    def _noise(self) -> tuple[float, float]:
        """Spread around the moving average, and the factor by which autocorrelation widens a mean's error."""
        if len(self) < 4:
            return (float(np.std(self.values, ddof=1)) if len(self) > 1 else math.inf), 1.0
        width = min(self.smooth_width, len(self) | 1)
        residual = (self.values - self.smooth) * math.sqrt(width / max(width - 1.0, 1.0))
        spread = float(np.sqrt(np.mean(residual**2)))
        if spread == 0:
            return 0.0, 1.0
        if len(self) < FEW:
            return min(spread, _spread_around_one_step(self.values)), 1.2
        differences = np.diff(self.values)
        by_difference = float(np.sqrt(np.mean(differences**2) / 2))
        return max(spread, by_difference), _autocorrelation_factor(residual)

    @property
    def noise(self) -> float:
        """Spread of single values around the moving average."""
        return self._noise[0]

    def window(self, start: int, end: int) -> Estimate:
        """Return the mean of rows ``start`` to ``end`` (exclusive)."""
        part = self.values[start:end]
        if part.size == 0:
            return Estimate(math.nan, math.inf, 0)
        spread, factor = self._noise
        local = float(np.std(part, ddof=1)) if part.size > 2 else spread
        error = (
            self.widen
            * max(min(spread, 3 * local) if local else spread, local)
            * factor
            / math.sqrt(part.size)
        )
        return Estimate(float(part.mean()), error, int(part.size))

    @property
    def edge(self) -> int:
        """Rows of the early and late windows."""
        return int(min(max(3, round(0.12 * len(self))), 60, max(1, len(self) // 2)))

    @cached_property
    def early(self) -> Estimate:
        """Mean of the first rows."""
        return self.window(0, self.edge)

    @cached_property
    def late(self) -> Estimate:
        """Mean of the last rows."""
        return self.window(len(self) - self.edge, len(self))

    @cached_property
    def change(self) -> Estimate:
        """Late minus early."""
        return self.late.minus(self.early)

    @cached_property
    def peak(self) -> tuple[Estimate, int]:
        """The best window, and the index of its middle."""
        width = self.edge
        means = np.convolve(self.values, np.ones(width) / width, mode="valid")
        start = int(np.argmax(means))
        return self.window(start, start + width), start + width // 2

    def ratio(self) -> tuple[float, float, float]:
        """Return late over early with a 95% interval; NaN when the early level is not above zero."""
        early, late = self.early, self.late
        if early.value <= 0:
            return math.nan, math.nan, math.nan
        value = max(late.value, 0.0) / early.value
        if late.value <= 2 * late.error or early.value <= 2 * early.error:
            spread = Z95 * math.hypot(late.error, value * early.error) / early.value
            return value, max(0.0, value - spread), value + spread
        spread = math.hypot(late.error / late.value, early.error / early.value)
        return value, value * math.exp(-Z95 * spread), value * math.exp(Z95 * spread)

    def last_stretch(self, mask: Mask) -> int | None:
        """Return the index from which ``mask`` holds to the end, one row in ten excepted; None when it does not."""
        if not mask.size or not mask[-max(1, min(3, mask.size)) :].any():
            return None
        kept = np.cumsum(mask[::-1]) / np.arange(1, mask.size + 1)
        good = np.flatnonzero((kept >= 0.9) & mask[::-1])
        return int(mask.size - 1 - good[-1]) if good.size else None

    def step(self, index: int) -> int:
        """Return the step of a row."""
        return int(self.steps[index])

    def after(self, index: int) -> Series:
        """Return the rows from ``index`` on."""
        return Series(self.steps[index:], self.values[index:], self.widen, self.unit)


def moving_average(values: Floats, width: int) -> Floats:
    """Return the centred moving average of ``width`` values, narrower at the ends."""
    half = width // 2
    total = np.concatenate([[0.0], np.cumsum(values)])
    index = np.arange(values.size)
    low, high = np.maximum(index - half, 0), np.minimum(index + half + 1, values.size)
    average: Floats = (total[high] - total[low]) / (high - low)
    return average


def _spread_around_one_step(values: Floats) -> float:
    """Return the spread around the best two levels, so that one sudden change does not count as noise."""
    best = min(
        float(((values[:k] - values[:k].mean()) ** 2).sum() + ((values[k:] - values[k:].mean()) ** 2).sum())
        for k in range(2, values.size - 1)
    )
    return math.sqrt(best / max(values.size - 3, 1))


def _autocorrelation_factor(residual: Floats) -> float:
    """Return how much wider a mean's error is than for independent values (1 to 4)."""
    centred = residual - residual.mean()
    variance = float(np.dot(centred, centred))
    if variance == 0 or residual.size < 8:
        return 1.3
    first = float(np.dot(centred[1:], centred[:-1])) / variance
    return math.sqrt(min(max((1 + first) / (1 - min(first, 0.88)), 1.0), 16.0))


def share_interval(hits: float, count: float, z: float = Z95) -> tuple[float, float]:
    """Return Wilson's interval of a share.

    Args:
        hits: Number of hits.
        count: Number of trials; 0 gives (0, 1).
        z: Half-width in standard errors.
    """
    if count <= 0:
        return 0.0, 1.0
    share = hits / count
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return max(0.0, middle - half), min(1.0, middle + half)


def correlation_interval(value: float, count: float, z: float = Z95) -> tuple[float, float]:
    """Return Fisher's interval of a correlation from ``count`` independent pairs."""
    if count <= 3 or not math.isfinite(value):
        return -1.0, 1.0
    middle = math.atanh(max(-0.999999, min(0.999999, value)))
    half = z / math.sqrt(count - 3)
    return math.tanh(middle - half), math.tanh(middle + half)
