"""The wire form of an answer: how the reward wants to be answered is found out by trying what it pays."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rlvr.audit.patterns import matching_texts
from rlvr.audit.source import Source

REASONING = (
    "Let us look at what is asked and go through it step by step. "
    "First we write down what is known, then we combine it, and finally we check the outcome once more."
)
LINES = (
    "Let us look at what is asked.\nFirst we write down what is known, because that helps.\n\n"
    "Then we combine it.\nFinally we check the outcome once more."
)
COUNTED = (
    "Step 1: look.\n1. First, we look.\n- Second, we count.\n- Next, we add.\n2. Then, we check because it matters.\n"
    "Therefore, it holds.\nFinally, we are done.\n# Heading\n**bold** and `code`\n* item"
)
"""What counters of steps, lists and connectives look for, all in one piece."""
PROSE = "I am not sure what to say about this question, so here are a few words and nothing else."
_MARKER = re.compile(
    r"answer|result|final|solution|therefore|thus|output|####|=>|label|choice", re.IGNORECASE
)


@dataclass(frozen=True)
class Form:
    """A way to write an answer.

    Attributes:
        name: In words, as printed.
        write: Builds the completion from reasoning and answer.
        rank: Lower is plainer; among equally paid forms the one that the source hints at wins.
        hinted: Whether the source mentions its marks.
        structured: Whether it has marks of its own (tags, a box) that a format check could want.
    """

    name: str
    write: Callable[[str, str], str]
    rank: int
    hinted: bool = False
    structured: bool = True

    def __call__(self, answer: str, reasoning: str = REASONING) -> str:
        """Return a completion that gives ``answer``."""
        return self.write(reasoning, answer)

    def after(self, answer: str, text: str) -> str:
        """Return a completion with ``text`` as its reasoning, or before the form where that has no place for it."""
        whole = self.write(text, answer)
        return whole if text in whole else f"{text}\n{whole}"


def _plain(template: str) -> Callable[[str, str], str]:
    def write(reasoning: str, answer: str) -> str:
        return template.replace("@R", reasoning).replace("@A", answer)

    return write


_COMMON: tuple[tuple[str, str, tuple[str, ...], bool], ...] = (
    ("bare answer", "@A", (), False),
    ("the answer is …", "@R The answer is @A.", (), False),
    ("Answer: …", "@R\nAnswer: @A", ("answer:",), False),
    ("Final Answer: …", "@R\nFinal Answer: @A", ("final answer",), False),
    ("\\boxed{…}", "@R\n\\boxed{@A}", ("boxed",), True),
    ("bare \\boxed{…}", "\\boxed{@A}", ("boxed",), True),
    ("$\\boxed{…}$", "@R\nThe answer is $\\boxed{@A}$.", ("boxed",), True),
    ("#### …", "@R\n#### @A", ("####",), True),
    ("<answer>…</answer>", "<answer>@A</answer>", ("answer>",), True),
    ("text, then <answer>…</answer>", "@R\n<answer>@A</answer>", ("answer>",), True),
    (
        "<think>…</think><answer>…</answer>",
        "<think>@R</think>\n<answer>@A</answer>",
        ("think", "answer>"),
        True,
    ),
    (
        "<think>…</think><answer>…</answer> on one line",
        "<think>@R</think><answer>@A</answer>",
        ("think", "answer>"),
        True,
    ),
    (
        "<think> and <answer> with inner line breaks",
        "<think>\n@R\n</think>\n<answer>\n@A\n</answer>",
        ("think", "answer>"),
        True,
    ),
    (
        "<reasoning> and <answer> with inner line breaks",
        "<reasoning>\n@R\n</reasoning>\n<answer>\n@A\n</answer>\n",
        ("reasoning", "answer>"),
        True,
    ),
    ("<think>…</think> then text", "<think>\n@R\n</think>\n\n@A", ("think",), True),
    ("<think>…</think>\\boxed{…}", "<think>\n@R\n</think>\n\n\\boxed{@A}", ("think", "boxed"), True),
    (
        "<think>…</think><answer>\\boxed{…}</answer>",
        "<think>\n@R\n</think>\n<answer>\n\\boxed{@A}\n</answer>",
        ("think", "boxed"),
        True,
    ),
    ("…</think>\\boxed{…}", "@R\n</think>\n\n\\boxed{@A}", ("think", "boxed"), True),
    ("…</think><answer>…</answer>", "@R\n</think>\n<answer>@A</answer>", ("think", "answer>"), True),
    ("$…$", "$@A$", ("$",), True),
    ("**…**", "@R\n**@A**", ("**",), True),
    ("[[…]]", "@R [[@A]]", ("[[",), True),
    ('{"answer": …}', '{"answer": @J}', ("answer",), True),
    ("fenced code", "```python\n@A\n```", ("```",), True),
    ("fenced JSON", "```json\n@A\n```", ("```",), True),
    ("fence without language", "```\n@A\n```", ("```",), True),
    ("text, then fenced code", "@R\n```python\n@A\n```\n", ("```",), True),
    (
        "<think>…</think> then fenced code",
        "<think>\n@R\n</think>\n```python\n@A\n```",
        ("think", "```"),
        True,
    ),
    ("<answer> with fenced code", "<answer>\n```python\n@A\n```\n</answer>", ("answer>", "```"), True),
    (
        "<think>, <answer> with fenced code",
        "<think>\n@R\n</think>\n<answer>\n```python\n@A\n```\n</answer>",
        ("think", "```"),
        True,
    ),
    ("<tool_call>…</tool_call>", "<tool_call>\n@A\n</tool_call>", ("tool_call",), True),
)


_SHAPES: tuple[tuple[str, str], ...] = (
    ("numbered steps", "Step 1: @R\nStep 2: @R\nStep 3: @R\n@A"),
    ("numbered list", "1. @R\n2. @R\n3. @R\n@A"),
    ("bullet list", "- @R\n- @R\n- @R\n@A"),
    ("connectives", "First, @R\nSecond, @R\nNext, @R\nThen, because of that, @R\nTherefore @R\nFinally, @A"),
    ("headings", "# Reasoning\n@R\n\n## Answer\n@A"),
    ("paragraphs", "@R\n\n@R\n\n@A"),
    ("everything that is counted", f"{COUNTED}\n@R\n@A"),
)
"""Shapes that format rewards without marks look for."""


def shape_forms() -> list[Form]:
    """Return the shapes, for rewards that judge form alone."""
    return [
        Form(name, _plain(template), 60 + rank, False, False) for rank, (name, template) in enumerate(_SHAPES)
    ]


def candidate_forms(source: Source) -> list[Form]:
    """Return the forms to try: the usual ones, and ones made from the reward's own marks and patterns."""
    forms = [_common(rank, *entry, source) for rank, entry in enumerate(_COMMON)]
    forms += _from_tags(source) + _from_markers(source) + _from_json(source) + _from_patterns(source)
    return forms


def _common(
    rank: int, name: str, template: str, hints: tuple[str, ...], structured: bool, source: Source
) -> Form:
    text = " ".join((*source.texts, *source.patterns)).lower()
    hinted = bool(hints) and all(hint in text for hint in hints)
    if "@J" in template:
        return Form(name, _json_writer({"answer": "@A"}), rank, hinted, structured)
    return Form(name, _plain(template), rank, hinted, structured)


def _json_writer(template: dict[str, str], fence: str = "") -> Callable[[str, str], str]:
    def write(reasoning: str, answer: str) -> str:
        filled = {key: _json_value(value, reasoning, answer) for key, value in template.items()}
        text = json.dumps(filled, ensure_ascii=False)
        return f"```{fence}\n{text}\n```" if fence else text

    return write


def _json_value(value: str, reasoning: str, answer: str) -> object:
    if value == "@R":
        return reasoning
    try:
        return json.loads(answer)
    except (ValueError, RecursionError):
        return answer


def _json_text_writer(template: dict[str, str]) -> Callable[[str, str], str]:
    def write(reasoning: str, answer: str) -> str:
        filled = {key: reasoning if value == "@R" else answer for key, value in template.items()}
        return json.dumps(filled, ensure_ascii=False)

    return write


def _from_tags(source: Source) -> list[Form]:
    """Forms from the tags that the source mentions: each alone, and all in order with the answer in the last."""
    tags = [tag for tag in source.tags if len(tag) < 30][:6]
    found = []
    for tag in tags:
        inline = f"<{tag}>@A</{tag}>"
        found.append(Form(f"<{tag}>…</{tag}>", _plain(inline), 40, True))
    if len(tags) > 1:
        orders = [tags, tags[::-1]]
        for order in orders:
            *front, last = order
            head = "".join(f"<{tag}>\n@R\n</{tag}>\n" for tag in front)
            name = "".join(f"<{tag}>" for tag in order)
            found.append(Form(f"{name} in order", _plain(f"{head}<{last}>\n@A\n</{last}>"), 41, True))
            flat = "".join(f"<{tag}>@R</{tag}>" for tag in front)
            found.append(Form(f"{name} on one line", _plain(f"{flat}<{last}>@A</{last}>"), 42, True))
            extra = f"{head}<{last}>\n@A\n</{last}>\n"
            found.append(Form(f"{name} with a final line break", _plain(extra), 43, True))
    return found


def _from_markers(source: Source) -> list[Form]:
    """Forms from short constants such as ``"The final answer is"``."""
    found = []
    for text in source.texts:
        if 2 <= len(text.strip()) <= 40 and _MARKER.search(text) and not re.search(r"[<>\\(\[{?*]", text):
            if re.fullmatch(r"[a-z_]+", text):  # more likely a name than a mark
                continue
            mark = text.strip("\n")
            found.append(Form(f"{mark.strip()} …", _plain(f"@R\n{mark} @A"), 44, True))
            found.append(Form(f"{mark.strip()}…", _plain(f"@R\n{mark}@A"), 45, True))
    return found[:12]


def _from_json(source: Source) -> list[Form]:
    """Forms from the keys that the source reads out of a parsed object."""
    if not source.mentions_json:
        return []
    keys = [key for key in source.keys if re.fullmatch(r"[\w -]{1,30}", key)]
    listed = [
        text
        for text in source.texts
        if re.fullmatch(r"[a-z_]{2,24}", text) and text not in keys and f'"{text}"' in source.text
    ]
    found = []
    for key in keys[:8]:
        found.append(Form(f'{{"{key}": …}}', _json_writer({key: "@A"}), 46, True))
        found.append(Form(f'{{"{key}": "…"}}', _json_text_writer({key: "@A"}), 47, True))
        found.append(Form(f'fenced {{"{key}": …}}', _json_writer({key: "@A"}, "json"), 48, True))
    for keys_tried in (keys, listed, [*keys, *listed]):
        found += _typed_objects(tuple(dict.fromkeys(keys_tried))[:4])
    several = list(dict.fromkeys([*keys, *listed]))[:8]
    for answer_key in several if len(several) > 1 else []:
        template = {key: "@A" if key == answer_key else "@R" for key in several}
        found.append(Form(f"object with {', '.join(several)}", _json_writer(template), 49, True))
        pair = {
            key: template[key] for key in several if key == answer_key or re.search("reason|think|expl", key)
        }
        found.append(Form(f"object with {', '.join(pair)}", _json_writer(pair), 49, True))
    return found


def _typed_objects(keys: tuple[str, ...]) -> list[Form]:
    """Objects whose values are a text or a number each, for schemas that check types alone."""
    found = []
    for kinds in itertools.product((0, 1), repeat=len(keys)) if keys else ():
        value = {key: 42 if kind else "@R" for key, kind in zip(keys, kinds, strict=True)}
        types = ", ".join(
            f"{key}: {'number' if kind else 'text'}" for key, kind in zip(keys, kinds, strict=True)
        )
        found.append(Form(f"object with {types}", _fixed_json(value), 52, True))
    return found


def _fixed_json(value: dict[str, Any]) -> Callable[[str, str], str]:
    def write(reasoning: str, answer: str) -> str:
        del answer
        filled = {key: reasoning[:40] if entry == "@R" else entry for key, entry in value.items()}
        return json.dumps(filled, ensure_ascii=False)

    return write


def _from_patterns(source: Source) -> list[Form]:
    """Forms made from the reward's own regular expressions."""
    found = []
    for pattern in source.patterns[:10]:
        for template in matching_texts(pattern, "@A", "@R"):
            if "@A" not in template and "@R" not in template:
                continue
            if template.strip() == "@A":
                continue
            found.append(Form(f"text for {pattern[:40]!r}", _plain(template), 50, True))
            found.append(Form(f"text, then {pattern[:40]!r}", _plain(f"@R\n{template}"), 51, True))
    return found


def best_forms(paid: Iterable[tuple[Form, float]], limit: int = 3, *, boxed: bool = False) -> list[Form]:
    """Return the best-paid forms: hinted ones first, then plainer ones.

    Args:
        paid: Forms with their mean score.
        limit: How many to return at most.
        boxed: Whether a box comes before plain text, as is usual for formulas.
    """
    entries = list(paid)
    if not entries:
        return []
    top = max(score for _, score in entries)
    best = [form for form, score in entries if score >= top - 1e-9]
    return sorted(best, key=lambda form: (not form.hinted, boxed and "boxed" not in form.name, form.rank))[
        :limit
    ]


def distinct(forms: Sequence[Form]) -> list[Form]:
    """Return the forms without those that write the same text."""
    seen: dict[str, Form] = {}
    for form in forms:
        seen.setdefault(form("@A", "@R"), form)
    return list(seen.values())
