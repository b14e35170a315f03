"""Resuming is exact even where the checkpoint falls between a generation and its last update."""

import dataclasses
from pathlib import Path

import pytest

pytestmark = pytest.mark.tiny


def job(workspace: Path, run: Path, **settings):
    from rlvr.commands.chain import Chain
    from rlvr.commands.training import training_job
    from rlvr.records.plan import PlanRecord

    chain = Chain(workspace)
    plan = chain.workspace.read_record("plan", PlanRecord)
    made = training_job(chain, plan, run, quiet=True)
    return dataclasses.replace(made, settings={**made.settings, **settings})


OFF_POLICY = {
    "max_steps": 12,
    "per_device_train_batch_size": 16,
    "gradient_accumulation_steps": 1,
    "steps_per_generation": 4,
    "logging_steps": 3,
    "save_steps": 3,
    "save_total_limit": None,
    "warmup_steps": 0,
}


@pytest.mark.parametrize("kept", [3, 6])
def test_resume_between_a_generation_and_its_last_update(demo_workspace: Path, tmp_path: Path, kept: int):
    import shutil

    from rlvr.train.rollouts import NAME, read_rollouts
    from rlvr.train.run import train
    from rlvr.workspace import read_objects

    whole, broken = tmp_path / "whole", tmp_path / "broken"
    train(job(demo_workspace, whole, **OFF_POLICY))
    shutil.copytree(whole, broken)
    for checkpoint in (broken / "trainer").glob("checkpoint-*"):
        if int(checkpoint.name.rpartition("-")[2]) > kept:
            shutil.rmtree(checkpoint)
    shutil.rmtree(broken / "model")
    result = train(dataclasses.replace(job(demo_workspace, broken, **OFF_POLICY), resume=True))
    assert result.steps == 12
    assert (whole / "model/model.safetensors").read_bytes() == (
        broken / "model/model.safetensors"
    ).read_bytes()
    assert list(read_rollouts(whole / NAME)) == list(read_rollouts(broken / NAME))
    logs = [
        [
            {k: v for k, v in row.items() if k not in ("seconds", "step_time")}
            for row in read_objects(run / "log.jsonl")
        ]
        for run in (whole, broken)
    ]
    assert logs[0] == logs[1]
