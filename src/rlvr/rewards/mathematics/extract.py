r"""Find the text of the answer: the last complete box, tag or ``####`` line, else a named or a bare answer.

Markers, in this order of rank; within one rank the last one decides:

1. ``\boxed{…}`` (also ``\fbox``, ``\boxed 5``), ``<answer>…</answer>`` and ``#### …`` lines, whichever
   comes last; boxes that stand side by side are one answer of several values;
2. a sentence that names its answer: *the answer is …*, *Final answer: …*, ``**Answer:** …``;
3. a completion that is nothing but its answer.

A marker that was opened and never closed pays nothing, even where an earlier one was complete.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from rlvr.rewards.reading import last_tag

MOST_BOXES = 64
"""Boxes side by side that are read as one answer."""
LONGEST_BARE = 200
"""Characters up to which a whole completion may be the answer itself."""


class Found(NamedTuple):
    """The answer's text and how it was marked, or None and why there is none."""

    text: str | None
    why: str


_BOX = re.compile(r"\\(?:boxed|fbox|framebox)(?![a-zA-Z])\s*")
_BETWEEN = re.compile(
    r"(?:\s|[,;$]|\\[()\[\],; ]|\\(?:quad|qquad)|\band\b|\bor\b|\\text\{\s*,?\s*(?:and|or)\s*\}"
    r"|[a-zA-Z](?:_\{?\w\}?)?\s*=)*"
)
_HASH = re.compile(r"^[ \t]*####[ \t]*(.*?)[ \t]*$", re.MULTILINE)
_NUMBER_LIKE = re.compile(
    r"\**\s*(?:[$€£]\s*)?(?:\\\$\s*)?[-+−(\[{]?\s*(?:[$€£]\s*)?(?:[\d.]|\\(?:frac|dfrac|sqrt|pi|boxed|\())"
)
_NAMED = re.compile(
    r"(?:^|\n)\s*(?:#+\s*|\*\*)(?:final\s+)?answer\s*\**\s*:?\s*\**\s*\n+\s*"
    r"|(?:\b(?:final|correct|the)\s+)?\banswers?(?:\s+to\s+[^.\n]{1,60}?)?\**\s*(?:\bis\b|\bare\b|:|=|\bequals\b)\s*\**\s*:?\s*",
    re.IGNORECASE,
)
_CLAUSE = re.compile(
    r"(?:,)?\s+(?:because|since|as|so|which|where|for|given|but|if|when|not|rather|instead)\b.*",
    re.DOTALL | re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"(?<=[^\d\s.])\.(?=\s|\Z)|\.(?=\s|\Z)|\n\s*\n|[!?](?=\s+[A-Z]|\s*\Z)|\n")
_LAST_IS = re.compile(r".*(?:\b(?:is|are|equals)\b|=)\s*", re.DOTALL)
_LINE_MATH = re.compile(r"\s*\\\[(.+?)\\\]|\s*\$\$(.+?)\$\$", re.DOTALL)


def find_answer(visible: str, tag: str = "answer") -> Found:
    """Return the answer that stands in ``visible``, the part of a completion outside thinking."""
    marked = _last_marker(visible, tag)
    if marked is not None:
        return marked
    return _named(visible) or _bare(visible)


def gold_text(reference: str) -> str:
    """Return the answer inside a reference: its last box, tag or ``####`` line, otherwise all of it."""
    if "\\" not in reference and "#" not in reference and "<" not in reference:
        return reference
    found = _last_marker(reference, "answer")
    return found.text if found is not None and found.text else reference


def _last_marker(text: str, tag: str) -> Found | None:
    """Return the marked answer that ends last, or None where nothing is marked."""
    box = _box_place(text)
    tagged = max(text.rfind(f"<{tag}>"), text.rfind(f"</{tag}>")) if tag else -1
    hashed = _last_hash(text)
    hash_place = hashed.start() if hashed else -1
    last = max(box, tagged, hash_place)
    if last < 0:
        return None
    if tagged == last:
        reading = last_tag(text, tag)
        return (
            Found(_inner(reading.content), f"inside <{tag}>")
            if reading.content is not None
            else Found(None, reading.why)
        )
    if hash_place == last and hashed is not None:
        return _of_line(hashed.group(1))
    return _boxes(text)


def _inner(content: str) -> str:
    """Return the box inside a tag's content where there is one."""
    found = _boxes(content) if _box_place(content) >= 0 else None
    return found.text if found is not None and found.text is not None else content


def _of_line(line: str) -> Found:
    line = line.strip().strip("*").strip()
    named = _named(line)
    return (
        named
        if named is not None and named.text
        else Found(line or None, "behind ####" if line else "nothing behind ####")
    )


def _last_hash(text: str) -> re.Match[str] | None:
    """Return the last ``####`` line that holds an answer; headings count only where no line holds a number."""
    if "####" not in text:
        return None
    lines = list(_HASH.finditer(text))
    numbers = [line for line in lines if _NUMBER_LIKE.match(line.group(1))]
    if numbers:
        return numbers[-1]
    plain = [
        line
        for line in lines
        if line.group(1) and len(line.group(1)) < 40 and not line.group(1).endswith(":")
    ]
    return plain[-1] if plain and len(lines) == 1 else None


def _box_place(text: str) -> int:
    """Return where the last box command stands, or -1; a command quoted in prose without content is none."""
    place = -1
    for found in _BOX.finditer(text):
        if text[found.end() : found.end() + 1] == "{" or _braceless(text, found.end()):
            place = found.start()
    return place


def _braceless(text: str, place: int) -> str:
    r"""Return the content of ``\boxed 5``: one token behind the command."""
    found = re.match(
        r"-?\d[\d.,]*(?<![.,])|\\frac\s*\{[^{}]*\}\s*\{[^{}]*\}|\\frac\d\d|[A-Z](?![A-Za-z])",
        text[place : place + 80],
    )
    return found.group() if found else ""


def _boxes(text: str) -> Found:
    """Return the last box, joined with those that stand right before it."""
    spans = _box_spans(text)
    last = spans[-1]
    if last.content is None:
        return Found(None, "the last box was never closed")
    values = [last.content.strip()]
    for earlier, later in zip(reversed(spans[:-1]), reversed(spans[1:]), strict=False):
        if (
            len(values) >= MOST_BOXES
            or earlier.content is None
            or not _BETWEEN.fullmatch(text[earlier.end : later.start])
        ):
            break
        values.insert(0, earlier.content.strip())
    distinct = list(dict.fromkeys(value for value in values if value))
    if not distinct:
        return Found(None, "the box is empty")
    return Found(
        _nested(", ".join(distinct)), "boxed" if len(distinct) == 1 else f"{len(distinct)} boxes side by side"
    )


class _Span(NamedTuple):
    start: int
    end: int
    content: str | None


def _box_spans(text: str) -> list[_Span]:
    """Return the outermost boxes with their content; None for one that never closes."""
    spans: list[_Span] = []
    pairs = _brace_pairs(text)
    after = 0
    for found in _BOX.finditer(text):
        if found.start() < after:
            continue  # inside the previous box
        if text[found.end() : found.end() + 1] == "{":
            close = pairs.get(found.end(), -1)
            content = text[found.end() + 1 : close] if close >= 0 else None
            after = close + 1 if close >= 0 else found.end()
        else:
            content = _braceless(text, found.end())
            if not content:
                continue
            after = found.end() + len(content)
        spans.append(_Span(found.start(), after, content))
    return spans


def _nested(content: str) -> str:
    inner = _BOX.match(content.strip())
    return _boxes(content).text or content if inner and _box_place(content) >= 0 else content


_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)


def _brace_pairs(text: str) -> dict[int, int]:
    """Return the place of each opening brace and of the one that closes it; escaped braces do not count."""
    pairs: dict[int, int] = {}
    open_braces: list[int] = []
    for found in _BRACE.finditer(text):
        sign = found.group()
        if sign == "{":
            open_braces.append(found.start())
        elif sign == "}" and open_braces:
            pairs[open_braces.pop()] = found.start()
    return pairs


def _named(text: str) -> Found | None:
    """Return what the last sentence names as its answer."""
    matches = list(_NAMED.finditer(text[-4000:]))
    tail = text[-4000:]
    for found in reversed(matches):
        named = _sentence(tail[found.end() :])
        if named:
            return Found(named, f"behind {found.group().strip(' *')!r}")
    return None


def _sentence(text: str) -> str:
    """Return the answer at the head of ``text``: displayed math, or the sentence up to its end or first clause."""
    shown = _LINE_MATH.match(text)
    if shown:
        return (shown.group(1) or shown.group(2)).strip()
    text = text.lstrip()
    delimited = re.match(r"(\$[^$\n]+\$|\\\(.+?\\\)|`[^`\n]+`)(?P<after>[^.\n]*)", text)
    if delimited and not re.search(r"[$`]|\\\(|\bor\b|\band\b|^\s*,\s*\S", delimited["after"]):
        return delimited.group(1)
    end = _SENTENCE_END.search(text)
    sentence = text[: end.start()] if end else text
    sentence = _CLAUSE.sub("", sentence).strip().strip("*").strip()
    return sentence if len(sentence) <= LONGEST_BARE else ""


def after_is(sentence: str) -> str:
    """Return what follows the last *is*, *are* or ``=`` of a sentence: *The largest n is 34*."""
    return _LAST_IS.sub("", sentence, count=1).strip()


def _bare(text: str) -> Found:
    text = text.strip()
    if not text:
        return Found(None, "the completion is empty")
    if len(text) <= LONGEST_BARE and "\n" not in text:
        return Found(text, "the whole completion")
    return Found(None, "no box, answer tag, #### line or sentence that names the answer")
