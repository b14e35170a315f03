"""Sets of real numbers as sorted intervals, from intervals, unions, relations of one variable and finite sets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from rlvr.rewards.mathematics.answers import Answer, Relation, Sequence, Text, Union, Value, trimmed
from rlvr.rewards.mathematics.syntax import Node, NotReadable, parse
from rlvr.rewards.mathematics.values import (
    NotRational,
    TooLarge,
    Undefined,
    approximate,
    equal,
    rational,
    variables,
)

_INFINITY: Node = ("const", "inf")
_MINUS_INFINITY: Node = ("neg", _INFINITY)


@dataclass(frozen=True, slots=True)
class End:
    """One end of an interval: its expression, its size, and whether it belongs to the set."""

    node: Node
    size: float
    closed: bool


@dataclass(frozen=True, slots=True)
class Interval:
    """The reals from ``low`` to ``high``."""

    low: End
    high: End


Reals = tuple[Interval, ...]


def as_reals(answer: Answer) -> Reals | None:
    """Return the answer as a set of reals, or None when it is none."""
    try:
        return _reals(answer)
    except (NotReadable, ValueError, RecursionError, _NoSet):
        return None


class _NoSet(Exception):  # leaves the recursion, never the module
    """The answer is no set of reals."""


def _reals(answer: Answer) -> Reals:
    if isinstance(answer, Text) and answer.key in ("ℝ", "all real numbers", "all reals", "real numbers"):
        return (_interval(_MINUS_INFINITY, False, _INFINITY, False),)
    if isinstance(answer, Text) and answer.key in (
        "no solution",
        "no solutions",
        "no real solutions",
        "none",
        "empty set",
    ):
        return ()
    if isinstance(answer, Relation):
        return _of_relation(answer)
    if isinstance(answer, Union):
        return _of_union(answer)
    if isinstance(answer, Sequence):
        return _of_sequence(answer)
    raise _NoSet


def _of_sequence(answer: Sequence) -> Reals:
    if answer.brackets == "{}":
        return _normal(_interval(node, True, node, True) for node in map(_node, answer.items))
    if answer.brackets:
        if len(answer.items) != 2:
            raise _NoSet
        low, high = (_node(item) for item in answer.items)
        return _normal([_interval(low, answer.brackets[0] == "[", high, answer.brackets[1] == "]")])
    if not all(
        isinstance(item, Relation | Union) or (isinstance(item, Sequence) and item.brackets)
        for item in answer.items
    ):
        raise _NoSet
    parts = [_reals(item) for item in answer.items]
    if all(isinstance(item, Relation) and item.signs == ("≠",) for item in answer.items):
        found = parts[0]
        for part in parts[1:]:
            found = _intersection(found, part)
        return found
    return _normal(one for part in parts for one in part)


def _of_union(answer: Union) -> Reals:
    found = _reals(answer.parts[0])
    for sign, part in zip(answer.signs, answer.parts[1:], strict=True):
        other = _reals(part)
        if sign == "∪":
            found = _normal([*found, *other])
        else:
            found = _intersection(found, other if sign == "∩" else _complement(other))
    return found


def _of_relation(answer: Relation) -> Reals:
    found: Reals = (_interval(_MINUS_INFINITY, False, _INFINITY, False),)
    names: set[str] = set()
    for left, sign, right in zip(answer.sides, answer.signs, answer.sides[1:], strict=False):
        name, part = _half_line(parse(trimmed(left)), sign, parse(trimmed(right)))
        names.add(name)
        found = _intersection(found, part)
    if len(names) != 1:
        raise _NoSet
    return found


def _half_line(left: Node, sign: str, right: Node) -> tuple[str, Reals]:
    """Return (variable, solutions) of one linear relation in one variable."""
    if sign not in "<>≤≥≠":
        raise _NoSet
    if left[0] == "var" and not variables(right):
        name, bound = left[1], right
    elif right[0] == "var" and not variables(left):
        name, bound, sign = right[1], left, {"<": ">", ">": "<", "≤": "≥", "≥": "≤", "≠": "≠"}[sign]
    else:
        name, bound, sign = _solve(left, sign, right)
    if sign == "≠":
        return name, _complement((_interval(bound, True, bound, True),))
    if sign in "<≤":
        return name, (_interval(_MINUS_INFINITY, False, bound, sign == "≤"),)
    return name, (_interval(bound, sign == "≥", _INFINITY, False),)


def _solve(left: Node, sign: str, right: Node) -> tuple[str, Node, str]:
    """Solve a relation that is linear in its one variable, exactly."""
    difference: Node = ("add", left, ("neg", right))
    names = variables(difference)
    if len(names) != 1:
        raise _NoSet
    (name,) = names
    try:
        at = [rational(difference, {name: Fraction(place)}) for place in (0, 1, 2, 5)]
    except (NotRational, Undefined, TooLarge) as error:
        raise _NoSet from error
    slope = at[1] - at[0]
    if slope == 0 or at[2] - at[1] != slope or at[3] - at[0] != 5 * slope:
        raise _NoSet
    turned = {"<": ">", ">": "<", "≤": "≥", "≥": "≤", "≠": "≠"}[sign] if slope < 0 else sign
    return name, ("num", -at[0] / slope), turned


def _node(answer: Answer) -> Node:
    if not isinstance(answer, Value) or answer.percent:
        raise _NoSet
    return answer.node


def _interval(low: Node, low_closed: bool, high: Node, high_closed: bool) -> Interval:
    sizes = approximate(low), approximate(high)
    if sizes[0] is None or sizes[1] is None:
        raise _NoSet
    return Interval(End(low, sizes[0], low_closed), End(high, sizes[1], high_closed))


def _normal(intervals: Iterable[Interval]) -> Reals:
    """Sort, drop what is empty, and join what touches."""
    kept = [one for one in intervals if not _empty(one)]
    kept.sort(key=lambda one: (one.low.size, not one.low.closed))
    found: list[Interval] = []
    for one in kept:
        if found and _touch(found[-1], one):
            found[-1] = Interval(found[-1].low, max(found[-1].high, one.high, key=_reach))
        else:
            found.append(one)
    return tuple(found)


def _empty(one: Interval) -> bool:
    return one.low.size > one.high.size or (
        one.low.size == one.high.size and not (one.low.closed and one.high.closed)
    )


def _touch(left: Interval, right: Interval) -> bool:
    if right.low.size != left.high.size:
        return right.low.size < left.high.size
    return left.high.closed or right.low.closed


def _reach(end: End) -> tuple[float, bool]:
    return end.size, end.closed


def _intersection(left: Reals, right: Reals) -> Reals:
    return _normal(
        Interval(
            max(one.low, other.low, key=lambda end: (end.size, not end.closed)),
            min(one.high, other.high, key=_reach),
        )
        for one in left
        for other in right
    )


def _complement(reals: Reals) -> Reals:
    ends: list[Interval] = []
    low = End(_MINUS_INFINITY, float("-inf"), False)
    for one in reals:
        ends.append(Interval(low, End(one.low.node, one.low.size, not one.low.closed)))
        low = End(one.high.node, one.high.size, not one.high.closed)
    ends.append(Interval(low, End(_INFINITY, float("inf"), False)))
    return _normal(one for one in ends if one.low.size < float("inf") and one.high.size > float("-inf"))


def same_reals(gold: Reals, answer: Reals) -> bool | None:
    """Return whether two sets are equal, end by end and exactly."""
    if len(gold) != len(answer):
        return False
    verdicts = [
        _same_end(one, other)
        for left, right in zip(gold, answer, strict=True)
        for one, other in ((left.low, right.low), (left.high, right.high))
    ]
    if False in verdicts:
        return False
    return None if None in verdicts else True


def _same_end(one: End, other: End) -> bool | None:
    if abs(one.size) == float("inf") or abs(other.size) == float("inf"):
        return one.size == other.size
    return one.closed == other.closed and equal(one.node, other.node)
