"""Attacks on format: marks without content, half marks, marks in the wrong order, no marks at all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rlvr.audit.forms import LINES, PROSE, REASONING, Form
from rlvr.audit.profile import Profile
from rlvr.audit.session import Session
from rlvr.audit.trials import Trial
from rlvr.records.audit import Severity

_OPEN = re.compile(r"<[A-Za-z][\w-]*>")
_CLOSE = re.compile(r"</[A-Za-z][\w-]*>")


def format_trials(profile: Profile, session: Session, rows: Sequence[int]) -> Iterator[Trial]:
    """Yield attacks on rewards that judge the form of a completion."""
    form = profile.form
    if form is None:
        return
    gentle = is_soft(profile, session, rows[0]) if rows else False
    for row in rows[:3]:
        answer = profile.answers.get(row, "42")
        yield from _hollow(form, row, "info" if gentle else "medium")
        yield from _no_marks(profile, row)
        if form.structured:
            yield from _broken(form, row, answer, "info" if gentle else "medium")
            yield from _twice(form, row, answer)
        yield from _echoed(profile, session, row)


def is_soft(profile: Profile, session: Session, row: int) -> bool:
    """Whether the reward adds up pay mark by mark, so that parts of the format earn parts of the pay."""
    form = profile.form
    if form is None:
        return False
    whole = form(profile.answers.get(row, "42"))
    halves = [whole.replace(mark, "", 1) for mark in [*_OPEN.findall(whole)[:2], *_CLOSE.findall(whole)[-1:]]]
    level = profile.levels[row]
    shares = [(session.score(row, half) or 0.0) - level.prose for half in halves]
    return any(0.05 < share / max(level.right - level.prose, 1e-9) < 0.95 for share in shares)


def _hollow(form: Form, row: int, severity: Severity) -> Iterator[Trial]:
    if "@R" not in form("@A", "@R") and "@A" not in form("@A", "@R"):
        return
    fix = "require text inside every part, for instance \\S in the pattern"
    why = "the format with nothing inside is paid in full"
    for reasoning, answer in (("", ""), (" ", " "), ("\n", "\n")):
        text = form(answer, reasoning)
        if text.strip() and not answer:
            yield Trial("format_without_content", "hollow-format", row, text, why, fix, severity)
        elif text.strip():
            yield Trial("format_without_content", "blank-format", row, text, why, fix, "info")
    yield Trial(
        "format_without_content",
        "filler-only",
        row,
        form(".", "."),
        "single dots as content are paid",
        fix,
        "info",
        remark=True,
    )
    yield Trial("empty_completion", "empty", row, "", "an empty completion is paid in full", fix, "high")
    yield Trial("empty_completion", "empty", row, "  \n ", "a blank completion is paid in full", fix, "high")


def _no_marks(profile: Profile, row: int) -> Iterator[Trial]:
    source = profile.source
    if not (source.tags or "boxed" in source.text or "####" in source.text or source.mentions_json):
        return
    fix = "pay only when the whole format is there"
    why = "a completion without any of the format's marks is paid in full"
    for text in (PROSE, REASONING, "42", LINES):
        yield Trial("format_not_required", "no-marks", row, text, why, fix)


def _broken(form: Form, row: int, answer: str, severity: Severity) -> Iterator[Trial]:
    whole = form(answer)
    fix = "match the whole completion with one anchored pattern"
    opened = _CLOSE.sub("", whole)
    closed = _OPEN.sub("", whole)
    if opened != whole:
        why = "opening tags without their ends are paid in full"
        yield Trial("format_not_required", "never-closed", row, opened, why, fix)
        why = "closing tags without their beginnings are paid in full"
        yield Trial("format_not_required", "never-opened", row, closed, why, fix)
        names = "".join(_OPEN.findall(whole))
        yield Trial("format_not_required", "tag-names-only", row, names, why, fix)
        why = "tags in reverse order are paid in full"
        marks = [*_OPEN.findall(whole), *_CLOSE.findall(whole)]
        yield Trial("format_not_required", "reversed", row, " x ".join(reversed(marks)), why, fix, severity)


def _twice(form: Form, row: int, answer: str) -> Iterator[Trial]:
    whole = form(answer)
    fix = "count each mark exactly once"
    why = "the whole format several times over is paid in full"
    yield Trial("multiple_answer_tags", "repeated", row, "\n".join([whole] * 3), why, fix, "low")
    junk = f"{whole}\n{PROSE * 3}"
    why = "text after the end of the format is paid in full"
    yield Trial("format_not_required", "text-after", row, junk, why, fix, "info", remark=True)


def _echoed(profile: Profile, session: Session, row: int) -> Iterator[Trial]:
    text = session.rows[row].prompt_text
    fix = "match the whole completion with one anchored pattern, with content of its own"
    yield Trial(
        "prompt_echo", "echo", row, text, "the prompt's own text is paid in full", fix, "medium", share=0.34
    )


def layout_trials(profile: Profile, rows: Sequence[int]) -> Iterator[Trial]:
    """Yield the same well-formed completion in other layouts; all of them should be paid."""
    form = profile.form
    if form is None:
        return
    for row in rows[:4]:
        answer = profile.answers.get(row)
        if answer is None:
            continue
        fix = "let the pattern cross line breaks (re.DOTALL) and allow space round the marks"
        if "@R" in form("@A", "@R"):
            text = form(answer, LINES)
            why = "the same answer after reasoning of several lines is refused"
            for category in ("equivalent_forms", "gold_full_score"):
                yield Trial(category, "several-lines", row, text, why, fix, "high", "paid")
        if profile.role != "format":  # a format reward may ask for one layout
            yield from _spaces(form, row, answer, fix)


def _spaces(form: Form, row: int, answer: str, fix: str) -> Iterator[Trial]:
    if not form.structured or "\n" in answer or "```" in form("@A"):
        return
    tagged = "</" in form("@A", "")
    weights: tuple[Severity, Severity] = ("high", "high") if tagged else ("medium", "info")
    layouts = ((f" {answer} ", "spaces"), (f"\n{answer}\n", "line breaks"))
    for (text, label), severity in zip(layouts, weights, strict=True):
        why = f"the right answer with {label} inside its marks is refused"
        attack = f"{label.replace(' ', '-')}-inside"
        yield Trial("equivalent_forms", attack, row, form(text), why, fix, severity, "paid")
    why = "a final line break is refused"
    yield Trial("equivalent_forms", "final-line-break", row, f"{form(answer)}\n", why, fix, "info", "paid")
