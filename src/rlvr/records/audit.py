"""What the audit writes: findings, each with the completion that exposes it, and what was not checked."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from rlvr.records.base import Frozen, Record

Direction = Literal["false_pass", "false_fail", "contract"]
Severity = Literal["critical", "high", "medium", "low", "info"]

CATEGORIES: dict[Direction, tuple[str, ...]] = {
    "false_pass": (
        "empty_completion",
        "prompt_echo",
        "answer_enumeration",
        "multiple_answer_tags",
        "near_miss",
        "wrong_accepted",
        "code_injection",
        "format_without_content",
        "format_not_required",
        "monotone_format",
        "monotone_correct",
        "json_tricks",
        "sys_exit",
        "verdict_forgery",
        "raise_skip",
        "eq_override",
        "length_insensitive",
        "keyword_stuffing",
        "giant_output",
        "unicode_trick",
        "hollow_program",
        "negation",
        "state_leak",
    ),
    "false_fail": ("gold_full_score", "equivalent_forms", "answer_named_in_prose"),
    "contract": (
        "finite",
        "batch_composition",
        "no_exception",
        "fast_enough",
        "right_length",
        "batch_order",
        "deterministic",
        "pickleable",
        "no_mutation",
        "missing_column",
        "range",
        "other",
    ),
}
"""Every category by direction: pays wrong, refuses right, breaks the contract."""

SEVERITIES: tuple[Severity, ...] = ("critical", "high", "medium", "low", "info")
BLOCKING: frozenset[Severity] = frozenset({"critical", "high"})
"""Severities that close the gate while a finding of them is open."""


def direction_of(category: str) -> Direction:
    """Return the direction that a category belongs to.

    Raises:
        KeyError: The category is none of :data:`CATEGORIES`.
    """
    for direction, names in CATEGORIES.items():
        if category in names:
            return direction
    raise KeyError(category)


class Finding(Frozen):
    """One property that the reward breaks.

    Attributes:
        id: Stable: depends on reward, category and attack, not on rows or scores.
        category: See :data:`CATEGORIES`.
        direction: ``false_pass`` pays wrong, ``false_fail`` refuses right, ``contract`` breaks the contract.
        severity: ``critical`` and ``high`` close the gate.
        reward: Name of the reward.
        attack: Which attack or property exposed it.
        row: Index of the data row, -1 when it needs none.
        completion: The exact completion that exposes it.
        score: What it got; None when the call gave no score.
        full_score: What a right, well-formed completion of that row gets.
        expected: What it should get, in words.
        rows_hit: Rows it worked on.
        rows_tried: Rows it was tried on.
        message: What happened and why it matters, in a sentence or two.
        fix: What to change.
        file: The user's file.
        line: Line of the user's file that causes it, where it can be told.
        reproduction: A script of five lines that imports only the user's file.
        accepted_because: Reason from the baseline file; empty while the finding is open.
    """

    id: str
    category: str
    direction: Direction
    severity: Severity
    reward: str
    attack: str
    row: int
    completion: str
    score: float | None
    full_score: float | None
    expected: str
    rows_hit: int
    rows_tried: int
    message: str
    fix: str
    file: str = ""
    line: int | None = None
    reproduction: str = ""
    accepted_because: str = ""

    @property
    def blocks(self) -> bool:
        """Whether the finding is open and closes the gate."""
        return self.severity in BLOCKING and not self.accepted_because


class NotChecked(Frozen):
    """Something that the audit could not or did not look at."""

    what: str
    why: str


class RewardAudit(Frozen):
    """The audit of one reward.

    Attributes:
        reward: Its name.
        role: ``correctness``, ``format``, ``length`` or ``composite``.
        convention: How it was called, in words.
        form: The form of the gold answer that is paid in full, in words.
        reference_column: The column that it reads the reference from; empty when it reads none.
        findings: What it breaks.
        remarks: Partial credit, strictness and shaping: true of the reward, but no defect of its role.
        not_checked: What was left out, with the reason.
        calls: How often the reward was called.
        seconds: How long the audit took.
    """

    reward: str
    role: str
    convention: str
    form: str = ""
    reference_column: str = ""
    findings: list[Finding] = Field(default_factory=list)
    remarks: list[Finding] = Field(default_factory=list)
    not_checked: list[NotChecked] = Field(default_factory=list)
    calls: int = 0
    seconds: float = 0.0


class AuditRecord(Record):
    """The record of the audit gate: passed when no finding of high or critical severity is open."""

    SCHEMA: ClassVar[int] = 1

    rewards: list[RewardAudit] = Field(default_factory=list)
    labels_replayed: int = 0

    @property
    def findings(self) -> list[Finding]:
        """The findings of all rewards."""
        return [finding for audit in self.rewards for finding in audit.findings]

    def as_output(self) -> dict[str, Any]:
        """Return the object that ``audit --json`` prints."""
        return {
            "passed": self.passed,
            "why": self.why,
            "findings": [finding.model_dump(mode="json") for finding in self.findings],
            "not_checked": [
                {"reward": audit.reward, **entry.model_dump(mode="json")}
                for audit in self.rewards
                for entry in audit.not_checked
            ],
            "remarks": [one.model_dump(mode="json") for audit in self.rewards for one in audit.remarks],
            "rewards": [
                audit.model_dump(mode="json", exclude={"findings", "remarks", "not_checked"})
                for audit in self.rewards
            ],
            "labels_replayed": self.labels_replayed,
        }
