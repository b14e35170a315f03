"""Whether the reward would pay the reference answer at all, and whether unpaid completions hold it. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rlvr.probe.summary import REFERENCES

FORMS = ("bare", "answer tag", "think and answer tag", "box", "sentence", "hashes", "fenced", "code fence")
SHORT = 40
"""Characters of a reference that a right completion is expected to contain as it stands."""
_TAG = re.compile(r"<answer>(.*?)</answer>", re.DOTALL | re.IGNORECASE)
_BOX = re.compile(r"\\boxed\{([^{}]*)\}")
_HASHES = re.compile(r"####\s*(.+)")
_SENTENCE = re.compile(r"answer(?:\s+is)?\s*[:=]?\s*\**([^\n*]+?)\**\.?\s*$", re.IGNORECASE)


def references_in(columns: Mapping[str, Any], preferred: Sequence[str] = ()) -> list[Any]:
    """Return what may be the reference of a row: the rewards' own columns and the first of the usual names."""
    usual = next((name for name in REFERENCES if columns.get(name) not in (None, "")), None)
    names = [name for name in (*preferred, usual) if name is not None]
    found = []
    for name in dict.fromkeys(names):
        value = columns.get(name)
        if value is not None and value != "":
            found.append(value)
    return found


def gold_forms(reference: Any) -> list[str]:
    """Return completions that give the reference in each of the usual forms, one for each of :data:`FORMS`."""
    text = reference if isinstance(reference, str) else json.dumps(reference, ensure_ascii=False)
    last = text.rpartition("####")[2].strip() if "####" in text else text
    return [
        last,
        f"<answer>{last}</answer>",
        f"<think>\nI work it out.\n</think>\n<answer>\n{last}\n</answer>",
        f"\\boxed{{{last}}}",
        f"The answer is {last}.",
        f"#### {last}",
        f"```json\n{last}\n```",
        f"```python\n{last}\n```",
    ]


def holds_reference(text: str, references: Sequence[Any]) -> bool:
    """Return whether the last answer that a reader would see in ``text`` is a reference, spaces and case aside."""
    wanted = {_plain(one if isinstance(one, str) else json.dumps(one)) for one in references} - {""}
    return bool(wanted) and any(_plain(found) in wanted for found in _answers(text))


def lacks_reference(text: str, references: Sequence[Any]) -> bool:
    """Return whether a short reference exists and stands nowhere in ``text``, spaces and case aside."""
    short = [_plain(str(one)) for one in references if isinstance(one, str | int | float)]
    short = [one for one in short if 0 < len(one) <= SHORT]
    plain = " ".join(text.split()).casefold()
    return bool(short) and not any(one in plain for one in short)


def _answers(text: str) -> Iterable[str]:
    for pattern in (_TAG, _BOX, _HASHES):
        found = pattern.findall(text)
        if found:
            yield found[-1]
            return
    yield text
    lines = text.strip().splitlines()
    sentence = _SENTENCE.search(lines[-1]) if lines else None
    if sentence:
        yield sentence.group(1)


def _plain(text: str) -> str:
    return " ".join(text.rpartition("####")[2].split()).strip(" .$").casefold()
