"""JSON output: parsed strictly, found by a declared policy, and checked against a schema."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from rlvr.errors import ConfigError
from rlvr.rewards.builtin import Builtin
from rlvr.rewards.contract import Outcome, Verdict
from rlvr.rewards.fences import fenced_blocks
from rlvr.rewards.reading import outside_thinking, without_end_tokens
from rlvr.rewards.schemas import BadSchema, compiled, weaknesses
from rlvr.rewards.strict_json import NotJson, balanced_end, decode_at, parse

KEYWORDS = frozenset(
    [
        "type",
        "enum",
        "const",
        "properties",
        "required",
        "additionalProperties",
        "patternProperties",
        "propertyNames",
        "items",
        "prefixItems",
        "contains",
        "minItems",
        "maxItems",
        "uniqueItems",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "pattern",
        "format",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "if",
        "then",
        "else",
        "$ref",
        "$dynamicRef",
        "dependentRequired",
        "dependentSchemas",
        "minProperties",
        "maxProperties",
        "unevaluatedProperties",
        "unevaluatedItems",
        "$defs",
        "definitions",
        "$schema",
        "$id",
        "title",
        "description",
        "default",
        "examples",
        "$comment",
        "dependencies",
        "additionalItems",
    ]
)
"""Keywords of JSON Schema, drafts 7 to 2020-12; an object with none of them is not meant as a schema."""


class Json(NamedTuple):
    """The JSON text of a completion and its value, or why there is none."""

    text: str | None
    value: Any
    why: str


@dataclass(frozen=True)
class JsonSchema(Builtin):
    """Accept output that is JSON as RFC 8259 says it and satisfies the schema.

    The reference is a schema (an object or its JSON text); ``schema`` states one for all rows instead.

    Attributes:
        schema: One schema for all rows; then no reference column is read.
        strict: Nothing but the JSON value may stand in the text. Otherwise the last fenced block labelled ``json``
            (or without a label) decides, without fences the last JSON value in the prose.
        assert_format: Check ``format`` keywords, which are mere annotations otherwise.
        reject_duplicates: Refuse objects that repeat a name.
        think_prefilled: The chat template opens ``<think>``, so the completion starts inside it.
    """

    schema: Any = field(default=None, hash=False)
    strict: bool = False
    assert_format: bool = False
    reject_duplicates: bool = True
    think_prefilled: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.schema is None:
            return
        object.__setattr__(self, "reference_column", None)
        problem = self.check_reference(self.schema)
        if problem:
            raise ConfigError(
                "reward.schema", problem, where=f"reward {self.__name__}", fix="mend the schema"
            )

    def verdict(self, completion: str, reference: Any) -> Verdict:
        """Read one completion against a schema."""
        given = self.schema if self.schema is not None else reference
        try:
            schema = _schema(given)
            check = compiled(schema, assert_format=self.assert_format)
            visible = without_end_tokens(outside_thinking(completion, prefilled=self.think_prefilled))
            found = self.find(visible, schema)
            if found.text is None:
                return Verdict(Outcome.ILL_FORMED, 0.0, None, found.why)
            why = check(found.value)
        except (BadSchema, NotJson) as error:
            raise self.bad_reference(given, str(error)) from None
        if why:
            return Verdict(Outcome.WRONG, 0.0, found.text, why)
        return Verdict(Outcome.RIGHT, 1.0, found.text, f"{found.why} satisfies the schema")

    def check_reference(self, reference: Any) -> str | None:
        """Return why ``reference`` is no schema, or None."""
        try:
            schema = _schema(reference)
            compiled(schema, assert_format=self.assert_format)
        except (BadSchema, NotJson) as error:
            return f"no schema: {error}"
        if isinstance(schema, Mapping) and schema and not KEYWORDS & set(schema):
            named = ", ".join(sorted(map(str, schema))[:3])
            return f"no keyword of JSON Schema among its keys ({named}), so it would accept everything"
        return None

    def warnings(self, reference: Any) -> list[str]:
        """Return what makes this row's schema easy to satisfy."""
        return weaknesses(_schema(self.schema if self.schema is not None else reference))

    def find(self, visible: str, schema: Any = None) -> Json:
        """Return the JSON of a completion by the policy of this reward."""
        if self.strict:
            return self._whole(visible, "the text")
        blocks, unclosed = fenced_blocks(visible)
        usable = [block for block in blocks if block.label in ("json", "jsonc", "")] or blocks
        if unclosed:
            return Json(None, None, "a fenced block was never closed")
        if usable:
            return self._whole(usable[-1].body, "the last fenced block")
        whole = self._whole(visible, "the text")
        return whole if whole.text is not None else self._in_prose(visible, schema, whole.why)

    def _whole(self, text: str, place: str) -> Json:
        try:
            return Json(text.strip(), parse(text, reject_duplicates=self.reject_duplicates), place)
        except NotJson as error:
            return Json(None, None, f"{place} is not JSON: {error}")

    def _in_prose(self, text: str, schema: Any, why: str) -> Json:
        """Return the last JSON object or array in prose; one that is broken decides as well."""
        found = Json(None, None, why)
        place = _next_start(text, 0, schema)
        while place >= 0:
            try:
                value, end = decode_at(text, place, reject_duplicates=self.reject_duplicates)
                found = Json(text[place:end], value, "the last JSON value in the text")
            except NotJson as error:
                end = balanced_end(text, place)
                if _looks_meant(text, place):
                    found = Json(None, None, f"the last JSON value in the text is broken: {error}")
                if end < 0:
                    break
            place = _next_start(text, end, schema)
        return found


def _next_start(text: str, start: int, schema: Any) -> int:
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    signs = "{" if kind == "object" else "[" if kind == "array" else "{["
    places = [place for sign in signs if (place := text.find(sign, start)) >= 0]
    return min(places, default=-1)


_MEANT = re.compile(r"""[\[{]\s*(?:["'\[{\]}]|[\w$]+\s*:|\Z)""")


def _looks_meant(text: str, place: int) -> bool:
    """Return whether a bracket in prose begins JSON: a quote, a bracket, a bare name or nothing follows it."""
    return _MEANT.match(text, place) is not None


def _schema(reference: Any) -> Any:
    """Return the schema of a reference: itself, or the JSON text of one."""
    if isinstance(reference, str):
        return _schema_of_text(reference)
    if isinstance(reference, Mapping | bool):
        return reference
    raise BadSchema(f"a {type(reference).__name__} is neither an object, a truth value nor the text of one")


@lru_cache(maxsize=1024)
def _schema_of_text(text: str) -> Any:
    if not text.strip():
        raise BadSchema("it is empty")
    schema = parse(text)
    if not isinstance(schema, Mapping | bool):
        raise BadSchema(f"{json.dumps(schema)[:40]} is no schema")
    return schema
