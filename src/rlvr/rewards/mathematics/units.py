"""Units behind a number: one spelling each, and exact factors between those of one kind.

A unit that only one side names is ignored; two different units are never equal unless one converts into the
other.
"""

from __future__ import annotations

import re
from fractions import Fraction

_KINDS: dict[str, dict[str, str]] = {
    "length": {
        "mm": "1/1000 millimeter millimetre", "cm": "1/100 centimeter centimetre", "dm": "1/10 decimeter decimetre",
        "m": "1 meter metre", "km": "1000 kilometer kilometre", "in": "127/5000 inch inches",
        "ft": "381/1250 foot feet", "yd": "1143/1250 yard", "mi": "201168/125 mile",
    },
    "mass": {
        "mg": "1/1000000 milligram", "g": "1/1000 gram", "kg": "1 kilogram", "t": "1000 tonne",
        "lb": "45359237/100000000 lbs", "oz": "45359237/1600000000 ounce",
    },
    "time": {
        "ms": "1/1000 millisecond", "s": "1 sec second", "min": "60 minute mins", "h": "3600 hr hour hrs",
        "day": "86400", "week": "604800",
    },
    "volume": {"ml": "1/1000 milliliter millilitre", "l": "1 liter litre"},
    "angle": {"degree": "1 deg"},
    "money": {"dollar": "1 usd buck", "cent": "1/100 ¢"},
    "percent": {"percent": "1 % pct percentage"},
}  # fmt: skip

_PLAIN = {
    "euro": "eur euros", "pound": "gbp pounds", "yen": "jpy", "rupee": "inr rs", "radian": "rad", "month": "",
    "year": "yr", "unit": "units", "mph": "", "km/h": "kmh kph",
}  # fmt: skip


def _table() -> dict[str, tuple[str, Fraction]]:
    table: dict[str, tuple[str, Fraction]] = {}
    for kind, units in _KINDS.items():
        for name, line in units.items():
            factor, *others = line.split()
            for spelling in (name, *others):
                table[spelling] = (kind, Fraction(factor))
    for name, others_line in _PLAIN.items():
        for spelling in (name, *others_line.split()):
            table[spelling] = (name, Fraction(1))
    return table


_TABLE = _table()
_NOT_UNIT_WORDS = (
    "or and not if then no is are was were be to than except but wrong false true either neither unless maybe the "
    "answer because since so also both none all only with without where when for from x y z"
)
_NOT_UNITS = frozenset(_NOT_UNIT_WORDS.split())
_WORD = re.compile(r"[A-Za-zÀ-ÿµ%¢/.²³-]+(?:\^?\{?-?\d\}?)?")


def is_unit(words: str) -> bool:
    """Return whether ``words`` can stand behind a number as its unit: one to four plain words."""
    parts = words.replace("(", " ").replace(")", " ").split()
    if not 1 <= len(parts) <= 4:
        return False
    return all(_WORD.fullmatch(part) and part.lower().strip(".") not in _NOT_UNITS for part in parts)


def canonical(words: str) -> tuple[str, Fraction]:
    """Return (kind, factor) of a unit; an unknown one is a kind of its own, in the singular."""
    text = re.sub(r"[{}\s]", "", words.replace("(", " ").replace(")", " ").strip().lower()).replace("^", "")
    text = text.strip(".")
    text = re.sub(r"^(?:square|sq\.?)(.+)$", r"\g<1>2", text)
    text = re.sub(r"^(?:cubic|cu\.?)(.+)$", r"\g<1>3", text)
    body, power = (text[:-1], int(text[-1])) if text[-1:] in ("2", "3") else (text, 1)
    found = _TABLE.get(body) or _TABLE.get(body.removesuffix("s")) or _TABLE.get(body.removesuffix("es"))
    if found:
        return (found[0] if power == 1 else f"{found[0]}^{power}", found[1] ** power)
    return (_singular(body) + (str(power) if power > 1 else ""), Fraction(1))


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word


_AMBIGUOUS = frozenset("tl")


def is_known(words: str, *, spaced: bool) -> bool:
    """Return whether plain letters behind a number are a unit of the table rather than variables."""
    parts = re.sub(r"\s*(?:\^\{?\d\}?)", "", words).replace("/", " ").split()
    if not parts or not all(_in_table(part) for part in parts):
        return False
    return len(parts[0]) > 1 or (spaced and parts[0] not in _AMBIGUOUS)


def _in_table(word: str) -> bool:
    word = word.lower().rstrip(".")
    return word in _TABLE or (len(word) > 3 and word.removesuffix("s") in _TABLE)


def factor(gold: str, answer: str) -> Fraction | None:
    """Return by what the answer's number is multiplied to be in the gold's unit; None when they are unlike."""
    if not gold or not answer:
        return Fraction(1)
    (gold_kind, gold_factor), (kind, answer_factor) = canonical(gold), canonical(answer)
    return answer_factor / gold_factor if kind == gold_kind else None
