r"""One canonical spelling: LaTeX synonyms, Unicode signs, spacing commands and styles, written in one way.

The canonical form keeps ``\frac``, ``\sqrt``, ``\text{…}``, functions, Greek letters and environments;
everything that only changes how an answer looks is gone.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

LONGEST = 1500
"""Characters beyond which a text is no answer."""

_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ", "0123456789+-n")
_SUBSCRIPTS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
_SUPERSCRIPT_RUN = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ]+")
_SUBSCRIPT_RUN = re.compile("[₀₁₂₃₄₅₆₇₈₉]+")
_VULGAR = re.compile("[¼½¾⅐-⅞]")

_SIGNS = {
    "−": "-", "–": "-", "—": "-", "‐": "-", "‑": "-", "﹣": "-", "－": "-",
    "×": r"\times ", "⋅": r"\cdot ", "·": r"\cdot ", "∙": r"\cdot ", "∗": "*", "÷": "/", "⁄": "/", "∕": "/",
    "≤": r"\le ", "⩽": r"\le ", "≥": r"\ge ", "⩾": r"\ge ", "≠": r"\ne ", "≈": r"\approx ", "≡": r"\equiv ",
    "∞": r"\infty ", "π": r"\pi ", "𝜋": r"\pi ", "√": r"\sqrt ", "±": r"\pm ", "∓": r"\mp ",
    "∪": r"\cup ", "∩": r"\cap ", "∈": r"\in ", "∅": r"\emptyset ", "∖": r"\setminus ", "ℝ": r"\mathbb{R}",
    "°": r"\degree ", "º": r"\degree ", "′": "'", "’": "'", "…": r"\ldots ", "θ": r"\theta ", "α": r"\alpha ",
    "β": r"\beta ", "λ": r"\lambda ", "μ": r"\mu ", "φ": r"\phi ", "∨": r"\text{ or }", "∧": r"\text{ and }",
    "⟨": r"\langle ", "⟩": r"\rangle ", "∶": ":", "€": r"\text{euro}", "£": r"\text{pound}", "¥": r"\text{yen}",
    "₹": r"\text{rupee}",
}  # fmt: skip
_SIGN = re.compile("|".join(map(re.escape, _SIGNS)))

_SPELLINGS = (
    (r"\\(?:dfrac|tfrac|cfrac|nicefrac|sfrac)(?![a-zA-Z])", r"\\frac"),
    (r"\\dbinom(?![a-zA-Z])|\\tbinom(?![a-zA-Z])", r"\\binom"),
    (r"\\(?:left|right|bigl|bigr|Bigl|Bigr|biggl|biggr|Biggl|Biggr|big|Big|bigg|Bigg)(?![a-zA-Z])\s*\.?", ""),
    (
        r"\\(?:displaystyle|textstyle|scriptstyle|limits|nolimits|rm|bf|it|cal|large|Large|normalsize)(?![a-zA-Z])",
        " ",
    ),
    (r"\\(?:hspace|vspace|phantom|hphantom|vphantom|label|color|textcolor)\*?\{[^{}]*\}", " "),
    (r",\s*\\!\s*|\s*\{\s*,\s*\}\s*", ","),
    (r"\\!", ""),
    (r"\\(?:quad|qquad|thinspace|enspace|space|nobreakspace)(?![a-zA-Z])|(?<!\\)\\[,;:> ]|~", " "),
    (r"\\(?:lvert|rvert|vert)(?![a-zA-Z])|\\\|", "|"),
    (r"\\(?:lbrace|lgroup)(?![a-zA-Z])", r"\\{"),
    (r"\\(?:rbrace|rgroup)(?![a-zA-Z])", r"\\}"),
    (r"\\(?:lbrack)(?![a-zA-Z])", "["),
    (r"\\(?:rbrack)(?![a-zA-Z])", "]"),
    (r"\\(?:langle|lparen)(?![a-zA-Z])", "("),
    (r"\\(?:rangle|rparen)(?![a-zA-Z])", ")"),
    (r"\\(?:leqslant|leqq|leq|le)(?![a-zA-Z])|<=|=<", "≤"),
    (r"\\(?:geqslant|geqq|geq|ge)(?![a-zA-Z])|>=", "≥"),
    (r"\\(?:neq|ne)(?![a-zA-Z])|\\not\s*=|!=|<>", "≠"),
    (r"\\lt(?![a-zA-Z])", "<"),
    (r"\\gt(?![a-zA-Z])", ">"),
    (r"\\(?:approx|simeq|cong|thickapprox)(?![a-zA-Z])", "≈"),
    (r"\\(?:times|cdot|ast|cdotp|bullet)(?![a-zA-Z])", "*"),
    (r"\*\*", "^"),
    (r"\\(?:div)(?![a-zA-Z])", "/"),
    (r"\\colon(?![a-zA-Z])", ":"),
    (r"\\(?:infin|infty)(?![a-zA-Z])", "∞"),
    (r"\\(?:varnothing|emptyset)(?![a-zA-Z])", "∅"),
    (r"\\(?:setminus|backslash|smallsetminus)(?![a-zA-Z])", "∖"),
    (r"\\cup(?![a-zA-Z])", "∪"),
    (r"\\cap(?![a-zA-Z])", "∩"),
    (r"\\in(?![a-zA-Z])", "∈"),
    (r"\\pm(?![a-zA-Z])|\+/-|\+-", "±"),
    (r"\\mp(?![a-zA-Z])|-/\+", "∓"),
    (r"\\(?:ldots|dots|cdots|dotsc|dotsb)(?![a-zA-Z])|\.{2,}", "…"),
    (r"\^\s*\{?\s*(?:\\circ|\\degree|∘|°)\s*\}?|\\degree(?![a-zA-Z])|\\textdegree(?![a-zA-Z])", "°"),
    (r"\{\s*:\s*\}", ":"),
    (r"\\text\{\s*\}", " "),
    (r"°\s*(?:\\(?:text|mathrm)\s*\{)?\s*([CF])\s*\}?(?![a-zA-Z])", r"\\text{degree\1}"),
    (r"\\(?:pounds|textsterling)(?![a-zA-Z])", r"\\text{pound}"),
    (r"\\(?:euro|texteuro|EUR)(?![a-zA-Z])", r"\\text{euro}"),
    (r"(?<![a-zA-Z\\])infinity(?![a-zA-Z])", "∞"),
    (
        r"\\(?:overline|overleftrightarrow|overrightarrow|widehat|overarc|wideparen)\s*\{\s*([A-Z]{2,4})\s*\}",
        r"\1",
    ),
    (r"\\(?:lor|vee)(?![a-zA-Z])", r"\\text{ or }"),
    (r"\\(?:land|wedge)(?![a-zA-Z])", r"\\text{ and }"),
    (r"\\(?:mathbb|mathbf|mathrm|Bbb)\s*\{?\s*R\s*\}?(?![a-zA-Z])|\\R(?![a-zA-Z])|\\reals(?![a-zA-Z])", "ℝ"),
    (r"\\(?:varphi)(?![a-zA-Z])", r"\\phi"),
    (r"\\(?:varepsilon)(?![a-zA-Z])", r"\\epsilon"),
    (r"\\%", "%"),
    (r"\\[#&_]", lambda found: found.group()[1:]),
)
_COMPILED = tuple((re.compile(pattern), replacement) for pattern, replacement in _SPELLINGS)

_STYLED = re.compile(
    r"\\(?:text|textbf|textit|textrm|textsf|texttt|textnormal|textsc|mathrm|mathbf|mathit|mathsf|mathtt|mathcal"
    r"|mathfrak|mathbb|boldsymbol|bm|operatorname\*?|mbox|hbox|emph|underline|mathop|vec|bar|hat|overrightarrow"
    r"|boxed|fbox|ensuremath)\s*\{([^{}]*)\}"
)
_DECORATION = re.compile(r"\\(?:boxed|fbox|underline|ensuremath)\s*\{")
_UNIT_LETTERS = frozenset("mgshltLNJWVKCF")
_QUANTITY = re.compile(r"\s*([-+]?[\d.,]*\d)\s*([A-Za-z][A-Za-z /.]*)")
_ROMAN = re.compile(r"\\(?:text|textrm|mathrm|mbox|operatorname)")
_MATHS_LIKE = re.compile(r"[\s\d.,+\-*/^()%$:]+|\s*[A-Za-z](?:\s*(?:,|and|or|&)\s*[A-Za-z])*\s*|\s*\\.*")
_MATH_DELIMITER = re.compile(r"\\[()\[\]]|\$\$|`+")
_SPECIAL = re.compile(r"[\\<>*.=+!~{°-]|infinity")
_ESCAPED_TWICE = re.compile(r"\\\\(?=[a-zA-Z]{2})")
_PLAIN = re.compile(r"-?\d+(?:\.\d+)?")


def surface(text: str) -> str:
    """Return ``text`` in the canonical spelling, stripped; ``""`` when it is longer than :data:`LONGEST`."""
    text = text.strip().strip("*").strip()  # bold of Markdown
    if len(text) > LONGEST:
        return ""
    return text if _PLAIN.fullmatch(text) else _spelled(text)


@lru_cache(maxsize=8192)
def _spelled(text: str) -> str:
    text = _signs(text) if not text.isascii() else text
    if "\\\\" in text and "\\begin" not in text:
        text = _ESCAPED_TWICE.sub(r"\\", text)
    text = _dollars(_MATH_DELIMITER.sub(" ", text))
    if _SPECIAL.search(text):
        for pattern, replacement in _COMPILED:
            text = pattern.sub(replacement, text)
        text = _styles(text)
    return " ".join(text.split())


def _signs(text: str) -> str:
    text = _VULGAR.sub(lambda found: _vulgar(found.group()), text)
    text = _SUPERSCRIPT_RUN.sub(lambda found: "^{" + found.group().translate(_SUPERSCRIPTS) + "}", text)
    text = _SUBSCRIPT_RUN.sub(lambda found: "_{" + found.group().translate(_SUBSCRIPTS) + "}", text)
    text = _SIGN.sub(lambda found: _SIGNS[found.group()], text)
    text = unicodedata.normalize("NFKC", text)
    text = "".join(str(unicodedata.digit(one, one)) for one in text) if not text.isascii() else text
    return "".join(one for one in text if unicodedata.category(one) != "Cf")


def _vulgar(sign: str) -> str:
    above, _, below = unicodedata.normalize("NFKC", sign).partition("⁄")
    return rf"\frac{{{above}}}{{{below}}}" if below else sign


def _dollars(text: str) -> str:
    r"""Tell currency from math delimiters: ``\$`` and an odd ``$`` before a digit are money."""
    text = text.replace(r"\$", r"\text{dollar}")
    if text.count("$") % 2:
        text = re.sub(r"\$(?=\s*[\d.])", r"\\text{dollar}", text, count=1)
    return text.replace("$", " ")


def _styles(text: str) -> str:
    r"""Unwrap styles from the inside out: what reads as math stays bare, words become ``\text{…}``."""
    for _ in range(8):
        again = _STYLED.sub(_unstyled, text)
        if again == text:
            break
        text = again
    return text.replace("\x01", r"\text{").replace("\x02", "}")


def _unstyled(found: re.Match[str]) -> str:
    inner = found.group(1)
    quantity = _QUANTITY.fullmatch(inner)
    if quantity:
        return f" {quantity.group(1)} \x01{quantity.group(2)}\x02"
    if inner.strip() in _UNIT_LETTERS and _ROMAN.match(found.group()):
        before = found.string[: found.start()].rstrip()
        if before[-1:].isdigit() or before[-1:] in ("}", ")", "/", "\x02"):
            return f"\x01{inner.strip()}\x02"
    if _DECORATION.match(found.group()) or _MATHS_LIKE.fullmatch(inner):
        return f" {inner} "
    return f"\x01{inner}\x02"
