"""How many rows the rewards could not judge, and when that is too many to go on."""

from __future__ import annotations

from dataclasses import dataclass

STOP_SHARE = 0.01
"""Share of infrastructure failures that stops a run once its lower bound lies above it."""
STOP_ROWS = 500
"""Rows that must have been judged before a run is stopped."""
CONFIDENCE = 0.95
"""One-sided confidence of the lower bound."""


@dataclass(frozen=True, slots=True)
class FailureCount:
    """Rows scored so far and those of them that infrastructure failed.

    Attributes:
        rows: Rows scored.
        failed: Rows that no component could judge because something outside the task failed.
        last: Where and why the latest failure happened.
    """

    rows: int = 0
    failed: int = 0
    last: str = ""

    def add(self, rows: int, failed: int, last: str = "") -> FailureCount:
        """Return the count after one more batch."""
        return FailureCount(self.rows + rows, self.failed + failed, last or self.last)

    @property
    def share(self) -> float:
        """Share of failed rows, 0 where none was scored."""
        return self.failed / self.rows if self.rows else 0.0

    def lower_bound(self, confidence: float = CONFIDENCE) -> float:
        """Return the exact (Clopper-Pearson) one-sided lower bound of the failure share."""
        if self.failed == 0:
            return 0.0
        from scipy.special import betaincinv

        return float(betaincinv(self.failed, self.rows - self.failed + 1, 1 - confidence))

    def stop_reason(self, share: float = STOP_SHARE, rows: int = STOP_ROWS) -> str | None:
        """Return why a run must stop, or None while it may go on."""
        if self.rows < rows or self.share <= share:
            return None
        bound = self.lower_bound()
        if bound <= share:
            return None
        return (
            f"{self.failed} of {self.rows} rows could not be judged (at least {bound:.1%} at "
            f"{CONFIDENCE:.0%}, limit {share:.0%}); the latest: {self.last}"
        )
