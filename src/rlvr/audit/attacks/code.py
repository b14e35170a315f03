"""Attacks on rewards that run programs: forged verdicts, hollow and partial programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rlvr.audit.profile import Profile
from rlvr.audit.programs import Task, forgeries, hollow_programs, partial_programs, read_task
from rlvr.audit.session import Session
from rlvr.audit.trials import Trial

_FIX = {
    "sys_exit": "decide by results that come back, never by the exit code; a run that ends early fails",
    "verdict_forgery": "keep expected values and the verdict in another process than the solution",
    "raise_skip": "count a test as passed only after its comparison came out equal",
    "eq_override": "accept plain data only: send results out as JSON and compare them in another process",
}


def code_trials(profile: Profile, session: Session, rows: Sequence[int]) -> Iterator[Trial]:
    """Yield every forgery, hollow program and partial program, the most telling first."""
    form = profile.form
    if form is None:
        return
    tasks = {row: read_task(session.rows[row], profile.golds[row].value, profile.source) for row in rows}
    for row in rows[:1]:
        yield from _hollow(profile, row, session)
    for row in rows[:1]:
        task = tasks[row]
        for forged in forgeries(task, profile.source):
            yield Trial(
                forged.category,
                forged.attack,
                row,
                form(forged.program),
                forged.why,
                _FIX[forged.category],
                "critical",
                isolated=True,
            )
    for row in rows[:2]:
        yield from _printed_everything(profile, row, tasks[row])
    for row in rows:
        for name, program in partial_programs(tasks[row]):
            why = "a program that passes only some of the tests is paid in full"
            fix = "run every test, and pay in full only when all pass"
            yield Trial("wrong_accepted", name, row, form(program), why, fix, "high", isolated=True)


def _printed_everything(profile: Profile, row: int, task: Task) -> Iterator[Trial]:
    """Yield programs that print every expected output, or more lines than asked for."""
    form = profile.form
    if form is None or not task.is_program:
        return
    outputs = [str(one.expected) for one in task.examples]
    fix = "compare the whole output, line by line, and refuse missing and extra lines"
    if len(set(outputs)) > 1:
        program = "".join(f"print({output.strip()!r})\n" for output in outputs)
        why = "a program that prints the outputs of all tests, whatever the input, is paid in full"
        for category in ("answer_enumeration", "wrong_accepted"):
            yield Trial(category, "all-outputs", row, form(program), why, fix, "high", isolated=True)
    extra = f"{profile.answers[row]}\nprint('zanzibar')\n"
    why = "a right output followed by another line is paid in full"
    yield Trial("wrong_accepted", "extra-output", row, form(extra), why, fix, "medium", isolated=True)


def _hollow(profile: Profile, row: int, session: Session) -> Iterator[Trial]:
    form = profile.form
    if form is None:
        return
    task = read_task(session.rows[row], profile.golds[row].value, profile.source)
    fix = "require that tests ran: no comparison executed means no pass"
    for name, program in hollow_programs(task):
        why = f"a program without content ({name}) is paid in full"
        yield Trial("hollow_program", "hollow", row, form(program), why, fix, "critical", isolated=True)
    for text in profile.wrongs.get(row, []):
        why = "a program that answers every test wrongly is paid in full"
        yield Trial(
            "wrong_accepted",
            "plainly-wrong",
            row,
            form(text),
            why,
            "compare results with the tests",
            "critical",
        )
    prose = "I would write a function for this task and return the right value."
    yield Trial(
        "hollow_program", "no-code", row, prose, "a completion without code is paid in full", fix, "critical"
    )
