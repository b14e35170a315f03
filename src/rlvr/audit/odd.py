"""Odd completions: none may raise, hang, end the process, or be executed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from rlvr.audit.attacks.structured import WRITES_CANARY
from rlvr.audit.orders import words
from rlvr.audit.patterns import pumps
from rlvr.audit.programs import canary_program, read_task
from rlvr.audit.runner import CALL_SECONDS, Result
from rlvr.records.audit import Severity

if TYPE_CHECKING:
    from rlvr.audit.engine import Audit

SLOW_S = 0.7
"""CPU seconds that one completion may take."""
SLEEP_S = 0.15
SLOW_WALL_S = 2.0
"""Wall seconds that one completion may take; more than of CPU, since the machine may be busy."""
SHORT_TEXT = 400
LONG_WORDS = 3_500
LONGEST_WAIT_S = 11.0
NUMBERS = (
    "",
    "abc",
    "1/0",
    "0",
    "12 apples",
    "-",
    ".",
    "²",
    "1,2,3",
    "None",
    "1e999",
    "nan",
    "inf",
    "--5",
    "1.2.3",
    "٤٢",
)
MARKS = (
    "\\boxed{",
    "\\boxed{1",
    "####",
    "<answer>",
    "</answer>",
    "<think>",
    "{",
    "}",
    "[",
    "```",
    "```python\n",
    "((((",
)
TEXTS = (
    '"',
    "%s %d {0} {x}",
    "\\frac{1}{0}",
    "\\",
    "$",
    "*",
    "?",
    "[a-",
    "null",
    "[]",
    "{}",
    '"x"',
    "42",
    "true",
    "-1",
)
OBJECTS = ('{"answer": null}', '{"answer": {}}', '{"answer": []}', '{"x": 1}', "[1, 2]", '[{"answer": 1}]')


class Oddity(NamedTuple):
    """One odd completion.

    Attributes:
        text: The completion.
        exotic: Whether a model rarely writes it, so that a failure on it weighs less.
    """

    text: str
    exotic: bool


def oddities(audit: Audit, row: int) -> Iterator[Oddity]:
    """Yield odd completions, bare and in the reward's own form."""
    form = audit.profile.form
    for text in ("", " ", "I do not know.", *NUMBERS, *MARKS, *TEXTS, *OBJECTS):
        yield Oddity(text, False)
    if form is not None:
        for text in (*NUMBERS, *TEXTS, "{", "1 / 0", "x = ", "()", "\n", "a\nb"):
            yield Oddity(form(text), False)
        whole = form(audit.profile.answers.get(row, "42"))
        yield from (
            Oddity(part, False) for part in (whole[: len(whole) // 2], whole[len(whole) // 2 :], whole[:-1])
        )
    deep = (
        "[" * 5_000,
        "{" * 3_000,
        "(" * 3_000,
        '{"a":' * 3_000,
        "9" * 5_000,
        "\x00",
        "\ud800",
        "-" * 3_000,
    )
    for text in deep:
        yield Oddity(text, True)
        if form is not None:
            yield Oddity(form(text), True)


def check_oddities(audit: Audit) -> None:
    """Report exceptions, ended processes and hangs on odd completions."""
    row = next(iter(audit.profile.answers), 0)
    if audit.profile.kind == "code":
        _check_odd_programs(audit, row)
        return
    odd = list(dict.fromkeys(oddities(audit, row)))
    results = audit.session.singles((row, one.text) for one in odd)
    failures = [(one, result) for one, result in zip(odd, results, strict=True) if result.kind in _BROKEN]
    plain = [(one, result) for one, result in failures if not one.exotic]
    if plain:
        _report_failure(audit, row, *plain[0], len(plain), len(odd))
    elif failures:
        _report_failure(audit, row, *failures[0], len(failures), len(odd))
    slow = [(one, result) for one, result in zip(odd, results, strict=True) if _is_slow(audit, result)]
    for one, result in slow[:2]:
        if _report_slow(audit, row, one.text, result):
            return


def _check_odd_programs(audit: Audit, row: int) -> None:
    """Report a code reward that raises, or ends its own process, on programs that are not ones."""
    form = audit.profile.form
    texts = ["", "I cannot do that.", "```python\n", "```", "def f(:"]
    programs = (
        "def f(:\n",
        "\tx = 1\n y",
        "import sys\nsys.exit(0)\n",
        "raise KeyboardInterrupt\n",
        "x = '\x00'\n",
    )
    texts += [form(program) for program in programs] if form else []
    for number, text in enumerate(texts):
        result = audit.session.singles([(row, text)], isolated=True)[0]
        if result.kind in _BROKEN:
            _report_failure(audit, row, Oddity(text, number == len(texts) - 1), result, 1, len(texts))
            if result.kind in ("exit", "crash") and "exit" in text:
                _report_ended(audit, row, text, result)
            return


def _report_ended(audit: Audit, row: int, text: str, result: Result) -> None:
    audit.report(
        "sys_exit",
        "ends-the-trainer",
        f"sys.exit in a completion reaches the trainer ({result.message}): the run ends",
        fix="run model-written code in a process of its own",
        severity="critical",
        row=row,
        text=text,
        result=result,
        expected="the score of a wrong program",
    )


_BROKEN = ("exception", "exit", "crash", "shape")


def _is_slow(audit: Audit, result: Result) -> bool:
    if result.kind == "hang":
        return True
    slow = result.seconds > SLOW_S or result.wall > SLOW_WALL_S
    return result.kind == "scores" and slow and not audit.source.runs_code


def _report_failure(audit: Audit, row: int, odd: Oddity, result: Result, count: int, total: int) -> None:
    if result.kind == "shape":
        audit.report(
            "right_length",
            "no-list",
            f"it returned {result.message}",
            fix="return a list with one score a completion",
            severity="high",
            row=row,
            text=odd.text,
            result=result,
            expected="one score",
        )
        return
    ended = result.kind in ("exit", "crash")
    what = "ends the process" if result.kind == "crash" else f"raises {result.message}"
    audit.report(
        "no_exception",
        "odd-text" if not odd.exotic else "exotic-text",
        f"a completion {what} ({count} of {total} odd texts); in training this ends the run",
        fix="catch what the parsing can raise, and return the score of an unreadable answer",
        severity="critical" if ended else _exotic_severity(odd, result) if odd.exotic else "high",
        row=row,
        text=odd.text,
        result=result,
        expected="a score",
    )


def _exotic_severity(odd: Oddity, result: Result) -> Severity:
    """Deep nesting is what a model in a loop does write; a surrogate or thousands of digits hardly."""
    return "medium" if "Recursion" in result.message and "[[[" in odd.text else "low"


def _report_slow(audit: Audit, row: int, text: str, result: Result) -> bool:
    """Report a slow completion if it is slow a second time; how plain the text is decides how grave it is."""
    times = 1 if result.kind == "hang" else 2  # what is slow only the first time was loading something
    own_limit = bool(audit.source.timeouts) or not audit.facts.file or _parses_formulas(audit)
    clock = CALL_SECONDS * 3 if own_limit else CALL_SECONDS
    again = audit.session.sequence([([row], [text])] * times, clock=clock)[-1]
    if again.kind == "scores" and not _is_slow(audit, again):
        return False
    result = result if again.kind == "skipped" else again
    what = result.message if result.kind == "hang" else f"it took {max(result.seconds, result.wall):.1f} s"
    audit.report(
        "fast_enough",
        "slow-text",
        f"one completion of {len(text):,} characters: {what}",
        fix="use a pattern without nested or adjacent repeats, and bound the length that is searched",
        severity="low" if own_limit and again.kind == "scores" else _slow_severity(audit, text),
        row=row,
        text=text,
        result=result,
        expected=f"a score within {SLOW_S:g} s",
    )
    return True


def _parses_formulas(audit: Audit) -> bool:
    """Whether it hands texts to a library of formulas, which has limits of its own and is slow on towers."""
    return "verify" in audit.source.calls or "parse" in audit.source.calls


def _slow_severity(audit: Audit, text: str) -> Severity:
    """A short text that hangs is grave; thousands of equal marks or spaces are what a model rarely writes."""
    if _parses_formulas(audit):
        return "low"
    if len(text) <= SHORT_TEXT:
        return "high"
    common = max(text.count(letter) for letter in set(text[:2000]))
    flood = common > 0.5 * len(text) or len(set(text[:2000].split())) < 4
    return "low" if flood else "high"


def check_long_text(audit: Audit) -> None:
    """Report a reward that takes long for one completion of ordinary words, as long as a model may write."""
    if audit.profile.kind == "code":
        return
    row = next(iter(audit.profile.answers), 0)
    text = words(LONG_WORDS)
    text = (
        audit.profile.form.after(audit.profile.answers.get(row, "42"), text) if audit.profile.form else text
    )
    result = audit.session.singles([(row, text)])[0]
    if _is_slow(audit, result):
        _report_slow(audit, row, text, result)


def check_sleep(audit: Audit) -> None:
    """Report a reward that sleeps on ordinary text; later steps would only wait for it."""
    for (row, text), result in audit.session.known()[:1]:
        if audit.source.calls_any("sleep") and result.wall > SLEEP_S and result.seconds < SLEEP_S / 4:
            _report_sleep(audit, row, text, result)


def _report_sleep(audit: Audit, row: int, text: str, result: Result) -> None:
    audit.report(
        "fast_enough",
        "sleeps",
        f"it sleeps: {result.wall:.1f} s for one completion, so minutes for every batch of training",
        fix="remove the sleep; wait for many requests at once where a server must be asked",
        severity="high",
        row=row,
        text=text,
        result=result,
        line=audit.source.line_of("sleep"),
        expected=f"a score within {SLEEP_S:g} s",
    )


def check_blow_up(audit: Audit) -> None:
    """Report texts on which a pattern, or an evaluation, takes exploding time."""
    if audit.profile.kind == "code":  # an endless program is tried on its own
        return
    row = next(iter(audit.profile.answers), 0)
    for text in _slow_texts(audit):
        if audit.session.seconds_left < 1.0:
            audit.leave_out("fast_enough (blow-up of patterns)", "the audit's time was used up")
            return
        result = audit.session.singles([(row, text)])[0]
        if _is_slow(audit, result) and _report_slow(audit, row, text, result):
            return


def _slow_texts(audit: Audit) -> list[str]:
    form = audit.profile.form
    found = [text for pattern in audit.source.patterns[:12] for text in pumps(pattern)]
    found += [
        f"{words(3_500)}.",
        "a" * 8_000 + "!",
        " " * 8_000 + "x",
        "\n" * 4_000 + "x",
        "1" * 4_000 + "x",
        "1," * 2_000 + "x",
    ]
    found += [
        "a " * 3_000 + "!",
        "<think>" * 800,
        "<answer>" * 800,
        "\\boxed{" * 800,
        "{" * 4_000,
        "( " * 2_000,
    ]
    found += ["aaaa aaaa " * 8 + "!", "word word, " * 8 + "\x00", "1 + " * 800 + "x"]
    if form is not None:
        wrapped = [
            "a" * 40 + "!",
            "1" * 40 + "x",
            "a " * 30 + "!",
            "9**9**9**9",
            "9^{9^{9^{9}}}",
            "9" * 40 + "!",
        ]
        wrapped += ["(" * 60 + "1" + ")" * 60, "1+" * 200 + "1", "x" * 6_000]
        found += [form(text) for text in wrapped]
    return list(dict.fromkeys(found))


def check_known_hangs(audit: Audit) -> None:
    """Report the shortest completion of all the earlier steps that hung or was slow."""
    if audit.profile.kind == "code" or any(one.category == "fast_enough" for one in audit.findings):
        return
    slow = [(pair, result) for pair, result in audit.session.known() if _is_slow(audit, result)]
    for (row, text), result in sorted(slow, key=lambda entry: len(entry[0][1]))[:2]:
        if _report_slow(audit, row, text, result):
            return


def check_executed(audit: Audit) -> None:
    """Report a reward that evaluates completions: a harmless file tells."""
    source = audit.source
    row = next(iter(audit.profile.answers), 0)
    if audit.profile.kind == "code" or source.runs_code:
        _check_in_process(audit, row)
        if audit.profile.kind == "code":
            return
    form = audit.profile.form
    texts = [text for raw in WRITES_CANARY for text in ([raw, form(raw)] if form else [raw])]
    results = audit.session.singles([(row, text) for text in texts], isolated=False)
    for text, result in zip(texts, results, strict=True):
        if result.canary:
            audit.report(
                "code_injection",
                "evaluated",
                "a completion is evaluated: it wrote a file, and could as well read the reference or the weights",
                fix="never eval, exec or sympify model output; parse numbers with float or a grammar of your own",
                severity="critical",
                row=row,
                text=text,
                result=result,
                line=source.line_of("eval", "exec", "sympify", "parse_expr", "compile", "load"),
                expected="no effect",
            )
            return


def _check_in_process(audit: Audit, row: int) -> None:
    form = audit.profile.form
    if form is None:
        return
    task = read_task(audit.session.rows[row], audit.profile.golds[row].value, audit.source)
    text = form(canary_program(task.entry))
    results = audit.session.sequence([([row], [text])])
    if results and results[0].canary and audit.session.is_worker(results[0].canary):
        audit.report(
            "code_injection",
            "same-process",
            "model-written code runs inside the trainer's process: it can forge scores, read references, or stop it",
            fix="run it in a process of its own with limits, such as the built-in unit_tests reward",
            severity="high",
            row=row,
            text=text,
            result=results[0],
            line=audit.source.line_of("exec", "eval", "run_path"),
            expected="another process",
        )


def check_program_limits(audit: Audit, rows: Sequence[int]) -> None:
    """Report a code reward without a clock: an endless program must be stopped and refused."""
    if audit.profile.kind != "code" or audit.profile.form is None or not rows:
        return
    row = rows[0]
    task = read_task(audit.session.rows[row], audit.profile.golds[row].value, audit.source)
    loop = f"def {task.entry}(*args, **kwargs):\n    while True:\n        pass\n"
    program = "while True:\n    pass\n" if task.is_program else loop
    text = audit.profile.form(program)
    stated = [value for value in (*audit.source.timeouts, audit.facts.time_limit) if 0 < value < 60]
    wait = min(LONGEST_WAIT_S, (max(stated) * 1.2 + 2.0) * max(1, len(task.examples)) if stated else 3.0)
    result = audit.session.singles([(row, text)], wait)[0]
    if result.kind == "hang":
        if stated and wait >= LONGEST_WAIT_S:
            audit.leave_out(
                "fast_enough (endless program)", f"the stated timeout is over {LONGEST_WAIT_S:g} s"
            )
            return
        audit.report(
            "fast_enough",
            "endless-program",
            f"an endless program is not stopped ({result.message})",
            fix="give every run a limit of CPU time, and count what exceeds it as wrong",
            severity="high",
            row=row,
            text=text,
            result=result,
            expected="a low score within the reward's own limit",
        )
    elif result.score is not None and result.score >= audit.profile.levels[row].right - 1e-6:
        audit.report(
            "raise_skip",
            "endless-program",
            "a program that never ends is paid in full",
            fix="count what exceeds the limit as wrong",
            severity="critical",
            row=row,
            text=text,
            result=result,
            full=audit.profile.levels[row].right,
            expected="what a wrong program gets",
        )
