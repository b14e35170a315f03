"""Find out what a source is and read it."""

from __future__ import annotations

import gzip
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from rlvr.errors import DataError, UsageError
from rlvr.watch.completions import Completions, CompletionsBuilder, looks_like_completions
from rlvr.watch.facts import Facts
from rlvr.watch.history import History, HistoryBuilder

Row = Mapping[str, Any]
HEAD_BYTES: Final = 1 << 16


@dataclass(frozen=True)
class Source:
    """A run as it was read.

    Attributes:
        history: Its logged numbers.
        completions: Its completions, where there are any.
        facts: What stands beside the log.
        format: Which kind of log it was.
        path: Where it was read from.
        remarks: What could not be read.
    """

    history: History
    completions: Completions | None
    facts: Facts = field(default_factory=Facts)
    format: str = ""
    path: str = ""
    remarks: tuple[str, ...] = ()


@dataclass
class Rows:
    """Rows of one file, with what could not be read."""

    rows: Iterable[Row]
    format: str
    remarks: list[str] = field(default_factory=list)


def read_source(path: Path, *, run: str | None = None, completions: Path | None = None) -> Source:
    """Read a log file or a run folder.

    Args:
        path: File or folder.
        run: Which run to judge when the file names several.
        completions: File or folder of completions that stands elsewhere.

    Raises:
        UsageError: ``watch.no-such-file``.
        DataError: ``watch.nothing-read`` when nothing in it is a metric, ``watch.mixed-runs``.
    """
    if not path.exists():
        raise UsageError(
            "watch.no-such-file",
            "no such file or folder",
            where=str(path),
            fix="name a log file, a folder or a run",
        )
    from rlvr.watch.ingest import folders

    if path.is_dir():
        return folders.read_folder(path, run=run, completions=completions)
    rows = rows_of(path)
    history, found = split(rows.rows, run=run)
    facts = folders.facts_beside(path)
    solved = folders.with_solved_weights(facts, history)
    extra = folders.read_completions(completions, solved) if completions else None
    source = Source(history, extra or found, facts, rows.format, str(path), tuple(rows.remarks))
    return refuse_empty(source)


def refuse_empty(source: Source) -> Source:
    """Return the source, unless there is nothing in it to judge.

    Raises:
        DataError: ``watch.nothing-read``.
    """
    if len(source.history) or (source.completions is not None and len(source.completions)):
        return source
    seen = ", ".join(source.history.unmapped[:8])
    raise DataError(
        "watch.nothing-read",
        f"nothing here is a metric of a run ({source.format})" + (f"; names seen: {seen}" if seen else ""),
        where=source.path,
        expected="a trainer_state.json, standard output of a trainer, JSONL, CSV, TensorBoard, wandb or trackio "
        "data, or a folder with any of them",
        fix="log at least reward and step; `rlvr watch --names` lists every name that is read",
    )


def split(rows: Iterable[Row], *, run: str | None = None) -> tuple[History, Completions | None]:
    """Build a history and, where rows hold texts, completions."""
    iterator = iter(rows)
    first = list(itertools.islice(iterator, 1))
    history, texts = HistoryBuilder(run=run), CompletionsBuilder()
    are_texts = bool(first) and looks_like_completions(first[0])
    for row in itertools.chain(first, iterator):
        if are_texts:
            texts.add(row)
        else:
            history.add(row)
    return history.build(), texts.build()


def rows_of(path: Path) -> Rows:
    """Open a file and return its rows, whatever kind it is."""
    from rlvr.watch.ingest import jsonlike, tables, tensorboard, text, wandb

    head = _head(path)
    name = path.name.lower().removesuffix(".gz")
    if head.startswith(b"PAR1"):
        return tables.parquet(path)
    if head.startswith(b"SQLite format 3"):
        return tables.trackio(path)
    if head.startswith(b":W&B") or name.endswith(".wandb"):
        return wandb.wandb_file(path)
    if "tfevents" in name:
        return tensorboard.event_file(path)
    if b"\x00" in head[:4096]:
        raise DataError(
            "watch.binary",
            "a binary file of no known kind",
            where=str(path),
            fix="export the log as CSV or JSONL",
        )
    start = head.decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
    if start.startswith(("{", "[")) and re.match(r"[\[{]\s*[\"\[{\]}]", start):
        return jsonlike.read(path)
    if tables.looks_like_csv(start):
        return tables.csv_file(path)
    return text.read(path)


def open_binary(path: Path) -> BinaryIO:
    """Open a file for reading, gzipped or not."""
    with path.open("rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    return cast("BinaryIO", gzip.open(path, "rb")) if zipped else path.open("rb")


def lines_of(path: Path) -> Iterator[str]:
    """Yield the lines of a text file; undecodable bytes are replaced, a broken gzip ends the file early."""
    with open_binary(path) as file:
        try:
            for line in file:
                yield line.decode("utf-8", "replace")
        except (EOFError, gzip.BadGzipFile):
            return


def _head(path: Path) -> bytes:
    with open_binary(path) as file:
        try:
            return file.read(HEAD_BYTES)
        except (EOFError, gzip.BadGzipFile):
            return b""
