"""What one reward pays and how: role, form of the answer, and the scores of right, wrong and unformed completions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rlvr.audit.forms import LINES, PROSE, Form, best_forms, candidate_forms, distinct, shape_forms
from rlvr.audit.programs import candidate_programs, wrong_program
from rlvr.audit.references import Gold
from rlvr.audit.session import Session
from rlvr.audit.source import Source

EPSILON = 1e-6
DISCOVERY_ROWS = 3
CODE_ROWS = 4
CALLS_A_ROW = 8
SLOW_CALL_S = 0.02
SLOW_FORMS = 4


@dataclass(frozen=True, slots=True)
class Levels:
    """Scores of one row.

    Attributes:
        right: A right answer in the best form.
        wrong: A wrong answer in the same form.
        prose: Words without an answer and without any form.
    """

    right: float
    wrong: float
    prose: float

    @property
    def span(self) -> float:
        """How much being right is worth."""
        return self.right - self.wrong


@dataclass
class Profile:
    """What was found out about one reward before it is attacked.

    Attributes:
        role: ``correctness``, ``format``, ``length`` or ``composite``.
        column: The reference column; empty when it reads none.
        golds: The gold answer of each row.
        forms: Forms that are paid best, the main one first; empty when nothing is paid.
        answers: Row to the text of the answer that is paid.
        wrongs: Row to texts of wrong answers.
        levels: Row to its scores.
        source: The reward's source.
        tried: How many forms were tried.
    """

    role: str
    column: str
    golds: list[Gold]
    source: Source
    forms: list[Form] = field(default_factory=list)
    answers: dict[int, str] = field(default_factory=dict)
    wrongs: dict[int, list[str]] = field(default_factory=dict)
    levels: dict[int, Levels] = field(default_factory=dict)
    tried: int = 0

    @property
    def form(self) -> Form | None:
        """The main form."""
        return self.forms[0] if self.forms else None

    @property
    def paid_rows(self) -> list[int]:
        """Rows on which a right answer is worth more than a wrong one."""
        return [row for row, level in self.levels.items() if level.span > EPSILON]

    @property
    def judges_answers(self) -> bool:
        """Whether it reads a reference at all."""
        return bool(self.column)

    @property
    def kind(self) -> str:
        """The kind of most gold answers."""
        kinds = [gold.kind for gold in self.golds if gold.kind != "none"]
        return max(set(kinds), key=kinds.count) if kinds else "none"


def guess_role(source: Source, column: str) -> str:
    """Return the role that the source suggests when none is stated."""
    if column or source.runs_code:
        return "correctness"
    marks = bool(source.tags or source.patterns or source.mentions_json)
    measures = "completion_ids" in source.names or "len" in source.calls
    return "length" if measures and not marks else "format"


def candidate_answers(profile: Profile, session: Session, row: int) -> list[str]:
    """Return texts that may be the right answer of a row."""
    gold = profile.golds[row]
    if gold.kind == "code":
        return candidate_programs(session.rows[row], gold.value, profile.source)
    if gold.kind == "none":
        if profile.column:
            return []
        programs = (
            ["def solve(x):\n    return x\n"] if profile.source.calls_any("ast.parse", "compile") else []
        )
        return ["42", '{"answer": 42}', *programs]
    return list(gold.candidates)


def discover(profile: Profile, session: Session, rows: Sequence[int]) -> None:
    """Find the forms that are paid and fill in the levels of ``rows``."""
    usable = [row for row in rows if candidate_answers(profile, session, row)]
    if not usable:
        return
    forms = candidate_forms(profile.source)
    forms = distinct([*forms, *shape_forms()] if profile.role == "format" else forms)
    forms.sort(key=lambda form: not form.hinted)
    if any(gold.kind == "code" for gold in profile.golds):
        forms = _forms_of_code(forms)
        usable = usable[:CODE_ROWS]
    profile.tried = len(forms)
    found = _try_forms(profile, session, usable[:DISCOVERY_ROWS], forms)
    profile.forms = found
    if session.seconds_per_call > SLOW_CALL_S:
        usable = usable[: max(2, int(session.seconds_left / 4 / (session.seconds_per_call * CALLS_A_ROW)))]
    measure_all(profile, session, usable)


def measure_all(profile: Profile, session: Session, rows: Sequence[int]) -> None:
    """Fill in answers, wrong answers and levels of ``rows`` for the main form."""
    for row in rows:
        if candidate_answers(profile, session, row):
            _measure(profile, session, row)


def _forms_of_code(forms: Sequence[Form]) -> list[Form]:
    """Return the forms that can hold a program, fenced Python first."""
    fit = [form for form in forms if "\n@A\n" in form("@A") or form("@A") == "@A" or "<answer>" in form("@A")]
    return sorted(fit, key=lambda form: ("```python" not in form("@A"), form("@A") != "@A", form.rank))


def _try_forms(profile: Profile, session: Session, rows: Sequence[int], forms: Sequence[Form]) -> list[Form]:
    """Return the forms that are paid best, over all of ``rows``."""
    totals = dict.fromkeys(range(len(forms)), 0.0)
    for number, row in enumerate(rows):
        candidates = candidate_answers(profile, session, row)[:6]
        best = max(totals.values())
        if session.seconds_per_call < SLOW_CALL_S and not number:
            session.singles((row, form(candidate)) for form in forms for candidate in candidates)
        for place, form in enumerate(forms):
            if number and totals[place] < best - EPSILON:
                continue
            if session.seconds_left <= 0 or _settled(session, totals, place):
                totals[place] = float("-inf") if number == 0 else totals[place]
                continue
            totals[place] += _best_score(session, row, form, candidates)
    paid = [(forms[place], total) for place, total in totals.items() if total > float("-inf")]
    return best_forms(paid, limit=6, boxed=profile.kind in ("latex", "fraction"))


def _settled(session: Session, totals: dict[int, float], place: int) -> bool:
    """Whether a slow reward has paid one of the forms before ``place`` more than the others, so that it is known."""
    if session.seconds_per_call < SLOW_CALL_S or place < 2:
        return False
    scored = [total for at, total in totals.items() if at < place and total > float("-inf")]
    return max(scored) > min(scored) + EPSILON or place > 3 * SLOW_FORMS


def _best_score(session: Session, row: int, form: Form, candidates: Sequence[str]) -> float:
    results = session.singles([(row, form(candidate)) for candidate in candidates])
    scores = [result.score for result in results if result.score is not None]
    return max(scores, default=float("-inf"))


def wrong_texts(profile: Profile, session: Session, row: int) -> list[str]:
    """Return wrong answers of a row."""
    gold = profile.golds[row]
    if gold.kind == "code":
        return [wrong_program(session.rows[row], gold.value, profile.source)]
    return list(gold.wrong) or (["zanzibar"] if profile.column else [])


def _measure(profile: Profile, session: Session, row: int) -> None:
    form = profile.forms[0] if profile.forms else None
    if form is None:
        return
    candidates = candidate_answers(profile, session, row)
    results = session.singles([(row, form(candidate)) for candidate in candidates])
    scored = [(result.score, -place) for place, result in enumerate(results) if result.score is not None]
    if not scored:
        return
    top, place = max(scored)
    profile.answers[row] = candidates[-place]
    profile.wrongs[row] = wrong_texts(profile, session, row)
    lines = session.score(row, form(candidates[-place], LINES)) if not profile.column else None
    prose = session.score(row, PROSE)
    wrong = [session.score(row, form(text)) for text in profile.wrongs[row][:2]]
    known = sorted(score for score in wrong if score is not None)
    right = max(top, lines) if lines is not None else top
    low = known[0] if known else (prose if prose is not None else 0.0)
    profile.levels[row] = Levels(right, low, prose if prose is not None else 0.0)
