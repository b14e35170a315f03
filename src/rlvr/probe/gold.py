"""Whether the reward would pay the reference answer at all, and whether unpaid completions hold it. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rlvr.probe.summary import REFERENCES

FORMS = ("bare", "answer tag", "think and answer tag", "box", "sentence", "hashes", "fenced", "code fence")
_TAG = re.compile(r"<answer>(.*?)</answer>", re.DOTALL | re.IGNORECASE)
_BOX = re.compile(r"\\boxed\{([^{}]*)\}")
_HASHES = re.compile(r"####\s*(.+)")
_SENTENCE = re.compile(r"answer(?:\s+is)?\s*[:=]?\s*\**([^\n*]+?)\**\.?\s*$", re.IGNORECASE)


def reference_in(columns: Mapping[str, Any], preferred: Sequence[str] = ()) -> Any:
    """Return the reference of a row: the first filled column among the rewards' own and the usual names."""
    for name in (*preferred, *REFERENCES):
        value = columns.get(name)
        if value is not None and value != "":
            return value
    return None


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


def holds_reference(text: str, reference: Any) -> bool:
    """Return whether the last answer that a reader would see in ``text`` is the reference, spaces and case aside."""
    if reference is None:
        return False
    wanted = _plain(reference if isinstance(reference, str) else json.dumps(reference))
    return bool(wanted) and any(_plain(found) == wanted for found in _answers(text))


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
