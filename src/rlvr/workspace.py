"""One workspace: where its files stand, and how they are written so that nothing is ever half there.

    rlvr.yaml                     the configuration, written by the user
    gates/admit.json …            one record a gate, each in an envelope with its kind and checksum
    gates/probe/completions.jsonl sampled once and kept; scores.jsonl beside it is renewed by --rescore
    gates/inspect/labels.jsonl    every keypress of the reader
    runs/NAME/                    manifest.json, log.jsonl, completions, trainer/ (checkpoints), report.html

A record is written to a temporary file, flushed to disk and renamed; a line is appended and flushed.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rlvr.errors import ConfigError, DataError, InfrastructureError, UsageError

if TYPE_CHECKING:
    from rlvr.config.schema import Config
    from rlvr.records.base import Fingerprints, Frozen, Record

CONFIG_NAME = "rlvr.yaml"

R = TypeVar("R", bound="Record")
F = TypeVar("F", bound="Frozen")


class Workspace:
    """A folder with ``rlvr.yaml``; see the module's picture.

    Args:
        root: The folder.

    Raises:
        ConfigError: ``workspace.missing`` when the folder holds no ``rlvr.yaml``.
    """

    def __init__(self, root: Path) -> None:
        self.root = Path(root).absolute()
        if not self.config_path.is_file():
            raise ConfigError(
                "workspace.missing",
                f"no {CONFIG_NAME} in {self.root}",
                expected="a workspace: a folder with rlvr.yaml",
                fix="run `rlvr init FOLDER`, or name a workspace with -w FOLDER",
            )

    @property
    def config_path(self) -> Path:
        """The configuration file."""
        return self.root / CONFIG_NAME

    @functools.cached_property
    def config(self) -> Config:
        """The configuration, read and checked once."""
        from rlvr.config.file import read_config

        return read_config(self.config_path)

    @property
    def gates(self) -> Path:
        """Folder of the gate records."""
        return self.root / "gates"

    @property
    def runs(self) -> Path:
        """Folder of the runs, one folder a run."""
        return self.root / "runs"

    @property
    def completions_path(self) -> Path:
        """Completions that the probe sampled, one ``Sample`` a line."""
        return self.gates / "probe" / "completions.jsonl"

    @property
    def scores_path(self) -> Path:
        """Scores of those completions under the current reward, one ``ScoredSample`` a line."""
        return self.gates / "probe" / "scores.jsonl"

    def record_path(self, name: str) -> Path:
        """Path of a gate's record: ``gates/NAME.json``."""
        return self.gates / f"{name}.json"

    def write_record(self, name: str, record: Record) -> Path:
        """Write a gate's record; returns its path."""
        return write_record(self.record_path(name), record)

    def read_record(self, name: str, kind: type[R]) -> R | None:
        """Return a gate's record, or None where there is none yet.

        Raises:
            DataError: ``record.damaged`` or ``record.newer``.
        """
        return read_record(self.record_path(name), kind)

    @contextlib.contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Hold ``name`` so that two processes never write the same files.

        Raises:
            InfrastructureError: ``workspace.busy`` when another process holds it.
        """
        path = self.gates / f".{name}.lock"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno not in (errno.EAGAIN, errno.EACCES):
                    raise
                raise InfrastructureError(
                    "workspace.busy",
                    f"another process is writing {name}",
                    where=str(self.root),
                    fix="wait for it or stop it, then run this command again",
                ) from None
            yield

    def latest_run(self) -> Path | None:
        """Return the run folder with the newest manifest, or None."""
        found = sorted(self.runs.glob("*/manifest.json"), key=lambda path: path.stat().st_mtime)
        return found[-1].parent if found else None

    def run_folder(self, name: str) -> Path:
        """Return the folder of a named run.

        Raises:
            DataError: ``run.missing``.
        """
        from rlvr.errors import did_you_mean

        folder = self.runs / checked_name(name)
        if folder.is_dir():
            return folder
        known = sorted(path.name for path in self.runs.glob("*") if path.is_dir())
        raise DataError(
            "run.missing",
            f"no run {name!r}; the workspace has {known or 'no runs'}",
            where=str(self.runs),
            fix=did_you_mean(name, known) or "name one of these runs",
        )


def checked_name(name: str) -> str:
    """Return ``name`` when it can name a folder under ``runs/`` and nothing else.

    Raises:
        UsageError: ``run.name``.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise UsageError("run.name", f"{name!r} is no name of a run", expected="letters, digits, . _ -")
    return name


def path_from(base: Path, name: str) -> Path:
    """Return the absolute path that a configuration names: relative to ``base``, or with ``~``.

    Raises:
        ConfigError: ``config.home`` where ``~NAME`` names no user of this machine.
    """
    try:
        return (base / Path(name).expanduser()).absolute()
    except RuntimeError:
        found = f"no home folder for {Path(name).parts[0]!r} on this machine"
        raise ConfigError("config.home", found, where=name, fix="write the whole path") from None


def now() -> str:
    """Return the UTC time to the second, ISO 8601."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def stamp(made_from: Fingerprints) -> dict[str, Any]:
    """Return the fields that every record starts with: time, version and fingerprints."""
    from rlvr import __version__

    return {"made_at": now(), "version": __version__, "made_from": made_from}


def write_atomic(path: Path, data: bytes) -> Path:
    """Write ``data`` so that a reader sees the old file or the new one, never a part.

    Raises:
        InfrastructureError: ``workspace.write`` when the disk refuses; the old file is untouched.
    """
    temporary = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        raise _write_failed(path, error) from error
    finally:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
    return path


def append_lines(path: Path, values: Iterable[Frozen | Mapping[str, Any]]) -> None:
    """Append one JSON object a line and flush them to disk together.

    Raises:
        InfrastructureError: ``workspace.write``; a torn last line is dropped by the next reader.
    """
    text = "".join(_line(value) for value in values)
    if not text:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab+") as file:
            if _ends_torn(file):
                file.write(b"\n")
            file.write(text.encode("utf-8", "backslashreplace"))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise _write_failed(path, error) from error


def write_lines(path: Path, values: Iterable[Frozen | Mapping[str, Any]]) -> Path:
    """Write one JSON object a line, all at once."""
    return write_atomic(path, "".join(_line(value) for value in values).encode("utf-8", "backslashreplace"))


def read_lines(path: Path, kind: type[F]) -> list[F]:
    """Read back what :func:`append_lines` wrote; a missing file is empty, a torn last line is dropped.

    Raises:
        DataError: ``record.damaged`` with the line, when a line in the middle is not a ``kind``.
    """
    from pydantic import ValidationError

    found = []
    for number, value in _numbered_objects(path):
        try:
            found.append(kind.model_validate(value))
        except ValidationError as error:
            message = error.errors()[0]["msg"]
            raise _damaged(path, f"line {number} is not a valid {kind.__name__}: {message}") from error
    return found


def read_objects(path: Path) -> list[dict[str, Any]]:
    """Read one JSON object a line as plain dictionaries; see :func:`read_lines`."""
    return [value for _, value in _numbered_objects(path)]


def _numbered_objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    lines = path.read_bytes().split(b"\n") if path.is_file() else []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except ValueError as error:
            if _is_torn(lines, number):
                continue  # a kill in the middle of an append; the line was never acknowledged
            raise _damaged(path, f"line {number} is not JSON ({error})") from None
        except RecursionError:
            raise _damaged(path, f"line {number} is nested too deeply") from None
        if not isinstance(value, dict):
            raise _damaged(path, f"line {number} is a {type(value).__name__}, not an object")
        yield number, value


def write_record(path: Path, record: Record) -> Path:
    """Write a record in its envelope: kind, checksum, record."""
    body = record.model_dump(mode="json")
    envelope = {"kind": type(record).__name__, "checksum": content_hash(body), "record": body}
    text = json.dumps(envelope, indent=2, ensure_ascii=True, sort_keys=False)
    return write_atomic(path, (text + "\n").encode())


def read_record(path: Path, kind: type[R]) -> R | None:
    """Return the record at ``path``, or None where there is no file.

    Raises:
        DataError: ``record.damaged`` when kind or checksum differ, ``record.newer`` when a later version wrote it.
    """
    if not path.is_file():
        return None
    try:
        return _validated(path, kind, _body(path, kind))
    except RecursionError:
        raise _damaged(path, "it is nested too deeply") from None


def _body(path: Path, kind: type[Record]) -> dict[str, Any]:
    """Return the record in the envelope, once kind, checksum and schema fit."""
    try:
        envelope = json.loads(path.read_text("utf-8"))
        body = envelope["record"]
        found_kind, checksum = envelope["kind"], envelope["checksum"]
    except (ValueError, KeyError, TypeError):
        raise _damaged(path, "it is not a record") from None
    if found_kind != kind.__name__:
        raise _damaged(path, f"it holds a {found_kind}, not a {kind.__name__}")
    if checksum != content_hash(body):
        raise _damaged(path, "its content does not match its checksum")
    if not isinstance(body, dict):
        raise _damaged(path, f"its record is a {type(body).__name__}, not an object")
    schema = body.get("schema_number", 0)
    if not isinstance(schema, int):
        raise _damaged(path, f"its schema_number is a {type(schema).__name__}, not a number")
    if schema > kind.SCHEMA:
        raise DataError(
            "record.newer",
            f"schema {schema} of {kind.__name__}; this version reads up to {kind.SCHEMA}",
            where=str(path),
            fix="use the version of rlvr that wrote it, or run the stage again",
        )
    return body


def content_hash(value: Any) -> str:
    """Return 16 hexadecimal digits of SHA-256 over canonical JSON (64 bits: enough to tell versions apart)."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _validated(path: Path, kind: type[R], body: Mapping[str, Any]) -> R:
    from pydantic import ValidationError

    try:
        return kind.model_validate(body)
    except ValidationError as error:
        raise _damaged(path, f"it is not a valid {kind.__name__}: {error.errors()[0]['msg']}") from None


def _damaged(path: Path, found: str) -> DataError:
    return DataError(
        "record.damaged",
        found,
        where=str(path),
        expected="a file that rlvr wrote and nobody changed",
        fix=f"delete {path.name} and run its stage again",
    )


def _write_failed(path: Path, error: OSError) -> InfrastructureError:
    return InfrastructureError(
        "workspace.write",
        f"cannot write: {error.strerror or error}",
        where=str(path),
        expected="free space and permission to write",
        fix="make room (or mend the permission) and run the command again; what was there before is intact",
    )


def _line(value: Frozen | Mapping[str, Any]) -> str:
    plain = value if isinstance(value, Mapping) else value.model_dump(mode="json")
    return json.dumps(plain, ensure_ascii=True) + "\n"


def _ends_torn(file: Any) -> bool:
    if file.seek(0, os.SEEK_END) == 0:
        return False
    file.seek(-1, os.SEEK_END)
    return bool(file.read(1) != b"\n")


def _is_torn(lines: list[bytes], number: int) -> bool:
    # The last line without its end, or one that a later append closed (see append_lines).
    return number >= len(lines) - 1 or not lines[number - 1].rstrip().endswith(b"}")


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
