"""How close the estimates come on a CUDA device: real training steps on random weights, error by part.

    python benchmarks/memory_gpu.py [--size 0.5b] [--json FILE]      about two minutes on one card

Generation is left out (the completions are given), so that only the update is measured; vLLM's budget is a setting.
QLoRA runs where bitsandbytes is installed. Nothing is downloaded.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
from pathlib import Path
from typing import Any

GIB = 2**30
PROMPT, COMPLETION, MICRO = 256, 256, 4


def measure(size: str, method: str) -> dict[str, float]:
    """Return allocated bytes after loading, after the first step, and at the peak of the second step."""
    import torch
    from trl.trainer.utils import add_fused_lm_head

    model = build(size, method)
    add_fused_lm_head(unwrapped(model), outputs=("log_probs", "entropy"))
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=1e-6, fused=True)
    loaded = torch.cuda.memory_allocated()
    update(model)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    stepped = torch.cuda.memory_allocated()
    update(model)
    torch.cuda.reset_peak_memory_stats()
    update(model)  # the second micro-batch: all gradients are there
    return {
        "weights": loaded,
        "optimizer": stepped - loaded,
        "update": torch.cuda.max_memory_allocated() - stepped,
        "reserved": torch.cuda.max_memory_reserved(),
    }


def unwrapped(model: Any) -> Any:
    """Return the model below PEFT's wrapper."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def build(size: str, method: str) -> Any:
    """Return a random model of a public size on the device, as the trainer would hold it."""
    import tempfile

    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, BitsAndBytesConfig

    from rlvr.plan.models import named_config

    config = dict(named_config(size) or {})
    parsed = AutoConfig.for_model(config.pop("model_type"), **config)
    dtype = torch.float32 if method == "full" else torch.bfloat16
    if method == "qlora":
        with tempfile.TemporaryDirectory() as folder:
            AutoModelForCausalLM.from_config(parsed, dtype=dtype).save_pretrained(folder)
            bits = BitsAndBytesConfig(
                load_in_4bit=True,
                bnb_4bit_quant_type="nf4",
                bnb_4bit_use_double_quant=True,
                bnb_4bit_compute_dtype=dtype,
            )
            model = AutoModelForCausalLM.from_pretrained(
                folder, quantization_config=bits, dtype=dtype, device_map={"": 0}
            )
    else:
        model = AutoModelForCausalLM.from_config(parsed, dtype=dtype).cuda()
    model.gradient_checkpointing_enable({"use_reentrant": False})
    return adapted(model, method).train()


def adapted(model: Any, method: str) -> Any:
    """Wrap the model with the reference adapter."""
    import torch
    from peft import LoraConfig, get_peft_model

    if method == "full":
        return model
    lora = LoraConfig(r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM")
    model = get_peft_model(model, lora)
    model.enable_input_require_grads()
    if method == "qlora":
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.data = parameter.data.to(torch.bfloat16)
    return model


def update(model: Any) -> None:
    """Run forward and backward of one micro-batch of left-padded sequences."""
    import torch

    ids = torch.randint(10, 1000, (MICRO, PROMPT + COMPLETION), device="cuda")
    mask = torch.ones_like(ids)
    mask[0, : PROMPT // 2] = 0
    labels = ids.masked_fill(mask == 0, -100)
    labels[:, :PROMPT] = -100
    with torch.autocast("cuda", dtype=torch.bfloat16):
        out = model(input_ids=ids, attention_mask=mask, labels=labels, fused_lm_head=True, use_cache=False)
    log_probs = out.log_probs[:, -COMPLETION:]
    torch.exp(log_probs - log_probs.detach()).mean().backward()


def expected(size: str, method: str) -> dict[str, float]:
    """Return the closed form's figures for the same parts."""
    from rlvr.plan.memory.architecture import read_architecture
    from rlvr.plan.memory.closed_form import training_parts
    from rlvr.plan.memory.shape import RunShape
    from rlvr.plan.models import named_config

    shape = RunShape(
        read_architecture(named_config(size) or {}),
        method=method,
        weight_bytes=4 if method == "full" else 2,
        micro_batch=MICRO,
        prompt=PROMPT,
        completion=COMPLETION,
        beta=0.0,
        engine="server",
    )
    parts = {part.name: part.bytes for part in training_parts(shape)}
    update_bytes = sum(parts.get(name, 0) for name in ("gradients", "checkpoints", "layer", "head"))
    return {"weights": parts["weights"], "optimizer": parts["optimizer"], "update": update_bytes}


def main() -> None:
    """Measure every method that this machine can run."""
    import torch

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", default="0.5b")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    methods = ["lora", "full"] + (["qlora"] if importlib.util.find_spec("bitsandbytes") else [])
    found: dict[str, Any] = {"device": torch.cuda.get_device_name(), "size": options.size}
    for method in methods:
        ours, theirs = expected(options.size, method), measure(options.size, method)
        found[method] = {"expected": ours, "measured": theirs}
        for name, value in ours.items():
            error = 100 * (value / theirs[name] - 1)
            print(f"{method} {name}: {theirs[name] / GIB:.3f} GiB measured, {error:+.2f}%", flush=True)
        gc.collect()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
