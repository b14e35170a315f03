"""Plain data as JSON: the only thing that crosses between the solution and those who judge it.

Exact built-in types only, with a depth and a size that are bounded. What is not plain data becomes
:class:`Opaque`, which equals nothing. Encoding runs beside the solution and may be tampered with at will: whatever
it writes, the reader builds exact built-in values from it, or refuses it.

Tags: ``{"T": tuple} {"S": set} {"R": frozenset} {"D": pairs of a dict} {"I": hex of a long int} {"F": nan or inf}
{"C": complex} {"B": hex of bytes} {"A": [type, shape, flat list] of an array} {"O": [type name, handle]}``; all
else is itself.
"""

from __future__ import annotations

import collections
import math
import sys
from typing import Any, Callable, Dict, Optional

MAX_DEPTH = 100
"""Nesting of containers that is still plain data."""

_LONG = 1 << 63


class NotPlainError(ValueError):
    """A value, or its encoding, is not plain data within the bounds."""


class Opaque:
    """Stands for an object that is not plain data: equal to nothing but itself, without a truth value."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    def __hash__(self) -> int:
        return id(self)

    def __bool__(self) -> bool:
        raise TypeError(f"an object of type {self.kind} is not plain data and has no truth value here")

    def __repr__(self) -> str:
        return f"<{self.kind}, not plain data>"


Handle = Callable[[Any], Optional[int]]


class Encoder:
    """Encodes one value.

    Args:
        size: Bytes that the encoding may take, about.
        handle: Names an object that is not plain data, so that the judge can call its methods; None refuses names.
        strict: Raise on what is not plain data and has no name, instead of marking it.
    """

    def __init__(self, size: int, handle: Handle | None = None, strict: bool = False) -> None:
        self._left = size
        self._handle = handle
        self._strict = strict

    def encode(self, value: Any, depth: int = 0) -> Any:
        """Return ``value`` in the form that ``json`` writes.

        Raises:
            NotPlainError: Too large, too deep, or not plain although ``strict``.
        """
        kind = type(value)
        self._spend(8)
        if value is None or kind is bool:
            return value
        if kind is int:
            return self._integer(value)
        if kind is str:
            self._spend(len(value))
            return value
        if kind is float:
            return value if math.isfinite(value) else {"F": repr(value)}
        if kind in _CONTAINERS:
            return self._container(kind, value, depth)
        return self._other(value, depth)

    def _spend(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise NotPlainError("larger than the limit")

    def _integer(self, value: int) -> Any:
        if -_LONG < value < _LONG:
            return value
        self._spend(value.bit_length() // 4)
        return {"I": hex(value)}

    def _container(self, kind: type, value: Any, depth: int) -> Any:
        if depth >= MAX_DEPTH:
            raise NotPlainError(f"nested deeper than {MAX_DEPTH} levels")
        self._spend(4 * len(value))
        below = depth + 1
        if kind is dict:
            return {"D": [[self.encode(k, below), self.encode(v, below)] for k, v in list(value.items())]}
        items = [self.encode(item, below) for item in (value if kind in (list, tuple) else list(value))]
        tag = _CONTAINERS[kind]
        return {tag: items} if tag else items

    def _other(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind is complex:
            return {"C": [repr(value.real), repr(value.imag)]}
        if kind in (bytes, bytearray):
            self._spend(2 * len(value))
            return {"B": value.hex()}
        array = _as_array(value)
        if array is not None:
            self._spend(8 * value.size)
            return {"A": [array.dtype.str, list(array.shape), self.encode(array.ravel().tolist(), depth)]}
        plain = _as_builtin(value)
        if plain is not value:
            return self.encode(plain, depth + 1 if depth < MAX_DEPTH else depth)
        handle = self._handle(value) if self._handle else None
        if self._strict and handle is None:
            raise NotPlainError(f"an object of type {kind.__name__}")
        return {"O": [str(kind.__name__)[:80], handle]}


_CONTAINERS: Dict[type, str] = {list: "", tuple: "T", set: "S", frozenset: "R", dict: "D"}
_BASES = (bool, int, float, str, tuple, list, dict, set, frozenset)


def _as_array(value: Any) -> Any:
    """Return a numpy array of numbers or texts, or None for anything else."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, numpy.ndarray) or value.dtype.kind not in "biufcU":
        return None
    return numpy.asarray(value)


def _as_builtin(value: Any) -> Any:
    """Return a numpy value or an instance of a plain subclass as the built-in value it stands for.

    A subclass counts as plain when equality is that of its base, as for named tuples, counters and text
    enumerations. This runs beside the solution: a forger gains no more than by returning the value itself.
    """
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.generic):
        return value.item()
    if type(value) in (collections.Counter, collections.OrderedDict):
        return dict(value)
    for base in _BASES:
        if isinstance(value, base) and type(value).__eq__ is base.__eq__:
            return _COPIES[base](value)
    return value


_COPIES: Dict[type, Callable[[Any], Any]] = {
    bool: bool,
    int: int.__int__,
    float: float.__float__,
    str: str.__str__,
    tuple: lambda value: tuple(tuple.__iter__(value)),
    list: lambda value: list(list.__iter__(value)),
    dict: lambda value: dict(dict.items(value)),
    set: lambda value: set(set.__iter__(value)),
    frozenset: lambda value: frozenset(frozenset.__iter__(value)),
}


Stand = Callable[[str, Optional[int]], Any]


def decode(data: Any, opaque: Stand | None = None, arrays: bool = False) -> Any:
    """Return the value that ``data``, read by ``json``, stands for.

    Args:
        data: The encoding.
        arrays: Make numpy arrays where numpy is loaded, otherwise nested lists; never on the host, where their size
            has no limit.
        opaque: Makes the stand-in for an object that is not plain data, from its type's name and handle.

    Raises:
        NotPlainError: The encoding is malformed.
    """
    kind = type(data)
    if data is None or kind in (bool, int, float, str):
        return data
    if kind is list:
        return [decode(item, opaque, arrays) for item in data]
    tag, body = tagged(data)
    if tag == "O":
        name, handle = opaque_parts(body)
        return (opaque or _bare)(name, handle)
    if tag in ("T", "S", "R", "D"):
        return _decode_container(tag, body, opaque, arrays)
    if tag == "A":
        return _decode_array(body, arrays)
    return _decode_scalar(tag, body)


def tagged(data: Any) -> tuple[str, Any]:
    """Return the tag and the body of a tagged value.

    Raises:
        NotPlainError: It is not one.
    """
    if type(data) is not dict or len(data) != 1:
        raise NotPlainError("a malformed value")
    return next(iter(data.items()))


def opaque_parts(body: Any) -> tuple[str, int | None]:
    """Return the type's name and the handle of an opaque value."""
    if type(body) is not list or len(body) != 2 or type(body[0]) is not str:
        raise NotPlainError("a malformed object")
    return body[0][:80], body[1] if type(body[1]) is int else None


def _bare(name: str, handle: int | None) -> Opaque:
    del handle
    return Opaque(name)


_MAKERS: Dict[str, Callable[[Any], Any]] = {"T": tuple, "S": set, "R": frozenset}


def _decode_container(tag: str, body: Any, opaque: Stand | None, arrays: bool) -> Any:
    if type(body) is not list:
        raise NotPlainError("a malformed container")
    try:
        if tag == "D":
            return {decode(key, opaque, arrays): decode(value, opaque, arrays) for key, value in body}
        items: list[Any] = [decode(item, opaque, arrays) for item in body]
        return _MAKERS[tag](items)
    except (TypeError, ValueError) as error:
        raise NotPlainError("a malformed container") from error


def _decode_array(body: Any, arrays: bool) -> Any:
    kind, shape, flat = array_parts(body)
    numpy = sys.modules.get("numpy") if arrays else None
    values = decode(flat)
    if numpy is None:
        return nested(values, shape)
    try:
        return numpy.array(values, dtype=kind).reshape(shape)
    except (TypeError, ValueError, OverflowError) as error:
        raise NotPlainError("a malformed array") from error


def array_parts(body: Any) -> tuple[str, list[int], list[Any]]:
    """Return the type, the shape and the flat values of an array.

    Raises:
        NotPlainError: They do not fit one another.
    """
    if type(body) is not list or len(body) != 3 or [type(part) for part in body] != [str, list, list]:
        raise NotPlainError("a malformed array")
    kind, shape, flat = body
    if kind[1:2] not in tuple("biufcU") or len(shape) > 32 or len(kind) > 12:
        raise NotPlainError("a malformed array")
    if any(type(side) is not int or side < 0 for side in shape) or math.prod(shape) != len(flat):
        raise NotPlainError("a malformed array")
    return kind, shape, flat


def nested(flat: list[Any], shape: list[int]) -> Any:
    """Return an array's values as nested lists; the value itself for a shape without sides."""
    if not shape:
        return flat[0]
    if not flat:
        return []
    step = len(flat) // shape[0]
    return [nested(flat[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]


def _decode_scalar(tag: str, body: Any) -> Any:
    try:
        if tag == "I" and type(body) is str:
            return int(body, 16)
        if tag == "F" and body in ("nan", "inf", "-inf"):
            return float(body)
        if tag == "C" and type(body) is list and len(body) == 2:
            return complex(float(body[0]), float(body[1]))
        if tag == "B" and type(body) is str:
            return bytes.fromhex(body)
    except (TypeError, ValueError) as error:
        raise NotPlainError("a malformed value") from error
    raise NotPlainError(f"an unknown tag {tag[:20]!r}")
