"""Files for verl (Ray, FSDP or Megatron, vLLM): data in its parquet layout, ``compute_score``, and its overrides.

Names and meanings are those of verl 0.9.1 (``verl/trainer/config/ppo_trainer.yaml``, ``verl/trainer/ppo/reward.py``,
``verl/experimental/reward_loop/reward_manager/naive.py``). verl decodes completions without special tokens and has
no neutral score: where a reward could not judge, ``compute_score`` raises instead of calling it wrong.
"""

from __future__ import annotations

import io
import json
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rlvr.export.reward_files import reward_files

if TYPE_CHECKING:
    from rlvr.export.inputs import ExportInputs, ExportRow

VERSION = "0.9.1"
AGGREGATION = {
    "grpo": "seq-mean-token-mean",
    "dapo": "token-mean",
    "bnpo": "token-mean",
    "dr_grpo": "seq-mean-token-sum-norm",
}
"""TRL's ``loss_type`` to verl's ``loss_agg_mode``."""
LENGTH_STEP = 64
UNKNOWN_PROMPT = 1024

SCORE = '''\
"""verl's entry to the rewards of this task: `compute_score`, for reward.custom_reward_function.path."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from rewards import SCORER  # noqa: E402


def compute_score(data_source, solution_str, ground_truth, extra_info=None, **unused):
    """Return the weighted reward of one completion, and whether it is right as `acc`.

    Raises:
        RuntimeError: A reward could not judge, since something outside the task failed; that is no wrong answer.
    """
    columns = {name: [value] for name, value in json.loads(ground_truth).items()}
    prompt = json.loads((extra_info or {}).get("prompt", "[]"))
    row = SCORER.score_batch([prompt], [[{"role": "assistant", "content": solution_str}]], columns)[0]
    if row.total is None:
        raise RuntimeError(f"the reward could not judge a completion: {row.why}")
    return {"score": row.total, "acc": float(row.outcome.value == "right")}
'''

LAUNCH = """\
#!/usr/bin/env bash
# GRPO for {name} on verl {verl}, from a plan by rlvr {version}. Set NODES and GPUS for your cluster.
# Start Ray first on several nodes: `ray start --head`, then `ray start --address=HEAD:6379` on the others.
set -euo pipefail
cd "$(dirname "$0")"
export NODES="${{NODES:-{nodes}}}" GPUS="${{GPUS:-{gpus}}}"

python3 -m verl.trainer.main_ppo \\
{overrides} \\
  trainer.nnodes="$NODES" \\
  trainer.n_gpus_per_node="$GPUS" \\
  data.train_files="$PWD/data/train.parquet" \\
  data.val_files="$PWD/data/{validation}.parquet" \\
  reward.custom_reward_function.path="$PWD/compute_score.py" \\
  "$@"
"""


def verl_files(inputs: ExportInputs) -> dict[str, bytes]:
    """Return every file of the verl export except the brief."""
    files = {
        "compute_score.py": SCORE.encode(),
        "launch.sh": launch_script(inputs).encode(),
        "data/train.parquet": parquet(inputs.training, inputs.name, "train"),
        **reward_files(inputs, ()),
    }
    if inputs.held_out:
        files["data/held_out.parquet"] = parquet(inputs.held_out, inputs.name, "held_out")
    return files


def parquet(rows: Sequence[ExportRow], source: str, split: str) -> bytes:
    """Return rows in verl's layout: data_source, prompt, ability, reward_model, extra_info.

    The columns that the rewards read stand in ``ground_truth`` as JSON text, so that Arrow changes none of them.
    """
    import pyarrow as arrow
    import pyarrow.parquet as writer

    table = arrow.Table.from_pylist([_row(row, index, source, split) for index, row in enumerate(rows)])
    target = io.BytesIO()
    writer.write_table(table, target)
    return target.getvalue()


def _row(row: ExportRow, index: int, source: str, split: str) -> dict[str, Any]:
    chat = row.prompt if isinstance(row.prompt, list) else [{"role": "user", "content": row.prompt}]
    return {
        "data_source": source,
        "prompt": chat,
        "ability": source,
        "reward_model": {"style": "rule", "ground_truth": json.dumps(dict(row.columns))},
        "extra_info": {"split": split, "index": index, "prompt": json.dumps(chat)},
    }


def launch_script(inputs: ExportInputs) -> str:
    """Return ``launch.sh``."""
    hardware = inputs.config.hardware
    lines = [f"  {shlex.quote(f'{name}={_shown(value)}')}" for name, value in overrides(inputs).items()]
    return LAUNCH.format(
        name=inputs.name,
        verl=VERSION,
        version=inputs.version,
        nodes=hardware.nodes,
        gpus=max(hardware.processes // hardware.nodes, 1),
        overrides=" \\\n".join(lines),
        validation="held_out" if inputs.held_out else "train",
    )


def overrides(inputs: ExportInputs) -> dict[str, Any]:
    """Return verl's field to its value, translated from the plan."""
    plan = inputs.plan.config()
    prompts, updates = _prompts_a_batch(inputs, plan), _updates(plan)
    beta = float(plan.get("beta", 0.0))
    epsilon = plan.get("epsilon", 0.2)
    upper = plan.get("epsilon_high") or epsilon
    found: dict[str, Any] = {
        "algorithm.adv_estimator": "grpo",
        "algorithm.norm_adv_by_std_in_grpo": plan.get("scale_rewards", "group") not in ("none", False),
        "algorithm.use_kl_in_reward": False,
        "data.train_batch_size": prompts,
        "data.max_prompt_length": _prompt_length(inputs),
        "data.max_response_length": plan["max_completion_length"],
        "data.filter_overlong_prompts": True,
        "data.truncation": "error",
        "actor_rollout_ref.model.path": inputs.model,
        "actor_rollout_ref.model.enable_gradient_checkpointing": bool(
            plan.get("gradient_checkpointing", True)
        ),
        "actor_rollout_ref.actor.optim.lr": plan["learning_rate"],
        "actor_rollout_ref.actor.grad_clip": plan.get("max_grad_norm", 1.0),
        "actor_rollout_ref.actor.ppo_mini_batch_size": max(prompts // updates, 1),
        "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu": plan["per_device_train_batch_size"],
        "actor_rollout_ref.actor.use_kl_loss": beta > 0,
        "actor_rollout_ref.actor.kl_loss_coef": beta,
        "actor_rollout_ref.actor.kl_loss_type": "low_var_kl",
        "actor_rollout_ref.actor.entropy_coeff": 0,
        "actor_rollout_ref.actor.clip_ratio_low": epsilon,
        "actor_rollout_ref.actor.clip_ratio_high": upper,
        "actor_rollout_ref.actor.loss_agg_mode": AGGREGATION.get(
            str(plan.get("loss_type")), "seq-mean-token-mean"
        ),
        "actor_rollout_ref.rollout.name": "vllm",
        "actor_rollout_ref.rollout.n": plan["num_generations"],
        "actor_rollout_ref.rollout.temperature": plan.get("temperature", 1.0),
        "actor_rollout_ref.rollout.top_p": plan.get("top_p", 1.0),
        "actor_rollout_ref.rollout.tensor_model_parallel_size": 1,
        "actor_rollout_ref.rollout.gpu_memory_utilization": plan.get("vllm_gpu_memory_utilization", 0.5),
        "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu": plan["per_device_train_batch_size"],
        "actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu": plan["per_device_train_batch_size"],
        "reward.custom_reward_function.name": "compute_score",
        "trainer.project_name": "rlvr",
        "trainer.experiment_name": inputs.name,
        "trainer.logger": ["console"],
        "trainer.save_freq": plan.get("save_steps", 50),
        "trainer.test_freq": plan.get("save_steps", 50),
    }
    if str(plan.get("importance_sampling_level")) == "sequence":
        found["actor_rollout_ref.actor.policy_loss.loss_mode"] = "gspo"
    return {**found, **_length(plan), **_lora(inputs)}


def _prompts_a_batch(inputs: ExportInputs, plan: dict[str, Any]) -> int:
    """Return the prompts of one generation batch, over all processes."""
    steps = int(plan.get("steps_per_generation") or plan["gradient_accumulation_steps"])
    completions = int(plan["per_device_train_batch_size"]) * steps
    return max(completions * inputs.config.hardware.processes // int(plan["num_generations"]), 1)


def _updates(plan: dict[str, Any]) -> int:
    """Return optimizer steps that one generation batch serves."""
    accumulation = int(plan["gradient_accumulation_steps"])
    return max(int(plan.get("steps_per_generation") or accumulation) // accumulation, 1)


def _length(plan: dict[str, Any]) -> dict[str, Any]:
    steps = int(plan.get("max_steps") or -1)
    if steps > 0:
        return {"trainer.total_training_steps": steps}
    return {"trainer.total_epochs": max(round(float(plan.get("num_train_epochs", 1))), 1)}


def _lora(inputs: ExportInputs) -> dict[str, Any]:
    lora = inputs.plan.method.lora
    if not lora:
        return {}
    return {
        "actor_rollout_ref.model.lora_rank": lora["r"],
        "actor_rollout_ref.model.lora_alpha": lora.get("lora_alpha", 2 * lora["r"]),
        "actor_rollout_ref.model.target_modules": lora.get("target_modules", "all-linear"),
        "actor_rollout_ref.rollout.load_format": "safetensors",
    }


def _prompt_length(inputs: ExportInputs) -> int:
    probe = next((gate.evidence for gate in inputs.status.gates if gate.name == "probe"), {})
    longest: int = int(((probe.get("lengths") or {}).get("prompt") or {}).get("longest", -1))
    return -(-longest // LENGTH_STEP) * LENGTH_STEP if longest > 0 else UNKNOWN_PROMPT


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, list):
        return f"[{','.join(str(one) for one in value)}]"
    return str(value)
