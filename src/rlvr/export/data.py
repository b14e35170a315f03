"""Rows as files that ``datasets`` reads back unchanged.

Arrow gives every row of a nested column the same keys and fills in None, and one column must have one type. Columns
that are not plain scalars of one type are therefore written as JSON text, and the rewards read them back.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from rlvr.export.inputs import ExportRow

SCALARS = (str, bool, int, float)


def columns_as_json(*tables: Sequence[ExportRow]) -> list[str]:
    """Return the names of columns that must be written as JSON text."""
    rows = [row for table in tables for row in table]
    names = sorted({name for row in rows for name in row.columns})
    return [name for name in names if not _is_plain([row.columns.get(name) for row in rows])]


def _is_plain(values: Sequence[object]) -> bool:
    kinds = {type(value) for value in values}
    return len(kinds) == 1 and kinds <= set(SCALARS)


def as_lines(rows: Sequence[ExportRow], as_json: Sequence[str]) -> bytes:
    """Return the rows as JSON lines: ``prompt`` and the columns."""
    names = sorted({name for row in rows for name in row.columns})
    lines = []
    for row in rows:
        columns = {name: row.columns.get(name) for name in names}
        kept = {name: json.dumps(value) if name in as_json else value for name, value in columns.items()}
        lines.append(json.dumps({"prompt": row.prompt, **kept}, ensure_ascii=True) + "\n")
    return "".join(lines).encode()
