"""TensorBoard event files, read without tensorboard.

A file is a row of records: length (8 bytes), its checksum (4), the event, its checksum (4). An event has
``step`` (field 2) and ``summary`` (5) with values (1) of ``tag`` (1) and ``simple_value`` (2) or ``tensor`` (8).
Layout: tensorflow/tsl ``record_writer.cc`` and tensorboard ``event.proto``, ``summary.proto``, ``tensor.proto``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rlvr.watch.ingest.protobuf import fields, float32, float64, signed
from rlvr.watch.ingest.source import Row, Rows, open_binary

LONGEST_RECORD: Final = 64 << 20
_FLOAT, _DOUBLE = 1, 2


def event_file(path: Path) -> Rows:
    """Read one event file."""
    remarks: list[str] = []
    return Rows(_rows([path], remarks), "TensorBoard", remarks)


def event_folder(paths: list[Path]) -> Rows:
    """Read the event files of one run in order of their names (which begin with the time)."""
    remarks: list[str] = []
    return Rows(_rows(sorted(paths, key=lambda p: p.name), remarks), "TensorBoard", remarks)


def _rows(paths: list[Path], remarks: list[str]) -> Iterator[Row]:
    """Yield one row a step: scalars of neighbouring events with the same step."""
    row: dict[str, float] = {}
    step: int | None = None
    for path in paths:
        for at, tag, value in _scalars(path, remarks):
            if at != step or tag in row:
                if row:
                    yield {**row, "step": step}
                row, step = {}, at
            row[tag] = value
    if row:
        yield {**row, "step": step}


def _scalars(path: Path, remarks: list[str]) -> Iterator[tuple[int, str, float]]:
    for record in _records(path, remarks):
        try:
            yield from _event(record)
        except (ValueError, struct.error):
            remarks.append(f"{path.name}: a damaged event was left out")


def _records(path: Path, remarks: list[str]) -> Iterator[bytes]:
    with open_binary(path) as file:
        while len(header := file.read(12)) == 12:
            size = struct.unpack("<Q", header[:8])[0]
            body = file.read(size + 4) if size <= LONGEST_RECORD else b""
            if len(body) < size + 4:
                remarks.append(f"{path.name}: cut off within a record; what stands before it was read")
                return
            yield body[:size]


def _event(data: bytes) -> Iterator[tuple[int, str, float]]:
    step, summaries = 0, []
    for key, value in fields(data):
        if key == 2 and isinstance(value, int):
            step = signed(value)
        elif key == 5 and isinstance(value, bytes):
            summaries.append(value)
    for summary in summaries:
        for key, value in fields(summary):
            if key == 1 and isinstance(value, bytes):
                tag, number = _value(value)
                if tag and number is not None:
                    yield step, tag, number


def _value(data: bytes) -> tuple[str, float | None]:
    tag, number = "", None
    for key, value in fields(data):
        if not isinstance(value, bytes):
            continue
        if key == 1:
            tag = value.decode("utf-8", "replace")
        elif key == 2:
            number = float32(value)
        elif key == 8:
            number = _tensor(value)
    return tag, number


def _tensor(data: bytes) -> float | None:
    """Return a scalar tensor's value; None for anything larger or of another type."""
    kind, content = 0, b""
    for key, value in fields(data):
        if key == 1 and isinstance(value, int):
            kind = value
        elif key in (4, 5, 6) and isinstance(value, bytes):
            content = value
    if kind == _FLOAT and len(content) == 4:
        return float32(content)
    return float64(content) if kind == _DOUBLE and len(content) == 8 else None
