"""The judgement: from a run's numbers to named symptoms. Pure: no I/O, no clock, no randomness."""

from __future__ import annotations

from typing import Final

from rlvr.records.watch import LEVELS, Clear, Finding, Findings, NotJudged, SymptomName
from rlvr.watch.completions import Completions
from rlvr.watch.facts import Facts
from rlvr.watch.history import History
from rlvr.watch.symptoms.case import Case, Verdict
from rlvr.watch.symptoms.entropy import judge_entropy
from rlvr.watch.symptoms.length import judge_lengths
from rlvr.watch.symptoms.plateau import judge_plateau
from rlvr.watch.symptoms.reward import judge_reward
from rlvr.watch.symptoms.signal import judge_signal
from rlvr.watch.symptoms.stability import judge_stability

__all__ = ["judge_history"]

EXPLAINED: Final[tuple[tuple[SymptomName, SymptomName, str], ...]] = (
    ("reward-pays-length", "wrong-answers-lengthen", "the reward pays length, which explains longer answers"),
    ("reward-crash", "plateau", "the reward crashed; that it does not rise afterwards follows from it"),
)
"""Cause, the symptom that it explains, and how: the first is mended, the second goes with it."""


def judge_history(
    history: History,
    completions: Completions | None = None,
    facts: Facts | None = None,
    *,
    widen: float = 1.0,
) -> Findings:
    """Name the symptoms of a run.

    Args:
        history: Its logged numbers.
        completions: Its completions, where there are any.
        facts: What else is known of it.
        widen: Factor on every standard error; above 1 when the run is looked at repeatedly.

    Returns:
        What was found, loudest first; what was clear; and what could not be judged, with what is missing.
    """
    from rlvr.watch.answers import answer_questions

    case = Case(history, completions, facts or Facts(), widen)
    verdicts: list[Verdict] = []
    for judge in (judge_entropy, judge_lengths, judge_signal, judge_reward, judge_plateau, judge_stability):
        verdicts += judge(case)
    verdicts = _told_apart(verdicts)
    symptoms = [v for v in verdicts if isinstance(v, Finding)]
    symptoms.sort(key=lambda s: (-LEVELS.index(s.level), s.since_step if s.since_step is not None else -1))
    return Findings(
        symptoms=symptoms,
        not_judged=[v for v in verdicts if isinstance(v, NotJudged)],
        answers=answer_questions(case),
        clear=[v for v in verdicts if isinstance(v, Clear)],
        rows=len(history),
        first_step=int(history.steps[0]) if len(history) else 0,
        last_step=int(history.steps[-1]) if len(history) else 0,
        completions=len(completions) if completions is not None else 0,
        columns=dict(history.names),
        unmapped=list(history.unmapped),
        remarks=[*history.remarks, *(completions.remarks if completions is not None else ())],
    )


def _told_apart(verdicts: list[Verdict]) -> list[Verdict]:
    """Replace each symptom that another one explains."""
    alarms = {v.name for v in verdicts if isinstance(v, Finding) and v.level != "information"}
    explained = [
        Clear(name=name, why=why) for cause, name, why in EXPLAINED if cause in alarms and name in alarms
    ]
    names = {one.name for one in explained}
    return [*(v for v in verdicts if v.name not in names), *explained]
