"""Mathematical answers, compared as people read them; see :mod:`rlvr.rewards.mathematics` for how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from rlvr.errors import InfrastructureError
from rlvr.rewards.builtin import Builtin
from rlvr.rewards.contract import Outcome, Verdict
from rlvr.rewards.mathematics.compare import same, why_no_gold
from rlvr.rewards.mathematics.extract import after_is, find_answer, gold_text
from rlvr.rewards.mathematics.pool import Ending, Job, Result, shared_pool
from rlvr.rewards.reading import outside_thinking, without_end_tokens

NEEDS_SYMBOLIC = "needs-symbolic"


@dataclass(frozen=True)
class Math(Builtin):
    r"""Accept an answer that means the same as the reference.

    The last complete ``\boxed{…}``, ``<answer>`` tag or ``####`` line decides; without one, a sentence that
    names its answer; without that, a completion that is nothing but its answer. Numbers, fractions,
    percentages, units, sets, intervals, tuples, equations and expressions are compared exactly, without
    sympy; formulas beyond that (integrals, sums, limits) by math-verify's parser and sympy in a child that is
    killed after ``timeout`` seconds.

    A list of references accepts any of them.

    Attributes:
        timeout: Wall clock of one comparison in a child, in seconds; an answer that needs longer is wrong.
        tolerance: Relative difference up to which two constants are equal; 0 (exact) by default, so that a
            rounded decimal is not a fraction.
        tag: Name of the answer tag; empty for none.
        think_prefilled: The chat template opens ``<think>``, so the completion starts inside it.
    """

    timeout: float = 2.0
    tolerance: float = 0.0
    tag: str = "answer"
    think_prefilled: bool = False

    def verdict(self, completion: str, reference: Any) -> Verdict:
        """Read one completion against its reference."""
        return self.verdict_batch([completion], [reference])[0]

    def verdict_batch(self, texts: Sequence[str], references: Sequence[Any]) -> list[Verdict]:
        """Read a batch; what needs a child goes to the children together."""
        found = [self._fast(text, reference) for text, reference in zip(texts, references, strict=True)]
        open_rows = [row for row, verdict in enumerate(found) if verdict.details.get(NEEDS_SYMBOLIC)]
        if open_rows:
            golds = [self._golds(references[row])[0] for row in open_rows]
            answers = [found[row].extracted or "" for row in open_rows]
            for row, verdict in zip(open_rows, self._symbolic(golds, answers), strict=True):
                found[row] = verdict
        return found

    def check_reference(self, reference: Any) -> str | None:
        """Return why a reference is no gold: empty, broken, or beyond every parser."""
        try:
            golds = self._golds(reference)
        except TypeError as error:
            return str(error)
        problems = [self._no_gold(gold) for gold in golds]
        return next((problem for problem in problems if problem), None) if golds else "no reference"

    def _no_gold(self, gold: str) -> str | None:
        problem = why_no_gold(gold)
        return _symbolic_gold(gold, self.timeout) if problem == NEEDS_SYMBOLIC else problem

    def _golds(self, reference: Any) -> list[str]:
        if isinstance(reference, str):
            return [gold_text(reference)]
        if isinstance(reference, bool) or reference is None:
            raise TypeError(f"a {type(reference).__name__} is no mathematical answer")
        if isinstance(reference, int | float):
            return [repr(reference)]
        if isinstance(reference, Sequence) and not isinstance(reference, bytes):
            return [gold for item in reference for gold in self._golds(item)]
        raise TypeError(f"a {type(reference).__name__} is no mathematical answer")

    def _fast(self, completion: str, reference: Any) -> Verdict:
        """Decide without a child where that is possible."""
        golds = self._sound_golds(reference)
        visible = without_end_tokens(outside_thinking(completion, prefilled=self.think_prefilled))
        answer, how = find_answer(visible, self.tag)
        if answer is None or not answer.strip():
            return Verdict(Outcome.ILL_FORMED, 0.0, answer, how if answer is None else "the answer is empty")
        verdicts = [self._one(gold, answer, how) for gold in golds]
        return next(
            (one for one in verdicts if one.accepted),
            next((one for one in verdicts if one.details.get(NEEDS_SYMBOLIC)), verdicts[0]),
        )

    def _one(self, gold: str, answer: str, how: str) -> Verdict:
        same_value = same(gold, answer, self.tolerance)
        if same_value is not True and how.startswith("behind") and (short := after_is(answer)) != answer:
            same_short = same(gold, short, self.tolerance)
            if same_short is not False:
                same_value, answer = same_short, short
        if same_value is None:
            return Verdict(Outcome.WRONG, 0.0, answer, "not decided", {NEEDS_SYMBOLIC: True})
        outcome = Outcome.RIGHT if same_value else Outcome.WRONG
        relation = "is" if same_value else "is not"
        return Verdict(
            outcome, float(same_value), answer, f"{_short(answer)} ({how}) {relation} {_short(gold)}"
        )

    def _sound_golds(self, reference: Any) -> list[str]:
        """Return the golds of a reference, or raise the data error that `check` would have found."""
        key = reference if isinstance(reference, str) else None
        golds = _golds_of_text(key) if key is not None else None
        if golds is None:
            problem = self.check_reference(reference)
            if problem:
                raise self.bad_reference(reference, problem)
            return self._golds(reference)
        return golds

    def _symbolic(self, golds: Sequence[str], answers: Sequence[str]) -> list[Verdict]:
        jobs = [Job(gold, answer) for gold, answer in zip(golds, answers, strict=True)]
        distinct = list(dict.fromkeys(jobs))
        try:
            results = dict(zip(distinct, shared_pool().run(distinct, self.timeout), strict=True))
        except InfrastructureError as error:
            return [Verdict(Outcome.INFRASTRUCTURE, None, job.answer, error.found) for job in jobs]
        return [_verdict_of(results[job], job) for job in jobs]


def _verdict_of(result: Result, job: Job) -> Verdict:
    why = f"{_short(job.answer or '')} against {_short(job.gold)}: {result.why}"
    if result.ending in (Ending.STARVED, Ending.DIED):
        return Verdict(Outcome.INFRASTRUCTURE, None, job.answer, why)
    right = result.ending is Ending.ANSWERED and result.same is True
    return Verdict(Outcome.RIGHT if right else Outcome.WRONG, float(right), job.answer, why)


@lru_cache(maxsize=2048)
def _golds_of_text(reference: str) -> list[str] | None:
    """Return the gold of a text reference when the fast path knows that it is sound."""
    gold = gold_text(reference)
    return [gold] if why_no_gold(gold) is None else None


@lru_cache(maxsize=8192)
def _symbolic_gold(gold: str, timeout: float) -> str | None:
    """Return why a formula is no gold; a child parses it once."""
    result = shared_pool().run([Job(gold, None)], timeout)[0]
    if result.ending is Ending.ANSWERED:
        return None if result.same else result.why
    if result.ending is Ending.TOO_HARD:
        return f"it does not parse within {timeout:g} s"
    raise InfrastructureError("reward.math-child", result.why, where="reward math")


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "…")
