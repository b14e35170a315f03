"""JSON Schema, compiled once a schema: common keywords to closures, everything else to the jsonschema library."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

from rlvr.rewards.strict_json import same_value

Check: TypeAlias = Callable[[Any], str]
"""Returns why a value is refused, or an empty string."""

_TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: (
        (isinstance(value, int) and not isinstance(value, bool))
        or (isinstance(value, float) and value.is_integer())
    ),
}
_ANNOTATIONS = frozenset({"title", "description", "examples", "default", "$comment", "$schema", "deprecated"})


class BadSchema(ValueError):  # a verdict on the data, raised again as a data error
    """The schema itself is not one."""


def compiled(schema: Any, *, assert_format: bool = False) -> Check:
    """Return the check of one schema; equal schemas share it.

    Raises:
        BadSchema: It is no JSON Schema, or refers to another document.
    """
    return _compiled(json.dumps(schema, sort_keys=True), assert_format)


@lru_cache(maxsize=1024)
def _compiled(text: str, assert_format: bool) -> Check:
    from jsonschema import exceptions, validators

    schema = json.loads(text)
    default = validators.validator_for({"$schema": "https://json-schema.org/draft/2020-12/schema"})
    chosen = validators.validator_for(schema, default=default)
    try:
        chosen.check_schema(schema)
    except exceptions.SchemaError as error:
        raise BadSchema(f"{error.message} at {error.json_path}") from None
    _no_foreign_references(schema)
    quick = _quick(schema, assert_format)
    return quick if quick is not None else _by_library(chosen, schema, assert_format)


def _by_library(kind: Any, schema: Any, assert_format: bool) -> Check:
    from jsonschema import validators
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    extend: Any = validators.extend
    kind = extend(kind, {"multipleOf": _exact_multiple})
    checker = kind.FORMAT_CHECKER if assert_format else None
    validator = kind(schema, format_checker=checker, registry=Registry())

    def check(value: Any) -> str:
        try:
            error = next(validator.iter_errors(value), None)
        except Unresolvable as unresolved:
            raise BadSchema(f"$ref {unresolved} leads nowhere") from None
        except RecursionError:
            return "nested too deeply to be checked"
        return f"{error.message[:200]} at {error.json_path}" if error else ""

    return check


def _is_multiple(value: Any, unit: Any) -> bool:
    """Return whether a number is a whole multiple, in decimals: 0.3 is one of 0.1."""
    return (Fraction(str(value)) / Fraction(str(unit))).denominator == 1


def _exact_multiple(_: Any, unit: Any, value: Any, __: Any) -> Iterator[Any]:
    from jsonschema.exceptions import ValidationError

    if _TYPES["number"](value) and not _is_multiple(value, unit):
        yield ValidationError(f"{value!r} is not a multiple of {unit}")


def _no_foreign_references(schema: Any) -> None:
    """Refuse references to other documents, since nothing is fetched while scoring."""
    stack = [schema]
    while stack:
        part = stack.pop()
        if isinstance(part, Mapping):
            reference = part.get("$ref")
            if isinstance(reference, str) and "://" in reference.partition("#")[0]:
                raise BadSchema(f"$ref {reference!r} leads to another document")
            stack += list(part.values())
        elif isinstance(part, list):
            stack += part


def _quick(schema: Any, assert_format: bool) -> Check | None:
    """Compile a schema of common keywords only; None where another keyword stands in it."""
    if not isinstance(schema, dict):
        return None
    checks: list[Check] = []
    for keyword, value in schema.items():
        if keyword in _ANNOTATIONS or (keyword == "format" and not assert_format):
            continue
        made = _KEYWORDS[keyword](value, schema, assert_format) if keyword in _KEYWORDS else None
        if made is None:
            return None
        checks.append(made)

    def check(value: Any) -> str:
        for one in checks:
            why = one(value)
            if why:
                return why
        return ""

    return check


def _type(names: Any, schema: Any, assert_format: bool) -> Check | None:
    wanted = [names] if isinstance(names, str) else list(names)
    tests = [_TYPES[name] for name in wanted]
    only = tests[0]
    why = f"is not of type {' or '.join(wanted)}"
    if len(tests) == 1:
        return lambda value: "" if only(value) else why
    return lambda value: "" if any(test(value) for test in tests) else why


def _properties(parts: Any, schema: Any, assert_format: bool) -> Check | None:
    made = {name: _quick(part, assert_format) for name, part in parts.items()}
    if any(check is None for check in made.values()):
        return None
    checks = {name: check for name, check in made.items() if check is not None}

    def check(value: Any) -> str:
        if isinstance(value, dict):
            for name, item in value.items():
                inner = checks.get(name)
                if inner is not None and (why := inner(item)):
                    return f"{name}: {why}"
        return ""

    return check


def _required(names: Any, schema: Any, assert_format: bool) -> Check | None:
    def check(value: Any) -> str:
        if isinstance(value, dict):
            for name in names:
                if name not in value:
                    return f"{name!r} is missing"
        return ""

    return check


def _additional(allowed: Any, schema: Any, assert_format: bool) -> Check | None:
    if "patternProperties" in schema or not isinstance(allowed, bool):
        return None
    known = frozenset(schema.get("properties", ()))
    if allowed:
        return lambda value: ""

    def check(value: Any) -> str:
        if isinstance(value, dict):
            for name in value:
                if name not in known:
                    return f"{name!r} is not allowed"
        return ""

    return check


def _items(part: Any, schema: Any, assert_format: bool) -> Check | None:
    inner = _quick(part, assert_format) if "prefixItems" not in schema else None
    if inner is None:
        return None

    def check(value: Any) -> str:
        if isinstance(value, list):
            for place, item in enumerate(value):
                if why := inner(item):
                    return f"[{place}]: {why}"
        return ""

    return check


def _enum(values: Any, schema: Any, assert_format: bool) -> Check | None:
    return lambda value: (
        "" if any(same_value(value, one) for one in values) else "is none of the listed values"
    )


def _const(wanted: Any, schema: Any, assert_format: bool) -> Check | None:
    return lambda value: "" if same_value(value, wanted) else f"is not {wanted!r}"


def _bound(test: Callable[[Any, Any], bool], name: str) -> Callable[[Any, Any, bool], Check | None]:
    number = _TYPES["number"]

    def make(limit: Any, schema: Any, assert_format: bool) -> Check | None:
        return lambda value: f"is not {name} {limit}" if number(value) and not test(value, limit) else ""

    return make


def _size(kind: Any, test: Callable[[int, Any], bool], name: str) -> Callable[[Any, Any, bool], Check | None]:
    def make(limit: Any, schema: Any, assert_format: bool) -> Check | None:
        return lambda value: (
            f"has not {name} {limit}" if isinstance(value, kind) and not test(len(value), limit) else ""
        )

    return make


_KEYWORDS: dict[str, Callable[[Any, Any, bool], Check | None]] = {
    "type": _type,
    "properties": _properties,
    "required": _required,
    "additionalProperties": _additional,
    "items": _items,
    "enum": _enum,
    "const": _const,
    "minimum": _bound(lambda value, limit: value >= limit, "at least"),
    "maximum": _bound(lambda value, limit: value <= limit, "at most"),
    "exclusiveMinimum": _bound(lambda value, limit: value > limit, "above"),
    "exclusiveMaximum": _bound(lambda value, limit: value < limit, "below"),
    "multipleOf": _bound(_is_multiple, "a multiple of"),
    "minLength": _size(str, lambda size, limit: size >= limit, "a length of at least"),
    "maxLength": _size(str, lambda size, limit: size <= limit, "a length of at most"),
    "minItems": _size(list, lambda size, limit: size >= limit, "a size of at least"),
    "maxItems": _size(list, lambda size, limit: size <= limit, "a size of at most"),
    "minProperties": _size(dict, lambda size, limit: size >= limit, "a size of at least"),
    "maxProperties": _size(dict, lambda size, limit: size <= limit, "a size of at most"),
}


def weaknesses(schema: Any) -> list[str]:
    """Return what makes a schema easy to satisfy without doing the task."""
    if schema is True or schema == {}:
        return ["it accepts everything"]
    if not isinstance(schema, Mapping):
        return []
    found = []
    composed = {"$ref", "allOf", "anyOf", "oneOf", "enum", "const", "if", "not"} & set(schema)
    if "type" not in schema and not composed:
        found.append("it names no type")
    if schema.get("type") == "object" and not composed:
        if not schema.get("required"):
            found.append("no property is required, so {} is accepted")
        if schema.get("additionalProperties", True) is True:
            found.append("additional properties are allowed")
    if schema.get("type") == "array" and not schema.get("minItems") and not composed:
        found.append("an empty array is accepted")
    return found
