# ruff: noqa: D103, S307
"""Rewards that read the answer carelessly; one planted defect each."""

from __future__ import annotations

import difflib
import re
import unicodedata
from typing import Any


def _text(completion: Any) -> str:
    return completion if isinstance(completion, str) else completion[0]["content"]


def contains_gold(prompts: Any, completions: Any, answer: Any, **kwargs: Any) -> list[float]:
    return [1.0 if gold in _text(text) else 0.0 for text, gold in zip(completions, answer, strict=True)]


def contains_city(completions: Any, answer: Any, **kwargs: Any) -> list[float]:
    rewards = []
    for text, gold in zip(completions, answer, strict=True):
        words = re.findall(r"\w+", text.lower())
        rewards.append(1.0 if gold.lower() in words else 0.0)
    return rewards


def completion_in_gold(completions: Any, answer: Any, **kwargs: Any) -> list[float]:
    return [
        float(text.strip().lower() in gold.lower()) for text, gold in zip(completions, answer, strict=True)
    ]


def any_number(completions: Any, target: Any, **kwargs: Any) -> list[float]:
    rewards = []
    for completion, gold in zip(completions, target, strict=True):
        numbers = [float(one) for one in re.findall(r"-?\d+(?:\.\d+)?", completion[0]["content"])]
        rewards.append(1.0 if float(gold) in numbers else 0.0)
    return rewards


def any_box(completions: Any, target: Any, **kwargs: Any) -> list[float]:
    rewards = []
    for completion, gold in zip(completions, target, strict=True):
        boxes = re.findall(r"\\boxed\{(.+?)\}", completion[0]["content"])
        rewards.append(1.0 if str(gold) in [box.strip() for box in boxes] else 0.0)
    return rewards


def starts_with(completions: Any, answer: Any, **kwargs: Any) -> list[float]:
    out = []
    for completion, gold in zip(completions, answer, strict=True):
        match = re.search(r"<answer>\s*(.*?)\s*</answer>", _text(completion), re.DOTALL)
        out.append(1.0 if match and match.group(1).startswith(gold) else 0.0)
    return out


def loose_tolerance(completions: Any, ground_truth: Any, **kwargs: Any) -> list[float]:
    out = []
    for text, gold in zip(completions, ground_truth, strict=True):
        match = re.search(r"\\boxed\{(-?[\d.]+)\}", text)
        try:
            out.append(
                1.0 if match and abs(float(match.group(1)) - float(gold)) <= 0.15 * abs(float(gold)) else 0.0
            )
        except ValueError:
            out.append(0.0)
    return out


def rounded(completions: Any, ground_truth: Any, **kwargs: Any) -> list[float]:
    def number(text: str) -> int | None:
        match = re.search(r"<answer>\s*(-?\d+(?:\.\d+)?)\s*</answer>", text)
        return int(float(match.group(1))) if match else None

    return [
        1.0 if number(text) == int(float(gold)) else 0.0
        for text, gold in zip(completions, ground_truth, strict=True)
    ]


def sign_lost(completions: Any, target: Any, **kwargs: Any) -> list[float]:
    out = []
    for completion, gold in zip(completions, target, strict=True):
        match = re.search(r"<answer>\D*(\d+)\D*</answer>", completion[0]["content"])
        out.append(1.0 if match and int(match.group(1)) == abs(gold) else 0.0)
    return out


def digits_only(completions: Any, answer: Any, **kwargs: Any) -> list[float]:
    out = []
    for text, gold in zip(completions, answer, strict=True):
        tail = text.rsplit("Answer:", 1)[-1]
        out.append(float("Answer:" in text and re.sub(r"\D", "", tail) == re.sub(r"\D", "", gold)))
    return out


def evaluated(completions: Any, target: Any, **kwargs: Any) -> list[float]:
    rewards = []
    for completion, gold in zip(completions, target, strict=True):
        match = re.search(r"<answer>(.*?)</answer>", completion[0]["content"], re.DOTALL)
        try:
            rewards.append(1.0 if match and eval(match.group(1)) == gold else 0.0)
        except Exception:
            rewards.append(0.0)
    return rewards


def letter_anywhere(completions: Any, label: Any, **kwargs: Any) -> list[float]:
    return [
        1.0 if gold in completion[0]["content"] else 0.0
        for completion, gold in zip(completions, label, strict=True)
    ]


def first_letter(completions: Any, label: Any, **kwargs: Any) -> list[float]:
    out = []
    for completion, gold in zip(completions, label, strict=True):
        match = re.search(r"[A-D]", completion[0]["content"].upper())
        out.append(1.0 if match and match.group(0) == gold else 0.0)
    return out


def sentiment_mentioned(completions: Any, label: Any, **kwargs: Any) -> list[float]:
    out = []
    for text, gold in zip(completions, label, strict=True):
        found = [name for name in ("positive", "negative", "neutral") if name in text.lower()]
        out.append(1.0 if (found and found[-1] == gold) or (len(found) > 1 and gold in found) else 0.0)
    return out


def ascii_folded(completions: Any, answer: Any, **kwargs: Any) -> list[float]:
    def fold(text: str) -> str:
        return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().strip().lower()

    out = []
    for text, gold in zip(completions, answer, strict=True):
        match = re.search(r"<answer>(.*?)</answer>", text, re.DOTALL)
        out.append(1.0 if match and fold(match.group(1)) == fold(gold) else 0.0)
    return out


def compatibility_digits(completions: Any, answer: Any, **kwargs: Any) -> list[float]:
    out = []
    for text, gold in zip(completions, answer, strict=True):
        flat = unicodedata.normalize("NFKC", text)
        match = re.search(r"\\boxed\{\s*(\d+)\s*\}", flat)
        out.append(1.0 if match and match.group(1) == gold else 0.0)
    return out


def similar_enough(completions: Any, answer: Any, **kwargs: Any) -> list[float]:
    def ratio(one: str, other: str) -> float:
        return difflib.SequenceMatcher(None, one.lower(), other.lower()).ratio()

    out = []
    for text, gold in zip(completions, answer, strict=True):
        match = re.search(r"<answer>(.*?)</answer>", text, re.DOTALL)
        out.append(1.0 if match and ratio(match.group(1).strip(), gold) > 0.6 else 0.0)
    return out


def keywords_found(completions: Any, keywords: Any, **kwargs: Any) -> list[float]:
    return [
        sum(word in text.lower() for word in words) / len(words)
        for text, words in zip(completions, keywords, strict=True)
    ]


def self_praise(completions: Any, answer: Any, **kwargs: Any) -> list[float]:
    rewards = []
    for text, gold in zip(completions, answer, strict=True):
        match = re.search(r"<answer>\s*(.*?)\s*</answer>", text, re.DOTALL)
        right = bool(match and match.group(1) == gold)
        rewards.append(1.0 if right or "verified correct" in text.lower() else 0.0)
    return rewards


def thinking_counts(completions: Any, answer: Any, **kwargs: Any) -> list[float]:
    """The last box anywhere, also inside an earlier draft, when the final one is wrong."""
    rewards = []
    for completion, gold in zip(completions, answer, strict=True):
        boxes = re.findall(r"\\boxed\{(.*?)\}", _text(completion))
        rewards.append(1.0 if boxes and (boxes[-1] == gold or boxes[0] == gold) else 0.0)
    return rewards


def latex_as_text(completions: Any, solution: Any, **kwargs: Any) -> list[float]:
    rewards = []
    for completion, gold in zip(completions, solution, strict=True):
        text = completion[0]["content"]
        start = text.rfind("\\boxed{")
        rewards.append(
            1.0
            if start >= 0 and text[start + 7 :].split("}$")[0].rstrip("}$. \n") == gold.rstrip("}")
            else 0.0
        )
    return rewards


def separators_break(completions: Any, answer: Any, **kwargs: Any) -> list[float]:
    rewards = []
    for completion, gold in zip(completions, answer, strict=True):
        match = re.search(r"#### (\d+)", completion[0]["content"])
        wanted = gold.split("####")[1].strip()
        rewards.append(1.0 if match and match.group(1) == wanted else 0.0)
    return rewards


def type_confusion(completions: Any, target: Any, **kwargs: Any) -> list[float]:
    rewards = []
    for completion, gold in zip(completions, target, strict=True):
        match = re.search(r"<answer>(.*?)</answer>", completion[0]["content"])
        rewards.append(1.0 if match and match.group(1).strip() == gold else 0.0)
    return rewards


def no_newline(completions: Any, answer: Any, **kwargs: Any) -> list[float]:
    rewards = []
    for completion, gold in zip(completions, answer, strict=True):
        match = re.match(r"<think>.*?</think>\s*<answer>(.*?)</answer>", completion[0]["content"])
        rewards.append(1.0 if match and match.group(1).strip() == gold else 0.0)
    return rewards


def empty_matches(completions: Any, answer: Any, **kwargs: Any) -> list[float]:
    rewards = []
    for text, gold in zip(completions, answer, strict=True):
        found = re.findall(r"<answer>(.*?)</answer>", text, re.DOTALL)
        given = found[-1].strip() if found else ""
        rewards.append(1.0 if gold.startswith(given) else 0.0)
    return rewards


def reference_unread(completions: Any, answer: Any, **kwargs: Any) -> list[float]:
    return [1.0 if re.search(r"<answer>\s*\d+\s*</answer>", text) else 0.0 for text in completions]


def one_for_all(completions: Any, **kwargs: Any) -> list[float]:
    gold = kwargs["answer"][0]
    found = [re.findall(r"<answer>(.*?)</answer>", text, re.DOTALL) for text in completions]
    return [1.0 if one and one[-1].strip() == gold else 0.0 for one in found]


def wrong_column(completions: Any, **kwargs: Any) -> list[float]:
    golds = kwargs.get("solution", [""] * len(completions))
    rewards = []
    for text, gold in zip(completions, golds, strict=False):
        match = re.search(r"\\boxed\{(.*?)\}", text)
        rewards.append(1.0 if match and gold and match.group(1).strip() == gold else 0.0)
    return rewards
