"""Decide whether an answer is the gold: true, false, or None where only a computer algebra system may tell."""

from __future__ import annotations

import re
from collections.abc import Sequence as Listing
from fractions import Fraction
from functools import lru_cache

from rlvr.rewards.mathematics.answers import (
    Answer,
    Choice,
    Matrix,
    Ratio,
    Relation,
    Sequence,
    Text,
    Union,
    Unread,
    Value,
    read,
    readings,
    text_key,
    trimmed,
)
from rlvr.rewards.mathematics.realsets import as_reals, same_reals
from rlvr.rewards.mathematics.relations import label_and_value, same_relation
from rlvr.rewards.mathematics.surface import surface
from rlvr.rewards.mathematics.syntax import DEEPEST, Node
from rlvr.rewards.mathematics.units import factor
from rlvr.rewards.mathematics.values import (
    NotRational,
    TooLarge,
    Undefined,
    approximate,
    equal,
    rational,
    start_budget,
)

_INTEGER = re.compile(r"-?[0-9]{1,60}")


def same(gold: str, answer: str, tolerance: float = 0.0) -> bool | None:
    """Return whether the text of an answer means the same as the gold's.

    Args:
        gold: Text of the reference answer.
        answer: Text that stood in the completion.
        tolerance: Relative difference up to which two constants are equal; 0 is exact.
    """
    if not tolerance and _INTEGER.fullmatch(gold) and _INTEGER.fullmatch(answer):
        return int(gold) == int(answer)
    start_budget()
    spelled_gold, spelled = trimmed(surface(gold)), trimmed(surface(answer))
    if not spelled or not spelled_gold:
        return False
    if spelled_gold == spelled:
        return True
    if _depth(spelled) > DEEPEST:
        return False
    undecided = False
    for one in readings(gold):
        for other in readings(answer):
            found = _same(one, other, tolerance)
            if found:
                return True
            undecided |= found is None
    return None if undecided else False


def _same(gold: Answer, answer: Answer, tolerance: float = 0.0) -> bool | None:
    if isinstance(gold, Choice) or isinstance(answer, Choice):
        return _same_choice(gold, answer, tolerance)
    if isinstance(gold, Ratio) or isinstance(answer, Ratio):
        return _same_ratio(gold, answer)
    if isinstance(gold, Value) and isinstance(answer, Value):
        return same_values(gold, answer, tolerance)
    if isinstance(gold, Text) and isinstance(answer, Text):
        return gold.key == answer.key or _same_named_sets(gold, answer)
    if isinstance(gold, Matrix) or isinstance(answer, Matrix):
        return _same_matrix(gold, answer, tolerance)
    if isinstance(gold, Relation) or isinstance(answer, Relation):
        return _same_relations(gold, answer, tolerance)
    if isinstance(gold, Sequence) and isinstance(answer, Sequence):
        return _same_sequences(gold, answer, tolerance)
    if isinstance(gold, Unread) or isinstance(answer, Unread):
        return _unread(gold, answer)
    reals = as_reals(gold), as_reals(answer)
    if reals[0] is not None and reals[1] is not None:
        return same_reals(reals[0], reals[1])
    return None if isinstance(gold, Union) and isinstance(answer, Union) else False


def _same_named_sets(gold: Text, answer: Text) -> bool:
    """Return whether words and a sign name the same set: *all real numbers* and the sign of the reals."""
    reals = as_reals(gold), as_reals(answer)
    return reals[0] is not None and reals[0] == reals[1]


def same_values(gold: Value, answer: Value, tolerance: float = 0.0) -> bool | None:
    """Compare two values with their units; a unit that one side leaves out does not count."""
    if gold.percent or answer.percent:
        return _same_percent(gold, answer, tolerance)
    scale = factor(gold.unit, answer.unit)
    if scale is None:
        return False
    if gold.node[0] == "base" or answer.node[0] == "base":
        return _digits(gold.node) == _digits(answer.node)
    node: Node = answer.node if scale == 1 else ("mul", ("num", scale), answer.node)
    return _same_nodes(gold.node, node, tolerance)


def _digits(node: Node) -> str:
    """Return the digits of a number in another base; a bare integer shows the same digits."""
    return str(node[1]) if node[0] in ("base", "num") else ""


def _same_percent(gold: Value, answer: Value, tolerance: float) -> bool | None:
    """45% is met by 45% and, since the question asked for a percentage, by 45 and by 0.45.

    Where the gold has no percent sign its own value decides; over 1 it may be meant in percent.
    """
    if gold.percent and answer.percent:
        return _same_nodes(gold.node, answer.node, tolerance)
    bare, signed = (answer.node, gold.node) if gold.percent else (gold.node, answer.node)
    if _same_nodes(bare, ("div", signed, ("num", Fraction(100))), tolerance):
        return True
    size = approximate(bare)
    if not gold.percent and (size is None or abs(size) <= 1):
        return False
    return _same_nodes(bare, signed, tolerance)


def _same_nodes(gold: Node, answer: Node, tolerance: float) -> bool | None:
    found = equal(gold, answer)
    if found or not tolerance:
        return found
    first, second = approximate(gold), approximate(answer)
    if first is None or second is None:
        return found
    return abs(first - second) <= tolerance * abs(first)


def _same_choice(gold: Answer, answer: Answer, tolerance: float) -> bool | None:
    if isinstance(gold, Choice) and isinstance(answer, Choice):
        if gold.rest and answer.rest and same(gold.rest, answer.rest, tolerance) is False:
            return False
        return gold.letter == answer.letter
    choice, other = (gold, answer) if isinstance(gold, Choice) else (answer, gold)
    assert isinstance(choice, Choice)
    if isinstance(other, Value) and other.node[0] in ("var", "const") and len(str(other.node[1])) == 1:
        return str(other.node[1]).upper() == choice.letter
    if choice.rest:  # "(C) 12" against 12
        return (
            _same(gold, read(choice.rest), tolerance)
            if choice is answer
            else _same(read(choice.rest), answer, tolerance)
        )
    if isinstance(other, Relation):
        _, value = label_and_value(other)
        return value is not None and _same(read(value), choice, tolerance)
    return False


def _same_ratio(gold: Answer, answer: Answer) -> bool | None:
    if isinstance(gold, Ratio) and isinstance(answer, Ratio):
        if gold.time and answer.time:
            return _same_time(gold.time, answer.time)
        return _proportional(gold.parts, answer.parts)
    ratio, other = (gold, answer) if isinstance(gold, Ratio) else (answer, gold)
    assert isinstance(ratio, Ratio)
    if isinstance(other, Value) and len(ratio.parts) == 2 and not other.unit and not other.percent:
        first, second = ratio.parts
        if isinstance(first, Value) and isinstance(second, Value):
            return equal(("div", first.node, second.node), other.node)
    return False


def _same_time(gold: str, answer: str) -> bool:
    if gold.endswith("?") == answer.endswith("?"):
        return gold == answer
    hours = [int(one.partition(":")[0]) for one in (gold, answer)]
    minutes = [one.rstrip("?").partition(":")[2] for one in (gold, answer)]
    return minutes[0] == minutes[1] and hours[0] % 12 == hours[1] % 12 and max(hours) - min(hours) in (0, 12)


def _proportional(gold: Listing[Answer], answer: Listing[Answer]) -> bool | None:
    if len(gold) != len(answer):
        return False
    nodes = [[part.node for part in side if isinstance(part, Value)] for side in (gold, answer)]
    if any(len(side) != len(gold) for side in nodes):
        return False
    pairs = list(zip(*nodes, strict=True))
    head = pairs[0]
    return _all(equal(("mul", one, head[1]), ("mul", other, head[0])) for one, other in pairs[1:])


def _same_matrix(gold: Answer, answer: Answer, tolerance: float) -> bool | None:
    rows = [_rows(one) for one in (gold, answer)]
    if rows[0] is None or rows[1] is None or [*map(len, rows[0])] != [*map(len, rows[1])]:
        return False
    cells = [[cell for row in side for cell in row] for side in rows if side is not None]
    return _all(_same(one, other, tolerance) for one, other in zip(*cells, strict=True))


def _rows(answer: Answer) -> list[tuple[Answer, ...]] | None:
    """Return an answer as rows; a bracketed sequence is a column, since vectors are written both ways."""
    if isinstance(answer, Matrix):
        return list(answer.rows) if len(answer.rows) > 1 else [(cell,) for cell in answer.rows[0]]
    if isinstance(answer, Sequence) and answer.brackets in ("()", "[]"):
        return [(item,) for item in answer.items]
    return None


def _same_relations(gold: Answer, answer: Answer, tolerance: float) -> bool | None:
    if isinstance(gold, Relation) and isinstance(answer, Relation):
        found = same_relation(gold, answer)
        if found is not False:
            return found
    reals = as_reals(gold), as_reals(answer)
    if reals[0] is not None and reals[1] is not None:
        return same_reals(reals[0], reals[1])
    values = []
    for one in (gold, answer):
        label, value = label_and_value(one) if isinstance(one, Relation) else ("", None)
        values.append((label, read(value)) if value is not None else ("", one))
    if isinstance(values[0][1], Relation) or isinstance(values[1][1], Relation):
        return False
    if values[0][0] and values[1][0] and values[0][0] != values[1][0]:
        return False
    return _same(values[0][1], values[1][1], tolerance)


def _same_sequences(gold: Sequence, answer: Sequence, tolerance: float) -> bool | None:
    kinds = gold.brackets, answer.brackets
    if all(kind in ("{}", "") for kind in kinds):
        return _same_unordered(gold.items, answer.items, tolerance, repeats="{}" not in kinds)
    if kinds[0] != kinds[1] and not _loose(*kinds) and len(gold.items) == 2:
        return False
    if "{}" in kinds or len(gold.items) != len(answer.items):
        return False
    return _all(_same(one, other, tolerance) for one, other in zip(gold.items, answer.items, strict=True))


def _loose(gold: str, answer: str) -> bool:
    """Whether two ways of bracketing may mean the same ordered values: ``1, 2`` against ``(1, 2)``."""
    return "" in (gold, answer) and (gold or answer) in ("()", "[]")


def _same_unordered(
    gold: Listing[Answer], answer: Listing[Answer], tolerance: float, *, repeats: bool
) -> bool | None:
    """Match items one to one in any order; in sets repeated items count once."""
    gold, answer = _without_labels(gold), _without_labels(answer)
    if not repeats:
        gold, answer = _distinct(gold), _distinct(answer)
    if len(gold) != len(answer):
        return False
    left = list(answer)
    undecided = False
    for one in gold:
        verdicts = [_same(one, other, tolerance) for other in left]
        if True in verdicts:
            left.pop(verdicts.index(True))
        elif None in verdicts:
            undecided = True
        else:
            return False
    return None if undecided else True


def _without_labels(items: Listing[Answer]) -> list[Answer]:
    """Drop the variable of ``x = 1 or x = 2``; different variables stay, since they tell the values apart."""
    pairs = [label_and_value(item) if isinstance(item, Relation) else ("", None) for item in items]
    labels = {label for label, value in pairs if value is not None}
    if len(labels) > 1 or any(
        value is None and isinstance(item, Relation) for item, (_, value) in zip(items, pairs, strict=True)
    ):
        return list(items)
    return [item if value is None else read(value) for item, (_, value) in zip(items, pairs, strict=True)]


def _distinct(items: Listing[Answer]) -> list[Answer]:
    found: list[Answer] = []
    for item in items:
        if not any(_same(item, other) for other in found):
            found.append(item)
    return found


def _unread(gold: Answer, answer: Answer) -> bool | None:
    """A formula beyond the fast path may still equal a formula; it never equals words or several answers."""
    kinds = (Unread, Value)
    return None if isinstance(gold, kinds) and isinstance(answer, kinds) else False


def _all(verdicts: object) -> bool | None:
    found = list(verdicts)  # type: ignore[call-overload]
    if False in found:
        return False
    return None if None in found else True


@lru_cache(maxsize=8192)
def why_no_gold(gold: str) -> str | None:
    """Return why a reference cannot be compared with, or None; ``needs-symbolic`` when only sympy can tell."""
    start_budget()
    spelled = trimmed(surface(gold))
    if not spelled:
        return "it is empty or too long to be an answer"
    if _unbalanced(spelled):
        return "its brackets do not close"
    answer = read(gold)
    if isinstance(answer, Text):
        return (
            None
            if re.search(r"[^\W\d_]", answer.key)
            else f"{text_key(spelled)!r} is neither an expression nor words"
        )
    if isinstance(answer, Value):
        return _no_value(answer)
    return "needs-symbolic" if isinstance(answer, Unread) else None


def _no_value(answer: Value) -> str | None:
    if answer.node[0] == "base":
        return None
    try:
        rational(answer.node)
    except Undefined:
        return "it divides by zero"
    except (NotRational, TooLarge):
        return None
    return None


def _depth(text: str) -> int:
    """Return how deep the brackets of a text go."""
    depth = deepest = 0
    for one in text:
        depth += (one in "([{") - (one in ")]}")
        deepest = max(deepest, depth)
    return deepest


def _unbalanced(text: str) -> bool:
    depth = 0
    for one in text.replace(r"\{", "{").replace(r"\}", "}"):
        depth += (one == "{") - (one == "}")
        if depth < 0:
            return True
    return depth != 0
