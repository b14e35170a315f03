"""Format: tags in a declared order, checked by a small grammar instead of a regular expression.

A layout names the blocks in order: ``"think answer"``, ``"think? answer"``, ``"plan step+ answer"``. A name
may end with ``?`` (may be missing), ``+`` (one or more) or ``*`` (any number); ``...`` allows free text in
its place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from rlvr.errors import ConfigError
from rlvr.rewards.builtin import Builtin
from rlvr.rewards.contract import Outcome, Verdict
from rlvr.rewards.reading import THINKING_TAGS, clean_spaces, without_end_tokens

_ITEM = re.compile(r"(?P<name>[A-Za-z][\w.:-]*)(?P<times>[?+*]?)\Z")
_FREE = "..."


@dataclass(frozen=True, slots=True)
class _Block:
    """One ``<name>content</name>`` of a completion, or free text (an empty name)."""

    name: str
    content: str


@dataclass(frozen=True)
class Tags(Builtin):
    """Pay the format alone: the declared tags, complete, in order, filled, and nothing around them.

    Tag names are case sensitive and carry no attributes. End tokens at the end do not count. A layout whose
    first block is thinking may start inside it (see ``think_prefilled``).

    Attributes:
        layout: Blocks in order, for example ``"think answer"``; see the module for ``?``, ``+``, ``*``,
            ``...``.
        minimum: Least number of visible characters of each block's content. Blocks that are not named need
            one, thinking none.
        strict_start: Refuse text before the first block.
        strict_end: Refuse text after the last block.
        think_prefilled: The chat template opens the first thinking block, so its opening tag is not in the
            completion.
    """

    role = "format"

    layout: str = "think answer"
    minimum: dict[str, int] = field(default_factory=dict, hash=False)
    strict_start: bool = True
    strict_end: bool = True
    think_prefilled: bool = False
    reference: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        names = {name for name, _ in _items(self.layout)}
        unknown = sorted(set(self.minimum) - names)
        if unknown:
            raise ConfigError(
                "reward.layout",
                f"minimum names {unknown[0]!r}, which is no block of the layout {self.layout!r}",
                where=f"reward {self.__name__}",
            )

    def verdict(self, completion: str, reference: Any) -> Verdict:
        """Read the format of one completion; the reference is not used."""
        del reference
        text = without_end_tokens(completion)
        items = _items(self.layout)
        first = items[0][0]
        if self.think_prefilled and first and not text.lstrip().startswith(f"<{first}>"):
            text = f"<{first}>{text}"
        blocks, why = _blocks(text, tuple(name for name, _ in items if name))
        why = why or self._empties(blocks) or self._order(blocks)
        if why:
            return Verdict(Outcome.ILL_FORMED, 0.0, _shape(blocks), why)
        return Verdict(Outcome.RIGHT, 1.0, _shape(blocks), f"the layout {self.layout!r} is kept")

    def _empties(self, blocks: Sequence[_Block]) -> str:
        for block in blocks:
            least = self.minimum.get(block.name, 0 if block.name in THINKING_TAGS else 1)
            if block.name and len(clean_spaces(block.content).replace(" ", "")) < least:
                return f"<{block.name}> has under {least} visible characters"
        return ""

    def _order(self, blocks: Sequence[_Block]) -> str:
        shape = "".join(f"<{block.name}>" for block in blocks)
        if _pattern(self.layout, self.strict_start, self.strict_end).fullmatch(shape):
            return ""
        return f"found {_shape(blocks) or 'no tags'}, expected {self.layout!r}{self._around()}"

    def _around(self) -> str:
        sides = [side for side, on in (("before", self.strict_start), ("after", self.strict_end)) if on]
        return f" with no text {' or '.join(sides)} it" if sides else ""


@lru_cache(maxsize=64)
def _items(layout: str) -> tuple[tuple[str, str], ...]:
    """Return the blocks of a layout as (name, times); free text has an empty name."""
    items = []
    for word in layout.split():
        found = _ITEM.match(word)
        if word != _FREE and not found:
            raise ConfigError(
                "reward.layout",
                f"{word!r} in the layout {layout!r} is no block",
                expected="tag names with an optional ?, + or * behind them, or ... for free text",
            )
        items.append((found["name"], found["times"]) if found else ("", "?"))
    if not any(name for name, _ in items):
        raise ConfigError("reward.layout", f"the layout {layout!r} names no tag", expected='"think answer"')
    return tuple(items)


@lru_cache(maxsize=64)
def _pattern(layout: str, strict_start: bool, strict_end: bool) -> re.Pattern[str]:
    parts = [f"(?:{re.escape(f'<{name}>')}){times}" for name, times in _items(layout)]
    around = re.escape("<>")
    before = "" if strict_start else f"(?:{around})?"
    after = "" if strict_end else f"(?:{around})?"
    return re.compile(before + "".join(parts) + after)


@lru_cache(maxsize=64)
def _tag_pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    choice = "|".join(re.escape(name) for name in sorted(set(names), key=len, reverse=True))
    return re.compile(f"<(/?)({choice})>")


def _blocks(text: str, names: tuple[str, ...]) -> tuple[list[_Block], str]:
    """Split ``text`` into blocks and the text between them; the second value says what is broken."""
    blocks: list[_Block] = []
    inside, start = "", 0
    nested: list[str] = []
    for tag in _tag_pattern(names).finditer(text):
        closing, name = bool(tag.group(1)), tag.group(2)
        if inside and closing and name == inside:
            blocks.append(_Block(name, text[start : tag.start()]))
            inside, start = "", tag.end()
        elif inside:
            why = _inside(inside, name, closing, nested)
            if why:
                return blocks, why
        elif closing:
            return blocks, f"</{name}> without <{name}>"
        else:
            _append_text(blocks, text[start : tag.start()])
            inside, start, nested = name, tag.end(), []
    if inside:
        return blocks, f"<{inside}> was never closed"
    _append_text(blocks, text[start:])
    return blocks, ""


def _inside(outer: str, name: str, closing: bool, nested: list[str]) -> str:
    """Say what is wrong with a tag inside a block; thinking may mention a tag, but not hold a whole block."""
    if outer not in THINKING_TAGS or name == outer:
        return f"<{'/' if closing else ''}{name}> inside <{outer}>"
    if closing and name in nested:
        return f"a whole <{name}> block inside <{outer}>"
    nested.append(name)
    return ""


def _append_text(blocks: list[_Block], text: str) -> None:
    if clean_spaces(text):
        blocks.append(_Block("", text))


def _shape(blocks: Sequence[_Block]) -> str:
    return " ".join(f"<{block.name}>" if block.name else "text" for block in blocks)
