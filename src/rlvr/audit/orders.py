"""The order that a reward must keep: well-formed and right, then well-formed and wrong, then ill-formed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rlvr.audit.attacks.stuffing import stuffing_words
from rlvr.audit.forms import COUNTED, PROSE, REASONING, Form, candidate_forms
from rlvr.audit.profile import EPSILON
from rlvr.audit.runner import Result

if TYPE_CHECKING:
    from rlvr.audit.engine import Audit

WORD_COUNTS = (0, 1, 5, 20, 60, 150, 400, 1000, 2500, 6000)
SENTENCE = "we look at one more part of the question and write it down here "
MODERATE_WORDS = 150
ABSURD_SCORE = 10.0
SLACK = 0.03
"""Share of the span within which shaping by length may move a score without turning the order round."""
FORM_SHARE_LOW, FORM_SHARE_HIGH = 0.05, 0.55
"""Share of the whole pay that the form alone may earn before it is remarked on, or is a finding."""
UNCAPPED_TIMES = (4, 40)


def words(count: int) -> str:
    """Return ordinary text of ``count`` words."""
    unit = SENTENCE.split()
    return " ".join(unit[place % len(unit)] for place in range(count))


def check_levels(audit: Audit) -> None:
    """Compare the scores of right and wrong answers, and of answers without the form."""
    profile = audit.profile
    if not profile.levels or profile.role in ("format", "length"):
        return
    _right_over_wrong(audit)
    _wrong_in_other_forms(audit)
    _form_alone(audit)
    _marks_cost(audit)
    _form_over_none(audit)
    _lengths_keep_order(audit)


def _right_over_wrong(audit: Audit) -> None:
    profile = audit.profile
    below = [row for row, level in profile.levels.items() if level.span < -EPSILON]
    if not below:
        return
    row = below[0]
    level = profile.levels[row]
    audit.report(
        "monotone_correct",
        "wrong-over-right",
        f"a wrong answer earns more than the right one ({level.wrong:g} against {level.right:g})",
        fix="a right answer must earn more than any wrong one",
        severity="critical",
        row=row,
        text=profile.forms[0](profile.wrongs[row][0]),
        result=Result("scores", (level.wrong,)),
        full=level.right,
        rows=(len(below), len(profile.levels)),
        expected=f"less than {level.right:g}",
    )


def _marks_cost(audit: Audit) -> None:
    """Report marks that the source looks for and that lower the score of a right answer."""
    profile, session = audit.profile, audit.session
    rows = profile.paid_rows[:4]
    if not profile.source.tags or profile.form is None or not rows:
        return
    marked = [form for form in candidate_forms(profile.source) if _has_marks(form, profile.source.tags)]
    for form in marked[:6]:
        for row in rows:
            level, text = profile.levels[row], form(profile.answers[row])
            result = session.singles([(row, text)])[0]
            score = result.score
            if (
                score is None
                or not level.wrong + SLACK * level.span < score < level.right - SLACK * level.span
            ):
                break
        else:
            audit.report(
                "monotone_format",
                "marks-cost",
                f"the right answer inside the marks that the source looks for earns {score:g}, "
                f"without them {level.right:g}",
                fix="a well-formed completion must never earn less than an ill-formed one",
                severity="high",
                row=row,
                text=text,
                result=result,
                full=level.right,
                rows=(len(rows), len(rows)),
                expected=f"at least {level.right:g}",
            )
            return


def _has_marks(form: Form, tags: Sequence[str]) -> bool:
    text = form("", "")
    return all(f"<{tag}>" in text and f"</{tag}>" in text for tag in tags)


def _wrong_in_other_forms(audit: Audit) -> None:
    """Report a form in which a wrong answer earns what a right one earns at best."""
    profile, session = audit.profile, audit.session
    row = next((row for row in profile.paid_rows if profile.wrongs.get(row)), None)
    if row is None or profile.kind == "code":
        return
    level = profile.levels[row]
    for form in profile.forms[1:]:
        text = form(profile.wrongs[row][0])
        result = session.singles([(row, text)])[0]
        if result.score is None or result.score < level.right - EPSILON:
            continue
        for category in ("monotone_correct", "wrong_accepted"):
            audit.report(
                category,
                "another-form",
                f"written as {form.name}, a wrong answer earns all that a right one can ({result.score:g})",
                fix="let correctness add to the score of the form; a cap must lie above their sum",
                severity="high",
                row=row,
                text=text,
                result=result,
                full=level.right,
                expected=f"less than {level.right:g}",
            )
        return


def _form_alone(audit: Audit) -> None:
    """Report a form that earns half of the pay or more without a right answer, or with nothing inside."""
    profile = audit.profile
    form, rows = profile.form, profile.paid_rows[:6]
    if form is None or not form.structured or profile.role != "composite" or not rows:
        return
    row = rows[0]
    level = profile.levels[row]
    whole = level.right - level.prose
    texts = [
        form("", ""),
        form(" ", " "),
        form(profile.wrongs[row][0]) if profile.wrongs.get(row) else form(""),
    ]
    for text, result in zip(texts, audit.session.singles((row, text) for text in texts), strict=True):
        share = ((result.score if result.score is not None else level.prose) - level.prose) / max(
            whole, EPSILON
        )
        if share < FORM_SHARE_LOW:
            continue
        hollow = text != texts[-1]
        if not hollow and share < FORM_SHARE_HIGH:
            continue
        audit.report(
            "format_without_content",
            "form-alone",
            f"the form {'without content' if hollow else 'with a wrong answer'} earns {share:.0%} of a right answer",
            fix="let the form earn a small part of correctness (0.2 to 1), and nothing when it is empty",
            severity="high" if share >= FORM_SHARE_HIGH else "info",
            row=row,
            text=text,
            result=result,
            full=level.right,
            expected=f"about {level.prose + 0.2 * whole:g} or less",
        )
        return


def _form_over_none(audit: Audit) -> None:
    """Report a form that earns nothing, or costs something."""
    profile = audit.profile
    form, rows = profile.form, profile.paid_rows[:6]
    if form is None or not form.structured or not rows:
        return
    if profile.role == "composite":
        _format_punished(audit, rows)
    _format_ignored(audit, rows)


def _format_punished(audit: Audit, rows: Sequence[int]) -> None:
    profile = audit.profile
    assert profile.form is not None
    for row in rows:
        level = profile.levels[row]
        wrong = profile.wrongs[row][0] if profile.wrongs.get(row) else ""
        bare = audit.session.singles([(row, wrong), (row, PROSE)])
        for text, result in zip((wrong, PROSE), bare, strict=True):
            if result.score is not None and result.score > level.wrong + SLACK * level.span:
                audit.report(
                    "monotone_format",
                    "form-costs",
                    f"a wrong answer without the form earns {result.score:g}, with it {level.wrong:g}",
                    fix="an ill-formed completion must never earn more than a well-formed one",
                    severity="high",
                    row=row,
                    text=text,
                    result=result,
                    full=level.right,
                    expected=f"at most {level.wrong:g}",
                )
                return


def _format_ignored(audit: Audit, rows: Sequence[int]) -> None:
    """Report a right answer without the form that earns as much as one with it, or more."""
    profile, session = audit.profile, audit.session
    assert profile.form is not None
    hits: list[tuple[int, str, Result]] = []
    more = False
    for row in rows:
        answer = profile.answers[row]
        for text in (answer, f"The answer is {answer}.", f"{REASONING} The answer is {answer}"):
            result = session.singles([(row, text)])[0]
            if result.score is not None and result.score >= profile.levels[row].right - EPSILON:
                more = more or result.score > profile.levels[row].right + SLACK * profile.levels[row].span
                hits.append((row, text, result))
                break
    if len(hits) < max(1, len(rows) // 2):
        return
    row, text, result = hits[0]
    level = profile.levels[row]
    asked = _prompt_asks(audit, row)
    if more:
        category, severity = "monotone_format", "high"
    elif profile.role == "composite":
        category, severity = "format_not_required", "high"
    elif profile.form.hinted:
        category, severity = "format_not_required", "medium" if asked else "low"
    else:
        return
    audit.report(
        category,
        "form-earns-nothing",
        f"the right answer without the form earns {result.score:g}, with it {level.right:g}",
        fix="pay correctness only on an answer read from its form",
        severity="high" if severity == "high" else "medium" if severity == "medium" else "low",
        row=row,
        text=text,
        result=result,
        full=level.right,
        rows=(len(hits), len(rows)),
        expected=f"less than {level.right:g}",
    )


def _prompt_asks(audit: Audit, row: int) -> bool:
    """Whether the prompt itself shows the marks of the form."""
    form = audit.profile.form
    prompt = audit.session.rows[row].prompt_text
    marks = [
        mark for mark in ("<answer>", "\\boxed", "####", "<think>", "```") if form and mark in form("", "")
    ]
    return any(mark in prompt for mark in marks)


def _lengths_keep_order(audit: Audit) -> None:
    """Report a wrong answer that earns as much as a right one because of its length."""
    profile, session = audit.profile, audit.session
    form = profile.form
    if form is None:
        return
    long = words(MODERATE_WORDS)
    for row in profile.paid_rows[:3]:
        if not profile.wrongs.get(row):
            continue
        right, wrong = profile.answers[row], profile.wrongs[row][0]
        has_room = "@R" in form("@A", "@R")
        pairs = [
            (row, form(right, "So:")),
            (row, form(wrong, long)),
            (row, form(right, long)),
            (row, form(wrong, "So:")),
        ]
        if not has_room:
            pairs = [
                (row, form(right)),
                (row, f"{long}\n{form(wrong)}"),
                (row, f"{long}\n{form(right)}"),
                (row, form(wrong)),
            ]
        results = session.singles(pairs)
        scores = [result.score for result in results]
        for good, bad in ((0, 1), (2, 3)):
            upper, lower = scores[bad], scores[good]
            if upper is None or lower is None or upper < lower - EPSILON:
                continue
            if lower <= profile.levels[row].wrong + EPSILON and not has_room:
                continue  # text round the answer is refused, which is strictness and not length
            which = (
                "long wrong answer earns as much as a short right"
                if good == 0
                else ("short wrong answer earns as much as a long right")
            )
            audit.report(
                "monotone_correct",
                "length-over-correctness",
                f"a {which} one ({upper:g} against {lower:g})",
                fix="let length move the score by less than correctness does, and only among right answers",
                severity="high",
                row=row,
                text=pairs[bad][1],
                result=results[bad],
                full=lower,
                expected=f"less than {lower:g}",
            )
            return


def check_lengths(audit: Audit) -> None:
    """Sweep the length for a length reward: it must react, be bounded, and never climb again."""
    if audit.profile.role != "length":
        return
    texts = [words(count) for count in WORD_COUNTS]
    results = audit.session.singles((0, text) for text in texts)
    known = [(place, result.score) for place, result in enumerate(results) if result.score is not None]
    if len(known) < 5:
        audit.leave_out("length_insensitive", "too few lengths gave a score")
        return
    scores = [score for _, score in known]
    _reacts(audit, scores, texts, results)
    _bounded(audit, known, texts, results)


def _reacts(audit: Audit, scores: Sequence[float], texts: Sequence[str], results: Sequence[Result]) -> None:
    if max(scores) - min(scores) > EPSILON:
        return
    if (
        all(score == 0 for score in scores)
        and "completion_ids" in audit.source.names
        and max(WORD_COUNTS) < 4000
    ):
        return
    audit.report(
        "length_insensitive",
        "no-reaction",
        f"completions of {WORD_COUNTS[0]} to {WORD_COUNTS[-1]} words all get {scores[0]:g}",
        fix="measure the text: of a chat completion len() is the number of messages, which is 1",
        severity="high",
        row=0,
        text=texts[3],
        result=results[3],
        full=scores[0],
        expected="a score that depends on the length",
    )


def _bounded(
    audit: Audit,
    known: Sequence[tuple[int, float]],
    texts: Sequence[str],
    results: Sequence[Result],
) -> None:
    usual = [score for place, score in known if WORD_COUNTS[place] <= 1000]
    giant = [(place, score) for place, score in known if WORD_COUNTS[place] > 1000]
    if not usual or not giant:
        return
    place, score = max(giant, key=lambda pair: pair[1])
    lowest_before = min(score for known_place, score in known if known_place < place)
    climbs = score > max(usual) + EPSILON
    again = (
        known[0][1] > lowest_before + EPSILON
        and score > lowest_before + 0.05 * (max(usual) - min(usual)) + EPSILON
    )
    peak = max(range(len(known)), key=lambda at: known[at][1])
    falls_then_rises = any(
        known[one][1] > known[one - 1][1] + EPSILON + 0.02 * (max(usual) - min(usual))
        for one in range(peak + 2, len(known))
    )
    if climbs or (again and falls_then_rises):
        audit.report(
            "giant_output",
            "climbs",
            f"{WORD_COUNTS[place]} words earn {score:g}; up to 1000 words at most {max(usual):g}"
            + ("" if climbs else ", after the score had fallen with length"),
            fix="clamp the length before it enters the formula",
            severity="high",
            row=0,
            text=texts[place],
            result=results[place],
            full=max(usual),
            expected=f"at most {max(usual):g}",
        )
    first = known[0][1]
    if (
        WORD_COUNTS[known[0][0]] == 0
        and first > max(score for _, score in known[1:]) + EPSILON
        and first > EPSILON
    ):
        audit.report(
            "empty_completion",
            "shortest-is-best",
            f"the empty completion earns most of all lengths ({first:g})",
            fix="give the length term to right answers alone, or start it at a sensible length",
            severity="medium",
            row=0,
            text="",
            result=results[known[0][0]],
            full=first,
            expected="less than an answer of ordinary length",
        )


def check_counts(audit: Audit) -> None:
    """Report pay that grows with repetition: of the form, of looked-for words, of the whole completion."""
    profile = audit.profile
    if profile.role == "length":
        return
    row = next(iter(profile.levels), 0)
    level = profile.levels.get(row)
    top = level.right if level is not None else audit.session.score(row, PROSE)
    if top is None:
        return
    form = profile.form
    units = [
        " ".join(stuffing_words(profile, audit.columns)),
        "\n".join(stuffing_words(profile, audit.columns)),
    ]
    units += [COUNTED, f"{PROSE}\n"]
    if form is not None:
        wrong = (profile.wrongs.get(row) or ["42"])[0]
        units += [form(wrong, "So:"), form("", ""), f"{form(wrong)}\n"]
    for unit in dict.fromkeys(unit for unit in units if unit.strip()):
        texts = [f"{unit}\n" * times for times in UNCAPPED_TIMES]
        results = audit.session.singles((row, text) for text in texts)
        few, many = (result.score for result in results)
        if few is None or many is None or many <= max(top, few) + max(0.02 * abs(top), EPSILON):
            continue
        for category in ("keyword_stuffing", "range"):
            audit.report(
                category,
                "uncapped-count",
                f"the same piece {UNCAPPED_TIMES[1]} times earns {many:g}, {UNCAPPED_TIMES[0]} times {few:g}; "
                f"an ordinary completion earns {top:g}",
                fix="cap the count, and pay each mark once",
                severity="high",
                row=row,
                text=texts[1],
                result=results[1],
                full=top,
                expected=f"at most {top:g}",
            )
        return


def check_range(audit: Audit) -> None:
    """Report scores of absurd size, and scores above that of a right answer."""
    profile = audit.profile
    tops = [level.right for level in profile.levels.values()]
    usual = max([abs(top) for top in tops] or [1.0])
    worst: tuple[float, int, str] | None = None
    for (row, text), result in audit.session.known():
        score = result.score
        if (
            score is not None
            and abs(score) > max(ABSURD_SCORE, 5 * usual)
            and (not worst or abs(score) > worst[0])
        ):
            worst = (abs(score), row, text)
    if worst is None and usual <= ABSURD_SCORE:
        return
    if worst is None:
        row = next(iter(profile.levels))
        worst = (usual, row, profile.forms[0](profile.answers[row]))
    _, row, text = worst
    result = audit.session.singles([(row, text)])[0]
    audit.report(
        "range",
        "unbounded",
        f"a score of {result.score:g}: one such row outweighs its whole group",
        fix="bound the score, for instance to [0, 1] or [-1, 1]",
        severity="high",
        row=row,
        text=text,
        result=result,
        full=max(tops, default=None),
        expected=f"a size of at most {ABSURD_SCORE:g}",
    )
