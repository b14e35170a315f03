"""Equality of an expected value or text with what the solution returned or printed; run by the host alone.

The received side is read where it stands in its encoding, in step with the expected one: nothing hostile is ever
hashed into a table, so that crafted collisions cost nothing.
"""

from __future__ import annotations

import math
import re
from typing import Any

from rlvr.sandbox.guest.codec import NotPlainError, array_parts, decode, nested, tagged
from rlvr.sandbox.protocol import Comparison

_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\Z")
_INTEGER = re.compile(rb"[+-]?\d+\Z")
_LONGEST_NUMBER = 400
_SHOWN = 80


def values_equal(expected: Any, received: Any, tolerance: float | None = None) -> bool:
    """Return whether the encoding ``received`` stands for a value equal to ``expected``.

    Python's equality with one exception: a tuple equals a list. With a tolerance, an expected float (not a set's
    member, not a key) may be missed by that much, absolutely or relatively. NaN equals nothing.
    """
    try:
        return _equal(expected, received, tolerance)
    except (NotPlainError, RecursionError):
        return False


def _equal(expected: Any, received: Any, tolerance: float | None) -> bool:
    kind = type(expected)
    if type(received) is dict and "A" in received:
        _, shape, flat = array_parts(received["A"])
        received = nested(flat, shape)
    if kind in (list, tuple):
        items = _sequence(received)
        return (
            items is not None
            and len(items) == len(expected)
            and all(_equal(one, other, tolerance) for one, other in zip(expected, items, strict=True))
        )
    if type(received) is dict:
        tag, body = tagged(received)
        if tag == "D":
            return isinstance(expected, dict) and _dicts_equal(expected, body, tolerance)
        if tag in ("S", "R"):
            return isinstance(expected, set | frozenset) and _sets_equal(expected, body)
        if tag not in ("I", "F", "C", "B"):
            return False
    elif type(received) is list:
        return False
    if kind in (dict, set, frozenset):
        return False
    return _scalars_equal(expected, decode(received), tolerance)


def _sequence(received: Any) -> list[Any] | None:
    if type(received) is list:
        return received
    if type(received) is dict:
        tag, body = tagged(received)
        if tag == "T" and type(body) is list:
            return body
    return None


def _scalars_equal(expected: Any, value: Any, tolerance: float | None) -> bool:
    if tolerance is not None and type(expected) is float and type(value) in (int, float):
        return floats_close(expected, value, tolerance)
    return bool(expected == value)


def floats_close(expected: float, value: float, tolerance: float) -> bool:
    """Return whether ``value`` misses ``expected`` by at most ``tolerance``, absolutely or relatively."""
    try:
        return math.isclose(value, expected, rel_tol=0.0, abs_tol=tolerance * max(1.0, abs(expected)))
    except OverflowError:  # an int beyond every float
        return False


def _dicts_equal(expected: dict[Any, Any], pairs: Any, tolerance: float | None) -> bool:
    if type(pairs) is not list or len(pairs) != len(expected):
        return False
    missing = dict(expected)
    for pair in pairs:
        if type(pair) is not list or len(pair) != 2:
            return False
        key = _member(pair[0], missing)
        if key is _ABSENT or not _equal(missing.pop(key), pair[1], tolerance):
            return False
    return True


def _sets_equal(expected: frozenset[Any] | set[Any], items: Any) -> bool:
    if type(items) is not list or len(items) != len(expected):
        return False
    missing = set(expected)
    for item in items:
        key = _member(item, missing)
        if key is _ABSENT:
            return False
        missing.discard(key)
    return True


_ABSENT = object()


def _member(encoded: Any, table: dict[Any, Any] | set[Any]) -> Any:
    try:
        value = decode(encoded)
        return value if value in table else _ABSENT
    except TypeError:  # not hashable
        return _ABSENT


def text_equal(expected: str, printed: bytes, comparison: Comparison, tolerance: float) -> bool:
    """Return whether a program printed the expected text, by the declared comparison."""
    wanted = expected.encode("utf-8", "surrogateescape")
    if comparison is Comparison.EXACT:
        return wanted == printed
    lines, others = _lines(wanted), _lines(printed)
    if len(lines) != len(others):
        return False
    if comparison is Comparison.LINES:
        return all(one.split() == other.split() for one, other in zip(lines, others, strict=True))
    return all(_tokens_close(one, other, tolerance) for one, other in zip(lines, others, strict=True))


def _lines(text: bytes) -> list[bytes]:
    return text.replace(b"\r\n", b"\n").rstrip().split(b"\n")


def _tokens_close(expected: bytes, printed: bytes, tolerance: float) -> bool:
    wanted, found = expected.split(), printed.split()
    return len(wanted) == len(found) and all(
        one == other or _numbers_close(one, other, tolerance)
        for one, other in zip(wanted, found, strict=True)
    )


def _numbers_close(expected: bytes, printed: bytes, tolerance: float) -> bool:
    if max(len(expected), len(printed)) > _LONGEST_NUMBER:
        return False
    if not (_NUMBER.match(expected) and _NUMBER.match(printed)):
        return False
    wanted, found = float(expected), float(printed)
    if _INTEGER.match(expected):
        return wanted == found and (not _INTEGER.match(printed) or int(expected) == int(printed))
    return math.isfinite(wanted) and floats_close(wanted, found, tolerance)


def shown(value: Any) -> str:
    """Return a short text for a value in a message."""
    try:
        text = value if isinstance(value, str) else repr(value)
    except (ValueError, RecursionError):  # an integer too long to print, a list within itself
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def printable(text: str) -> str:
    """Return ``text`` without control characters, so that a terminal shows it and does nothing else."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)
