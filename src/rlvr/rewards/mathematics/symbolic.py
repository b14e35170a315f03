"""The child of :mod:`pool`: compares formulas beyond the fast path by math-verify's parser and sympy.

Run as ``python -P -m rlvr.rewards.mathematics.symbolic``. It reads one JSON object a line (``gold``,
``answer``, ``limit``), answers one a line (``same``: true, false or null when a side does not parse;
``why``), and may be killed at any moment. The kernel ends it by an alarm where its parent no longer can.
"""

from __future__ import annotations

import json
import resource
import signal
import sys
from typing import Any

MEMORY_BYTES = 4 * 1024**3
"""Address space of a child; beyond it a formula is given up."""


def main() -> None:
    """Serve comparisons until standard input closes."""
    _limit_memory()
    _warm()
    _answer({"ready": True})
    for line in sys.stdin:
        job = json.loads(line)
        signal.setitimer(
            signal.ITIMER_REAL, 2 * float(job["limit"]) + 1
        )  # the default action ends the process
        _answer(_judge(str(job["gold"]), job["answer"]))
        signal.setitimer(signal.ITIMER_REAL, 0)


def _answer(value: dict[str, Any]) -> None:
    sys.__stdout__.write(json.dumps(value) + "\n")  # type: ignore[union-attr]
    sys.__stdout__.flush()  # type: ignore[union-attr]


def _limit_memory() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = MEMORY_BYTES if hard == resource.RLIM_INFINITY else min(hard, MEMORY_BYTES)
    resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))


def _warm() -> None:
    """Import and run everything once, so that the first comparison is not charged for it."""
    from latex2sympy2_extended import latex2sympy

    latex2sympy(r"\int_0^1 x dx").doit()


def _judge(gold: str, answer: str | None) -> dict[str, Any]:
    try:
        left = _parsed(gold)
    except Exception as error:  # the parser raises bare Exceptions; a formula it cannot read is an answer
        return {"same": None, "why": f"the reference does not parse: {_first_line(error)}"}
    if answer is None:
        return {"same": True, "why": "the reference parses"}
    try:
        right = _parsed(answer)
    except Exception as error:
        return {"same": False, "why": f"the answer does not parse: {_first_line(error)}"}
    try:
        return {"same": bool(_same(left, right)), "why": "compared by sympy"}
    except (RecursionError, MemoryError):
        return {"same": False, "why": "too large to compare"}
    except (
        Exception
    ) as error:  # sympy raises many kinds where it cannot decide; nothing was shown to be equal
        return {"same": False, "why": f"not shown to be equal: {_first_line(error)}"}


def _parsed(text: str) -> Any:
    from latex2sympy2_extended import NormalizationConfig, latex2sympy, normalize_latex

    config = NormalizationConfig(
        basic_latex=True, units=False, malformed_operators=True, nits=True, boxed="none", equations=False
    )
    return latex2sympy(normalize_latex(text, config), is_real=None)


def _same(left: Any, right: Any) -> bool:
    import sympy

    if left == right:
        return True
    if isinstance(left, sympy.Expr) and isinstance(right, sympy.Expr):
        return _same_expressions(left, right)
    if isinstance(left, sympy.MatrixBase) and isinstance(right, sympy.MatrixBase):
        return left.shape == right.shape and all(
            _same_expressions(one, other) for one, other in zip(left, right, strict=True)
        )
    from math_verify import verify

    return bool(
        verify([left], [right], float_rounding=15, numeric_precision=30, strict=True, timeout_seconds=None)
    )


def _same_expressions(left: Any, right: Any) -> bool:
    import sympy

    left, right = sympy.nsimplify(left.doit(), rational=True), sympy.nsimplify(right.doit(), rational=True)
    difference = left - right
    if not difference.free_symbols and difference.is_number:
        return _is_zero(difference)
    return bool(sympy.simplify(difference) == 0)


def _is_zero(difference: Any) -> bool:
    """Decide a constant: by 50 digits where it differs, symbolically where it does not seem to."""
    import sympy

    value = sympy.N(difference, 50)
    if not value.is_number or value.has(sympy.nan, sympy.zoo, sympy.oo):
        return False
    return bool(abs(value) < sympy.Float("1e-40", 50))


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:120]


if __name__ == "__main__":
    main()
