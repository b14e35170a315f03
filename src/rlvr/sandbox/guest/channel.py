"""Frames of JSON between a judge and the solution before it."""

from __future__ import annotations

import json
import os
import struct
from typing import Any

_HEADER = struct.Struct("<I")


class ChannelClosedError(Exception):
    """The other side is gone, or what it sent is no frame."""


def send_frame(descriptor: int, value: Any) -> None:
    """Write one frame.

    Raises:
        ChannelClosedError: Nobody reads any more.
    """
    body = json.dumps(value).encode()
    data = memoryview(_HEADER.pack(len(body)) + body)
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except OSError as error:
        raise ChannelClosedError(str(error)) from error


def receive_frame(descriptor: int, largest: int) -> Any:
    """Read one frame.

    Raises:
        ChannelClosedError: The end was reached, or the frame is larger than ``largest`` bytes or malformed.
    """
    (size,) = _HEADER.unpack(_read(descriptor, _HEADER.size))
    if size > largest:
        raise ChannelClosedError(f"a frame of {size} bytes")
    try:
        return json.loads(_read(descriptor, size))
    except (ValueError, RecursionError) as error:
        raise ChannelClosedError("a malformed frame") from error


def _read(descriptor: int, size: int) -> bytes:
    parts = []
    while size:
        try:
            part = os.read(descriptor, min(size, 1 << 20))
        except OSError as error:
            raise ChannelClosedError(str(error)) from error
        if not part:
            raise ChannelClosedError("the end was reached")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
