"""Tool calls: the call itself, not its description, equal to the reference in name, arguments and types."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rlvr.rewards.builtin import Builtin
from rlvr.rewards.contract import Completion, Outcome, Verdict, column
from rlvr.rewards.fences import fenced_blocks
from rlvr.rewards.reading import outside_thinking, without_end_tokens
from rlvr.rewards.strict_json import NotJson, parse, same_value

_OPENING, _CLOSING = "<tool_call>", "</tool_call>"
_TAGGED = re.compile(rf"{_OPENING}(.*?){_CLOSING}", re.DOTALL)
_MARKERS = ("[TOOL_CALLS]", "<|python_tag|>")


class Call(NamedTuple):
    """One call."""

    name: str
    arguments: Mapping[str, Any]


class _NoCall(ValueError):  # a verdict on a text
    """The text holds no call that can be read."""


@dataclass(frozen=True)
class ToolCall(Builtin):
    """Accept exactly the calls of the reference: same tools, same arguments, same JSON types, nothing besides.

    Read are, in this order: ``tool_calls`` of a chat message, ``<tool_call>{…}</tool_call>`` blocks, a fenced JSON
    block, and a text that is nothing but JSON (also behind ``[TOOL_CALLS]`` or ``<|python_tag|>``). Arguments may be
    an object or its JSON text. A reference is ``{"name", "arguments"}``, a list of such, ``{"call": …}`` or
    ``{"calls": […]}``, or the JSON text of one.

    Attributes:
        ordered: Whether several calls must come in the order of the reference.
        think_prefilled: The chat template opens ``<think>``, so the completion starts inside it.
    """

    ordered: bool = True
    think_prefilled: bool = False

    def verdicts(self, completions: Sequence[Completion], **columns: Any) -> list[Verdict]:
        """Read a batch; calls that a chat message carries apart from its text are put where its text is read."""
        assert self.reference_column is not None
        references = column(self.reference_column, columns, component=self.__name__, rows=len(completions))
        structured = [_structured(completion) for completion in completions]
        plain = super().verdicts(completions, **columns)
        return [
            verdict if calls is None else self._judge(calls, reference)
            for verdict, calls, reference in zip(plain, structured, references, strict=True)
        ]

    def verdict(self, completion: str, reference: Any) -> Verdict:
        """Read one completion against the calls of its reference."""
        self._gold(reference)
        visible = without_end_tokens(outside_thinking(completion, prefilled=self.think_prefilled))
        try:
            calls = _calls_of_text(visible)
        except (_NoCall, NotJson) as error:
            return Verdict(Outcome.ILL_FORMED, 0.0, None, str(error))
        return self._judge(calls, reference)

    def check_reference(self, reference: Any) -> str | None:
        """Return why ``reference`` holds no calls, or None."""
        try:
            _gold_calls(reference)
        except (_NoCall, NotJson) as error:
            return str(error)
        return None

    def _gold(self, reference: Any) -> list[Call]:
        try:
            return _gold_calls(reference)
        except (_NoCall, NotJson) as error:
            raise self.bad_reference(reference, str(error)) from None

    def _judge(self, calls: Sequence[Call], reference: Any) -> Verdict:
        gold = self._gold(reference)
        shown = json.dumps([call._asdict() for call in calls], ensure_ascii=False, default=str)
        why = _difference(gold, calls, self.ordered)
        if why:
            return Verdict(Outcome.WRONG, 0.0, shown, why)
        return Verdict(Outcome.RIGHT, 1.0, shown, "the calls equal the reference")


def _difference(gold: Sequence[Call], calls: Sequence[Call], ordered: bool) -> str:
    if len(gold) != len(calls):
        return f"{len(calls)} calls where the reference has {len(gold)}"
    if ordered:
        return next((why for pair in zip(gold, calls, strict=True) if (why := _unlike(*pair))), "")
    left = list(calls)
    for one in gold:
        match = next((call for call in left if not _unlike(one, call)), None)
        if match is None:
            return f"no call equals {one.name}"
        left.remove(match)
    return ""


def _unlike(gold: Call, call: Call) -> str:
    if gold.name != call.name:
        return f"it calls {call.name!r}, not {gold.name!r}"
    for name in gold.arguments:
        if name not in call.arguments:
            return f"the argument {name!r} is missing"
        if not same_value(gold.arguments[name], call.arguments[name]):
            return f"{name} is {call.arguments[name]!r}, not {gold.arguments[name]!r}"
    extra = sorted(set(call.arguments) - set(gold.arguments))
    return f"the argument {extra[0]!r} is not in the reference" if extra else ""


def _calls_of_text(text: str) -> list[Call]:
    tagged = _TAGGED.findall(text)
    if _OPENING in text or _CLOSING in text:
        if text.count(_OPENING) != len(tagged) or text.count(_CLOSING) != len(tagged):
            raise _NoCall("a <tool_call> was never closed")
        return [call for body in tagged for call in _calls(parse(body))]
    blocks, unclosed = fenced_blocks(text)
    if unclosed:
        raise _NoCall("a fenced block was never closed")
    if blocks:
        return _calls(parse(blocks[-1].body))
    bare = text.strip()
    for marker in _MARKERS:
        bare = bare.removeprefix(marker).strip()
    if not bare.startswith(("{", "[")):
        raise _NoCall("no call: prose that describes one does not count")
    return _calls(parse(bare))


def _calls(value: Any) -> list[Call]:
    if isinstance(value, list):
        if not value:
            raise _NoCall("an empty list of calls")
        return [call for item in value for call in _calls(item)]
    if not isinstance(value, Mapping):
        raise _NoCall(f"a {type(value).__name__} is no call")
    inner = value.get("function")
    if isinstance(inner, Mapping):
        return _calls(inner)
    name = value.get("name")
    if not isinstance(name, str) or not name:
        raise _NoCall("a call without a name")
    return [Call(name, _arguments(value))]


def _arguments(value: Mapping[str, Any]) -> Mapping[str, Any]:
    keys = [key for key in ("arguments", "parameters") if key in value]
    if len(keys) > 1:
        raise _NoCall("both arguments and parameters")
    arguments = value[keys[0]] if keys else {}
    if isinstance(arguments, str):
        arguments = parse(arguments) if arguments.strip() else {}
    if not isinstance(arguments, Mapping):
        raise _NoCall(f"arguments of type {type(arguments).__name__}, not an object")
    return arguments


def _gold_calls(reference: Any) -> list[Call]:
    value = parse(reference) if isinstance(reference, str) else reference
    if isinstance(value, Mapping) and isinstance(value.get("calls"), list):
        return _calls(value["calls"])
    if isinstance(value, Mapping) and isinstance(value.get("call"), Mapping):
        return _calls(value["call"])
    return _calls(list(value) if isinstance(value, tuple) else value)


def _structured(completion: Completion) -> list[Call] | None:
    """Return the calls that the last assistant message carries beside its text, or None."""
    if isinstance(completion, str):
        return None
    for message in reversed(list(completion)):
        if isinstance(message, Mapping) and message.get("tool_calls"):
            try:
                return _calls(list(message["tool_calls"]))
            except (_NoCall, NotJson, TypeError):
                return []
    return None
