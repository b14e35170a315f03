"""Evaluate expression trees: exactly over the rationals, otherwise to many digits; and decide equality.

Two rational functions are equal when they agree exactly at several random points (Schwartz-Zippel); other
expressions when they agree to 60 and then to 200 digits at several points where both are real. A difference
beyond rounding at any point is final. Everything has a size beyond which it is no answer.
"""

from __future__ import annotations

import math
import random
import threading
from fractions import Fraction
from functools import lru_cache
from typing import Any

from rlvr.rewards.mathematics.syntax import Node

MOST_BITS = 100_000
"""Size of the largest number that is evaluated."""
MOST_BITS_TOGETHER = 3_000_000
"""Size of all intermediate numbers of one comparison together, which bounds its time to about half a second."""
MOST_ROOT_BITS = 20_000
"""Size of the largest number whose root is taken exactly."""
LARGEST_FACTORIAL = 5000
DIGITS = (60, 200)
"""Digits at which two irrational values are compared, one after the other."""


class NotRational(ArithmeticError):  # an answer of the evaluator, not a failure
    """The value is not rational, or not known to be."""


class TooLarge(ArithmeticError):  # as above
    """The value is larger than any answer."""


class Undefined(ArithmeticError):  # as above
    """The expression has no value here."""


def rational(node: Node, at: dict[str, Fraction] | None = None) -> Fraction:
    """Return the exact value of ``node``, its variables taken from ``at``.

    Raises:
        NotRational: It holds an irrational part or an unknown variable.
        TooLarge: A part is beyond :data:`MOST_BITS`.
        Undefined: It divides by zero.
    """
    kind = node[0]
    if kind == "num":
        return _bounded(node[1])
    if kind == "var":
        if at is None or node[1] not in at:
            raise NotRational(node[1])
        return at[node[1]]
    if kind in _ARITHMETIC:
        return _arithmetic(kind, rational(node[1], at), rational(node[2], at))
    if kind == "neg":
        return -rational(node[1], at)
    if kind == "root":
        return _root(rational(node[1], at), rational(node[2], at))
    if kind == "fact":
        return _factorial(rational(node[1], at))
    if kind == "fn":
        return _function(node[1], rational(node[2], at))
    if kind == "binom":
        return _binomial(rational(node[1], at), rational(node[2], at))
    raise NotRational(str(kind))


_ARITHMETIC = frozenset(("add", "mul", "div", "pow"))


def _arithmetic(kind: str, left: Fraction, right: Fraction) -> Fraction:
    if kind == "add":
        return _bounded(left + right)
    if kind == "mul":
        return _bounded(left * right)
    if kind == "div":
        if right == 0:
            raise Undefined("division by zero")
        return _bounded(left / right)
    return _power(left, right)


_spent = threading.local()


def start_budget() -> None:
    """Begin to count the size of intermediate numbers; called once for each comparison."""
    _spent.bits = 0


def _bounded(value: Fraction) -> Fraction:
    bits = value.numerator.bit_length() + value.denominator.bit_length()
    _spent.bits = getattr(_spent, "bits", 0) + bits
    if bits > MOST_BITS or _spent.bits > MOST_BITS_TOGETHER:
        raise TooLarge
    return value


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1:
        if exponent.denominator > 64 or base < 0:
            raise NotRational("a fractional power")
        return _power(_root(base, Fraction(exponent.denominator)), Fraction(exponent.numerator))
    size = max(base.numerator.bit_length(), base.denominator.bit_length())
    if base not in (0, 1, -1) and size * abs(exponent) > MOST_BITS:
        raise TooLarge
    if base == 0 and exponent <= 0:
        raise Undefined("0 to no positive power")
    return _bounded(Fraction(base ** int(exponent)))


def _root(value: Fraction, degree: Fraction) -> Fraction:
    if degree.denominator != 1 or not 2 <= degree <= 64:
        raise NotRational("a root")
    number = int(degree)
    sign = 1
    if value < 0:
        if number % 2 == 0:
            raise NotRational("the root of a negative number")
        value, sign = -value, -1
    above, below = _integer_root(value.numerator, number), _integer_root(value.denominator, number)
    if above is None or below is None:
        raise NotRational("a root")
    return sign * Fraction(above, below)


def _integer_root(value: int, degree: int) -> int | None:
    """Return the exact root of a whole number by Newton's method, or None when it has none."""
    if value < 2:
        return value
    if value.bit_length() > MOST_ROOT_BITS:
        raise NotRational("a root of a long number")
    root = math.isqrt(value) if degree == 2 else _newton(value, degree)
    return root if root**degree == value else None


def _newton(value: int, degree: int) -> int:
    """Return the whole part of a root, coming down from a power of two above it."""
    root = 1 << -(-value.bit_length() // degree)
    while True:
        lower = ((degree - 1) * root + value // root ** (degree - 1)) // degree
        if lower >= root:
            return root
        root = lower


def _factorial(value: Fraction) -> Fraction:
    if value.denominator != 1 or value < 0:
        raise NotRational("a factorial")
    if value > LARGEST_FACTORIAL:
        raise TooLarge
    return _bounded(Fraction(math.factorial(int(value))))


def _binomial(above: Fraction, below: Fraction) -> Fraction:
    if above.denominator != 1 or below.denominator != 1 or above < 0 or below < 0:
        raise NotRational("a binomial")
    if above > LARGEST_FACTORIAL:
        raise TooLarge
    return _bounded(Fraction(math.comb(int(above), int(below))))


def _function(name: str, value: Fraction) -> Fraction:
    if name == "abs":
        return abs(value)
    if name == "floor":
        return Fraction(value.numerator // value.denominator)
    if name == "ceil":
        return Fraction(-(-value.numerator // value.denominator))
    raise NotRational(name)


def variables(node: Node) -> frozenset[str]:
    """Return the names of the variables in ``node``."""
    if node[0] == "var":
        return frozenset((node[1],))
    names: frozenset[str] = frozenset()
    for part in node[1:]:
        if isinstance(part, tuple):
            names |= variables(part)
    return names


def points(names: frozenset[str], count: int) -> list[dict[str, Fraction]]:
    """Return fixed pseudo-random rational points, the last of them negative."""
    drawn = random.Random(20250917)  # noqa: S311  # test points, no secret
    found = []
    for number in range(count):
        sign = -1 if number == count - 1 else 1
        found.append(
            {
                name: sign * Fraction(drawn.randrange(10**6, 10**7), drawn.randrange(10**6, 10**7))
                for name in sorted(names)
            }
        )
    return found


_INFINITE = frozenset({("const", "inf"), ("neg", ("const", "inf"))})


@lru_cache(maxsize=8192)
def equal(left: Node, right: Node) -> bool | None:
    """Return whether two expressions are equal; None when this cannot be told here."""
    if left == right:
        return True
    if _INFINITE & {left, right}:
        return False
    start_budget()
    names = variables(left) | variables(right)
    if len(names) > 12:
        return None
    try:
        return _equal_rational(left, right, names)
    except TooLarge:
        return None if names else False  # a number beyond every answer
    except NotRational:
        return _equal_numeric(left, right, names)


def _equal_rational(left: Node, right: Node, names: frozenset[str]) -> bool | None:
    agreed = 0
    for point in points(names, 4 if names else 1):
        values: list[Fraction | None] = []
        for node in (left, right):
            try:
                values.append(rational(node, point))
            except Undefined:
                values.append(None)
        if (values[0] is None) != (values[1] is None):
            return False
        if values[0] is None:
            continue
        if values[0] != values[1]:
            return False
        agreed += 1
    return True if agreed else None


def _equal_numeric(left: Node, right: Node, names: frozenset[str]) -> bool | None:
    """Compare at several points, first with few digits; some point must be real on both sides."""
    agreed = 0
    chosen = points(names, 5 if names else 1)
    for digits in DIGITS:
        agreed = 0
        for point in chosen:
            same = _agree(left, right, point, digits)
            if same is False:
                return False
            agreed += same is True
        if not agreed:
            return None
    return True if agreed >= min(2, len(chosen)) else None


def _agree(left: Node, right: Node, point: dict[str, Fraction], digits: int) -> bool | None:
    first, second = decimal(left, point, digits), decimal(right, point, digits)
    if first is None or second is None:
        return None
    import mpmath

    with mpmath.workdps(digits + 20):
        if names_complex(first) != names_complex(second) and point:
            return None  # one side leaves the reals here, so the point says nothing
        scale = max(abs(first), abs(second))
        if scale == 0:
            return True
        return bool(abs(first - second) <= scale * mpmath.mpf(10) ** (-digits + 5))


def names_complex(value: Any) -> bool:
    """Return whether a number of mpmath has an imaginary part beyond rounding."""
    imaginary = getattr(value, "imag", 0)
    return bool(abs(imaginary) > 1e-30 * (1 + abs(value)))


def decimal(node: Node, at: dict[str, Fraction], digits: int = 30) -> Any:
    """Return ``node`` to ``digits`` digits as a number of mpmath, or None where it has no value."""
    import mpmath

    with mpmath.workdps(digits + 20):
        try:
            value = _numeric(node, at, mpmath)
        except (ArithmeticError, ValueError, TypeError, NotImplementedError):
            return None
        return value if mpmath.isfinite(value) else None


def approximate(node: Node) -> float | None:
    """Return a real constant as a float (infinities included), or None."""
    if node == ("const", "inf"):
        return float("inf")
    if node == ("neg", ("const", "inf")):
        return float("-inf")
    start_budget()
    try:
        return float(rational(node))
    except (NotRational, Undefined):
        value = decimal(node, {}, 15)
        return None if value is None or names_complex(value) else float(getattr(value, "real", value))
    except (TooLarge, OverflowError):
        return None


def _numeric(node: Node, at: dict[str, Fraction], mp: Any) -> Any:
    kind = node[0]
    if kind == "num":
        return mp.mpf(node[1].numerator) / node[1].denominator
    if kind == "var":
        if node[1] not in at:
            raise NotRational(node[1])
        value = at[node[1]]
        return mp.mpf(value.numerator) / value.denominator
    if kind == "const":
        return {"pi": mp.pi(), "e": mp.e(), "i": mp.mpc(0, 1), "inf": mp.inf}[node[1]]
    if kind == "neg":
        return -_numeric(node[1], at, mp)
    if kind == "fn":
        return _numeric_function(node[1], _numeric(node[2], at, mp), mp)
    left = _numeric(node[1], at, mp)
    if kind == "fact":
        return _small(left, mp) and mp.factorial(left)
    right = _numeric(node[2], at, mp)
    if kind == "add":
        return left + right
    if kind == "mul":
        return left * right
    if kind == "div":
        return left / right
    if kind == "pow":
        return _numeric_power(left, right, mp)
    if kind == "root":
        return _numeric_root(left, right, mp)
    if kind == "log":
        return mp.log(left) / mp.log(right)
    if kind == "binom":
        return _small(left, mp) and mp.binomial(left, right)
    raise NotRational(str(kind))


def _small(value: Any, mp: Any) -> bool:
    if abs(value) > LARGEST_FACTORIAL:
        raise TooLarge
    return bool(mp.isfinite(value))


def _numeric_power(base: Any, exponent: Any, mp: Any) -> Any:
    if base != 0 and abs(exponent) * abs(mp.log(abs(base))) > MOST_BITS:
        raise TooLarge
    return base**exponent


def _numeric_root(value: Any, degree: Any, mp: Any) -> Any:
    real = not names_complex(value)
    if real and mp.mpf(getattr(value, "real", value)) < 0 and degree == int(degree) and int(degree) % 2:
        return -mp.root(-value, int(degree))
    return mp.power(value, 1 / degree)


_NUMERIC_NAMES = {
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arccot": "acot", "abs": "fabs",
    "lg": "log10", "sgn": "sign",
}  # fmt: skip


def _numeric_function(name: str, value: Any, mp: Any) -> Any:
    if abs(value) > MOST_BITS and name in ("exp", "sinh", "cosh"):
        raise TooLarge
    return getattr(mp, _NUMERIC_NAMES.get(name, name))(value)
