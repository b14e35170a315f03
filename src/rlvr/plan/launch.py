"""How the run is started: one process, several with accelerate, a vLLM server beside them, or Slurm.

The files named here are written by ``rlvr plan`` into ``gates/launch/``; in the tests the parser of each program
reads its command line, where that program can be installed.
"""

from __future__ import annotations

import json
import shlex
from typing import Any

from rlvr.plan.inputs import Machine
from rlvr.plan.memory.shape import RunShape, Sharding
from rlvr.records.plan import Launch, PlanRecord

FOLDER = "gates/launch"
PORT = 8000
SERVER_SHARE = 0.9
ALIAS = "rlvr-server"
"""Name of the server's node in a job of several nodes; it may have no dot (s: hostname(7), HOSTALIASES)."""

REQUEUE_SECONDS = 300
"""Seconds before the end of its time at which Slurm sends USR1: a checkpoint of a large model takes minutes."""


def launches(plan: PlanRecord, shape: RunShape, machine: Machine, servers: int) -> list[Launch]:
    """Return the ways to start the run, the one that ``rlvr train`` takes among them."""
    found = [
        Launch(
            name="single", commands=["rlvr train"], note="one process; refuses while a gate is not passed"
        ),
        plain_trl(plan),
    ]
    if machine.nodes > 1:
        return [*found, slurm(plan, shape, machine, servers)]
    if shape.trainers > 1:
        found.append(accelerate(shape))
    if servers:
        found.append(server(plan, shape, machine, servers))
    return found


def plain_trl(plan: PlanRecord) -> Launch:
    """Return ``trl grpo`` with a file of settings; data and rewards are added by ``rlvr export``."""
    return Launch(
        name="trl",
        commands=[f"trl grpo --config {FOLDER}/grpo.yaml"],
        files={f"{FOLDER}/grpo.yaml": grpo_yaml(plan)},
        note="plain TRL without gates; add dataset_name and reward_funcs, or use `rlvr export handover`",
    )


def grpo_yaml(plan: PlanRecord) -> str:
    """Return the settings as the YAML that ``trl grpo --config`` reads (JSON values are YAML)."""
    lines = [f"model_name_or_path: {json.dumps(plan.model)}"]
    for name, setting in plan.settings.items():
        lines.append(f"{name}: {json.dumps(setting.value)}  # {setting.why.splitlines()[0]}")
    lines += [f"{name}: {json.dumps(value)}" for name, value in _model_arguments(plan).items()]
    return "\n".join(lines) + "\n"


def _model_arguments(plan: PlanRecord) -> dict[str, Any]:
    if plan.method.kind == "full":
        return {}
    lora, quantization = plan.method.lora, plan.method.quantization
    found: dict[str, Any] = {
        "use_peft": True,
        "lora_r": lora["r"],
        "lora_alpha": lora["lora_alpha"],
        "lora_dropout": lora["lora_dropout"],
        "lora_target_modules": lora["target_modules"],
    }
    if quantization:
        found |= {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4", "use_bnb_nested_quant": True}
    return found


def accelerate(shape: RunShape) -> Launch:
    """Return ``accelerate launch`` for several devices of one machine."""
    files = accelerate_files(shape.sharding, shape.trainers, 1, shape.compute)
    return Launch(
        name="accelerate",
        commands=[f"accelerate launch --config_file {FOLDER}/accelerate.yaml --module rlvr train"],
        files=files,
        note=f"{shape.trainers} processes, state {_words(shape.sharding)}",
    )


def _words(sharding: Sharding) -> str:
    return {
        "none": "whole on every device (DDP)",
        "fsdp2": "shared out by FSDP2",
        "zero2": "gradients and optimizer shared out by DeepSpeed",
        "zero3": "shared out by DeepSpeed",
    }[sharding]


def accelerate_files(sharding: Sharding, processes: int, nodes: int, compute: str) -> dict[str, str]:
    """Return accelerate's configuration, and DeepSpeed's where it is used."""
    config: dict[str, Any] = {
        "compute_environment": "LOCAL_MACHINE",
        "debug": False,
        "machine_rank": 0,
        "main_training_function": "main",
        "num_machines": nodes,
        "num_processes": processes,
        "rdzv_backend": "static" if nodes == 1 else "c10d",
        "same_network": True,
        "use_cpu": False,
    }
    if sharding in ("zero2", "zero3"):
        config |= {"distributed_type": "DEEPSPEED", "deepspeed_config": _deepspeed_plugin(sharding)}
        return {
            f"{FOLDER}/accelerate.yaml": _yaml(config),
            f"{FOLDER}/deepspeed.json": json.dumps(deepspeed_config(sharding), indent=2) + "\n",
        }
    config |= {"mixed_precision": {"bf16": "bf16", "fp16": "fp16"}.get(compute, "no")}
    if sharding == "fsdp2":
        config |= {"distributed_type": "FSDP", "fsdp_config": FSDP2}
    else:
        config |= {"distributed_type": "MULTI_GPU"}
    return {f"{FOLDER}/accelerate.yaml": _yaml(config)}


FSDP2: dict[str, Any] = {
    "fsdp_version": 2,
    "fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
    "fsdp_reshard_after_forward": True,
    "fsdp_state_dict_type": "FULL_STATE_DICT",
    "fsdp_cpu_ram_efficient_loading": True,
    "fsdp_offload_params": False,
    "fsdp_activation_checkpointing": False,
}
"""FSDP2 as this project sets it; checkpointing is left to ``gradient_checkpointing``, since both together recompute
twice."""


def _deepspeed_plugin(sharding: Sharding) -> dict[str, Any]:
    return {"deepspeed_config_file": f"{FOLDER}/deepspeed.json", "zero3_init_flag": sharding == "zero3"}


def deepspeed_config(sharding: Sharding) -> dict[str, Any]:
    """Return DeepSpeed's configuration; ``auto`` takes the trainer's own values."""
    zero: dict[str, Any] = {
        "stage": 3 if sharding == "zero3" else 2,
        "overlap_comm": True,
        "contiguous_gradients": True,
        "reduce_bucket_size": 200_000_000,
        "allgather_bucket_size": 200_000_000,
    }
    if sharding == "zero3":
        zero |= {
            "stage3_gather_16bit_weights_on_model_save": True,
            "stage3_prefetch_bucket_size": 200_000_000,
        }
    return {
        "bf16": {"enabled": "auto"},
        "fp16": {"enabled": "auto"},
        "zero_optimization": zero,
        "gradient_accumulation_steps": "auto",
        "gradient_clipping": "auto",
        "train_batch_size": "auto",
        "train_micro_batch_size_per_gpu": "auto",
    }


def server_command(plan: PlanRecord, shape: RunShape, servers: int) -> str:
    """Return the command line of the server, with what TRL's client needs.

    Its endpoints replace weights, so it listens on the loopback address alone.
    """
    length = int(plan.config().get("vllm_max_model_length") or shape.engine_context)
    words = [
        "vllm",
        "serve",
        plan.model,
        "--host",
        "127.0.0.1",
        "--port",
        str(PORT),
        "--tensor-parallel-size",
        str(servers),
        "--max-model-len",
        str(length),
        "--gpu-memory-utilization",
        str(SERVER_SHARE),
        "--dtype",
        "float16" if shape.compute == "fp16" else "bfloat16",
        "--weight-transfer-config",
        '{"backend":"nccl"}',
        "--logprobs-mode",
        "processed_logprobs",
        "--max-logprobs",
        "-1",
    ]
    return shlex.join(words)


def server(plan: PlanRecord, shape: RunShape, machine: Machine, servers: int) -> Launch:
    """Return a server on the last devices of one machine, and the trainer on the others."""
    count = len(machine.devices)
    serve = ",".join(str(i) for i in range(count - servers, count))
    train = ",".join(str(i) for i in range(count - servers))
    launcher = "rlvr train"
    files = {}
    if shape.trainers > 1:
        launcher = f"accelerate launch --config_file {FOLDER}/accelerate.yaml --module rlvr train"
        files = accelerate_files(shape.sharding, shape.trainers, 1, shape.compute)
    return Launch(
        name="server",
        commands=[
            f"CUDA_VISIBLE_DEVICES={serve} VLLM_SERVER_DEV_MODE=1 {server_command(plan, shape, servers)}",
            f"CUDA_VISIBLE_DEVICES={train} {launcher}",
        ],
        files=files,
        note="the server in a terminal of its own; the trainer waits for it",
    )


def slurm(plan: PlanRecord, shape: RunShape, machine: Machine, servers: int) -> Launch:
    """Return a batch script over several nodes that saves and requeues itself before its time ends."""
    files = accelerate_files(shape.sharding, shape.trainers, machine.nodes, shape.compute)
    files[f"{FOLDER}/train.sbatch"] = slurm_script(plan, shape, machine, servers)
    return Launch(
        name="slurm",
        commands=[f"sbatch {FOLDER}/train.sbatch"],
        files=files,
        note="USR1 saves a checkpoint and requeues; exit 3 (a gate, or a stop with a reason) is never requeued",
    )


def slurm_script(plan: PlanRecord, shape: RunShape, machine: Machine, servers: int) -> str:
    """Return the batch script.

    With a server its devices take whole nodes at the end of the allocation.
    """
    devices = len(machine.devices)
    serving = -(-servers // devices) if servers else 0
    training = machine.nodes - serving
    serve = _serving_lines(plan, shape, servers, serving) if serving else []
    return "\n".join(
        [
            "#!/bin/bash",
            "#SBATCH --job-name=rlvr",
            f"#SBATCH --nodes={machine.nodes}",
            "#SBATCH --ntasks-per-node=1",
            f"#SBATCH --gpus-per-node={devices}",
            "#SBATCH --exclusive",
            "#SBATCH --time=24:00:00",
            f"#SBATCH --signal=B:USR1@{REQUEUE_SECONDS}",
            "#SBATCH --requeue",
            "#SBATCH --open-mode=append",
            "set -u",
            'cd "$SLURM_SUBMIT_DIR"',
            "RUN=${RUN:-base-1}",
            'mapfile -t NODES < <(scontrol show hostnames "$SLURM_JOB_NODELIST")',
            f'HEAD="${{NODES[0]}}"; TRAINING=$(IFS=,; echo "${{NODES[*]:0:{training}}}")',
            'RESUME=""; [ -f "runs/$RUN/manifest.json" ] && RESUME="--resume"',
            *serve,
            f'srun --overlap --nodes={training} --ntasks={training} --nodelist="$TRAINING" bash -c "'
            f"exec accelerate launch --config_file {FOLDER}/accelerate.yaml --num_machines {training} "
            f"--num_processes {training * devices} --machine_rank \\$SLURM_PROCID "
            '--main_process_ip $HEAD --main_process_port 29500 --module rlvr train --name $RUN $RESUME" &',
            "TRAIN=$!",
            "SAVED=0",
            "trap 'SAVED=1; kill -TERM $TRAIN' USR1",
            'CODE=0; wait "$TRAIN" || CODE=$?',
            '[ "$SAVED" = 1 ] && { CODE=0; wait "$TRAIN" || CODE=$?; }',
            '[ -n "${SERVE:-}" ] && kill "$SERVE" 2>/dev/null',
            '[ "$CODE" = 3 ] && exit 3    # a gate, or a stop with a reason: a person must look',
            'if [ "$SAVED" = 1 ]; then scontrol requeue "$SLURM_JOB_ID"; exit 0; fi',
            '[ "$CODE" = 4 ] && [ "${SLURM_RESTART_COUNT:-0}" -lt 3 ] && scontrol requeue "$SLURM_JOB_ID"',
            'exit "$CODE"',
            "",
        ]
    )


def _serving_lines(plan: PlanRecord, shape: RunShape, servers: int, serving: int) -> list[str]:
    # The plan cannot know the node, so it names an alias, which every process of the job resolves to it.
    command = server_command(plan, shape, servers).replace("--host 127.0.0.1", '--host "$SERVER"')
    return [
        f'SERVER="${{NODES[-{serving}]}}"',
        'export HOSTALIASES="$SLURM_SUBMIT_DIR/gates/launch/hosts.$SLURM_JOB_ID"',
        f'echo "{ALIAS} $SERVER" > "$HOSTALIASES"',
        f'srun --overlap --nodes={serving} --ntasks={serving} --nodelist="$SERVER" '
        f"env VLLM_SERVER_DEV_MODE=1 {command} &",
        "SERVE=$!",
    ]


def _yaml(value: dict[str, Any]) -> str:
    """Return a two-level mapping as YAML; JSON's scalars are YAML's."""
    lines = []
    for name, item in value.items():
        if isinstance(item, dict):
            lines.append(f"{name}:")
            lines += [f"  {key}: {json.dumps(inner)}" for key, inner in item.items()]
        else:
            lines.append(f"{name}: {json.dumps(item)}")
    return "\n".join(lines) + "\n"
