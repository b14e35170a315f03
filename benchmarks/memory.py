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
    from transformers import PreTrainedTokenizerFast
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
            processing_class=PreTrainedTokenizerFast.from_pretrained(folder),
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


def errors(values: dict[str, float]) -> tuple[float, float]:
    """Return the errors of trace and closed form in percent."""
    truth = values["measured"]
    return 100 * (values["trace"] / truth - 1), 100 * (values["closed"] / truth - 1)


def line(row: Row, values: dict[str, float]) -> str:
    """Return one line of the table."""
    trace, closed = errors(values)
    settings = [row.family, row.method, "bf16" if row.bf16 else "fp32", f"beta {row.beta:g}"]
    settings.append("checkpointing" if row.checkpointing else "no checkpointing")
    settings.append(f"{row.micro} x {row.accumulation} x ({row.prompt} + {row.completion})")
    kind = "held out" if row.held_out else ""
    return (
        f"| {row.name} | {', '.join(settings)} | {values['measured'] / 2**20:,.1f} | {trace:+.2f}% | "
        f"{closed:+.2f}% | {kind} |"
    )


PUBLISHED = {
    "qwen3-8b": {96: 7.850, 160: 9.155, 224: 10.465, 288: 11.773},
    "qwen3-14b": {96: 11.638, 160: 13.001, 288: 15.730},
}
"""Peak GiB of QLoRA runs with a batch of 8, by completion tokens, before TRL's head was fused."""


def published(prompt: int, rank: int) -> list[tuple[str, int, float, float]]:
    """Return model, completion tokens, published GiB and the closed form's GiB."""
    from rlvr.plan.memory.architecture import read_architecture
    from rlvr.plan.memory.closed_form import training_parts
    from rlvr.plan.memory.shape import RunShape
    from rlvr.plan.models import named_config

    found = []
    for model, rows in PUBLISHED.items():
        for completion, gib in rows.items():
            shape = RunShape(
                read_architecture(named_config(model) or {}),
                method="qlora",
                rank=rank,
                weight_bytes=2,
                accumulation=1,
                prompt=prompt,
                completion=completion,
                rollouts=8,
                beta=0.0,
                chunked_loss=False,
                optimizer="paged_adamw_8bit",
                engine="server",
            )
            found.append((model, completion, gib, sum(part.bytes for part in training_parts(shape)) / 2**30))
    return found


TRACED = ("70b", "8b", "30b-a3b", "0.5b")


def agreement() -> list[str]:
    """Return lines that compare closed form and trace on public sizes for a CUDA device, with the time of a trace."""
    import time

    from rlvr.plan.memory.architecture import read_architecture
    from rlvr.plan.memory.closed_form import training_parts
    from rlvr.plan.memory.shape import RunShape
    from rlvr.plan.memory.trace import trace_parts
    from rlvr.plan.models import named_config

    lines = []
    counted = ("weights", "gradients", "checkpoints", "layer", "head")
    for size in TRACED:
        for method in ("full", "lora", "qlora"):
            config = named_config(size) or {}
            shape = RunShape(
                read_architecture(config), method=method, weight_bytes=4 if method == "full" else 2
            )
            start = time.process_time()
            trace = sum(trace_parts(shape, config).values())
            seconds = time.process_time() - start
            closed = sum(part.bytes for part in training_parts(shape) if part.name in counted)
            error = 100 * (closed / trace - 1)
            lines.append(f"| {size} | {method} | {trace / 2**30:,.2f} | {error:+.2f}% | {seconds:.1f} |")
            print(lines[-1], flush=True)
    return lines


def report(found: list[tuple[Row, dict[str, float]]], compared: list[str]) -> str:
    """Return the page of results."""
    import resource

    from rlvr.plan.trl_schema import version_of

    versions = ", ".join(f"{name} {version_of(name)}" for name in ("torch", "trl", "transformers", "peft"))
    traces, closed = zip(*(errors(values) for _, values in found), strict=True)
    slowest = max(values["closed_seconds"] for _, values in found)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return "\n".join(
        [
            "# Memory: estimates against measurements",
            "",
            f"Made by `python benchmarks/memory.py` on a 2-core CPU machine with {versions}.",
            "",
            "## Real runs of TRL's trainer",
            "",
            "Two optimizer steps of `GRPOTrainer.train()`; the truth is the running sum of the profiler's allocator "
            "events on top of the storages that existed before. The closed form was derived from traces, not from "
            "these rows; rows marked *held out* were first run after it was finished.",
            "",
            "| row | settings: batch x accumulation x (prompt + completion) | measured MiB | trace | closed form | |",
            "|---|---|---|---|---|---|",
            *(line(row, values) for row, values in found),
            "",
            f"Largest error: trace {max(map(abs, traces)):.2f}%, closed form {max(map(abs, closed)):.2f}%. Slowest "
            f"closed form: {1000 * slowest:.1f} ms.",
            "",
            "## Closed form against trace on a CUDA device",
            "",
            "Weights, gradients and activations of one update; batch 8, prompts and completions of 512 tokens, "
            "accumulation 4, checkpointing. No device was at hand: the trace itself is held against real runs above "
            "on a CPU only.",
            "",
            "| size | method | trace GiB | closed form | trace, CPU seconds |",
            "|---|---|---|---|---|",
            *compared,
            "",
            f"Resident memory of this process at its largest: {memory:.2f} GiB.",
            "",
            "## Published GPU runs before the fused head",
            "",
            "QLoRA, batch 8. Prompt length and rank are not known here: 64 tokens, rank 16 are assumed (with 32 to "
            "128 tokens and rank 8 to 32 the errors lie between -1.4 and +3.3%). The 16 bytes of a logit were read "
            "from the slope of these rows; their level was not used.",
            "",
            "| model | completion tokens | published GiB | closed form GiB | error |",
            "|---|---|---|---|---|",
            *(
                f"| {model} | {tokens} | {gib:.3f} | {ours:.3f} | {100 * (ours / gib - 1):+.2f}% |"
                for model, tokens, gib, ours in published(prompt=64, rank=16)
            ),
            "",
        ]
    )


def main() -> None:
    """Run one row or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--row")
    parser.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args()
    if options.row:
        print(json.dumps(one(next(row for row in ROWS if row.name == options.row))))
        return
    found = every(options.only)
    if not options.only:
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        RESULTS.write_text(report(found, agreement()), encoding="utf-8")


if __name__ == "__main__":
    main()
