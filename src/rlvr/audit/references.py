"""The gold answer of a row: what kind it is, other texts of the same value, near misses, and wrong answers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, NamedTuple

from rlvr.audit.rows import TEST_NAMES, AuditRow

Kind = Literal["number", "fraction", "choice", "boolean", "latex", "json", "code", "text", "list", "none"]

_NUMBER = re.compile(r"[-+]?\$?\s?(\d[\d,]*\.?\d*|\.\d+)\s?%?")
_PLAIN = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)")
_FRACTION = re.compile(r"([-+]?\d+)\s*/\s*(\d+)")
_LATEX_FRACTION = re.compile(r"(-?)\\[dt]?frac\{(\d+)\}\{(\d+)\}")
_BOOLEANS = {"yes": "no", "no": "yes", "true": "false", "false": "true"}
_FILLER_WORDS = ("zanzibar", "quixotic lantern", "obsidian")


class Variant(NamedTuple):
    """Another text for an answer.

    Attributes:
        text: The text.
        label: What was done to the gold text.
        weight: Severity that a finding about it has.
    """

    text: str
    label: str
    weight: str


@dataclass(frozen=True)
class Gold:
    """The reference of one row as an answer.

    Attributes:
        kind: What it is.
        text: The answer as a model would write it, without any wrapping.
        candidates: Texts that may be what the reward wants, most likely first.
        value: The column's own value.
        wrong: Answers of the same kind that are plainly wrong.
    """

    kind: Kind
    text: str
    candidates: tuple[str, ...]
    value: Any
    wrong: tuple[str, ...]


def read_golds(rows: Sequence[AuditRow], column: str) -> list[Gold]:
    """Return the gold answer of every row; kind ``none`` where the row has no reference."""
    values = [row.columns.get(column) if column else None for row in rows]
    if column in TEST_NAMES or any(looks_like_tests(value) for value in values):
        return [Gold("code", "", (), value, ()) for value in values]
    texts = [answer_text(value) for value in values]
    kind = _common_kind(values, texts)
    return [_gold(kind, index, value, texts) for index, value in enumerate(values)]


def _gold(kind: Kind, index: int, value: Any, texts: Sequence[str]) -> Gold:
    text = texts[index]
    if not text:
        return Gold("none", "", (), value, ())
    own = kind_of(value, text) if kind not in ("choice", "list") else kind
    candidates = dict.fromkeys([text, *_other_candidates(value)])
    return Gold(own, text, tuple(candidates), value, tuple(wrong_answers(own, text, texts, value)))


def looks_like_tests(value: Any) -> bool:
    """Whether a reference is a set of tests for a program."""
    if isinstance(value, str):
        return bool(re.search(r"^\s*assert |def check\(|\bself\.assert|def test_", value, re.MULTILINE)) or (
            '"inputs"' in value and '"outputs"' in value
        )
    if isinstance(value, Mapping):
        return bool({"inputs", "input"} & set(value)) and bool({"outputs", "output", "expected"} & set(value))
    if isinstance(value, Sequence) and value and not isinstance(value, str):
        first = value[0]
        if isinstance(first, str):
            return looks_like_tests(first)
        if isinstance(first, Mapping):
            keys = set(first)
            return bool(keys & {"input", "args", "inputs", "stdin"}) and bool(
                keys & {"output", "expected", "expect", "outputs", "stdout", "result"}
            )
        return isinstance(first, Sequence) and len(first) == 2 and isinstance(first[0], list | tuple)
    return False


def answer_text(value: Any) -> str:
    """Return the final answer in a reference: after ``####``, in the last box or answer tag, or the whole."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple) and value and all(isinstance(one, str | int | float) for one in value):
        return str(value[0])
    if isinstance(value, list | tuple | dict):
        return json.dumps(value, ensure_ascii=False, default=str) if value else ""
    text = str(value).strip()
    if "####" in text:
        return text.rsplit("####", 1)[1].strip()
    tagged = re.findall(r"<answer>(.*?)</answer>", text, re.DOTALL)
    if tagged:
        return str(tagged[-1]).strip()
    return last_box(text) or text


def last_box(text: str) -> str:
    r"""Return the content of the last complete ``\boxed{…}``, or an empty string."""
    start = text.rfind("\\boxed{")
    if start < 0:
        return ""
    depth = 0
    for place in range(start + 6, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return text[start + 7 : place].strip()
    return ""


def _other_candidates(value: Any) -> list[str]:
    found = []
    if isinstance(value, list | tuple):
        found += [str(one) for one in value if isinstance(one, str | int | float)]
        found.append(", ".join(str(one) for one in value))
        found.append(json.dumps(value, ensure_ascii=False, default=str))
    elif isinstance(value, dict):
        found.append(json.dumps(value, ensure_ascii=False, default=str))
        found += [str(one) for one in value.values() if isinstance(one, str | int | float)][:3]
    elif isinstance(value, bool):
        found += [str(value), "yes" if value else "no"]
    elif isinstance(value, str):
        found.append(value)
        found.append(value.strip().lower())
        plain = value.replace(",", "").replace("$", "").strip()
        found.append(plain)
        found.append(value.strip().strip("$").strip("()"))
    return [one for one in found if one.strip()]


def kind_of(value: Any, text: str) -> Kind:
    """Return what kind of answer a reference is."""
    if isinstance(value, bool) or text.lower() in _BOOLEANS:
        return "boolean"
    if isinstance(value, dict) or (text[:1] in "{[" and _json(text) is not None):
        return "json"
    if isinstance(value, list | tuple) and len(value) > 1:
        return "list"
    if _NUMBER.fullmatch(text):
        return "number"
    if _FRACTION.fullmatch(text) or _LATEX_FRACTION.fullmatch(text):
        return "fraction"
    if re.fullmatch(r"\(?[A-J]\)?\.?", text):
        return "choice"
    if "\\" in text or re.search(r"[a-z0-9)]\^|\bsqrt\b", text):
        return "latex"
    return "text"


def _common_kind(values: Sequence[Any], texts: Sequence[str]) -> Kind:
    kinds = [kind_of(value, text) for value, text in zip(values, texts, strict=True) if text]
    return max(set(kinds), key=kinds.count) if kinds else "none"


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def number_of(text: str) -> Fraction | None:
    """Return the exact value of a plain number, a fraction or a simple LaTeX fraction; None for others."""
    plain = text.replace(",", "").replace("$", "").replace("%", "").replace(" ", "").lstrip("+")
    if _PLAIN.fullmatch(plain):
        return Fraction(plain if not plain.endswith(".") else plain[:-1])
    match = _FRACTION.fullmatch(text.strip())
    if match and int(match[2]):
        return Fraction(int(match[1]), int(match[2]))
    match = _LATEX_FRACTION.fullmatch(text.strip())
    if match and int(match[3]):
        return Fraction(int(match[1] + match[2]), int(match[3]))
    return None


def plain_number(value: Fraction) -> str:
    """Return a value as digits: an integer, a terminating decimal, or six digits of it."""
    if value.denominator == 1:
        return str(value.numerator)
    text = f"{float(value):.12f}".rstrip("0")
    return text if Fraction(text) == value else f"{float(value):.6g}"


def wrong_answers(kind: Kind, text: str, texts: Sequence[str], value: Any) -> list[str]:
    """Return answers of the same kind that are plainly wrong, far from the gold text."""
    number = number_of(text)
    if kind == "number" and number is not None:
        far = abs(number) * 3 + 1000
        return [plain_number(far + 7), plain_number(-far - 13), plain_number(far * 2 + 77)]
    if kind == "fraction":
        return ["977/13", "-451/17", "1013/29"]
    if kind == "boolean":
        other = _BOOLEANS.get(text.lower(), "no")
        return [other.capitalize() if text[:1].isupper() else other]
    if kind == "choice":
        core = text.strip("().")
        seen = sorted({one.strip("().") for one in texts if one} | set("ABCD"))
        return [text.replace(core, letter) for letter in seen if letter != core][:4]
    if kind == "latex":
        return ["\\frac{977}{13}", "\\sqrt{1013}", "977"]
    if kind == "json":
        return [json.dumps(changed_json(_json(text))), '{"wrong": true}']
    others = [one for one in dict.fromkeys(texts) if one and not _overlap(one, text, value)]
    return [*others[:3], *_FILLER_WORDS]


def _overlap(one: str, text: str, value: Any) -> bool:
    accepted = [str(entry) for entry in value] if isinstance(value, list | tuple) else [text]
    words = {word for entry in accepted for word in entry.lower().split()}
    return bool(words & set(one.lower().split())) or any(
        one.lower() in entry.lower() or entry.lower() in one.lower() for entry in accepted
    )


def changed_json(value: Any) -> Any:
    """Return a JSON value of the same shape in which every leaf is different."""
    if isinstance(value, dict):
        return {key: changed_json(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [changed_json(entry) for entry in value]
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value * 3 + 1007
    return "zanzibar" if isinstance(value, str) else 7


def equivalents(gold: Gold) -> list[Variant]:
    """Return texts of the same value; each refused one is a false fail, weighted by how plain the case is."""
    text, number = gold.text, number_of(gold.text)
    found: list[Variant] = []
    if gold.kind == "number" and number is not None:
        found += _number_forms(text, number)
    elif gold.kind == "fraction" and number is not None:
        found += _fraction_forms(text, number)
    elif gold.kind == "latex":
        found += _latex_forms(text)
    elif gold.kind in ("text", "boolean"):
        found.append(Variant(text.upper() if text != text.upper() else text.lower(), "other case", "info"))
    return [one for one in found if one.text != text]


def _number_forms(text: str, number: Fraction) -> list[Variant]:
    if re.match(r"[-+]?0\d", text):  # digits with leading zeros are a code, not a quantity
        return []
    plain = plain_number(number)
    found = [Variant(plain, "without separators or signs of currency", "medium")] if "%" not in text else []
    if number.denominator == 1 and abs(number) >= 1000:
        found.append(Variant(f"{number.numerator:,}", "with thousands separators", "info"))
    if "." in text and "%" not in text:
        found.append(Variant(text + "0", "with a trailing zero", "medium"))
        found.append(Variant(plain, "without trailing zeros", "medium"))
        if text.startswith(("0.", "-0.")):
            found.append(Variant(text.replace("0.", ".", 1), "without the leading zero", "info"))
    elif "%" not in text and "$" not in text:
        found.append(Variant(text + ".0", "as a decimal", "info"))
    return found


def _fraction_forms(text: str, number: Fraction) -> list[Variant]:
    top, bottom = number.numerator, number.denominator
    sign = "-" if top < 0 else ""
    found = [
        Variant(f"{top}/{bottom}", "as a/b", "medium"),
        Variant(f"{sign}\\frac{{{abs(top)}}}{{{bottom}}}", "as \\frac", "medium"),
        Variant(f"{sign}\\dfrac{{{abs(top)}}}{{{bottom}}}", "as \\dfrac", "medium"),
    ]
    decimal = f"{float(number):.10f}".rstrip("0")
    if Fraction(decimal) == number:
        found.append(Variant(decimal, "as a decimal", "medium"))
    return found


def _latex_forms(text: str) -> list[Variant]:
    found = []
    if "\\frac" in text:
        found.append(Variant(text.replace("\\frac", "\\dfrac"), "\\dfrac for \\frac", "medium"))
    spaced = re.sub(r"(?<=[\w})])([-+=])(?=[\w\\{(])", r" \1 ", text)
    if spaced != text:
        found.append(Variant(spaced, "spaces round operators", "medium"))
    if "\\left" not in text and "(" in text and ")" in text:
        found.append(
            Variant(text.replace("(", "\\left(").replace(")", "\\right)"), "\\left( \\right)", "info")
        )
    return found


def near_misses(gold: Gold) -> list[Variant]:
    """Return answers close to the gold text that are nevertheless wrong."""
    text, number = gold.text, number_of(gold.text)
    if gold.kind in ("number", "fraction") and number is not None:
        return _near_numbers(text, number)
    if gold.kind in ("text", "list"):
        return _near_texts(text)
    if gold.kind == "latex":
        return [Variant(text + "+1", "one more", "high"), Variant("-" + text, "other sign", "high")]
    return []


def _near_numbers(text: str, number: Fraction) -> list[Variant]:
    found: list[Variant] = []
    if number.denominator == 1:
        weight = "high" if abs(number) <= 1000 else "medium"
        if abs(number) <= 100_000:
            found.append(Variant(plain_number(number + 1), "off by one", weight))
            found.append(Variant(plain_number(number - 1), "off by one below", weight))
        found.append(Variant(plain_number(number + Fraction(2, 5)), "a fraction more", "high"))
        found.append(Variant(plain_number(number + Fraction(9, 10)), "nearly the next integer", "high"))
    else:
        found.append(Variant(plain_number(Fraction(int(number))), "integer part only", "high"))
        digits = len(text.partition(".")[2]) if "." in text else 2
        step = max(Fraction(1, 10 ** max(digits - 1, 0)), abs(number) / 20)
        found.append(Variant(plain_number(number + step), "5% or one digit off", "high"))
    if number != 0:
        found.append(Variant(plain_number(-number), "other sign", "high"))
        if abs(number) <= 100_000:
            found.append(Variant(plain_number(number + number / 20), "5% more", "high"))
            found.append(Variant(plain_number(number * 10), "ten times", "high"))
            found.append(Variant(plain_number(number * 100), "a hundred times", "high"))
    return [one for one in found if number_of(one.text) != number]


def _near_texts(text: str) -> list[Variant]:
    found = [
        Variant(text + "ville", "a longer word that begins with it", "high"),
        Variant("un" + text, "a longer word that ends with it", "high"),
    ]
    if len(text) > 3:
        found.append(Variant(text[: max(2, len(text) // 2)], "its first half", "high"))
        found.append(Variant(text[:1], "its first letter", "high"))
        found.append(Variant(text[:-2] + text[-1] + text[-2], "two letters swapped", "medium"))
    words = text.split()
    if len(words) > 1:
        found.append(Variant(" ".join(reversed(words)), "words reversed", "medium"))
        found.append(Variant(words[0], "its first word", "medium"))
    return [one for one in found if one.text.strip().lower() != text.strip().lower()]
