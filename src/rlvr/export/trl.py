"""Files for plain TRL: a YAML that ``trl grpo --config`` accepts, and a script that reads as a good example."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rlvr.export.data import as_lines, columns_as_json
from rlvr.export.reward_files import identifier, reward_files

if TYPE_CHECKING:
    from rlvr.export.inputs import ExportInputs

OUTPUT = "output"
PEFT_FIELDS = {
    "r": "lora_r",
    "lora_alpha": "lora_alpha",
    "lora_dropout": "lora_dropout",
    "target_modules": "lora_target_modules",
    "task_type": "lora_task_type",
    "use_rslora": "use_rslora",
}
"""``peft.LoraConfig`` argument to the field of TRL's ``ModelConfig`` that sets it."""


def trl_files(inputs: ExportInputs) -> dict[str, bytes]:
    """Return every file of the TRL export except the brief."""
    as_json = columns_as_json(inputs.training, inputs.held_out)
    files = {
        "grpo_config.yaml": grpo_yaml(inputs).encode(),
        "train.py": train_script(inputs).encode(),
        "data/train.jsonl": as_lines(inputs.training, as_json),
        **reward_files(inputs, as_json),
    }
    if inputs.chat_template:
        files["chat_template.jinja"] = inputs.chat_template.encode()
    if inputs.held_out:
        files["data/held_out.jsonl"] = as_lines(inputs.held_out, as_json)
    return files


def settings(inputs: ExportInputs) -> dict[str, tuple[Any, str]]:
    """Return field of GRPOConfig to (value, reason), with this export's own output folder and weights."""
    found = {name: (one.value, one.why) for name, one in inputs.plan.settings.items()}
    found["output_dir"] = (OUTPUT, "checkpoints and the trained model")
    found["reward_weights"] = (list(inputs.weights.values()), "in the order of the reward functions")
    return found


def grpo_yaml(inputs: ExportInputs) -> str:
    """Return the configuration for ``trl grpo --config grpo_config.yaml``."""
    names = ", ".join(f"rewards.{identifier(name)}" for name in inputs.weights)
    template = (
        "# The chat template of this task is set by train.py alone: this file trains with the model's own."
    )
    head = [
        *([template] if inputs.chat_template else []),
        f"# GRPO for {inputs.name}, planned by rlvr {inputs.version}. Run in this folder:",
        "#   trl grpo --config grpo_config.yaml",
        "",
        f"model_name_or_path: {yaml_value(inputs.model)}",
        "datasets: [{path: json, data_files: data/train.jsonl, split: train}]",
        f"reward_funcs: [{names}]    # rewards.py beside this file",
    ]
    lines = head + _peft_lines(inputs)
    for name, (value, why) in settings(inputs).items():
        lines += ["", *(f"# {line}" for line in textwrap.wrap(why, 100)), f"{name}: {yaml_value(value)}"]
    return "\n".join(lines) + "\n"


def _peft_lines(inputs: ExportInputs) -> list[str]:
    method = inputs.plan.method
    if not method.lora:
        return []
    lines = ["", "use_peft: true"]
    for name, field in PEFT_FIELDS.items():
        if name in method.lora:
            value = method.lora[name]
            listed = [value] if field == "lora_target_modules" and isinstance(value, str) else value
            lines.append(f"{field}: {yaml_value(listed)}")
    if method.quantization.get("load_in_4bit"):
        lines += [
            "load_in_4bit: true",
            f"bnb_4bit_quant_type: {method.quantization.get('bnb_4bit_quant_type', 'nf4')}",
        ]
    return lines


def yaml_value(value: Any) -> str:
    """Return a value that YAML 1.1 reads back as itself: 5e-7 without a dot would become a string."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, float):
        text = repr(value)
        mantissa, exponent, rest = text.partition("e")
        return f"{mantissa}.0e{rest}" if exponent and "." not in mantissa else text
    if isinstance(value, list | tuple):
        return f"[{', '.join(yaml_value(one) for one in value)}]"
    if isinstance(value, Mapping):
        return (
            "{" + ", ".join(f"{_yaml_text(str(key))}: {yaml_value(one)}" for key, one in value.items()) + "}"
        )
    return _yaml_text(value) if isinstance(value, str) else str(value)


def _yaml_text(text: str) -> str:
    """Return text in double quotes: JSON's form, but YAML knows no surrogate pairs."""
    return "".join(f"\\U{ord(one):08X}" if ord(one) > 0xFFFF else json.dumps(one)[1:-1] for one in text).join(
        '""'
    )


SCRIPT = '''\
"""GRPO for {name}, planned by rlvr {version}. It needs TRL and the files beside it: `python train.py`.

{summary}
"""

from pathlib import Path

{imports}from datasets import load_dataset
{transformers}from trl import GRPOConfig, GRPOTrainer

from rewards import REWARDS

HERE = Path(__file__).resolve().parent

{tokenizer_function}
def main():
    """Train, then save the model into output/."""
    train = load_dataset("json", data_files=str(HERE / "data" / "train.jsonl"), split="train")
    config = GRPOConfig(
{settings}
    )
    trainer = GRPOTrainer(
        model={model!r},
        reward_funcs=REWARDS,
        args=config,
        train_dataset=train,{tokenizer}{peft}
    )
    trainer.train()
    trainer.save_model(config.output_dir)


if __name__ == "__main__":
    main()
'''


TOKENIZER = '''
def tokenizer():
    """Return the tokenizer with the chat template that the probe sampled through."""
    found = AutoTokenizer.from_pretrained({model!r})
    found.chat_template = (HERE / "chat_template.jinja").read_text("utf-8")
    return found

'''


def train_script(inputs: ExportInputs) -> str:
    """Return the text of ``train.py``: every keyword argument with its reason."""
    method = inputs.plan.method
    memory = inputs.plan.memory
    gib = 1024**3
    summary = textwrap.fill(
        f"Planned for {inputs.plan.device}: {memory.verdict.replace('-', ' ')}, "
        f"{memory.band_bytes[0] / gib:.1f} to {memory.band_bytes[1] / gib:.1f} GiB of "
        f"{memory.capacity_bytes / gib:.1f} GiB. brief.json beside this file holds the evidence: what was probed, "
        "attacked and read before, and what is stale.",
        110,
    )
    return SCRIPT.format(
        name=inputs.name,
        version=inputs.version,
        summary=summary,
        model=inputs.model,
        settings=_script_settings(inputs),
        peft=_script_peft(inputs),
        tokenizer="\n        processing_class=tokenizer()," if inputs.chat_template else "",
        tokenizer_function=TOKENIZER.format(model=inputs.model) if inputs.chat_template else "",
        imports="import torch\n" if method.quantization else "",
        transformers=_imports(inputs),
    )


def _imports(inputs: ExportInputs) -> str:
    lines = "from peft import LoraConfig\n" if inputs.plan.method.lora else ""
    return lines + (
        "from transformers import BitsAndBytesConfig\n" if inputs.plan.method.quantization else ""
    )


def _script_settings(inputs: ExportInputs) -> str:
    lines = []
    for name, (value, why) in settings(inputs).items():
        shown = 'str(HERE / "output")' if name == "output_dir" else repr(value)
        if name == "model_init_kwargs" and inputs.plan.method.quantization:
            shown = _quantized(value or {}, inputs.plan.method.quantization)
        lines += [f"        # {line}" for line in textwrap.wrap(why, 98)]
        lines.append(f"        {name}={shown},")
    return "\n".join(lines)


def _quantized(given: Mapping[str, Any], quantization: Mapping[str, Any]) -> str:
    arguments = ", ".join(
        f"{name}={f'torch.{value}' if name.endswith('dtype') else repr(value)}"
        for name, value in quantization.items()
    )
    return f"{{**{dict(given)!r}, 'quantization_config': BitsAndBytesConfig({arguments})}}"


def _script_peft(inputs: ExportInputs) -> str:
    if not inputs.plan.method.lora:
        return ""
    arguments = ", ".join(f"{name}={value!r}" for name, value in inputs.plan.method.lora.items())
    return f"\n        peft_config=LoraConfig({arguments}),"
