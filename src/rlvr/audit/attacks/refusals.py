"""Right answers in other words: each that is refused is a false fail, or a remark where a strict form is the rule."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from rlvr.audit.profile import Profile
from rlvr.audit.references import Variant, equivalents
from rlvr.audit.trials import Trial
from rlvr.records.audit import Severity

_SEVERITIES: dict[str, Severity] = {"high": "high", "medium": "medium", "low": "low", "info": "info"}


_FIXES = {
    "codes": "normalise case and space only: some references have leading zeros, so zeros are part of the answer",
    "values": "compare values, not texts: normalise separators, trailing zeros and space first",
    "texts": "compare without regard to case and space, unless the task asks for them as they stand",
}
_LEADING_ZERO = re.compile(r"[-+]?0\d")


def _family(profile: Profile, kind: str) -> str:
    """Return what the references are: digits that are codes, values, or texts."""
    if any(_LEADING_ZERO.match(gold.text) for gold in profile.golds):
        return "codes"
    return "texts" if kind in ("text", "boolean") else "values"


def equivalent_trials(profile: Profile, rows: Sequence[int]) -> Iterator[Trial]:
    """Yield other texts of the right value, in the form that is paid."""
    form = profile.form
    if form is None or profile.kind == "code":
        return
    for row in rows:
        gold, answer = profile.golds[row], profile.answers.get(row)
        if answer is None:
            continue
        fix = _FIXES[_family(profile, gold.kind)]
        for text, label, weight in equivalents(gold):
            why = f"{text!r} ({label}) is refused where {answer!r} is paid"
            attack = label.replace(" ", "-")
            yield Trial("equivalent_forms", attack, row, form(text), why, fix, _SEVERITIES[weight], "paid")
        if gold.kind == "json":
            yield from _json_layouts(profile, row, answer)


def _json_layouts(profile: Profile, row: int, answer: str) -> Iterator[Trial]:
    form = profile.form
    try:
        value = json.loads(answer)
    except (ValueError, RecursionError):
        return
    fix = "parse the JSON and compare values: order of keys and white space mean nothing"
    variants = [
        Variant(json.dumps(value, indent=2, ensure_ascii=False), "indented", "high"),
        Variant(json.dumps(value, separators=(",", ":"), ensure_ascii=False), "compact", "high"),
    ]
    if isinstance(value, dict) and len(value) > 1:
        turned = json.dumps(dict(reversed(value.items())), ensure_ascii=False)
        variants.append(Variant(turned, "keys in another order", "high"))
    for text, label, _ in variants:
        if form is not None and text != answer:
            why = f"the same JSON, {label}, is refused"
            yield Trial(
                "equivalent_forms", label.replace(" ", "-"), row, form(text), why, fix, "high", "paid"
            )


SENTENCES = (
    "The answer is {}.",
    "So the final answer is {}.",
    "A careful look at all of it gives {}.",
    "I considered it in detail, and the correct one is {}.",
)


def prose_trials(profile: Profile, rows: Sequence[int]) -> Iterator[Trial]:
    """Yield the right answer named in a sentence, for rewards that ask for no marks."""
    form = profile.form
    if form is None or profile.kind in ("code", "json"):
        return
    if form.name not in ("bare answer", "the answer is …"):
        return
    for row in rows:
        answer = profile.answers.get(row)
        if answer is None:
            continue
        for sentence in SENTENCES:
            yield Trial(
                "answer_named_in_prose",
                "sentence",
                row,
                sentence.format(answer),
                "the right answer, named in a plain sentence, is refused",
                "ask for a marked answer in the prompt, or read the last answer that is named",
                "info",
                "paid",
            )
