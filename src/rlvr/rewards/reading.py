"""Where in a completion the answer stands: outside thinking, before end tokens, inside the last complete tag.

Every built-in reward reads through here, so that thinking text is never searched for an answer and an end
token that a tokenizer left in the text never fails a match.
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

THINKING_TAGS = ("think", "thinking", "reasoning")
"""Tags whose content is thinking, never an answer."""

_THINKING = re.compile(rf"<(/?)(?:{'|'.join(THINKING_TAGS)})>|\[(/?)THINK\]", re.IGNORECASE)
_FINAL_CHANNEL = "<|channel|>final<|message|>"
"""Where the visible part of a completion with channels begins."""

_END_TOKENS = re.compile(
    r"(?:\s*(?:<\|(?:im_end|endoftext|eot_id|end_of_text|end|eom_id|return|end_of_turn|eos)\|>"
    r"|</s>|<eos>|<pad>|<\|pad\|>|<end_of_turn>|<turn\|>|\[/?INST\]|<｜end▁of▁sentence｜>))+\s*\Z"
)

_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f\ufeff]"
)
_SPACES = re.compile("[\\s\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]+")


def without_end_tokens(text: str) -> str:
    """Return ``text`` without end-of-turn and padding tokens at its end."""
    stripped = text.rstrip()
    if not stripped.endswith((">", "]")):
        return text
    # an end token has under 30 characters; a bounded tail keeps a long completion linear
    cut = max(0, len(stripped) - 2048)
    return stripped[:cut] + _END_TOKENS.sub("", stripped[cut:])


def outside_thinking(text: str, *, prefilled: bool = False) -> str:
    """Return the part of ``text`` that is not thinking.

    A closing tag without an opening one ends thinking that began in the prompt; an opening tag without a
    closing one begins thinking that never ended.

    Args:
        text: The completion.
        prefilled: Whether the chat template opened the thinking, so that the completion starts inside it.
    """
    if _FINAL_CHANNEL in text:
        return text.rpartition(_FINAL_CHANNEL)[2]
    if "<|channel|>" in text:
        return ""  # channels, and none of them final: the thinking never ended
    if "<" not in text and "[" not in text:
        return "" if prefilled else text
    kept: list[str] = []
    thinking, start = prefilled, 0
    for tag in _THINKING.finditer(text):
        closing = bool(tag.group(1) or tag.group(2))
        if closing and not thinking:
            kept.clear()
        elif not closing and not thinking:
            kept.append(text[start : tag.start()])
        thinking, start = not closing, tag.end()
    if not thinking:
        kept.append(text[start:])
    return "".join(kept)


def clean_spaces(text: str) -> str:
    """Return ``text`` in NFC, without zero-width characters, every run of spaces as one plain space."""
    if text.isascii():
        return " ".join(text.split())
    return _SPACES.sub(" ", _INVISIBLE.sub("", unicodedata.normalize("NFC", text))).strip()


class TagReading(NamedTuple):
    """What was found of one tag: its content, or why there is none."""

    content: str | None
    why: str = ""


def last_tag(text: str, tag: str) -> TagReading:
    """Return the content of the last complete ``<tag>…</tag>`` of ``text``.

    A tag that was opened after the last complete one and never closed pays nothing, since the answer that the
    completion was about to give is unknown.
    """
    opening, closing = f"<{tag}>", f"</{tag}>"
    end = text.rfind(closing)
    if end < 0:
        return TagReading(
            None, f"{opening} was never closed" if opening in text else f"no {opening}…{closing}"
        )
    start = text.rfind(opening, 0, end)
    content = text[start + len(opening) : end]
    if start < 0 or closing in content:
        return TagReading(None, f"{closing} without {opening}")
    if opening in text[end:]:
        return TagReading(None, f"the last {opening} was never closed")
    return TagReading(content)
