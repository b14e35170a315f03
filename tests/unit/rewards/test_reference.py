"""The generated reference: complete, up to date, and every example of it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlvr.rewards import BUILTINS, load_reward
from rlvr.rewards.contract import as_verifier
from rlvr.rewards.reference import PAGES, describe_all, page
from rlvr.rewards.reference_notes import NOTES

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", PAGES)
def test_the_pages_are_up_to_date(name: str) -> None:
    assert (ROOT / name).read_text(encoding="utf-8") == page(), "run python -m rlvr.rewards.reference"


@pytest.mark.parametrize("name", sorted(BUILTINS))
def test_every_program_runs(name: str) -> None:
    if name == "reasoning_gym":
        pytest.importorskip("reasoning_gym")
    exec(compile(NOTES[name].python, name, "exec"), {})


@pytest.mark.parametrize("name", sorted(BUILTINS))
def test_every_example_comes_out_as_shown(name: str) -> None:
    notes = NOTES[name]
    if not notes.shown:
        return
    verifier = as_verifier(load_reward(name, notes.arguments))
    assert verifier is not None
    for shown in notes.shown:
        assert verifier.verdict(shown.completion, shown.reference).accepted is shown.accepted, shown


def test_every_argument_has_a_meaning() -> None:
    for one in describe_all():
        assert one.summary.endswith(".")
        assert all(meaning.endswith(".") for _, meaning in one.arguments.values()), one.name
