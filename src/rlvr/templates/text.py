"""Words to bring into order, judged by a reward file of the user's own: where one starts with one's own verifier."""

from __future__ import annotations

import random

from rlvr.templates.base import Item, Template

WORDS = (
    "ant",
    "bird",
    "cat",
    "dog",
    "egg",
    "fire",
    "gold",
    "hat",
    "ice",
    "jam",
    "king",
    "lamp",
    "moon",
    "nut",
    "oak",
)

REWARD = '''\
"""Rewards of this task, for you to change: plain functions with the signature that TRL calls.

A reward gets lists of the same length (prompts, completions, and every column of the data by its name) and returns
one number a completion, or None where it has no opinion. It must be fast, give the same answer twice, and never fail
on strange text. `rlvr check` and `rlvr audit` try it on your data before anything trains.
"""

import re

LINE = re.compile(r"[a-z]+(?:, [a-z]+)*")


def in_order(prompts, completions, answer, **columns):
    """Right or wrong: 1.0 where the completion is the list in order, and paid on a well-formed line alone."""
    return [float(is_line(text_of(one)) and text_of(one) == right) for one, right in zip(completions, answer)]


def one_line(prompts, completions, **columns):
    """Well-formed or not: 1.0 for one line of words in small letters, separated by a comma and a space."""
    return [float(is_line(text_of(one))) for one in completions]


def is_line(text):
    """Return whether text is such a line."""
    return bool(LINE.fullmatch(text))


def text_of(completion):
    """Return the text of a completion: TRL passes strings, or chat messages."""
    text = completion if isinstance(completion, str) else completion[-1]["content"]
    return text.strip()
'''


def make(rng: random.Random) -> Item:
    """Draw four words."""
    words = rng.sample(WORDS, 4)
    while words == sorted(words):
        rng.shuffle(words)
    right = sorted(words)
    swapped = [right[1], right[0], *right[2:]]
    return Item(
        prompt=f"A to Z: {', '.join(words)}",
        columns={"answer": ", ".join(right)},
        right=", ".join(right),
        wrong=[", ".join(swapped), ", ".join(words), ", ".join(reversed(right))],
        broken=[" ".join(right), f"{', '.join(right)}."],
    )


TEMPLATE = Template(
    name="text",
    summary="Words in alphabetical order, judged by a reward file of your own.",
    signal="answer",
    rewards="""
  - use: reward.py:in_order    # your own code decides what is right
    role: correctness
  - use: reward.py:one_line    # and what is well-formed; weight 0.2 unless you say otherwise
    role: format
""",
    system_prompt=(
        "Bring the words into alphabetical order. Answer with the words alone, in small letters, on one line, "
        "separated by a comma and a space."
    ),
    make=make,
    completion_length=48,
    tiny_length=40,
    files={"reward.py": REWARD},
)
