"""The file that says which demo a workspace is."""

from __future__ import annotations

import json
from pathlib import Path

from rlvr.workspace import write_atomic

MARKER = "demo.json"


def mark(folder: Path, kind: str, seed: int) -> None:
    """Write down which demo the workspace is, ``tiny`` or ``real``."""
    write_atomic(folder / MARKER, (json.dumps({"kind": kind, "seed": seed}) + "\n").encode())
