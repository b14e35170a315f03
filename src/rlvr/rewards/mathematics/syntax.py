"""A small parser for the expressions inside answers: canonical LaTeX or plain text to a tree of tuples.

Nodes: ``("num", Fraction)``, ``("var", name)``, ``("const", "pi" | "e" | "i" | "inf")``, ``("neg", a)``,
``("add" | "mul" | "div" | "pow", a, b)``, ``("root", a, n)``, ``("fact", a)``, ``("fn", name, a)``,
``("log", a, base)``, ``("binom", a, b)``.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

Node: TypeAlias = tuple[Any, ...]

DEEPEST = 60
"""Nesting beyond which a text is no answer."""
MOST_TOKENS = 600


class NotReadable(ValueError):  # it is an answer of the parser, not a failure of the program
    """The text is no expression of this grammar."""


class Token(NamedTuple):
    """One token: its kind, its text, and whether a space stood before it."""

    kind: str
    text: str
    spaced: bool = False


_FUNCTION_NAMES = (
    "sin cos tan cot sec csc arcsin arccos arctan arccot sinh cosh tanh ln exp lg sgn abs floor ceil "
    "max min gcd"
)
_GREEK_NAMES = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi rho sigma tau upsilon phi chi psi "
    "omega Gamma Delta Theta Lambda Xi Sigma Phi Psi Omega ell hbar"
)
FUNCTIONS = frozenset(_FUNCTION_NAMES.split())
_GREEK = frozenset(_GREEK_NAMES.split())

_TOKEN = re.compile(
    r"(?P<space>\s+)"
    r"|(?P<num>\d+(?:\.\d+)?[eE][+-]?\d+(?![\d.])|\d{1,3}(?:[, ]\d{3})+(?![\d])(?:\.\d+)?"
    r"|\d+\.\\(?:overline|dot|bar)\{\d+\}|\d+\.\d*\\(?:overline|dot|bar)\{\d+\}|\d+(?:\.\d+)?|\.\d+)"
    r"|(?P<cmd>\\[a-zA-Z]+)"
    r"|(?P<text>\\text\{[^{}]*\})"
    r"|(?P<word>[A-Za-z]+)"
    r"|(?P<op>[-+*/^_!|(){}\[\]%,∞'°])"
)
_TEXT = re.compile(r"\\text\{([^{}]*)\}")


def tokens(text: str) -> list[Token]:
    """Split canonical text into tokens.

    Raises:
        NotReadable: A sign that belongs to no expression.
    """
    found: list[Token] = []
    place, spaced = 0, False
    while place < len(text):
        match = _TEXT.match(text, place) or _TOKEN.match(text, place)
        if match is None:
            raise NotReadable(f"{text[place]!r} belongs to no expression")
        if match.re is _TEXT:
            raise NotReadable(f"words {match.group(1)!r}")
        kind = match.lastgroup or ""
        if kind == "word":
            found += _letters(match.group(), spaced)
        elif kind != "space":
            found.append(Token(kind, match.group(), spaced))
        spaced, place = kind == "space", match.end()
        if len(found) > MOST_TOKENS:
            raise NotReadable("too long for an answer")
    return found


def _letters(word: str, spaced: bool) -> list[Token]:
    if word in FUNCTIONS or word in ("sqrt", "pi", "log", "infinity", "inf", "binom", "frac"):
        return [Token("cmd", "\\" + word, spaced)]
    if len(word) > 4:
        raise NotReadable(f"the word {word!r}")
    return [Token("var", letter, spaced and not place) for place, letter in enumerate(word)]


@lru_cache(maxsize=8192)
def parse(text: str) -> Node:
    """Parse canonical text as one expression.

    Raises:
        NotReadable: It is none.
    """
    return _Parser(tokens(text)).whole()


class _Parser:
    def __init__(self, found: list[Token]) -> None:
        self.tokens = found
        self.place = 0
        self.depth = 0
        self.bars = 0

    def whole(self) -> Node:
        node = self.sum()
        if self.place != len(self.tokens):
            raise NotReadable(f"{self.tokens[self.place].text!r} after the expression")
        return node

    def peek(self, ahead: int = 0) -> Token:
        place = self.place + ahead
        return self.tokens[place] if place < len(self.tokens) else Token("end", "")

    def take(self, text: str = "") -> Token:
        token = self.peek()
        if token.kind == "end" or (text and token.text != text):
            raise NotReadable(f"expected {text or 'more'}, found {token.text or 'the end'}")
        self.place += 1
        return token

    def accept(self, text: str) -> bool:
        if self.peek().text == text:
            self.place += 1
            return True
        return False

    def sum(self) -> Node:
        self.deeper()
        node = self.product()
        while self.peek().text in ("+", "-"):
            sign = self.take().text
            right = self.product()
            node = ("add", node, right if sign == "+" else ("neg", right))
        self.depth -= 1
        return node

    def product(self) -> Node:
        node = self.signed()
        while True:
            token = self.peek()
            if token.text == "*":
                self.take()
                node = ("mul", node, self.signed())
            elif token.text == "/":
                self.take()
                node = ("div", node, self.signed())
            elif self.starts_factor(token):
                node = ("mul", node, self.power())
            else:
                return node

    def starts_factor(self, token: Token) -> bool:
        if token.kind in ("var", "cmd") or token.text in ("(", "[", "{", "∞"):
            return token.text not in _CLOSING_COMMANDS
        if token.text == "|" and not self.bars:
            return True
        if token.kind == "num":  # two numbers side by side are no product
            raise NotReadable(f"the number {token.text} beside another")
        return False

    def signed(self) -> Node:
        negative = False
        while self.peek().text in ("+", "-"):
            negative ^= self.take().text == "-"
        node = self.power()
        return ("neg", node) if negative else node

    def power(self) -> Node:
        base = self.postfix(self.atom())
        if not self.accept("^"):
            return base
        self.deeper()
        exponent = self.signed()
        self.depth -= 1
        return self.postfix(("pow", base, exponent))

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            raise NotReadable("nested too deeply for an answer")

    def postfix(self, node: Node) -> Node:
        while True:
            if self.accept("!"):
                node = ("fact", node)
            elif self.accept("%"):
                node = ("div", node, ("num", Fraction(100)))
            elif self.accept("°"):
                node = ("mul", node, ("div", ("const", "pi"), ("num", Fraction(180))))
            else:
                return node

    def atom(self) -> Node:
        token = self.take()
        if token.kind == "num":
            return self.number(token)
        if token.kind == "var":
            return self.variable(token.text)
        if token.kind == "cmd":
            return self.command(token.text[1:])
        if token.text == "∞":
            return ("const", "inf")
        if token.text in _CLOSING:
            node = self.sum()
            self.take(_CLOSING[token.text])
            return node
        if token.text == "|":
            self.bars += 1
            node = self.sum()
            self.take("|")
            self.bars -= 1
            return ("fn", "abs", node)
        raise NotReadable(f"{token.text!r} where a value should stand")

    def number(self, token: Token) -> Node:
        value = number(token.text)
        return ("num", self.mixed(value) if value.denominator == 1 else value)

    def mixed(self, whole: Fraction) -> Fraction:
        r"""Read ``2\frac{1}{3}`` and ``2 1/3`` as one number."""
        if self.peek().text == "\\frac":
            parts, after = self.plain_fraction(self.place + 1)
        elif self.peek().kind == "num" and self.peek().spaced and self.peek(1).text == "/":
            parts, after = [self.peek().text, self.peek(2).text], self.place + 3
        else:
            return whole
        if len(parts) == 2 and all(part.isdigit() for part in parts) and int(parts[0]) < int(parts[1]):
            self.place = after
            return whole + Fraction(int(parts[0]), int(parts[1]))
        return whole

    def plain_fraction(self, place: int) -> tuple[list[str], int]:
        r"""Return the two digit groups behind ``\frac`` at ``place`` and the place after them."""
        parts: list[str] = []
        while len(parts) < 2 and place < len(self.tokens):
            token = self.tokens[place]
            if token.kind == "num" and not parts and len(token.text) == 2:
                return list(token.text), place + 1
            if token.kind == "num":
                parts.append(token.text)
                place += 1
            elif token.text == "{" and place + 2 < len(self.tokens) and self.tokens[place + 2].text == "}":
                parts.append(self.tokens[place + 1].text)
                place += 3
            else:
                return [], place
        return parts, place

    def variable(self, name: str) -> Node:
        if self.accept("_"):
            return ("var", f"{name}_{self.subscript()}")
        if name in ("e", "i"):
            return ("const", name)
        if name in "fgh" and self.peek().text == "(":
            raise NotReadable(f"the function {name}")
        primes = ""
        while self.accept("'"):
            primes += "'"
        return ("var", name + primes)

    def subscript(self) -> str:
        if not self.accept("{"):
            return self.take().text
        parts = []
        while not self.accept("}"):
            parts.append(self.take().text)
        return "".join(parts)

    def command(self, name: str) -> Node:
        if name == "frac":
            return ("div", *self.two_arguments())
        if name == "binom":
            return ("binom", *self.two_arguments())
        if name == "sqrt":
            degree = self.root_degree()
            return ("root", self.argument(), degree)
        if name in ("pi", "infinity", "inf"):
            return ("const", "pi" if name == "pi" else "inf")
        if name in ("lfloor", "lceil"):
            node = self.sum()
            self.take("\\r" + name[1:])
            return ("fn", name[1:], node)
        if name == "log":
            return self.logarithm()
        if name in FUNCTIONS:
            return self.function(name)
        if name in _GREEK:
            return self.variable(name)
        raise NotReadable(f"the command \\{name}")

    def two_arguments(self) -> tuple[Node, Node]:
        token = self.peek()
        if token.kind == "num" and token.text.isdigit() and len(token.text) == 2:  # \frac12
            self.take()
            return ("num", Fraction(int(token.text[0]))), ("num", Fraction(int(token.text[1])))
        if token.kind == "num" and token.text.isdigit() and len(token.text) == 1:
            self.take()
            return ("num", Fraction(int(token.text))), self.argument()
        return self.argument(), self.argument()

    def argument(self) -> Node:
        token = self.peek()
        if token.text in ("{", "("):
            self.take()
            node = self.sum()
            self.take(_CLOSING[token.text])
            return node
        return self.atom()

    def root_degree(self) -> Node:
        if not self.accept("["):
            return ("num", Fraction(2))
        node = self.sum()
        self.take("]")
        return node

    def logarithm(self) -> Node:
        base: Node = ("num", Fraction(10))
        if self.accept("_"):
            base = self.argument() if self.peek().text == "{" else self.atom_digit()
        exponent = self.function_power()
        node: Node = ("log", self.function_argument(), base)
        return ("pow", node, exponent) if exponent else node

    def atom_digit(self) -> Node:
        token = self.peek()
        if (
            token.kind == "num" and token.text.isdigit() and len(token.text) > 1
        ):  # \log_28 is log to base 2 of 8
            self.tokens[self.place] = Token("num", token.text[1:])
            return ("num", Fraction(int(token.text[0])))
        return self.atom()

    def function(self, name: str) -> Node:
        exponent = self.function_power()
        if name in ("max", "min", "gcd"):
            raise NotReadable(f"the function {name}")
        if exponent == ("neg", ("num", Fraction(1))) and f"arc{name}" in FUNCTIONS:
            name, exponent = f"arc{name}", None
        node: Node = ("fn", name, self.function_argument())
        return ("pow", node, exponent) if exponent else node

    def function_power(self) -> Node | None:
        return self.signed() if self.accept("^") else None

    def function_argument(self) -> Node:
        """Return what a function is applied to: a bracket, or the factors up to the next sign or function."""
        if self.peek().text in ("(", "{", "["):
            return self.atom()
        node = self.signed()
        while self.peek().kind == "var" or self.peek().text in ("\\pi", "\\frac", "\\sqrt", *_GREEK_COMMANDS):
            node = ("mul", node, self.power())
        return node


_CLOSING = {"(": ")", "[": "]", "{": "}"}
_CLOSING_COMMANDS = ("\\rfloor", "\\rceil")
_GREEK_COMMANDS = tuple("\\" + name for name in _GREEK)
_REPEATING = re.compile(r"(\d+)\.(\d*)\\(?:overline|dot|bar)\{(\d+)\}")


def number(text: str) -> Fraction:
    """Read a number token: digits with thousands marks, decimals, exponents, repeating decimals.

    Raises:
        NotReadable: An exponent beyond any answer.
    """
    repeating = _REPEATING.fullmatch(text)
    if repeating:
        whole, fixed, period = repeating.groups()
        scale = 10 ** len(fixed)
        return Fraction(int(whole + fixed), scale) + Fraction(int(period), scale * (10 ** len(period) - 1))
    text = text.replace(",", "").replace(" ", "")
    head, _, exponent = text.lower().partition("e")
    if exponent and abs(int(exponent)) > 5000:
        raise NotReadable("an exponent beyond any answer")
    return Fraction(head) * Fraction(10) ** int(exponent) if exponent else Fraction(head)
