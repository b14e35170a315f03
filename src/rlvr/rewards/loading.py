"""Find a reward by name, load a user's file without a trace in ``sys.modules``, and keep it picklable."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import inspect
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from rlvr.errors import ConfigError, RlvrError, did_you_mean, in_words
from rlvr.rewards.contract import Completion, RewardFunction, Scores, Verifier

_IMPORTING = threading.RLock()


def load(use: str, arguments: dict[str, Any], base: Path, builtins: Mapping[str, str]) -> RewardFunction:
    """Return the reward that ``use`` names; see :func:`rlvr.rewards.load_reward`."""
    if ":" not in use:
        return _builtin(use, arguments, base, builtins)
    place, _, name = use.rpartition(":")
    if place.endswith(".py"):
        path = (base / place).resolve()
        if not path.is_file():
            raise _unknown(use, f"no file {place}", _similar_file(path) or f"create {path}")
        return user_reward(str(path), name, arguments)
    return _configured(use, _attribute(use, _import(use, place), name), arguments)


def load_function(use: str, base: Path) -> Any:
    """Return a plain function of the user's, named as a reward is; its file is read as a reward's is.

    Raises:
        ConfigError: It does not exist or cannot be imported.
    """
    place, _, name = use.rpartition(":")
    if not place:
        raise _unknown(use, f"{use!r} names no file or module", "name it as path.py:function")
    if not place.endswith(".py"):
        return _attribute(use, _import(use, place), name)
    path = (base / place).resolve()
    if not path.is_file():
        raise _unknown(use, f"no file {place}", _similar_file(path) or f"create {path}")
    return user_reward(str(path), name, {})


def user_reward(path: str, name: str, arguments: dict[str, Any]) -> RewardFunction:
    """Return the reward ``name`` of the file ``path``; the result pickles by these three values."""
    return UserReward(path, name, arguments)


class UserReward:
    """A reward of the user's own file. Pickles as the place it was read from, and is read again on arrival.

    The file's folder is importable while the file is read and while the reward runs; neither the file nor the
    modules beside it stay in ``sys.modules``, so equal names in two workspaces never meet.
    """

    def __init__(self, path: str, name: str, arguments: dict[str, Any]) -> None:
        self.path, self.function_name, self.arguments = path, name, arguments
        self.__name__ = name
        self._siblings: dict[str, ModuleType] = {}
        with self._beside():
            module = _execute(Path(path))
        self.function = _configured(f"{path}:{name}", _attribute(f"{path}:{name}", module, name), arguments)
        self.verifier = self.function if isinstance(self.function, Verifier) else None
        self.role = getattr(self.function, "role", None)
        if not inspect.isfunction(self.function):
            self.__name__ = getattr(self.function, "__name__", name)

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self.function)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Call the user's function, with TRL's arguments where it is a reward."""
        with self._beside():
            return self.function(*arguments, **keywords)

    def __reduce__(self) -> tuple[Any, ...]:
        return (user_reward, (self.path, self.function_name, self.arguments))

    @contextlib.contextmanager
    def _beside(self) -> Iterator[None]:
        """Make the file's folder importable, with its own modules in front of equally named ones."""
        folder = Path(self.path).parent
        names = {entry.stem for entry in folder.glob("*.py")} | {
            entry.parent.name for entry in folder.glob("*/__init__.py")
        }
        with _IMPORTING:
            hidden = _take(names)
            sys.modules.update(self._siblings)
            sys.path.insert(0, str(folder))
        try:
            yield
        finally:
            with _IMPORTING:
                with contextlib.suppress(ValueError):
                    sys.path.remove(str(folder))
                self._siblings = _take(names)
                sys.modules.update(hidden)


def _take(names: set[str]) -> dict[str, ModuleType]:
    """Remove the modules of these top-level names from ``sys.modules`` and return them."""
    found = [key for key in sys.modules if key.partition(".")[0] in names]
    return {key: sys.modules.pop(key) for key in found}


def _builtin(use: str, arguments: dict[str, Any], base: Path, builtins: Mapping[str, str]) -> RewardFunction:
    if use not in builtins:
        hint = did_you_mean(use, builtins)
        own = "your own is named path.py:function or package.module:function"
        raise _unknown(use, f"no built-in reward {use!r}", hint or own)
    place, _, name = builtins[use].partition(":")
    kind = getattr(importlib.import_module(place), name)
    if "folder" in (_parameters(kind) or ()):  # what the workspace's files are relative to
        arguments = {"folder": str(base), **arguments}
    return _configured(use, kind, arguments)


def _configured(use: str, target: Any, arguments: dict[str, Any]) -> RewardFunction:
    """Build a class, or bind arguments to a function."""
    if not callable(target):
        raise _unknown(use, f"{use} is a {type(target).__name__}, not a function", "name a callable")
    _check_arguments(use, target, arguments)
    if inspect.isclass(target):
        try:
            return cast("RewardFunction", target(**arguments))
        except (RlvrError, KeyboardInterrupt):
            raise
        except BaseException as error:
            found = str(error) if isinstance(error, TypeError | ValueError) else in_words(error)
            raise ConfigError(
                "reward.arguments", found, where=f"reward {use}", fix="mend the arguments of this reward"
            ) from error
    bound = BoundReward(target, arguments) if arguments else target
    return cast("RewardFunction", bound)


class BoundReward:
    """A function with further keyword arguments, under the function's own name."""

    def __init__(self, function: Any, arguments: dict[str, Any]) -> None:
        self.function, self.arguments = function, arguments
        self.__name__ = getattr(function, "__name__", type(function).__name__)

    @property
    def __signature__(self) -> inspect.Signature:
        whole = inspect.signature(self.function)
        return whole.replace(
            parameters=[one for one in whole.parameters.values() if one.name not in self.arguments]
        )

    def __call__(self, prompts: Any, completions: list[Completion], **columns: Any) -> Scores:
        """Call the function; a column of the same name does not replace a stated argument."""
        given = {**columns, **self.arguments}
        return cast("Scores", self.function(prompts=prompts, completions=completions, **given))


def _check_arguments(use: str, target: Any, arguments: Mapping[str, Any]) -> None:
    known = _parameters(target)
    if known is None:
        return
    for name in arguments:
        if name not in known:
            raise ConfigError(
                "reward.unknown-argument",
                f"it has no argument {name!r}",
                where=f"reward {use}",
                expected=f"one of {', '.join(sorted(known))}" if known else "no arguments",
                fix=did_you_mean(name, known) or "remove it",
            )


def _parameters(target: Any) -> list[str] | None:
    """Return the argument names a target takes, or None when it takes any."""
    if is_dataclass(target):
        return [one.name for one in fields(target) if one.init]
    try:
        parameters = inspect.signature(target).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        return None
    return [one.name for one in parameters if one.name not in ("prompts", "completions")]


def _execute(path: Path) -> ModuleType:
    name = f"_rlvr_user_{hashlib.sha256(str(path).encode()).hexdigest()[:16]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ConfigError("reward.import", f"{path} is not a Python file", where=f"reward {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look their module up while it is executed
    try:
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        del sys.modules[name]
        raise
    except BaseException as error:  # also SystemExit: a file that calls exit() must not end the command
        del sys.modules[name]
        raise _import_error(str(path), error, path) from error
    return module


def _import(use: str, place: str) -> ModuleType:
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        if error.name and place.startswith(error.name):
            raise _unknown(
                use, f"no module {error.name!r}", "install it, or name a file as path.py:function"
            ) from error
        raise _import_error(use, error, None) from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise _import_error(use, error, None) from error


def _import_error(use: str, error: BaseException, path: Path | None) -> ConfigError:
    line = f"{error.filename}:{error.lineno}" if isinstance(error, SyntaxError) else _last_line(error, path)
    return ConfigError(
        "reward.import",
        f"importing it raised {in_words(error)}",
        where=f"reward {use}" + (f", {line}" if line else ""),
        fix="mend that line; the file is imported as it stands",
    )


def _last_line(error: BaseException, path: Path | None) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if path is None or frame.filename == str(path)]
    return f"{own[-1].filename}:{own[-1].lineno}" if own else ""


def _attribute(use: str, module: ModuleType, name: str) -> Any:
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            known = [one for one in vars(found) if not one.startswith("_") and callable(getattr(found, one))]
            raise _unknown(
                use,
                f"no function {name!r} there",
                did_you_mean(name, known) or f"it has {', '.join(known) or 'none'}",
            )
        found = getattr(found, part)
    return found


def _similar_file(path: Path) -> str:
    return (
        did_you_mean(path.name, [one.name for one in path.parent.glob("*.py")])
        if path.parent.is_dir()
        else ""
    )


def _unknown(use: str, found: str, fix: str) -> ConfigError:
    return ConfigError(
        "reward.unknown", found, where=f"reward {use}", expected="a reward that exists", fix=fix
    )
