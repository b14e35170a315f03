"""The demo's task: sort four digits, answer inside ``<answer></answer>``; and what the model is taught of it.

The demonstrations are mixed on purpose: only some are right. A model fine-tuned on them has a half-hidden skill,
which is what GRPO can bring out: it cannot teach what never occurs.
"""

from __future__ import annotations

import random
from typing import NamedTuple

DIGITS = 4
TRAINING_PROMPTS = 2000
HELD_OUT_PROMPTS = 300

MIXTURE = (("right", 0.40), ("reversed", 0.30), ("copied", 0.18), ("untagged", 0.12))
"""Share of each kind of demonstration; the reward pays only the first."""


class Question(NamedTuple):
    """One prompt and its reference."""

    prompt: str
    answer: str


def questions(
    seed: int, training: int = TRAINING_PROMPTS, held_out: int = HELD_OUT_PROMPTS
) -> tuple[list[Question], list[Question]]:
    """Return distinct training and held-out questions; no multiset of digits is in both.

    Args:
        seed: Decides which digits are drawn and which multisets are held out.
        training: Number of training questions.
        held_out: Number of held-out questions.
    """
    rng = random.Random(seed)  # noqa: S311  # a task, not a secret
    every = [f"{number:0{DIGITS}d}" for number in range(10**DIGITS)]
    rng.shuffle(every)
    multisets = sorted({"".join(sorted(digits)) for digits in every})
    rng.shuffle(multisets)
    reserved = set(multisets[: len(multisets) // 4])
    kept = [digits for digits in every if "".join(sorted(digits)) not in reserved and not _sorted(digits)]
    asked = [digits for digits in every if "".join(sorted(digits)) in reserved and not _sorted(digits)]
    return [_question(digits) for digits in kept[:training]], [
        _question(digits) for digits in asked[:held_out]
    ]


def demonstration(question: Question, rng: random.Random) -> str:
    """Return one completion to imitate, drawn from :data:`MIXTURE`."""
    digits = question.prompt.removeprefix("sort ")
    kind = rng.choices([name for name, _ in MIXTURE], [share for _, share in MIXTURE])[0]
    if kind == "right":
        return f"<answer>{question.answer}</answer>"
    if kind == "reversed":
        return f"<answer>{question.answer[::-1]}</answer>"
    if kind == "copied":
        return f"<answer>{digits}</answer>"
    return question.answer


def _question(digits: str) -> Question:
    return Question(f"sort {digits}", "".join(sorted(digits)))


def _sorted(digits: str) -> bool:
    # Digits that are in order already would pay for copying them.
    return digits in ("".join(sorted(digits)), "".join(sorted(digits, reverse=True)))
