"""The demo as an ordinary workspace, written to disk; and whether a workspace is that one, untouched.

Only there does a simulated reader count. The test is by content: configuration and data must be, byte for byte,
what the demo writes for its seed.
"""

from __future__ import annotations

import json
from pathlib import Path

from rlvr.demo.marker import MARKER, mark
from rlvr.demo.task import Question, questions
from rlvr.workspace import CONFIG_NAME, write_atomic

PROMPTS = "prompts.jsonl"
HELD_OUT = "held_out.jsonl"
MODEL = "model"
STEPS = 150

CONFIG = """\
# The embedded demo: sort four digits, answer inside <answer></answer>.
model: ./model
task:
  prompts: prompts.jsonl
  held_out: held_out.jsonl
  signal: answer
rewards:
  - use: exact            # right or wrong: the last complete <answer> equals the reference
    name: correct
  - use: tags             # well-formed or not: exactly one answer block and nothing around it
    name: well_formed
    arguments: {{layout: answer}}
sampling:
  max_completion_length: 16
  seed: {seed}
gates:
  probe: {{prompts: 300, rollouts: 8, rollout_prompts: 64}}
recipe:
  overrides:
    learning_rate:
      value: 1e-3
      why: a model of 0.2 million parameters moves too little at 5e-7 to show anything in a minute
      before_base_run: true
    beta:
      value: 0.0
      why: the point is to leave the fine-tuned habits behind, and a reference model doubles the forward passes
      before_base_run: true
    per_device_train_batch_size:
      value: 64
      why: eight prompts of eight completions in one forward pass, which is what two CPU cores do best
    gradient_accumulation_steps:
      value: 1
      why: the batch of 64 fits in memory at once
    max_steps:
      value: {steps}
      why: measured as enough for most of the gain, about ten seconds
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
      why: thirty points draw a curve
"""


def config_text(seed: int) -> str:
    """Return the demo's rlvr.yaml."""
    return CONFIG.format(seed=seed, steps=STEPS)


def write_workspace(folder: Path, seed: int) -> list[Question]:
    """Write configuration and data; returns the training questions."""
    for name, content in _expected("tiny", seed).items():
        write_atomic(folder / name, content)
    mark(folder, "tiny", seed)
    return questions(seed)[0]


def is_demo(folder: Path) -> bool:
    """Return whether configuration and data are, byte for byte, those of one of the demos."""
    try:
        marker = json.loads((folder / MARKER).read_text())
        expected = _expected(marker["kind"], int(marker["seed"]))
        return all((folder / name).read_bytes() == content for name, content in expected.items())
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _expected(kind: str, seed: int) -> dict[str, bytes]:
    if kind == "real":
        from rlvr.demo.real import workspace_files

        return workspace_files(seed)
    training, held_out = questions(seed)
    return {CONFIG_NAME: config_text(seed).encode(), PROMPTS: _rows(training), HELD_OUT: _rows(held_out)}


def _rows(found: list[Question]) -> bytes:
    lines = (json.dumps({"prompt": one.prompt, "answer": one.answer}) for one in found)
    return ("\n".join(lines) + "\n").encode()
