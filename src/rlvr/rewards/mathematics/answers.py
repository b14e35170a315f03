"""What an answer is: a value, a text, a sequence, a set of reals, a relation, a ratio or a time of day."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

from rlvr.rewards.mathematics.brackets import closes_at_end, levels, split
from rlvr.rewards.mathematics.surface import LONGEST, surface
from rlvr.rewards.mathematics.syntax import Node, NotReadable, parse
from rlvr.rewards.mathematics.units import canonical, is_known, is_unit


@dataclass(frozen=True, slots=True)
class Value:
    """A number or an expression, with the unit that stood beside it and whether it is a percentage."""

    node: Node
    unit: str = ""
    percent: bool = False


@dataclass(frozen=True, slots=True)
class Text:
    """Words; compared without case, articles and final punctuation."""

    key: str


@dataclass(frozen=True, slots=True)
class Choice:
    """A letter of a multiple choice, with what stood behind it."""

    letter: str
    rest: str = ""


@dataclass(frozen=True, slots=True)
class Sequence:
    """Several answers: in brackets (ordered), in set braces, or bare (then in any order).

    ``brackets`` is two characters, ``"{}"`` for a set and ``""`` for a bare list.
    """

    brackets: str
    items: tuple[Answer, ...]


@dataclass(frozen=True, slots=True)
class Relation:
    """A chain such as ``x = 5`` or ``0 < x ≤ 2``: one more side than signs."""

    signs: tuple[str, ...]
    sides: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Union:
    """Sets joined by ``∪``, ``∩`` or ``∖``, as written."""

    signs: tuple[str, ...]
    parts: tuple[Answer, ...]


@dataclass(frozen=True, slots=True)
class Matrix:
    """Rows of expressions."""

    rows: tuple[tuple[Answer, ...], ...]


@dataclass(frozen=True, slots=True)
class Ratio:
    """``a:b`` or ``a:b:c``; ``time`` when it can also be a time of day (minutes in two digits)."""

    parts: tuple[Answer, ...]
    time: str = ""


@dataclass(frozen=True, slots=True)
class Unread:
    """A text that only a computer algebra system may read."""

    text: str


Answer: TypeAlias = Value | Text | Choice | Sequence | Relation | Union | Matrix | Ratio | Unread

_PLAIN = re.compile(r"-?\d{1,40}(?:\.\d{1,40})?")
_FINAL = re.compile(r"(?:(?<!\.)\.|[,;:])\s*\Z")
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(?:[, ]\d{3})+(?:\.\d+)?")
_AMBIGUOUS = re.compile(r"\d{1,3}(?:,\d{3})+")
_CHOICE = re.compile(
    r"(?:(?:\\text\{)?\s*(?:option|choice|answer)\s*)?\(?\s*([A-Za-z])\s*(?:\)|\.|:)\s*(?P<rest>.*)",
    re.IGNORECASE,
)
_OPTION = re.compile(r"(?:option|choice|answer)\s+\(?([A-Z])\)?", re.IGNORECASE)
_SECOND_LETTER = re.compile(r"\(?[A-Z]\)|[A-Z](?![A-Za-z])\s*(?:[.,)]|\Z)")
_TIME = re.compile(r"(\d{1,2}):([0-5]\d)(?:\s*(?:\\text\{)?\s*([ap])\.?\s*m\.?\s*\}?)?", re.IGNORECASE)
_MATRIX = re.compile(r"\\begin\{([pbvBV]?matrix|array|smallmatrix)\}(?:\{[^{}]*\})?(.*)\\end\{\1\}")
_TEXT_COMMAND = re.compile(r"\\text\{([^{}]*)\}")
_CONNECTOR = re.compile(r"\\text\{\s*(?:,\s*)?(or|and)\s*\}|(?<![A-Za-z\\])(or|and)(?![A-Za-z])")
_REVERSED = re.compile(r"\][^\[\]]*[\[\]]|\[[^\[\]]*\[")
_TO = re.compile(r"(?<=\d)\s*(?:\\text\{\s*to\s*\}|(?<=\s)to(?=\s))\s*(?=\d)")
_SIGNS = re.compile(r"[=<>≤≥≠≈∈]")
_UNIT_TAIL = re.compile(
    r"(?P<number>.*?[\d)}πa-zA-Z])\s*(?P<unit>(?:\\text\{[^{}]*\}|/|\s|\^\{?[23]\}?)*\\text\{[^{}]*\}(?:\s*\^\{?-?\d\}?)?)\s*\Z"
)
_BARE_UNIT = re.compile(
    r"(?P<number>.*[\d)}π])(?P<space>\s*)(?P<unit>[A-Za-zµ¢][A-Za-zµ./² ³]*(?:\s*\^\{?\d\}?)?)\s*\Z"
)
_MONEY_HEAD = re.compile(
    r"(?P<sign>[-+]?)\s*\\text\{(?P<unit>dollar|euro|pound|yen|rupee)\}\s*(?P<number>.+)\Z"
)
_BASE = re.compile(
    r"(?P<digits>[0-9A-Fa-f]+)_\{?(?:\\text\{)?(?P<base>\d{1,2}|two|three|eight|ten|sixteen)\}?\}?\Z"
)
_TRIGONOMETRY = re.compile(r"\\?(?:sin|cos|tan|cot|sec|csc)")
_COMPOUND_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)")
_COMPOUND = re.compile(r"\s*(?:\d+(?:\.\d+)?\s*[A-Za-z]+\s*){2,4}")
_CASES = re.compile(r"\\begin\{(?:cases|aligned|array)\}(?:\{[^{}]*\})?(.*)\\end\{(?:cases|aligned|array)\}")
_PROSE_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{3,}(?![A-Za-z])")
_WORDS_ONLY = re.compile(r"[A-Za-zÀ-ÿ][A-Za-zÀ-ÿ'\- .,]*")
_PERCENT = re.compile(
    r"(.*?)\s*(?:%|\\text\{\s*(?:percent|pct|percentage|per cent)\s*\}|(?<![A-Za-z])(?:percent|pct|percentage))\s*\Z",
    re.IGNORECASE,
)


def read(text: str) -> Answer:
    """Read the text of one answer; never raises, what cannot be read is :class:`Text` or :class:`Unread`."""
    text = text.strip()
    return _read_once(text) if len(text) < 2 * LONGEST else Text("")


@lru_cache(maxsize=8192)
def _read_once(text: str) -> Answer:
    if _PLAIN.fullmatch(text):
        return (
            Value(("num", Fraction(text))) if text[0] != "-" else Value(("neg", ("num", Fraction(text[1:]))))
        )
    return _read(trimmed(surface(text)), 0)


def trimmed(text: str) -> str:
    """Return canonical text without outer braces, quotes, stars and final punctuation."""
    while True:
        before = text
        text = text.strip().strip("*\"'").strip()
        if len(text) > 1 and not text.endswith("…"):
            text = _FINAL.sub("", text)
        if text.startswith("{") and text.endswith("}") and closes_at_end(text):
            text = text[1:-1]
        text = text.removesuffix("\\\\")
        if text == before:
            return text


def _read(text: str, depth: int) -> Answer:
    if depth > 8 or not text:
        return Unread(text) if text else Text("")
    if _THOUSANDS.fullmatch(text):
        return _value(text)
    system = _CASES.fullmatch(text)
    if system and "=" in text:
        text = ", ".join(
            row.replace("&", "").strip(" ,") for row in system.group(1).split("\\\\") if row.strip()
        )
    if _REVERSED.fullmatch(text):
        text = ("(" if text[0] == "]" else "[") + text[1:-1] + (")" if text[-1] == "[" else "]")
    for reader in (
        _read_choice,
        _read_matrix,
        _read_time,
        _read_list,
        _read_union,
        _read_relation,
        _read_brackets,
        _read_ratio,
    ):
        found = reader(text, depth)
        if found is not None:
            return found
    return _value(text)


def _read_choice(text: str, depth: int) -> Answer | None:
    plain = _TEXT_COMMAND.sub(lambda found: found.group(1), text).strip()
    if (
        len(plain.strip("(). :")) == 1
        and plain.strip("(). :").isalpha()
        and (plain[0] == "(" or len(plain) <= 2)
    ):
        return Choice(plain.strip("(). :").upper()) if plain != plain.lower() or len(plain) > 1 else None
    option = _OPTION.fullmatch(plain)
    if option:
        return Choice(option.group(1).upper())
    found = _CHOICE.fullmatch(plain)
    if found and _SECOND_LETTER.match(found["rest"]):
        return None
    if (
        found
        and found["rest"]
        and found.group(1).isupper()
        and not found["rest"].startswith(("=", "^"))
        and ":" not in found["rest"]
    ):
        return Choice(found.group(1), found["rest"])
    return None


def _read_matrix(text: str, depth: int) -> Answer | None:
    found = _MATRIX.fullmatch(text)
    if not found:
        return None
    rows = [row for row in re.split(r"\\\\(?:\[[^\]]*\])?", found.group(2)) if row.strip()]
    return Matrix(tuple(tuple(_read(trimmed(cell), depth + 1) for cell in row.split("&")) for row in rows))


def _read_time(text: str, depth: int) -> Answer | None:
    found = _TIME.fullmatch(text)
    if not found or int(found.group(1)) > 24:
        return None
    hour, minute, half = int(found.group(1)), found.group(2), (found.group(3) or "").lower()
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    parts = (_value(found.group(1)), _value(found.group(2)))
    return Ratio(parts, f"{hour}:{minute}" + ("" if half else "?"))


def _read_list(text: str, depth: int) -> Answer | None:
    """Read several answers side by side; words such as *or* and *and* separate like commas."""
    if text.startswith("\\begin"):
        return None
    if ("±" in text or "∓" in text) and not re.search(r"[,;]|\\text|∪|[<>≤≥∈]", text):
        both = [text.replace("±", one).replace("∓", other) for one, other in (("+", "-"), ("-", "+"))]
        return Sequence("", tuple(_read(trimmed(one.lstrip("+")), depth + 1) for one in both))
    parts = split(_CONNECTOR.sub(",", text), ",;", thousands=True)
    if len(parts) < 2:
        return None
    items = [_read(part, depth + 1) for part in map(trimmed, parts) if part]
    if _all_inequalities(items) and "or" not in _connectors(text) and "and" in _connectors(text):
        return Union(("∩",) * (len(items) - 1), tuple(items))
    if len(items) < 2 or any(isinstance(item, Text | Unread) and not _short_text(item) for item in items):
        return None
    return Sequence("", _spread(items))


def _connectors(text: str) -> set[str]:
    return {found.group(1) or found.group(2) for found in _CONNECTOR.finditer(text)}


def _all_inequalities(items: list[Answer]) -> bool:
    return len(items) > 1 and all(
        isinstance(item, Relation) and set(item.signs) <= set("<>≤≥≠") for item in items
    )


def _short_text(item: Text | Unread) -> bool:
    return isinstance(item, Text) and bool(item.key) and len(item.key.split()) <= 3


def _spread(items: list[Answer]) -> tuple[Answer, ...]:
    """Carry ``x = 1, 2`` on: the values behind the first relation belong to its variable."""
    flat: list[Answer] = []
    for item in items:
        inner = item.items if isinstance(item, Sequence) and not item.brackets else (item,)
        flat += inner
    first = flat[0]
    if (
        isinstance(first, Relation)
        and first.signs == ("=",)
        and all(isinstance(one, Value) for one in flat[1:])
    ):
        flat[0] = read(first.sides[1])
    return tuple(flat)


def _read_union(text: str, depth: int) -> Answer | None:
    text = re.sub(r"(?<=[ℝ)\]])\s*-\s*(?=\\\{)", "∖", text)
    parts = split(text, "∪∩∖")
    if len(parts) < 2 or not all(parts):
        return None
    text = re.sub(r"^\s*\w+\s*∈", "", text)
    parts = split(text, "∪∩∖")
    signs, place = [], 0
    for part in parts[:-1]:
        place += len(part)
        signs.append(text[place])
        place += 1
    return Union(tuple(signs), tuple(_read(trimmed(part), depth + 1) for part in parts))


def _read_relation(text: str, depth: int) -> Answer | None:
    if not _SIGNS.search(text):
        return None
    sides = [trimmed(side) for side in split(text, "=<>≤≥≠≈∈")]
    if len(sides) < 2:
        return None
    signs = tuple(one for one, level in levels(text) if level == 0 and one in "=<>≤≥≠≈∈")
    if not sides[0] and len(sides) == 2 and signs[0] in "=≈":
        return _read(sides[1], depth + 1)
    if not all(sides):
        return Unread(text)
    if signs == ("∈",):
        return _read(sides[1], depth + 1)
    return Relation(signs, tuple(sides))


def _read_brackets(text: str, depth: int) -> Answer | None:
    if text in ("∅", r"\{\}", r"\{ \}"):
        return Sequence("{}", ())
    if text.startswith(r"\{") and text.endswith(r"\}"):
        return _set(text[2:-2], depth)
    if text[0] not in "([" or text[-1] not in ")]" or not closes_at_end(text, mixed=True):
        return None
    parts = split(text[1:-1], ",;")
    if len(parts) < 2:
        return (
            _read(trimmed(text[1:-1]), depth + 1)
            if text[0] == "(" and text[-1] == ")"
            else _single(text, depth)
        )
    return Sequence(text[0] + text[-1], tuple(_read(trimmed(part), depth + 1) for part in parts))


def _single(text: str, depth: int) -> Answer | None:
    """Read ``[5]``: a list of one."""
    inside = _read(trimmed(text[1:-1]), depth + 1)
    return (
        Sequence("[]", (inside,))
        if isinstance(inside, Value) and text[0] == "[" and text[-1] == "]"
        else None
    )


def _set(inside: str, depth: int) -> Answer | None:
    if not inside.strip():
        return Sequence("{}", ())
    builder = re.fullmatch(r"\s*\w+\s*(?:∈\s*ℝ\s*)?(?:\||:|\\mid)\s*(.+)", inside)
    if builder:
        return _read(trimmed(builder.group(1)), depth + 1)
    parts = split(_CONNECTOR.sub(",", inside), ",;")
    return Sequence("{}", tuple(_read(trimmed(part), depth + 1) for part in parts if part.strip()))


def _read_ratio(text: str, depth: int) -> Answer | None:
    text = _TO.sub(":", text)
    if ":" not in text:
        return None
    parts = split(text, ":")
    if not 2 <= len(parts) <= 6 or not all(part.strip() for part in parts):
        return None
    items = tuple(_value(trimmed(part)) for part in parts)
    return Ratio(items) if all(isinstance(item, Value) for item in items) else None


def _value(text: str) -> Answer:
    """Read an expression with the percent sign, unit or currency around it; otherwise a text."""
    if text.endswith("°") and not _TRIGONOMETRY.search(text):
        return _quantity(text[:-1], "degree") or _as_text(text)
    percent = _PERCENT.fullmatch(text)
    if percent and percent.group(1):
        inner = _value(trimmed(percent.group(1)))
        return Value(inner.node, "", True) if isinstance(inner, Value) and not inner.unit else _as_text(text)
    based = _BASE.fullmatch(text)
    if based and not based["digits"].isalpha():
        base = {"two": "2", "three": "3", "eight": "8", "ten": "10", "sixteen": "16"}.get(
            based["base"], based["base"]
        )
        return Value(("base", based["digits"].lstrip("0").upper() or "0"), f"base{base}")
    money = _MONEY_HEAD.fullmatch(text)
    if money:
        inner = _value(trimmed(money["sign"] + money["number"]))
        if isinstance(inner, Value) and (
            not inner.unit or inner.unit.strip().lower() in ("million", "billion")
        ):
            return Value(inner.node, money["unit"] + inner.unit)
    several = _several_units(text)
    if several:
        return several
    if not (_WORDS_ONLY.fullmatch(text) and sum(one.isalpha() for one in text) > 1):
        bare = _bare_unit(text, known=True)
        if bare:
            return bare
        try:
            return Value(parse(text))
        except (NotReadable, ValueError, RecursionError):
            pass
    return _text_unit(text) or _bare_unit(text, known=False) or _as_text(text)


def _several_units(text: str) -> Value | None:
    """Read ``2 hours 30 minutes`` as one quantity in the first unit."""
    plain = _TEXT_COMMAND.sub(lambda found: f" {found.group(1)} ", text)
    if not _COMPOUND.fullmatch(plain):
        return None
    parts = [(Fraction(number), canonical(unit), unit) for number, unit in _COMPOUND_PART.findall(plain)]
    if len({kind for _, (kind, _), _ in parts}) > 1 or not all(
        is_known(unit, spaced=True) for _, _, unit in parts
    ):
        return None
    total = sum((number * factor for number, (_, factor), _ in parts), Fraction(0))
    return Value(("num", total / parts[0][1][1]), parts[0][2])


def _text_unit(text: str) -> Value | None:
    r"""Read ``15\text{ cm}^2``: words in a text command behind a number."""
    found = _UNIT_TAIL.fullmatch(text)
    if not found:
        return None
    unit = re.sub(
        r"\s+\^", "^", _TEXT_COMMAND.sub(lambda inner: f" {inner.group(1).strip()} ", found["unit"])
    )
    return _quantity(found["number"], unit.strip()) if is_unit(unit) else None


def _bare_unit(text: str, *, known: bool) -> Value | None:
    """Read ``15 cm`` and ``15 apples``: plain words behind a number."""
    found = _BARE_UNIT.fullmatch(text)
    if not found or not is_unit(found["unit"]):
        return None
    if known and not is_known(found["unit"], spaced=bool(found["space"])):
        return None
    return _quantity(found["number"], found["unit"].strip())


def _quantity(number: str, unit: str) -> Value | None:
    inner = _value(trimmed(number))
    if not isinstance(inner, Value):
        return None
    return Value(inner.node, f"{inner.unit} {unit}".strip(), inner.percent)


def _as_text(text: str) -> Answer:
    plain = _TEXT_COMMAND.sub(lambda found: f" {found.group(1)} ", text)
    if ("\\" in plain or "^" in plain) and len(_PROSE_WORD.findall(plain)) < 4:
        return Unread(text)
    return Text(text_key(plain))


def text_key(text: str) -> str:
    """Return words as they are compared: case folded, one space, no article, no punctuation around."""
    words = re.sub(r"\s+", " ", text.casefold()).strip(" .,;:!?\"'()[]{}*")
    return re.sub(r"^(?:the|an|a) (?=\S)", "", words)


def readings(text: str) -> tuple[Answer, ...]:
    """Return every way to read an answer: ``100,200`` is a number, and a list where the gold is one."""
    first = read(text)
    spelled = trimmed(surface(text))
    if isinstance(first, Value) and _AMBIGUOUS.fullmatch(spelled):
        return first, Sequence("", tuple(_value(part) for part in spelled.split(",")))
    if isinstance(first, Value) and first.unit and not first.percent:
        with contextlib.suppress(NotReadable, ValueError, RecursionError):
            return first, Value(parse(spelled))
    return (first,)
