"""Equations and inequalities: what is only a label, and when two relations say the same."""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import pairwise

from rlvr.rewards.mathematics.answers import Relation, trimmed
from rlvr.rewards.mathematics.syntax import Node, NotReadable, parse
from rlvr.rewards.mathematics.values import (
    NotRational,
    TooLarge,
    Undefined,
    equal,
    points,
    rational,
    variables,
)

_LABEL = re.compile(
    r"[A-Za-z](?:_\{?\w+\}?)?'*"  # x, x_1, y'
    r"|\\(?:alpha|beta|gamma|theta|lambda|phi|mu|sigma|omega|Delta|delta|rho|tau)(?:_\{?\w+\}?)?"
    r"|[A-Za-z]{1,2}\s*\(\s*[A-Za-z0-9,. +\-\\<>≤≥=|]+\s*\)"  # f(x), P(A)
    r"|\(\s*[A-Za-z](?:\s*,\s*[A-Za-z])+\s*\)|\\frac\s*\{\s*d\s*[a-z]\s*\}\s*\{\s*d\s*[a-z]\s*\}"  # (x, y), dy/dx
    r"|\\text\{[^{}]*\}|[A-Z]{2,4}|[A-Za-z ]{4,40}|\\angle\s*[A-Z]{1,3}|\|?[A-Z]{2}\|?"
)
_MIRROR = {"<": ">", ">": "<", "≤": "≥", "≥": "≤", "=": "=", "≠": "≠", "≈": "≈"}


def label_and_value(relation: Relation) -> tuple[str, str | None]:
    """Return (name, text of the value) of ``x = 5``, ``5 = x`` or ``f(x) = …``; the value is None otherwise.

    In a calculation such as ``6 * 7 = 42`` the last side is the value when all sides are equal.
    """
    if not set(relation.signs) <= {"=", "≈"}:
        return "", None
    first, last = relation.sides[0], relation.sides[-1]
    if _LABEL.fullmatch(first.strip()) and not _is_label_only(last):
        middle = _value_of_chain(relation.sides[1:])
        return _label(first), middle
    if len(relation.sides) == 2 and _LABEL.fullmatch(last.strip()) and not _is_label_only(first):
        return _label(last), first
    return "", _value_of_chain(relation.sides)


def _label(text: str) -> str:
    """Return the name in one spelling; words such as *answer* name nothing."""
    name = re.sub(r"[\s{}]", "", text)
    return (
        ""
        if re.sub(r"^\\text", "", name).lower() in ("answer", "result", "finalanswer") or len(name) > 8
        else name
    )


def _is_label_only(text: str) -> bool:
    return bool(re.fullmatch(r"[A-Za-z](?:_\{?\w+\}?)?", text.strip()))


def _value_of_chain(sides: tuple[str, ...]) -> str | None:
    if len(sides) == 1:
        return sides[0]
    try:
        nodes = [parse(trimmed(side)) for side in sides]
    except (NotReadable, ValueError, RecursionError):
        return None
    same = all(equal(one, other) for one, other in pairwise(nodes))
    return sides[-1] if same else None


def same_relation(gold: Relation, answer: Relation) -> bool | None:
    """Return whether two single relations hold for the same points: equal up to a constant factor.

    For inequalities the factor must be positive; ``a < b`` is read as ``b > a``. False means *not shown so
    here*.
    """
    if len(gold.signs) != 1 or len(answer.signs) != 1:
        return _same_chain(gold, answer)
    try:
        left, right = _difference(gold), _difference(answer)
    except (NotReadable, ValueError, RecursionError):
        return False
    sign, other = gold.signs[0], answer.signs[0]
    if not (variables(left) and variables(right)):
        return False
    ratio = _constant_ratio(left, right)
    if ratio is None:
        return False
    if sign == other and (sign in "=≠≈" or ratio > 0):
        return True
    return _MIRROR.get(sign) == other and ratio < 0


def _same_chain(gold: Relation, answer: Relation) -> bool | None:
    if len(gold.signs) != len(answer.signs):
        return False
    for signs, sides in (
        (answer.signs, answer.sides),
        (tuple(_MIRROR.get(one, one) for one in reversed(answer.signs)), tuple(reversed(answer.sides))),
    ):
        if signs == gold.signs:
            verdicts = [_equal_text(one, other) for one, other in zip(gold.sides, sides, strict=True)]
            if all(verdicts):
                return True
    return False


def _equal_text(gold: str, answer: str) -> bool | None:
    if gold == answer:
        return True
    try:
        return equal(parse(gold), parse(answer))
    except (NotReadable, ValueError, RecursionError):
        return False


def _difference(relation: Relation) -> Node:
    left, right = (parse(trimmed(side)) for side in relation.sides)
    return ("add", left, ("neg", right))


def _constant_ratio(left: Node, right: Node) -> Fraction | None:
    """Return the constant c with left = c · right, or None when there is none or it cannot be told."""
    found: set[Fraction] = set()
    for point in points(variables(left) | variables(right), 4):
        try:
            above, below = rational(left, point), rational(right, point)
        except Undefined:
            continue
        except (NotRational, TooLarge):
            return (
                Fraction(1) if equal(left, right) else Fraction(-1) if equal(left, ("neg", right)) else None
            )
        if above == 0 or below == 0:
            return None
        found.add(above / below)
    return found.pop() if len(found) == 1 else None
