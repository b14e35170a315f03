import json
import random

import pytest
import yaml

from rlvr.cli import main
from rlvr.commands.chain import Chain
from rlvr.commands.check import check_workspace
from rlvr.commands.init import write_workspace
from rlvr.templates import TEMPLATES, load_template
from rlvr.templates.base import DEFAULT_MODEL, HELD_OUT_ROWS, TRAINING_ROWS, demonstration


@pytest.mark.parametrize("name", TEMPLATES)
def test_data_is_whole_distinct_and_always_the_same(name):
    template = load_template(name)
    training, held_out = template.items()
    assert (len(training), len(held_out)) == (TRAINING_ROWS, HELD_OUT_ROWS)
    assert len({item.prompt for item in training + held_out}) == TRAINING_ROWS + HELD_OUT_ROWS
    assert template.workspace_files("tiny") == template.workspace_files("tiny")


@pytest.mark.parametrize("model", ["tiny", DEFAULT_MODEL])
@pytest.mark.parametrize("name", TEMPLATES)
def test_the_configuration_is_read_and_admitted(name, model, tmp_path):
    folder = tmp_path / "task"
    write_workspace(folder, load_template(name), model)
    chain = Chain(folder)
    assert chain.config.task.signal == load_template(name).signal
    if model == DEFAULT_MODEL:  # the tiny model's folder is built by the command
        assert check_workspace(chain)["passed"]
        assert chain.config.sampling.system_prompt
    assert yaml.safe_load((folder / "rlvr.yaml").read_text())["model"] == (
        DEFAULT_MODEL if model != "tiny" else "./model"
    )


@pytest.mark.parametrize("name", TEMPLATES)
def test_the_rewards_pay_what_the_template_calls_right_and_nothing_else(name, tmp_path):
    template = load_template(name)
    write_workspace(tmp_path, template, "tiny")
    scorer = Chain(tmp_path).scorer
    items = template.items()[0][:12]
    for pick, wanted in (("right", True), ("wrong", False), ("broken", False)):
        texts = [item.right if pick == "right" else next(iter(getattr(item, pick))) for item in items]
        columns = {key: [item.columns[key] for item in items] for key in items[0].columns}
        chats = [[{"role": "assistant", "content": text}] for text in texts]
        scores = scorer.score_batch([[] for _ in items], chats, columns)
        assert [score.outcome.value == "right" for score in scores] == [wanted] * len(items), (
            pick,
            scores[0],
        )


@pytest.mark.parametrize("name", TEMPLATES)
def test_demonstrations_are_mixed(name):
    template = load_template(name)
    rng = random.Random(0)
    items = template.items()[0]
    right = sum(demonstration(item, rng) == item.right for item in items)
    assert 0.3 < right / len(items) < 0.5


def test_nothing_is_overwritten(tmp_path, capsys):
    (tmp_path / "held_out.jsonl").write_text("mine")
    assert main(["init", str(tmp_path)]) == 2
    assert "init.exists" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["held_out.jsonl"]


def test_the_command_says_what_it_wrote_and_what_is_next(tmp_path, capsys):
    assert main(["init", str(tmp_path / "new"), "--template", "text", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["files"] == ["rlvr.yaml", "prompts.jsonl", "held_out.jsonl", "reward.py"]
    assert found["model"] == DEFAULT_MODEL


def test_a_model_folder_is_named_so_that_the_workspace_finds_it(tmp_path, monkeypatch, capsys):
    (tmp_path / "weights").mkdir()
    monkeypatch.chdir(tmp_path)
    assert main(["init", "task", "--model", "weights", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["model"] == str(tmp_path / "weights")
