"""JSON output: strict parsing, the policy that finds it, and agreement with the jsonschema library."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from rlvr.errors import ConfigError, DataError
from rlvr.rewards.contract import Outcome
from rlvr.rewards.json_schema import JsonSchema
from rlvr.rewards.schemas import BadSchema, compiled, weaknesses
from rlvr.rewards.strict_json import NotJson, parse, same_value

PERSON = {
    "type": "object",
    "properties": {"age": {"type": "integer"}},
    "required": ["age"],
    "additionalProperties": False,
}
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.sampled_from([0.0, 1.0, 2.5, -1.5])
    | st.sampled_from(["", "a", "bb"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
TYPES = st.sampled_from(["object", "array", "string", "number", "integer", "boolean", "null"])
SCHEMAS = st.recursive(
    st.one_of(
        st.fixed_dictionaries({"type": TYPES}),
        st.fixed_dictionaries({"type": st.lists(TYPES, min_size=2, max_size=3, unique=True)}),
        st.fixed_dictionaries({"const": VALUES}),
        st.fixed_dictionaries({"enum": st.lists(VALUES, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"minimum": st.integers(-3, 3), "exclusiveMaximum": st.integers(-3, 3)}),
        st.fixed_dictionaries({"minLength": st.integers(0, 2), "maxLength": st.integers(0, 2)}),
        st.fixed_dictionaries({"minItems": st.integers(0, 2), "maxProperties": st.integers(0, 2)}),
    ),
    lambda inner: st.one_of(
        st.fixed_dictionaries(
            {
                "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
                "required": st.lists(st.sampled_from("abc"), max_size=2, unique=True),
                "additionalProperties": st.booleans(),
            }
        ),
        st.fixed_dictionaries({"type": st.just("array"), "items": inner}),
        st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=2)}),
    ),
    max_leaves=4,
)


@given(SCHEMAS, VALUES)
@settings(max_examples=150)
def test_compiled_checks_agree_with_the_library(schema: dict[str, Any], value: Any) -> None:
    assert (compiled(schema)(value) == "") is Draft202012Validator(schema).is_valid(value)


@given(VALUES)
def test_what_json_writes_is_read_back(value: Any) -> None:
    assert same_value(parse(json.dumps(value)), value)


@pytest.mark.parametrize(
    "text",
    ["NaN", "-Infinity", "{'a':1}", '{"a":1,}', "01", "+1", ".5", "1.", '"\\ud800"', '"\ud800"', '"a\nb"', "[1] 2",
     "", "nul",
     '{"a":1,"a":2}', "[" * 300 + "]" * 300, "[" * 100_000, "9" * 5000, "1e999999"],
)  # fmt: skip
def test_what_is_not_json(text: str) -> None:
    with pytest.raises(NotJson):
        parse(text)


def test_numbers_stay_exact() -> None:
    assert parse("9007199254740993") == 9007199254740993
    assert parse("9007199254740993.0") == 9007199254740993
    assert parse("1e400") == 10**400
    assert not same_value(parse("1"), True)
    assert same_value(parse("3.0"), 3)


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ('{"age": 1}', Outcome.RIGHT),
        ('\ufeff{"age": 1}', Outcome.RIGHT),
        ('```json\n{"age": 1}\n```', Outcome.RIGHT),
        ('```json {"age": 1} ```', Outcome.RIGHT),
        ('~~~\n{"age": 1}\n~~~', Outcome.RIGHT),
        ('so {"age": 1} it is', Outcome.RIGHT),
        ('use {braces} well: {"age": 1}', Outcome.RIGHT),
        ('{"age": 1} or {"age": "x"}', Outcome.WRONG),
        ('{"age": 1} and {"age":', Outcome.ILL_FORMED),
        ('```json\n{"age": 1}\n```\n```json\n{"age": "x"}\n```', Outcome.WRONG),
        ('```json\n{"age": 1}', Outcome.ILL_FORMED),
        ('<think>{"age": 1}</think>', Outcome.ILL_FORMED),
        ('{"age": 1} where {age} is a guess', Outcome.RIGHT),
        ('{"age": 1} or {age: 2}', Outcome.ILL_FORMED),
        ("no JSON", Outcome.ILL_FORMED),
        ("", Outcome.ILL_FORMED),
        ("{" * 200_000, Outcome.ILL_FORMED),
        ("x" * 1_000_000, Outcome.ILL_FORMED),
    ],
)
def test_the_policy_that_finds_it(text: str, outcome: Outcome) -> None:
    assert JsonSchema(schema=PERSON).verdict(text, None).outcome is outcome


def test_strict_takes_nothing_but_json() -> None:
    strict = JsonSchema(schema=PERSON, strict=True)
    assert strict.verdict(' {"age": 1}\n<|im_end|>', None).accepted
    assert not strict.verdict('so {"age": 1}', None).accepted
    assert not strict.verdict('```json\n{"age": 1}\n```', None).accepted


def test_schemas_come_as_objects_or_text_and_are_checked() -> None:
    reward = JsonSchema(reference="schema")
    call = {"prompts": ["p"], "completions": ['{"age": 1}']}
    assert reward(**call, schema=[PERSON]) == reward(**call, schema=[json.dumps(PERSON)]) == [1.0]
    for bad in (None, "", "[", {"type": "objekt"}, 3, {"$ref": "https://example.org/s"}):
        assert reward.check_reference(bad)
        with pytest.raises(DataError, match="schema"):
            reward(**call, schema=[bad])
    with pytest.raises(ConfigError, match="objekt"):
        JsonSchema(schema={"type": "objekt"})


def test_a_reference_that_leads_nowhere_is_an_error_of_the_schema() -> None:
    with pytest.raises(BadSchema, match="leads nowhere"):
        compiled({"$ref": "#/$defs/no"})({})


@pytest.mark.parametrize("more", [{}, {"anyOf": [True]}])
def test_multiples_are_counted_in_decimals(more: dict[str, Any]) -> None:
    assert compiled({"multipleOf": 0.1, **more})(0.3) == ""
    assert compiled({"multipleOf": 0.0001, **more})(0.0075) == ""
    assert compiled({"multipleOf": 0.1, **more})(0.35)
    assert compiled({"multipleOf": 3, **more})(10**30 + 1)


def test_weak_schemas_are_named() -> None:
    assert weaknesses({}) and weaknesses(True) and weaknesses({"type": "array"})
    assert "no property is required, so {} is accepted" in weaknesses({"type": "object"})
    assert not weaknesses(PERSON)


def test_it_pickles() -> None:
    again = pickle.loads(pickle.dumps(JsonSchema(schema=PERSON)))
    assert again(prompts=["p"], completions=['{"age": 1}']) == [1.0]


def test_an_object_that_is_no_schema_is_refused_when_data_is_loaded():
    from rlvr.rewards.json_schema import JsonSchema

    reward = JsonSchema()
    wrapped = {"schema": {"type": "object"}, "strict": True}
    assert "accept everything" in (reward.check_reference(wrapped) or "")
    assert reward.check_reference(wrapped["schema"]) is None
    assert reward.check_reference({}) is None
