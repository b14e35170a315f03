"""Watching while a run trains: the same judgement, corrected for looking again and again.

Looking after every few rows with the limits of a single look raises false alarms. Two things keep them down:

- **alpha spending**: look k may err with probability alpha * 6 / (pi k)^2, which sums to alpha over all looks; every
  standard error is widened by the ratio of that look's normal quantile to the single look's;
- **confirmation**: a finding counts once two looks in a row have it above information.

Looks come every few rows at first and then at growing distances, so that a run of n rows has about log n of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any, Final

from rlvr.records.watch import LEVELS, Finding, Findings
from rlvr.watch.completions import CompletionsBuilder
from rlvr.watch.facts import Facts
from rlvr.watch.history import HistoryBuilder
from rlvr.watch.symptoms import judge_history

FIRST_LOOK: Final = 16
"""Rows before the first look."""
LIVE_COMPLETIONS: Final = 20_000
"""Completions kept while a run trains, so that a look stays under a second; every second step is dropped past it."""
SINGLE_LOOK: Final = 0.0124
"""Two-sided error of the judgement's own z of 2.5."""


def widening(look: int, alpha: float) -> float:
    """Return the factor on standard errors at the ``look``-th look (from 1).

    Args:
        look: Number of this look.
        alpha: Probability of a false alarm that all looks together may spend on one test.
    """
    share = alpha * 6 / (math.pi * look) ** 2
    normal = NormalDist()
    return max(1.0, normal.inv_cdf(1 - share / 2) / normal.inv_cdf(1 - SINGLE_LOOK / 2))


@dataclass
class LiveWatch:
    """Collects rows of a running training and says which findings are new.

    Attributes:
        facts: What is known of the run.
        alpha: See :func:`widening`.
        every: Rows between looks at first.
        growth: Factor of rows between looks later on.
        confirmations: Looks in a row that a finding must stand.
    """

    facts: Facts = field(default_factory=Facts)
    alpha: float = 0.02
    every: int = 5
    growth: float = 1.06
    confirmations: int = 2
    latest: Findings | None = None
    _rows: list[Mapping[str, Any]] = field(default_factory=list)
    _texts: CompletionsBuilder = field(init=False)
    _looks: int = 0
    _next: int = FIRST_LOOK
    _standing: dict[str, int] = field(default_factory=dict)
    _told: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._texts = CompletionsBuilder(
            rewards=self.facts.reward_names, weights=self.facts.reward_weights, row_cap=LIVE_COMPLETIONS
        )

    def add_completions(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add completions in TRL's column layout."""
        for row in rows:
            self._texts.add(row)

    def add(self, row: Mapping[str, Any]) -> list[Finding]:
        """Add one logged row; returns the findings that this row confirmed, or that grew louder.

        Args:
            row: Raw log names to values, ``step`` among them.
        """
        self._rows.append(dict(row))
        if len(self._rows) < self._next:
            return []
        self._next = max(self._next + self.every, math.ceil(len(self._rows) * self.growth))
        return self.look()

    def look(self) -> list[Finding]:
        """Judge what there is now; returns the findings that were confirmed by it."""
        self._looks += 1
        builder = HistoryBuilder()
        for row in self._rows:
            builder.add(row)
        self.latest = judge_history(
            builder.build(), self._texts.build(), self.facts, widen=widening(self._looks, self.alpha)
        )
        return self._confirmed(self.latest.alarms)

    def _confirmed(self, alarms: list[Finding]) -> list[Finding]:
        self._standing = {a.name: self._standing.get(a.name, 0) + 1 for a in alarms}
        fresh = []
        for alarm in alarms:
            level = LEVELS.index(alarm.level)
            if self._standing[alarm.name] >= self.confirmations and level > self._told.get(alarm.name, 0):
                self._told[alarm.name] = level
                fresh.append(alarm)
        return fresh
