"""Rewards that pay nothing as the trainer calls them: they read the other shape alone, or cannot be attacked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rlvr.audit.forms import PROSE
from rlvr.audit.profile import EPSILON, candidate_answers, discover
from rlvr.audit.rows import SOLUTION_NAMES
from rlvr.audit.runner import Result

if TYPE_CHECKING:
    from rlvr.audit.engine import Audit

NEVER_ATTACKED = frozenset({"not-attacked", "never-paid"})
"""Attacks whose findings say that nothing was paid, so that there was nothing to attack."""
UNREADABLE = NEVER_ATTACKED | {"completion-form"}
"""Attacks whose findings make a sum with this reward in it not worth attacking: it never pays there either."""


def report_other_shape(audit: Audit, failed: Result) -> None:
    """Report a reward that reads only the shape that the session was just turned to; high where training shows it."""
    session = audit.session
    audit.factory.convention = session.convention
    reads, passed = ("messages", "strings") if session.convention.chat else ("strings", "messages")
    audit.report(
        "other",
        "completion-form",
        f"it reads {reads} only, but with {'this model' if audit.for_gate else 'these prompts'} the trainer passes "
        f"{passed} ({failed.message})",
        fix="accept both: take completion[0]['content'] where a completion is a list",
        severity="high" if audit.for_gate else "low",
        row=0,
        text=PROSE,
        result=failed,
    )


def try_other_shape(audit: Audit, rows: Sequence[int]) -> None:
    """Call a reward that pays nothing with the other shape, and report it when that is what it pays."""
    session, profile = audit.session, audit.profile
    if session.turned or session.convention.mode == "sample":
        return
    kept = profile.forms, profile.levels, profile.answers, profile.wrongs
    profile.levels, profile.answers, profile.wrongs = {}, {}, {}
    session.with_chat(not session.convention.chat)
    discover(profile, session, rows)
    if profile.paid_rows:
        report_other_shape(audit, Result("scores", message="which it scores without reading the answer"))
        return
    session.with_chat(not session.convention.chat)
    profile.forms, profile.levels, profile.answers, profile.wrongs = kept


def check_attacked(audit: Audit) -> None:
    """Report a reward of answers that paid no completion, unless a finding says so already."""
    profile = audit.profile
    if not audit.for_gate or (audit.stated_role or profile.role) not in ("correctness", "composite"):
        return
    if profile.paid_rows or any(level.right > EPSILON for level in profile.levels.values()):
        return
    if any(finding.attack in NEVER_ATTACKED for finding in audit.findings):
        return
    why, fix = _why(audit)
    audit.report(
        "other",
        "not-attacked",
        f"it could not be attacked: no completion was paid ({why})",
        fix=fix,
        severity="high",
        expected="a right answer that is paid",
    )


def _why(audit: Audit) -> tuple[str, str]:
    """Return why nothing was paid, and what to do."""
    profile, rows = audit.profile, range(len(audit.session.rows))
    if any(candidate_answers(profile, audit.session, row) for row in rows):
        failed = [result for _, result in audit.session.known() if result.kind != "scores"]
        return _no_score(failed[0] if failed else None)
    if profile.kind == "code":
        names = ", ".join(SOLUTION_NAMES)
        return (
            f"no right program: the tests in {profile.column!r} cannot be read as arguments and results, and none "
            f"of the columns looked at ({names}) holds one",
            f"add a right program to some rows in a column {SOLUTION_NAMES[0]!r}, which the reward need not read",
        )
    if profile.column:
        return f"no row has a value in {profile.column!r}", f"fill the column {profile.column!r}"
    return (
        f"it reads none of the columns {', '.join(audit.columns) or '(there are none)'} as a reference",
        "read the reference of the row, or say role: format or length where it judges no answers",
    )


def _no_score(failed: Result | None) -> tuple[str, str]:
    if failed is None:
        return (
            "every answer tried was scored None or 0",
            "check how the answer is read; `rlvr audit FILE.py:FUNCTION --dataset DATA` tries the file alone",
        )
    return (
        f"the calls gave no score: {failed.message or failed.kind}",
        "mend what it says (a server that is down, a missing key, a column of another type), and audit again",
    )
