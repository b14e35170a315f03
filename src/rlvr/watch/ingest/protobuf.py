"""Just enough of the protocol buffer wire format to read event files without the packages that wrote them."""

from __future__ import annotations

import struct
from collections.abc import Iterator

Field = tuple[int, int | bytes]


def fields(data: bytes) -> Iterator[Field]:
    """Yield number and value of each field: an int for varints and fixed widths, else the bytes.

    Raises:
        ValueError: When the bytes are cut off or are no message.
    """
    at, end = 0, len(data)
    while at < end:
        key, at = varint(data, at)
        kind = key & 7
        value: int | bytes
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, at = data[at : at + 8], at + 8
        elif kind == 5:
            value, at = data[at : at + 4], at + 4
        elif kind == 2:
            size, at = varint(data, at)
            value, at = data[at : at + size], at + size
        else:
            raise ValueError(f"wire type {kind}")
        if at > end:
            raise ValueError("cut off")
        yield key >> 3, value


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a varint and the place after it.

    Raises:
        ValueError: When it is cut off.
    """
    result = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("cut off")
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return result, at
        shift += 7


def signed(value: int) -> int:
    """Return a varint read as a signed 64-bit number."""
    return value - (1 << 64) if value >= 1 << 63 else value


def float32(data: bytes) -> float:
    """Return four bytes as a float."""
    return float(struct.unpack("<f", data)[0])


def float64(data: bytes) -> float:
    """Return eight bytes as a float."""
    return float(struct.unpack("<d", data)[0])
