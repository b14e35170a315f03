"""Small functions judged by unit tests in the sandbox: expected values never enter the solution's process."""

from __future__ import annotations

import random

from rlvr.templates.base import Item, Template

INPUTS = (0, 1, -3, 7, 25)


def make(rng: random.Random) -> Item:
    """Draw a linear function."""
    factor, sign = rng.randint(2, 16), rng.choice((1, -1))
    offset = rng.choice([one for one in range(1, 26) if one != factor])
    words = "plus" if sign > 0 else "minus"
    symbol = "+" if sign > 0 else "-"
    tests = [{"args": [value], "expect": factor * value + sign * offset} for value in INPUTS]
    body = f"return x * {factor} {symbol} {offset}"
    return Item(
        prompt=f"f(x): x times {factor} {words} {offset}",
        columns={"tests": {"fn": "f", "tests": tests}},
        right=f"def f(x):\n    {body}",
        wrong=[
            f"def f(x):\n    return x * {offset} {symbol} {factor}",
            f"def f(x):\n    return x {symbol} {offset}",
            f"def f(x):\n    return x * {factor}",
        ],
        broken=[body, f"def f(x):\n{body}"],
    )


TEMPLATE = Template(
    name="code",
    summary="Small Python functions, judged by unit tests in a sandbox.",
    signal="unit_tests",
    rewards="""
  - use: unit_tests       # right or wrong: every test of the column `tests` passes in the sandbox
    name: correct
    arguments: {reference: tests}
""",
    tiny_rewards="""
  - use: unit_tests       # right or wrong: every test of the column `tests` passes in the sandbox
    name: correct
    arguments: {reference: tests, extraction: whole}    # the tiny model writes bare code, without fences
""",
    system_prompt="Write the Python function that is described. Answer with one fenced block of code, nothing else.",
    make=make,
    completion_length=128,
    tiny_length=48,
)
