"""What a judge never gets to see: empty texts, openers that earn points by themselves, and orders to the judge.

Single symbols and openers such as *Solution* or *Let's solve this problem step by step* were accepted by model
judges without any answer behind them (arXiv 2507.08794). A rubric that only asks for one answer is decided by
program, without a model.
"""

from __future__ import annotations

import re
from typing import Any

from rlvr.rewards.contract import Outcome, Verdict
from rlvr.rewards.exact import Exact
from rlvr.rewards.math import Math
from rlvr.rewards.mathematics.extract import find_answer
from rlvr.rewards.reading import clean_spaces

_OPENERS = (
    r"(?:thought|thinking|reasoning)(?:\s+process)?"
    r"|(?:the\s+)?(?:final\s+)?(?:solution|answer|explanation|analysis|response)"
    r"|(?:ok(?:ay)?|sure|certainly|alright|yes|right|well|so|first(?:ly)?)"
    r"|let(?:'|’)?s\s+(?:solve|think|break|work|go|start|begin|analy[sz]e|consider|look|approach)[^.:\n]*"
    r"|let\s+(?:me|us)\s+(?:solve|think|break|work|go|start|begin|analy[sz]e|consider|look)[^.:\n]*"
    r"|(?:to\s+(?:solve|answer|find|determine)\s+(?:this|the)(?:\s+\w+){0,4})|(?:here(?:'|’)?s|here\s+is)[^.:\n]{0,40}"
    r"|step\s*(?:1|one|by\s+step)|(?:i\s+(?:will|can|need\s+to)\s+(?:solve|answer|think)[^.:\n]*)"
    r"|解|解答|解决方案|答え|かいせつ|解説|respuesta|solución|lösung|réponse|ответ|решение"
)
_OPENER_ONLY = re.compile(rf"[\W_]*(?:(?:{_OPENERS})[\W_]*)*", re.IGNORECASE)

_ORDERS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b(?:note|message|instructions?|attention|memo|dear|hey|hello|hi)\b[\s,:*]*(?:to|for)?\s*(?:the\s+)?"
        r"(?:grader|judge|evaluator|examiner|rater|assessor|reviewer|marker|scorer)\b",
        r"\b(?:grader|judge|evaluator|examiner|rater|assessor|scorer)s?\b"
        r"\s*[:,]?\s*(?:please|must|should|shall|has to|have to)\b",
        r"\b(?:award|give|assign|grant|output|return|mark|score|rate|grade)\b[^.\n]{0,40}?"
        r"\b(?:full\s+(?:marks?|credit|score|points)|maximum|max\s+score|highest|10\s*/\s*10|100\s*%|perfect\s+score"
        r"|as\s+(?:correct|right|passed|pass))\b",
        r"\b(?:ignore|disregard|forget|override)\b[^.\n]{0,40}"
        r"\b(?:instructions?|rubric|criteria|prompt|rules|guidelines|above|previous|prior)\b",
        r"\bthe\s+(?:reference|expected|correct|gold(?:en)?|ground[- ]truth|official)\s+"
        r"(?:answer|solution|reference)?\s*(?:is|was|has been)\b[^.\n]{0,60}"
        r"\b(?:award|mark|accept|correct|updated|changed|full)\b",
        r"[\"']?\b(?:verdict|score|grade|rating)\b[\"']?\s*[:=]\s*[\"']?(?:pass|correct|right|true|1(?:\.0)?|10|100)\b",
        r"<\|?(?:im_start|im_end|system|assistant|user)\|?>|\[/?INST\]|^\s*(?:system|assistant)\s*:",
        r"\byou\s+(?:are|must\s+act\s+as|should\s+act\s+as)\s+(?:now\s+)?(?:a|an|the)\b[^.\n]{0,40}\b(?:grader|judge|evaluator)\b",
        r"\b(?:this|my|the)\s+(?:answer|response|solution)\s+(?:is|should\s+be|must\s+be)\s+(?:graded|marked|scored|accepted|considered|judged)\b",
    )
)

_EQUALITY = re.compile(
    r"\s*(?:the\s+)?(?:final\s+|correct\s+)?(?:answer|result|value)\s*(?:(?:must|should|has\s+to)\s+)?"
    r"(?:equals?|is(?:\s+equal\s+to)?|be(?:\s+equal\s+to)?|==?|matches)\s*:?\s*(?P<gold>.+?)\s*\.?\s*",
    re.IGNORECASE | re.DOTALL,
)


def refusal(visible: str) -> Verdict | None:
    """Return the verdict on a text that no judge should see, or None."""
    text = clean_spaces(visible)
    if not text:
        return Verdict(Outcome.ILL_FORMED, 0.0, text, "the completion is empty")
    if _OPENER_ONLY.fullmatch(text[:2000]):
        return Verdict(Outcome.ILL_FORMED, 0.0, text[:200], "nothing but an opener: it answers nothing")
    for order in _ORDERS:
        found = order.search(visible) or order.search(text)
        if found:
            return Verdict(Outcome.WRONG, 0.0, found.group()[:200], "it gives orders to the judge")
    return None


def expected_answer(rubric: str) -> str | None:
    """Return the answer that a rubric asks for when it asks for nothing else: *final answer equals 42*."""
    found = _EQUALITY.fullmatch(rubric)
    if (
        not found
        or len(found["gold"]) > 80
        or re.search(r"[;\n]|\band\s+(?:the|it|shows|explains)\b|\bwith\b", found["gold"])
    ):
        return None
    return found["gold"].strip("\"'` ")


def _last_statement(visible: str) -> list[str]:
    """Return what the last sentence of an unmarked text says that something is, as in *so the total is 42*."""
    if find_answer(visible).why.startswith(("behind", "inside", "boxed")) or "\\boxed" in visible:
        return []
    sentences = [one for one in re.split(r"(?<=[.!?])\s+|\n+", visible.strip()) if one.strip()]
    found = (
        re.fullmatch(
            r".*\b(?:is|are|equals|get|gives|\w+['’]s)\s+(\S[^.!?]{0,30})[.!?]*", sentences[-1].strip()
        )
        if sentences
        else None
    )
    return [found.group(1)] if found else []


def decided_by_program(visible: str, gold: str) -> Verdict:
    """Judge whether the final answer of a text is ``gold``: as mathematics, else as words."""
    reader = Math()
    if reader.check_reference(gold) is None:
        for text in (visible, *_last_statement(visible)):
            verdict = reader.verdict(text, gold)
            if verdict.accepted or verdict.outcome is Outcome.INFRASTRUCTURE:
                return verdict
    answer = find_answer(visible).text
    words: Any = Exact(tag="").verdict(answer or visible, gold)
    if words.accepted:
        return Verdict(Outcome.RIGHT, 1.0, answer, words.why)
    return Verdict(Outcome.WRONG, 0.0, answer, f"the final answer is not {gold!r}")
