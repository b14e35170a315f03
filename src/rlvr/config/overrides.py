"""Examples of overrides in the user's own field and value, for the messages about ``recipe``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rlvr.config.schema import NUMBER
from rlvr.errors import ConfigError, InfrastructureError

WAITING = ("learning_rate", "beta")
"""Fields that move only after an inspected base run, unless ``before_base_run`` says otherwise."""

LEAST_REASON = 8
PLACEHOLDER = "at least 8 characters of reason"


def override_example(name: str, value: Any, why: Any = "", after: Any = "") -> str:
    """Return a whole line of ``rlvr.yaml`` that overrides one field.

    Args:
        name: The field of GRPOConfig.
        value: Its value, as the user wrote it.
        why: The user's reason; a placeholder stands in where it is too short.
        after: The user's base run; without one, a field that waits for it gets ``before_base_run``.
    """
    reason = why if isinstance(why, str) and len(why.strip()) >= LEAST_REASON else PLACEHOLDER
    parts = [f"value: {_written(value)}", f"why: {json.dumps(reason, ensure_ascii=False)}"]
    if name in WAITING:
        parts.append(f"after: {after}" if after else "before_base_run: true")
    return f"recipe: {{overrides: {{{name}: {{{', '.join(parts)}}}}}}}"


def override_fix(location: Sequence[Any], detail: Mapping[str, Any], document: Any) -> str:
    """Return what to write for a mistake of pydantic's that is about an override, or an empty string.

    Args:
        location: Keys down to the mistake.
        detail: The mistake, as pydantic tells it.
        document: The whole file.
    """
    if tuple(location[:2]) == ("recipe", "overrides"):
        return _entry_fix(location[2:], document)
    if tuple(location) == ("recipe",):
        return _first_example(None)
    if detail["type"] != "extra_forbidden":
        return ""
    name, value = str(location[-1]), detail.get("input")
    if name == "overrides":
        return _first_example(value)
    return _field_fix(name, value)


def _entry_fix(rest: Sequence[Any], document: Any) -> str:
    overrides = document["recipe"]["overrides"]
    if not rest:
        return _first_example(overrides)
    return _example_of(str(rest[0]), overrides[rest[0]])


def _first_example(overrides: Any) -> str:
    if isinstance(overrides, Mapping) and overrides:
        name, entry = next(iter(overrides.items()))
        return _example_of(str(name), entry)
    return override_example("learning_rate", 1e-6)


def _example_of(name: str, entry: Any) -> str:
    if not isinstance(entry, Mapping):
        return override_example(name, entry)
    value = entry.get("value", "...")
    return override_example(name, value, entry.get("why"), entry.get("after"))


def _field_fix(name: str, value: Any) -> str:
    """Return the example for a field of GRPOConfig that stands where no field may stand."""
    from rlvr.plan.checks import SUCCESSORS, check_name
    from rlvr.plan.trl_schema import installed_schema

    try:
        schema = installed_schema()
    except InfrastructureError:  # without TRL nobody can tell which names are its fields
        return ""
    if name not in schema.fields and name not in SUCCESSORS and not schema.nearest(name):
        return ""
    try:
        check_name(name, schema, name, value)
    except ConfigError as error:
        return error.fix
    return _example_of(name, value)


def _written(value: Any) -> str:
    """Return a value as YAML's flow style takes it."""
    if value == "..." or (isinstance(value, str) and NUMBER.fullmatch(value.strip())):
        return str(value).strip()
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _number(value)
    return json.dumps(value, ensure_ascii=False, default=str)


def _number(value: float) -> str:
    """Return small rates as people write them: 1e-3 rather than 0.001."""
    if not isinstance(value, float) or not 0 < abs(value) < 0.01:
        return str(value)
    mantissa, _, exponent = f"{value:e}".partition("e")
    short = f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"
    return short if float(short) == value else str(value)
