"""From a completion to its code: the last complete fenced block, by declared policy."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

PYTHON_LABELS = frozenset({"python", "python3", "py", "py3", "python-3"})
"""First words of a fence that mean Python."""

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t]*([^`\n]*?)[ \t]*$")
_THINK_END = "</think>"
_THINK_START = "<think>"


class ExtractionPolicy(StrEnum):
    """Which part of a completion is its code."""

    LAST_BLOCK = "last-block"
    """The last complete block labelled Python, or without such, the last one without label. No fence: no code."""
    FIRST_BLOCK = "first-block"
    """The first such block."""
    WHOLE = "whole"
    """The completion itself is code, for models that continue a prompt."""


@dataclass(frozen=True, slots=True)
class _Block:
    label: str
    body: str


def extract_code(completion: str, policy: ExtractionPolicy | str = ExtractionPolicy.LAST_BLOCK) -> str | None:
    """Return the code of ``completion``, or None when the policy finds none.

    Text before the end of a thinking section is never searched, whether its opening tag stands in the completion
    or was prefilled by the chat template; a section that is not closed leaves nothing to search. A block that is
    not closed does not count.
    """
    policy = ExtractionPolicy(policy)
    text = _after_thinking(completion)
    if text is None:
        return None
    if policy is ExtractionPolicy.WHOLE:
        return text if text.strip() else None
    blocks = _complete_blocks(text)
    usable = [block for block in blocks if block.label in PYTHON_LABELS] or [
        block for block in blocks if not block.label
    ]
    if not usable:
        return None
    chosen = usable[0 if policy is ExtractionPolicy.FIRST_BLOCK else -1].body
    return chosen if chosen.strip() else None


def _after_thinking(completion: str) -> str | None:
    _, closed, rest = completion.partition(_THINK_END)
    if closed:
        return rest
    return None if completion.lstrip().startswith(_THINK_START) else completion


def _complete_blocks(text: str) -> list[_Block]:
    """Return the fenced blocks that are closed by a fence of the same kind, at least as long, as CommonMark says."""
    blocks: list[_Block] = []
    opening: str | None = None
    label = ""
    body: list[str] = []
    for line in text.replace("\r\n", "\n").split("\n"):
        match = _FENCE.match(line)
        if opening is None:
            if match:
                opening, label, body = match[1], _first_word(match[2]), []
        elif match and match[1].startswith(opening) and not match[2]:
            blocks.append(_Block(label, "\n".join(body) + "\n"))
            opening = None
        else:
            body.append(line)
    return blocks


def _first_word(info: str) -> str:
    words = info.strip("{} .").split()
    return words[0].strip("{}.,:").lower() if words else ""
