"""The demo's own judge of a completion, apart from the reward: it redoes the task from the prompt."""

from __future__ import annotations

import json

from rlvr.records.samples import Sample


def judge(sample: Sample) -> bool:
    """Return whether a person who reads the prompt would pass the completion."""
    prompt = sample.prompt[-1].content
    if prompt.startswith("sort "):
        digits = "".join(sorted(prompt.removeprefix("sort ").strip()))
        return sample.text.strip() == f"<answer>{digits}</answer>"
    return _is_the_object(sample.text, sample.columns)


def _is_the_object(text: str, columns: dict[str, object]) -> bool:
    try:
        found = json.loads(text)
    except ValueError:
        return False
    return isinstance(found, dict) and found == columns["answer"]
