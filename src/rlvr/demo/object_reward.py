"""The correctness reward of the demo on a real model, written as a user would write one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any


def same_object(
    prompts: Sequence[Any], completions: Sequence[Any], answer: Sequence[dict[str, Any]], **columns: Any
) -> list[float]:
    """Pay 1.0 where the whole completion is the JSON object of the column ``answer``, types included."""
    return [float(_same(_read(_text(one)), right)) for one, right in zip(completions, answer, strict=True)]


def _text(completion: Any) -> str:
    return completion if isinstance(completion, str) else str(completion[-1]["content"])


def _read(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_unrepeated, parse_constant=_refused)
    except (ValueError, RecursionError):
        return None


def _same(found: Any, right: dict[str, Any]) -> bool:
    return (
        isinstance(found, dict)
        and found.keys() == right.keys()
        and all(type(found[key]) is type(value) and found[key] == value for key, value in right.items())
    )


def _unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key is repeated")
    return dict(pairs)


def _refused(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
