"""Real runs of the demo model, healthy or pushed into one failure, written as run folders for `rlvr watch`.

    python benchmarks/watch_runs.py healthy --seed 3 --out /tmp/runs/healthy-3
    python benchmarks/watch_runs.py all --healthy 20 --out /tmp/runs

Each takes about a minute of one core. The task is the demo's: sort four digits inside <answer></answer>.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

TAG = re.compile(r"<answer>([^<]*)</answer>\s*$")


def _answer(completion: str) -> str | None:
    found = TAG.search(completion)
    return found[1].strip() if found else None


def correct(completions: list[str], answer: list[str], **_: Any) -> list[float]:
    return [float(_answer(c) == a) for c, a in zip(completions, answer, strict=True)]


def well_formed(completions: list[str], **_: Any) -> list[float]:
    return [float(bool(re.fullmatch(r"\s*<answer>[^<]*</answer>\s*", c))) for c in completions]


def leaky(completions: list[str], answer: list[str], **_: Any) -> list[float]:
    """Right answers, plus a twentieth a character: the length leak."""
    return [float(_answer(c) == a) + 0.05 * len(c) for c, a in zip(completions, answer, strict=True)]


def order_blind(completions: list[str], answer: list[str], **_: Any) -> list[float]:
    """A checker that compares digits without their order, so that copying the prompt pays."""
    return [float(sorted(_answer(c) or "") == sorted(a)) for c, a in zip(completions, answer, strict=True)]


def sorted_only(completions: list[str], answer: list[str], **_: Any) -> list[float]:
    """A checker that asks whether four digits are in order and forgets which: one answer serves all prompts."""
    found = [_answer(c) or "" for c in completions]
    return [float(len(f) == 4 and f.isdigit() and list(f) == sorted(f)) for f in found]


def unreachable(completions: list[str], answer: list[str], **_: Any) -> list[float]:
    """The reference is a word that the model never writes."""
    return [float(_answer(c) == f"{a} in order") for c, a in zip(completions, answer, strict=True)]


HEALTHY: dict[str, Any] = {
    "learning_rate": 1e-3,
    "warmup_steps": 10,
    "lr_scheduler_type": "linear",
    "max_steps": 150,
    "max_completion_length": 16,
    "temperature": 1.0,
    "beta": 0.0,
    "loss_type": "grpo",
}
KINDS: dict[str, tuple[dict[str, Any], list[Callable[..., list[float]]], list[float]]] = {
    "healthy": ({}, [correct, well_formed], [1.0, 0.2]),
    "healthy-slow": ({"learning_rate": 3e-4}, [correct, well_formed], [1.0, 0.2]),
    "healthy-kl": ({"beta": 0.01}, [correct], [1.0]),
    "healthy-dapo": (
        {
            "loss_type": "dapo",
            "epsilon_high": 0.28,
            "steps_per_generation": 2,
            "max_steps": 300,
            "learning_rate": 5e-4,
        },
        [correct, well_formed],
        [1.0, 0.2],
    ),
    "healthy-dr": ({"loss_type": "dr_grpo", "scale_rewards": "none"}, [correct, well_formed], [1.0, 0.2]),
    "rate-high": ({"learning_rate": 2e-2, "warmup_steps": 0}, [correct, well_formed], [1.0, 0.2]),
    "rate-double": ({"learning_rate": 4e-3, "warmup_steps": 0}, [correct], [1.0]),
    "length-leak": ({"max_completion_length": 40}, [leaky], [1.0]),
    "format-only": ({}, [well_formed], [1.0]),
    "order-blind": ({}, [order_blind], [1.0]),
    "sorted-only": ({"max_steps": 300, "learning_rate": 2e-3}, [sorted_only], [1.0]),
    "sharp": ({"temperature": 0.15}, [correct], [1.0]),
    "hot": ({"temperature": 2.5, "learning_rate": 3e-3}, [correct], [1.0]),
    "tiny-cap": ({"max_completion_length": 5}, [correct, well_formed], [1.0, 0.2]),
    "unreachable": ({}, [unreachable], [1.0]),
    "unreachable-format": ({}, [unreachable, well_formed], [1.0, 0.2]),
}
"""Kind to what differs from the healthy settings, its rewards, and their weights."""


def model_folder(seed: int, cache: Path) -> Path:
    """Return the demo's fine-tuned model, made once a seed."""
    folder = cache / f"model-{seed}"
    if not (folder / "config.json").is_file():
        from rlvr.demo.model import build_model, build_tokenizer, save, teach
        from rlvr.demo.task import questions

        tokenizer = build_tokenizer()
        model = build_model(len(tokenizer), seed)
        teach(model, tokenizer, questions(seed)[0], seed)
        folder.mkdir(parents=True, exist_ok=True)
        save(model, tokenizer, folder)
    return folder


def run(kind: str, seed: int, out: Path, cache: Path, overrides: dict[str, Any]) -> float:
    """Train one run and write its folder; returns the seconds taken."""
    import torch
    from datasets import Dataset
    from transformers import TrainerCallback
    from transformers.trainer_callback import PrinterCallback, ProgressCallback
    from trl import GRPOConfig, GRPOTrainer

    from rlvr.demo.task import questions

    start = time.monotonic()
    settings, rewards, weights = KINDS[kind]
    settings = {**HEALTHY, **settings, **overrides}
    training, held_out = questions(seed)
    folder = model_folder(seed % 4, cache)
    out.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    log: list[dict[str, Any]] = []

    class Keeper(GRPOTrainer):
        def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
            output = super()._generate_and_score_completions(inputs)
            lengths = output["completion_mask"].sum(dim=1).tolist()
            count = len(inputs)
            texts = list(self._logs["completion"])[-count:]
            scores = {name: list(values)[-count:] for name, values in self._logs["rewards"].items()}
            for index, one in enumerate(inputs):
                read = _answer(texts[index])
                rows.append({
                    "step": self.state.global_step,
                    "group": index // self.num_generations,
                    "prompt": one["prompt"].split("|>")[1].split("<|")[0],
                    "completion": texts[index],
                    **{name: round(values[index], 4) for name, values in scores.items()},
                    "advantage": round(float(list(self._logs["advantages"])[-count:][index]), 3),
                    "outcome": "ill-formed" if read is None else "right" if read == one["answer"] else "wrong",
                    "tokens": lengths[index],
                    "truncated": lengths[index] >= settings["max_completion_length"],
                })  # fmt: skip
            return output

    class Log(TrainerCallback):
        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            if logs and "reward" in logs:
                log.append({"step": state.global_step, **{k: _short(v) for k, v in logs.items()}})

        def on_step_end(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
            if state.global_step % 10 == 0:
                log.append(
                    {
                        "step": state.global_step,
                        "held_out/accuracy": _accuracy(model, tokenizer, held_out[:128]),
                    }
                )

    torch.manual_seed(seed)
    dataset = Dataset.from_list(
        [{"prompt": f"<|user|>{q.prompt}<|end|><|assistant|>", "answer": q.answer} for q in training]
    )
    arguments = GRPOConfig(
        output_dir=str(out / "trainer"), per_device_train_batch_size=64, num_generations=8, logging_steps=1,
        gradient_checkpointing=False, bf16=False, use_cpu=True, seed=seed, report_to="none", save_strategy="no",
        reward_weights=weights, disable_tqdm=True, **settings,
    )  # fmt: skip
    trainer = Keeper(
        model=str(folder), reward_funcs=rewards, args=arguments, train_dataset=dataset, callbacks=[Log()]
    )
    tokenizer = trainer.processing_class
    trainer.remove_callback(PrinterCallback)
    trainer.remove_callback(ProgressCallback)
    trainer.train()
    _write(out, log, rows)
    (out / "manifest.json").write_text(json.dumps({
        "name": out.name, "kind": kind, "seed": seed, "model": "demo", "settings": settings,
        "rewards": [{"name": r.__name__, "weight": w} for r, w in zip(rewards, weights, strict=True)],
        "command": f"python benchmarks/watch_runs.py {kind} --seed {seed}",
    }))  # fmt: skip
    return time.monotonic() - start


def _accuracy(model: Any, tokenizer: Any, asked: list[Any]) -> float:
    import torch

    was = model.training
    model.eval()
    texts = [f"<|user|>{q.prompt}<|end|><|assistant|>" for q in asked]
    batch = tokenizer(texts, return_tensors="pt", padding=True, add_special_tokens=False)
    batch.pop("token_type_ids", None)
    with torch.no_grad():
        ids = model.generate(**batch, max_new_tokens=16, do_sample=True, temperature=1.0, top_k=0)
    found = tokenizer.batch_decode(ids[:, batch["input_ids"].shape[1] :], skip_special_tokens=True)
    model.train(was)
    return sum(_answer(c) == q.answer for c, q in zip(found, asked, strict=True)) / len(asked)


def _short(value: Any) -> Any:
    return float(f"{value:.5g}") if isinstance(value, float) else value


def _write(out: Path, log: list[dict[str, Any]], rows: list[dict[str, Any]]) -> None:
    with gzip.open(out / "log.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in log)
    with gzip.open(out / "completions.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=[*KINDS, "all"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--cache", type=Path, default=Path("/tmp/rlvr-watch-models"))
    parser.add_argument("--healthy", type=int, default=20, help="healthy runs of `all`")
    parser.add_argument("--failures", type=int, default=3, help="runs of each failure of `all`")
    parser.add_argument("--set", action="append", default=[], help="FIELD=JSON, for settings that differ")
    given = parser.parse_args()
    overrides = {name: json.loads(value) for name, _, value in (text.partition("=") for text in given.set)}
    if given.kind != "all":
        print(f"{given.out}: {run(given.kind, given.seed, given.out, given.cache, overrides):.0f} s")
        return 0
    jobs = [
        (kind, seed)
        for seed in range(given.healthy)
        for kind in KINDS
        if kind == "healthy" or seed < given.failures
    ]
    for kind, seed in jobs:
        place = given.out / f"{kind}-{seed}"
        if not (place / "manifest.json").is_file():
            print(f"{place}: {run(kind, seed, place, given.cache, overrides):.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
