"""Fenced blocks of Markdown, closed ones only, as CommonMark closes them."""

from __future__ import annotations

import re
from typing import NamedTuple

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t]*([^`\n]*?)[ \t]*$")
_ONE_LINE = re.compile(r"\A\s*```(\w*)[ \t]+(.+?)[ \t]*```\s*\Z")


class Block(NamedTuple):
    """One closed block: the first word of its label in lower case, and its body."""

    label: str
    body: str


def fenced_blocks(text: str) -> tuple[list[Block], bool]:
    """Return the closed blocks of ``text``, and whether a last one was opened and never closed.

    A fence closes a block when it uses the same sign, is at least as long, and carries no label; so three backticks
    inside a line of the block do not.
    """
    if "```" not in text and "~~~" not in text:
        return [], False
    single = _ONE_LINE.match(text)
    if single and "\n" not in text.strip():
        return [Block(single.group(1).lower(), single.group(2))], False
    blocks: list[Block] = []
    opening, label = "", ""
    body: list[str] = []
    for line in text.split("\n"):
        fence = _FENCE.match(line.rstrip("\r"))
        if not opening:
            if fence:
                words = fence[2].split()
                opening, label, body = fence[1], words[0].lower() if words else "", []
        elif fence and fence[1].startswith(opening) and not fence[2]:
            blocks.append(Block(label, "\n".join(body)))
            opening = ""
        else:
            body.append(line)
    return blocks, bool(opening)
