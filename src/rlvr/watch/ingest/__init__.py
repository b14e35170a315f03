"""Read a run from whatever a user has: one function, :func:`read_source`, and one module a kind of file.

    folders.py      our run folders, TRL output folders, TensorBoard and wandb folders
    jsonlike.py     trainer_state.json, JSON arrays, JSONL, notebooks (.ipynb)
    text.py         standard output: printed dicts, verl's ``step:1 - key:value`` lines, tables, ``key=value`` lines
    tables.py       CSV, TSV, Parquet, trackio's SQLite
    tensorboard.py  TensorBoard event files, without tensorboard
    wandb.py        wandb's own .wandb files, without wandb

The kind is told by the content, not by the file's name. Files are streamed.
"""

from __future__ import annotations

from rlvr.watch.ingest.source import Source, read_source

__all__ = ["Source", "read_source"]
