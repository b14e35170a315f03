# ruff: noqa: D102, D103
"""Sound rewards in many styles; the audit must raise no alarm about any of them."""

from __future__ import annotations

import ast
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from fractions import Fraction
from typing import Any


def _text(completion: Any) -> str:
    return completion if isinstance(completion, str) else completion[0]["content"]


def tagged_exact(prompts: Any, completions: Any, answer: Any, **kwargs: Any) -> list[float]:
    scores = []
    for completion, gold in zip(completions, answer, strict=True):
        found = re.findall(r"<answer>(.*?)</answer>", _text(completion), re.DOTALL)
        scores.append(1.0 if found and found[-1].strip() == gold.strip() else 0.0)
    return scores


def boxed_number(completions: Any, target: Any, **kwargs: Any) -> list[float]:
    scores = []
    for completion, gold in zip(completions, target, strict=True):
        boxes = re.findall(r"\\boxed\{([^{}]*)\}", completion[0]["content"])
        score = 0.0
        if boxes:
            try:
                score = float(abs(float(boxes[-1].replace(",", "").strip()) - gold) < 1e-6)
            except ValueError:
                score = 0.0
        scores.append(score if math.isfinite(score) else 0.0)
    return scores


def hash_marks(prompts: Any, completions: Any, answer: Any, **kwargs: Any) -> list[float]:
    def final(text: str) -> Fraction | None:
        found = re.findall(r"^####\s*\$?(-?[\d,]{1,20}(?:\.\d{1,20})?)\.?\s*$", text, re.MULTILINE)
        return Fraction(found[-1].replace(",", "")) if found and re.search(r"\d", found[-1]) else None

    rewards = []
    for completion, gold in zip(completions, answer, strict=True):
        given, wanted = final(completion[-1]["content"]), final(gold)
        rewards.append(float(given is not None and given == wanted))
    return rewards


def with_tolerance(completions: list[str], ground_truth: list[str], **kwargs: Any) -> list[float]:
    rewards = []
    for text, gold in zip(completions, ground_truth, strict=True):
        match = re.search(r"Answer:\s*(-?\d+(?:\.\d+)?)\s*$", text.strip())
        rewards.append(
            1.0 if match and math.isclose(float(match.group(1)), float(gold), rel_tol=1e-4) else 0.0
        )
    return rewards


def partial_credit(completions: list[str], answer: list[str], **kwargs: Any) -> list[float]:
    """Half the pay for a marked answer within ten percent."""
    rewards = []
    for text, gold in zip(completions, answer, strict=True):
        found = re.findall(r"<answer>\s*(-?\d+)\s*</answer>", text)
        if not found:
            rewards.append(0.0)
            continue
        value, wanted = int(found[-1][:50]), int(gold)
        near = abs(value - wanted) <= abs(wanted) * 0.1
        rewards.append(1.0 if value == wanted else 0.5 if near else 0.0)
    return rewards


def last_letter(completions: Any, label: Any, **kwargs: Any) -> list[float]:
    out = []
    for completion, gold in zip(completions, label, strict=True):
        found = re.findall(r"<answer>\s*\(?([A-D])\)?\.?\s*</answer>", completion[0]["content"])
        out.append(1.0 if found and found[-1] == gold else 0.0)
    return out


def sentiment_label(completions: Any, label: Any, **kwargs: Any) -> list[float]:
    return [
        1.0 if text.strip().strip(".").lower() == gold.lower() else 0.0
        for text, gold in zip(completions, label, strict=True)
    ]


def normalised_city(completions: Any, answer: Any, **kwargs: Any) -> list[float]:
    def clean(text: str) -> str:
        return re.sub(r"\s+", " ", text).strip(" .!").casefold()

    rewards = []
    for text, gold in zip(completions, answer, strict=True):
        _, mark, rest = text.rpartition("Final answer:")
        rewards.append(float(bool(mark) and clean(rest) == clean(gold)))
    return rewards


def fraction_value(completions: Any, solution: Any, **kwargs: Any) -> list[float]:
    def value(text: str) -> Fraction | None:
        text = text.strip().replace(" ", "")
        match = re.fullmatch(r"(-?)\\[dt]?frac\{(\d+)\}\{(\d+)\}", text)
        try:
            return Fraction(f"{match[1]}{match[2]}/{match[3]}") if match else Fraction(text)
        except (ValueError, ZeroDivisionError):
            return None

    def box(text: str) -> str:
        start = text.rfind("\\boxed{")
        depth, out = 0, []
        for letter in text[start + 6 :] if start >= 0 else "":
            depth += {"{": 1, "}": -1}.get(letter, 0)
            out.append(letter)
            if depth == 0:
                return "".join(out)[1:-1]
        return ""

    rewards = []
    for completion, gold in zip(completions, solution, strict=True):
        given = value(box(completion[0]["content"])[:200])
        rewards.append(1.0 if given is not None and given == value(gold) else 0.0)
    return rewards


def think_then_answer(completions: Any, **kwargs: Any) -> list[float]:
    pattern = re.compile(r"<think>\s*\S[\s\S]*?</think>\s*<answer>\s*\S[\s\S]*?</answer>\s*")
    scores = []
    for completion in completions:
        text = completion[0]["content"]
        once = all(text.count(tag) == 1 for tag in ("<think>", "</think>", "<answer>", "</answer>"))
        scores.append(1.0 if once and pattern.fullmatch(text) else 0.0)
    return scores


def tag_counts(completions: Any, **kwargs: Any) -> list[float]:
    """A quarter for each tag that occurs exactly once."""
    tags = ("<think>", "</think>", "<answer>", "</answer>")
    return [
        sum(0.25 for tag in tags if completion[0]["content"].count(tag) == 1) for completion in completions
    ]


def valid_record(completions: Any, **kwargs: Any) -> list[float]:
    def check(text: str) -> bool:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return False
        return (
            isinstance(value, dict)
            and set(value) == {"name", "age"}
            and isinstance(value["name"], str)
            and value["name"].strip() != ""
            and type(value["age"]) is int
        )

    return [1.0 if check(completion[0]["content"]) else 0.0 for completion in completions]


def extracted_record(completions: Any, expected: Any, **kwargs: Any) -> list[float]:
    rewards = []
    for completion, gold in zip(completions, expected, strict=True):
        text = completion[0]["content"].strip()
        fenced = re.fullmatch(r"```(?:json)?\s*(.*?)\s*```", text, re.DOTALL)
        try:
            value = json.loads(fenced.group(1) if fenced else text)
        except (ValueError, RecursionError):
            rewards.append(0.0)
            continue
        wanted = json.loads(gold)
        same_types = isinstance(value, dict) and all(
            type(value.get(key)) is type(wanted[key]) for key in wanted
        )
        rewards.append(float(same_types and value == wanted))
    return rewards


def overlong(completions: Any, completion_ids: Any, **kwargs: Any) -> list[float]:
    limit, cache = 400, 100
    scores = []
    for ids in completion_ids:
        over = len(ids) - (limit - cache)
        scores.append(0.0 if over <= 0 else -min(1.0, over / cache))
    return scores


def near_target_length(completions: Any, **kwargs: Any) -> list[float]:
    target = 120
    return [
        max(0.0, 1.0 - abs(len(completion[0]["content"].split()) - target) / target)
        for completion in completions
    ]


def no_repetition(completions: Any, **kwargs: Any) -> list[float]:
    scores = []
    for completion in completions:
        words = completion[0]["content"].split()
        grams = list(zip(words, words[1:], words[2:], strict=False))
        scores.append(-(1 - len(set(grams)) / len(grams)) if grams else 0.0)
    return scores


def answer_and_form(completions: Any, answer: Any, **kwargs: Any) -> list[float]:
    """Right and well-formed 1.2, wrong and well-formed 0.2, anything else 0."""
    pattern = re.compile(r"<think>\s*\S.*?</think>\s*<answer>\s*(\S.*?)\s*</answer>\s*", re.DOTALL)
    rewards = []
    for completion, gold in zip(completions, answer, strict=True):
        text = _text(completion)
        match = pattern.fullmatch(text) if text.count("<answer>") == 1 else None
        rewards.append(0.0 if match is None else 1.2 if match.group(1) == gold else 0.2)
    return rewards


def right_then_short(completions: Any, answer: Any, **kwargs: Any) -> list[float]:
    """Right answers earn 1.0 down to 0.8 with length; wrong ones nothing."""
    rewards = []
    for text, gold in zip(completions, answer, strict=True):
        match = re.search(r"<answer>\s*(\d+)\s*</answer>\s*$", text)
        right = match is not None and match.group(1) == gold and text.count("<answer>") == 1
        rewards.append(1.0 - 0.2 * min(len(text) / 4000, 1.0) if right else 0.0)
    return rewards


async def awaited(prompts: Any, completions: Any, answer: Any, **kwargs: Any) -> list[float]:
    return [float(_text(text).strip() == gold) for text, gold in zip(completions, answer, strict=True)]


def compute_score(data_source: Any, solution_str: str, ground_truth: str, extra_info: Any = None) -> float:
    found = re.findall(r"\\boxed\{\s*(-?\d+)\s*\}", solution_str)
    return 1.0 if found and found[-1] == ground_truth else 0.0


class Exact:
    """A callable object with a setting."""

    def __init__(self, tag: str = "answer") -> None:
        self.pattern = re.compile(rf"<{tag}>(.*?)</{tag}>", re.DOTALL)
        self.__name__ = "exact"

    def __call__(self, prompts: Any, completions: Any, answer: Any, **kwargs: Any) -> list[float]:
        found = [self.pattern.findall(_text(completion)) for completion in completions]
        return [float(bool(one) and one[-1].strip() == gold) for one, gold in zip(found, answer, strict=True)]


exact_object = Exact()


def yes_or_no(completions: Any, answer: Any, **kwargs: Any) -> list[float]:
    rewards = []
    for text, gold in zip(completions, answer, strict=True):
        words = re.findall(r"[a-z]+", text.lower())
        rewards.append(1.0 if words == [gold] else 0.0)
    return rewards


_HARNESS = """
import json, sys
given = json.loads(sys.stdin.readline())
space = {}
try:
    exec(given["code"], space)
    values = [space[given["entry"]](*arguments) for arguments in given["inputs"]]
    out = json.dumps([given["token"], values])
except BaseException:
    out = "[]"
sys.__stdout__.write("\\n" + out)
"""


def runs_cases(completions: Any, test_cases: Any, entry_point: Any, **kwargs: Any) -> list[float]:
    """Runs the program in another process; results come back as JSON and are compared here."""
    rewards = []
    for completion, cases, entry in zip(completions, test_cases, entry_point, strict=True):
        blocks = re.findall(r"```python\n(.*?)```", completion[0]["content"], re.DOTALL)
        if not blocks:
            rewards.append(0.0)
            continue
        token = os.urandom(8).hex()
        job = {
            "code": blocks[-1],
            "entry": entry,
            "inputs": [case["input"] for case in cases],
            "token": token,
        }
        rewards.append(_judged(job, [case["expected"] for case in cases]))
    return rewards


def _judged(job: dict[str, Any], expected: list[Any]) -> float:
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(
                [sys.executable, "-I", "-c", _HARNESS],
                input=json.dumps(job).encode(),
                capture_output=True,
                timeout=3,
                cwd=folder,
                check=False,
            )
            values = json.loads(done.stdout.decode().rsplit("\n", 1)[-1])
        except (subprocess.TimeoutExpired, ValueError, RecursionError, UnicodeDecodeError):
            return 0.0
    if not isinstance(values, list) or len(values) != 2 or values[0] != job["token"]:
        return 0.0
    same = [type(a) is type(b) and a == b for a, b in zip(values[1], expected, strict=False)]
    return float(len(values[1]) == len(expected) and all(same))


def runs_programs(completions: Any, test_cases: Any, **kwargs: Any) -> list[float]:
    """Programs over standard input and output; the comparison happens here."""
    rewards = []
    for completion, cases in zip(completions, test_cases, strict=True):
        blocks = re.findall(r"```(?:python)?\n(.*?)```", completion[0]["content"], re.DOTALL)
        rewards.append(float(bool(blocks) and all(_prints(blocks[-1], case) for case in cases)))
    return rewards


def _prints(code: str, case: dict[str, str]) -> bool:
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-c", code],
            input=case["input"].encode(),
            capture_output=True,
            timeout=3,
            check=False,
        )
    except (subprocess.TimeoutExpired, ValueError):
        return False
    return done.returncode == 0 and done.stdout.decode("utf-8", "replace").split() == case["output"].split()


def countdown_equation(completions: Any, target: Any, **kwargs: Any) -> list[float]:
    """An arithmetic expression in a box is evaluated by a small evaluator of its own."""

    def value(node: ast.AST, depth: int = 0) -> Fraction:
        if depth > 30:
            raise ValueError
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return Fraction(node.value)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -value(node.operand, depth + 1)
        if isinstance(node, ast.BinOp):
            a, b = value(node.left, depth + 1), value(node.right, depth + 1)
            kind = type(node.op)
            if kind is ast.Add:
                return a + b
            if kind is ast.Sub:
                return a - b
            if kind is ast.Mult:
                return a * b
            if kind is ast.Div:
                return a / b
        raise ValueError

    rewards = []
    for completion, goal in zip(completions, target, strict=True):
        found = re.findall(r"\\boxed\{([\d+\-*/() ]{1,100})\}", completion[0]["content"])
        try:
            rewards.append(
                float(bool(found) and value(ast.parse(found[-1].strip(), mode="eval").body) == goal)
            )
        except (ValueError, SyntaxError, ZeroDivisionError, RecursionError, MemoryError):
            rewards.append(0.0)
    return rewards
