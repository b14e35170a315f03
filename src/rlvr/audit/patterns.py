"""Text made from a regular expression: one that it matches, and ones that make a careless engine blow up."""

from __future__ import annotations

import importlib
import re
from typing import Any

parser: Any = importlib.import_module("re._parser")  # the standard library has no public parser of patterns
_WIDE = 20
_SETTLE = {"CATEGORY_DIGIT": "7", "CATEGORY_SPACE": " ", "CATEGORY_WORD": "a"}
_SETTLE |= {"CATEGORY_NOT_DIGIT": "a", "CATEGORY_NOT_SPACE": "a", "CATEGORY_NOT_WORD": " "}


def matching_texts(pattern: str, answer: str, filler: str) -> list[str]:
    """Return texts that ``pattern`` should match, with ``answer`` in one of its capture groups each.

    Args:
        pattern: A regular expression; one that does not compile gives no texts.
        answer: What a capture group is filled with.
        filler: What any other open-ended part is filled with.
    """
    try:
        tree = parser.parse(pattern, re.DOTALL)
    except (re.error, RecursionError, OverflowError):
        return []
    groups = max(int(tree.state.groups) - 1, 0)
    found = [_sample(list(tree), group, answer, filler) for group in range(groups, 0, -1)]
    return list(dict.fromkeys(found or [_sample(list(tree), 0, answer, filler)]))[:4]


def _sample(items: list[Any], chosen: int, answer: str, filler: str) -> str:
    return "".join(_piece(str(operator), argument, chosen, answer, filler) for operator, argument in items)


def _piece(operator: str, argument: Any, chosen: int, answer: str, filler: str) -> str:
    if operator == "LITERAL":
        return chr(argument)
    if operator == "NOT_LITERAL":
        return "a" if chr(argument) != "a" else "b"
    if operator == "ANY":
        return "a"
    if operator == "IN":
        return _member(argument)
    if operator in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        return _repeat(argument, chosen, answer, filler)
    if operator == "SUBPATTERN":
        group, inner = argument[0], list(argument[-1])
        return answer if group == chosen and group else _sample(inner, chosen, answer, filler)
    if operator == "BRANCH":
        return _sample(list(argument[1][0]), chosen, answer, filler)
    if operator == "ATOMIC_GROUP":
        return _sample(list(argument), chosen, answer, filler)
    return ""


def _repeat(argument: Any, chosen: int, answer: str, filler: str) -> str:
    low, high, inner = int(argument[0]), int(argument[1]), list(argument[2])
    if high > _WIDE and _is_open(inner) and not _space_only(inner):
        return filler if low <= len(filler) else filler * (low // max(len(filler), 1) + 1)
    if low == 0 and (high == 1 or _space_only(inner)):
        return ""
    return _sample(inner, chosen, answer, filler) * max(low, 1)


def _is_open(items: list[Any]) -> bool:
    if len(items) != 1:
        return False
    operator, argument = str(items[0][0]), items[0][1]
    if operator in ("ANY", "NOT_LITERAL"):
        return True
    text = str(argument)
    return operator == "IN" and ("NEGATE" in text or ("NOT_SPACE" in text) or ("CATEGORY_WORD" in text))


def _space_only(items: list[Any]) -> bool:
    if len(items) != 1:
        return False
    text = str(items[0])
    return "CATEGORY_SPACE" in text and "NOT_SPACE" not in text


def _member(choices: Any) -> str:
    operators = [(str(operator), argument) for operator, argument in choices]
    if operators and operators[0][0] == "NEGATE":
        return next((one for one in "a7 Z." if re.match(r"[\s\S]", one) and not _in(one, operators[1:])), "a")
    for operator, argument in operators:
        if operator == "LITERAL":
            return chr(argument)
        if operator == "RANGE":
            return chr(argument[0])
        if operator == "CATEGORY":
            return _SETTLE.get(str(argument), "a")
    return "a"


def _in(letter: str, operators: list[tuple[str, Any]]) -> bool:
    for operator, argument in operators:
        if operator == "LITERAL" and ord(letter) == argument:
            return True
        if operator == "RANGE" and argument[0] <= ord(letter) <= argument[1]:
            return True
        if operator == "CATEGORY" and _SETTLE.get(str(argument)) == letter:
            return True
    return False


def pumps(pattern: str) -> list[str]:
    """Return texts on which nested or adjacent repeats of ``pattern`` take exponential or cubic time."""
    try:
        tree = parser.parse(pattern, re.DOTALL)
    except (re.error, RecursionError, OverflowError):
        return []
    found: list[str] = []
    _collect(list(tree), "", found)
    return list(dict.fromkeys(found))[:6]


def _collect(items: list[Any], before: str, found: list[str]) -> None:
    for operator, argument in items:
        name = str(operator)
        if name in ("MAX_REPEAT", "MIN_REPEAT") and int(argument[1]) > _WIDE:
            inner = list(argument[2])
            unit = _unit(inner)
            if unit and _has_choice(inner):
                found.append(before + unit * 60 + "\x00")
                found.append(before + unit[:1] * 60 + "\x00")
            if unit and not before.endswith(unit):
                found.append(before + unit * 600 + "\x00")
            _collect(inner, before, found)
        elif name == "SUBPATTERN":
            _collect(list(argument[-1]), before, found)
        elif name == "BRANCH":
            for branch in argument[1]:
                _collect(list(branch), before, found)
        before += _piece(name, argument, -1, "1", "a")


def _unit(items: list[Any]) -> str:
    return _sample(items, -1, "1", "a")[:12]


def _has_choice(items: list[Any]) -> bool:
    names = [str(operator) for operator, _ in items]
    if any(name in ("MAX_REPEAT", "MIN_REPEAT", "BRANCH") for name in names):
        return True
    return any(
        _has_choice(list(argument[-1])) for operator, argument in items if str(operator) == "SUBPATTERN"
    )
