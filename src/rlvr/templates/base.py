"""What a template is, and how it becomes files; pure: the same seed gives the same bytes."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

SEED = 3407
TRAINING_ROWS = 400
HELD_OUT_ROWS = 150
DEFAULT_MODEL = "Qwen/Qwen2.5-0.5B-Instruct"
"""Half a billion parameters, Apache-2.0: fits any card and, with patience, a laptop."""
NEWLINES = "\n"
TINY = "tiny"
TINY_FOLDER = "model"


@dataclass(frozen=True)
class Item:
    """One prompt.

    Attributes:
        prompt: As the model reads it.
        columns: What the rewards need.
        right: A completion that succeeds.
        wrong: Well-formed completions that fail, for the tiny model's demonstrations.
        broken: Completions out of form.
    """

    prompt: str
    columns: Mapping[str, Any]
    right: str
    wrong: Sequence[str]
    broken: Sequence[str]


@dataclass(frozen=True)
class Template:
    """One kind of task.

    Attributes:
        name: As ``--template`` has it.
        summary: The task in one line.
        signal: What decides success.
        rewards: The ``rewards`` section as YAML with comments.
        system_prompt: Instructions for a model that was not taught this form.
        make: Draws one item.
        completion_length: Cap on completions of an ordinary model, in tokens.
        tiny_length: The same for the tiny model, whose tokens are characters.
        evaluation: The ``evaluation`` section as YAML; empty for none.
        tiny_rewards: The ``rewards`` section for the tiny model, where it must differ.
        files: Further files of the workspace.
    """

    name: str
    summary: str
    signal: str
    rewards: str
    system_prompt: str
    make: Callable[[random.Random], Item]
    completion_length: int
    tiny_length: int
    evaluation: str = ""
    tiny_rewards: str = ""
    files: Mapping[str, str] = field(default_factory=dict)

    def items(self, seed: int = SEED) -> tuple[list[Item], list[Item]]:
        """Return distinct training items and held-out items; no prompt is in both."""
        rng = random.Random(seed)  # noqa: S311  # data, not a secret
        found: dict[str, Item] = {}
        wanted = TRAINING_ROWS + HELD_OUT_ROWS
        for _ in range(50 * wanted):
            item = self.make(rng)
            found.setdefault(item.prompt, item)
            if len(found) == wanted:
                break
        kept = list(found.values())
        return kept[:TRAINING_ROWS], kept[TRAINING_ROWS:]

    def workspace_files(self, model: str) -> dict[str, bytes]:
        """Return every file of the workspace by its path."""
        training, held_out = self.items()
        texts = {
            "rlvr.yaml": self.config(model),
            "prompts.jsonl": _rows(training),
            "held_out.jsonl": _rows(held_out),
        }
        return {name: text.encode() for name, text in {**texts, **self.files}.items()}

    def config(self, model: str) -> str:
        """Return ``rlvr.yaml``, with a comment on everything that a newcomer may want to change."""
        is_tiny = model == TINY
        parts = [
            _HEAD.format(summary=self.summary, model=_model_lines(model), signal=self.signal),
            f"rewards:\n{self._rewards(is_tiny).strip(NEWLINES)}\n",
            self._sampling(is_tiny),
            _TINY_GATES if is_tiny else _GATES,
        ]
        if self.evaluation:
            parts.append(f"evaluation:\n{self.evaluation.strip(NEWLINES)}\n")
        parts.append(_TINY_RECIPE if is_tiny else _RECIPE)
        return "\n".join(parts)

    def _rewards(self, is_tiny: bool) -> str:
        return self.tiny_rewards if is_tiny and self.tiny_rewards else self.rewards

    def _sampling(self, is_tiny: bool) -> str:
        if is_tiny:
            return f"sampling:\n  max_completion_length: {self.tiny_length}    # tokens, here characters\n"
        wrapped = self.system_prompt.strip().replace("\n", "\n    ")
        return (
            f"sampling:\n  system_prompt: |-\n    {wrapped}\n"
            f"  max_completion_length: {self.completion_length}    # tokens; "
            "without it the plan follows the probe's lengths\n"
        )


def demonstration(item: Item, rng: random.Random) -> str:
    """Return one completion for the tiny model to imitate: right in four of ten, wrong in four, broken in two."""
    kind = rng.choices(("right", "wrong", "broken"), (0.4, 0.4, 0.2))[0]
    if kind == "right":
        return item.right
    return rng.choice(list(item.wrong if kind == "wrong" else item.broken))


def _model_lines(model: str) -> str:
    if model == TINY:
        return f"model: ./{TINY_FOLDER}    # the embedded model of 0.2 million parameters, taught this task by halves"
    return f"model: {model}    # a Hub id, a local folder or a .gguf file"


def _rows(items: Sequence[Item]) -> str:
    return "".join(
        json.dumps({"prompt": item.prompt, **item.columns}, ensure_ascii=True) + "\n" for item in items
    )


_HEAD = """\
# {summary}
# `rlvr status` shows every gate and the next command.

{model}

task:
  prompts: prompts.jsonl      # one JSON object a line: "prompt", and the columns that the rewards read
  held_out: held_out.jsonl    # never trained on; the gain is measured here
  signal: {signal}    # what decides success
"""
_GATES = """\
gates:
  probe: {prompts: 400, rollouts: 8, rollout_prompts: 64}    # completions sampled before anything trains
  inspect: {samples: 60}    # what a person reads before anything trains
"""
_TINY_GATES = """\
gates:
  probe: {prompts: 200, rollouts: 8, rollout_prompts: 64}    # completions sampled before anything trains
  inspect: {samples: 60}    # what a person reads before anything trains
"""
_RECIPE = """\
# method: lora              # full, lora or qlora; `rlvr plan` says what fits
# hardware: detect          # or 1xH200, 4xL4, dgx-spark, cpu

# The recipe comes from `rlvr plan`, each value with its reason. A departure needs one too:
# recipe:
#   overrides:
#     max_steps: {value: 200, why: a first look before the whole data set}
"""
_TINY_RECIPE = """\
recipe:
  overrides:
    learning_rate:
      value: 1e-3
      why: a model of 0.2 million parameters moves too little at 5e-7 to show anything in a minute
      before_base_run: true
    beta:
      value: 0.0
      why: a reference model doubles the forward passes, and the habits to leave are the taught ones
      before_base_run: true
    per_device_train_batch_size:
      value: 64
      why: eight prompts of eight completions in one forward pass
    gradient_accumulation_steps:
      value: 1
      why: the batch of 64 fits in memory at once
    max_steps:
      value: 100
      why: enough for most of the gain of so small a model
    warmup_steps:
      value: 10
      why: without warm-up this learning rate can collapse to reward 0
    lr_scheduler_type:
      value: linear
      why: the step shrinks as the policy sharpens
    gradient_checkpointing:
      value: false
      why: recomputing is slower than keeping activations of a model this small
    bf16:
      value: false
      why: fp32 is faster for so small a model on a CPU
    logging_steps:
      value: 5
      why: twenty points draw a curve
"""
