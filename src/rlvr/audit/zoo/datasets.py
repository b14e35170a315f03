"""Small data sets for the zoo: ten rows or so of each common kind, as a user's JSONL would hold them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

Rows = list[dict[str, Any]]


def chat(text: str, system: str = "") -> list[dict[str, str]]:
    """Return a prompt as messages."""
    head = [{"role": "system", "content": system}] if system else []
    return [*head, {"role": "user", "content": text}]


def sums() -> Rows:
    """Integers, string prompts, column answer."""
    return [{"prompt": f"What is {n * 13} + {n + 4}?", "answer": str(n * 14 + 4)} for n in range(2, 12)]


def sums_chat() -> Rows:
    """Integers, chat prompts with a system message, column answer."""
    system = "Think first, then answer."
    return [{"prompt": chat(row["prompt"], system), "answer": row["answer"]} for row in sums()]


def signed() -> Rows:
    """Negative and positive integers as JSON numbers, chat prompts, column target."""
    return [{"prompt": chat(f"Compute {n} - {50 - 3 * n}."), "target": 4 * n - 50} for n in range(3, 24, 2)]


def word_problems() -> Rows:
    """Solutions that end in ``#### N``, some with thousands separators, column answer."""
    return [
        {
            "question": f"A farm packs {n * 40} boxes of {n * 7} eggs. How many eggs?",
            "prompt": chat(f"A farm packs {n * 40} boxes of {n * 7} eggs. How many eggs?"),
            "answer": f"There are {n * 40} boxes. {n * 40} * {n * 7} = {n * n * 280}\n#### {n * n * 280:,}",
        }
        for n in range(1, 11)
    ]


def decimals() -> Rows:
    """Decimal numbers, string prompts, column ground_truth."""
    return [
        {"prompt": f"Divide {n * 7} by 8.", "ground_truth": f"{n * 7 / 8:g}"} for n in range(3, 15) if n != 8
    ]


def fractions() -> Rows:
    """Fractions in LaTeX, chat prompts, column solution with dollar signs."""
    pairs = [(1, 2), (3, 4), (2, 5), (7, 8), (-1, 4), (5, 3), (9, 10), (11, 20), (3, 16), (-7, 5)]
    return [
        {
            "prompt": chat(f"Write {a * 6}/{b * 6} in lowest terms."),
            "solution": f"{'-' * (a < 0)}\\frac{{{abs(a)}}}{{{b}}}",
        }
        for a, b in pairs
    ]


def formulas() -> Rows:
    """Formulas in LaTeX, chat prompts, column solution."""
    found = [
        "x^2+1",
        "2\\sqrt{3}",
        "\\frac{x}{2}",
        "(x+1)(x-2)",
        "\\pi r^2",
        "3x-7",
        "\\frac{\\pi}{6}",
        "5\\sqrt{2}",
    ]
    return [
        {"prompt": chat(f"Simplify expression number {n}."), "solution": text} for n, text in enumerate(found)
    ]


def capitals() -> Rows:
    """Words, string prompts, column answer."""
    found = {
        "France": "Paris",
        "Norway": "Oslo",
        "Kenya": "Nairobi",
        "Japan": "Tokyo",
        "Peru": "Lima",
        "Canada": "Ottawa",
        "Austria": "Vienna",
        "Cuba": "Havana",
        "Egypt": "Cairo",
        "Nepal": "Kathmandu",
    }
    return [{"prompt": f"Name the capital of {land}.", "answer": city} for land, city in found.items()]


def passages() -> Rows:
    """Words that stand in the prompt, as in reading comprehension; column answer."""
    found = [
        ("Ada", "Berlin"),
        ("Bo", "Madrid"),
        ("Cy", "Warsaw"),
        ("Di", "Dublin"),
        ("Ed", "Athens"),
        ("Flo", "Lisbon"),
    ]
    return [
        {
            "prompt": f"{name} left home in May and moved to {city}. Where does {name} live now?",
            "answer": city,
        }
        for name, city in found
    ]


def choices() -> Rows:
    """Multiple choice, chat prompts, column label."""
    letters = "BDACBADCBA"
    options = "A) red B) green C) blue D) white"
    return [
        {"prompt": chat(f"Question {n}: which one? {options}"), "label": letter}
        for n, letter in enumerate(letters)
    ]


def feelings() -> Rows:
    """Sentiment labels, string prompts, column label."""
    found = ["positive", "negative", "neutral", "positive", "negative", "neutral", "positive", "negative"]
    return [
        {"prompt": f"Classify the sentiment of review {n}.", "label": label} for n, label in enumerate(found)
    ]


def verdicts() -> Rows:
    """Yes or no, string prompts, column answer."""
    return [
        {"prompt": f"Is {n} even? Answer yes or no.", "answer": "yes" if n % 2 == 0 else "no"}
        for n in range(8)
    ]


def people() -> Rows:
    """Objects to extract, chat prompts, column expected as a JSON text."""
    found = [("Ana", 31), ("Ben", 45), ("Chi", 19), ("Dov", 62), ("Eve", 27), ("Fay", 38)]
    return [
        {
            "prompt": chat(f"Extract name and age as JSON: {name} is {age} years old."),
            "expected": json.dumps({"name": name, "age": age}),
        }
        for name, age in found
    ]


def key_points() -> Rows:
    """Lists of keywords that a summary must mention, column keywords."""
    found = [
        ["river", "bridge", "flood"],
        ["engine", "valve", "steam"],
        ["queen", "treaty", "war"],
        ["seed", "soil", "rain"],
    ]
    return [{"prompt": f"Summarise article {n}.", "keywords": words} for n, words in enumerate(found)]


def plain() -> Rows:
    """Prompts without a reference, chat."""
    return [{"prompt": chat(f"Explain topic {n} with reasoning and an answer.")} for n in range(8)]


def programs() -> Rows:
    """Functions with assert statements, column tests, entry_point beside it."""
    found: list[tuple[str, str, list[tuple[str, str]]]] = [
        ("add", "a, b", [("2, 3", "5"), ("-1, 1", "0"), ("10, 5", "15")]),
        ("double", "x", [("4", "8"), ("-3", "-6"), ("0", "0")]),
        ("largest", "xs", [("[1, 5, 2]", "5"), ("[-4, -9]", "-4"), ("[7]", "7")]),
        ("shout", "s", [("'hi'", "'HI'"), ("'Ab'", "'AB'"), ("'x y'", "'X Y'")]),
    ]
    return [
        {
            "prompt": chat(f"Write a Python function `{name}({parameters})`."),
            "entry_point": name,
            "tests": [f"assert {name}({given}) == {expected}" for given, expected in tests],
        }
        for name, parameters, tests in found
    ]


def cases() -> Rows:
    """Functions with arguments and expected values as data, column test_cases."""
    found: list[tuple[str, list[tuple[list[Any], Any]]]] = [
        ("square", [([3], 9), ([-2], 4), ([0], 0)]),
        ("minus", [([5, 2], 3), ([1, 4], -3), ([0, 0], 0)]),
        ("reverse", [(["abc"], "cba"), (["xy"], "yx"), ([""], "")]),
    ]
    return [
        {
            "prompt": chat(f"Write a function named {name}."),
            "entry_point": name,
            "test_cases": [{"input": given, "expected": expected} for given, expected in tests],
        }
        for name, tests in found
    ]


def input_output() -> Rows:
    """Programs that read standard input, column test_cases with input and output texts."""
    return [
        {
            "prompt": chat("Read two integers and print their sum."),
            "test_cases": [{"input": "3 4\n", "output": "7\n"}, {"input": "10 -2\n", "output": "8\n"}],
        },
        {
            "prompt": chat("Read a word and print it twice."),
            "test_cases": [{"input": "ab\n", "output": "abab\n"}, {"input": "z\n", "output": "zz\n"}],
        },
    ]


DATASETS: dict[str, Callable[[], Rows]] = {
    function.__name__: function
    for function in (
        sums,
        sums_chat,
        signed,
        word_problems,
        decimals,
        fractions,
        formulas,
        capitals,
        passages,
        choices,
        feelings,
        verdicts,
        people,
        key_points,
        plain,
        programs,
        cases,
        input_output,
    )
}
"""Name to the function that makes the rows."""
