"""The reference of the built-in rewards, generated from their classes and from examples that the tests run.

``python -m rlvr.rewards.reference`` writes ``docs/reward-functions.md`` and the agents' copy under ``skills/``.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

from rlvr.rewards import BUILTINS
from rlvr.rewards.reference_notes import NOTES, Notes, Shown

PAGES = ("docs/reward-functions.md", "skills/grpo-rlvr-training/references/reward-functions.md")
"""Files that are written, relative to the repository."""


@dataclass(frozen=True, slots=True)
class Description:
    """What is known of one built-in reward.

    Attributes:
        name: Name in ``rlvr.yaml``.
        kind: Its class.
        role: Role of a component that states none.
        summary: First line of its documentation.
        text: The rest of it, up to the arguments.
        arguments: Argument to (default, meaning).
        notes: Examples, what it refuses, and its limits.
    """

    name: str
    kind: type[Any]
    role: str
    summary: str
    text: str
    arguments: dict[str, tuple[str, str]]
    notes: Notes

    def as_dict(self) -> dict[str, Any]:
        """Return what ``rlvr rewards list --json`` prints."""
        return {
            "name": self.name,
            "role": self.role,
            "summary": self.summary,
            "arguments": {
                key: {"default": default, "meaning": meaning}
                for key, (default, meaning) in self.arguments.items()
            },
            "refuses": list(self.notes.refuses),
            "limits": list(self.notes.limits),
        }


def describe_all() -> list[Description]:
    """Return the description of every built-in reward, by name."""
    return [describe(name) for name in sorted(BUILTINS)]


def describe(name: str) -> Description:
    """Return the description of one built-in reward."""
    place, _, attribute = BUILTINS[name].partition(":")
    kind = getattr(importlib.import_module(place), attribute)
    documentation = (inspect.getdoc(kind) or "").replace("``", "`")
    head, _, attributes = documentation.partition("Attributes:")
    summary, _, text = head.strip().partition("\n\n")
    meanings = _meanings(attributes) | {
        key: meaning for key, meaning in _COMMON.items() if key in {one.name for one in fields(kind)}
    }
    defaults = {one.name: _default(one) for one in fields(kind) if one.init}
    arguments = {
        key: (default, meanings.get(key, ""))
        for key, default in defaults.items()
        if key != "folder" and key in meanings
    }
    return Description(name, kind, kind.role, " ".join(summary.split()), text.strip(), arguments, NOTES[name])


_COMMON = {
    "reference": "Column that holds each prompt's reference.",
    "name": "Name under which it is logged.",
}


def _meanings(attributes: str) -> dict[str, str]:
    """Read the ``Attributes:`` section of a docstring: name to text."""
    found: dict[str, str] = {}
    name = ""
    for line in attributes.splitlines():
        entry = re.match(r"    (\w+): (.*)", line)
        if entry:
            name = entry.group(1)
            found[name] = entry.group(2)
        elif name and line.strip():
            found[name] += " " + line.strip()
    return found


def _default(one: Any) -> str:
    if one.default is not MISSING:
        return repr(one.default)
    return repr(one.default_factory()) if one.default_factory is not MISSING else "required"


def page() -> str:
    """Return the whole reference as Markdown."""
    parts = [_HEAD, "\n".join(f"- [`{one.name}`](#{one.name}): {one.summary}" for one in describe_all())]
    parts += [_section(one) for one in describe_all()]
    parts.append(_TAIL)
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _section(one: Description) -> str:
    lines = [f"## {one.name}", one.summary, one.text]
    lines.append(f"Role: {one.role}. In `rlvr.yaml`:\n\n```yaml\n{one.notes.yaml.strip()}\n```")
    lines.append(f"In plain TRL:\n\n```python\n{one.notes.python.strip()}\n```")
    if one.notes.shown:
        lines.append(
            _table(("Completion", "Reference", "Verdict", "Why"), [_row(shown) for shown in one.notes.shown])
        )
    lines.append("Refused: " + "; ".join(one.notes.refuses) + ".")
    lines.append("Known limits: " + "; ".join(one.notes.limits) + ".")
    rows = [(f"`{key}`", f"`{default}`", meaning) for key, (default, meaning) in one.arguments.items()]
    lines.append(_table(("Argument", "Default", "Meaning"), rows))
    return "\n\n".join(line for line in lines if line)


def _row(shown: Shown) -> tuple[str, str, str, str]:
    return (
        _code(shown.completion),
        _code(shown.reference),
        "right" if shown.accepted else "refused",
        shown.why,
    )


def _code(value: Any) -> str:
    text = str(value).replace("\n", "⏎").replace("|", "\\|")
    if not text:
        return "(empty)"
    mark = "``" if "`" in text else "`"
    return f"{mark} {text} {mark}" if "`" in text else f"{mark}{text}{mark}"


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


_HEAD = """
# Reward functions

This page is generated from the code by `python -m rlvr.rewards.reference`; its examples are run by the tests.

Every built-in reward is a picklable callable with TRL's signature `(prompts, completions, **columns)` that returns a
float or None a completion, for strings and for chat messages. `verdict(completion, reference)` says how one
completion was read. Outcomes are *right*, *wrong*, *ill-formed* (nothing could be read), *not-applicable* (None) and
*infrastructure* (the verifier itself failed: the row must not train anything). Thinking text is never searched for an
answer, and end tokens at the end of a text never fail a match.
"""

_TAIL = """
## Several rewards together

`Scorer` evaluates all components of a batch once and keeps the order *well-formed and right > well-formed and
wrong > ill-formed*: correctness is paid only where the format components found nothing wrong. Where a component could
not judge a row because something outside the task failed, every component of that row is None, since TRL sums with
`nansum` and would otherwise train on what is left. Default weights: correctness 1.0, format 0.2, length 0.2.

```python
from trl import GRPOConfig, GRPOTrainer

from rlvr.rewards import load_reward
from rlvr.rewards.composite import Component, Scorer

scorer = Scorer(
    [
        Component("math", load_reward("math"), weight=1.0),
        Component("tags", load_reward("tags"), weight=0.2, role="format"),
    ]
)
arguments = GRPOConfig(output_dir="out", reward_weights=scorer.weights())
trainer = GRPOTrainer("MODEL", scorer.reward_functions(), args=arguments, train_dataset=data)
```

## Your own

`use: rewards.py:my_reward` names a function of a file in the workspace, `use: package.module:my_reward` one that is
installed. It takes `(prompts, completions, **columns)` and returns one number or None a completion. An exception
loses only the rows on which it is raised: they become None, named with component, row and value. A float counts as
right at or above `cut` (default 1.0, the full score).

```python
def my_reward(prompts, completions, answer, **kwargs):
    texts = [completion if isinstance(completion, str) else completion[-1]["content"] for completion in completions]
    return [1.0 if text.strip().endswith(gold) else 0.0 for text, gold in zip(texts, answer)]
```
"""


def main(root: Path = Path()) -> None:
    """Write the pages under ``root``, the repository."""
    for name in PAGES:
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path())
