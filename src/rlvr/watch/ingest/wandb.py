"""wandb's own ``.wandb`` file, read without wandb, so that an offline run needs no upload.

The file is a LevelDB log: a 7-byte head, then blocks of 32 KiB with records of checksum (4), length (2), type (1:
whole, first, middle, last). Each record is a protocol buffer; ``history`` (field 2) holds items (1) of ``key``
(1) or ``nested_key`` (2) and ``value_json`` (16). Layout: wandb ``datastore.py`` and ``wandb_internal.proto``.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from rlvr.watch.ingest.protobuf import fields
from rlvr.watch.ingest.source import Row, Rows, open_binary

BLOCK: Final = 32 * 1024
_HEAD: Final = 7
_WHOLE, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4


def wandb_file(path: Path) -> Rows:
    """Read a ``.wandb`` file."""
    remarks: list[str] = []
    return Rows(_rows(path, remarks), "wandb", remarks)


def _rows(path: Path, remarks: list[str]) -> Iterator[Row]:
    bad = 0
    for record in _records(path):
        try:
            row = _history(record)
        except (ValueError, struct.error):
            bad += 1
            continue
        if row:
            yield row
    if bad:
        remarks.append(f"{path.name}: {bad} damaged records were left out")


def _records(path: Path) -> Iterator[bytes]:
    """Yield whole records, put together from their pieces."""
    pieces: list[bytes] = []
    for kind, piece in _pieces(path):
        if kind in (_WHOLE, _FIRST):
            pieces = []
        pieces.append(piece)
        if kind in (_WHOLE, _LAST):
            yield b"".join(pieces)


def _pieces(path: Path) -> Iterator[tuple[int, bytes]]:
    with open_binary(path) as file:
        at = len(file.read(_HEAD))
        while True:
            left = BLOCK - at % BLOCK
            if left < _HEAD:
                at += len(file.read(left))
                continue
            header = file.read(_HEAD)
            if len(header) < _HEAD:
                return
            size, kind = struct.unpack("<HB", header[4:])
            piece = file.read(size)
            if len(piece) < size or kind not in (_WHOLE, _FIRST, _MIDDLE, _LAST):
                return
            at += _HEAD + size
            yield kind, piece


def _history(record: bytes) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for key, value in fields(record):
        if key != 2 or not isinstance(value, bytes):
            continue
        for inner, item in fields(value):
            if inner == 1 and isinstance(item, bytes):
                name, text = _item(item)
                if name:
                    row[name] = json.loads(text)
    return row


def _item(data: bytes) -> tuple[str, str]:
    names: list[str] = []
    text = "null"
    for key, value in fields(data):
        if not isinstance(value, bytes):
            continue
        if key in (1, 2):
            names.append(value.decode("utf-8", "replace"))
        elif key == 16:
            text = value.decode("utf-8", "replace")
    return "/".join(names), text
