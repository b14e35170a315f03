"""One attempt on one row, and what decides whether it worked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from rlvr.audit.profile import EPSILON, Levels, Profile
from rlvr.audit.runner import CALL_SECONDS, Result
from rlvr.audit.session import Session
from rlvr.records.audit import Severity


@dataclass(frozen=True, slots=True)
class Trial:
    """A completion that must be refused, or one that must be paid.

    Attributes:
        category: Category of the finding if it works.
        attack: Which attack it belongs to; findings are grouped by category and attack.
        row: Row of the data.
        text: The completion.
        why: What it shows, as a sentence.
        fix: What to change.
        severity: Severity of the finding.
        expect: ``refused`` or ``paid``.
        control: The same completion without the part that must not pay: shows that the part is what is paid.
        share: Share of rows on which it must work to be a finding, against coincidences.
        isolated: Whether it needs a worker of its own, since it may leave something behind.
        closeness: Share of the span that it must reach to count as paid in full.
        remark: Whether it is a remark on strictness or policy, and no finding.
    """

    category: str
    attack: str
    row: int
    text: str
    why: str
    fix: str
    severity: Severity = "high"
    expect: Literal["refused", "paid"] = "refused"
    control: str | None = None
    share: float = 0.0
    isolated: bool = False
    closeness: float = 0.97
    remark: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """The trials of one attack, judged together.

    Attributes:
        hits: Trials that worked, with their results.
        partial: Trials that got part of the pay, with their results.
        tried: Distinct rows that were tried and answered.
        skipped: Trials that were left out for lack of time.
    """

    hits: tuple[tuple[Trial, Result], ...]
    partial: tuple[tuple[Trial, Result], ...]
    tried: int
    skipped: int

    @property
    def rows_hit(self) -> int:
        """Distinct rows on which it worked."""
        return len({trial.row for trial, _ in self.hits})

    @property
    def holds(self) -> bool:
        """Whether it worked often enough to be a finding."""
        return bool(self.hits) and self.rows_hit >= self.hits[0][0].share * self.tried


def run_trials(trials: Sequence[Trial], profile: Profile, session: Session) -> dict[tuple[str, str], Group]:
    """Run trials and group them by category and attack."""
    shared = [trial for trial in trials if not trial.isolated]
    session.singles(pair for trial in shared for pair in _pairs(trial))
    groups: dict[tuple[str, str], list[Trial]] = {}
    for trial in trials:
        groups.setdefault((trial.category, trial.attack), []).append(trial)
    return {key: _judge(group, profile, session) for key, group in groups.items()}


def _pairs(trial: Trial) -> Iterable[tuple[int, str]]:
    yield trial.row, trial.text
    if trial.control is not None:
        yield trial.row, trial.control


def _judge(trials: Sequence[Trial], profile: Profile, session: Session) -> Group:
    hits, partial, rows, skipped = [], [], set(), 0
    for trial in trials:
        results = session.singles(_pairs(trial), CALL_SECONDS, isolated=trial.isolated)
        if results[0].kind == "skipped":
            skipped += 1
            continue
        rows.add(trial.row)
        levels = profile.levels.get(trial.row)
        if levels is None:
            continue
        control = results[1].score if len(results) > 1 else None
        verdict = outcome(trial, levels, results[0].score, control)
        if trial.category == "raise_skip" and _is_unjudged(results[0]):
            verdict = "worked"  # the row is dropped, so raising is never punished
        if verdict == "worked":
            hits.append((trial, results[0]))
        elif verdict == "partly":
            partial.append((trial, results[0]))
    return Group(tuple(hits), tuple(partial), len(rows), skipped)


def _is_unjudged(result: Result) -> bool:
    return result.kind == "scores" and result.scores == (None,) and not result.bad


def outcome(
    trial: Trial, levels: Levels, score: float | None, control: float | None
) -> Literal["worked", "partly", "held"]:
    """Return whether a trial worked: paid although it must be refused, or the other way round."""
    if score is None or levels.span <= EPSILON:
        return "held"
    share = (score - levels.wrong) / levels.span
    if trial.expect == "paid":
        return "worked" if share <= 0.5 else "held" if share >= 0.97 else "partly"
    if share >= trial.closeness - EPSILON:
        return "worked"
    if control is not None and score - control >= trial.closeness * levels.span - EPSILON:
        return "worked"
    return "partly" if share >= 0.3 else "held"
