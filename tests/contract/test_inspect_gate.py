"""The inspection of a whole workspace: every cell of the staleness table, mends, renewals, a run's completions."""

import importlib.util
import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from rlvr import fingerprint
from rlvr.cli import main
from rlvr.commands.chain import Chain
from rlvr.commands.inspecting import opened
from rlvr.commands.probing import probe_workspace
from rlvr.commands.renewal import renewed_status
from rlvr.errors import DataError, GateRefused, InfrastructureError, UsageError
from rlvr.gates import require_passed
from rlvr.inspection.folder import InspectionFolder
from rlvr.records.inspection import SIMULATED_READER
from rlvr.workspace import read_objects, write_atomic


def _load(name):
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


made = _load("inspect_made")


@pytest.fixture
def folder(tmp_path):
    return made.workspace(tmp_path / "task")


@pytest.fixture
def sit(folder):
    def read(
        reader="ada", *, rescore=False, run=None, start_over=False, judge=made.is_right, say=lambda _: None
    ):
        with opened(folder, reader, run=run, start_over=start_over, rescore=rescore, say=say) as sitting:
            sitting.clock = made.Clock()
            made.read(sitting, judge)
            return sitting.close()

    return read


@pytest.fixture
def passed(folder, sit):
    """A workspace whose inspection has passed: the reader took back three judgements of two readers' sixty."""
    write_atomic(folder / "rewards.py", made.MENDED.encode())
    made.probed(folder)
    assert sit().passed
    assert inspection(folder).state == "passed"
    return folder


def inspection(folder):
    chain = renewed_status(folder)
    return next(gate for gate in chain.gates if gate.name == "inspect")


def replace(path, old, new):
    text = path.read_text()
    assert old in text
    write_atomic(path, text.replace(old, new).encode())


def test_disagreements_a_mend_and_fresh_readings(folder, sit):
    found = sit()
    assert not found.passed
    assert len(found.open_disagreements) == found.false_positives.errors > 0
    write_atomic(folder / "rewards.py", made.MENDED.encode())
    found = sit(rescore=True)
    assert found.passed, found.refusals
    assert found.fresh.read == 20
    assert inspection(folder).state == "passed"


def edit_reward(folder):
    replace(folder / "rewards.py", "int(gold)", "int(gold) + 2")


def edit_helper(folder):
    replace(folder / "helper.py", "[int(one)", "[int(one) % 7")


def edit_argument(folder):
    replace(folder / "rlvr.yaml", "offset: 0", "offset: 1")


def edit_read_file(folder):
    (folder / "units.txt").write_text("pears\n")


def edit_a_tenth_of_rows_and_more(folder):
    rows = [json.loads(line) for line in (folder / "prompts.jsonl").read_text().splitlines()]
    for row in rows[:13]:
        row["prompt"] += " Please."
    (folder / "prompts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def edit_model(folder):
    (folder / "model" / "config.json").write_text('{"model_type": "llama"}')


def edit_sampling(folder):
    replace(folder / "rlvr.yaml", "temperature: 1.0", "temperature: 0.7")


def edit_template(folder):
    replace(folder / "rlvr.yaml", "seed: 3407", 'seed: 3407, system_prompt: "Be brief."')


def edit_label(folder):
    replace(folder / "gates" / "inspect" / "labels.jsonl", '"pass"', '"fail"')


def drop_last_label(folder):
    path = folder / "gates" / "inspect" / "labels.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))


def edit_rows_that_were_seen(folder):
    edit_a_tenth_of_rows_and_more(folder)
    rows = [row.row_hash for row in Chain(folder).rows]
    write_atomic(folder / "gates" / "inspect" / "rows.json", json.dumps({"rows": rows}).encode())


def tear_rows_that_were_seen(folder):
    write_atomic(folder / "gates" / "inspect" / "rows.json", b'{"rows": [')


def edit_attestation(folder):
    replace(folder / "gates" / "inspect.json", '"simulated": false', '"simulated": true')


@pytest.mark.parametrize(
    ("edit", "named"),
    [
        (edit_reward, "reward"),
        (edit_helper, "reward"),
        (edit_argument, "reward"),
        (edit_a_tenth_of_rows_and_more, "data"),
        (edit_model, "model"),
        (edit_sampling, "sampling"),
        (edit_template, "sampling"),
        (edit_label, "label"),
        (drop_last_label, "labels"),
        (edit_attestation, "checksum"),
        (edit_rows_that_were_seen, "rows.json"),
        (tear_rows_that_were_seen, "rows.json"),
    ],
    ids=lambda one: one if isinstance(one, str) else one.__name__,
)
def test_any_change_closes_the_gate_and_train_refuses(passed, edit, named):
    edit(passed)
    gate = inspection(passed)
    assert gate.state in ("stale", "failed")
    assert named in gate.why
    with pytest.raises(GateRefused, match="inspect is"):
        require_passed(renewed_status(passed))
    assert main(["gate", "inspect", "-w", str(passed), "--json"]) == 3
    assert main(["train", "-w", str(passed), "--json"]) == 3


def test_a_library_version_that_judges_otherwise_closes_it(passed, monkeypatch):
    replace(passed / "rewards.py", "from helper import numbers", "import sympy\n\nfrom helper import numbers")
    assert inspection(passed).state == "passed", "an import alone judges as before"
    monkeypatch.setattr(fingerprint, "_version", lambda name: "99.0")
    monkeypatch.setattr("rlvr.commands.renewal._rescored", lambda *_: [])
    gate = inspection(passed)
    assert (gate.state, gate.changed) == ("stale", ["reward"])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""Reads the last number."""', '"""Says it otherwise."""'),
        ("    found = [", "    # a remark\n    found = ["),
        (
            "def last_number(prompts, completions, answer, offset=0, **columns):",
            "def last_number(\n    prompts, completions, answer, offset=0, **columns\n):",
        ),
    ],
    ids=["docstring", "comment", "formatting"],
)
def test_what_is_no_change_closes_nothing(passed, old, new):
    before = InspectionFolder.of_gates(passed / "gates").attestation()
    replace(passed / "rewards.py", old, new)
    assert inspection(passed).state == "passed"
    assert InspectionFolder.of_gates(passed / "gates").attestation() == before, "nothing was even renewed"


@pytest.mark.parametrize("how", ["refactored", "library", "file"])
def test_a_change_that_judges_as_before_renews_itself(passed, how, monkeypatch):
    if how == "library":
        replace(
            passed / "rewards.py", "from helper import numbers", "import sympy\n\nfrom helper import numbers"
        )
        assert inspection(passed).state == "passed"
        monkeypatch.setattr(fingerprint, "_version", lambda name: "99.0")
    elif how == "file":
        edit_read_file(passed)
    else:
        replace(
            passed / "rewards.py",
            "for got, gold in zip(found, answer)",
            "for got, gold in zip(found, list(answer))",
        )
    assert inspection(passed).state == "passed"
    found = InspectionFolder.of_gates(passed / "gates").attestation()
    assert found.renewals
    assert found.renewals[-1].compared == made.ROWS


def test_a_tenth_of_the_rows_may_change(passed):
    rows = [json.loads(line) for line in (passed / "prompts.jsonl").read_text().splitlines()]
    for row in rows[:12]:
        row["prompt"] += " Please."
    (passed / "prompts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert inspection(passed).state == "passed"


@pytest.mark.parametrize(
    "section", ["method: lora", "recipe: {overrides: {max_steps: {value: 5, why: to see it run}}}"]
)
def test_what_training_alone_depends_on_closes_nothing(passed, section):
    with (passed / "rlvr.yaml").open("a") as file:
        file.write(section + "\n")
    assert inspection(passed).state == "passed"


def test_another_command_that_scores_a_mend_renews_nothing(passed):
    edit_reward(passed)
    probe_workspace(Chain(passed), rescore=True, quiet=True)
    assert inspection(passed).state == "stale"


def test_reading_waits_for_scores_of_the_reward_as_it_stands(passed, sit):
    edit_reward(passed)
    with pytest.raises(GateRefused, match="--rescore"):
        sit()


def test_another_model_starts_over_and_keeps_the_labels_as_cases(passed, sit):
    edit_model(passed)
    with pytest.raises(DataError, match="another model"):
        sit()
    made.probed(passed)
    said = []
    assert sit(say=said.append).passed
    assert "another model" in said[0]
    assert (passed / "gates" / "inspect" / "earlier-1" / "labels.jsonl").is_file()
    assert len(InspectionFolder.of_gates(passed / "gates").cases()) >= 60


def test_the_evidence_of_the_gate_is_the_attestation(passed, capsys):
    assert main(["gate", "inspect", "-w", str(passed), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["passed"] is True
    evidence = told["gates"][0]["evidence"]
    assert evidence["reader"] == "ada"
    assert evidence["read"] == 60
    assert evidence["kappa"] == 1.0
    assert 0.04 < evidence["disagreement_upper"] < 0.05
    assert set(evidence["made_from"]) >= {"reward", "data", "model", "sampling", "labels"}


def test_one_process_reads_at_a_time(folder):
    options = {"run": None, "start_over": False, "rescore": False, "say": print}
    with (
        opened(folder, "ada", **options),
        pytest.raises(InfrastructureError, match="another process"),
        opened(folder, "bob", **options),
    ):
        pass


@pytest.mark.parametrize("name", ["", "  ", "a\x1b[31m", "x" * 81, SIMULATED_READER])
def test_names_that_cannot_be_a_reader(folder, name):
    options = {"run": None, "start_over": False, "rescore": False, "say": print}
    with pytest.raises(UsageError), opened(folder, name, **options):
        pass


def test_nothing_sampled_yet(folder):
    for path in (folder / "gates" / "probe").iterdir():
        path.unlink()
    result = CliRunner().invoke(
        __import__("rlvr.commands.inspect", fromlist=["command"]).command, ["-w", str(folder)]
    )
    assert isinstance(result.exception, DataError)
    assert "rlvr probe" in result.exception.fix


def test_rescore_as_json_opens_nothing(passed, capsys):
    edit_reward(passed)
    assert main(["inspect", "-w", str(passed), "--rescore", "--json"]) == 3
    told = json.loads(capsys.readouterr().out)
    assert told["mends"] == 1
    assert told["fresh"] == {"needed": 20, "read": 0, "errors": 0, "upper": None}


def test_a_runs_own_completions(passed, sit):
    from rlvr.records.inspection import Reopening
    from rlvr.records.run import Manifest
    from rlvr.train.rollouts import RolloutWriter
    from rlvr.workspace import write_record

    run = passed / "runs" / "base-1"
    run.mkdir(parents=True)
    chain = Chain(passed)
    write_record(run / "manifest.json", Manifest(name="base-1", model="m", made_from=chain.fingerprints))
    writer = RolloutWriter(run)
    for step in range(4):
        writer.append([rollout(step, row) for row in range(step * 20, step * 20 + 20)])
    gates = InspectionFolder.of_gates(passed / "gates")
    gates.reopen(Reopening(at="2026-01-01T00:00:00Z", run="base-1", step=2, symptom="reward pays length"))
    gates.reopen(Reopening(at="2099-01-01T00:00:00Z", run="base-1", step=3, symptom="reward pays length"))
    assert "reward pays length" in inspection(passed).why

    found = sit(run="base-1")
    assert found.passed
    assert (found.source, found.read, found.needed) == ("base-1", 20, 20)
    assert found.read_at_step == 3
    assert (run / "inspect.json").is_file()

    from rlvr.commands.inspect import _after_run

    _after_run(passed, "base-1", found)
    assert inspection(passed).state == "passed"


def rollout(step, row):
    text = made.completion(row)
    right = text == f"The answer is {made.gold(row)}."
    return {
        "step": step,
        "group": row,
        "row": row,
        "prompt": f"<user>What is {row} + {row} + 5?",
        "completion": text,
        "last_number": float(right),
        "advantage": 0.1,
        "outcome": "right" if right else "wrong",
        "extracted": None,
        "tokens": 8,
        "truncated": False,
    }


def test_every_key_is_a_line(passed):
    events = read_objects(passed / "gates" / "inspect" / "labels.jsonl")
    assert len(events) == 60
    assert os.path.getsize(passed / "gates" / "inspect" / "labels.jsonl") < 60 * 600


def test_a_symptom_of_a_run_closes_the_gate_that_training_had_passed(passed):
    from types import SimpleNamespace

    from rlvr.commands.live import reopen_when_suspected

    run = passed / "runs" / "base-1"
    finding = SimpleNamespace(
        name="reward pays length", evidence="r = 0.6 within groups", suspects_reward=True
    )
    harmless = SimpleNamespace(name="truncation", evidence="12%", suspects_reward=False)
    reopen_when_suspected(Chain(passed), run, SimpleNamespace(finding=harmless), 40)
    assert inspection(passed).state == "passed"
    reopen_when_suspected(Chain(passed), run, SimpleNamespace(finding=finding), 40)
    gate = inspection(passed)
    assert gate.state == "failed"
    assert "reward pays length (r = 0.6 within groups)" in gate.why
    assert "rlvr inspect --run base-1" in gate.why


def test_labels_are_the_rewards_regression_tests_in_every_later_audit(passed):
    from rlvr.commands.audit import _labels

    assert {label.passed == label.paid for label in _labels(Chain(passed))} == {True}
    edit_reward(passed)
    labels = _labels(Chain(passed))
    assert len(labels) == 60
    assert sum(label.passed and not label.paid for label in labels) == 30


def test_a_program_reads_in_the_demo_alone_and_a_person_starts_over(folder, sit):
    from rlvr.commands.inspecting import gate_pool
    from rlvr.inspection.simulated import simulated_reader

    write_atomic(folder / "rewards.py", made.MENDED.encode())
    made.probed(folder)
    pool = gate_pool(Chain(folder))
    files = InspectionFolder.of_gates(folder / "gates")
    found = simulated_reader(
        files, pool.samples, pool.scores, pool.fingerprints, made.is_right, rows=pool.rows
    )
    assert found.passed
    gate = inspection(folder)
    assert gate.state == "failed"
    assert "simulated" in gate.why
    assert files.cases() == []
    said = []
    assert sit(say=said.append).simulated is False
    assert "a program had read" in said[0]
    assert inspection(folder).state == "passed"


def test_terminal_without_a_terminal(folder, capsys):
    assert main(["inspect", "-w", str(folder), "--terminal"]) == 2
    assert "no terminal" in capsys.readouterr().err


def test_a_selection_of_an_earlier_version_vouches_for_no_rows_and_still_counts(passed):
    from rlvr.workspace import write_record

    files = InspectionFolder.of_gates(passed / "gates")
    selection = files.selection()
    assert selection.rows_hash
    write_record(files.selection_path, selection.model_copy(update={"rows_hash": ""}))
    assert len(files.seen_rows()) == made.ROWS
    assert inspection(passed).state == "passed"
