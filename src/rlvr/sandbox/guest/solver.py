"""The process of the solution: it loads the code, answers calls with plain data, and knows no expected value.

Nothing here is trusted: the code shares this process and may change all of it. It gains nothing, since the verdict
is made elsewhere from the data that leaves here.
"""

from __future__ import annotations

import ast
import builtins
import gc
import io
import json
import os
import sys
import types
from typing import Any, Callable, Dict, FrozenSet, List, NoReturn, Optional

from .codec import Encoder, NotPlainError, decode

PAYLOAD, CHANNEL = 3, 4
"""Descriptors of the job and of the results."""

MODULE = "solution"
_MESSAGE = 300


def run_calls() -> None:
    """Run the payload's calls in order and write one line a call."""
    job = read_payload()
    target = _loaded(job)
    _write({"ready": 1})
    for number, (args, kwargs) in enumerate(job["calls"]):
        _write({"i": number, **_answer(target, decode(args), decode(kwargs), job["size"])})
    os._exit(0)


def rehearse() -> None:
    """Do all of a child's work a few times, so that its code is specialised before it is shared by forks."""
    before = builtins.open
    for _ in range(20):
        module = load("def solve(x):\n    return x\n", MODULE, None)
        target = find_entry(module, "", "solve")
        row = {"i": 0, **_answer(target, decode([1]), decode({"D": []}), 1000)}
        json.loads(json.dumps({"calls": [row], "text": "\n"}))
        del sys.modules[MODULE]
    builtins.open = before


def _answer(target: Callable[..., Any], args: Any, kwargs: Any, size: int) -> Dict[str, Any]:
    try:
        value = target(*args, **kwargs)
        return {"v": Encoder(size).encode(value)}
    except NotPlainError as error:
        return {"n": str(error)}
    except SystemExit as error:
        leave(error)
    except BaseException as error:  # whatever the solution raises is its answer
        return {"x": describe(error)}


def _loaded(job: Dict[str, Any]) -> Callable[..., Any]:
    try:
        module = load(job["code"], MODULE, job["imports"])
        return find_entry(module, job["code"], job["entry"])
    except SystemExit as error:
        leave(error)
    except BaseException as error:  # likewise: a syntax error, a missing name, anything raised at import
        _write({"load": describe(error)})
        os._exit(1)


def read_payload() -> Dict[str, Any]:
    """Return the job, and close its descriptor."""
    gc.enable()
    size = os.fstat(PAYLOAD).st_size
    data = os.pread(PAYLOAD, size, 0)
    os.close(PAYLOAD)
    job: Dict[str, Any] = json.loads(data)
    return job


def load(code: str, name: str, imports: Optional[List[str]]) -> types.ModuleType:
    """Run the code as module ``name`` and return it."""
    module = types.ModuleType(name)
    module.__dict__["__builtins__"] = builtins
    sys.modules[name] = module
    if imports is not None:
        restrict_imports(code, frozenset(imports))
    builtins.open = _opener(io.open)
    exec(compile(code, f"<{name}>", "exec", dont_inherit=True), module.__dict__)  # noqa: S102  # the purpose
    return module


def _opener(real: Callable[..., Any]) -> Callable[..., Any]:
    """Return an ``open`` that knows the two device files programs use, which do not exist in here."""

    def open(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if file == "/dev/stdin":
            file, kwargs["closefd"] = 0, False
        elif file == "/dev/stdout":
            file, kwargs["closefd"] = 1, False
        elif file == os.devnull:
            file, kwargs["closefd"] = 2, False
        return real(file, mode, *args, **kwargs)

    return open


def restrict_imports(code: str, allowed: FrozenSet[str]) -> None:
    """Refuse imports of other modules by the code itself; a rule of style, not a boundary.

    Raises:
        ImportError: The code imports another module.
    """

    def check(name: str) -> None:
        if name.partition(".")[0] not in allowed:
            raise ImportError(f"import of {name} is not allowed")

    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                check(alias.name)
        elif isinstance(node, ast.ImportFrom):
            check(node.module or "")
    real = builtins.__import__

    def guarded(name: str, globals: Any = None, *args: Any) -> Any:
        if globals is None:  # called by hand; import statements were looked at above
            check(name)
        return real(name, globals, *args)

    builtins.__import__ = guarded  # type: ignore[assignment]  # the same call, less precisely typed


def find_entry(module: types.ModuleType, code: str, name: Optional[str]) -> Callable[..., Any]:
    """Return the function to call.

    Raises:
        NameError: The code has no such function.
    """
    names = vars(module)
    if name is None:
        return _last_function(code, names)
    first, _, rest = name.partition(".")
    if first in names:
        found = names[first]
        if not rest:
            return found  # type: ignore[no-any-return]  # checked by being called
        return getattr(found() if isinstance(found, type) else found, rest)  # type: ignore[no-any-return]
    holder = names.get("Solution")
    if not rest and isinstance(holder, type) and hasattr(holder, name):
        return getattr(holder(), name)  # type: ignore[no-any-return]
    raise NameError(f"the code defines no function {name}")


def _last_function(code: str, names: Dict[str, Any]) -> Callable[..., Any]:
    for node in reversed(ast.parse(code).body):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name in names:
            return names[node.name]  # type: ignore[no-any-return]
        if isinstance(node, ast.ClassDef) and node.name == "Solution":
            methods = [one.name for one in node.body if isinstance(one, ast.FunctionDef)]
            public = [one for one in methods if not one.startswith("_")]
            if public:
                return getattr(names[node.name](), public[-1])  # type: ignore[no-any-return]
    raise NameError("the code defines no function")


def describe(error: BaseException) -> List[str]:
    """Return the error's type and text, short."""
    try:
        return [str(type(error).__name__)[:80], str(error)[:_MESSAGE]]
    except BaseException:  # an error whose own text raises
        return [str(type(error).__name__)[:80], ""]


def leave(error: SystemExit) -> NoReturn:
    """End the process as ``sys.exit`` would."""
    code = error.code
    os._exit(0 if code is None else code & 0xFF if isinstance(code, int) else 1)


def _write(row: Dict[str, Any]) -> None:
    data = json.dumps(row).encode() + b"\n"
    while data:
        data = data[os.write(CHANNEL, data) :]
