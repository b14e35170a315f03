"""The contract with the trainer: one finite score a completion, the same in every batch, order, call and process."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rlvr.audit.forms import PROSE
from rlvr.audit.runner import PickledTarget, Result

if TYPE_CHECKING:
    from rlvr.audit.engine import Audit

TOLERANCE = 1e-7
HOLLOW = "unused = 1\n"
"""A program that defines nothing that a test could call."""
BATCH_ROWS = 5
HISTORY_CALLS = 60
SLOW_BATCH_S = 0.3
TIME_CALLS = frozenset({"time", "now", "perf_counter", "monotonic", "today", "time_ns"})

Batch = tuple[list[int], list[str]]


def check_signature(audit: Audit) -> None:
    """Report columns that the data lacks, keywords it does not take, and what cannot be pickled."""
    facts = audit.facts
    missing = (
        [name for name, source in audit.session.convention.aliases.items() if not source.startswith("@")]
        if audit.session.convention.mode == "trl"
        else []
    )
    unfilled = [name for name in audit.missing if name not in audit.session.convention.aliases]
    for name in [*missing, *unfilled]:
        audit.report(
            "missing_column",
            "no-such-column",
            f"the reward needs {name!r}; the data has {', '.join(audit.columns) or 'no columns'}",
            fix="rename the parameter or the column",
            severity="high",
            line=facts.line or None,
            expected=f"a column {name!r}",
        )
    if audit.session.convention.mode == "trl" and audit.session.convention.allowed is not None:
        audit.report(
            "other",
            "no-keywords",
            "it takes no **kwargs, so a trainer that passes completion_ids or another column raises TypeError",
            fix="add **kwargs to its parameters",
            severity="medium",
            line=facts.line or None,
        )
    if facts.pickle_error and not isinstance(audit.target, PickledTarget):
        audit.report(
            "pickleable",
            "pickle",
            f"it cannot be pickled ({facts.pickle_error}), so no other process can run it",
            fix="define it at the top level of its module, without a lambda, a closure or a lock",
            severity="medium",
            line=facts.line or None,
        )


def sample_batch(audit: Audit) -> Batch:
    """Return a batch of right, wrong and unformed completions over several rows."""
    profile = audit.profile
    if profile.kind == "code" and profile.form is not None and profile.answers:
        return _program_batch(audit)
    rows = list(profile.answers)[:BATCH_ROWS] or list(range(min(BATCH_ROWS, len(audit.session.rows))))
    form = profile.form
    places, texts = [], []
    for number, row in enumerate(rows):
        answer = profile.answers.get(row, "42")
        wrong = (profile.wrongs.get(row) or ["zanzibar"])[0]
        kinds = [form(answer) if form else answer, form(wrong) if form else wrong]
        kinds += [PROSE, form("") if form else ""] if number % 2 == 0 else []
        for text in kinds:
            places.append(row)
            texts.append(text)
    return places, texts


def _program_batch(audit: Audit) -> Batch:
    """Return right, hollow and wrong programs of two rows; each call of such a reward is costly."""
    profile = audit.profile
    assert profile.form is not None
    places, texts = [], []
    for row in list(profile.answers)[:2]:
        for program in (profile.answers[row], HOLLOW, (profile.wrongs.get(row) or [HOLLOW])[0]):
            places.append(row)
            texts.append(profile.form(program))
    return places, texts


def check_batches(audit: Audit) -> None:
    """Check length, determinism, state, composition, order and mutation on whole batches."""
    batch = sample_batch(audit)
    first = audit.session.sequence([batch])[0] if audit.profile.kind == "code" else None
    if first is not None and first.wall > SLOW_BATCH_S:
        second = third = audit.session.sequence([batch])[0]
    else:
        first, second, third = audit.session.sequence([batch, batch, batch])
    if first.kind != "scores":
        _batch_failed(audit, batch, first)
        return
    if second.kind != "scores" or third.kind != "scores":
        audit.leave_out("deterministic", f"a repeated batch gave {second.message or third.message}")
        return
    _mutation(audit, batch, (first, second, third))
    if not _right_length(audit, batch, first):
        return
    stable = _deterministic(audit, batch, (first, second, third))
    _finite(audit, batch, first)
    _unjudged(audit, batch, first)
    if stable:
        _state(audit, batch, first)
        _composition(audit, batch, first)
        _order(audit, batch, first)


def _batch_failed(audit: Audit, batch: Batch, result: Result) -> None:
    if result.kind == "shape":
        audit.report(
            "right_length",
            "no-list",
            f"it returned {result.message} for a batch of {len(batch[0])}",
            fix="return a list with one score a completion",
            severity="high",
            row=batch[0][0],
            batch=batch,
            result=result,
            expected=f"{len(batch[0])} scores",
        )
    elif result.kind in ("exception", "exit", "crash"):
        singles = audit.session.singles(zip(*batch, strict=True))
        if all(one.kind == "scores" for one in singles):
            audit.report(
                "batch_composition",
                "batch-raises",
                f"a batch raises {result.message}, although each completion alone is scored",
                fix="score each completion by itself",
                severity="high",
                row=batch[0][0],
                batch=batch,
                result=result,
            )
    elif result.kind == "hang":
        audit.report(
            "fast_enough",
            "batch-hangs",
            f"a batch of {len(batch[0])} gave {result.message}",
            fix="bound the time of each completion",
            severity="high",
            row=batch[0][0],
            batch=batch,
            result=result,
        )


def _mutation(audit: Audit, batch: Batch, results: Sequence[Result]) -> None:
    if not any(result.mutated for result in results):
        return
    audit.report(
        "no_mutation",
        "inputs-changed",
        "it changes the prompts, completions or columns it is given; the next reward sees the changed ones",
        fix="work on copies",
        severity="high",
        row=batch[0][0],
        batch=batch,
        result=results[0],
        expected="inputs as they were",
    )


def _right_length(audit: Audit, batch: Batch, result: Result) -> bool:
    if len(result.scores) == len(batch[0]):
        return True
    audit.report(
        "right_length",
        "batch",
        f"{len(result.scores)} scores for {len(batch[0])} completions",
        fix="append exactly one score a completion, also where nothing is found",
        severity="high",
        row=batch[0][0],
        batch=batch,
        result=result,
        expected=f"{len(batch[0])} scores",
    )
    return False


def _finite(audit: Audit, batch: Batch, result: Result) -> None:
    for place, value in result.bad.items():
        _report_bad(audit, batch[0][place], batch[1][place], value, result)
        return


def _unjudged(audit: Audit, batch: Batch, result: Result) -> None:
    """Report None for wrong answers on rows whose right answer is scored: the trainer then drops the row."""
    scored = {row for row, score in zip(batch[0], result.scores, strict=True) if score is not None}
    for place, (row, score) in enumerate(zip(batch[0], result.scores, strict=True)):
        if score is None and place not in result.bad and row in scored and row in audit.profile.paid_rows:
            audit.report(
                "other",
                "none-when-wrong",
                "it returns None for a wrong or unreadable answer: such rows are dropped instead of paid less",
                fix="return the lowest score; keep None for rows that the reward does not judge at all",
                severity="medium",
                row=row,
                text=batch[1][place],
                batch=batch,
                result=result,
                expected="the lowest score",
            )
            return


def check_all_finite(audit: Audit) -> None:
    """Report the first score of any call so far that is not a finite number."""
    for (row, text), result in audit.session.known():
        if result.bad and result.kind == "scores":
            _report_bad(audit, row, text, result.bad.get(0, ""), result)
            return


def _report_bad(audit: Audit, row: int, text: str, value: str, result: Result) -> None:
    number = value in ("nan", "inf", "-inf")
    audit.report(
        "finite" if number else "other",
        "not-finite" if number else "not-a-number",
        f"it returned {value}: the advantage of the whole group becomes NaN"
        if number
        else f"it returned {value}",
        fix="check for NaN, infinity and division by zero before returning"
        if number
        else "return plain floats",
        severity="high",
        row=row,
        text=text,
        result=result,
        expected="a finite number",
    )


def _same(one: Sequence[float | None], other: Sequence[float | None]) -> bool:
    if len(one) != len(other):
        return False
    return all(
        a == b or (a is not None and b is not None and abs(a - b) <= TOLERANCE * max(1.0, abs(a)))
        for a, b in zip(one, other, strict=True)
    )


def _deterministic(audit: Audit, batch: Batch, results: Sequence[Result]) -> bool:
    """Report jitter or memory; returns whether the same batch always got the same scores."""
    repeated = all(_same(results[0].scores, one.scores) for one in results[1:])
    fresh = audit.session.sequence([batch])[0]
    if fresh.kind != "scores":
        audit.leave_out("deterministic", f"a fresh process gave {fresh.message}")
        return False
    if repeated and _same(results[0].scores, fresh.scores):
        return not _depends_on_hash_or_time(audit, batch, results[0])
    seeded = audit.session.sequence([batch, batch, batch], seed=0)
    by_seed = _same(seeded[0].scores, seeded[1].scores) and _same(seeded[1].scores, seeded[2].scores)
    if by_seed or not _same(results[0].scores, fresh.scores):
        _jitter(audit, batch, results, "its random numbers differ from call to call")
        return False
    audit.report(
        "state_leak",
        "repeated-batch",
        "the same batch gets other scores the second time: something is kept between calls",
        fix="keep nothing between calls; the trainer may call in any order and from several processes",
        severity="high",
        row=batch[0][0],
        batch=batch,
        result=results[1],
        expected="the same scores each time",
    )
    _jitter(audit, batch, results, "it remembers earlier calls")
    return False


def _jitter(audit: Audit, batch: Batch, results: Sequence[Result], why: str) -> None:
    place = next(
        (
            at
            for at, pair in enumerate(zip(results[0].scores, results[-1].scores, strict=False))
            if pair[0] != pair[1]
        ),
        0,
    )
    audit.report(
        "deterministic",
        "repeated-batch",
        f"the same completion gets different scores in equal calls ({why})",
        fix="remove chance, clock and hash order from the score",
        severity="high",
        row=batch[0][place],
        batch=batch,
        result=results[1],
        expected="the same scores each time",
        line=audit.source.line_of("random", "uniform", "gauss", "choice", "normal", "randint", "time", "now"),
    )


def _depends_on_hash_or_time(audit: Audit, batch: Batch, first: Result) -> bool:
    if audit.source.calls & {"hash", "id"} or audit.source.calls_any("__hash__"):
        with audit.other_process(hash_seed="77") as session:
            other = session.sequence([batch])[0]
        if other.kind == "scores" and not _same(first.scores, other.scores):
            _jitter(audit, batch, (first, other), "hash() of a text differs from process to process")
            return True
    if audit.source.calls_any(*TIME_CALLS):
        later = audit.session.sequence([batch], shift=100_003.7)[0]
        if later.kind == "scores" and not _same(first.scores, later.scores):
            _jitter(audit, batch, (first, later), "it reads the clock")
            return True
    return False


def _state(audit: Audit, batch: Batch, first: Result) -> None:
    """Call it many times with other pairs of the same rows and texts, then compare the same batch again."""
    rows, texts = batch
    if audit.profile.kind == "code":
        _program_state(audit, batch)
        return
    turned = texts[1:] + texts[:1]
    shuffled = list(texts)
    random.Random(5).shuffle(shuffled)  # noqa: S311  # an order, not a secret
    others = rows[::-1]
    history: list[Batch] = [(rows, turned), (rows, shuffled), (others, texts), (rows, [PROSE] * len(rows))]
    affordable = int(min(audit.session.seconds_left / 6, 1.5) / max(first.wall * 1.5, 1e-4))
    history = (history * (HISTORY_CALLS // len(history)))[: max(3, min(HISTORY_CALLS, affordable))]
    results = audit.session.sequence([*history, batch])
    last = results[-1]
    if last.kind != "scores" or _same(first.scores, last.scores):
        return
    place = next(
        at for at, pair in enumerate(zip(first.scores, last.scores, strict=False)) if pair[0] != pair[1]
    )
    audit.report(
        "state_leak",
        "after-other-calls",
        f"after {len(history)} other calls the same completion gets {last.scores[place]} instead of "
        f"{first.scores[place]}: something is kept between calls",
        fix="keep nothing between calls, or key a cache by completion, reference and every other column",
        severity="high",
        row=rows[place],
        text=texts[place],
        result=Result("scores", (last.scores[place],)),
        expected=f"{first.scores[place]}, as in a fresh process",
        batch=batch,
    )


def _program_state(audit: Audit, batch: Batch) -> None:
    """Send a hollow program right after a right one: definitions of the first must be gone."""
    rows, texts = batch
    right, hollow = ([rows[0]], [texts[0]]), ([rows[0]], [texts[1]])
    fresh = audit.session.singles([(rows[0], texts[1])])[0]
    after = audit.session.sequence([right, hollow])[-1]
    if after.kind == "scores" and fresh.kind == "scores" and not _same(after.scores, fresh.scores):
        audit.report(
            "state_leak",
            "hollow-after-right",
            f"a hollow program gets {after.score} right after a right one, and {fresh.score} in a fresh process",
            fix="run every program in a process and name space of its own",
            severity="high",
            row=rows[0],
            text=texts[1],
            batch=hollow,
            result=after,
            expected=f"{fresh.score}",
        )


def _composition(audit: Audit, batch: Batch, first: Result) -> None:
    singles = audit.session.singles(zip(*batch, strict=True))
    rows, texts = batch
    for place, single in enumerate(singles):
        if single.kind != "scores" or len(single.scores) != 1:
            continue
        if not _same(single.scores, first.scores[place : place + 1]):
            audit.report(
                "batch_composition",
                "alone-or-together",
                f"alone the completion gets {single.score}, in a batch {first.scores[place]}",
                fix="score each completion by itself; the trainer does the comparison within a group",
                severity="high",
                row=rows[place],
                text=texts[place],
                batch=batch,
                result=Result("scores", (first.scores[place],)),
                expected=f"{single.score}, as alone",
            )
            return
    group = ([rows[0]] * 4, [texts[0]] * 4)
    same = audit.session.sequence([group])[0]
    if same.kind == "scores" and len(set(same.scores)) > 1:
        audit.report(
            "batch_composition",
            "equal-completions",
            f"four equal completions of one prompt get {list(same.scores)}",
            fix="score each completion by itself",
            severity="high",
            row=rows[0],
            text=texts[0],
            batch=group,
            result=same,
            expected="four equal scores",
        )


def _order(audit: Audit, batch: Batch, first: Result) -> None:
    rows, texts = batch
    order = list(range(len(rows)))[::-1]
    order = order[2:] + order[:2]
    turned = ([rows[at] for at in order], [texts[at] for at in order])
    result = audit.session.sequence([turned])[0]
    if result.kind != "scores" or len(result.scores) != len(order):
        return
    expected = [first.scores[at] for at in order]
    if _same(result.scores, expected):
        return
    place = next(
        at for at, pair in enumerate(zip(result.scores, expected, strict=True)) if pair[0] != pair[1]
    )
    audit.report(
        "batch_order",
        "permuted",
        f"in another order the same completion gets {result.scores[place]} instead of {expected[place]}",
        fix="read the reference at the completion's own position, and never another row's",
        severity="high",
        row=turned[0][place],
        text=turned[1][place],
        batch=turned,
        result=Result("scores", (result.scores[place],)),
        expected=f"{expected[place]}",
    )
