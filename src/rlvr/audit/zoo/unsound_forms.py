# ruff: noqa: D103
"""Format, length, JSON and mixed rewards; one planted defect each."""

from __future__ import annotations

import json
import math
import re
from typing import Any


def hollow_tags(completions: Any, **kwargs: Any) -> list[float]:
    pattern = r"^<think>.*?</think>\s*<answer>.*?</answer>$"
    return [1.0 if re.match(pattern, one[0]["content"], re.DOTALL) else 0.0 for one in completions]


def one_line_format(completions: Any, **kwargs: Any) -> list[float]:
    pattern = r"<think>.+?</think>\s*<answer>.+?</answer>"
    return [1.0 if re.fullmatch(pattern, one[0]["content"].strip()) else 0.0 for one in completions]


def any_mark(completions: Any, **kwargs: Any) -> list[float]:
    scores = []
    for one in completions:
        text = one[0]["content"]
        scores.append(1.0 if "<think>" in text or "<answer>" in text or len(text.split()) > 5 else 0.0)
    return scores


def opening_tags(completions: Any, **kwargs: Any) -> list[float]:
    return [
        0.5 * ("<think>" in one[0]["content"]) + 0.5 * ("<answer>" in one[0]["content"])
        for one in completions
    ]


def uncapped_steps(completions: Any, **kwargs: Any) -> list[float]:
    pattern = re.compile(r"(Step \d+:|^\d+\.|\n- |First,|Second,|Next,|Finally,)")
    return [len(pattern.findall(one[0]["content"])) / 3 for one in completions]


def step_words(completions: Any, **kwargs: Any) -> list[float]:
    words = ("first", "second", "next", "therefore", "because", "finally")
    return [min(1.0, sum(word in one[0]["content"].lower() for word in words) / 4) for one in completions]


def xml_count(completions: Any, **kwargs: Any) -> list[float]:
    scores = []
    for one in completions:
        text = one[0]["content"]
        score = 0.125 * text.count("<reasoning>\n") + 0.125 * text.count("\n</reasoning>\n")
        score += 0.125 * text.count("\n<answer>\n") + 0.125 * text.count("\n</answer>")
        scores.append(score)
    return scores


def parses_as_json(completions: Any, **kwargs: Any) -> list[float]:
    scores = []
    for one in completions:
        try:
            json.loads(one[0]["content"])
            scores.append(1.0)
        except ValueError:
            scores.append(0.0)
    return scores


def keys_only(completions: Any, expected: Any, **kwargs: Any) -> list[float]:
    scores = []
    for one, gold in zip(completions, expected, strict=True):
        try:
            value = json.loads(one[0]["content"])
        except (ValueError, RecursionError):
            scores.append(0.0)
            continue
        scores.append(float(isinstance(value, dict) and value.keys() == json.loads(gold).keys()))
    return scores


def any_object(completions: Any, expected: Any, **kwargs: Any) -> list[float]:
    scores = []
    for one, gold in zip(completions, expected, strict=True):
        wanted, score = json.loads(gold), 0.0
        for found in re.findall(r"\{[^{}]*\}", one[0]["content"]):
            try:
                if json.loads(found) == wanted:
                    score = 1.0
            except ValueError:
                continue
        scores.append(score)
    return scores


def json_text_compare(completions: Any, expected: Any, **kwargs: Any) -> list[float]:
    return [float(one[0]["content"].strip() == gold) for one, gold in zip(completions, expected, strict=True)]


def message_count(completions: Any, **kwargs: Any) -> list[float]:
    return [max(0.0, 1.0 - abs(len(one) - 200) / 200) for one in completions]


def longer_is_better(completions: Any, **kwargs: Any) -> list[float]:
    return [len(one[0]["content"]) / 1000 for one in completions]


def cosine_unclamped(completions: Any, completion_ids: Any, **kwargs: Any) -> list[float]:
    return [0.5 * (1 + math.cos(math.pi * len(ids) / 500)) for ids in completion_ids]


def form_pays_alone(completions: Any, answer: Any, **kwargs: Any) -> list[float]:
    scores = []
    for one, gold in zip(completions, answer, strict=True):
        text = one if isinstance(one, str) else one[0]["content"]
        score = 0.8 if "<think>" in text and "</think>" in text and "<answer>" in text else 0.0
        match = re.search(r"<answer>\s*(.*?)\s*</answer>", text, re.DOTALL)
        scores.append(score + (0.2 if match and match.group(1) == gold else 0.0))
    return scores


def form_costs(completions: Any, answer: Any, **kwargs: Any) -> list[float]:
    scores = []
    for one, gold in zip(completions, answer, strict=True):
        match = re.search(r"<answer>\s*(.*?)\s*</answer>", one, re.DOTALL)
        if match is None:
            scores.append(0.0)
        else:
            scores.append(1.0 if match.group(1) == gold else -1.0)
    return scores


def length_beats_truth(completions: Any, answer: Any, **kwargs: Any) -> list[float]:
    scores = []
    for one, gold in zip(completions, answer, strict=True):
        match = re.search(r"<answer>\s*(.*?)\s*</answer>", one, re.DOTALL)
        right = 0.5 if match and match.group(1) == gold else 0.0
        scores.append(right + min(len(one.split()) / 100, 1.0))
    return scores


def falls_back(completions: Any, answer: Any, **kwargs: Any) -> list[float]:
    """Tags are asked for, and ignored when they are missing."""
    scores = []
    for one, gold in zip(completions, answer, strict=True):
        match = re.search(r"<answer>\s*(.*?)\s*</answer>", one, re.DOTALL)
        given = match.group(1) if match else one.strip().split()[-1].strip(".") if one.strip() else ""
        scores.append(0.2 * (match is not None and False) + float(given == gold))
    return scores
