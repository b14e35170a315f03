"""What every reward keeps, built-in or not: TRL's signature, logs, pickling, and errors that name their place."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from rlvr.errors import RewardError
from rlvr.rewards import BUILTINS, load_reward
from rlvr.rewards.contract import TRAINER_KEYWORDS, as_verifier, checked_scores, column, completion_text
from rlvr.rewards.exact import Exact

NEEDED: dict[str, dict[str, Any]] = {
    "regex": {"pattern": "x"},
    "length": {"base": "exact", "max_length": 10},
    "parser": {"function": "json:loads"},
}
REFERENCES: dict[str, Any] = {
    "json_schema": {"type": "object"},
    "tool_call": {"name": "f", "arguments": {}},
    "unit_tests": {"tests": [{"input": "", "output": "1"}]},
    "judge": {"rubric": "final answer equals 42"},
    "choice": "B",
}
HOSTILE = [
    "",
    " ",
    "x" * 1_000_000,
    "\ud800\udfff",
    "(" * 100_000,
    "{" * 100_000,
    "<think>" * 20_000,
    "\x00",
    "`" * 100_000,
]


def made(name: str) -> tuple[Any, dict[str, list[Any]]]:
    reward = load_reward(name, NEEDED.get(name, {}))
    verifier = as_verifier(reward)
    assert verifier is not None
    key = verifier.reference_column
    return reward, {key: [REFERENCES.get(name, "4")] * len(HOSTILE)} if key else {}


@pytest.mark.parametrize("name", sorted(set(BUILTINS) - {"reasoning_gym"}))
@pytest.mark.parametrize("chat", [False, True])
def test_every_builtin_judges_hostile_text_and_survives_pickling(name: str, chat: bool) -> None:
    reward, columns = made(name)
    texts = [text for text in HOSTILE if not (name == "judge" and text not in ("", " "))] or [""]
    columns = {key: values[: len(texts)] for key, values in columns.items()}
    completions = [[{"role": "assistant", "content": text}] for text in texts] if chat else texts
    extra: dict[str, list[Any]] = {}
    metrics: dict[str, float] = {}
    again = pickle.loads(pickle.dumps(reward))
    scores = again(
        prompts=["p"] * len(texts),
        completions=completions,
        completion_ids=[[0]] * len(texts),
        trainer_state=None,
        log_extra=lambda key, values: extra.setdefault(key, values),
        log_metric=metrics.__setitem__,
        **columns,
    )
    assert len(scores) == len(texts) and all(score == 0.0 for score in scores)
    assert again.__name__ == reward.__name__
    assert {f"{reward.__name__}_outcome", f"{reward.__name__}_extracted"} == set(extra)
    assert metrics[f"{reward.__name__}/right_share"] == 0.0


@pytest.mark.parametrize(
    ("completion", "text"),
    [
        ("a", "a"),
        ([{"role": "assistant", "content": "a"}], "a"),
        ([{"content": "a"}], "a"),
        ([{"role": "assistant", "content": None}], ""),
        ([{"role": "tool", "content": "b"}, {"role": "assistant", "content": "a"}], "a"),
        ([{"role": "assistant", "content": [{"type": "text", "text": "a"}]}], "a"),
        ([], ""),
    ],
)
def test_the_text_of_a_completion(completion: Any, text: str) -> None:
    assert completion_text(completion) == text


@pytest.mark.parametrize("completion", [None, 3, ["a"], [None], {"role": "assistant"}])
def test_what_is_no_completion(completion: Any) -> None:
    with pytest.raises(RewardError, match=r"type|holding"):
        completion_text(completion)


def test_columns_are_found_or_named() -> None:
    assert column("answer", {"answer": ["a"]}, component="c", rows=1) == ["a"]
    with pytest.raises(RewardError, match="did you mean 'answers'") as caught:
        column("answer", {"answers": ["a"], "log_extra": None}, component="c", rows=1)
    assert "log_extra" not in str(caught.value) and "log_extra" in TRAINER_KEYWORDS
    for wrong in (["a", "b"], "a", None):
        with pytest.raises(RewardError, match="answer"):
            column("answer", {"answer": wrong}, component="c", rows=1)


@pytest.mark.parametrize(
    "scores", [[float("inf")], [float("nan")], ["1"], [None, None], None, "1", [[1.0]], [object()]]
)
def test_scores_that_are_none(scores: Any) -> None:
    with pytest.raises(RewardError, match="reward mine"):
        checked_scores("mine", scores, 1)


def test_scores_of_other_libraries_are_read() -> None:
    import numpy

    assert checked_scores("mine", [numpy.float32(0.5), True, 1, None], 4) == [0.5, 1.0, 1.0, None]


def test_builtins_have_one_name_each_and_may_be_given_another() -> None:
    assert Exact().__name__ == "exact" and Exact(name="city").__name__ == "city"
