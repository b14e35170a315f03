"""Command lines and settings of the plan are accepted by the programs that read them."""

import re
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from rlvr.plan.build import build_plan
from rlvr.plan.inputs import Machine

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "plan"))
from plan_cases import CPU, demo_inputs, inputs

pytestmark = pytest.mark.tiny


def on_cpu(made):
    return replace(made, machine=Machine((CPU,), vllm_installed=False))


def test_grpo_config_takes_the_settings(tmp_path):
    from trl import GRPOConfig

    for case in (demo_inputs(), on_cpu(inputs("0.5b", method="full")), on_cpu(inputs("30b-a3b"))):
        config = build_plan(case).config()
        made = GRPOConfig(**config | {"output_dir": str(tmp_path)})
        for name, value in config.items():
            if name not in (
                "output_dir",
                "report_to",
                "lr_scheduler_type",
                "optim",
                "save_strategy",
                "eval_strategy",
            ):
                assert getattr(made, name) == value, name


def test_settings_for_a_card_are_taken_too(tmp_path, monkeypatch):
    from trl import GRPOConfig

    config = build_plan(inputs("8b", "1xH100", "lora")).config()
    made = GRPOConfig(**config | {"output_dir": str(tmp_path), "use_cpu": True})
    assert made.vllm_importance_sampling_mode == "token_truncate" and made.loss_type == "grpo"


def test_trl_reads_the_yaml(tmp_path):
    from trl import GRPOConfig, ModelConfig, TrlParser
    from trl.scripts.grpo import GRPOScriptArguments

    plan = build_plan(on_cpu(inputs("0.5b")))
    text = next(item for item in plan.launch if item.name == "trl").files["gates/launch/grpo.yaml"]
    path = tmp_path / "grpo.yaml"
    path.write_text(text.replace(plan.config()["output_dir"], str(tmp_path / "out")))
    parser = TrlParser((GRPOScriptArguments, GRPOConfig, ModelConfig))
    _, training, model = parser.parse_args_and_config(["--config", str(path)])
    assert training.learning_rate == 5e-6 and training.num_generations == 8
    assert model.use_peft and model.lora_r == 16 and model.model_name_or_path == "0.5b"
    assert training.model_init_kwargs["dtype"] == "float32"


@pytest.mark.parametrize("sharding", ["none", "fsdp2", "zero2", "zero3"])
def test_accelerate_reads_command_and_file(sharding, tmp_path, monkeypatch):
    from accelerate.commands.config.config_args import load_config_from_file
    from accelerate.commands.launch import launch_command_parser

    plan = build_plan(inputs("8b", "4xH100", "lora", sharding=sharding))
    found = next(item for item in plan.launch if item.name == "accelerate")
    for name, text in found.files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.chdir(tmp_path)
    words = shlex.split(found.commands[0])
    arguments = launch_command_parser().parse_args(words[2:])
    assert arguments.module and arguments.training_script == "rlvr"
    assert arguments.training_script_args == ["train"]
    config = load_config_from_file(arguments.config_file)
    assert config.num_processes == 3
    expected = {"none": "MULTI_GPU", "fsdp2": "FSDP"}.get(sharding, "DEEPSPEED")
    assert str(config.distributed_type).rpartition(".")[2] == expected


def test_accelerate_reads_the_line_of_the_batch_script():
    from accelerate.commands.launch import launch_command_parser

    made = inputs("8b", "4xH100", "lora")
    plan = build_plan(replace(made, machine=Machine(made.machine.devices, nodes=3)))
    script = next(x for x in plan.launch if x.name == "slurm").files["gates/launch/train.sbatch"]
    line = re.search(r"accelerate launch ([^\"]*)\"", script)[1]
    line = (
        line.replace("\\$SLURM_PROCID", "1").replace("$HEAD", "n1").replace("$RUN $RESUME", "base-1 --resume")
    )
    arguments = launch_command_parser().parse_args(shlex.split(line))
    assert (arguments.num_machines, arguments.num_processes, arguments.machine_rank) == (2, 8, 1)
    assert arguments.training_script_args == ["train", "--name", "base-1", "--resume"]


def test_server_command_has_all_that_trl_imposes():
    from trl.scripts.vllm_serve import ScriptArguments, build_command

    theirs = build_command(ScriptArguments(model="m"))
    imposed = theirs[theirs.index("--weight-transfer-config") :]
    plan = build_plan(inputs("8b", "2xH100", "lora"))
    words = shlex.split(next(item for item in plan.launch if item.name == "server").commands[0])
    ours = words[words.index("--weight-transfer-config") :]
    assert [word.replace(" ", "") for word in imposed] == [word.replace(" ", "") for word in ours]
    known = {word for word in theirs if word.startswith("--")} | {"--max-model-len"}
    assert {word for word in words if word.startswith("--")} <= known
