"""Brackets of answers: how deep each character stands, and where a text splits outside all of them."""

from __future__ import annotations

import re

_CLOSERS = {"(": ")", "[": "]", "{": "}"}


def levels(text: str) -> list[tuple[str, int]]:
    """Return each character with its bracket depth; escaped braces count as brackets too."""
    found, depth, skip = [], 0, False
    for place, one in enumerate(text):
        if skip:
            skip = False
            found.append((one, depth))
            continue
        if one == "\\" and place + 1 < len(text) and text[place + 1] in "{}":
            depth += 1 if text[place + 1] == "{" else -1
            found.append((one, max(depth, 1)))
            skip = True
            continue
        if one in "([{":
            depth += 1
            found.append((one, depth))
        elif one in ")]}":
            found.append((one, max(depth, 1)))
            depth = max(depth - 1, 0)
        else:
            found.append((one, depth))
    return found


def split(text: str, separators: str, *, thousands: bool = False) -> list[str]:
    """Split at the separators that stand outside brackets; ``1,234`` stays whole where asked."""
    parts: list[str] = []
    current: list[str] = []
    for place, (one, level) in enumerate(levels(text)):
        if level == 0 and one in separators and not (thousands and one == "," and _is_thousands(text, place)):
            parts.append("".join(current))
            current = []
        else:
            current.append(one)
    return [*parts, "".join(current)]


def _is_thousands(text: str, place: int) -> bool:
    before = re.search(r"(?:^|[^\d])\d{1,3}(?:,\d{3})*\Z", text[:place])
    return bool(before and re.match(r",\d{3}(?:,\d{3})*(?!\d|,\d)", text[place:]))


def closes_at_end(text: str, *, mixed: bool = False) -> bool:
    """Return whether the bracket that opens ``text`` is the one that closes it."""
    opening = "([{" if mixed else text[0]
    closing = ")]}" if mixed else _CLOSERS.get(text[0], "")
    depth = 0
    for place, one in enumerate(text):
        depth += (one in opening) - (one in closing)
        if depth == 0:
            return place == len(text) - 1
    return False
