"""Measures the audit on its own zoo: defects found under the right name, false alarms on sound rewards."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rlvr.audit.engine import audit_target
from rlvr.audit.rows import as_rows
from rlvr.audit.runner import FileTarget
from rlvr.audit.zoo.datasets import DATASETS
from rlvr.audit.zoo.index import ZOO, Specimen
from rlvr.records.audit import SEVERITIES, RewardAudit

RECALL_AIM = 0.95
ALARM_SEVERITIES = ("critical", "high", "medium")
"""Severities that count as a false alarm on a sound reward; the gate itself closes on the first two."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the audit said of one specimen.

    Attributes:
        specimen: The reward.
        audit: Its audit.
        seconds: Wall time of the audit.
    """

    specimen: Specimen
    audit: RewardAudit
    seconds: float

    @property
    def found(self) -> bool:
        """Whether the planted defect was named."""
        return any(finding.category in self.specimen.categories for finding in self.audit.findings)

    @property
    def alarms(self) -> list[str]:
        """Findings of medium severity or more, for a sound reward."""
        if not self.specimen.is_sound:
            return []
        return [
            f"{finding.severity} {finding.category} ({finding.attack})"
            for finding in self.audit.findings
            if finding.severity in ALARM_SEVERITIES
        ]


@dataclass(frozen=True, slots=True)
class Selftest:
    """The outcome on the whole zoo."""

    outcomes: tuple[Outcome, ...]

    @property
    def unsound(self) -> list[Outcome]:
        """Outcomes of rewards with a planted defect."""
        return [one for one in self.outcomes if not one.specimen.is_sound]

    @property
    def sound(self) -> list[Outcome]:
        """Outcomes of sound rewards."""
        return [one for one in self.outcomes if one.specimen.is_sound]

    @property
    def recall(self) -> float:
        """Share of planted defects found under their name."""
        return sum(one.found for one in self.unsound) / max(len(self.unsound), 1)

    @property
    def passed(self) -> bool:
        """Whether recall reaches the aim without a false alarm."""
        return self.recall >= RECALL_AIM and not any(one.alarms for one in self.sound)

    def as_output(self) -> dict[str, Any]:
        """Return the object that ``--selftest --json`` prints."""
        seconds = [one.seconds for one in self.outcomes]
        return {
            "passed": self.passed,
            "planted": len(self.unsound),
            "found": sum(one.found for one in self.unsound),
            "sound": len(self.sound),
            "false_alarms": sum(bool(one.alarms) for one in self.sound),
            "median_seconds": round(statistics.median(seconds), 3),
            "worst_seconds": round(max(seconds), 3),
            "rewards": [_row(one) for one in self.outcomes],
        }

    def table(self) -> str:
        """Return the outcome as lines of text: what was missed and what was flagged, then the totals."""
        lines = [f"{'reward':38} {'rows':14} {'planted':38} outcome"]
        for one in self.outcomes:
            planted = " or ".join(one.specimen.categories) or "(sound)"
            name = f"{one.specimen.module}:{one.specimen.function}"
            lines.append(f"{name:38} {one.specimen.rows:14} {planted:38} {_said(one)}")
        total = self.as_output()
        lines.append(
            f"\nfound {total['found']} of {total['planted']} planted defects ({self.recall:.0%}); "
            f"false alarms on {total['false_alarms']} of {total['sound']} sound rewards; "
            f"median {total['median_seconds']:.2f} s, worst {total['worst_seconds']:.2f} s a reward"
        )
        return "\n".join(lines)


def _said(one: Outcome) -> str:
    if one.specimen.is_sound:
        return "; ".join(one.alarms) or "quiet"
    others = sorted({finding.category for finding in one.audit.findings})
    return "found" if one.found else f"MISSED (said: {', '.join(others) or 'nothing'})"


def _row(one: Outcome) -> dict[str, Any]:
    worst = [finding.severity for finding in one.audit.findings]
    return {
        "reward": f"{one.specimen.module}:{one.specimen.function}",
        "rows": one.specimen.rows,
        "planted": list(one.specimen.categories),
        "found": one.found if not one.specimen.is_sound else None,
        "alarms": one.alarms,
        "severity": min(worst, key=SEVERITIES.index) if worst else None,
        "seconds": round(one.seconds, 3),
    }


def run_selftest(
    specimens: Sequence[Specimen] = tuple(ZOO), progress: Callable[[Outcome], None] | None = None
) -> Selftest:
    """Audit specimens of the zoo, one after the other.

    Args:
        specimens: Which; default: all.
        progress: Told each outcome as it is there.
    """
    outcomes = []
    for specimen in specimens:
        started = time.monotonic()
        rows = as_rows(DATASETS[specimen.rows](), specimen.rows)
        audit = audit_target(FileTarget(specimen.path, specimen.function), rows, role=specimen.role)
        outcomes.append(Outcome(specimen, audit, time.monotonic() - started))
        if progress is not None:
            progress(outcomes[-1])
    return Selftest(tuple(outcomes))
