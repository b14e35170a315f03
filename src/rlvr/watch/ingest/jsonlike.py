"""JSON in its several dresses: trainer_state.json, arrays, column tables, JSONL, notebooks."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from rlvr.watch.completions import PROMPT_KEYS, TEXT_KEYS
from rlvr.watch.ingest.source import Row, Rows, lines_of, open_binary

WHOLE_BYTES: Final = 256 << 20
"""A JSON document above this size is scanned for flat objects instead of being loaded."""
_LISTS: Final = ("log_history", "history", "logs", "metrics", "data", "rows", "records")
_KEPT: Final = frozenset({*TEXT_KEYS, *PROMPT_KEYS})


def read(path: Path) -> Rows:
    """Read a file that starts like JSON: a document, or one object a line."""
    if _one_object_a_line(path):
        remarks: list[str] = []
        return Rows(_jsonl(path, remarks), "JSONL", remarks)
    return _document(path)


def flatten(row: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested objects as one, keys joined by ``/``; messages and texts stay as they are.

    verl's file logger nests metrics under ``data``; that level is dropped.
    """
    flat: dict[str, Any] = {}
    for key, value in row.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and key not in _KEPT:
            inner = "" if key in ("data", "metrics", "logs", "values") else f"{name}/"
            flat.update(flatten(value, inner))
        else:
            flat[name] = value
    return flat


def _one_object_a_line(path: Path) -> bool:
    with open_binary(path) as file:
        try:
            first = next((line for line in file if line.strip()), b"")
            second = next((line for line in file if line.strip()), b"")
        except (EOFError, OSError):
            return False
    if not isinstance(_parsed(first.decode("utf-8", "replace")), dict):
        return False
    return second.lstrip().startswith(b"{")


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _jsonl(path: Path, remarks: list[str]) -> Iterator[Row]:
    bad: list[int] = []
    for index, line in enumerate(lines_of(path), 1):
        if not line.strip():
            continue
        row = _parsed(line)
        if isinstance(row, dict):
            yield from _rows_in(row)
        else:
            bad.append(index)
    if bad:
        remarks.append(f"{len(bad)} lines are no JSON object and were left out (first: line {bad[0]})")


def _rows_in(row: dict[str, Any]) -> Iterator[Row]:
    """Yield a line's rows: itself, or a whole document that stands on one line."""
    inner = next((row[key] for key in _LISTS if _is_rows(row.get(key))), None)
    if inner is None:
        yield from _column_rows(row)
    else:
        yield from (flatten(item) for item in inner if isinstance(item, Mapping))


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(item, Mapping) for item in value[:3])


def _column_rows(row: Mapping[str, Any]) -> Iterator[Row]:
    """Yield rows of a table by columns (``{"step": [1, 2], "reward": [0.1, 0.2]}``), or the row itself."""
    columns = {k: v for k, v in row.items() if isinstance(v, list) and len(v) > 1 and not _is_rows(v)}
    numeric = [v for v in columns.values() if isinstance(v[0], int | float | None)]
    if len(numeric) < 2 or len({len(v) for v in numeric}) != 1:
        yield flatten(row)
        return
    for values in zip(*columns.values(), strict=False):
        yield dict(zip(columns, values, strict=True))


def _document(path: Path) -> Rows:
    remarks: list[str] = []
    document = _load(path)
    if document is None:
        from rlvr.watch.ingest import text

        remarks.append("the JSON is broken or cut off (or too large to load): flat objects in it were read")
        return Rows(text.printed_dicts(lines_of(path)), "JSON, damaged", remarks)
    if isinstance(document, dict) and isinstance(document.get("cells"), list):
        from rlvr.watch.ingest import text

        return Rows(text.rows_in(_notebook_lines(document)), "notebook", remarks)
    if isinstance(document, dict):
        return Rows(
            _rows_in(document), "trainer_state.json" if "log_history" in document else "JSON", remarks
        )
    rows = (
        (flatten(item) for item in document if isinstance(item, Mapping))
        if isinstance(document, list)
        else ()
    )
    return Rows(rows, "JSON", remarks)


def _load(path: Path) -> Any:
    with open_binary(path) as file:
        try:
            content = file.read(WHOLE_BYTES + 1)
        except (EOFError, OSError):
            return None
    return None if len(content) > WHOLE_BYTES else _parsed(content.decode("utf-8", "replace"))


def _notebook_lines(notebook: Mapping[str, Any]) -> Iterator[str]:
    outputs = itertools.chain.from_iterable(
        cell.get("outputs") or () for cell in notebook["cells"] if isinstance(cell, Mapping)
    )
    for output in outputs:
        if "text" in output:
            yield from _lines(output["text"])
        data = output.get("data") or {}
        if "text/html" in data:
            from rlvr.watch.ingest.tables import html_rows

            yield from html_rows("".join(_lines(data["text/html"])))
        elif "text/plain" in data:
            yield from _lines(data["text/plain"])


def _lines(text: str | Sequence[str]) -> list[str]:
    return ("".join(text) if not isinstance(text, str) else text).splitlines(keepends=True)
