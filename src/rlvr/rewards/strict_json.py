"""JSON as RFC 8259 says it: no NaN, no infinity, no repeated names, no lone surrogates, numbers kept exact."""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal
from typing import Any

DEEPEST = 200
"""Levels of nesting beyond which a text is refused, as section 9 of the RFC allows."""
_LONGEST_NUMBER = 4000
_WHITESPACE = " \t\n\r"
_EXACT = 2**53


class NotJson(ValueError):  # a verdict on a text, not a failure of the program
    """The text is not JSON."""


def _no_constant(name: str) -> Any:
    raise NotJson(f"{name} is not JSON")


def _number(text: str) -> float | int:
    """Return a float, or the exact integer where a float would round it."""
    if len(text) > _LONGEST_NUMBER:
        raise NotJson("a number of thousands of digits")
    value = float(text)
    if math.isinf(value) or (abs(value) >= _EXACT and value.is_integer()):
        exact = Decimal(text)
        if exact.adjusted() > _LONGEST_NUMBER:
            raise NotJson(f"the number {text} is out of range")
        return int(exact) if exact == exact.to_integral_value() else value
    return value


def _integer(text: str) -> int:
    if len(text) > _LONGEST_NUMBER:
        raise NotJson("a number of thousands of digits")
    return int(text)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        double = next(name for name in names if names.count(name) > 1)
        raise NotJson(f"the name {double!r} is repeated")
    return found


_UNIQUE = json.JSONDecoder(
    object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_number, parse_int=_integer
)
_LENIENT = json.JSONDecoder(parse_constant=_no_constant, parse_float=_number, parse_int=_integer)
_NEXT = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[{\]}]', re.DOTALL)


def parse(text: str, *, reject_duplicates: bool = True) -> Any:
    """Parse all of ``text``; a byte order mark at its start is dropped.

    Raises:
        NotJson: With the reason.
    """
    text = text.strip(_WHITESPACE).removeprefix("\ufeff").strip(_WHITESPACE)
    value, end = decode_at(text, 0, reject_duplicates=reject_duplicates)
    if end != len(text):
        raise NotJson(f"text after the JSON value: {text[end : end + 20]!r}")
    return value


def decode_at(text: str, start: int, *, reject_duplicates: bool = True) -> tuple[Any, int]:
    """Parse the JSON value at ``start`` and return it with the place behind it.

    Raises:
        NotJson: With the reason.
    """
    if text.count("[", start) + text.count("{", start) > DEEPEST and depth(text, start) > DEEPEST:
        raise NotJson(f"nested deeper than {DEEPEST} levels")
    try:
        value, end = (_UNIQUE if reject_duplicates else _LENIENT).raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise NotJson(f"{error.msg} at character {error.pos}") from None
    except RecursionError:
        raise NotJson("nested too deeply") from None
    if _may_hold_surrogate(text):
        _no_surrogates(text[start:end], value)
    return value, end


def _may_hold_surrogate(text: str) -> bool:
    return "\\u" in text or not text.isascii()


def _no_surrogates(text: str, value: Any) -> None:
    try:
        text.encode()
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise NotJson("a lone surrogate, which is no Unicode text") from None


def depth(text: str, start: int = 0) -> int:
    """Return how deeply the brackets outside strings nest."""
    level = deepest = 0
    for found in _NEXT.finditer(text, start):
        sign = found.group()
        if sign[0] != '"':
            level += 1 if sign in "[{" else -1
            deepest = max(deepest, level)
    return deepest


def balanced_end(text: str, start: int) -> int:
    """Return the place behind the bracket that closes the one at ``start``, or -1."""
    level = 0
    for found in _NEXT.finditer(text, start):
        sign = found.group()
        if sign[0] != '"':
            level += 1 if sign in "[{" else -1
            if level <= 0:
                return found.end()
    return -1


def same_value(left: Any, right: Any) -> bool:
    """Return JSON equality: types count (true is not 1), but 3.0 is 3."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, int | float) and isinstance(right, int | float):
        return left == right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same_value(left[name], right[name]) for name in left)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(
            same_value(one, two) for one, two in zip(left, right, strict=True)
        )
    return type(left) is type(right) and bool(left == right)
