"""The host's end of one worker: starts its process, sends requests, reads reports, ends it without a trace."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlvr.errors import InfrastructureError
from rlvr.sandbox.guest import wire

_START_SECONDS = 60.0
_END_SECONDS = 2.0
_FOLDER = str(Path(__file__).parent)
_START = (
    "import sys; sys.path[:] = [p for p in sys.path if p]; sys.path.insert(0, sys.argv[2]); "
    "from guest import launch; del sys.path[0]; launch.main(int(sys.argv[1]))"
)
_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "PYTHONUTF8": "1",
    "PYTHONHASHSEED": "0",  # the order of a set of strings is the same in every run
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
"""All that the workers' environment holds; the host's own is not passed on."""


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """How a worker is started.

    Attributes:
        python: Path of the interpreter.
        preload: Modules imported before the first job.
        paths: Where to look for them, beside the standard library.
        without: Layers left out, to see how the lower rungs do.
    """

    python: str = sys.executable
    preload: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    without: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Greeting:
    """What a worker says about itself when it is ready.

    Attributes:
        rung: Letter of the ladder.
        missing: Layer to the reason why it is missing.
        python: Version of the interpreter.
        user: User number of the solutions, as seen inside.
    """

    rung: str
    missing: Mapping[str, str] = field(default_factory=dict)
    python: str = ""
    user: int = -1


class Worker:
    """One worker's process.

    Raises:
        InfrastructureError: ``sandbox.start`` when it does not start, ``sandbox.preload`` when a module cannot be
            imported.
    """

    def __init__(self, config: WorkerConfig) -> None:
        self.config = config
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self._process = self._launch(theirs)
        except OSError as error:
            self.socket.close()
            raise InfrastructureError(
                "sandbox.start",
                f"{config.python}: {error.strerror}",
                expected="a Python interpreter of version 3.9 or later",
            ) from error
        finally:
            theirs.close()
        try:
            self.greeting = self._greet()
        except BaseException:
            self.close()
            raise

    def _launch(self, theirs: socket.socket) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [self.config.python, "-s", "-S", "-B", "-c", _START, str(theirs.fileno()), _FOLDER],
            env=_ENVIRONMENT,
            cwd="/",
            pass_fds=(theirs.fileno(),),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _greet(self) -> Greeting:
        config = {
            "preload": self.config.preload,
            "paths": self.config.paths,
            "without": sorted(self.config.without),
        }
        self.socket.settimeout(_START_SECONDS)
        try:
            self.socket.send(json.dumps(config).encode())
            answer: dict[str, Any] = json.loads(self.socket.recv(wire.LARGEST) or b"{}")
        except (OSError, ValueError) as error:
            answer = {"error": str(error)}
        self.socket.setblocking(False)
        if "rung" not in answer:
            raise InfrastructureError(
                "sandbox.start",
                f"a worker did not start: {answer.get('error', 'it ended at once')}",
                fix=f"try `{self.config.python} -c 'import ctypes, unittest'`, then `rlvr doctor`",
            )
        if answer["failed"]:
            name, reason = next(iter(answer["failed"].items()))
            raise InfrastructureError(
                "sandbox.preload",
                f"module {name} cannot be imported by {self.config.python}: {reason}",
                fix=f"install {name} there, or take it out of the modules to preload",
            )
        return Greeting(answer["rung"], answer["missing"], answer["python"], answer["user"])

    def send(self, request: wire.Request, descriptors: Sequence[int] = ()) -> None:
        """Send a request; raises OSError when the worker is gone."""
        socket.send_fds(self.socket, [request.pack()], list(descriptors))

    def receive(self) -> list[wire.Report] | None:
        """Return the reports that have arrived, or None when the worker is gone."""
        reports: list[wire.Report] = []
        while True:
            try:
                data = self.socket.recv(wire.LARGEST)
            except BlockingIOError:
                return reports
            except OSError:
                return reports or None
            if not data:
                return reports or None
            reports.append(wire.Report.unpack(data))

    def close(self) -> None:
        """End the process and all its children; returns when they are gone."""
        self.socket.close()  # the worker then ends its children and itself
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def forget(self) -> None:
        """Close this process's copies after a fork; the worker belongs to the parent."""
        self.socket.close()
        self._process.returncode = 0  # so that nobody here waits for it

    @property
    def pid(self) -> int:
        """Process number of the worker's first process."""
        return self._process.pid


def site_directories(python: str) -> tuple[str, ...]:
    """Return where ``python`` finds installed packages.

    Raises:
        InfrastructureError: ``sandbox.start`` when it cannot be asked.
    """
    question = "import json, site; print(json.dumps(site.getsitepackages()))"
    try:
        answer = subprocess.run([python, "-I", "-c", question], capture_output=True, timeout=60, check=True)
        return tuple(json.loads(answer.stdout))
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise InfrastructureError(
            "sandbox.start", f"{python} does not answer: {error}", expected="a working Python interpreter"
        ) from error


def anonymous_file(data: bytes = b"") -> int:
    """Return a descriptor of a file without a name, that holds ``data``."""
    descriptor = os.memfd_create("job", os.MFD_CLOEXEC)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        os.lseek(descriptor, 0, os.SEEK_SET)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
