"""Tool calls beyond the cases: chat messages that carry them, order, and references."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr.errors import DataError
from rlvr.rewards.contract import Outcome
from rlvr.rewards.tool_call import ToolCall

CALL = {"name": "f", "arguments": {"a": 1}}
OTHER = {"name": "g", "arguments": {}}
ARGUMENTS = st.dictionaries(
    st.text(min_size=1, max_size=5),
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.lists(st.integers(), max_size=3),
    max_size=4,
)


def tagged(*calls: Any) -> str:
    return "".join(f"<tool_call>{json.dumps(call)}</tool_call>" for call in calls)


def test_calls_that_a_chat_message_carries() -> None:
    message = {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": CALL}]}
    other = {**message, "tool_calls": [{"type": "function", "function": OTHER}]}
    broken = {**message, "tool_calls": ["f()"]}
    reward = ToolCall()
    found = reward.verdicts([[message], [other], [broken]], answer=[CALL] * 3)
    assert [one.outcome for one in found] == [Outcome.RIGHT, Outcome.WRONG, Outcome.WRONG]


def test_order_counts_unless_it_is_said_not_to() -> None:
    text = tagged(OTHER, CALL)
    assert not ToolCall().verdict(text, [CALL, OTHER]).accepted
    assert ToolCall(ordered=False).verdict(text, [CALL, OTHER]).accepted
    assert not ToolCall(ordered=False).verdict(tagged(CALL, CALL), [CALL, OTHER]).accepted


@pytest.mark.parametrize(
    "reference", [CALL, [CALL], {"call": CALL}, {"calls": [CALL]}, json.dumps(CALL), (CALL,)]
)
def test_forms_of_a_reference(reference: Any) -> None:
    assert ToolCall().check_reference(reference) is None
    assert ToolCall().verdict(tagged(CALL), reference).accepted


@pytest.mark.parametrize("reference", [None, "", "f(1)", {}, {"arguments": {}}, [], 3])
def test_what_is_no_reference(reference: Any) -> None:
    assert ToolCall().check_reference(reference)
    with pytest.raises(DataError):
        ToolCall().verdict(tagged(CALL), reference)


@given(ARGUMENTS)
def test_the_same_arguments_are_right_in_any_order_and_form(arguments: dict[str, Any]) -> None:
    gold = {"name": "f", "arguments": arguments}
    turned = {"name": "f", "arguments": dict(reversed(arguments.items()))}
    as_text = {"name": "f", "arguments": json.dumps(arguments)}
    assert ToolCall().verdict(tagged(turned), gold).accepted
    assert ToolCall().verdict(tagged(as_text), gold).accepted


@given(ARGUMENTS, st.text(min_size=6, max_size=9))
def test_one_more_argument_is_wrong(arguments: dict[str, Any], name: str) -> None:
    more = {"name": "f", "arguments": {**arguments, name: 0}}
    assert not ToolCall().verdict(tagged(more), {"name": "f", "arguments": arguments}).accepted
