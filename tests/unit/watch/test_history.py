import math

import numpy as np
import pytest

from rlvr.errors import DataError
from rlvr.watch import history as module
from rlvr.watch.history import history_from_rows, number


def test_an_evaluation_row_joins_the_training_row_of_its_step() -> None:
    found = history_from_rows(
        [{"step": 1, "reward": 0.1}, {"step": 1, "held_out/accuracy": 0.3}, {"step": 2, "reward": 0.2}]
    )
    assert found.steps.tolist() == [1, 2]
    assert found.columns["held_out"][0] == 0.3
    assert math.isnan(found.columns["held_out"][1])


def test_a_resumed_run_replaces_the_rows_it_repeats() -> None:
    first = [{"step": s, "reward": 0.0} for s in range(1, 41)]
    again = [{"step": s, "reward": 1.0} for s in range(31, 61)]
    found = history_from_rows(first + again)
    assert found.steps.tolist() == list(range(1, 61))
    assert found.columns["reward"][29] == 0.0
    assert found.columns["reward"][30] == 1.0
    assert any("resumed at step 31: 10 repeated rows" in r for r in found.remarks)


def test_of_two_runs_one_after_another_the_last_is_judged_and_said() -> None:
    rows = [{"step": s, "reward": 0.0} for s in range(1, 31)] + [
        {"step": s, "reward": 1.0} for s in range(1, 21)
    ]
    found = history_from_rows(rows)
    assert len(found) == 20
    assert set(found.columns["reward"]) == {1.0}
    assert any("2 runs one after another" in r for r in found.remarks)


def test_rows_of_two_runs_mixed_are_refused_with_what_to_do() -> None:
    rows = [{"step": s, "reward": float(r)} for s in range(1, 40) for r in (0, 1)]
    with pytest.raises(DataError, match="mixed") as caught:
        history_from_rows(rows)
    assert caught.value.code == "watch.mixed-runs"
    assert "--run-id" in caught.value.fix


def test_a_run_column_tells_mixed_runs_apart() -> None:
    rows = [{"step": s, "reward": float(r), "run": f"r{r}"} for s in range(1, 40) for r in (0, 1)]
    assert set(history_from_rows(rows, run="r0").columns["reward"]) == {0.0}
    last = history_from_rows(rows)
    assert set(last.columns["reward"]) == {1.0}
    assert any("2 runs" in r for r in last.remarks)
    with pytest.raises(DataError, match="no run 'other'"):
        history_from_rows(rows, run="other")


def test_rows_without_a_step_are_counted_and_said() -> None:
    found = history_from_rows([{"reward": 0.1}, {"reward": 0.2}])
    assert found.steps.tolist() == [1, 2]
    assert any("counted" in r for r in found.remarks)


def test_values_that_are_not_finite_are_kept_apart() -> None:
    rows = [
        {"step": 1, "grad_norm": 1.0},
        {"step": 2, "grad_norm": "nan"},
        {"step": 3, "grad_norm": math.inf},
    ]
    found = history_from_rows(rows)
    assert found.not_finite["grad_norm"] == [2, 3]
    assert np.isfinite(found.columns["grad_norm"]).tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("0.25", 0.25),
        ("1e-06", 1e-6),
        (" 12% ", 0.12),
        ("12/400", 12.0),
        ("1,024", 1024.0),
        ("word", None),
        (True, 1.0),
    ],
)
def test_numbers_in_every_dress(given: object, expected: float | None) -> None:
    assert number(given) == (pytest.approx(expected) if expected is not None else None)


def test_components_and_their_held_out_scores() -> None:
    rows = [
        {"step": s, "rewards/format/mean": 0.5, "rewards/format/std": 0.1, "eval_rewards/format/mean": 0.4}
        for s in range(1, 4)
    ]
    found = history_from_rows(rows).components["format"]
    assert found.mean.tolist() == [0.5] * 3
    assert found.std.tolist() == [0.1] * 3
    assert found.held_out.tolist() == [0.4] * 3


def test_the_best_of_several_names_is_chosen_and_the_rest_is_named() -> None:
    rows = [
        {"step": s, "critic/rewards/mean": 9.0, "critic/score/mean": 0.5, "actor/odd": 1.0} for s in (1, 2)
    ]
    found = history_from_rows(rows)
    assert found.columns["reward"].tolist() == [0.5, 0.5]
    assert found.names["reward"] == "critic/score/mean"
    assert found.unmapped == ("actor/odd",)


def test_percent_and_turned_signs_are_brought_to_one_unit() -> None:
    rows = [{"step": s, "eval_accuracy": 40.0 + s, "entropy_loss": -0.5} for s in range(1, 5)]
    found = history_from_rows(rows)
    assert found.columns["held_out"][0] == pytest.approx(0.41)
    assert found.columns["entropy"][0] == 0.5
    assert len(found.remarks) == 2


def test_a_very_long_log_stays_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROW_CAP", 100)
    found = history_from_rows({"step": s, "reward": float(s)} for s in range(1, 1601))
    assert len(found) <= 200
    assert found.columns["reward"].mean() == pytest.approx(800.5, rel=0.02)
    assert any("merged in groups of" in r for r in found.remarks)


def test_upto_shows_what_a_live_check_sees() -> None:
    found = history_from_rows(
        {"step": s, "reward": s / 10, "loss": "nan" if s == 9 else 0} for s in range(1, 11)
    )
    part = found.upto(5)
    assert part.steps.tolist() == [1, 2, 3, 4, 5]
    assert part.not_finite["loss"] == []
