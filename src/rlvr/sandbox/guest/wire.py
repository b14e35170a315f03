"""Messages between the host and a zygote, on a socket that keeps their boundaries.

A request starts a child or ends one; descriptors travel with it, so that the zygote never sees code, tests or
results, and no child can find those of another in the memory it inherits.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

CALLS = b"c"
"""Run the calls of the payload and write their results. Descriptors: payload, results."""
PROGRAM = b"p"
"""Run the payload's program. Descriptors: payload, remarks, standard input, standard output."""
SERVED = b"s"
"""Answer a judge's calls. Descriptors: payload, channel."""
JUDGE = b"j"
"""Judge served solutions, until ended. Descriptors: payload, channel."""
KILL = b"k"
"""End the child with this number, running or waiting."""

BY_CPU, BY_WALL, BY_REQUEST, NOT_STARTED, BY_THREADS = 1, 2, 3, 4, 5
"""Why the zygote ended a child, or that it could not be started and confined."""

_REQUEST = struct.Struct("<cQddQQQ")
_REPORT = struct.Struct("<QiBBdddQ")
LARGEST = 65536
"""Bytes of the largest message."""


class Request(NamedTuple):
    """What the host asks for.

    Attributes:
        kind: One of the constants above.
        number: Names the child in later messages; never 0.
        cpu: CPU seconds.
        wall: Wall seconds.
        memory: Bytes of address space beyond the zygote's.
        file_size: Bytes that the child may write to one descriptor.
        judge: Number of the judge whose CPU counts too; 0 without.
    """

    kind: bytes
    number: int
    cpu: float = 0.0
    wall: float = 0.0
    memory: int = 0
    file_size: int = 0
    judge: int = 0

    def pack(self) -> bytes:
        """Return the message."""
        return _REQUEST.pack(*self)

    @classmethod
    def unpack(cls, data: bytes) -> Request:
        """Read a message."""
        return cls(*_REQUEST.unpack(data))


class Report(NamedTuple):
    """A child's end.

    Attributes:
        number: The child.
        status: As ``waitpid`` returns it.
        ended: 0, or why the zygote ended it.
        awake: Whether its wall time passed because others had the processor for a multiple of it, it waited for the
            disk, it was stopped from outside, or its waits are not known; not because it slept.
        cpu: CPU seconds used, its share of the judge included.
        wall: Seconds from its start to its end.
        starved: Seconds it was ready to run while others had the processor.
        peak: Bytes of its largest resident set.
    """

    number: int
    status: int
    ended: int
    awake: int
    cpu: float
    wall: float
    starved: float
    peak: int

    def pack(self) -> bytes:
        """Return the message."""
        return _REPORT.pack(*self)

    @classmethod
    def unpack(cls, data: bytes) -> Report:
        """Read a message."""
        return cls(*_REPORT.unpack(data))
