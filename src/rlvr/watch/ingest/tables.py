"""Tables: CSV and TSV (wandb's export of a chart too), Parquet, trackio's SQLite, HTML tables of notebooks."""

from __future__ import annotations

import csv
import itertools
import json
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final

from rlvr.errors import DataError
from rlvr.watch.history import number
from rlvr.watch.ingest.source import Row, Rows, lines_of
from rlvr.watch.metrics import match, step_rank

_DELIMITERS: Final = (",", "\t", ";")
_WANDB_COLUMN: Final = re.compile(r"^(?P<run>.+?) - (?P<name>[^ ].*)$")


def looks_like_csv(start: str) -> bool:
    """Whether text begins with a header that names a step or a metric, and a row of as many cells."""
    lines = [line for line in start.splitlines()[:3] if line.strip()]
    if not lines:
        return False
    header = _cells(lines[0], _delimiter(lines[0]))
    known = sum(1 for cell in header if match(_bare(cell)) or step_rank(_bare(cell)) is not None)
    if len(header) < 2 or known < 1 or any(number(cell) is not None for cell in header):
        return False
    return len(lines) == 1 or len(_cells(lines[1], _delimiter(lines[0]))) == len(header)


def csv_file(path: Path) -> Rows:
    """Read CSV or TSV, streamed; short and long rows are left out and counted."""
    remarks: list[str] = []
    return Rows(_csv_rows(path, remarks), "CSV", remarks)


def parquet(path: Path) -> Rows:
    """Read Parquet in batches; a table of completions keeps its texts."""
    import pyarrow.lib
    import pyarrow.parquet

    from rlvr.watch.ingest.jsonlike import flatten

    try:
        file = pyarrow.parquet.ParquetFile(path)
    except (pyarrow.lib.ArrowException, OSError) as error:
        raise DataError(
            "watch.damaged",
            f"the Parquet file cannot be read: {error}",
            where=str(path),
            fix="export it again",
        ) from None

    def rows() -> Iterator[Row]:
        for batch in file.iter_batches(batch_size=4096):
            yield from (flatten(row) for row in batch.to_pylist())

    return Rows(rows(), "Parquet")


def trackio(path: Path) -> Rows:
    """Read trackio's database: table ``metrics`` with run_name, step and a JSON object."""
    return Rows(_trackio_rows(path), "trackio")


def html_rows(html: str) -> Iterator[str]:
    """Yield the tables in HTML as lines with tabs, as a copied notebook table has them."""
    parser = _TableParser()
    parser.feed(html)
    yield from ("\t".join(row) + "\n" for row in parser.rows if row)


def _delimiter(line: str) -> str:
    return max(_DELIMITERS, key=line.count)


def _cells(line: str, delimiter: str) -> list[str]:
    return next(csv.reader([line], delimiter=delimiter), [])


def _bare(name: str) -> str:
    inner = _WANDB_COLUMN.match(name.strip())
    return inner["name"] if inner else name.strip()


def _csv_rows(path: Path, remarks: list[str]) -> Iterator[Row]:
    lines = lines_of(path)
    first = next((line for line in lines if line.strip()), "").lstrip("\ufeff")
    delimiter = _delimiter(first)
    header = [cell.strip() for cell in _cells(first, delimiter)]
    csv.field_size_limit(1 << 30)
    uneven = 0
    rename = _renaming(header)
    for cells in csv.reader((line.replace("\0", "") for line in lines), delimiter=delimiter):
        if len(cells) != len(header):
            uneven += bool(cells)
            continue
        row = {name: cell for name, cell in zip(header, cells, strict=True) if cell != ""}
        yield from rename(row)
    if uneven:
        remarks.append(f"{uneven} rows have another number of cells than the header and were left out")


class _Plain:
    """Rows of an ordinary table."""

    def __call__(self, row: dict[str, Any]) -> Iterator[Row]:
        yield row


class _Wandb:
    """Rows of wandb's chart export: columns ``RUN - METRIC``, with ``__MIN`` and ``__MAX`` beside each."""

    def __init__(self, columns: Mapping[str, tuple[str, str]]) -> None:
        self._columns = columns

    def __call__(self, row: dict[str, Any]) -> Iterator[Row]:
        runs: dict[str, dict[str, Any]] = {}
        shared = {
            name: value for name, value in row.items() if name not in self._columns and " - " not in name
        }
        for name, value in row.items():
            if name in self._columns:
                run, metric = self._columns[name]
                runs.setdefault(run, {})[metric] = value
        for run, values in runs.items():
            yield {**shared, **values, "run": run}


def _renaming(header: Sequence[str]) -> _Plain | _Wandb:
    columns = {}
    for name in header:
        inner = _WANDB_COLUMN.match(name)
        if inner and not name.endswith(("__MIN", "__MAX")):
            columns[name] = (inner["run"], inner["name"])
    return _Wandb(columns) if columns else _Plain()


def _trackio_rows(path: Path) -> Iterator[Row]:
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            found = connection.execute("SELECT run_name, step, metrics FROM metrics ORDER BY run_name, id")
            for run, step, text in found:
                values = json.loads(text)
                yield {"_step": step, **(values if isinstance(values, dict) else {}), "run": str(run)}
        finally:
            connection.close()
    except (sqlite3.Error, ValueError) as error:
        raise DataError(
            "watch.not-trackio",
            f"the SQLite file is not a trackio database that can be read: {error}",
            where=str(path),
            expected="a table metrics with columns run_name, step, metrics",
            fix="export the run as CSV or JSONL",
        ) from None


class _TableParser(HTMLParser):
    """Collects the cells of table rows."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self._cell: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a row or a cell."""
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self._cell = []

    def handle_data(self, data: str) -> None:
        """Collect a cell's text."""
        if self._cell is not None:
            self._cell.append(data)

    def handle_endtag(self, tag: str) -> None:
        """End a cell."""
        if tag in ("td", "th") and self._cell is not None:
            if self.rows:
                self.rows[-1].append("".join(self._cell).strip())
            self._cell = None


def chunks(rows: Iterator[Row], size: int) -> Iterator[list[Row]]:
    """Yield rows in lists of ``size``."""
    while part := list(itertools.islice(rows, size)):
        yield part
