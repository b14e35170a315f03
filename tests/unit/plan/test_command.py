import json
import time

import pytest

from rlvr.cli import main
from rlvr.workspace import read_record


def run(capsys, *arguments):
    code = main(["plan", *arguments])
    out = capsys.readouterr()
    return code, out.out, out.err


def test_without_a_workspace(capsys):
    code, out, _ = run(capsys, "--model", "7b", "--method", "lora", "--device", "1xH200", "--json")
    found = json.loads(out)
    assert code == 0 and found["verdict"] == "fits"
    assert set(found) >= {"verdict", "peak_bytes", "band_bytes", "parts", "config", "remedies"}
    low, high = found["band_bytes"]
    assert low <= found["peak_bytes"] <= high
    assert found["config"]["learning_rate"] == 5e-6
    assert found["method"]["kind"] == "lora" and found["sizing"] == "closed-form"


def test_options_change_the_run(capsys):
    def peak(*extra):
        _, out, _ = run(capsys, "--model", "7b", "--device", "1xH200", "--json", *extra)
        return json.loads(out)["peak_bytes"]

    base = peak()
    assert peak("--beta", "0") < base
    assert peak("--optimizer", "adamw_8bit") < base
    assert peak("--batch", "4", "--accumulation", "8") < base
    assert peak("--max-completion-length", "4096") > base


def test_what_does_not_fit_is_an_answer_here(capsys):
    code, out, _ = run(capsys, "--model", "70b", "--device", "1xL4", "--json")
    assert code == 0 and json.loads(out)["verdict"] == "does-not-fit" and json.loads(out)["remedies"]


def test_for_a_person(capsys):
    code, out, _ = run(capsys, "--model", "7b", "--device", "1xL40S")
    assert code == 0
    for words in ("does not fit", "GiB", "remedy", "learning_rate", "estimate"):
        assert words in out


def test_verdict_and_remedies_come_first_and_last_and_no_unwritten_file_is_named(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = run(capsys, "--model", "7b", "--device", "1xH200")
    lines = out.strip().splitlines()
    assert lines[0].startswith("does not fit") and lines[2].startswith("remedy ")
    assert any(line.startswith("does not fit") for line in lines[-5:]) and "--optimizer" in "".join(
        lines[-3:]
    )
    assert "gates/launch" not in out and "rlvr train" not in out
    assert "vllm_importance_sampling_correction" in out and "…" not in out
    assert "1000 prompts and temperature 1 are assumed" in out


def test_an_unknown_device_is_corrected_in_the_example_too(capsys):
    _, out, _ = run(capsys, "--model", "7b", "--device", "2xH20", "--json")
    error = json.loads(out)["error"]
    assert "'H200'" in error["found"] and error["fix"] == "rlvr plan --device 2xH200"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--model", "novel"), 2),
        (("--model", "7b", "--device", "1xH900"), 2),
        (("--model", "7b", "--device", "1xH100", "--batch", "3"), 2),
        (("--model", "7b", "--device", "1xH100", "--optimizer", "adam"), 2),
        (("--model", "7b", "--device", "1xH100", "--max-completion-length", "99999"), 2),
        (("-w", "nowhere"), 2),
    ],
)
def test_mistakes(capsys, arguments, code):
    found, out, err = run(capsys, *arguments, "--json")
    assert found == code and "Traceback" not in err
    assert json.loads(out)["error"]["code"]


def test_fields(capsys):
    _, out, _ = run(capsys, "--fields", "--json")
    assert json.loads(out)["loss_type"]["allowed"]


WORKSPACE = """
model: model
task: {prompts: prompts.jsonl, signal: answer}
rewards: [{use: exact}]
sampling: {max_completion_length: 24}
method: full
hardware: cpu
recipe:
  overrides:
    learning_rate: {value: 1e-3, why: a model of this size learns at this rate, before_base_run: true}
    gradient_checkpointing: {value: false, why: the model is tiny anyway}
"""


@pytest.fixture
def workspace(tmp_path):
    (tmp_path / "rlvr.yaml").write_text(WORKSPACE)
    rows = [{"prompt": f"sort {i}", "answer": str(i)} for i in range(64)]
    (tmp_path / "prompts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "model").mkdir()
    config = {
        "model_type": "llama",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 128,
        "vocab_size": 100,
        "max_position_embeddings": 256,
    }
    (tmp_path / "model" / "config.json").write_text(json.dumps(config))
    return tmp_path


def test_workspace_gets_a_record_and_files(capsys, workspace):
    from rlvr.records.plan import PlanRecord

    code, out, _ = run(capsys, "-w", str(workspace), "--json")
    assert code == 0 and json.loads(out)["verdict"] == "fits"
    record = read_record(workspace / "gates" / "plan.json", PlanRecord)
    assert record is not None and record.passed and record.moved_before_base_run == ["learning_rate"]
    assert record.made_from.model and record.made_from.recipe
    assert (workspace / "gates" / "launch" / "grpo.yaml").is_file()
    assert "plan.lengths-assumed" in {remark.code for remark in record.remarks}


def test_override_is_refused_at_its_place(capsys, workspace):
    path = workspace / "rlvr.yaml"
    path.write_text(path.read_text().replace("before_base_run: true", "after: base-1"))
    code, out, _ = run(capsys, "-w", str(workspace), "--json")
    error = json.loads(out)["error"]
    assert code == 3 and error["where"] == "recipe.overrides.learning_rate"
    assert not (workspace / "gates" / "plan.json").exists()


def test_a_plan_takes_no_time(capsys):
    run(capsys, "--model", "70b", "--device", "8xH100", "--json")
    start = time.process_time()
    run(capsys, "--model", "70b", "--device", "8xH100", "--json")
    assert time.process_time() - start < 0.2
