"""Runs the user's reward in a killable child process: one clock a call, and results are kept when it hangs."""

from __future__ import annotations

import contextlib
import json
import math
import os
import pickle
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from rlvr.audit import child
from rlvr.errors import ConfigError, InfrastructureError, did_you_mean

LOAD_SECONDS = 120.0
CALL_SECONDS = 2.5
PATIENCE = 4
"""Times the clock that a worker may take while it waits for the CPU."""
Kind = Literal["scores", "exception", "exit", "hang", "crash", "shape", "skipped"]


@dataclass(frozen=True, slots=True)
class FileTarget:
    """A function in a user's file."""

    path: Path
    attribute: str

    def request(self) -> dict[str, Any]:
        """Return what the child needs to load it."""
        return {"path": str(self.path.resolve()), "attribute": self.attribute}


@dataclass(frozen=True, slots=True)
class PickledTarget:
    """A callable that exists already, such as a component of a workspace.

    Attributes:
        pickled: The callable's own pickle.
        name: Its name in messages.
        file: The user's file behind it, or an empty string.
    """

    pickled: bytes
    name: str
    file: str = ""

    def request(self) -> dict[str, Any]:
        """Return what the child needs to load it."""
        return {"pickled": self.pickled, "file": self.file, "sys_path": [path for path in sys.path if path]}


Target = FileTarget | PickledTarget


@dataclass(frozen=True, slots=True)
class Facts:
    """What the loaded callable's signature says."""

    parameters: tuple[tuple[str, str, bool], ...]
    is_async: bool
    pickle_error: str
    kind: str
    name: str
    file: str
    line: int
    reference_column: str | None = None
    time_limit: float = 0.0

    @property
    def takes_any_keyword(self) -> bool:
        """Whether it has ``**kwargs``."""
        return any(kind == "VAR_KEYWORD" for _, kind, _ in self.parameters)

    @property
    def names(self) -> list[str]:
        """Names of its ordinary parameters."""
        return [name for name, kind, _ in self.parameters if not kind.startswith("VAR_")]

    @property
    def required(self) -> list[str]:
        """Names of the parameters without a default."""
        return [
            name for name, kind, default in self.parameters if not default and not kind.startswith("VAR_")
        ]


@dataclass(frozen=True, slots=True)
class Result:
    """What one call gave.

    Attributes:
        kind: ``scores`` when the call returned a sequence, otherwise what happened instead.
        scores: Floats and None; NaN and what is no number are in ``bad``.
        bad: Position to what stood there instead of a finite number.
        message: What was raised or returned, in words.
        line: Line of the user's file, where it is known.
        seconds: CPU time of the call.
        wall: Wall time of the call, with the time of processes that it waited for.
        mutated: Whether its inputs differ afterwards.
        canary: What a completion wrote when it was executed; empty when it was not.
        lines: Lines of the user's file that ran, when asked for.
    """

    kind: Kind
    scores: tuple[float | None, ...] = ()
    bad: Mapping[int, str] = field(default_factory=dict)
    message: str = ""
    line: int | None = None
    seconds: float = 0.0
    wall: float = 0.0
    mutated: bool = False
    canary: str = ""
    lines: tuple[int, ...] = ()

    @property
    def score(self) -> float | None:
        """The only score of a call with one completion; None when there is none."""
        return self.scores[0] if len(self.scores) == 1 else None


class Runner:
    """Holds one loaded reward; a context manager that leaves no process and no file behind.

    Args:
        target: The reward.
        hash_seed: Seed of Python's text hashes in the child.

    Raises:
        ConfigError: ``audit.load`` when the file or the function cannot be loaded.
    """

    def __init__(self, target: Target, hash_seed: str = "0") -> None:
        self.target = target
        self._hash_seed = hash_seed
        self.folder = Path(tempfile.mkdtemp(prefix="rlvr-audit-"))
        self.calls = 0
        self._forking = threading.Lock()
        self._live: dict[int, socket.socket] = {}
        self._control, other = socket.socketpair()
        try:
            self._process = self._start(other)
            other.close()  # or the end of the child would never be seen
            self.facts = self._load()
        except BaseException:
            other.close()
            self.close()
            raise

    def _start(self, other: socket.socket) -> subprocess.Popen[bytes]:
        environment = {
            **os.environ,
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONHASHSEED": self._hash_seed,
            "OMP_NUM_THREADS": "1",
            "TOKENIZERS_PARALLELISM": "false",
            "TMPDIR": str(self.folder),
        }
        os.set_inheritable(other.fileno(), True)
        return subprocess.Popen(
            [sys.executable, "-P", child.__file__, str(other.fileno())],
            pass_fds=[other.fileno()],
            env=environment,
            start_new_session=True,
        )

    def _load(self) -> Facts:
        child.send(self._control, pickle.dumps({**self.target.request(), "folder": str(self.folder)}))
        self._control.settimeout(LOAD_SECONDS)
        try:
            data = child.receive(self._control)
        except TimeoutError:
            raise _load_error(self.target, f"importing it took over {LOAD_SECONDS:g} s", "") from None
        if data is None:
            raise _load_error(self.target, f"importing it ended the process ({self._log()})", "")
        found = json.loads(data)
        if "load_failure" in found:
            raise _load_failure(self.target, found["load_failure"])
        self._control.settimeout(None)
        parameters = tuple((name, kind, default) for name, kind, default in found.pop("parameters"))
        return Facts(parameters=parameters, **found)

    def _log(self) -> str:
        path = self.folder / "output.log"
        text = path.read_text("utf-8", "replace").strip() if path.is_file() else ""
        return text.splitlines()[-1][:200] if text else "no message"

    def worker(self) -> Worker:
        """Return a fresh worker: the reward as it was right after loading."""
        return Worker(self)

    def fork(self) -> tuple[socket.socket, int]:
        """Return the socket and the process id of a new worker.

        Raises:
            InfrastructureError: ``audit.worker`` when the process that holds the reward is gone.
        """
        ours, theirs = socket.socketpair()
        try:
            with self._forking:
                socket.send_fds(self._control, [b"f"], [theirs.fileno()])
            ours.settimeout(LOAD_SECONDS)  # it may still be importing what an earlier call needed
            hello = child.receive(ours)
        except OSError:
            hello = None
        finally:
            theirs.close()
        if hello is None:
            ours.close()
            raise InfrastructureError(
                "audit.worker",
                f"the process that holds the reward is gone ({self._log()})",
                fix="run it again",
            )
        pid = int(json.loads(hello)["pid"])
        self._live[pid] = ours
        return ours, pid

    def end(self, pid: int) -> None:
        """End one worker and whatever it started."""
        connection = self._live.pop(pid, None)
        if connection is not None:
            connection.close()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)

    def warm(self, requests: Sequence[Mapping[str, Any]], clock: float) -> list[Result]:
        """Run calls in a worker of their own and load, for all later workers, what they imported."""
        with self.worker() as worker:
            results, modules = worker.run_and_list(requests, clock)
        if modules:
            with self._forking:
                self._control.sendall(b"i")
                child.send(self._control, pickle.dumps(modules))
        return results

    def stack_line(self, pid: int) -> int | None:
        """Return the innermost line of the user's file at which worker ``pid`` hangs, or None."""
        path = self.folder / f"stack-{pid}"
        file = self.facts.file
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGUSR1)
            time.sleep(0.05)
            found = re.findall(r'File "(.+?)", line (\d+)', path.read_text("utf-8", "replace"))
            own = [int(line) for name, line in found if os.path.realpath(name) == file]
            return own[0] if own else None
        return None

    def close(self) -> None:
        """End every process and remove the working folder."""
        for pid in list(self._live):
            self.end(pid)
        self._control.close()
        process = getattr(self, "_process", None)
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Worker:
    """One forked copy of the loaded reward; replaced by a fresh one after a hang or a crash."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self._connection, self._pid = runner.fork()
        self._alive = True
        self.calls = 0

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._pid

    def run(
        self,
        requests: Sequence[Mapping[str, Any]],
        clock: float = CALL_SECONDS,
        deadline: float = math.inf,
    ) -> list[Result]:
        """Run the calls in order, each under ``clock`` seconds; what hangs is killed and the rest goes on.

        After two hangs, or past ``deadline`` (of the monotonic clock), the rest is skipped.
        """
        results: list[Result] = []
        hangs = 0
        self.calls += len(requests)
        while len(results) < len(requests):
            if hangs > 1 or (results and time.monotonic() > deadline):
                skipped = Result("skipped", message="after two hangs" if hangs > 1 else "no time left")
                return [*results, *[skipped] * (len(requests) - len(results))]
            if not self._alive:
                self._connection, self._pid = self.runner.fork()
                self._alive = True
            results += self._some(requests[len(results) :], clock, deadline)
            hangs += results[-1].kind == "hang"
        self.runner.calls += len(requests)
        return results

    def _some(self, requests: Sequence[Mapping[str, Any]], clock: float, deadline: float) -> list[Result]:
        """Run calls until all are done or one of them took the worker down."""
        self._connection.settimeout(clock)
        results: list[Result] = []
        try:
            child.send(self._connection, pickle.dumps({"calls": list(requests)}))
            for _ in requests:
                data = self._patient_receive(clock)
                if data is None:
                    return [*results, self._crashed()]
                results.append(_decoded(json.loads(data)))
                if time.monotonic() > deadline and len(results) < len(requests):
                    self._kill()
                    return results
        except TimeoutError:
            line = self.runner.stack_line(self._pid)
            self._kill()
            return [
                *results,
                Result("hang", message=f"no answer within {clock:.1f} s", line=line, seconds=clock),
            ]
        except (OSError, ValueError):
            return [*results, self._crashed()]
        return results

    def _crashed(self) -> Result:
        self._kill()
        return Result("crash", message="the process ended")

    def _patient_receive(self, clock: float) -> bytes | None:
        """Receive an answer; a worker that wants to run but gets little CPU, on a busy machine, may take longer.

        Raises:
            TimeoutError: The worker had its time.
        """
        before = _cpu_seconds(self._pid)
        for _ in range(PATIENCE):
            try:
                return child.receive(self._connection)
            except TimeoutError:
                running, spent = _is_running(self._pid), _cpu_seconds(self._pid) - before
                if not running or spent > 0.6 * clock:
                    raise
        raise TimeoutError

    def run_and_list(
        self, requests: Sequence[Mapping[str, Any]], clock: float
    ) -> tuple[list[Result], list[str]]:
        """Run calls and return, with their results, the names of the modules that they imported."""
        self._connection.settimeout(clock)
        results: list[Result] = []
        self.runner.calls += len(requests)
        try:
            child.send(self._connection, pickle.dumps({"calls": list(requests), "modules": True}))
            for _ in requests:
                data = child.receive(self._connection)
                if data is None:
                    return results, []
                results.append(_decoded(json.loads(data)))
            names = child.receive(self._connection)
        except (OSError, ValueError):
            return results, []
        return results, json.loads(names) if names else []

    def _kill(self) -> None:
        self._alive = False
        self.runner.end(self._pid)

    def close(self) -> None:
        """End this worker and whatever it started."""
        self._kill()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _stat(pid: int) -> list[str]:
    """Return the fields of a process after its name: state first; empty where there is no /proc."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()
    except OSError:
        return []


def _cpu_seconds(pid: int) -> float:
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if len(fields) > 12 else 0.0


def _is_running(pid: int) -> bool:
    return _stat(pid)[:1] == ["R"]


def _decoded(answer: Mapping[str, Any]) -> Result:
    common: dict[str, Any] = {
        "seconds": answer.get("seconds", 0.0),
        "wall": answer.get("wall", 0.0),
        "mutated": answer.get("mutated", False),
        "canary": answer.get("canary", ""),
        "lines": tuple(answer.get("lines", ())),
    }
    if "error" in answer:
        kind: Kind = "exit" if answer["exit"] else "exception"
        message = f"{answer['error']}: {answer['message']}".rstrip(": ")
        return Result(kind, message=message, line=answer["line"], **common)
    if "shape" in answer:
        return Result("shape", message=answer["shape"], **common)
    raw = answer["scores"]
    bad = {place: str(score["bad"]) for place, score in enumerate(raw) if isinstance(score, dict)}
    scores = tuple(None if isinstance(score, dict) else score for score in raw)
    return Result("scores", scores=scores, bad=bad, **common)


def _load_failure(target: Target, failure: Mapping[str, Any]) -> ConfigError:
    if failure["error"] == "LookupError" and isinstance(target, FileTarget):
        known = json.loads(failure["message"])
        hint = did_you_mean(target.attribute, known) or f"it has {', '.join(known) or 'no callables'}"
        return _load_error(target, f"no function {target.attribute!r}", hint)
    line = f" at line {failure['line']}" if failure.get("line") else ""
    return _load_error(target, f"{failure['error']}: {failure['message']}{line}", "mend the file")


def _load_error(target: Target, found: str, fix: str) -> ConfigError:
    where = f"{target.path}:{target.attribute}" if isinstance(target, FileTarget) else target.name
    return ConfigError("audit.load", found, where=where, expected="a reward that can be imported", fix=fix)
