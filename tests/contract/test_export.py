"""The hand-over: files that plain TRL and verl read, rewards that need nothing else, and a brief with a schema."""

import dataclasses
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvr.cli import main
from rlvr.commands.chain import Chain
from rlvr.commands.export import gather, write_export
from rlvr.export.brief import brief_schema, schema_text
from rlvr.export.trl import yaml_value
from rlvr.export.verl import overrides, verl_files

ROOT = Path(__file__).parents[2]
FIELDS = Path(__file__).with_name("verl_0_9_1_fields.json")
RIGHT = "<answer>0123</answer>"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    """Return a workspace with a plan, a model with random weights, and no other gate."""
    from rlvr.commands.plan import plan_workspace
    from rlvr.demo import model as tiny
    from rlvr.demo.workspace import write_workspace

    folder = tmp_path_factory.mktemp("export") / "sorting"
    write_workspace(folder, 0)
    tokenizer = tiny.build_tokenizer()
    tiny.save(tiny.build_model(len(tokenizer), 0), tokenizer, folder / "model")
    plan_workspace(Chain(folder))
    return folder


@pytest.fixture(scope="module")
def exported(workspace):
    target = workspace.parent / "handover"
    assert main(["export", str(target), "-w", str(workspace)]) == 0
    return target


def run_python(code, folder, *, without_rlvr=False):
    """Run code in a folder; without rlvr, the source tree is taken off the path, so that only vendor/ has it."""
    hidden = (
        f"import sys; sys.path = [p for p in sys.path if p != {str(ROOT / 'src')!r}]; "
        if without_rlvr
        else ""
    )
    done = subprocess.run(
        [sys.executable, "-c", f"{hidden}import sys; sys.path.insert(0, '.'); {code}"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_brief_follows_its_schema_and_says_what_is_not_passed(exported):
    brief = json.loads((exported / "brief.json").read_text())
    jsonschema.Draft202012Validator(brief_schema()).validate(brief)
    assert brief["ready"] is False
    assert brief["next"] == "rlvr audit"
    assert "audit is missing: not done yet: rlvr audit" in brief["red"]
    assert any(line.startswith("learning_rate was moved before a base run") for line in brief["red"])
    assert brief["configuration"]["learning_rate"]["value"] == 1e-3
    assert set(brief["files"]) >= {"grpo_config.yaml", "train.py", "rewards.py", "data/train.jsonl"}


def test_the_published_schema_is_the_one_of_the_code():
    assert (ROOT / "docs" / "brief.schema.json").read_text() == schema_text()


def test_require_passed_refuses_and_writes_nothing(workspace, tmp_path):
    target = tmp_path / "out"
    assert main(["export", str(target), "-w", str(workspace), "--require-passed"]) == 3
    assert not target.exists()


def test_a_folder_of_somebody_else_is_left_alone(workspace, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    assert main(["export", str(tmp_path), "-w", str(workspace)]) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_the_yaml_says_what_the_plan_says(exported, workspace):
    found = yaml.safe_load((exported / "grpo_config.yaml").read_text())
    plan = json.loads((workspace / "gates" / "plan.json").read_text())["record"]["settings"]
    for name, setting in plan.items():
        if name not in ("output_dir", "reward_weights"):
            assert found[name] == setting["value"], name
    assert found["reward_funcs"] == ["rewards.correct", "rewards.well_formed"]


def test_several_devices_start_the_script_by_accelerate(workspace, tmp_path):
    from rlvr.plan.launch import accelerate_files
    from rlvr.records.plan import Launch

    chain = Chain(workspace)
    inputs = gather(chain, chain.status())
    launches = [
        Launch(name="accelerate", commands=["x"], files=accelerate_files("zero3", 4, 1, "bf16")),
        Launch(name="slurm", commands=["sbatch gates/launch/slurm.sh"]),
    ]
    plan = inputs.plan.model_copy(update={"launch": launches})
    brief = write_export(tmp_path / "out", dataclasses.replace(inputs, plan=plan))
    assert brief.launch["accelerate"] == ["accelerate launch --config_file launch/accelerate.yaml train.py"]
    assert brief.launch["workspace-slurm"] == ["sbatch gates/launch/slurm.sh"]
    config = yaml.safe_load((tmp_path / "out" / "launch" / "accelerate.yaml").read_text())
    assert (tmp_path / "out" / config["deepspeed_config"]["deepspeed_config_file"]).is_file()


@settings(deadline=None)
@given(
    st.floats(allow_nan=False, allow_infinity=False) | st.booleans() | st.none() | st.integers() | st.text()
)
def test_values_survive_yaml(value):
    found = yaml.safe_load(f"a: {yaml_value(value)}")["a"]
    assert type(found) is type(value)
    assert found == value or math.isclose(found, value)


def test_rewards_need_no_rlvr_where_no_code_is_run(exported):
    code = (
        "import rewards, rlvr; print(rlvr.__file__); "
        f"chat = [[dict(role='assistant', content={RIGHT!r})], [dict(role='assistant', content='no')]]; "
        "print([f(prompts=['a', 'b'], completions=chat, answer=['0123', '0123']) for f in rewards.REWARDS])"
    )
    place, scores = run_python(code, exported, without_rlvr=True).splitlines()
    assert Path(place).parent == exported / "vendor" / "rlvr"
    assert scores == "[[1.0, 0.0], [1.0, 0.0]]"


def test_a_users_own_reward_travels_with_columns_that_arrow_would_change(tmp_path):
    from rlvr.commands.init import write_workspace
    from rlvr.commands.plan import plan_workspace
    from rlvr.demo import model as tiny
    from rlvr.templates import load_template

    folder = tmp_path / "facts"
    write_workspace(folder, load_template("json"), "tiny")
    tokenizer = tiny.build_tokenizer()
    tiny.save(tiny.build_model(len(tokenizer), 0), tokenizer, folder / "model")
    plan_workspace(Chain(folder))
    assert main(["export", str(tmp_path / "out"), "-w", str(folder)]) == 0
    code = (
        "import json, rewards, datasets; datasets.disable_progress_bars(); "
        "rows = datasets.load_dataset('json', data_files='data/train.jsonl', split='train', cache_dir='c'); "
        "row = rows[0]; gold = json.dumps(json.loads(row['answer'])); "
        "print([f(prompts=['p'], completions=[gold], answer=[row['answer']]) for f in rewards.REWARDS])"
    )
    assert run_python(code, tmp_path / "out", without_rlvr=True) == "[[1.0], [1.0]]"


@pytest.mark.tiny
def test_plain_trl_trains_on_the_exported_yaml(exported):
    done = subprocess.run(
        [
            Path(sys.executable).with_name("trl"),
            "grpo",
            "--config",
            "grpo_config.yaml",
            "--max_steps",
            "2",
            "--logging_steps",
            "1",
        ],
        cwd=exported,
        capture_output=True,
        text=True,
        timeout=280,
        env={
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "HF_HUB_OFFLINE": "1",
            "HF_DATASETS_CACHE": str(exported.parent / "cache"),
        },
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert (exported / "output" / "model.safetensors").is_file()
    assert "'rewards/well_formed/mean'" in done.stdout + done.stderr


@pytest.mark.tiny
@pytest.mark.slow
def test_the_script_trains_on_its_own(exported):
    short = (exported / "train.py").read_text().replace("max_steps=150", "max_steps=2")
    (exported / "short.py").write_text(short)
    done = subprocess.run(
        [sys.executable, "short.py"],
        cwd=exported,
        capture_output=True,
        text=True,
        timeout=280,
        env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_verl_reads_every_field_that_is_set(workspace):
    chain = Chain(workspace)
    known = set(json.loads(FIELDS.read_text())["fields"])
    found = overrides(gather(chain, chain.status()))
    assert not set(found) - known
    assert found["data.train_batch_size"] == 8
    assert found["actor_rollout_ref.rollout.n"] == 8
    assert found["actor_rollout_ref.actor.loss_agg_mode"] == "seq-mean-token-mean"


def test_verl_data_and_score(workspace, tmp_path):
    import pyarrow.parquet as parquet

    assert main(["export", str(tmp_path / "v"), "-w", str(workspace), "--for", "verl"]) == 0
    row = parquet.read_table(tmp_path / "v" / "data" / "train.parquet").slice(0, 1).to_pylist()[0]
    assert row["prompt"] == [{"role": "user", "content": row["prompt"][0]["content"]}]
    assert row["reward_model"]["style"] == "rule"
    answer = json.loads(row["reward_model"]["ground_truth"])["answer"]
    code = (
        "from compute_score import compute_score as score; "
        f"gold = {row['reward_model']['ground_truth']!r}; extra = {row['extra_info']!r}; "
        f"print(score('d', '<answer>{answer}</answer>', gold, extra)); print(score('d', 'nothing', gold, None))"
    )
    right, wrong = run_python(code, tmp_path / "v", without_rlvr=True).splitlines()
    assert right == "{'score': 1.2, 'acc': 1.0}"
    assert wrong == "{'score': 0.0, 'acc': 0.0}"
    subprocess.run(["bash", "-n", "launch.sh"], cwd=tmp_path / "v", check=True)


def test_verl_never_scores_a_failure_as_wrong(workspace, tmp_path):
    chain = Chain(workspace)
    for name, content in verl_files(gather(chain, chain.status())).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    code = (
        "import compute_score as c; from rlvr.errors import InfrastructureError\n"
        "def broken(*a, **k): raise InfrastructureError('x', 'the disk is full')\n"
        "from rlvr.rewards.composite import Component, Scorer\n"
        "c.SCORER = Scorer([Component('correct', broken)])\n"
        "try:\n c.compute_score('d', 'text', '{}', None)\n"
        "except RuntimeError as error: print(error)"
    )
    assert "could not judge a completion" in run_python(code, tmp_path, without_rlvr=True)
