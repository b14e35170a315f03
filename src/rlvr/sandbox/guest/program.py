"""The process of a whole program: standard input and output are descriptors of its own, nothing else is known."""

from __future__ import annotations

import atexit
import json
import os
import sys
import threading
from typing import Any, Dict, List

from . import solver


def run_program() -> None:
    """Run the payload's program as ``__main__`` and end with its exit code."""
    job = solver.read_payload()
    _standard_streams()
    code = _run(job)
    os._exit(code)


def _standard_streams() -> None:
    sys.stdin = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
    sys.stdout = sys.__stdout__ = open(  # type: ignore[misc]  # noqa: SIM115
        1, "w", encoding="utf-8", errors="surrogateescape", closefd=False
    )


def _run(job: Dict[str, Any]) -> int:
    """Run the program and what Python does at its end; return the exit code."""
    out = sys.stdout
    code = 0
    try:
        solver.load(job["code"], "__main__", job["imports"])
    except SystemExit as error:
        code = _exit_code(error)
    except BaseException as error:  # Python would print it and end with 1
        _remark(solver.describe(error))
        code = 1
    try:
        _finish()
        for stream in {id(out): out, id(sys.stdout): sys.stdout}.values():
            if not getattr(stream, "closed", True):
                stream.flush()
    except BaseException as error:  # an output larger than the limit, a thread that raised
        _remark(solver.describe(error))
        code = code or 1
    return code


def _finish() -> None:
    """Wait for the program's threads and call what it registered, as at the end of the interpreter."""
    for thread in threading.enumerate():
        if not thread.daemon and thread is not threading.current_thread():
            thread.join()
    atexit._run_exitfuncs()


def _exit_code(error: SystemExit) -> int:
    if error.code is None:
        return 0
    return error.code & 0xFF if isinstance(error.code, int) else 1


def _remark(row: List[str]) -> None:
    os.write(solver.CHANNEL, json.dumps({"x": row}).encode() + b"\n")
