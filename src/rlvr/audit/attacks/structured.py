"""Attacks on structured answers: JSON objects, and evaluated expressions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rlvr.audit.child import CANARY
from rlvr.audit.profile import Profile
from rlvr.audit.references import changed_json
from rlvr.audit.session import Session
from rlvr.audit.trials import Trial

WRITES_CANARY = (
    f"__import__('pathlib').Path({CANARY!r}).write_text(str(__import__('os').getpid()))",
    f"(lambda: open({CANARY!r}, 'w').write('x'))()",
    f"[f.write('x') for f in [open({CANARY!r}, 'w')]]",
)
"""Expressions that leave a harmless file when they are evaluated."""
EQUALS_ALL = (
    "type('A', (int,), {'__eq__': lambda s, o: True, '__ne__': lambda s, o: False, "
    "'__sub__': lambda s, o: 0, '__rsub__': lambda s, o: 0, '__abs__': lambda s: 0, '__hash__': lambda s: 0})()"
)


def uses_json(profile: Profile) -> bool:
    """Whether answers are JSON."""
    return profile.source.mentions_json or profile.kind == "json"


def json_trials(profile: Profile, session: Session, rows: Sequence[int]) -> Iterator[Trial]:
    """Yield JSON tricks on rows whose right answer is a JSON object."""
    for row in rows:
        if profile.form is None or row not in profile.answers:
            continue
        right = _object(profile.form(profile.answers[row]))
        wrong = [_object(profile.form(text)) for text in profile.wrongs.get(row, [])[:2]]
        if isinstance(right, dict) and wrong and isinstance(wrong[0], dict):
            yield from _several_objects(row, right, wrong[0])
            yield from _values(profile, row, right, wrong[0])


def _object(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        start, end = text.find("{"), text.rfind("}")
        try:
            return json.loads(text[start : end + 1]) if 0 <= start < end else None
        except (ValueError, RecursionError):
            return None


def _several_objects(row: int, right: Mapping[str, Any], wrong: Mapping[str, Any]) -> Iterator[Trial]:
    good, bad = json.dumps(right), json.dumps(wrong)
    fix = "accept exactly one JSON value, with nothing after it"
    why = "several JSON objects are sent and the right one among them is paid in full"
    for joint in ("\n", " "):
        text = joint.join([bad, good, bad])
        yield Trial(
            "json_tricks", "several-objects", row, text, why, fix, control=joint.join([bad, bad, bad])
        )
    listed = json.dumps([wrong, right, wrong])
    yield Trial("json_tricks", "list-of-objects", row, listed, why, fix)
    pairs = [*_pairs(wrong), *_pairs(right)]
    yield Trial(
        "json_tricks",
        "duplicate-keys",
        row,
        "{" + ", ".join(pairs) + "}",
        "an object with every key twice is paid for the second value",
        "parse with object_pairs_hook and refuse duplicate keys",
        "info",
    )


def _pairs(value: Mapping[str, Any]) -> list[str]:
    return [f"{json.dumps(key)}: {json.dumps(entry)}" for key, entry in value.items()]


def _values(
    profile: Profile, row: int, right: Mapping[str, Any], wrong: Mapping[str, Any]
) -> Iterator[Trial]:
    fix = "check type and value of every field"
    for key, value in right.items():
        if value == wrong.get(key):
            continue
        for other, label, severity in _instead(value, wrong.get(key)):
            changed = {**right, key: other}
            why = (
                f"{json.dumps(other)} ({label}) instead of {json.dumps(value)} under {key!r} is paid in full"
            )
            yield Trial("json_tricks", label.replace(" ", "-"), row, json.dumps(changed), why, fix, severity)
        if len(right) > 1 and profile.kind == "json":
            less = {name: entry for name, entry in right.items() if name != key}
            why = f"an object without the key {key!r} is paid in full"
            yield Trial("json_tricks", "missing-key", row, json.dumps(less), why, fix, "high")
            one = {**right, key: changed_json(value)}
            why = f"a wrong value under {key!r} is paid in full"
            yield Trial("json_tricks", "one-wrong-value", row, json.dumps(one), why, fix, "high")
            yield Trial("wrong_accepted", "one-wrong-value", row, json.dumps(one), why, fix, "high")


def _instead(value: Any, wrong: Any) -> Iterator[tuple[Any, str, Any]]:
    yield [wrong, value], "a list with the right value", "high"
    yield {"a": wrong, "b": value}, "an object with the right value", "high"
    yield [value], "a list of the right value", "medium"
    if isinstance(value, int) and not isinstance(value, bool) and value in (0, 1):
        yield bool(value), "a boolean", "medium"
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield f"{value} or {wrong}", "a sentence with the number", "high"
        yield float("nan"), "not a number", "high"
    if isinstance(value, str):
        yield f"{wrong} or {value}", "several values in one text", "high"
    yield True, "true for any value", "high"
    yield None, "null", "high"
    yield "", "an empty text", "high"


def validity_trials(profile: Profile, rows: Sequence[int]) -> Iterator[Trial]:
    """Yield values that a mere parse accepts, for rewards that judge no reference."""
    fix = "require an object with the expected keys and types"
    scalars = ("0", "null", '"x"', "true", "NaN")
    for row in rows[:2]:
        for text in scalars:
            why = f"the JSON scalar {text} is paid in full"
            yield Trial("json_tricks", "scalar", row, text, why, fix, "high")
        for text in ("{}", "[]"):
            why = f"the empty JSON value {text} is paid in full"
            yield Trial("format_without_content", "empty-json", row, text, why, fix, "high")
            yield Trial("json_tricks", "empty-json", row, text, why, fix, "high")
        yield from _empty_values(profile, row, fix)


def _empty_values(profile: Profile, row: int, fix: str) -> Iterator[Trial]:
    right = _object(profile.form(profile.answers[row])) if profile.form and row in profile.answers else None
    if not isinstance(right, dict) or not right:
        return
    fillers: tuple[Any, ...] = (None, "", [])
    for filler in fillers:
        text = json.dumps(dict.fromkeys(right, filler))
        why = f"an object whose values are all {json.dumps(filler)} is paid in full"
        yield Trial("format_without_content", "empty-values", row, text, why, fix, "high")
        yield Trial("json_tricks", "empty-values", row, text, why, fix, "high")


def equal_expression_trials(profile: Profile, rows: Sequence[int]) -> Iterator[Trial]:
    """Yield an expression that evaluates to an object equal to everything."""
    fix = "never evaluate a completion: read a number with a parser of numbers"
    why = "an expression that evaluates to an object equal to everything is paid in full"
    for row in rows[:3]:
        if profile.form is None:
            continue
        yield Trial(
            "code_injection",
            "equal-object",
            row,
            profile.form(EQUALS_ALL),
            why,
            fix,
            "critical",
            isolated=True,
        )
        yield Trial(
            "eq_override", "equal-object", row, profile.form(EQUALS_ALL), why, fix, "critical", isolated=True
        )
