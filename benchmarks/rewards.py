"""Speed and judgement of the rewards, in one run, against TRL's ``accuracy_reward`` and math-verify called directly.

Writes ``benchmarks/results/rewards.md``. Run from the repository: ``python benchmarks/rewards.py``.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from rlvr.rewards.cases import Case, read_cases
from rlvr.rewards.json_schema import JsonSchema
from rlvr.rewards.math import Math

ROOT = Path(__file__).parents[1]
CASES = [ROOT / "tests/contract/data" / name for name in ("reward_cases.jsonl", "reward_cases_own.jsonl")]
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


class Row(NamedTuple):
    """One completion with its gold."""

    text: str
    gold: str


def plain_rows(count: int, chance: random.Random) -> list[Row]:
    """Plain numbers: integers, decimals and fractions, half of them right."""
    rows = []
    for _ in range(count):
        value = chance.randrange(10**6)
        said = value if chance.random() < 0.5 else value + chance.randrange(1, 99)
        form = chance.choice(["{}", "{}.0", "{:,}"])
        rows.append(Row(f"{_reasoning(chance)} So the answer is \\boxed{{{form.format(said)}}}.", str(value)))
    return rows


def mixed_rows(count: int, chance: random.Random) -> list[Row]:
    """A mix of difficulty: 60% plain numbers, 36% expressions, sets and intervals, 4% sums and integrals."""
    plain = plain_rows(count * 60 // 100, chance)
    return chance.sample(
        plain
        + [_structured(chance) for _ in range(count * 36 // 100)]
        + [_formula(chance) for _ in range(count - count * 96 // 100)],
        count,
    )


def _reasoning(chance: random.Random) -> str:
    steps = chance.randrange(4, 12)
    return " ".join(
        f"Step {step}: we get $x_{step} = {chance.randrange(1000)}$ and go on." for step in range(steps)
    )


def _structured(chance: random.Random) -> Row:
    a, b, c = (chance.randrange(2, 40) for _ in range(3))
    wrong = chance.random() < 0.5
    d = c + 1 if wrong else c
    answer, gold = chance.choice(
        [
            (rf"\frac{{{a}}}{{{d * 2}}}", rf"\frac{{{a * 3}}}{{{c * 6}}}"),
            (rf"{a}\sqrt{{{d}}}", rf"\sqrt{{{a * a * c}}}"),
            (rf"(x-{a})(x+{d})", f"x^2+{c - a}x-{a * c}"),
            (rf"\{{{a}, {b}, {100 + d}\}}", rf"\{{{100 + c}, {a}, {b}\}}"),
            (rf"[{a}, {50 + d})", rf"{a} \le x < {50 + c}"),
            (rf"\left({a}, \frac{{{d}}}{{2}}\right)", f"({a}, {c / 2})"),
            (rf"{d}\pi + {a}", rf"{a} + \pi \cdot {c}"),
            (rf"y = {a}x + {d}", f"{a}x - y + {c} = 0"),
            (rf"{d}\%", rf"{c}\%"),
            (rf"{d}\text{{ cm}}^2", f"{c}"),
        ]
    )
    return Row(f"{_reasoning(chance)} So $\\boxed{{{answer}}}$.", gold)


def _formula(chance: random.Random) -> Row:
    n = chance.randrange(3, 30)
    value = n * (n + 1) // 2 + (chance.random() < 0.5)
    return Row(f"{_reasoning(chance)} So $\\boxed{{\\sum_{{k=1}}^{{{n}}} k}}$.", str(value))


def ours(rows: Sequence[Row]) -> list[float | None]:
    """Score with ``math`` of this project."""
    return Math()(
        prompts=[""] * len(rows), completions=[row.text for row in rows], answer=[row.gold for row in rows]
    )


def trl(rows: Sequence[Row]) -> list[float | None]:
    """Score with TRL's ``accuracy_reward``; its gold must be LaTeX in dollars to be found."""
    from trl.rewards import accuracy_reward

    chats = [[{"role": "assistant", "content": row.text}] for row in rows]
    return accuracy_reward(chats, [f"${row.gold}$" for row in rows])


def math_verify(rows: Sequence[Row]) -> list[float | None]:
    """Score with math-verify called directly, its default configuration."""
    from math_verify import parse, verify

    return [float(verify(parse(f"${row.gold}$"), parse(row.text))) for row in rows]


SCORERS: dict[str, Callable[[Sequence[Row]], list[float | None]]] = {
    "ours": ours,
    "TRL": trl,
    "math-verify": math_verify,
}


def clear_caches() -> None:
    """Forget everything that was read before, so that each measurement starts cold."""
    from rlvr.rewards import math as module
    from rlvr.rewards.mathematics import answers, compare, surface, syntax, values

    for one in (
        module._golds_of_text, answers._read_once, compare.why_no_gold, surface._spelled, syntax.parse, values.equal,
    ):  # fmt: skip
        one.cache_clear()
    with contextlib.suppress(ImportError):
        from math_verify import parser

        for name in ("parse_latex_cached", "parse_expr_cached"):
            getattr(parser, name).cache_clear()


def throughput(scorer: Callable[[Sequence[Row]], Any], rows: Sequence[Row], repeats: int) -> float:
    """Return completions a second: the best of ``repeats`` cold runs."""
    best = float("inf")
    for _ in range(repeats):
        clear_caches()
        started = time.perf_counter()
        scorer(rows)
        best = min(best, time.perf_counter() - started)
    return len(rows) / best


def latency(rows: Sequence[Row]) -> tuple[float, float]:
    """Return the median and the 99th percentile of one completion, in milliseconds."""
    clear_caches()
    times = []
    for row in rows:
        started = time.perf_counter()
        ours([row])
        times.append(1000 * (time.perf_counter() - started))
    return statistics.median(times), statistics.quantiles(times, n=100)[98]


def delay_of_hostile_input(rows: Sequence[Row]) -> list[tuple[str, float]]:
    """Return by how many seconds one hostile completion delays a batch of the others."""
    hostile = {
        "400 nested brackets": Row("\\boxed{" + "(" * 400 + "5" + ")" * 400 + "}", "5"),
        "9^9^9^9": Row(r"\boxed{9^{9^{9^{9}}}}", "1"),
        "an integral that sympy does not finish": Row(
            r"\boxed{\int_0^{1} e^{x^{x^{x}}} \sin(x^{99}) dx}", "1"
        ),
    }
    ours([_formula(random.Random(0))])  # the children are warm
    found = []
    for name, row in hostile.items():
        clear_caches()
        started = time.perf_counter()
        ours(rows)
        alone = time.perf_counter() - started
        clear_caches()
        started = time.perf_counter()
        ours([*rows, row])
        found.append((name, time.perf_counter() - started - alone))
    return found


def json_rate(count: int, chance: random.Random) -> float:
    """Return small JSON objects judged a second."""
    texts = [
        json.dumps({"name": f"n{chance.randrange(10**6)}", "age": chance.randrange(-9, 90)})
        for _ in range(count)
    ]
    reward = JsonSchema(schema=SCHEMA)
    reward(prompts=[""], completions=texts[:1])
    started = time.perf_counter()
    reward(prompts=[""] * count, completions=texts)
    return count / (time.perf_counter() - started)


def errors_on_cases() -> list[tuple[str, str, int, int, int]]:
    """Return (file, scorer, cases, false positives, false negatives) on the mathematical cases.

    TRL and math-verify see golds in dollars, so that they find them; a None of theirs is no acceptance.
    """
    table = []
    for path in CASES:
        cases = [case for case in read_cases(path) if case.kind in ("math", "gsm8k")]
        for name, scorer in SCORERS.items():
            accepted = [_accepts(scorer, case) for case in cases]
            positives = sum(got and not case.expected for got, case in zip(accepted, cases, strict=True))
            negatives = sum(
                not got and bool(case.expected) for got, case in zip(accepted, cases, strict=True)
            )
            table.append((path.name, name, len(cases), positives, negatives))
    return table


def _accepts(scorer: Callable[[Sequence[Row]], list[float | None]], case: Case) -> bool:
    try:
        score = scorer([Row(case.completion, str(case.reference))])[0]
    except Exception:  # a scorer that raises accepts nothing
        return False
    return score is not None and score >= 1.0


def report(size: int, repeats: int) -> str:
    """Measure everything and return the page."""
    chance = random.Random(7)
    plain, mix = plain_rows(size, chance), mixed_rows(size, chance)
    ours([_formula(chance)])
    rates = {
        name: (throughput(scorer, plain, repeats), throughput(scorer, mix, repeats))
        for name, scorer in SCORERS.items()
    }
    median, tail = latency(mix)
    machine = (
        f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, TRL {version('trl')}, "
        f"math-verify {version('math-verify')}"
    )
    hostile = [(name, f"{delay:.2f}") for name, delay in delay_of_hostile_input(mix[:200])]
    errors = [tuple(map(str, row)) for row in errors_on_cases()]
    parts = [
        "# Rewards: speed and judgement",
        f"Command: `python benchmarks/rewards.py --size {size} --repeats {repeats}`. Machine: {machine}. Caches are "
        "emptied before each measurement; the best of the repeats counts.",
        "## Completions a second",
        f"{size:,} completions each: plain numbers, and a mix of 60% plain numbers, 36% expressions, sets, intervals "
        "and equations, 4% sums that only a computer algebra system evaluates. Targets: at least 20 times on plain "
        "numbers, at least 2 times on the mix.",
        _rates(rates),
        f"One completion of the mix alone: median {median:.2f} ms, 99th percentile {tail:.1f} ms "
        "(target: under 50 ms).",
        "## One hostile completion",
        "By how much it delays a batch of 200 others; the limit of a comparison is 2 s.",
        _table(("Completion", "Delay in s"), hostile),
        "## JSON",
        f"{max(json_rate(20_000, chance) for _ in range(3)):,.0f} small objects a second, parsed and checked against "
        "a schema (target: 20,000).",
        "## False positives and negatives on the mathematical cases",
        _table(("Cases", "Scorer", "Number", "False positives", "False negatives"), errors),
        "This verifier was developed against both files, so its zeros say that the cases are kept, not how it does "
        "on unseen ones. TRL and math-verify receive each gold in dollars, since they find none otherwise, and their "
        "own defaults. Some cases are choices of this project where several are defensible (a `why` that begins with "
        "POLICY).",
    ]
    return "\n\n".join(parts) + "\n"


def _rates(rates: dict[str, tuple[float, float]]) -> str:
    plain, mix = rates["ours"]
    rows = [
        (name, f"{one:,.0f}", f"{plain / one:.1f}", f"{two:,.0f}", f"{mix / two:.1f}")
        for name, (one, two) in rates.items()
    ]
    return _table(("Scorer", "Plain", "Ours is faster by", "Mix", "Ours is faster by"), rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def main() -> None:
    """Write the page, and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks/results/rewards.md")
    arguments = parser.parse_args()
    logging.disable(logging.ERROR)
    page = report(arguments.size, arguments.repeats)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(page, encoding="utf-8")
    sys.stdout.write(page)


if __name__ == "__main__":
    main()
