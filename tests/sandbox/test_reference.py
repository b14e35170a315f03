"""From a data set's reference to a job."""

import pytest

from rlvr.errors import DataError, UsageError
from rlvr.sandbox import CallTest, Comparison, Limits, ScriptTests, StdioTest, job_from_reference


def test_calls() -> None:
    job = job_from_reference("x", {"fn": "f", "tests": [{"args": [1], "expect": 2}], "float_tol": 1e-3})
    assert job.tests == (CallTest((1,), {}, 2),)
    assert (job.entry_point, job.comparison, job.float_tol) == ("f", Comparison.FLOAT, 1e-3)


def test_programs() -> None:
    job = job_from_reference("x", {"tests": [{"input": "1\n", "output": "2\n"}]}, Limits(cpu_seconds=1))
    assert job.tests == (StdioTest("1\n", "2\n"),)
    assert (job.comparison, job.limits.cpu_seconds) == (Comparison.LINES, 1)


def test_keys_of_the_data_set_are_left_alone_and_misspelt_ones_are_not() -> None:
    row = {"fn": "f", "tests": [{"args": [], "expect": 1}], "source": "a book"}
    assert job_from_reference("x", row).entry_point == "f"
    with pytest.raises(DataError, match="float_tol"):
        job_from_reference("x", {**row, "float_tool": 1e-3})


def test_source() -> None:
    job = job_from_reference("x", {"fn": "f", "tests": "assert f() == 1", "imports": ["math"]})
    assert job.tests == ScriptTests("assert f() == 1", "f")
    assert job.allowed_imports == {"math"}


@pytest.mark.parametrize(
    "reference",
    [
        {},
        {"tests": []},
        {"tests": [{"args": [1]}]},
        {"tests": [{"args": [1], "expect": 1}, {"input": "", "output": ""}]},
        {"tests": [{"args": "ab", "expect": 1}]},
        {"tests": [{"input": 3, "output": ""}]},
        {"fn": "f; import os", "tests": "assert 1"},
        {"test": []},
        {"tests": [{"args": [], "expect": 1}], "float_tol": float("nan")},
        {"tests": [{"args": [], "expect": 1}], "float_tol": True},
        {"tests": [{"args": [], "expect": 1}], "comparison": "loose"},
        "text",
    ],
)
def test_unreadable(reference: object) -> None:
    with pytest.raises(DataError, match="expected"):
        job_from_reference("x", reference)  # type: ignore[arg-type]


@pytest.mark.parametrize("limits", [{"cpu_seconds": 0}, {"memory_bytes": -1}, {"wall_seconds": float("nan")}])
def test_impossible_limits(limits: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        Limits(**limits)  # type: ignore[arg-type]
