import itertools
import json
import re
import shlex
import shutil
import subprocess
from dataclasses import replace

import pytest
from plan_cases import inputs
from ruamel.yaml import YAML

from rlvr.plan.build import build_plan
from rlvr.plan.inputs import Machine


def launch(name, **changes):
    made = inputs(**{key: value for key, value in changes.items() if key != "nodes"})
    machine = replace(made.machine, nodes=changes.get("nodes", 1))
    found = [item for item in build_plan(replace(made, machine=machine)).launch if item.name == name]
    assert len(found) == 1
    return found[0]


def yaml(text):
    return YAML(typ="safe").load(text)


def test_server_has_what_trl_needs_and_listens_privately():
    words = shlex.split(launch("server", device="2xH100").commands[0])
    assert "VLLM_SERVER_DEV_MODE=1" in words
    options = dict(itertools.pairwise(words))
    assert options["--host"] == "127.0.0.1"
    assert json.loads(options["--weight-transfer-config"]) == {"backend": "nccl"}
    assert options["--logprobs-mode"] == "processed_logprobs" and options["--max-logprobs"] == "-1"


def test_devices_are_shared_out_without_overlap():
    commands = launch("server", device="4xH100").commands
    visible = [set(re.search(r"CUDA_VISIBLE_DEVICES=([\d,]+)", text)[1].split(",")) for text in commands]
    assert not visible[0] & visible[1] and visible[0] | visible[1] == set("0123")


def test_accelerate_processes_match_the_trainers():
    files = launch("accelerate", device="4xH100").files
    assert yaml(files["gates/launch/accelerate.yaml"])["num_processes"] == 3


@pytest.mark.parametrize("sharding", ["fsdp2", "zero2", "zero3"])
def test_sharding_files(sharding):
    files = launch("accelerate", device="8xH100", model="70b", method="full", sharding=sharding).files
    config = yaml(files["gates/launch/accelerate.yaml"])
    if sharding == "fsdp2":
        assert config["fsdp_config"]["fsdp_version"] == 2 and config["mixed_precision"] == "bf16"
        assert config["fsdp_config"]["fsdp_activation_checkpointing"] is False
        return
    deepspeed = json.loads(files["gates/launch/deepspeed.json"])
    assert deepspeed["zero_optimization"]["stage"] == int(sharding[-1])
    assert config["deepspeed_config"]["deepspeed_config_file"] == "gates/launch/deepspeed.json"
    assert "mixed_precision" not in config  # accelerate refuses it beside a DeepSpeed file


def test_full_tuning_that_does_not_fit_whole_is_shared_out():
    assert (
        "fsdp_config"
        in launch("accelerate", device="8xH100", model="14b", method="full").files[
            "gates/launch/accelerate.yaml"
        ]
    )


def test_yaml_holds_every_setting_with_its_reason():
    plan = build_plan(inputs(method="qlora"))
    text = next(item for item in plan.launch if item.name == "trl").files["gates/launch/grpo.yaml"]
    found = yaml(text)
    assert {name: found[name] for name in plan.settings} == plan.config()
    assert found["load_in_4bit"] is True and found["lora_r"] == 16
    assert text.count("  # ") == len(plan.settings)


@pytest.fixture(params=[1, 4])
def script(request):
    made = inputs("8b", f"{request.param}xH100", "lora")
    machine = Machine(made.machine.devices, nodes=3)
    files = next(x for x in build_plan(replace(made, machine=machine)).launch if x.name == "slurm").files
    return files["gates/launch/train.sbatch"]


def test_slurm_is_a_script_that_bash_reads(script, tmp_path):
    path = tmp_path / "train.sbatch"
    path.write_text(script)
    subprocess.run(["bash", "-n", str(path)], check=True)
    for line in ("--signal=B:USR1@300", "--requeue", "--open-mode=append", "--nodes=3"):
        assert f"#SBATCH {line}" in script


STUBS = {
    "srun": 'case "$*" in *"vllm serve"*) exec sleep 30;; esac\ntrap \'exit 130\' TERM\n'
    'echo started "$*" >> $LOG\n[ -n "$TRAIN_CODE" ] && exit $TRAIN_CODE\nwhile :; do sleep 0.05; done\n',
    "scontrol": 'case "$1" in show) printf "n1\\nn2\\nn3\\n";; *) echo "$@" >> $LOG;; esac\n',
}


def run_script(script, tmp_path, code="", signal=None):
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in STUBS.items():
        (folder / name).write_text("#!/bin/bash\n" + text)
        (folder / name).chmod(0o755)
    (tmp_path / "gates" / "launch").mkdir(parents=True)
    log = tmp_path / "log"
    log.write_text("")
    environment = {
        "PATH": f"{folder}:{shutil.os.environ['PATH']}",
        "SLURM_SUBMIT_DIR": str(tmp_path),
        "SLURM_JOB_NODELIST": "n[1-3]",
        "SLURM_JOB_ID": "7",
        "LOG": str(log),
        "TRAIN_CODE": code,
    }
    process = subprocess.Popen(["bash", "-c", script], env=environment, start_new_session=True)
    try:
        if signal:
            while "started" not in log.read_text():
                assert process.poll() is None
            process.send_signal(signal)
        return process.wait(timeout=20), log.read_text()
    finally:
        if process.poll() is None:
            process.kill()


@pytest.mark.parametrize(("code", "requeued"), [("0", False), ("3", False), ("2", False), ("4", True)])
def test_slurm_requeues_only_what_may_pass_next_time(tmp_path, code, requeued):
    made = inputs("8b", "4xH100", "lora")
    plan = build_plan(replace(made, machine=Machine(made.machine.devices, nodes=3)))
    script = next(x for x in plan.launch if x.name == "slurm").files["gates/launch/train.sbatch"]
    found, log = run_script(script, tmp_path, code)
    assert found == int(code)
    assert ("requeue 7" in log) is requeued


def test_usr1_saves_and_requeues(tmp_path):
    import signal

    made = inputs("8b", "4xH100", "lora")
    plan = build_plan(replace(made, machine=Machine(made.machine.devices, nodes=3)))
    script = next(x for x in plan.launch if x.name == "slurm").files["gates/launch/train.sbatch"]
    found, log = run_script(script, tmp_path, signal=signal.SIGUSR1)
    assert found == 0 and "requeue 7" in log
    assert "--num_processes 8" in log and "--num_machines 2" in log
