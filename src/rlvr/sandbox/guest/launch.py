"""Start of a worker's process: warm the interpreter, put on the layers, report them, serve."""

from __future__ import annotations

import builtins
import importlib
import json
import os
import socket
import sys
import traceback
from typing import Any, Dict, List

from . import zygote
from .layers import NAMES, Layers

# fmt: off
WARM = (
    "abc", "array", "ast", "base64", "bisect", "calendar", "cmath", "collections",
    "collections.abc", "contextlib", "copy", "dataclasses", "datetime", "decimal", "enum",
    "fractions", "functools", "hashlib", "heapq", "inspect", "io", "itertools", "json", "math",
    "numbers", "operator", "queue", "random", "re", "statistics", "string", "struct", "textwrap",
    "threading", "time", "traceback", "types", "typing", "unittest",
)
# fmt: on
"""Modules of the standard library that solutions and tests use most; imported once."""


def main(descriptor: int) -> None:
    """Serve the host at the other end of ``descriptor``; returns when it closes."""
    control = socket.socket(fileno=zygote.reserve_descriptors(descriptor))
    try:
        worker = _prepare(control)
    except Exception:  # the host shows it; standard error leads nowhere here
        control.send(json.dumps({"error": traceback.format_exc(limit=-3)[-4000:]}).encode())
        return
    worker.serve()


def _prepare(control: socket.socket) -> zygote.Zygote:
    config: Dict[str, Any] = json.loads(control.recv(65536))
    layers = Layers(frozenset(config["without"]))
    layers.enter_namespaces()
    failed = _preload(config["preload"], config["paths"])
    address_space = _address_space()
    layers.finish()
    greeting = {
        "rung": layers.rung,
        "missing": layers.missing,
        "layers": NAMES,
        "failed": failed,
        "python": sys.version.split()[0],
        "user": os.getuid(),
    }
    control.send(json.dumps(greeting).encode())
    return zygote.Zygote(control, layers, address_space)


def _preload(names: List[str], paths: List[str]) -> Dict[str, str]:
    """Import ``names``, found in ``paths`` too, and return those that failed with their reasons."""
    for name in WARM:
        importlib.import_module(name)
    for name in ("exit", "quit"):  # what the site module would define
        setattr(builtins, name, sys.exit)
    sys.path.extend(paths)
    failed = {}
    for name in names:
        try:
            importlib.import_module(name)
        except Exception as error:  # a package may raise anything when imported
            failed[name] = f"{type(error).__name__}: {error}"
    del sys.path[len(sys.path) - len(paths) :]
    return failed


def _address_space() -> int:
    """Return the bytes of address space in use."""
    with open("/proc/self/statm") as source:
        return int(source.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
