"""`rlvr report` on what people really have: a whole run, half of one, a moved one, and a folder that TRL wrote."""

import gzip
import importlib.util
import json
from pathlib import Path

import pytest

from rlvr.cli import main
from rlvr.commands.init import write_workspace
from rlvr.templates import load_template
from rlvr.templates.base import DEFAULT_MODEL
from rlvr.workspace import write_record


def _load():
    place = Path(__file__).parents[1] / "unit" / "report" / "made.py"
    spec = importlib.util.spec_from_file_location("report_made", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


made = _load()


@pytest.fixture
def workspace(tmp_path):
    """Return a workspace with one finished run that gained and whose completions a person has read."""
    write_workspace(tmp_path / "task", load_template("text"), DEFAULT_MODEL)
    run = tmp_path / "task" / "runs" / "base-1"
    write_record(tmp_path / "task" / "gates" / "evaluation.json", made.evaluation(made.results(20, 80)))
    write_record(run / "evaluation.json", made.evaluation(made.results(70, 30)))
    write_record(run / "manifest.json", made.manifest())
    write_record(run / "inspect.json", made.reading())
    (run / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in made.log()))
    rows = [{"step": 0, "prompt": "p", "completion": "c", "outcome": "right", "tokens": 3}]
    (run / "completions.jsonl.gz").write_bytes(
        gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode())
    )
    return tmp_path / "task"


def report(capsys, *arguments):
    assert main(["report", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_whole_run(workspace, capsys):
    found = report(capsys, "-w", str(workspace))
    assert found["verdict"] == "improved"
    assert found["before"]["accuracy"] == 0.2
    assert found["missing"] == []
    page = Path(found["report"])
    assert page == workspace / "runs" / "base-1" / "report.html"
    text = page.read_text("utf-8")
    assert "Kim" in text
    assert "<code>task/runs/base-1</code>" in text
    assert str(workspace) not in text


def test_a_half_written_run_shows_what_can_be_shown(workspace, capsys):
    run = workspace / "runs" / "base-1"
    (run / "manifest.json").write_text('{"kind": "Manifest", "rec')
    (run / "evaluation.json").unlink()
    with (run / "log.jsonl").open("a") as file:
        file.write('{"step": 200, "rew')
    whole = (run / "completions.jsonl.gz").read_bytes()
    (run / "completions.jsonl.gz").write_bytes(whole + whole[: len(whole) // 2])
    found = report(capsys, "base-1", "-w", str(workspace))
    assert found["verdict"] == "not measured"
    assert any(line.startswith("manifest.json could not be read") for line in found["missing"])
    assert any(line.startswith("No evaluation.json") for line in found["missing"])
    page = Path(found["report"]).read_text("utf-8")
    assert 'id="curve-reward"' in page
    assert "What is missing" in page


def test_a_run_of_another_version_is_read_as_far_as_it_is_known(workspace, capsys):
    path = workspace / "runs" / "base-1" / "manifest.json"
    envelope = json.loads(path.read_text())
    envelope["record"] |= {"schema_number": 99, "invented": True}
    path.write_text(json.dumps(envelope))
    found = report(capsys, "base-1", "-w", str(workspace))
    assert found["verdict"] == "improved"
    assert any("what this version knows of it is shown" in line for line in found["missing"])


def test_a_moved_run(workspace, tmp_path, capsys):
    moved = tmp_path / "elsewhere"
    (workspace / "runs" / "base-1").rename(moved)
    found = report(capsys, str(moved))
    assert found["run"] == "elsewhere"
    assert any("renamed" in line for line in found["missing"])
    assert any("stands in no workspace" in line for line in found["missing"])


def test_a_folder_that_plain_trl_wrote(tmp_path, capsys):
    checkpoint = tmp_path / "output" / "checkpoint-100"
    checkpoint.mkdir(parents=True)
    history = [{"step": 10 * n, "reward": n / 10, "entropy": 1.0, "epoch": 0.1} for n in range(1, 11)]
    (checkpoint / "trainer_state.json").write_text(json.dumps({"log_history": history, "global_step": 100}))
    found = report(capsys, str(tmp_path / "output"))
    assert found["verdict"] == "not measured"
    assert "Training reward is no evidence of skill" in found["notes"][0]
    page = (tmp_path / "output" / "report.html").read_text("utf-8")
    assert "10 logged rows" in page


def test_two_runs_against_each_other(workspace, capsys):
    run = workspace / "runs" / "base-2"
    write_record(run / "manifest.json", made.manifest(name="base-2", seed=5))
    write_record(run / "evaluation.json", made.evaluation(made.results(90, 10)))
    found = report(capsys, "base-1", "base-2", "-w", str(workspace))
    assert found["verdict"] == "better"
    assert [one["field"] for one in found["differences"]] == ["seed"]


@pytest.mark.parametrize("name", ["base-9", "bas-1"])
def test_a_run_that_does_not_exist(workspace, name, capsys):
    assert main(["report", name, "-w", str(workspace)]) == 2
    assert "run.missing" in capsys.readouterr().err


def test_outside_of_any_workspace(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["report"]) == 2
    assert "workspace.missing" in capsys.readouterr().err


def test_a_broken_configuration_does_not_hide_the_run(workspace, capsys):
    (workspace / "rlvr.yaml").write_text("model: [")
    found = report(capsys, "base-1", "-w", str(workspace))
    assert found["verdict"] == "improved"
    assert any("The workspace could not be read" in line for line in found["missing"])


def test_no_samples(workspace, capsys):
    found = report(capsys, "base-1", "-w", str(workspace), "--no-samples", "-o", str(workspace / "page.html"))
    assert found["report"] == str(workspace / "page.html")
    assert "completion 3" not in (workspace / "page.html").read_text("utf-8")
