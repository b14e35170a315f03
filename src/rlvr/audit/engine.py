"""Audits one reward: finds out how it is called and what it pays, then attacks it within a time budget."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from rlvr.audit import odd, orders, properties, steps, unpaid
from rlvr.audit.findings import FindingFactory, by_severity
from rlvr.audit.profile import Levels, Profile, guess_role
from rlvr.audit.references import read_golds
from rlvr.audit.rows import AuditRow, columns_of, missing_columns, reference_column, used_columns
from rlvr.audit.runner import Result, Runner, Target
from rlvr.audit.session import Session, convention_of
from rlvr.audit.source import Source, read_source
from rlvr.audit.trials import Group, Trial, run_trials
from rlvr.records.audit import Finding, NotChecked, RewardAudit, Severity

BUDGET_S = 13.0
ATTACK_ROWS = 8
TRACEABLE_S = 0.004
"""Longest usual call whose lines are traced: tracing slows a large library down a hundredfold."""


class Audit:
    """The audit of one reward while it runs: what was found, and what the steps share.

    Args:
        runner: The loaded reward.
        rows: The user's rows.
        role: The stated role, or None to have it guessed.
        budget_s: Seconds for all calls together.
        column: The reference column where the caller knows it.
        for_gate: Prompts stand in the trainer's own shape, and a reward that pays nothing is a finding.
    """

    def __init__(
        self,
        runner: Runner,
        rows: Sequence[AuditRow],
        target: Target,
        role: str | None,
        budget_s: float,
        column: str | None = None,
        *,
        for_gate: bool = False,
    ) -> None:
        self.runner = runner
        self.for_gate = for_gate
        self.target = target
        self.facts = runner.facts
        name = getattr(target, "attribute", "") or getattr(target, "name", "") or self.facts.name
        self.source = read_source(Path(self.facts.file), name) if self.facts.file else Source()
        self.columns = columns_of(rows)
        convention = convention_of(self.facts, rows, self.columns)
        aliased = [source for source in convention.aliases.values() if source in self.columns]
        used = list(dict.fromkeys([*used_columns(self.facts, self.source, self.columns), *aliased]))
        named = self.facts.reference_column if column is None else column
        self.column = reference_column(used, rows) if named is None else named
        self.missing = missing_columns(self.facts, self.columns)
        self.stated_role = role
        self.session = Session(runner, rows, convention, budget_s)
        self.session.always_isolated = self.source.calls_any("exec")  # what a program defines must not stay
        # the sandbox of the built-in rewards keeps nothing of a program
        self.session.contained = self.facts.time_limit > 0 and not self.facts.file
        self.factory = FindingFactory(target, name, self.facts.file, self.session.convention)
        self.findings: list[Finding] = []
        self.remarks: list[Finding] = []
        self.not_checked: list[NotChecked] = []
        self.profile = Profile(
            role or guess_role(self.source, self.column),
            self.column,
            read_golds(rows, self.column),
            self.source,
        )

    @contextlib.contextmanager
    def other_process(self, hash_seed: str) -> Iterator[Session]:
        """Give a session on a second process that loads the reward again, with another hash seed."""
        with Runner(self.target, hash_seed) as runner:
            yield self.session.sibling(runner)

    def run(self, trials: Iterable[Trial]) -> None:
        """Run trials and report what worked."""
        self.report_groups(run_trials(list(trials), self.profile, self.session))

    def rows_for(self, trials_a_row: int) -> list[int]:
        """Return the rows to attack: as many as the remaining time allows, at most :data:`ATTACK_ROWS`."""
        affordable = self.session.seconds_left / 3 / max(self.session.seconds_per_call * trials_a_row, 1e-6)
        return self.profile.paid_rows[: int(min(ATTACK_ROWS, max(2, affordable)))]

    def leave_out(self, what: str, why: str) -> None:
        """Say that something was not checked."""
        self.not_checked.append(NotChecked(what=what, why=why))

    def report(
        self,
        category: str,
        attack: str,
        message: str,
        *,
        fix: str,
        severity: Severity,
        row: int = -1,
        text: str = "",
        result: Result | None = None,
        full: float | None = None,
        expected: str = "",
        rows: tuple[int, int] = (1, 1),
        line: int | None = None,
        batch: tuple[Sequence[int], Sequence[str]] | None = None,
        remark: bool = False,
    ) -> None:
        """Add a finding, or a remark; a second one of the same category and attack is dropped."""
        shown = batch or (([row], [text]) if row >= 0 else None)
        request = self.session.request(*shown) if shown else None
        finding = self.factory.make(
            category,
            attack,
            message,
            fix=fix,
            severity=severity,
            row=row,
            completion=text,
            score=result.score if result else None,
            full_score=full,
            expected=expected,
            rows=rows,
            line=line if line is not None else (result.line if result else None),
            request=request,
        )
        place = self.remarks if remark else self.findings
        if all(known.id != finding.id for known in place):
            place.append(finding)

    def report_groups(self, groups: dict[tuple[str, str], Group]) -> None:
        """Turn groups of trials into findings and remarks."""
        untried = dict.fromkeys(
            category for (category, _), one in groups.items() if one.skipped and not one.tried
        )
        for category in untried:
            self.leave_out(category, "the audit's time was used up before every attack of it was tried")
        for (category, attack), group in groups.items():
            if group.holds:
                self._report_hit(category, attack, group)

    def _report_hit(self, category: str, attack: str, group: Group) -> None:
        trial, result = group.hits[0]
        level = self.profile.levels.get(trial.row, Levels(0.0, 0.0, 0.0))
        if trial.expect == "refused":
            expected = f"at most {level.wrong:g}, as a wrong answer gets"
        else:
            expected = f"{level.right:g}, as the same answer gets in another form"
        self.report(
            category,
            attack,
            f"{trial.why} ({_points(result.score)} of {level.right:g}; {group.rows_hit} of {group.tried} rows)",
            fix=trial.fix,
            severity=trial.severity,
            row=trial.row,
            text=trial.text,
            result=result,
            full=level.right,
            expected=expected,
            rows=(group.rows_hit, group.tried),
            line=self._causing_line(trial),
            remark=trial.remark,
        )

    def _causing_line(self, trial: Trial) -> int | None:
        """Return the first line that ran for the exposing completion but not for a plainly wrong one."""
        form, wrong = self.profile.form, self.profile.wrongs.get(trial.row)
        if form is None or not wrong or not self.facts.file or self.session.seconds_per_call > TRACEABLE_S:
            return None
        calls = [([trial.row], [trial.text]), ([trial.row], [form(wrong[0])])]
        results = self.session.sequence(calls, trace=True)
        only = [line for line in results[0].lines if line not in set(results[1].lines)]
        return only[-1] if only else None


def _points(score: float | None) -> str:
    return "None, so the row is dropped," if score is None else f"{score:g}"


Step = Callable[[Audit], None]

STEPS: tuple[Step, ...] = (
    steps.settle_form_of_completions,
    odd.check_sleep,
    steps.find_form,
    properties.check_signature,
    steps.check_gold,
    steps.attack_code,
    odd.check_long_text,
    orders.check_levels,
    properties.check_batches,
    steps.attack_answers,
    steps.attack_format,
    orders.check_lengths,
    odd.check_executed,
    odd.check_oddities,
    odd.check_blow_up,
    odd.check_known_hangs,
    properties.check_all_finite,
    orders.check_counts,
    orders.check_range,
    unpaid.check_attacked,
)


def audit_target(
    target: Target,
    rows: Sequence[AuditRow],
    *,
    role: str | None = None,
    budget_s: float = BUDGET_S,
    name: str = "",
    column: str | None = None,
    for_gate: bool = False,
) -> RewardAudit:
    """Audit one reward on rows.

    Args:
        target: The reward.
        rows: The user's rows.
        role: ``correctness``, ``format``, ``length`` or ``composite``; None: guessed from source and behaviour.
        budget_s: Seconds for all calls together; what does not fit is listed as not checked.
        name: Name in the record; default: the function's own.
        column: The reference column; default: what the reward says, else read from its source.
        for_gate: Prompts stand in the trainer's own shape, so a reward that cannot read it, or that was never seen
            paying anything, gets a high finding.

    Raises:
        ConfigError: The reward cannot be loaded.
    """
    started = time.monotonic()
    with Runner(target) as runner:
        audit = Audit(runner, rows, target, role, budget_s, column, for_gate=for_gate)
        for step in STEPS:
            step(audit)
        form = audit.profile.form
        return RewardAudit(
            reward=name or audit.factory.name,
            role=audit.profile.role,
            convention=audit.session.words,
            form=form.name if form else "",
            reference_column=audit.column,
            findings=by_severity(audit.findings),
            remarks=audit.remarks,
            not_checked=audit.not_checked,
            calls=runner.calls,
            seconds=round(time.monotonic() - started, 3),
        )
