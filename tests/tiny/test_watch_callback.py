"""The callback in a plain TRL script, with a model of a few thousand parameters."""

from pathlib import Path

import pytest

pytestmark = pytest.mark.tiny


@pytest.fixture
def model(tmp_path: Path) -> Path:
    from rlvr.demo.model import build_model, build_tokenizer, save

    tokenizer = build_tokenizer()
    save(build_model(len(tokenizer), 0, hidden=16, layers=1), tokenizer, tmp_path / "model")
    return tmp_path / "model"


def trainer(model: Path, out: Path, reward, steps: int = 40):
    from datasets import Dataset
    from transformers.trainer_callback import PrinterCallback, ProgressCallback
    from trl import GRPOConfig, GRPOTrainer

    arguments = GRPOConfig(
        output_dir=str(out), per_device_train_batch_size=8, num_generations=8, max_steps=steps, logging_steps=1,
        max_completion_length=4, learning_rate=1e-4, save_strategy="no", report_to="none", bf16=False, use_cpu=True,
        gradient_checkpointing=False, disable_tqdm=True, seed=1,
    )  # fmt: skip
    data = Dataset.from_list([{"prompt": f"<|user|>sort {n}<|end|><|assistant|>"} for n in range(1000, 1064)])
    found = GRPOTrainer(model=str(model), reward_funcs=reward, args=arguments, train_dataset=data)
    found.remove_callback(PrinterCallback)
    found.remove_callback(ProgressCallback)
    return found


def nothing(completions: list[str], **_: object) -> list[float]:
    return [0.0 for _ in completions]


def test_a_critical_symptom_pauses_with_a_checkpoint(model: Path, tmp_path: Path) -> None:
    from rlvr.errors import StopTraining
    from rlvr.watch.callback import WatchCallback

    heard, paused = [], []
    made = trainer(model, tmp_path / "out", nothing)
    callback = WatchCallback.attach(
        made, action="pause", on_finding=heard.append, on_pause=paused.append, raise_at_end=True
    )
    with pytest.raises(StopTraining, match=r"truncation|no-signal") as stopped:
        made.train()
    assert stopped.value.exit_code == 3
    assert stopped.value.code == "train.paused"
    assert [f.level for f in paused] == ["critical"]  # once, however many symptoms follow
    assert paused[0] in heard
    assert paused[0].name in {"truncation", "no-signal"}
    assert made.state.global_step < 40
    assert (tmp_path / "out" / f"checkpoint-{made.state.global_step}" / "trainer_state.json").is_file()
    assert callback.findings is not None
    assert callback.findings.completions > 0
    assert callback.watch.facts.reward_weights == {"nothing": 1.0}


def test_warnings_let_a_run_go_on(model: Path, tmp_path: Path) -> None:
    from rlvr.watch.callback import WatchCallback

    due = []
    made = trainer(model, tmp_path / "out", nothing, steps=28)
    callback = WatchCallback(on_finding=lambda finding: None, reinspect_every=10, on_due=due.append)
    made.add_callback(callback)
    made.train()
    assert made.state.global_step == 28
    assert callback.ended is None
    assert due == [10, 20]


def test_what_trl_printed_is_read_back(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from transformers.trainer_callback import PrinterCallback

    from rlvr.watch.ingest import read_source

    made = trainer(model, tmp_path / "out", nothing, steps=9)
    made.add_callback(PrinterCallback)
    made.train()
    path = tmp_path / "stdout.log"
    path.write_text(capsys.readouterr().out)
    printed, kept = read_source(path).history, made.state.log_history
    rewards = [row["reward"] for row in kept if "reward" in row]
    assert len(printed) == len(rewards) == 9
    assert printed.columns["reward"].tolist() == pytest.approx(rewards)
    assert printed.columns["length"].tolist() == pytest.approx(
        [row["completions/mean_length"] for row in kept if "reward" in row], rel=1e-3
    )


def test_an_action_that_does_not_exist_is_refused() -> None:
    from rlvr.errors import UsageError
    from rlvr.watch.callback import WatchCallback

    with pytest.raises(UsageError, match="no action 'shout'"):
        WatchCallback("shout")  # type: ignore[arg-type]
