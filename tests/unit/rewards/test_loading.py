"""Finding rewards by name, and loading a user's file without a trace."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import pytest

from rlvr.errors import ConfigError
from rlvr.rewards import BUILTINS, load_reward
from rlvr.rewards.composite import Component, Scorer

CALL = {"prompts": ["p"], "completions": ["abc"]}


def write(folder: Path, name: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)


@pytest.mark.parametrize("name", sorted(BUILTINS))
def test_every_builtin_can_be_imported(name: str) -> None:
    place, _, attribute = BUILTINS[name].partition(":")
    __import__(place)
    assert callable(getattr(sys.modules[place], attribute))


def test_a_builtin_takes_its_arguments() -> None:
    reward = load_reward("exact", {"reference": "city"})
    assert reward(prompts=["p"], completions=["<answer>Oslo</answer>"], city=["oslo"]) == [1.0]


@pytest.mark.parametrize(
    ("use", "arguments", "message"),
    [
        ("exakt", {}, "did you mean 'exact'"),
        ("exact", {"refrence": "x"}, "did you mean 'reference'"),
        ("nothing.here:reward", {}, "no module 'nothing'"),
        ("json:lods", {}, "did you mean 'loads'"),
        ("missing.py:reward", {}, "no file missing.py"),
    ],
)
def test_what_is_wrong_is_said(use: str, arguments: dict[str, str], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        load_reward(use, arguments, tmp_path)


def test_a_users_file_with_a_module_beside_it(tmp_path: Path) -> None:
    for folder, factor in (("one", 1), ("two", 2)):
        write(tmp_path / folder, "helper.py", f"FACTOR = {factor}\n")
        write(
            tmp_path / folder,
            "rewards.py",
            "from helper import FACTOR\n"
            "def lazy(prompts, completions, **kw):\n"
            "    import helper\n"
            "    return [float(len(c) * helper.FACTOR + FACTOR - FACTOR) for c in completions]\n",
        )
    one = load_reward("rewards.py:lazy", {}, tmp_path / "one")
    two = load_reward("rewards.py:lazy", {}, tmp_path / "two")
    assert (one(**CALL), two(**CALL), one(**CALL)) == ([3.0], [6.0], [3.0])
    assert "helper" not in sys.modules and "rewards" not in sys.modules
    assert str(tmp_path / "one") not in sys.path


def test_a_users_reward_pickles_and_takes_arguments(tmp_path: Path) -> None:
    write(tmp_path, "r.py", "def f(prompts, completions, factor=1, **kw):\n    return [factor * 1.0]\n")
    reward = pickle.loads(pickle.dumps(load_reward("r.py:f", {"factor": 3}, tmp_path)))
    assert reward(**CALL) == [3.0] and reward.__name__ == "f"


def test_a_class_is_built_and_a_dataclass_works(tmp_path: Path) -> None:
    write(
        tmp_path,
        "r.py",
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        "@dataclass\nclass F:\n    factor: int = 1\n"
        "    def __call__(self, prompts, completions, **kw):\n        return [self.factor * 1.0]\n",
    )
    assert load_reward("r.py:F", {"factor": 2}, tmp_path)(**CALL) == [2.0]
    with pytest.raises(ConfigError, match="did you mean 'factor'"):
        load_reward("r.py:F", {"facter": 2}, tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\nimport not_there_at_all\n", "r.py:2"),
        ("def f(:\n", "r.py:1"),
        ("\n\n1 / 0\n", "r.py:3"),
        ("def g(prompts, completions, **kw): ...\n", "did you mean|it has g"),
        ("f = 3\n", "not a function"),
    ],
)
def test_a_broken_file_names_its_line(text: str, message: str, tmp_path: Path) -> None:
    write(tmp_path, "r.py", text)
    with pytest.raises(ConfigError, match=message):
        load_reward("r.py:f", {}, tmp_path)


def test_an_argument_nobody_takes_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "r.py", "def f(prompts, completions, factor=1):\n    return [1.0]\n")
    with pytest.raises(ConfigError, match="did you mean 'factor'"):
        load_reward("r.py:f", {"factr": 3}, tmp_path)


def test_a_verifier_of_the_users_own_explains_itself_and_checks_its_references(tmp_path: Path) -> None:
    write(
        tmp_path,
        "mine.py",
        "from rlvr.rewards.contract import Outcome, Verdict, Verifier\n"
        "class Even(Verifier):\n"
        "    role = 'format'\n"
        "    reference_column = 'size'\n"
        "    def verdict(self, completion, reference):\n"
        "        right = len(completion) == reference\n"
        "        return Verdict(Outcome.RIGHT if right else Outcome.ILL_FORMED, float(right), completion, 'seen')\n"
        "    def check_reference(self, reference):\n"
        "        return None if isinstance(reference, int) else 'no number'\n",
    )
    reward = pickle.loads(pickle.dumps(load_reward("mine.py:Even", {}, tmp_path)))
    assert (reward.role, reward.__name__) == ("format", "even")
    scorer = Scorer([Component("even", reward)])
    (row,) = scorer.score_batch(["p"], ["abc"], {"size": [3]})
    assert (row.outcome, row.why, row.extracted) == ("right", "seen", "abc")
    assert [bad.row for bad in scorer.check_references([{"size": 3}, {"size": "x"}])] == [1]
