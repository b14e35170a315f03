"""What other programs read of watch, variant and compare."""

import json
from pathlib import Path

import pytest

from rlvr.cli import main


def log(path: Path, collapsed: bool, steps: int = 60) -> Path:
    rows = []
    for i in range(1, steps + 1):
        t = i / steps
        rows.append({
            "step": i,
            "reward": (0.3 - 0.25 * t if collapsed else 0.3 + 0.5 * t) + 0.01 * (i % 3),
            "entropy": 0.9 * (0.05 if collapsed else 0.3) ** t,
            "completions/mean_length": 50 * (0.06 if collapsed else 0.9) ** t,
            "frac_reward_zero_std": 0.4 + 0.3 * t,
        })  # fmt: skip
    path.write_text(json.dumps({"log_history": rows}))
    return path


def ask(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict]:
    code = main([*arguments, "--json"])
    out = capsys.readouterr().out
    assert len(out.strip().splitlines()) == 1
    return code, json.loads(out)


def test_watch_names_symptoms_with_the_agreed_keys(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found = ask(capsys, "watch", str(log(tmp_path / "trainer_state.json", True)))
    assert code == 0
    symptom = next(s for s in found["symptoms"] if s["name"] == "entropy-collapse")
    assert symptom["level"] == "critical"
    assert isinstance(symptom["since_step"], int)
    assert symptom["evidence"]
    assert symptom["action"]
    assert all({"name", "needs"} <= set(n) for n in found["not_judged"])


def test_a_healthy_log_has_nothing_above_information(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, found = ask(capsys, "watch", str(log(tmp_path / "trainer_state.json", False)))
    assert [s for s in found["symptoms"] if s["level"] != "information"] == []


def test_watch_writes_a_page_and_a_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    assert main(["watch", str(log(tmp_path / "trainer_state.json", True)), "--html", str(page)]) == 0
    assert "entropy-collapse" in capsys.readouterr().out
    assert page.read_text().startswith("<!doctype html>")


def test_errors_are_one_object_with_a_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = ask(capsys, "watch", str(tmp_path / "none.json"))
    assert code == 2
    assert found["error"]["code"] == "watch.no-such-file"


def test_names_lists_what_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    _, found = ask(capsys, "watch", "--names")
    assert "critic/score/mean" in found["reward"]


def test_variant_refuses_unread_and_without_symptom(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found = ask(capsys, "variant", str(log(tmp_path / "trainer_state.json", True)))
    assert code == 3
    assert found["variant"] == "dapo"
    assert any("0 of 20 completions" in r for r in found["refusals"])
    assert {c["field"]: c["after"] for c in found["changes"]}["epsilon_high"] == 0.28
    code, found = ask(capsys, "variant", str(log(tmp_path / "trainer_state.json", False)), "--name", "dapo")
    assert code == 3
    assert found["variant"] is None
    assert found["refusals"]


WORKSPACE = """\
# a comment that stays
model: ./model
task: {prompts: prompts.jsonl, signal: answer}
rewards:
  - use: exact  # right or wrong
"""


def test_apply_writes_the_variant_with_its_evidence_and_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from rlvr.config.file import read_config

    (tmp_path / "rlvr.yaml").write_text(WORKSPACE)
    run = tmp_path / "runs" / "base-1"
    run.mkdir(parents=True)
    log(run / "trainer_state.json", False)
    (run / "manifest.json").write_text(
        json.dumps({"model": "Qwen/Qwen3-30B-A3B", "settings": {"beta": {"value": 0.01}}})
    )
    code = main(["variant", "base-1", "-w", str(tmp_path), "--apply"])
    assert code == 0
    text = (tmp_path / "rlvr.yaml").read_text()
    assert text.startswith(WORKSPACE.splitlines()[0])
    assert "# right or wrong" in text
    config = read_config(tmp_path / "rlvr.yaml")
    assert config.variant is not None
    assert (config.variant.name, config.variant.run) == ("gspo", "base-1")


def test_compare_has_an_interval_for_every_metric(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [log(tmp_path / f"{name}.json", bad) for name, bad in (("a", True), ("b", False))]
    code, found = ask(capsys, "compare", *map(str, paths), "--variant", "dapo")
    assert code == 0
    entropy = next(e for e in found["effects"] if e["metric"] == "entropy")
    assert entropy["low"] < entropy["difference"] < entropy["high"]
    assert entropy["verdict"] == "as expected"
    assert "entropy-collapse" in found["symptoms_gone"]


def measured_run(place: Path, correct: list[int]) -> None:
    from rlvr.records.run import Evaluation, PromptResult
    from rlvr.workspace import write_record

    place.mkdir(parents=True)
    log(place / "trainer_state.json", False)
    results = [PromptResult(row_hash=str(i), prompt="p", correct=c, judged=1) for i, c in enumerate(correct)]
    mean = sum(correct) / len(correct)
    record = Evaluation(
        version="0", made_at="", accuracy=mean, low=mean - 0.1, high=mean + 0.1, prompts=len(correct),
        check="correct", results=results,
    )  # fmt: skip
    write_record(place / "evaluation.json", record)


def test_compare_reads_held_out_accuracy_beside_the_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    measured_run(tmp_path / "a", [1, 0] * 30 + [0] * 20)
    measured_run(tmp_path / "b", [1, 0] * 30 + [1] * 20)
    places = [str(tmp_path / name) for name in ("a", "b")]
    code, found = ask(capsys, "compare", *places)
    assert code == 0
    held_out = found["held_out"]
    assert held_out["first"]["after"]["accuracy"] == 0.375
    assert held_out["second"]["before"] is None
    assert held_out["difference"]["low"] < 0.25 < held_out["difference"]["high"]
    assert not any("held-out" in line for line in found["warnings"])
    assert main(["compare", *places]) == 0
    assert "+25.0 points" in capsys.readouterr().out


def test_watching_needs_no_torch(tmp_path: Path) -> None:
    import subprocess
    import sys

    path = log(tmp_path / "trainer_state.json", True)
    code = (
        "import sys; from rlvr.cli import main; main(['watch', sys.argv[1], '--json']); "
        "heavy = {'torch', 'transformers', 'trl', 'datasets', 'scipy', 'pandas'} & set(sys.modules); "
        "sys.exit(f'imported: {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
