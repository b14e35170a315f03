"""Audits all rewards of a workspace: each component on its own, then their sum, then the reader's labels."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from rlvr.audit.engine import audit_target
from rlvr.audit.findings import read_baseline, unused_entries, with_baseline
from rlvr.audit.rows import AuditRow
from rlvr.audit.runner import PickledTarget
from rlvr.audit.unpaid import NEVER_ATTACKED, UNREADABLE
from rlvr.errors import RewardError
from rlvr.records.audit import BLOCKING, AuditRecord, Finding, NotChecked, RewardAudit, direction_of


class NamedReward(Protocol):
    """What the audit needs to know of one component."""

    @property
    def name(self) -> str:
        """Name in logs and findings."""
        ...

    @property
    def function(self) -> Any:
        """The callable."""
        ...

    @property
    def role(self) -> str:
        """``correctness``, ``format`` or ``length``."""
        ...


class ScorerLike(Protocol):
    """The scorer of all components."""

    @property
    def components(self) -> Sequence[NamedReward]:
        """The components."""
        ...


class Label(NamedTuple):
    """A reader's judgement of one stored completion, replayed as a test of the reward.

    Attributes:
        completion_id: The sample.
        row: Index of its row, -1 when unknown.
        text: The completion.
        passed: What the reader said.
        paid: Whether the reward as it stands calls it right.
        score: Its score now.
    """

    completion_id: str
    row: int
    text: str
    passed: bool
    paid: bool
    score: float | None


class Total:
    """All components of a scorer as one reward: their weighted sum."""

    def __init__(self, scorer: Any) -> None:
        self.scorer = scorer
        self.__name__ = "total"
        limits = [getattr(one.function, "cpu_seconds", 0.0) for one in scorer.components]
        self.cpu_seconds = max(limits, default=0.0)

    def __call__(self, prompts: Any, completions: Any, **columns: Any) -> list[float | None]:
        """Return the weighted sums of a batch."""
        return [row.total for row in self.scorer.score_batch(prompts, completions, columns)]


def audit_rewards(
    scorer: ScorerLike,
    rows: Sequence[AuditRow],
    *,
    stamp: Mapping[str, Any] | None = None,
    baseline: Path | None = None,
    labels: Iterable[Label] = (),
    budget_s: float = 13.0,
    progress: Callable[[str], None] | None = None,
) -> AuditRecord:
    """Audit every component and their sum.

    Args:
        scorer: The scorer, picklable, with its components.
        rows: The training rows, or some of them, their prompts as the trainer passes them.
        stamp: Time, version and fingerprints for the record.
        baseline: File with known findings and their reasons.
        labels: The reader's labels with the present scores; a disagreement is a finding.
        budget_s: Seconds for each reward.
        progress: Told the name of each reward before it is audited.

    Raises:
        ConfigError: A reward cannot be loaded in a process of its own, or the baseline file is wrong.
        RewardError: ``reward.not-picklable``.
    """
    reasons = read_baseline(baseline) if baseline else {}
    replayed = list(labels)
    audits = [
        _one(component.name, component.function, component.role, rows, budget_s, progress)
        for component in scorer.components
    ]
    unreadable = _unreadable(audits)
    if unreadable:
        entry = NotChecked(
            what="total", why=f"{unreadable} pays nothing in training, so their sum tells nothing"
        )
        audits[0] = audits[0].model_copy(update={"not_checked": [*audits[0].not_checked, entry]})
    elif len(audits) > 1:
        column = next((one.reference_column for one in audits if one.reference_column), "")
        audits.append(_one("total", Total(scorer), "composite", rows, budget_s, progress, column))
    audits = [_with_labels(audits[0], replayed), *audits[1:]]
    audits = [one.model_copy(update={"findings": with_baseline(one.findings, reasons)}) for one in audits]
    everything = [finding for one in audits for finding in one.findings]
    stale = [NotChecked(what="baseline", why=line) for line in unused_entries(everything, reasons)]
    audits[0] = audits[0].model_copy(update={"not_checked": [*audits[0].not_checked, *stale]})
    return record_of(audits, stamp or {}, len(replayed))


def record_of(
    audits: Sequence[RewardAudit], stamp: Mapping[str, Any], labels_replayed: int = 0
) -> AuditRecord:
    """Return the record: passed when no finding of high or critical severity is open."""
    findings = [finding for one in audits for finding in one.findings]
    open_ones = [finding for finding in findings if finding.blocks]
    unpaid = [
        one for one in audits if any(each.blocks and each.attack in NEVER_ATTACKED for each in one.findings)
    ]
    return AuditRecord(
        **dict(stamp),
        passed=not open_ones,
        why=_unattacked(unpaid, len(audits)) + _why(findings, open_ones, audits),
        rewards=list(audits),
        labels_replayed=labels_replayed,
    )


def _unreadable(audits: Sequence[RewardAudit]) -> str:
    """Return the first of several rewards that pays nothing as the trainer calls it; empty where none is so."""
    found = (one.reward for one in audits if any(each.attack in UNREADABLE for each in one.findings))
    return next(found, "") if len(audits) > 1 else ""


def _unattacked(unpaid: Sequence[RewardAudit], rewards: int) -> str:
    if not unpaid:
        return ""
    names = ", ".join(one.reward for one in unpaid)
    return f"{len(unpaid)} of {rewards} reward(s) could not be attacked: no completion was paid ({names}); "


def _why(findings: Sequence[Finding], open_ones: Sequence[Finding], audits: Sequence[RewardAudit]) -> str:
    if open_ones:
        kinds = (one.attack if one.category == "other" else one.category for one in open_ones)
        shown = ", ".join(dict.fromkeys(kinds))
        return f"{len(open_ones)} open finding(s) of high or critical severity: {shown}"
    accepted = sum(bool(finding.accepted_because) and finding.severity in BLOCKING for finding in findings)
    known = f"; {accepted} accepted in the baseline" if accepted else ""
    lesser = sum(finding.severity not in BLOCKING for finding in findings)
    minor = f"; {lesser} of lower severity" if lesser else ""
    left = sum(len(one.not_checked) for one in audits)
    tried, rest = (" that was tried", f"; {left} thing(s) not checked") if left else ("", "")
    return f"{len(audits)} reward(s) held against every attack{tried}{known}{minor}{rest}"


def _one(
    name: str,
    function: Any,
    role: str,
    rows: Sequence[AuditRow],
    budget_s: float,
    progress: Callable[[str], None] | None,
    column: str | None = None,
) -> RewardAudit:
    if progress is not None:
        progress(name)
    target = PickledTarget(_pickled(name, function), name, _file_of(function))
    return audit_target(target, rows, role=role, budget_s=budget_s, name=name, column=column, for_gate=True)


def _pickled(name: str, function: Any) -> bytes:
    try:
        return pickle.dumps(function)
    except Exception as error:
        raise RewardError(
            "reward.not-picklable",
            f"{type(error).__name__}: {error}",
            where=f"reward {name}",
            expected="a reward that another process can load",
            fix="define it at the top level of a module",
        ) from error


def _file_of(function: Any) -> str:
    path = getattr(function, "path", "")
    return str(Path(path).resolve()) if isinstance(path, str) and path.endswith(".py") else ""


def _with_labels(audit: RewardAudit, labels: Sequence[Label]) -> RewardAudit:
    """Add a finding for each direction in which the reward contradicts the reader's labels."""
    wrong = [label for label in labels if label.paid and not label.passed]
    refused = [label for label in labels if not label.paid and label.passed]
    found = [_label_finding("wrong_accepted", wrong, len(labels))] if wrong else []
    found += [_label_finding("gold_full_score", refused, len(labels))] if refused else []
    return audit.model_copy(update={"findings": [*found, *audit.findings]})


def _label_finding(category: str, labels: Sequence[Label], total: int) -> Finding:
    from rlvr.audit.findings import stable_id

    first = labels[0]
    said = "failed" if category == "wrong_accepted" else "passed"
    does = "pays" if category == "wrong_accepted" else "refuses"
    return Finding(
        id=stable_id("labels", category, "reader"),
        category=category,
        direction=direction_of(category),
        severity="high",
        reward="labels",
        attack="reader-labels",
        row=first.row,
        completion=first.text,
        score=first.score,
        full_score=None,
        expected=f"what the reader said: {said}",
        rows_hit=len(labels),
        rows_tried=total,
        message=f"the reward {does} {len(labels)} of {total} completion(s) that the reader {said}",
        fix="mend the reward, or change the judgement with a reason in `rlvr inspect`",
    )
