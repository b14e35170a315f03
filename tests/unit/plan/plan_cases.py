"""Facts that the plan's tests start from."""

from dataclasses import replace
from typing import Any

from rlvr.plan.devices import Device, parse_device
from rlvr.plan.inputs import DataFacts, Machine, Method, ModelFacts, Override, PlanInputs, Sampling
from rlvr.plan.models import named_config

CPU = Device("cpu", "cpu", 16 * 1024**3, bf16=False, unified=True)


def inputs(model: str = "7b", device: str = "1xH100", method: str = "lora", **changes: Any) -> PlanInputs:
    config = named_config(model)
    assert config is not None
    devices = (CPU,) if device == "cpu" else parse_device(device)
    made = PlanInputs(
        model=ModelFacts(model, config),
        machine=Machine(devices, vllm_installed=device != "cpu"),
        method=Method(kind=method),
        data=DataFacts(prompts=1000),
    )
    return replace(made, **changes)


def with_overrides(plan_inputs: PlanInputs, **values: Any) -> PlanInputs:
    overrides = {
        name: Override(value, "a reason", before_base_run=name in ("learning_rate", "beta"))
        for name, value in values.items()
    }
    return replace(plan_inputs, overrides=overrides)


def demo_inputs() -> PlanInputs:
    config = {
        "model_type": "llama",
        "hidden_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 192,
        "vocab_size": 101,
        "max_position_embeddings": 256,
        "tie_word_embeddings": True,
    }
    made = replace(
        inputs("0.5b", "cpu", "full"),
        model=ModelFacts("model", config),
        data=DataFacts(prompts=2000, prompt_p50=40, prompt_p95=42, prompt_max=44),
        sampling=Sampling(max_completion_length=24),
    )
    return with_overrides(
        made,
        learning_rate=1e-3,
        lr_scheduler_type="linear",
        warmup_steps=10,
        beta=0.0,
        per_device_train_batch_size=64,
        gradient_accumulation_steps=1,
        max_steps=150,
        gradient_checkpointing=False,
        bf16=False,
    )
