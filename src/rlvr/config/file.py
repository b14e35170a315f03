"""Reads ``rlvr.yaml`` and turns every mistake into file, line, what was found and the nearest valid name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from rlvr.config.overrides import override_fix
from rlvr.config.schema import Config
from rlvr.errors import ConfigError, did_you_mean


def read_config(path: Path) -> Config:
    """Read and check a configuration file.

    Raises:
        ConfigError: ``config.unreadable``, ``config.yaml``, ``config.empty``, ``config.unknown-key``,
            ``config.missing-key`` or ``config.value``, with file and line.
    """
    try:
        document = _load(path)
        return Config.model_validate(_plain(document))
    except RecursionError:
        raise ConfigError("config.yaml", "nested too deeply", where=str(path)) from None
    except ValidationError as error:
        raise _explain(path, document, error) from None


def _load(path: Path) -> Any:
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            "config.unreadable", str(error), where=str(path), expected="a UTF-8 text file"
        ) from None
    try:
        document = YAML(typ="rt").load(text)
    except (
        YAMLError,
        ValueError,
    ) as error:  # a ValueError: a number or a date that YAML allows and Python does not
        mark = getattr(error, "problem_mark", None)
        place = f"{path}:{mark.line + 1}" if mark else str(path)
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise ConfigError("config.yaml", f"not YAML: {problem}", where=place) from None
    if not isinstance(document, Mapping):
        raise ConfigError(
            "config.empty",
            "no settings" if document is None else f"a {type(document).__name__}",
            where=str(path),
            expected="a mapping with model, task and rewards",
            fix="`rlvr init` writes one that runs as it stands",
        )
    return document


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    return value


def _explain(path: Path, document: Any, error: ValidationError) -> ConfigError:
    details = error.errors()
    first = _one(path, document, details[0])
    if len(details) == 1:
        return first
    others = [_one(path, document, detail) for detail in details[1:6]]
    listed = "; ".join(f"{other.where}: {other.found}" for other in others)
    return ConfigError(
        first.code,
        f"{first.found} (and {len(details) - 1} more: {listed})",
        where=first.where,
        expected=first.expected,
        fix=first.fix,
    )


def _one(path: Path, document: Any, detail: Mapping[str, Any]) -> ConfigError:
    location = [part for part in detail["loc"] if not (isinstance(part, str) and "-" in part)]
    where = f"{path}:{_line(document, location)}"
    key = ".".join(str(part) for part in location)
    if detail["type"] == "extra_forbidden":
        known = _known_keys(location[:-1])
        near = did_you_mean(str(location[-1]), known)
        return ConfigError(
            "config.unknown-key",
            f"unknown key {key!r}",
            where=where,
            expected=f"one of {', '.join(known)}" if known else "no such key here",
            fix=near or override_fix(location, detail, document) or "remove the key",
        )
    if detail["type"] == "missing":
        return ConfigError(
            "config.missing-key",
            f"{key!r} is missing",
            where=where,
            expected=f"a value for {key}",
            fix=override_fix(location, detail, document),
        )
    message = _message(detail)
    value = detail.get("input")
    shown = f" {value!r}" if isinstance(value, str | int | float | bool) else ""
    fix = _choice_hint(detail) or override_fix(location, detail, document)
    return ConfigError("config.value", f"{key}{shown}: {message}", where=where, fix=fix)


def _message(detail: Mapping[str, Any]) -> str:
    if detail["type"] in ("model_type", "model_attributes_type"):
        return "a value alone, where a mapping of keys and values belongs"
    return str(detail["msg"]).removeprefix("Value error, ")


def _choice_hint(detail: Mapping[str, Any]) -> str:
    if detail["type"] != "literal_error":
        return ""
    choices = (
        str(detail.get("ctx", {}).get("expected", "")).replace(" or ", ", ").replace("'", "").split(", ")
    )
    return did_you_mean(str(detail.get("input")), choices)


def _line(document: Any, location: Sequence[Any]) -> int:
    node, line = document, 1
    for part in location:
        marks = getattr(node, "lc", None)
        if marks is None:
            break
        try:
            line = (marks.key(part) if isinstance(node, Mapping) else marks.item(part))[0] + 1
            node = node[part]
        except (KeyError, IndexError, TypeError, AttributeError):
            break
    return line


def _known_keys(location: Sequence[Any]) -> list[str]:
    model: Any = Config
    for part in location:
        if isinstance(part, int):
            continue
        fields = getattr(model, "model_fields", {})
        if part in fields:  # otherwise a key of the user's own, such as a field under overrides
            model = _section(fields[part].annotation)
    return sorted(getattr(model, "model_fields", {}))


def _section(annotation: Any) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for part in get_args(annotation):
        found = _section(part)
        if found is not None:
            return found
    return None
