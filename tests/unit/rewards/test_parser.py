"""The user's own callable as a reward."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from rlvr.errors import ConfigError
from rlvr.rewards import load_reward
from rlvr.rewards.composite import Component, Scorer
from rlvr.rewards.contract import Outcome
from rlvr.rewards.parser import Parser

FILE = """
from __future__ import annotations
import grammar

def accepts(text):
    return grammar.ok(text)

def same(text, reference):
    return text == reference

def maybe(text) -> bool | None:
    return None if text == "skip" else True

def breaks(text):
    raise KeyError("mine")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "parser.py").write_text(FILE)
    (tmp_path / "grammar.py").write_text(
        "def ok(text):\n    if text == 'bad': raise ValueError('bad')\n    return text != 'no'\n"
    )
    return tmp_path


def outcomes(folder: Path, function: str, texts: list[str], **columns: Any) -> list[str]:
    reward: Any = load_reward("parser", {"function": f"parser.py:{function}"}, folder)
    return [one.outcome.value for one in reward.verdicts(texts, **columns)]


def test_it_accepts_refuses_and_skips(folder: Path) -> None:
    assert outcomes(folder, "accepts", ["fine", "bad", "no", ""]) == ["right", "wrong", "wrong", "ill-formed"]
    assert outcomes(folder, "same", ["a", "b"], answer=["a", "a"]) == ["right", "wrong"]
    assert outcomes(folder, "maybe", ["skip", "go"]) == ["not-applicable", "right"]


def test_an_exception_of_another_kind_is_no_wrong_answer(folder: Path) -> None:
    reward = load_reward("parser", {"function": "parser.py:breaks"}, folder)
    (row,) = Scorer([Component("parser", reward)]).score_batch(["p"], ["x"], {})
    assert row.outcome is Outcome.INFRASTRUCTURE and row.total is None and "KeyError" in row.why


def test_a_missing_function_or_file_is_named(folder: Path) -> None:
    for use, message in (
        ("", "no function"),
        ("parser.py:acepts", "accepts"),
        ("parsr.py:accepts", "parser.py"),
        ("parser", "names no file"),
    ):
        with pytest.raises(ConfigError, match=message):
            load_reward("parser", {"function": use}, folder)


def test_it_pickles(folder: Path) -> None:
    again = pickle.loads(pickle.dumps(load_reward("parser", {"function": "parser.py:accepts"}, folder)))
    assert again(prompts=["p"] * 2, completions=["fine", "bad"]) == [1.0, 0.0]


def test_parsers_of_the_standard_library_work_as_they_are() -> None:
    assert Parser(function="json:loads")(prompts=["p"] * 2, completions=["[1]", "[1"]) == [1.0, 0.0]
    assert Parser(function="ast:parse")(prompts=["p"] * 2, completions=["x = 1", "x ="]) == [1.0, 0.0]
