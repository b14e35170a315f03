"""Facts in a sentence to one strict JSON object: the shape by a schema, the values by a reward of the user's own."""

from __future__ import annotations

import json
import random

from rlvr.templates.base import Item, Template

NAMES = (
    "Ann",
    "Bo",
    "Cleo",
    "Dan",
    "Eve",
    "Finn",
    "Gus",
    "Hal",
    "Ida",
    "Jo",
    "Kim",
    "Lea",
    "Max",
    "Ned",
    "Una",
)
CITIES = ("Oslo", "Rome", "Lima", "Bern")

REWARD = '''\
"""The correctness reward of this task, for you to change: a plain function with the signature that TRL calls."""

import json


def same_object(prompts, completions, answer, **columns):
    """Right or wrong: 1.0 where the whole completion is the JSON object of the column `answer`, types included."""
    return [float(same(read(text_of(one)), right)) for one, right in zip(completions, answer)]


def read(text):
    """Return the JSON value of a text, or None: no NaN, no repeated keys, nothing around it."""
    try:
        return json.loads(text, object_pairs_hook=unrepeated, parse_constant=refused)
    except (ValueError, RecursionError):
        return None


def same(found, right):
    """Return whether an object has exactly these keys, and values of the same type (1 is not True, nor 1.0)."""
    return (
        isinstance(found, dict)
        and found.keys() == right.keys()
        and all(type(found[key]) is type(value) and found[key] == value for key, value in right.items())
    )


def unrepeated(pairs):
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key is repeated")
    return dict(pairs)


def refused(name):
    raise ValueError(f"{name} is not JSON")


def text_of(completion):
    """Return the text of a completion: TRL passes strings, or chat messages."""
    return completion if isinstance(completion, str) else completion[-1]["content"]
'''


def make(rng: random.Random) -> Item:
    """Draw a person."""
    name, age, city = rng.choice(NAMES), rng.randint(18, 80), rng.choice(CITIES)
    right = json.dumps({"name": name, "age": age})
    return Item(
        prompt=f"{name} from {city} is {age}.",
        columns={"answer": {"name": name, "age": age}},
        right=right,
        wrong=[json.dumps({"name": city, "age": age}), json.dumps({"name": name, "age": 100 - age})],
        broken=[f"{name}: {age}", right[:-1]],
    )


TEMPLATE = Template(
    name="json",
    summary="One strict JSON object with the facts of a sentence.",
    signal="json_schema",
    rewards="""
  - use: reward.py:same_object    # your own code decides whether the values are right
    name: correct
    role: correctness
  - use: json_schema              # well-formed or not: the shape that every row shares; weight 0.2
    name: well_formed
    role: format
    arguments:
      strict: true
      schema:
        type: object
        properties: {name: {type: string, minLength: 1}, age: {type: integer, minimum: 0}}
        required: [name, age]
        additionalProperties: false
""",
    system_prompt='Answer with one JSON object and nothing else: {"name": …, "age": …}. The age is a number.',
    make=make,
    completion_length=64,
    tiny_length=40,
    files={"reward.py": REWARD},
)
