"""The process of the solution when a judge asks: it answers calls and questions about its own objects."""

from __future__ import annotations

import inspect
import os
import types
from typing import Any, Callable, Dict, List, Optional

from . import channel, solver
from .codec import Encoder, NotPlainError, decode
from .solver import CHANNEL

_LARGEST = 256 * 1024 * 1024
_MOST_OBJECTS = 100_000


def serve_calls() -> None:
    """Answer the judge until it closes the channel."""
    job = solver.read_payload()
    try:
        module = solver.load(job["code"], solver.MODULE, job["imports"])
    except SystemExit as error:
        solver.leave(error)
    except BaseException as error:  # a syntax error, anything raised at import
        channel.send_frame(CHANNEL, {"load": solver.describe(error)})
        os._exit(1)
    server = _Server(module, job["code"], job["size"])
    channel.send_frame(CHANNEL, {"ready": 1})
    while True:
        try:
            question = channel.receive_frame(CHANNEL, _LARGEST)
        except channel.ChannelClosedError:
            os._exit(0)
        channel.send_frame(CHANNEL, {"n": question["n"], **server.answer(question)})


class _Server:
    """Answers questions, and keeps the objects that the judge may ask about."""

    def __init__(self, module: types.ModuleType, code: str, size: int) -> None:
        self._module = module
        self._code = code
        self._size = size
        self._objects: List[Any] = []
        self._operations: Dict[str, Callable[[Any, Dict[str, Any]], Any]] = {
            "call": lambda it, q: it(*self._decoded(q["a"]), **self._decoded(q["k"])),
            "get": lambda it, q: getattr(it, q["name"]),
            "item": lambda it, q: it[self._decoded(q["a"])[0]],
            "len": lambda it, q: len(it),
            "iter": lambda it, q: iter(it),
            "str": lambda it, q: str(it),
            "repr": lambda it, q: repr(it),
            "equal": lambda it, q: bool(it == self._objects[q["other"]]),
            "entry": lambda it, q: solver.find_entry(self._module, self._code, q["name"]),
            "name": lambda it, q: getattr(self._module, q["name"]),
        }

    def answer(self, question: Dict[str, Any]) -> Dict[str, Any]:
        """Return the answer to one question."""
        try:
            subject = self._objects[question["h"]] if "h" in question else None
            if question["op"] == "next":
                return self._next(subject)
            return self._told(self._operations[question["op"]](subject, question))
        except NotPlainError as error:
            return {"large": str(error)}
        except SystemExit as error:
            solver.leave(error)
        except BaseException as error:  # whatever the solution raises is its answer
            names = [str(kind.__name__)[:80] for kind in type(error).__mro__[:20]]
            return {"x": [names, solver.describe(error)[1]]}

    def _next(self, subject: Any) -> Dict[str, Any]:
        try:
            return self._told(next(subject))
        except StopIteration:
            return {"stop": 1}

    def _told(self, value: Any) -> Dict[str, Any]:
        if isinstance(value, type) and issubclass(value, BaseException):
            return {"class": [kind.__name__ for kind in value.__mro__[:20]]}
        return {"v": Encoder(self._size, handle=self._keep).encode(value)}

    def _keep(self, value: Any) -> Optional[int]:
        if len(self._objects) >= _MOST_OBJECTS or inspect.ismodule(value):
            return None
        self._objects.append(value)
        return len(self._objects) - 1

    def _decoded(self, data: Any) -> Any:
        return decode(data, lambda name, handle: self._objects[-1 if handle is None else handle], arrays=True)
