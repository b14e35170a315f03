"""One question, one call: the tool, its arguments and their types must all be those of the reference."""

from __future__ import annotations

import json
import random

from rlvr.templates.base import Item, Template

TOOLS = ("weather", "traffic", "events")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
CITIES = (
    "Oslo", "Rome", "Lima", "Bern", "Kyiv", "Cairo", "Paris", "Tokyo", "Delhi", "Quito", "Accra", "Dakar", "Sofia",
    "Riga", "Minsk", "Milan", "Turin", "Lyon", "Nice", "Bonn", "Graz", "Linz", "Porto", "Leeds", "Hanoi", "Seoul",
    "Osaka", "Perth",
)  # fmt: skip


def make(rng: random.Random) -> Item:
    """Draw a question."""
    tool, city, day = rng.choice(TOOLS), rng.choice(CITIES), rng.choice(DAYS)
    other = rng.choice([one for one in TOOLS if one != tool])
    right = _call(tool, city, day)
    return Item(
        prompt=f"{tool.capitalize()} in {city} on {day}?",
        columns={"call": {"name": tool, "arguments": {"city": city, "day": day}}},
        right=right,
        wrong=[_call(other, city, day), _call(tool, day, city)],
        broken=[right.removeprefix("<tool_call>"), f"{tool}({city}, {day})"],
    )


def _call(tool: str, city: str, day: str) -> str:
    body = json.dumps({"name": tool, "arguments": {"city": city, "day": day}})
    return f"<tool_call>{body}</tool_call>"


TEMPLATE = Template(
    name="tool-call",
    summary="One question answered by one call of the right tool.",
    signal="tool_call",
    rewards="""
  - use: tool_call        # right or wrong: the same tool, arguments and JSON types as in the column `call`
    name: correct
    arguments: {reference: call}
  - use: tags             # well-formed or not: one <tool_call> block; weight 0.2 unless you say otherwise
    name: well_formed
    arguments: {layout: tool_call}
""",
    system_prompt=(
        "Answer with exactly one call and nothing else, in this form:\n"
        '<tool_call>{"name": TOOL, "arguments": {"city": CITY, "day": DAY}}</tool_call>\n'
        "The tools are weather, traffic and events."
    ),
    make=make,
    completion_length=96,
    tiny_length=104,
)
