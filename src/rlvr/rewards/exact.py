"""Exact answers: the text inside an answer tag equals the reference, after a declared normalisation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rlvr.rewards.builtin import Builtin
from rlvr.rewards.contract import Outcome, Verdict
from rlvr.rewards.reading import clean_spaces, last_tag, outside_thinking, without_end_tokens

_ARTICLE = re.compile(r"(?:the|an|a) (?=\S)", re.IGNORECASE)
_FINAL = ".,;:!?。，；：！？…"
_QUOTES = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"'})
_FACTORIAL = re.compile(r"[0-9a-zA-Z)\]}]!\Z")


@dataclass(frozen=True)
class Exact(Builtin):
    """Accept an answer that equals the reference text (or any one of a list of them).

    Both sides are read in Unicode NFC, without zero-width characters, with every kind of space as one plain
    space and curled quotes as straight ones; the switches below say what else does not count. Numbers are
    compared as text: use ``math`` for values.

    Attributes:
        tag: Name of the tag that holds the answer; the last complete one decides. Empty: the whole text
            outside thinking is the answer.
        ignore_case: Fold case.
        ignore_article: Drop one leading article (the, a, an) where something follows it.
        ignore_final_punctuation: Drop punctuation at the end; ``5!`` keeps its factorial.
        think_prefilled: The chat template opens ``<think>``, so the completion starts inside it.
    """

    tag: str = "answer"
    ignore_case: bool = True
    ignore_article: bool = True
    ignore_final_punctuation: bool = True
    think_prefilled: bool = False

    def verdict(self, completion: str, reference: Any) -> Verdict:
        """Read one completion against a text or a list of accepted texts."""
        accepted = self._accepted(reference)
        visible = without_end_tokens(outside_thinking(completion, prefilled=self.think_prefilled))
        content, why = (visible, "") if not self.tag else self._tagged(visible)
        if content is None:
            return Verdict(Outcome.ILL_FORMED, 0.0, None, why)
        answer = self.normalise(content)
        if not answer:
            return Verdict(Outcome.ILL_FORMED, 0.0, content, "the answer is empty")
        if answer in accepted:
            return Verdict(Outcome.RIGHT, 1.0, content, f"{answer!r} equals the reference")
        return Verdict(Outcome.WRONG, 0.0, content, f"{answer!r} is not {' or '.join(map(repr, accepted))}")

    def normalise(self, text: str) -> str:
        """Return ``text`` as it is compared."""
        text = clean_spaces(text).translate(_QUOTES)
        if self.ignore_final_punctuation:
            text = _without_final_punctuation(text)
        if self.ignore_article:
            text = _ARTICLE.sub("", text, count=1) if _ARTICLE.match(text) else text
        return text.casefold() if self.ignore_case else text

    def check_reference(self, reference: Any) -> str | None:
        """Return why ``reference`` cannot be compared with, or None."""
        values = _as_texts(reference)
        if values is None:
            return f"a {type(reference).__name__} is neither a text, a number nor a list of them"
        if not values:
            return "no reference"
        if not all(self.normalise(value) for value in values):
            return "an empty reference"
        return None

    def _accepted(self, reference: Any) -> list[str]:
        problem = self.check_reference(reference)
        if problem:
            raise self.bad_reference(reference, problem)
        return [self.normalise(value) for value in _as_texts(reference) or []]

    def _tagged(self, visible: str) -> tuple[str | None, str]:
        reading = last_tag(visible, self.tag)
        return reading.content, reading.why


def _as_texts(reference: Any) -> list[str] | None:
    if isinstance(reference, str):
        return [reference]
    if isinstance(reference, bool):
        return ["true" if reference else "false"]
    if isinstance(reference, int | float):
        return [str(reference)]
    if isinstance(reference, Sequence) and not isinstance(reference, bytes):
        parts = [_as_texts(item) for item in reference if not isinstance(item, list | tuple)]
        if len(parts) == len(reference) and all(part is not None for part in parts):
            return [text for part in parts if part for text in part]
    return None


def _without_final_punctuation(text: str) -> str:
    end = len(text)
    while end and (text[end - 1] in _FINAL or text[end - 1] == " "):
        if text[end - 1] == "!" and _FACTORIAL.search(text, 0, end) and not text[: end - 1].isalpha():
            break
        end -= 1
    return text[:end] if end else text
