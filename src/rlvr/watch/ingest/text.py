"""Standard output of trainers: printed dicts, verl's console lines, tables, and ``key=value`` lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from rlvr.watch.history import number
from rlvr.watch.ingest.source import Row, Rows, lines_of
from rlvr.watch.metrics import match, step_rank

CARRY_CHARACTERS: Final = 1 << 20
"""Longest printed dict that is put together over several lines."""

_ANSI: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_GROUP: Final = re.compile(r"\{[^{}]*\}")
_NUMBER: Final = (
    r"[-+]?(?:\d[\d_]*\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|inf|NaN|Infinity|None|null)"
)
_WRAPPED: Final = rf"(?:(?:np|numpy|torch)\.\w+\(|tensor\(|array\()?(?P<v>{_NUMBER})(?P<rest>/\d+)?%?"
_PAIR: Final = re.compile(
    rf"(?P<q>['\"])(?P<k>[^'\"]+)(?P=q)\s*:\s*(?:(?P<q2>['\"])(?P<s>[^'\"]*)(?P=q2)|{_WRAPPED})",
    re.IGNORECASE,
)
_BAR: Final = re.compile(r"(\d+)/(\d+) \[[\d:?]+<")
_STEP_WORD: Final = re.compile(r"\bstep\s*[:=#]?\s*(\d+)", re.IGNORECASE)
_VERL: Final = re.compile(r"\bstep:(\d+) - ")
_VERL_PAIR: Final = re.compile(rf"^(?P<k>.+?):{_WRAPPED}\)*$", re.IGNORECASE)
_EQUAL: Final = re.compile(
    rf"(?P<k>[A-Za-z_][\w/.@%\-]*)\s*[=:]\s*{_WRAPPED}(?=$|[\s,;|\])}}])", re.IGNORECASE
)
_RULE: Final = re.compile(r"^[\s|+:\-=─━│┃┼╇┡┏┓└┘]+$")


def read(path: Path) -> Rows:
    """Read a text file."""
    return Rows(rows_in(lines_of(path)), "text output")


def rows_in(lines: Iterable[str]) -> Iterator[Row]:
    """Yield the rows in lines of output; lines that hold none are passed over."""
    reader = _Reader()
    for line in lines:
        yield from reader.feed(_ANSI.sub("", line).replace("\r", "\n"))


def printed_dicts(lines: Iterable[str]) -> Iterator[Row]:
    """Yield the flat dicts in lines, also those that run over several lines."""
    reader = _Dicts()
    for line in lines:
        yield from reader.feed(line)


def parse_dict(text: str) -> dict[str, float | str]:
    """Read a printed flat dict; values may be numbers, quoted numbers, nan, or numpy scalars."""
    found: dict[str, float | str] = {}
    for pair in _PAIR.finditer(text):
        if pair["s"] is not None:
            found[pair["k"]] = pair["s"]
            continue
        value = pair["v"]
        if value not in ("None", "null"):
            found[pair["k"]] = f"{value}{pair['rest']}" if pair["rest"] else float(value.replace("_", ""))
    return found


class _Reader:
    """Turns output into rows, one way of printing after the other."""

    def __init__(self) -> None:
        self._dicts = _Dicts()
        self._table = _Table()

    def feed(self, chunk: str) -> Iterator[Row]:
        for line in chunk.split("\n"):
            yield from self._line(line)

    def _line(self, line: str) -> Iterator[Row]:
        if _VERL.search(line):
            yield from _verl_rows(line)
            return
        if "{" in line or "}" in line or self._dicts.open or _BAR.search(line):
            yield from self._dicts.feed(line + "\n")
            return
        row = self._table.feed(line) or _equal_row(line)
        if row:
            yield row


class _Dicts:
    """Finds flat dicts, and takes their step from the progress bar before them."""

    def __init__(self) -> None:
        self._carry = ""
        self._bar: int | None = None
        self._last = 0

    @property
    def open(self) -> bool:
        """Whether a dict has begun and not ended."""
        return bool(self._carry)

    def feed(self, text: str) -> Iterator[Row]:
        text = self._carry + text
        done = 0
        for group in _GROUP.finditer(text):
            self._see_bar(text[done : group.start()])
            done = group.end()
            row = parse_dict(group.group())
            if _metric_count(row):
                yield self._with_step(row)
        self._see_bar(text[done:])
        start = text.rfind("{", done)
        keep = start >= 0 and len(text) - start < CARRY_CHARACTERS and _may_be_dict(text[start : start + 80])
        self._carry = text[start:] if keep else ""

    def _see_bar(self, text: str) -> None:
        for bar in _BAR.finditer(text):
            count, total = int(bar[1]), int(bar[2])
            if total >= 4 and count <= total:
                self._bar = count
        for word in _STEP_WORD.finditer(text):
            self._bar = int(word[1])

    def _with_step(self, row: dict[str, float | str]) -> Row:
        if any(step_rank(name) is not None for name in row):
            return row
        if self._bar is None or self._bar < self._last:
            return row
        self._last = self._bar
        return {**row, "step": self._bar}


def _may_be_dict(start: str) -> bool:
    return re.match(r"\{\s*(?:['\"][^'\"]*(?:['\"]\s*(?::|$)|$)|$)", start) is not None


def _metric_count(row: Row) -> int:
    return sum(1 for name, value in row.items() if match(name) is not None and number(value) is not None)


def _verl_rows(line: str) -> Iterator[Row]:
    starts = [found.start() for found in _VERL.finditer(line)]
    for start, end in zip(starts, [*starts[1:], len(line)], strict=True):
        row: dict[str, float | str] = {}
        for part in line[start:end].split(" - "):
            pair = _VERL_PAIR.match(part.strip())
            if pair and pair["v"] not in ("None", "null"):
                row[pair["k"].strip()] = float(pair["v"].replace("_", ""))
        if _metric_count(row):
            yield row


def _equal_row(line: str) -> Row | None:
    """Read ``step=10 reward=0.5 kl: 0.01``; at least two metrics, or a step and one, must stand in the line."""
    if line.count("=") + line.count(":") < 2 or len(line) > 20_000:
        return None
    row: dict[str, float] = {}
    for pair in _EQUAL.finditer(line):
        if pair["v"] not in ("None", "null"):
            row[pair["k"]] = float(pair["v"].replace("_", ""))
    word = _STEP_WORD.search(line)
    if word and not any(step_rank(name) is not None for name in row):
        row["step"] = float(word[1])
    steps = any(step_rank(name) is not None for name in row)
    return row if _metric_count(row) >= (1 if steps else 2) and len(row) >= 2 else None


class _Table:
    """Tables printed as text: by tabs, by bars, or by columns of spaces."""

    def __init__(self) -> None:
        self._header: list[str] = []

    def feed(self, line: str) -> Row | None:
        if not line.strip():
            return None
        if _RULE.match(line):
            return None
        cells = _cells(line)
        if len(cells) < 2:
            self._header = []
            return None
        if any(step_rank(cell) is not None for cell in cells) and number(cells[-1]) is None:
            self._header = cells
            return None
        if len(cells) != len(self._header):
            return None
        row = {
            name: value for name, value in zip(self._header, cells, strict=True) if number(value) is not None
        }
        return row if _metric_count(row) else None


def _cells(line: str) -> list[str]:
    bare = line.strip()
    for mark in ("\t", "|", "│", "┃"):
        if mark in bare:
            return [cell.strip() for cell in bare.strip(mark).split(mark)]
    return re.split(r"\s{2,}", bare)
