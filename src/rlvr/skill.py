"""The skill for coding agents, generated from the same tables that the commands use.

``python -m rlvr.skill`` writes ``skills/grpo-rlvr-training/SKILL.md``; a test fails when the file differs.
"""

# ruff: noqa: E501  # the lines of a page, not of code
from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from rlvr.gates import CHAIN, COMMANDS, DEPENDS
from rlvr.plan.recipe import ACCUMULATION, GENERATIONS, LEARNING_RATE, LOGGING_STEPS, MICRO_BATCH
from rlvr.templates import TEMPLATES
from rlvr.variants import VARIANTS, Variant

PAGE = "skills/grpo-rlvr-training/SKILL.md"
"""File that is written, relative to the repository."""

DECISIONS: dict[str, str] = {
    "admit": "Exit 3 names the method that fits instead (`refusals[].route`). Go there and stop here.",
    "audit": "Every finding holds the completion that exposes it. Mend the reward, run it again. Never weaken the "
    "audit; a finding that must stand goes into `gates.audit.baseline` with a reason, by a person.",
    "probe": "`no support` and `rare`: let a person read ten zeros, then follow `route`. `undecided`: sample "
    "`more_samples` more. `saturated`: bring harder prompts. `sweet spot`: go on.",
    "inspect": "**Stop. Fetch a person.** You must not read in their place, label, script keys, or edit anything under "
    "`gates/inspect`. Give them the command; with SSH alone, `rlvr inspect --terminal`. Wait for exit 0.",
    "plan": "`does-not-fit`: apply the first of `remedies` that the user accepts (`change` is the YAML). `tight`: "
    "rehearse.",
}
"""Gate to what an agent does with its answer."""

RUN_ORDER: tuple[tuple[str, str], ...] = (
    ("rlvr doctor --json", "what this machine can do"),
    ("rlvr check --json", "configuration, data, references, admission; a second, no model"),
    ("rlvr audit --json", "attack the reward by program"),
    ("rlvr probe --json", "sample once, keep, judge"),
    ("rlvr gate inspect --json", "has a person read? exit 3: stop here and fetch one"),
    ("rlvr plan --json", "memory, and every setting with its reason"),
    ("rlvr train --rehearse --json", "two steps at full length; weights are thrown away"),
    ("rlvr train --name base-2 --json", "the run; exit 3 while a gate is not passed"),
    ("rlvr watch base-2 --json", "symptoms; a person reads on-policy samples before any of them is acted on"),
    ("rlvr eval base-2 --json", "held-out accuracy with its interval"),
    ("rlvr report base-2 --json", "the verdict in one sentence, and the page"),
    ("rlvr export handover --require-passed --json", "files for plain TRL, and the brief"),
)
"""Every command of the skill in order, as a test runs them on the demo's workspace, and what each is for."""

HEAD = """\
---
name: grpo-rlvr-training
description: Train a language model by reinforcement learning on verifiable rewards (GRPO, RLVR) with the rlvr command \
line. Use when a program can decide whether a completion is right (unit tests, an exact answer, a JSON schema, a tool \
call, a parser) and someone wants to train on that, debug a GRPO run, write or check reward functions, or size a run. \
Not for preferences (DPO), demonstrations (SFT) or open-ended quality.
---

# GRPO on verifiable rewards

This page is generated from the code by `python -m rlvr.skill`; a test runs its commands in order.

## When this applies
Reinforcement learning brings out what a model can already do sometimes; it does not teach what never occurs. All of
these must hold, and the gates check them:
1. **A program decides success**: unit tests, an answer, a JSON schema, a tool call, a parser. Preferences go to
   preference-optimization (DPO), demonstrations to lora-qlora-recipes (SFT), judgement without a calibrated judge to
   eval-harness-first. Images in the data are refused: vision-language RL is reference-only here.
2. **The base model succeeds sometimes, not always**: between about 5% and 95% of samples, over distinct prompts.
3. **The reward survives attack, and a person who reads scored samples agrees with it.**

## How to drive it
Work by the state, never by memory: `rlvr status --json` prints `{passed, next, gates}`, and `next` is the exact next
command. Every command takes `--json` (one object on standard output, the rest on standard error).

| exit | meaning | do |
|---|---|---|
| 0 | done | run `next` |
| 2 | usage, configuration or data | read `error.found`, `error.expected`, `error.fix`; change the file it names |
| 3 | a gate refused | read `gates[].why`; do what the gate asks, never around it |
| 4 | infrastructure | free the resource, run the same command again; what was done is kept |
| 130 | interrupted | the same command goes on from there; `rlvr train --resume` for a run |
"""


def skill_text() -> str:
    """Return the whole page."""
    parts = [HEAD, _start(), _gates(), _order(), _inspection(), _recipe(), _variants(), _tail()]
    return "\n".join(part.rstrip() + "\n" for part in parts)


def commands() -> list[str]:
    """Return the commands of the page in the order in which a test runs them."""
    return [command for command, _ in RUN_ORDER]


def _start() -> str:
    names = "|".join(TEMPLATES)
    return f"""\
## Start
`rlvr init FOLDER --template {names}` writes a workspace that runs as it stands; put the user's prompts and reward in
their place. A reward of the user's is a plain function `def correct(prompts, completions, answer, **columns)` that
returns one float or None a completion, named in `rlvr.yaml` as `use: reward.py:correct`. See
[references/reward-functions.md](references/reward-functions.md). Put the decision that led here under `task.routing`
(`method`, `signal`, `by`, `why`): it is checked against the data and handed on in the brief.
"""


def _gates() -> str:
    lines = [
        "## Gates",
        "| gate | command | goes stale with | what you do with its answer |",
        "|---|---|---|---|",
    ]
    for name in CHAIN:
        parts = ", ".join(DEPENDS[name]) or "never: computed afresh"
        lines.append(f"| {name} | `{COMMANDS[name]}` | {parts} | {DECISIONS[name]} |")
    lines.append(
        "\nAfter a change of the reward alone, `rlvr probe --rescore` and `rlvr inspect --rescore` refresh what was "
        "sampled, in seconds and without a model; then at least 20 unread samples are read by the person."
    )
    return "\n".join(lines)


def _order() -> str:
    width = max(len(command) for command, _ in RUN_ORDER)
    lines = [f"{command:<{width}}    # {what}" for command, what in RUN_ORDER]
    return "\n".join(
        [
            "## In order",
            "In the folder that holds `rlvr.yaml` (`rlvr demo --output FOLDER` makes one to practise on, offline):",
            "```sh",
            *lines,
            "```",
        ]
    )


def _inspection() -> str:
    return """\
## The inspection rule
Nothing trains unread. A person reads 50 to 100 scored samples, blind, and must agree with the reward on all of them;
20 completions of the run itself are read before any variant, before any change of learning rate, and before a gain is
called *improved* (until then the report says *improved, unread*). It cannot be waived, and an agent cannot stand in:
tell the user what to run (`rlvr inspect`, later `rlvr inspect --run RUN`), why, and how long it takes (a quarter to
half an hour), and stop. A disagreement is closed by mending the reward and `--rescore`, or by the reader with a reason.
"""


def _recipe() -> str:
    return f"""\
## The recipe
Plain GRPO through TRL's `GRPOTrainer`; `rlvr plan` writes every value with its reason:
`num_generations={GENERATIONS}` (fewer is refused: the group mean is the baseline), `learning_rate={LEARNING_RATE["full"]:g}`
for full tuning and `{LEARNING_RATE["lora"]:g}` for adapters, `beta=0.01`, `per_device_train_batch_size={MICRO_BATCH}`,
`gradient_accumulation_steps={ACCUMULATION}`, `logging_steps={LOGGING_STEPS}`, `loss_type="grpo"` (TRL 1.16 would choose
`dapo`), fp32 master weights, `use_vllm=True` with `vllm_mode="colocate"` on one GPU. A composite of correctness (weight
1.0) and format (0.2), correctness paid only on a well-formed answer. Memory: [references/grpo-memory.md](references/grpo-memory.md).
Leaving the recipe takes `recipe.overrides.FIELD: {{value, why}}`. Learning rate and beta move only `after: RUN`, an
inspected, stable run; `before_base_run: true` stands in red in every report.
"""


def _variants() -> str:
    lines = [
        "## Variants: one change, on evidence",
        "Never preselect one: their fields are refused as overrides. `rlvr variant RUN` offers one when the run shows its",
        "symptom and 20 on-policy samples were read; `--apply` writes it with its evidence.",
        "",
        "| variant | calls for it | settings |",
        "|---|---|---|",
    ]
    lines += [_variant(variant) for variant in VARIANTS.values()]
    lines.append(
        "\nA mixture-of-experts model gets GSPO in its plan from the start, since token ratios are unsound under "
        "routing. Most symptoms need no variant: length paid by the reward, truncation and hacking are mended in reward "
        "or data."
    )
    return "\n".join(lines)


def _variant(variant: Variant) -> str:
    settings = ", ".join(f"`{name}={setting.value}`" for name, setting in variant.settings.items())
    return f"| {variant.title} (`{variant.name}`) | {_listed(variant.answers)} | {settings} |"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def _tail() -> str:
    return """\
## Vision-language models
A text-only task on a checkpoint that also has a vision tower is fine (the tower stays frozen and is counted in memory).
Images in the data are refused: tooling is split over ms-swift and forks of EasyR1, and text-only GRPO on such a model
learns to ignore the image.

## Handing over
`rlvr export DIR` writes `grpo_config.yaml` for `trl grpo --config`, `train.py`, `rewards.py`, the data, and `brief.json`
(its JSON Schema lies beside it): read `ready`, `next` and `red` before anything else. `--for verl` writes the same task
for a Ray cluster. `--require-passed` refuses while a gate is open.

## Do not
- Do not train, tune or change a reward to make a gate pass; mend what the gate found.
- Do not report training reward as a result. Report `rlvr report --json`: `verdict`, `sentence`, `notes`, `red`.
- Do not raise `max_steps` on a run with a critical symptom; `rlvr watch RUN --json` names what to do first.
"""


def write(root: Path) -> Path:
    """Write the page into a repository and return its path."""
    path = root / PAGE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(skill_text(), encoding="utf-8")
    return path


if __name__ == "__main__":
    sys.stdout.write(f"{write(Path.cwd())}\n")
