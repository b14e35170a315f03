"""The process that holds the user's reward: started as a plain script, so it imports the standard library alone.

It loads the reward once and forks a worker for each series of calls, so that a worker can be killed while the
loaded reward, and every result that came back before, is kept. Requests arrive pickled over a socket (from the
auditor, which is trusted); answers leave as JSON, since completions that a reward executes run in here.

Covered: a hang, a crash, `sys.exit`, output on any stream, files left in the working directory (a temporary
one), memory and file size limits. Not covered: this is no sandbox. The audit's own completions do no harm, and
the user's reward is trusted as it is in training.
"""

from __future__ import annotations

import contextlib
import copy
import faulthandler
import importlib
import importlib.util
import inspect
import json
import math
import os
import pickle
import random
import re
import resource
import signal
import socket
import struct
import sys
import time
import traceback
import zlib
from types import FrameType, ModuleType, SimpleNamespace
from typing import Any

MEMORY_BYTES = 8 << 30
FILE_BYTES = 64 << 20
CANARY = "rlvr-audit-canary"
"""File that a completion writes into the working directory when the reward executes it."""

_TOKEN = re.compile(r" ?\w{1,6}|\W", re.ASCII)
_dumps, _loads = json.dumps, pickle.loads


def send(connection: socket.socket, data: bytes) -> None:
    """Send one frame: length, then bytes."""
    connection.sendall(struct.pack(">I", len(data)) + data)


def receive(connection: socket.socket) -> bytes | None:
    """Return one frame, or None when the other side closed."""
    head = _exactly(connection, 4)
    return None if head is None else _exactly(connection, struct.unpack(">I", head)[0])


def _exactly(connection: socket.socket, size: int) -> bytes | None:
    parts = []
    while size:
        part = connection.recv(min(size, 1 << 20))
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


class Loaded:
    """The user's callable, with what its signature says."""

    def __init__(self, function: Any, file: str) -> None:
        self.function = function
        self.file = file
        self.is_async = _is_async(function)
        self.loop: Any = None

    def facts(self) -> dict[str, Any]:
        """Return what the auditor needs to know, as plain JSON."""
        return {
            "parameters": _parameters(self.function),
            "is_async": self.is_async,
            "pickle_error": _pickle_error(self.function),
            "kind": "function" if inspect.isfunction(self.function) else type(self.function).__name__,
            "name": getattr(self.function, "__name__", type(self.function).__name__),
            "file": self.file,
            "line": _first_line(self.function),
            "reference_column": _reference_column(self.function),
            "time_limit": _time_limit(self.function),
        }


def _is_async(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004  # an instance may be awaited through its class
    )


def _parameters(function: Any) -> list[list[Any]]:
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return [["kwargs", "VAR_KEYWORD", False]]
    return [[one.name, one.kind.name, one.default is not one.empty] for one in found]


def _pickle_error(function: Any) -> str:
    try:
        pickle.loads(pickle.dumps(function))  # noqa: S301  # our own bytes
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _reference_column(function: Any) -> str | None:
    """Return the column that a built-in reward names; an empty string for one that reads none."""
    if not hasattr(function, "reference_column"):
        return None
    found = function.reference_column
    return found if isinstance(found, str) else ""


def _time_limit(function: Any) -> float:
    """Return the seconds that a built-in reward gives a program; 0 for one that says nothing."""
    found = getattr(function, "cpu_seconds", 0)
    return float(found) if isinstance(found, int | float) else 0.0


def _first_line(function: Any) -> int:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return int(getattr(code, "co_firstlineno", 0))


def load(request: dict[str, Any]) -> Loaded:
    """Load a reward: from a file and a name, or from pickled bytes."""
    for folder in reversed(request.get("sys_path", [])):
        sys.path.insert(0, folder)
    if "pickled" in request:
        function = _loads(request["pickled"])
        return Loaded(function, request.get("file", ""))
    path = os.path.realpath(request["path"])
    sys.path.insert(0, os.path.dirname(path))  # noqa: PTH120  # pathlib costs start-up time here
    sys.argv = [path]
    module = _import_file(path)
    return Loaded(_attribute(module, request["attribute"]), path)


def _import_file(path: str) -> ModuleType:
    stem = re.sub(r"\W", "_", os.path.basename(path).removesuffix(".py"))  # noqa: PTH119
    taken = stem in sys.modules or stem in sys.stdlib_module_names
    name = f"reward_{stem}" if taken else stem
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _attribute(module: ModuleType, name: str) -> Any:
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            known = [one for one in vars(found) if not one.startswith("_") and callable(getattr(found, one))]
            raise LookupError(json.dumps(known))
        found = getattr(found, part)
    if isinstance(found, type):
        found = found()
    if not callable(found):
        raise TypeError(f"{name} is a {type(found).__name__}, not callable")
    return found


class Server:
    """Serves calls of one forked worker."""

    def __init__(self, loaded: Loaded, connection: socket.socket) -> None:
        self.loaded = loaded
        self.connection = connection
        self._exit = os._exit
        self.known = set(sys.modules)

    def run(self) -> None:
        """Answer requests until the auditor closes the socket."""
        send(self.connection, _dumps({"pid": os.getpid()}).encode())
        while (data := receive(self.connection)) is not None:
            request = _loads(data)
            for call in request["calls"]:
                send(self.connection, _dumps(self._answer(call)).encode())
            if request.get("modules"):
                send(self.connection, _dumps(_new_modules(self.known)).encode())
        self._exit(0)

    def _answer(self, call: dict[str, Any]) -> dict[str, Any]:
        if call.get("seed") is not None:
            _reseed(call["seed"])
        if call.get("shift"):
            _shift_clock(call["shift"])
        before = copy.deepcopy((call["prompts"], call["completions"], call["columns"]))
        tracer = _Tracer(self.loaded.file) if call.get("trace") else None
        wall, cpu = time.perf_counter(), time.process_time()
        answer = self._call(call, tracer)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        answer["seconds"], answer["wall"] = cpu, wall
        if "scores" in answer and _differs(before, (call["prompts"], call["completions"], call["columns"])):
            answer["mutated"] = True
        if os.path.exists(CANARY):  # noqa: PTH110
            answer["canary"] = _read_canary()
        if tracer is not None:
            answer["lines"] = tracer.lines
        return answer

    def _call(self, call: dict[str, Any], tracer: _Tracer | None) -> dict[str, Any]:
        try:
            with tracer or contextlib.nullcontext():
                returned = invoke(self.loaded, call)
        except BaseException as error:
            return _failure(error, self.loaded.file)
        return encode_scores(returned, single=call.get("mode") == "sample")


class _Tracer:
    """Records which lines of the user's file run, in order, each once."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.lines: list[int] = []

    def __enter__(self) -> None:
        sys.settrace(self._trace)

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        if os.path.realpath(frame.f_code.co_filename) != self.file:
            return None
        if event == "line":
            self.lines.append(frame.f_lineno)
        return self._trace


def invoke(loaded: Loaded, call: dict[str, Any]) -> Any:
    """Call the reward as the convention says and return what it returned."""
    if call.get("mode") == "sample":
        return [
            _unwrapped(_finished(loaded, loaded.function(**arguments))) for arguments in call["arguments"]
        ]
    keywords: dict[str, Any] = {
        "prompts": call["prompts"],
        "completions": call["completions"],
        "completion_ids": [tokens(one) for one in call["completions"]],
        "trainer_state": _trainer_state(),
        "log_extra": lambda name, values: None,
        "log_metric": lambda name, value: None,
        **call["columns"],
    }
    allowed = call.get("allowed")
    if allowed is not None:
        keywords = {key: value for key, value in keywords.items() if key in allowed}
    return _finished(loaded, loaded.function(**keywords))


def _finished(loaded: Loaded, returned: Any) -> Any:
    if not inspect.isawaitable(returned):
        return returned
    import asyncio

    async def wait() -> Any:
        return await returned

    if loaded.loop is None:
        loaded.loop = asyncio.new_event_loop()
    return loaded.loop.run_until_complete(wait())


def _unwrapped(returned: Any) -> Any:
    """Return the score of a per-sample function that answers with a dictionary or a tuple."""
    if isinstance(returned, dict):
        return returned.get("score", returned.get("reward"))
    return returned[0] if isinstance(returned, tuple | list) and returned else returned


def tokens(completion: Any) -> list[int]:
    """Return stand-ins for token ids: one for about six letters or one mark."""
    text = completion if isinstance(completion, str) else completion[0]["content"]
    return [zlib.crc32(part.encode("utf-8", "surrogatepass")) % 50_000 for part in _TOKEN.findall(text)]


def _trainer_state() -> SimpleNamespace:
    return SimpleNamespace(
        global_step=10,
        max_steps=100,
        epoch=0.1,
        num_train_epochs=1,
        log_history=[],
        is_world_process_zero=True,
    )


def encode_scores(returned: Any, *, single: bool = False) -> dict[str, Any]:
    """Return the scores as JSON: numbers, null, or ``{"bad": …}`` for what is neither.

    A value that is no sequence at all gives ``shape`` instead.
    """
    del single
    if isinstance(returned, str | bytes | dict) or not hasattr(returned, "__iter__"):
        return {"shape": f"{type(returned).__name__} {_short(returned)}"}
    return {"scores": [_encode(score) for score in returned]}


def _encode(score: Any) -> Any:
    if score is None:
        return None
    if isinstance(score, str | bytes):
        return {"bad": f"{type(score).__name__} {_short(score)}"}
    try:
        number = float(score)
    except Exception:
        return {"bad": f"{type(score).__name__} {_short(score)}"}
    return number if math.isfinite(number) else {"bad": repr(number), "number": True}


def _short(value: Any) -> str:
    try:
        text = repr(value)
    except Exception:
        text = object.__repr__(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _failure(error: BaseException, file: str) -> dict[str, Any]:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame.lineno for frame in frames if os.path.realpath(frame.filename) == file]
    try:
        message = str(error)[:300]
    except Exception:
        message = ""
    return {
        "error": type(error).__name__,
        "message": message,
        "line": own[-1] if own else None,
        "deepest": os.path.basename(frames[-1].filename) if frames else "",  # noqa: PTH119
        "exit": isinstance(error, SystemExit | KeyboardInterrupt),
    }


def _differs(before: Any, after: Any) -> bool:
    try:
        return bool(before != after)
    except Exception:
        return False


def _reseed(seed: int) -> None:
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)


def _shift_clock(seconds: float) -> None:
    """Move the clocks of this worker, to see whether a score depends on them."""
    for name in ("time", "monotonic", "perf_counter"):
        real = getattr(time, name)
        setattr(time, name, lambda real=real: real() + seconds)
    import datetime

    class Later(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Any:
            return super().now(tz) + datetime.timedelta(seconds=seconds)

    original, datetime.datetime = datetime.datetime, Later  # type: ignore[misc]
    for module in list(sys.modules.values()):
        if getattr(module, "datetime", None) is original:
            module.datetime = Later  # type: ignore[attr-defined]


def _new_modules(known: set[str]) -> list[str]:
    """Return the installed modules that calls imported, so that they can be loaded once for all workers."""
    found = []
    for name in sorted(set(sys.modules) - known):
        place = getattr(sys.modules[name], "__file__", None) or ""
        if not name.startswith("_") and ("site-packages" in place or "lib/python" in place):
            found.append(name)
    return found


def _import_all(names: list[str]) -> None:
    for name in names:
        with contextlib.suppress(Exception):
            importlib.import_module(name)


def _read_canary() -> str:
    try:
        with open(CANARY) as file:  # noqa: PTH123
            text = file.read(100)
        os.unlink(CANARY)  # noqa: PTH108
    except OSError:
        return "?"
    return text


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def _redirect(folder: str) -> None:
    log = os.open(os.path.join(folder, "output.log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)  # noqa: PTH118
    nothing = os.open(os.devnull, os.O_RDONLY)
    for target, source in ((0, nothing), (1, log), (2, log)):
        os.dup2(source, target)


def _become_worker(loaded: Loaded, connection: socket.socket, control: socket.socket, folder: str) -> None:
    control.close()
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    place = os.path.join(folder, f"work-{os.getpid()}")  # noqa: PTH118
    os.mkdir(place)  # noqa: PTH102
    os.chdir(place)
    stacks = os.open(os.path.join(folder, f"stack-{os.getpid()}"), os.O_WRONLY | os.O_CREAT, 0o600)  # noqa: PTH118
    faulthandler.register(signal.SIGUSR1, file=stacks, all_threads=False)
    _limit()
    Server(loaded, connection).run()


def main() -> None:
    """Load, answer with the facts, then fork a worker for each socket that arrives."""
    control = socket.socket(fileno=int(sys.argv[1]))
    data = receive(control)
    if data is None:
        return
    request = _loads(data)
    _redirect(request["folder"])
    try:
        loaded = load(request)
        send(control, _dumps(loaded.facts()).encode())
    except BaseException as error:
        send(control, _dumps({"load_failure": _failure(error, request.get("path", ""))}).encode())
        return
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # workers are reaped by the kernel
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 1, 1)
        if not message:
            return
        if message == b"i":
            _import_all(_loads(receive(control) or pickle.dumps([])))
            continue
        connection = socket.socket(fileno=descriptors[0])
        if os.fork() == 0:
            try:
                _become_worker(loaded, connection, control, request["folder"])
            finally:
                os._exit(1)
        connection.close()


if __name__ == "__main__":
    main()
