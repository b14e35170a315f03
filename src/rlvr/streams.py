"""Standard output kept for the result, and text that no terminal can be steered by.

With ``--json`` a program reads standard output. A reward function is the user's own code and may print, write to
descriptor 1 or replace ``sys.stdout``; so all of that goes to standard error, and the result alone goes out.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any, TextIO

import click


class _Kept:
    """Standard output as it was when the command started: a descriptor of our own, or a replaced stream."""

    def __init__(self, descriptor: int | None, stream: TextIO | None) -> None:
        self.descriptor, self.stream = descriptor, stream
        self.written = False

    def write(self, line: str) -> None:
        self.written = True
        if self.descriptor is None:
            click.echo(line, file=self.stream)
            return
        with open(self.descriptor, "wb", closefd=False) as file:
            file.write(line.encode() + b"\n")


_KEPT: list[_Kept] = []  # at most one: what the running command's result goes to


@contextlib.contextmanager
def result_alone(wanted: bool) -> Iterator[None]:
    """Keep standard output for :func:`write_result`; whatever else is written there goes to standard error."""
    stream = sys.stdout
    if not wanted or _KEPT or stream is None:
        yield
        return
    with _descriptor_one_to_stderr() if _is_descriptor_one(stream) else _stream_to_stderr(stream) as kept:
        _KEPT.append(kept)
        try:
            yield
        finally:
            _KEPT.clear()
            sys.stdout = stream  # the user's code may have replaced it


def write_result(value: Mapping[str, Any]) -> None:
    """Print one JSON object, strictly (no NaN, no infinity); what could steer a terminal is escaped."""
    from rlvr.visible import STEERING

    line = json.dumps(value, ensure_ascii=False, allow_nan=False, default=str)
    line = STEERING.sub(lambda found: json.dumps(found.group())[1:-1], line)
    if not _encodable(line):
        line = json.dumps(value, ensure_ascii=True, allow_nan=False, default=str)
    if _KEPT:
        _KEPT[0].write(line)
    else:
        click.echo(line)


def result_is_written() -> bool:
    """Return whether this command has printed its object already."""
    return bool(_KEPT) and _KEPT[0].written


def prepare() -> None:
    """Let every text be written, whatever the terminal's encoding: what it lacks is shown as an escape."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _encodable(line: str) -> bool:
    stream = _KEPT[0].stream if _KEPT else sys.stdout
    try:
        line.encode(getattr(stream, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _is_descriptor_one(stream: TextIO) -> bool:
    try:
        return stream.fileno() == 1
    except (OSError, ValueError, AttributeError):  # a stream in memory, as test runners put there
        return False


@contextlib.contextmanager
def _descriptor_one_to_stderr() -> Iterator[_Kept]:
    stream = sys.stdout
    stream.flush()
    saved = os.dup(1)
    _point_one_at(2)
    try:
        yield _Kept(saved, stream)
    finally:
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
        os.dup2(saved, 1)
        os.close(saved)


def _point_one_at(descriptor: int) -> None:
    try:
        os.dup2(descriptor, 1)
    except OSError:  # standard error is closed
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)


@contextlib.contextmanager
def _stream_to_stderr(stream: TextIO) -> Iterator[_Kept]:
    sys.stdout = sys.stderr
    try:
        yield _Kept(None, stream)
    finally:
        sys.stdout = stream
