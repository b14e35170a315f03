"""Untrusted text made harmless: what would steer a terminal, turn the reading order or hide is shown by name.

Completions are written by a model that is paid for being judged right, so nothing that a reader sees may differ
from what is there.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Any, NamedTuple

STEERING = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters except tab and line feed: terminal escapes start here
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"  # invisible letters and joiners
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb"  # zero width, bidi, separators
    "\ud800-\udfff"  # lone surrogates, which no encoding can carry
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"  # invisible musical signs and tags
    "]"
)
NAMES = {0x1B: "ESC", 0x00: "NUL", 0x07: "BEL", 0x08: "BS", 0x0D: "CR", 0x7F: "DEL", 0x9B: "CSI"}
OPEN, CLOSE = "⟦", "⟧"


class Piece(NamedTuple):
    """A run of plain text, or of one steering character repeated ``repeated`` times."""

    text: str
    steering: bool
    repeated: int = 1


def pieces(text: str) -> Iterator[Piece]:
    """Split text into plain runs and runs of one steering character."""
    place = 0
    while place < len(text):
        found = STEERING.search(text, place)
        if found is None:
            yield Piece(text[place:], False)
            return
        if found.start() > place:
            yield Piece(text[place : found.start()], False)
        place = found.end()
        while place < len(text) and text[place] == found.group():
            place += 1
        yield Piece(found.group(), True, place - found.start())


def label(piece: Piece) -> str:
    """Return how a steering character is shown: ``U+202E``, ``ESC ×3``."""
    code = ord(piece.text)
    name = NAMES.get(code) or f"U+{code:04X}"
    return name if piece.repeated == 1 else f"{name} ×{piece.repeated}"


def title(piece: Piece) -> str:
    """Return the character's Unicode name in words."""
    name = unicodedata.name(piece.text, "") or NAMES.get(ord(piece.text), "control character")
    return f"U+{ord(piece.text):04X} {name.lower()}"


def visible(text: str) -> str:
    """Return the text with every steering character written out, safe for any terminal or page."""
    return "".join(f"{OPEN}{label(piece)}{CLOSE}" if piece.steering else piece.text for piece in pieces(text))


def finalized(value: Any) -> Any:
    """Make one value that a page's template writes harmless (Jinja's ``finalize``); markup passes as it is."""
    return visible(value) if isinstance(value, str) and not hasattr(value, "__html__") else value
