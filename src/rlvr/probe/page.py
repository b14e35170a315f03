"""The page ``probe.html``: one file, nothing fetched, light and dark; completions are shown as text."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from rlvr.records.probe import Cause, ProbeRecord, Rate
from rlvr.visible import finalized, visible

COLOURS: Mapping[str, str] = {
    "sweet spot": "good",
    "saturated": "fair",
    "rare": "fair",
    "undecided": "open",
    "no support": "bad",
}
MEANINGS: Mapping[str, str] = {
    "sweet spot": "Train. The model succeeds sometimes, and right and wrong answers to the same prompt meet in a "
    "group: that difference is what GRPO learns from.",
    "saturated": "There is little to learn here: nearly every group would be all right or all wrong, and such groups "
    "train nothing.",
    "rare": "Most of the training would be spent on groups without any success. It pays to change the prompts first.",
    "undecided": "Do not train yet: what was measured does not decide, or something else is in the way.",
    "no support": "GRPO strengthens what already happens, and here it never happens: there is nothing to strengthen.",
}
"""What each verdict means, for a person who sees one for the first time."""
KINDS: Mapping[Cause, tuple[str, str]] = {
    "right": ("Right", "what training would reinforce"),
    "wrong": ("Wrong", "an answer was read, and it is not right"),
    "ill-formed": ("Ill-formed", "no answer could be read"),
    "truncated": ("Cut off", "the length cap ended it"),
    "infrastructure": ("Not judged", "the reward failed on it; it counts as nothing"),
    "grader": ("Grader", ""),
}
CAUSE_WORDS: Mapping[Cause, str] = {
    "grader": "the reward does not pay the reference answer: mend the reward",
    "truncated": "the length cap ends completions: raise it",
    "ill-formed": "no answer can be read: show the format in the prompt, or teach it",
    "wrong": "answers are read and are not right",
    "infrastructure": "the reward could not judge",
    "right": "",
}
TABLE_ROWS = 400
"""Prompts listed; the record has them all."""


def render_page(record: ProbeRecord, *, title: str, model: str) -> str:
    """Return the page as HTML.

    Args:
        record: What the probe found.
        title: Name of the workspace or file.
        model: Name of the model, or of the file's source.
    """
    import jinja2

    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, finalize=finalized
    )
    environment.filters["percent"] = percent
    environment.filters["commands"] = commands
    source = files("rlvr.probe").joinpath("page.html.j2").read_text("utf-8")
    return environment.from_string(source).render(
        record=record,
        title=title,
        model=model,
        meaning=MEANINGS[record.verdict],
        colour=COLOURS[record.verdict],
        reason=record.why.partition(": ")[2],
        rates=_rates(record),
        bars=bars(record.histogram),
        causes=_causes(record),
        kinds=_kinds(record),
        prompts=record.prompts[:TABLE_ROWS],
        cause_words=CAUSE_WORDS,
    )


def commands(text: str) -> Any:
    """Return text as HTML with what stands between backticks as code."""
    from markupsafe import Markup, escape

    parts = visible(text).split("`")
    if len(parts) % 2 == 0:  # an odd backtick belongs to the text
        return escape(visible(text))
    shown = (
        f"<code>{escape(part)}</code>" if place % 2 else str(escape(part)) for place, part in enumerate(parts)
    )
    return Markup("".join(shown))  # noqa: S704  # every part was escaped


def percent(value: float | None, digits: int = 0) -> str:
    """Return a share as a percentage; small ones keep a digit, unknown ones say so."""
    if value is None:
        return "not judged"
    if 0 < value < 0.1 or 0.9 < value < 1:
        digits = max(digits, 1)
    return f"{value * 100:.{digits}f}%"


def bars(histogram: list[int]) -> list[dict[str, Any]]:
    """Return the histogram's bars: label, count, height in percent, and whether such a group trains anything."""
    most = max(histogram, default=0)
    last = len(histogram) - 1
    return [
        {
            "label": str(right),
            "count": number,
            "height": round(100 * number / most, 1) if most else 0,
            "trains": 0 < right < last,
        }
        for right, number in enumerate(histogram)
    ]


def _rates(record: ProbeRecord) -> list[tuple[str, Rate]]:
    found = []
    if record.success.low_temperature:
        found.append(("low temperature", record.success.low_temperature))
    if record.success.training_temperature:
        found.append(("training temperature", record.success.training_temperature))
    return found


def _causes(record: ProbeRecord) -> list[tuple[str, int, float]]:
    causes = record.causes
    counts = (("wrong", causes.wrong), ("ill-formed", causes.ill_formed), ("cut off", causes.truncated))
    return [(name, number, number / causes.zeros if causes.zeros else 0.0) for name, number in counts]


def _kinds(record: ProbeRecord) -> list[dict[str, Any]]:
    found = []
    for kind, (name, words) in KINDS.items():
        examples = [one for one in record.examples if one.cause == kind]
        if examples:
            found.append({"name": name, "words": words, "kind": kind, "examples": examples})
    return found
