# ruff: noqa: D102, D103, S311, PLW0603
"""Rewards that break the contract with the trainer; one planted defect each."""

from __future__ import annotations

import math
import random
import re
import statistics
import threading
import time
from typing import Any


def _answer(text: Any) -> str:
    text = text if isinstance(text, str) else text[0]["content"]
    found = re.findall(r"<answer>(.*?)</answer>", text, re.DOTALL)
    return found[-1].strip() if found else ""


def jitter(completions: Any, answer: Any, **kwargs: Any) -> list[float]:
    return [
        float(_answer(text) == gold) + random.uniform(0, 0.01)
        for text, gold in zip(completions, answer, strict=True)
    ]


def hash_jitter(completions: Any, answer: Any, **kwargs: Any) -> list[float]:
    return [
        float(_answer(text) == gold) + (hash(str(text)) % 100) / 1e4
        for text, gold in zip(completions, answer, strict=True)
    ]


def clock(completions: Any, answer: Any, **kwargs: Any) -> list[float]:
    bonus = (time.time() % 1000) / 10_000
    return [float(_answer(text) == gold) + bonus for text, gold in zip(completions, answer, strict=True)]


def normalised(completions: Any, answer: Any, **kwargs: Any) -> list[float]:
    raw = [float(_answer(text) == gold) for text, gold in zip(completions, answer, strict=True)]
    mean, spread = statistics.fmean(raw), statistics.pstdev(raw)
    return [(score - mean) / (spread + 1e-6) for score in raw]


def best_of_batch(completions: Any, answer: Any, **kwargs: Any) -> list[float]:
    raw = [float(_answer(text) == gold) for text, gold in zip(completions, answer, strict=True)]
    longest = max(len(str(text)) for text in completions)
    return [score * len(str(text)) / longest for score, text in zip(raw, completions, strict=True)]


_seen: dict[str, float] = {}


def cached(completions: Any, answer: Any, **kwargs: Any) -> list[float]:
    for text, gold in zip(completions, answer, strict=True):
        _seen.setdefault(str(text), float(_answer(text) == gold))
    return [_seen[str(text)] for text in completions]


class Curriculum:
    """Grows stricter with every call."""

    def __init__(self) -> None:
        self.calls = 0
        self.__name__ = "curriculum"

    def __call__(self, completions: Any, answer: Any, **kwargs: Any) -> list[float]:
        self.calls += 1
        credit = 0.3 if self.calls < 20 else 0.0
        found = [_answer(text) for text in completions]
        return [
            1.0 if one == gold else credit if one else 0.0 for one, gold in zip(found, answer, strict=True)
        ]


curriculum = Curriculum()
_threshold = 0.0


def running_mean(completions: Any, answer: Any, **kwargs: Any) -> list[float]:
    global _threshold
    raw = [float(_answer(text) == gold) for text, gold in zip(completions, answer, strict=True)]
    _threshold = 0.9 * _threshold + 0.1 * sum(raw) / max(len(raw), 1)
    return [score - _threshold for score in raw]


def mutates(completions: Any, answer: Any, **kwargs: Any) -> list[float]:
    for completion in completions:
        completion[0]["content"] = completion[0]["content"].strip().lower()
    return [float(_answer(text) == gold.lower()) for text, gold in zip(completions, answer, strict=True)]


def skips(completions: Any, answer: Any, **kwargs: Any) -> list[float]:
    scores = []
    for text, gold in zip(completions, answer, strict=True):
        if not _answer(text):
            continue
        scores.append(float(_answer(text) == gold))
    return scores


def scalar(completions: Any, answer: Any, **kwargs: Any) -> Any:
    return sum(float(_answer(text) == gold) for text, gold in zip(completions, answer, strict=True))


def raises(completions: Any, answer: Any, **kwargs: Any) -> list[float]:
    found = [re.search(r"<answer>(.*?)</answer>", text, re.DOTALL) for text in completions]
    return [float(one.group(1).strip() == gold) for one, gold in zip(found, answer, strict=True)]  # type: ignore[union-attr]


def raises_on_words(completions: Any, target: Any, **kwargs: Any) -> list[float]:
    scores = []
    for completion, gold in zip(completions, target, strict=True):
        found = _answer(completion)
        scores.append(float(bool(found) and float(found) == gold))
    return scores


def isdigit_trap(completions: Any, answer: Any, **kwargs: Any) -> list[float]:
    scores = []
    for text, gold in zip(completions, answer, strict=True):
        found = _answer(text)
        scores.append(float(found.isdigit() and int(found) == int(gold)))
    return scores


def not_finite(completions: Any, ground_truth: Any, **kwargs: Any) -> list[float]:
    scores = []
    for text, gold in zip(completions, ground_truth, strict=True):
        try:
            gap = abs(float(_answer(text)) - float(gold))
        except ValueError:
            scores.append(-1.0)
            continue
        scores.append(1.0 if gap < 1e-6 else math.exp(-gap) if not math.isinf(gap) else gap - gap)
    return scores


def unbounded(completions: Any, target: Any, **kwargs: Any) -> list[float]:
    scores = []
    for completion, gold in zip(completions, target, strict=True):
        match = re.fullmatch(r"-?\d{1,30}", _answer(completion))
        scores.append(1.0 - abs(int(match.group(0)) - gold) if match else -1.0)
    return scores


def blow_up(completions: Any, answer: Any, **kwargs: Any) -> list[float]:
    pattern = re.compile(r"^(\s*(\w+\s*)*)<answer>(\d+)</answer>$")
    scores = []
    for text, gold in zip(completions, answer, strict=True):
        match = pattern.match(text)
        scores.append(1.0 if match and match.group(3) == gold else 0.0)
    return scores


def _make() -> Any:
    lock = threading.Lock()

    def locked(completions: Any, answer: Any, **kwargs: Any) -> list[float]:
        with lock:
            return [float(_answer(text) == gold) for text, gold in zip(completions, answer, strict=True)]

    return locked


closure = _make()


def needs_solution(completions: Any, solution: Any, **kwargs: Any) -> list[float]:
    return [float(_answer(text) == gold) for text, gold in zip(completions, solution, strict=True)]


def by_position(completions: Any, answer: Any, **kwargs: Any) -> list[float]:
    return [
        float(_answer(text) == gold) * (1.0 - 0.01 * place)
        for place, (text, gold) in enumerate(zip(completions, answer, strict=True))
    ]
