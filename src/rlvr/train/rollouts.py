"""Every rollout of a run, in TRL's column layout, appended batch by batch so that a kill loses none.

The file is gzip-compressed JSON lines; each batch is one gzip member, which makes an append atomic enough: a reader
drops a torn last member. TRL's own parquet files hold only the last batch before each log.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rlvr.workspace import write_atomic

NAME = "completions.jsonl.gz"


class RolloutWriter:
    """Appends batches to ``completions.jsonl.gz`` of one run.

    Args:
        folder: The run's folder.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME

    def append(self, rows: Sequence[dict[str, Any]]) -> None:
        """Append one batch.

        Args:
            rows: One dictionary a completion, with the keys ``step, prompt, completion, advantage``, one a reward
                function, and ours: ``group, outcome, extracted, tokens, truncated, row``.
        """
        text = "".join(json.dumps(row, ensure_ascii=True, default=str) + "\n" for row in rows)
        with self.path.open("ab") as file:
            file.write(gzip.compress(text.encode("utf-8", "backslashreplace"), compresslevel=3))
            file.flush()
            os.fsync(file.fileno())

    def keep_until(self, step: int) -> None:
        """Drop the batches after ``step``: a resumed run samples them again."""
        if not self.path.is_file():
            return
        kept = [row for row in read_rollouts(self.path) if row["step"] <= step]
        text = "".join(json.dumps(row, ensure_ascii=True) + "\n" for row in kept)
        write_atomic(self.path, gzip.compress(text.encode(), compresslevel=3))


def read_rollouts(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a rollout file; a torn end is dropped."""
    if not path.is_file():
        return
    with path.open("rb") as raw, gzip.open(raw, "rt", encoding="utf-8", newline="\n") as file:
        while True:
            try:
                line = file.readline()
            except (EOFError, zlib.error, gzip.BadGzipFile, UnicodeDecodeError):
                return  # a kill in the middle of an append
            if not line.endswith("\n"):
                return
            yield json.loads(line)
