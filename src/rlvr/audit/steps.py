"""The steps of an audit that concern the answer: how it is asked for, whether gold is paid, what else is."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rlvr.audit import odd, unpaid
from rlvr.audit.attacks.answers import answer_trials, blank_trials
from rlvr.audit.attacks.code import code_trials
from rlvr.audit.attacks.formats import format_trials, layout_trials
from rlvr.audit.attacks.refusals import equivalent_trials, prose_trials
from rlvr.audit.attacks.structured import equal_expression_trials, json_trials, uses_json, validity_trials
from rlvr.audit.attacks.stuffing import stuffing_trials
from rlvr.audit.forms import PROSE, Form, candidate_forms
from rlvr.audit.profile import EPSILON, Levels, candidate_answers, discover, measure_all
from rlvr.audit.programs import hollow_programs, read_task
from rlvr.audit.references import read_golds
from rlvr.audit.rows import REFERENCE_NAMES
from rlvr.audit.runner import Result
from rlvr.audit.trials import Trial
from rlvr.records.audit import Severity

if TYPE_CHECKING:
    from rlvr.audit.engine import Audit

GOLD_ROWS = 60
TELLING_FORMS = 40


def settle_form_of_completions(audit: Audit) -> None:
    """Pass completions as messages or strings: as the data suggests, unless the reward can only read the other."""
    session = audit.session
    if session.convention.mode == "sample":
        session.warm_up([(0, PROSE), (0, "\\boxed{42} <answer>42</answer>")])
        return
    texts = [(0, PROSE), (0, "\\boxed{42} <answer>42</answer>")]
    session.warm_up(texts)
    first = session.singles(texts)
    if any(result.kind in ("scores", "hang") for result in first):
        return
    session.with_chat(not session.convention.chat)
    second = session.singles(texts)
    if any(result.kind == "scores" for result in second):
        unpaid.report_other_shape(audit, first[0])
        return
    session.with_chat(not session.convention.chat)


def find_form(audit: Audit) -> None:
    """Find out how the reward wants to be answered, and the scores of right and wrong answers."""
    profile = audit.profile
    rows = list(range(min(len(audit.session.rows), GOLD_ROWS)))
    discover(profile, audit.session, rows)
    if audit.for_gate and not profile.paid_rows and profile.role in ("correctness", "composite"):
        unpaid.try_other_shape(audit, rows)
    if not profile.paid_rows and profile.role in ("correctness", "composite"):
        _find_with_other_column(audit, rows)
    if not profile.paid_rows and profile.column and profile.role != "format":
        _find_telling_form(audit, rows)
    level = next(iter(profile.levels.values()), None)
    if (
        level
        and audit.stated_role is None
        and profile.role == "correctness"
        and level.wrong > level.prose + EPSILON
    ):
        profile.role = "composite"


def _find_telling_form(audit: Audit, rows: Sequence[int]) -> None:
    """Among the forms tried, take the one in which right and wrong differ most, even where it is not paid best."""
    profile, session = audit.profile, audit.session
    row = next((row for row in profile.levels if profile.wrongs.get(row)), None)
    if row is None:
        return
    best: tuple[float, Form | None] = (EPSILON, None)
    answers = candidate_answers(profile, session, row)[:3]
    for form in sorted(candidate_forms(profile.source), key=lambda one: not one.hinted)[:TELLING_FORMS]:
        pairs = [(row, form(answer)) for answer in (*answers, profile.wrongs[row][0])]
        *right, wrong = (result.score for result in session.singles(pairs))
        known = [score for score in right if score is not None]
        if known and wrong is not None:
            gap = max(known, key=lambda score, wrong=wrong: abs(score - wrong)) - wrong  # type: ignore[misc]
            best = max(best, (abs(gap), form), key=lambda pair: pair[0])
    if best[1] is None:
        return
    before, marked = profile.levels[row], profile.forms[0]
    profile.forms = [best[1], *profile.forms]
    measure_all(profile, session, rows)
    now = profile.levels[row]
    if (
        now.span > EPSILON
        and before.right > EPSILON
        and before.wrong >= max(before.right, now.right) - EPSILON
    ):
        _wrong_earns_all(audit, row, marked(profile.wrongs[row][0]), before.wrong)


def _wrong_earns_all(audit: Audit, row: int, text: str, score: float) -> None:
    audit.report(
        "monotone_correct",
        "wrong-earns-all",
        f"a well-formed wrong answer earns all there is ({score:g}): being right adds nothing to it",
        fix="let correctness add to the score of the form; a cap must lie above their sum",
        severity="high",
        row=row,
        text=text,
        result=Result("scores", (score,)),
        full=score,
        expected=f"less than {score:g}",
    )


def _find_with_other_column(audit: Audit, rows: Sequence[int]) -> None:
    """Fill a column that the source reads and the data lacks with the data's reference, and try again."""
    known = [name for name in REFERENCE_NAMES if name in audit.columns]
    wanted = [key for key in audit.source.keys if key in REFERENCE_NAMES and key not in audit.columns]
    wanted += [name for name in audit.facts.names if name in REFERENCE_NAMES and name not in audit.columns]
    if not known or not wanted or audit.session.convention.mode == "sample":
        return
    audit.session.extra_columns = dict.fromkeys(wanted, known[0])
    audit.session.forget()
    golds, column = audit.profile.golds, audit.profile.column
    audit.profile.golds, audit.profile.column = read_golds(audit.session.rows, known[0]), known[0]
    audit.column = known[0]
    audit.profile.levels.clear()
    discover(audit.profile, audit.session, rows)
    if audit.profile.paid_rows:
        audit.report(
            "missing_column",
            "read-but-absent",
            f"it reads {wanted[0]!r}, which the data lacks (it has {', '.join(audit.columns)}), and pays nothing "
            "instead of saying so",
            fix=f"read {known[0]!r}, and index kwargs instead of .get so that a missing column raises",
            severity="high",
            expected=f"a column {wanted[0]!r}",
        )
        return
    audit.session.extra_columns = {}
    audit.session.forget()
    audit.profile.golds, audit.profile.column, audit.column = golds, column, column


def check_gold(audit: Audit) -> None:
    """Report right answers that are not paid, and rewards that pay right and wrong alike."""
    profile = audit.profile
    if profile.role in ("format", "length"):
        _check_pays_something(audit)
        return
    if not profile.column and profile.kind == "none":
        audit.leave_out("answers", "the reward reads no reference column of the data")
        _check_ignores_reference(audit)
        return
    paid = profile.paid_rows
    if not paid:
        _nothing_paid(audit)
        return
    best = max(profile.levels[row].right for row in paid)
    refused = [
        row for row, level in profile.levels.items() if abs(level.span) <= EPSILON and level.right < best
    ]
    if refused:
        _gold_refused(audit, refused, best)
    _gold_in_part(audit, paid, best)
    _wrong_in_full(audit)


def _wrong_in_full(audit: Audit) -> None:
    """Report rows on which a plainly wrong answer is paid as much as the right one."""
    profile = audit.profile
    tops = [profile.levels[row].right for row in profile.paid_rows]
    alike = [
        row
        for row, level in profile.levels.items()
        if abs(level.span) <= EPSILON
        and tops
        and level.wrong >= max(tops) - EPSILON
        and profile.wrongs.get(row)
    ]
    if alike:
        _report_alike(audit, alike[0], len(alike))


def _report_alike(audit: Audit, row: int, count: int) -> None:
    profile = audit.profile
    level = profile.levels[row]
    text = profile.forms[0](profile.wrongs[row][0])
    audit.report(
        "wrong_accepted",
        "plainly-wrong",
        f"the wrong answer {profile.wrongs[row][0]!r} is paid like the right one ({level.wrong:g}; {count} rows)",
        fix="compare with the reference of the row",
        severity="critical",
        row=row,
        text=text,
        result=Result("scores", (level.wrong,)),
        full=level.right,
        rows=(count, len(profile.levels)),
        expected="less than the right answer",
    )


def _check_ignores_reference(audit: Audit) -> None:
    """Report a stated correctness reward that never reads the reference of its row."""
    known = [name for name in REFERENCE_NAMES if name in audit.columns]
    if audit.stated_role not in ("correctness", "composite") or not known:
        return
    row = next(iter(audit.profile.levels), None)
    form = audit.profile.form
    if row is None or form is None or audit.profile.levels[row].right <= EPSILON:
        return
    text = form("zanzibar")
    result = audit.session.singles([(row, text)])[0]
    if result.score is not None and result.score >= audit.profile.levels[row].right - EPSILON:
        audit.report(
            "wrong_accepted",
            "reference-unread",
            f"it never reads {known[0]!r}: a wrong answer is paid in full",
            fix="compare with the reference of the row",
            severity="critical",
            row=row,
            text=text,
            result=result,
            full=audit.profile.levels[row].right,
            expected="less than a right answer",
        )


def _check_pays_something(audit: Audit) -> None:
    level = next(iter(audit.profile.levels.values()), None)
    if level is None:
        audit.leave_out("format", "no completion gave a score")
    elif audit.profile.role == "format" and level.span <= EPSILON and _prose_passes(audit):
        return
    elif audit.profile.role == "format" and level.span <= EPSILON:
        audit.leave_out(
            "format without content", f"no form of {audit.profile.tried} tried earns more than plain prose"
        )


def _prose_passes(audit: Audit) -> bool:
    """Report a format reward that pays plain prose what it pays for its own marks."""
    profile = audit.profile
    row, level = next(iter(profile.levels.items()))
    marked = [form for form in profile.forms if form.hinted and form.structured]
    if not marked or not profile.source.tags or level.prose <= EPSILON:
        return False
    result = audit.session.singles([(row, PROSE)])[0]
    audit.report(
        "format_not_required",
        "no-marks",
        f"plain prose without any mark earns what the format earns ({level.prose:g})",
        fix="pay only when the whole format is there",
        severity="high",
        row=row,
        text=PROSE,
        result=result,
        full=level.right,
        expected=f"less than {level.right:g}",
    )
    return True


def _nothing_paid(audit: Audit) -> None:
    profile = audit.profile
    row = next(iter(profile.levels), 0)
    level = profile.levels.get(row)
    if level is not None and level.right > EPSILON and profile.wrongs.get(row):
        _report_alike(audit, row, len(profile.levels))
        return
    form = profile.form
    answer = profile.answers.get(row, "")
    if level is None or form is None:
        audit.leave_out("answers", "no completion gave a score")
        return
    text = next((one(answer) for one in profile.forms if one.hinted), form(answer))
    audit.report(
        "gold_full_score",
        "never-paid",
        f"the reference answer is never paid: {profile.tried} forms tried on {len(profile.levels)} rows",
        fix="check how the answer is read: types on both sides, the column's format, the pattern",
        severity="high",
        row=row,
        text=text,
        result=Result("scores", (level.right,)),
        full=None,
        rows=(len(profile.levels), len(profile.levels)),
        expected="the full score",
    )


def _gold_refused(audit: Audit, refused: Sequence[int], best: float) -> None:
    profile = audit.profile
    row = refused[0]
    level = profile.levels[row]
    audit.report(
        "gold_full_score",
        "row-never-paid",
        f"the reference {profile.golds[row].text!r} is refused ({len(refused)} of {len(profile.levels)} rows)",
        fix="read reference and completion by the same normalisation",
        severity="high",
        row=row,
        text=profile.forms[0](profile.answers[row]),
        result=Result("scores", (level.right,)),
        full=best,
        rows=(len(refused), len(profile.levels)),
        expected=f"{best:g}",
    )


def _gold_in_part(audit: Audit, paid: Sequence[int], best: float) -> None:
    """Report references that are paid in part while those of other rows are paid in full."""
    profile = audit.profile
    part = [row for row in paid if profile.levels[row].right < best - max(0.02 * abs(best), EPSILON)]
    if not part or len(part) == len(profile.levels):
        return
    row = part[0]
    level = profile.levels[row]
    audit.report(
        "gold_full_score",
        "row-paid-in-part",
        f"the reference {profile.golds[row].text!r} earns {level.right:g}, other rows' {best:g} ({len(part)} rows)",
        fix="pay every row's reference in full, or say why rows differ",
        severity="low",
        row=row,
        text=profile.forms[0](profile.answers[row]),
        result=Result("scores", (level.right,)),
        full=best,
        rows=(len(part), len(profile.levels)),
        expected=f"{best:g}",
    )


def attack_answers(audit: Audit) -> None:
    """Attack what is read as the answer."""
    profile, session = audit.profile, audit.session
    if profile.role in ("format", "length"):
        return
    rows = audit.rows_for(40)
    if not rows and profile.kind != "code":
        _attack_without_answers(audit)
        return
    audit.run(layout_trials(profile, rows))
    audit.run(equivalent_trials(profile, rows))
    _named_in_prose(audit, rows)
    audit.run(answer_trials(profile, session, rows))
    _either_end(audit, rows)
    if uses_json(profile):
        audit.run(json_trials(profile, session, rows))
    if profile.kind != "code":
        audit.run(stuffing_trials(profile, session, rows[:4]))
        if profile.source.calls_any("eval", "exec", "sympify", "parse_expr", "evaluate"):
            audit.run(equal_expression_trials(profile, rows))


def _attack_without_answers(audit: Audit) -> None:
    """Attack a reward that pays right and wrong answers alike: only what needs no answer at all is tried."""
    profile = audit.profile
    rows = [row for row, level in profile.levels.items() if level.right > level.prose + EPSILON][:4]
    if not rows:
        return
    for row in rows:
        level = profile.levels[row]
        profile.levels[row] = Levels(level.right, level.prose, level.prose)
    audit.run(blank_trials(profile, audit.session, rows))
    audit.run(stuffing_trials(profile, audit.session, rows))
    if uses_json(profile):
        audit.run(validity_trials(profile, rows))


def _named_in_prose(audit: Audit, rows: Sequence[int]) -> None:
    """Report right answers that are refused in a sentence; graver where other sentences are paid.

    A reward that pays some sentences searches the text, and then picks up the wrong word in the others.
    """
    trials = list(prose_trials(audit.profile, rows))
    results = audit.session.singles((trial.row, trial.text) for trial in trials)
    searched = {
        trial.row
        for trial, result in zip(trials, results, strict=True)
        if result.score is not None and result.score >= audit.profile.levels[trial.row].right - EPSILON
    }
    severity: Severity = (
        "high" if audit.profile.kind == "choice" and len(searched) * 2 >= len(rows) else "info"
    )
    audit.run([replace(trial, severity=severity) for trial in trials])


def _either_end(audit: Audit, rows: Sequence[int]) -> None:
    """Report a reward that pays two different marked answers in either order."""
    profile, session = audit.profile, audit.session
    form = profile.form
    if form is None or not form.structured or profile.kind == "code":
        return
    hits = []
    for row in rows:
        if not profile.wrongs.get(row):
            continue
        right, wrong = form(profile.answers[row], "So:"), form(profile.wrongs[row][0], "So:")
        results = session.singles([(row, f"{right}\n{wrong}"), (row, f"{wrong}\n{right}")])
        least = profile.levels[row].right - 0.03 * profile.levels[row].span
        if all(result.score is not None and result.score >= least for result in results):
            hits.append((row, f"{right}\n{wrong}", results[0]))
    if len(hits) * 2 > len(rows):
        row, text, result = hits[0]
        audit.report(
            "multiple_answer_tags",
            "either-order",
            "two different marked answers are paid in full in either order: any of them counts",
            fix="let one place decide: the last complete mark, and refuse several different answers",
            severity="high",
            row=row,
            text=text,
            result=result,
            full=profile.levels[row].right,
            rows=(len(hits), len(rows)),
            expected="the score of the last answer alone",
        )


def attack_code(audit: Audit) -> None:
    """Attack a reward that runs programs."""
    if audit.profile.kind != "code":
        return
    rows = audit.profile.paid_rows
    if not rows:
        _attack_any_program(audit)
        return
    if audit.session.contained:
        _attack_programs(audit, rows)
        odd.check_program_limits(audit, rows)
        return
    waiting = threading.Thread(target=odd.check_program_limits, args=(audit, rows))
    waiting.start()  # it mostly waits, so the other programs run beside it
    _attack_programs(audit, rows)
    waiting.join()


def _attack_any_program(audit: Audit) -> None:
    """Try programs without content on a reward that pays right and wrong programs alike."""
    profile, form = audit.profile, audit.profile.form
    row = next((row for row, level in profile.levels.items() if level.right > EPSILON), None)
    if row is None or form is None:
        return
    task = read_task(audit.session.rows[row], profile.golds[row].value, profile.source)
    for name, program in hollow_programs(task)[1:]:
        result = audit.session.singles([(row, form(program))], isolated=True)[0]
        if result.score is not None and result.score >= profile.levels[row].right - EPSILON:
            audit.report(
                "hollow_program",
                "hollow",
                f"a program without content ({name}) is paid in full ({result.score:g})",
                fix="require that tests ran: no comparison executed means no pass",
                severity="critical",
                row=row,
                text=form(program),
                result=result,
                full=profile.levels[row].right,
                expected="the lowest score",
            )
            return


def _attack_programs(audit: Audit, rows: Sequence[int]) -> None:
    trials = list(code_trials(audit.profile, audit.session, rows[:3]))
    leading = [
        one
        for one in trials
        if sum(other.category == one.category for other in trials[: trials.index(one)]) < 2
    ]
    found = _run_programs(audit, leading)
    _run_programs(audit, [one for one in trials if one not in leading and one.category not in found])


def _run_programs(audit: Audit, trials: Sequence[Trial]) -> set[str]:
    """Run programs side by side; returns the categories that were found."""
    audit.session.prefetch((trial.row, trial.text) for trial in trials)
    audit.run(trials)
    return {finding.category for finding in audit.findings}


def attack_format(audit: Audit) -> None:
    """Attack a reward that judges form."""
    profile, session = audit.profile, audit.session
    if profile.role != "format":
        return
    rows = audit.rows_for(20)
    audit.run(format_trials(profile, session, rows))
    audit.run(layout_trials(profile, rows))
    audit.run(stuffing_trials(profile, session, rows[:2]))
    if uses_json(profile):
        audit.run(validity_trials(profile, rows))
