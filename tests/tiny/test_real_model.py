"""The chain's expensive steps on a real model: the probe, and two steps of GRPO with LoRA on SmolLM2-135M."""

import json
from pathlib import Path

import pytest
from tests.conftest import run_rlvr

from rlvr.errors import InfrastructureError

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from rlvr.demo import real

    folder = tmp_path_factory.mktemp("real") / "work"
    try:
        real.write_workspace(folder, seed=0)
        real.build_checkpoint(folder / "model")
    except InfrastructureError as error:
        pytest.skip(f"the model cannot be fetched: {error.found}")
    config = folder / "rlvr.yaml"
    text = config.read_text().replace("prompts: 40, rollouts: 8, rollout_prompts: 20", SMALL)
    config.write_text(text)
    return folder


SMALL = "prompts: 8, rollouts: 4, rollout_prompts: 4"


def test_checkpoint_is_an_ordinary_folder(workspace: Path):
    config = json.loads((workspace / "model/config.json").read_text())
    assert "quantization_config" not in config
    assert (workspace / "model/model.safetensors").is_file()
    assert (workspace / "model/tokenizer.json").is_file()


def test_probe_measures_the_real_model(workspace: Path):
    done = run_rlvr("probe", "--json", folder=workspace, timeout=500)
    assert done.returncode in (0, 3), done.stderr
    found = json.loads(done.stdout)
    assert found["success"]["training_temperature"]["samples"] == 16
    assert found["lengths"]["completion"]["longest"] <= 32


def test_two_steps_of_grpo_with_an_adapter(workspace: Path):
    done = run_rlvr("train", "--rehearse", "--json", folder=workspace, timeout=500)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["steps"] == 2
