"""How close the memory estimates come to real runs of TRL's trainer on a CPU.

    python benchmarks/memory.py                 every row; writes benchmarks/results/memory.md
    python benchmarks/memory.py --row NAME      one row, in this process, as JSON

Each row trains a small random model by ``GRPOTrainer.train()`` in a process of its own. The truth is the profiler's
allocator events during training on top of the storages that existed before it. Rows marked *held out* were looked at
only after the closed form was finished.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results" / "memory.md"
SMALL = {"hidden_size": 256, "num_hidden_layers": 6, "intermediate_size": 768, "vocab_size": 8192}
LARGE = {"hidden_size": 512, "num_hidden_layers": 10, "intermediate_size": 1408, "vocab_size": 32000}
WIDE = {"hidden_size": 384, "num_hidden_layers": 8, "intermediate_size": 1024, "vocab_size": 16000}


@dataclass(frozen=True)
class Row:
    """One configuration."""

    name: str
    sizes: dict[str, int]
    method: str = "full"
    bf16: bool = False
    beta: float = 0.0
    checkpointing: bool = True
    micro: int = 8
    accumulation: int = 1
    prompt: int = 64
    completion: int = 64
    family: str = "llama"
    tied: bool = True
    held_out: bool = False


ROWS = [
    Row("full-fp32", SMALL),
    Row("full-fp32-no-checkpoint", SMALL, checkpointing=False),
    Row("full-fp32-beta", SMALL, beta=0.04),
    Row("full-bf16", SMALL, bf16=True),
    Row("lora-fp32", SMALL, method="lora"),
    Row("lora-fp32-beta-no-checkpoint", SMALL, method="lora", beta=0.04, checkpointing=False),
    Row("large-full-fp32", LARGE),
    Row("large-full-bf16-no-checkpoint", LARGE, bf16=True, checkpointing=False),
    Row("large-lora-bf16", LARGE, method="lora", bf16=True),
    Row("large-full-accumulated", LARGE, accumulation=2),
    Row("wide-qwen3-full-fp32", WIDE, family="qwen3", held_out=True, beta=0.04, completion=96),
    Row("wide-qwen3-lora-bf16", WIDE, family="qwen3", method="lora", bf16=True, held_out=True, prompt=32),
    Row("wide-qwen2-full-bf16-accumulated", WIDE, family="qwen2", bf16=True, accumulation=2, held_out=True),
    Row("wide-llama-untied-no-checkpoint", WIDE, tied=False, checkpointing=False, micro=16, held_out=True),
]


def model_config(row: Row) -> dict[str, Any]:
    """Return the model's configuration."""
    return {
        "model_type": row.family,
        **row.sizes,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": row.sizes["hidden_size"] // 8,
        "max_position_embeddings": 1024,
        "tie_word_embeddings": row.tied,
    }


def run_shape(row: Row) -> Any:
    """Return the estimator's view of a row."""
    from rlvr.plan.memory.architecture import read_architecture
    from rlvr.plan.memory.shape import RunShape

    return RunShape(
        architecture=read_architecture(model_config(row)),
        method=row.method,
        rank=8,
        compute="bf16" if row.bf16 else "fp32",
        weight_bytes=4,
        optimizer="adamw_torch",
        micro_batch=row.micro,
        accumulation=row.accumulation,
        prompt=row.prompt,
        completion=row.completion,
        rollouts=row.micro * row.accumulation,
        beta=row.beta,
        checkpointing=row.checkpointing,
        padded=False,
        device="cpu",
        engine="transformers",
    )


def save_model(row: Row, folder: Path) -> None:
    """Save a random model and a tokenizer of one token a word."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

    torch.manual_seed(0)
    config = model_config(row)
    family = config.pop("model_type")
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(family, **config), dtype=torch.float32)
    model.save_pretrained(folder)
    words = {"<pad>": 0, "<eos>": 1, **{f"w{i}": i for i in range(2, row.sizes["vocab_size"])}}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<pad>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>")
    fast.padding_side = "left"
    fast.save_pretrained(folder)


def measure(row: Row) -> int:
    """Return the peak in bytes of a real training run."""
    import torch
    from datasets import Dataset
    from transformers import AutoTokenizer
    from trl import GRPOConfig, GRPOTrainer

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save_model(row, folder)
        arguments = GRPOConfig(
            output_dir=str(folder / "out"),
            per_device_train_batch_size=row.micro,
            gradient_accumulation_steps=row.accumulation,
            num_generations=8,
            max_completion_length=row.completion,
            generation_kwargs={"min_new_tokens": row.completion},
            beta=row.beta,
            gradient_checkpointing=row.checkpointing,
            bf16=row.bf16,
            use_cpu=True,
            max_steps=2,
            optim="adamw_torch",
            loss_type="grpo",
            report_to="none",
            logging_steps=1,
            save_strategy="no",
            dataloader_pin_memory=False,
            model_init_kwargs={"dtype": "float32"},
            disable_tqdm=True,
        )
        prompt = " ".join(f"w{2 + i}" for i in range(row.prompt))
        trainer = GRPOTrainer(
            model=str(folder),
            reward_funcs=lambda completions, **kwargs: [float(i % 2) for i, _ in enumerate(completions)],
            args=arguments,
            train_dataset=Dataset.from_list([{"prompt": prompt}] * 64),
            processing_class=AutoTokenizer.from_pretrained(folder),
            peft_config=lora() if row.method == "lora" else None,
        )
        before = existing_bytes(trainer)
        with torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
        ) as profile:
            trainer.train()
        return before + allocator_peak(profile)


def lora() -> Any:
    """Return the adapter's configuration."""
    from peft import LoraConfig

    return LoraConfig(r=8, lora_alpha=16, target_modules="all-linear", task_type="CAUSAL_LM")


def existing_bytes(trainer: Any) -> int:
    """Return bytes of the storages of policy and reference."""
    sizes = {}
    for model in (trainer.model, trainer.ref_model):
        for tensor in [] if model is None else [*model.parameters(), *model.buffers()]:
            storage = tensor.untyped_storage()
            sizes[storage.data_ptr()] = storage.nbytes()
    return sum(sizes.values())


def allocator_peak(profile: Any) -> int:
    """Return the largest running sum of the allocator's events."""
    events = [event for event in profile.profiler.kineto_results.events() if event.name() == "[memory]"]
    live = peak = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        live += event.nbytes()
        peak = max(peak, live)
    return peak


def one(row: Row) -> dict[str, float]:
    """Return measured and estimated peaks of one row."""
    import time

    from rlvr.plan.devices import detect_cpu
    from rlvr.plan.memory.closed_form import closed_form
    from rlvr.plan.memory.trace import traced

    shape = run_shape(row)
    start = time.perf_counter()
    formula = closed_form(shape, detect_cpu()).peak_bytes
    middle = time.perf_counter()
    trace = traced(shape, detect_cpu(), model_config(row)).peak_bytes
    end = time.perf_counter()
    return {
        "measured": measure(row),
        "closed": formula,
        "trace": trace,
        "closed_seconds": middle - start,
        "trace_seconds": end - middle,
    }


def every(names: list[str]) -> list[tuple[Row, dict[str, float]]]:
    """Return all rows, each from a process of its own."""
    found = []
    for row in ROWS:
        if names and row.name not in names:
            continue
        command = [sys.executable, __file__, "--row", row.name]
        done = subprocess.run(  # noqa: PLW1510  # its return code is looked at
            command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
        )
        if done.returncode:
            sys.exit(done.stderr[-3000:])
        found.append((row, json.loads(done.stdout.splitlines()[-1])))
        print(line(*found[-1]), flush=True)
    return found


def line(row: Row, values: dict[str, float]) -> str:
    """Return one line of the table."""
    truth = values["measured"]
    closed, trace = (100 * (values[name] / truth - 1) for name in ("closed", "trace"))
    kind = "held out" if row.held_out else ""
    return f"| {row.name} | {truth / 2**20:,.1f} | {trace:+.2f}% | {closed:+.2f}% | {kind} |"


def main() -> None:
    """Run one row or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--row")
    parser.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args()
    if options.row:
        print(json.dumps(one(next(row for row in ROWS if row.name == options.row))))
        return
    every(options.only)


if __name__ == "__main__":
    main()
