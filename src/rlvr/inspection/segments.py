"""Cut a completion into prose, thinking, code, JSON and formulas, by position, and choose what to fold. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

Kind = Literal["prose", "think", "code", "json", "math", "display"]

FOLD_FROM = 4_000
"""Characters from which a completion is folded."""
HEAD_CHARACTERS = 700
TAIL_CHARACTERS = 1_800
LONGEST_FORMULA = 1_000

_FENCE = re.compile(r"^(?P<fence>```+|~~~+)[ \t]*(?P<language>[\w+#.-]*)[^\n]*\n", re.MULTILINE)
_THINK = re.compile(r"<think>|</think>")
_FORMULA = re.compile(
    r"\\\[(?P<bracket>.{1,1000}?)\\\]"
    r"|\$\$(?P<dollars>[^$]{1,1000})\$\$"
    r"|\\\((?P<round>[^\n]{1,1000}?)\\\)"
    r"|(?<![\\$\w])\$(?P<dollar>[^\s$](?:[^$\n]{0,400}[^\s$\\])?)\$(?![\d$])"
    r"|\\boxed\s?\{",
    re.DOTALL,
)
_LIKE_LATEX = re.compile(r"[\\^_{}=+<>*/|-]|^\w$|^-?\d+(?:[.,]\d+)?%?$|^[A-Za-z]\w?\(")


class Segment(NamedTuple):
    """One piece of the text: ``text[start:end]`` is what it shows, without fences or delimiters."""

    kind: Kind
    start: int
    end: int
    language: str = ""


def segments(text: str) -> list[Segment]:
    """Return the pieces of a completion, in order."""
    if _is_json(text.strip()):
        start = len(text) - len(text.lstrip())
        return [Segment("json", start, start + len(text.strip()), "json")]
    return [piece for piece in _fenced(text) if piece.end > piece.start]


def _fenced(text: str) -> Iterator[Segment]:
    place = 0
    while (opening := _FENCE.search(text, place)) is not None:
        yield from _thinking(text, place, opening.start())
        closing = re.compile(rf"^{re.escape(opening['fence'])}[ \t]*$", re.MULTILINE).search(
            text, opening.end()
        )
        end = closing.start() if closing else len(text)
        language = opening["language"].lower()
        is_json = language in ("json", "") and _is_json(text[opening.end() : end].strip())
        yield Segment("json" if is_json else "code", opening.end(), end, "json" if is_json else language)
        place = min(closing.end() + 1, len(text)) if closing else len(text)
    yield from _thinking(text, place, len(text))


def _thinking(text: str, start: int, end: int) -> Iterator[Segment]:
    """Split prose into thinking and the rest; a template may have opened the thinking before the text."""
    first = _THINK.search(text)
    inside = first is not None and first.group() == "</think>"
    last_open, last_close = text.rfind("<think>", 0, start), text.rfind("</think>", 0, start)
    if last_open >= 0 or last_close >= 0:
        inside = last_open > last_close
    place = start
    for tag in _THINK.finditer(text, start, end):
        stop = tag.end() if tag.group() == "</think>" else tag.start()
        yield from _formulas(text, place, stop, "think" if inside else "prose")
        place, inside = stop, tag.group() == "<think>"
    yield from _formulas(text, place, end, "think" if inside else "prose")


def _formulas(text: str, start: int, end: int, kind: Kind) -> Iterator[Segment]:
    place = start
    for found in _FORMULA.finditer(text, start, end):
        if found.start() < place:
            continue
        formula = _formula(text, found, end)
        if formula is None:
            continue
        yield Segment(kind, place, found.start())
        yield formula
        place = _after(formula, found)
        if formula.kind == "display" and text[place : place + 1] == "\n":
            place += 1  # the formula stands on a line of its own; its line end would show as an empty one
    yield Segment(kind, place, end)


def _after(formula: Segment, found: re.Match[str]) -> int:
    return max(formula.end, found.end()) if found.lastgroup else formula.end


def _formula(text: str, found: re.Match[str], end: int) -> Segment | None:
    name = found.lastgroup
    if name is None:  # a box in plain prose: up to its closing brace
        close = _closing_brace(text, found.end(), min(end, found.end() + LONGEST_FORMULA))
        if close is None or not text[found.end() : close].strip():
            return None  # an empty box, as in "answer in \\boxed{}", is read better as it is written
        return Segment("math", found.start(), close + 1)
    if name == "dollar" and not _LIKE_LATEX.search(found[name]):
        return None  # money, not mathematics
    return Segment("display" if name in ("bracket", "dollars") else "math", *found.span(name))


def _closing_brace(text: str, start: int, end: int) -> int | None:
    depth = 1
    for place in range(start, end):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return place
    return None


def _is_json(text: str) -> bool:
    if not text or text[0] + text[-1] not in ("{}", "[]"):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def reindent_json(text: str) -> str:
    """Indent JSON by inserting white space only, so that doubled keys and odd numbers stay as written."""
    out: list[str] = []
    depth, in_string, escaped = 0, False, False
    for place, letter in enumerate(text):
        if in_string:
            out.append(letter)
            in_string = escaped or letter != '"'
            escaped = letter == "\\" and not escaped
        elif letter in "{[":
            depth += 1
            out.append(letter if _is_empty(text, place) else f"{letter}\n{'  ' * depth}")
        elif letter in "}]":
            depth -= 1
            out.append(letter if out and out[-1] in ("{", "[") else f"\n{'  ' * depth}{letter}")
        elif letter == ",":
            out.append(f",\n{'  ' * depth}")
        elif letter == ":":
            out.append(": ")
        elif not letter.isspace():
            out.append(letter)
            in_string = letter == '"'
    return "".join(out)


def _is_empty(text: str, place: int) -> bool:
    rest = text[place + 1 : place + 200].lstrip()
    return rest[:1] in ("}", "]")


class Folded(NamedTuple):
    """A completion in three parts; the middle is folded and empty for a short one."""

    head: list[Segment]
    middle: list[Segment]
    tail: list[Segment]
    hidden: int


def folded(text: str, found: Sequence[Segment], keep: int | None = None) -> Folded:
    """Fold the middle of a long completion, at line ends, never inside a formula.

    Args:
        text: The completion.
        found: Its segments.
        keep: A position that must stay in sight, such as the answer that was read.
    """
    if len(text) < FOLD_FROM:
        return Folded(list(found), [], [], 0)
    first = _line_end(text, HEAD_CHARACTERS)
    last = max(first, _line_start(text, len(text) - TAIL_CHARACTERS))
    if keep is not None and first <= keep < last:
        last = max(first, _line_start(text, keep - 400))
    head, rest = _split(found, first)
    middle, tail = _split(rest, last)
    return Folded(head, middle, tail, sum(one.end - one.start for one in middle))


def _line_end(text: str, place: int) -> int:
    found = text.find("\n", place, place + 500)
    return place if found < 0 else found + 1


def _line_start(text: str, place: int) -> int:
    found = text.rfind("\n", max(0, place - 500), max(0, place))
    return max(0, place) if found < 0 else found + 1


def _split(found: Sequence[Segment], place: int) -> tuple[list[Segment], list[Segment]]:
    before = [one for one in found if one.end <= place]
    after = [one for one in found if one.start >= place]
    for one in found:
        if one.start < place < one.end:
            if one.kind in ("math", "display", "json"):
                before.append(one)
            else:
                before.append(one._replace(end=place))
                after.insert(0, one._replace(start=place))
    return before, after


MOST_MARKS = 50
NEAR_MARK = 40
"""Characters within which an answer follows its box, tag or phrase."""
_ANSWER_PLACE = re.compile(r"\\boxed\s?\{|<answer>|####|answer is|answer:", re.IGNORECASE)


def answer_place(text: str, extracted: str | None) -> tuple[int, int] | None:
    """Return where the answer that the reward read stands in the text; None when it is not there literally.

    The last whole occurrence counts, one that follows a box or an answer tag before any other.
    """
    wanted = (extracted or "").strip()
    if not wanted or len(wanted) > 20_000:
        return None
    before = r"(?<![\w.])" if wanted[0].isalnum() else ""
    after = r"(?!\w)" if wanted[-1].isalnum() else ""
    whole = [found.span() for found in re.finditer(before + re.escape(wanted) + after, text)]
    if not whole:
        place = text.rfind(wanted)
        return None if place < 0 else (place, place + len(wanted))
    marks = [found.end() for found in _ANSWER_PLACE.finditer(text)]
    for mark in reversed(marks[-MOST_MARKS:]):
        named = next((span for span in whole if 0 <= span[0] - mark <= NEAR_MARK), None)
        if named is not None:
            return named
    return whole[-1]
