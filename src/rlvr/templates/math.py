"""Sums and differences with the answer in a tag: the plainest verifiable task, and a check apart from the reward."""

from __future__ import annotations

import random

from rlvr.templates.base import Item, Template

CHECK = '''\
"""The held-out check: apart from the reward, so that a gain can be told from a reward that was fooled."""

import re


def whole_number(prompts, completions, answer, **columns):
    """Return 1.0 where the only whole number inside the last <answer></answer> is the right one, else 0.0."""
    return [float(_last_answer(text_of(one)) == right) for one, right in zip(completions, answer)]


def text_of(completion):
    """Return the text of a completion: TRL passes strings, or chat messages."""
    return completion if isinstance(completion, str) else completion[-1]["content"]


def _last_answer(text):
    found = re.findall(r"<answer>\\s*(-?[0-9]{1,6})\\s*</answer>", text)
    return found[-1] if found else None
'''


def make(rng: random.Random) -> Item:
    """Draw a sum or a difference of small numbers."""
    left, right = rng.randint(10, 60), rng.randint(1, 9)
    sign = rng.choice("+-")
    value = left + right if sign == "+" else left - right
    near = [left, right, left - right if sign == "+" else left + right]
    return Item(
        prompt=f"{left} {sign} {right} = ?",
        columns={"answer": str(value)},
        right=f"<answer>{value}</answer>",
        wrong=[f"<answer>{one}</answer>" for one in near if one != value],
        broken=[str(value), f"<answer>{value}"],
    )


TEMPLATE = Template(
    name="math",
    summary="Arithmetic with the answer inside <answer></answer>.",
    signal="answer",
    rewards="""
  - use: math             # right or wrong: compares values, not spellings, with the column `answer`
    name: correct
  - use: tags             # well-formed or not: one answer block; weight 0.2 unless you say otherwise
    name: well_formed
    arguments: {layout: "... answer"}    # free text may stand before the answer
""",
    system_prompt="Work the sum out. Then give the number alone, once, inside <answer></answer>.",
    make=make,
    completion_length=128,
    tiny_length=16,
    evaluation="  use: check.py:whole_number    # what measures the gain: your own code, apart from the reward\n",
    files={"check.py": CHECK},
)
