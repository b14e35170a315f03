"""The solution as the judge sees it: calls and objects at the far end of a channel, plain data in the hand.

Operations on a remote object send no value that the test only compares with: ``==`` with plain data, arithmetic
and ``in`` are decided here, so that an object cannot be equal, near or member by its own word.
"""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Type

from . import channel
from .codec import Encoder, Opaque, decode

if TYPE_CHECKING:
    from typing_extensions import TypeGuard

_ARGUMENTS = 64 * 1024 * 1024


class SolutionGoneError(BaseException):
    """The solution's process ended; not an ``Exception``, so that tests do not take it for one of its errors."""


class SolutionError(Exception):
    """The solution raised an error of a type that the judge does not know."""


class Solution:
    """A solution's process.

    Attributes:
        calls: How many calls have come back.
        failed: The error of loading the code, as type and text; None when it was loaded.
    """

    def __init__(self, descriptor: int, size: int) -> None:
        self._descriptor = descriptor
        self._largest = 8 * size + 65536
        self._errors: Dict[str, Type[BaseException]] = {}
        self._sequence = 0
        self._closed = False
        self.calls = 0
        greeting = self._receive()
        self.failed: Optional[List[str]] = greeting.get("load")

    def ask(self, operation: str, **fields: Any) -> Any:
        """Return the answer to one question as a value; errors of the solution are raised.

        Raises:
            SolutionGoneError: The process ended or answered out of turn.
        """
        if self._closed:
            raise SolutionGoneError("the solution's process has ended")
        self._sequence += 1
        try:
            channel.send_frame(self._descriptor, {"n": self._sequence, "op": operation, **fields})
        except channel.ChannelClosedError as error:
            self._closed = True
            raise SolutionGoneError(str(error)) from None
        answer = self._receive()
        if answer.get("n") != self._sequence:
            self._closed = True
            raise SolutionGoneError("it answered out of turn")
        self.calls += operation == "call"
        return self._value(answer, operation)

    def _receive(self) -> Dict[str, Any]:
        try:
            frame = channel.receive_frame(self._descriptor, self._largest)
        except channel.ChannelClosedError as error:
            self._closed = True
            raise SolutionGoneError(str(error)) from None
        if type(frame) is not dict:
            self._closed = True
            raise SolutionGoneError("a malformed answer")
        return frame

    def _value(self, answer: Dict[str, Any], operation: str) -> Any:
        if "v" in answer:
            return decode(answer["v"], self._opaque, arrays=True)
        if "x" in answer:
            raise self._error(answer["x"])
        if "class" in answer and operation in ("name", "get"):
            return self._error_class(answer["class"])
        if "stop" in answer and operation == "next":
            raise StopIteration
        raise SolutionError(f"the result is {str(answer.get('large', 'malformed'))[:200]}")

    def _opaque(self, name: str, handle: Optional[int]) -> Any:
        return Opaque(name) if handle is None else Remote(self, name, handle)

    def _error(self, told: Any) -> BaseException:
        """Return the error to raise for what the solution said it raised."""
        if type(told) is not list or len(told) != 2 or type(told[0]) is not list:
            return SolutionError("a malformed error")
        names, text = [str(name)[:80] for name in told[0]], str(told[1])[:300]
        for name in names:
            kind = self._errors.get(name) or getattr(builtins, name, None)
            if _may_be_raised(kind):
                try:
                    return kind(text)
                except TypeError:  # such as UnicodeDecodeError, which wants more than a text
                    continue
        return SolutionError(f"{names[0] if names else 'an error'}: {text}")

    def _error_class(self, names: Any) -> Type[BaseException]:
        """Return a class of the same name for an error class that the solution defines."""
        mine, *bases = [str(name)[:80] for name in names]
        found = (getattr(builtins, name, None) for name in bases)
        base = next((one for one in found if _may_be_raised(one)), Exception)
        self._errors.setdefault(mine, type(mine, (base,), {}))
        return self._errors[mine]

    def encoded(self, value: Any) -> Any:
        """Return an argument in the form that is sent; remote objects go by their handle."""
        return Encoder(_ARGUMENTS, handle=_handle_of, strict=True).encode(value)


def _may_be_raised(kind: Any) -> TypeGuard[Type[Exception]]:
    """Return whether an error of the solution may be raised here as ``kind``.

    An end of iteration would silently shorten a test's own loop.
    """
    silent = (StopIteration, StopAsyncIteration)
    return isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(kind, silent)


def _handle_of(value: Any) -> Optional[int]:
    return value.remote_handle if isinstance(value, Remote) else None


class Remote(Opaque):
    """An object that lives beside the solution; its attributes, items and calls are asked for there."""

    def __init__(self, solution: Solution, kind: str, handle: int) -> None:
        super().__init__(kind)
        self.remote_solution = solution
        self.remote_handle = handle

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the object at the far end."""
        encoded = self.remote_solution.encoded
        return self._ask("call", a=encoded(list(args)), k=encoded(kwargs))

    def _ask(self, operation: str, **fields: Any) -> Any:
        return self.remote_solution.ask(operation, h=self.remote_handle, **fields)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__name__":
            raise AttributeError(name)
        return self._ask("get", name=name)

    def __getitem__(self, key: Any) -> Any:
        return self._ask("item", a=self.remote_solution.encoded([key]))

    def __len__(self) -> int:
        return int(self._ask("len"))

    def __iter__(self) -> Any:
        return self._ask("iter")

    def __next__(self) -> Any:
        return self._ask("next")

    def __str__(self) -> str:
        return str(self._ask("str"))

    def __repr__(self) -> str:
        return str(self._ask("repr"))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, Remote) and other.remote_solution is self.remote_solution:
            return self._ask("equal", other=other.remote_handle) is True
        return False

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.remote_handle)
