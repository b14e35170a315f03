"""Whatever a user's reward raises stays a failure of that reward; it ends no command and scores no answer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rlvr.errors import ConfigError
from rlvr.rewards import load_reward
from rlvr.rewards.composite import Component, Scorer
from rlvr.rewards.contract import Outcome

RAISED = {
    "SystemExit: 0": "import sys\nsys.exit(0)\n",
    "Odd: x": "class Odd(BaseException): ...\nraise Odd('x')\n",
    r"Mute \(its text raised ValueError\)": (
        "class Mute(Exception):\n    def __str__(self): raise ValueError\nraise Mute\n"
    ),
}


@pytest.mark.parametrize(("message", "text"), RAISED.items())
def test_a_file_that_ends_the_process_when_imported(message: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "r.py").write_text(text)
    with pytest.raises(ConfigError, match=message):
        load_reward("r.py:f", {}, tmp_path)


def test_a_class_that_ends_the_process_when_built(tmp_path: Path) -> None:
    (tmp_path / "r.py").write_text("class F:\n    def __init__(self): raise SystemExit(0)\n")
    with pytest.raises(ConfigError, match="SystemExit: 0"):
        load_reward("r.py:F", {}, tmp_path)


@pytest.mark.parametrize(("message", "text"), RAISED.items())
@pytest.mark.parametrize("kind", ["def", "async def"])
def test_a_function_that_ends_the_process_fails_its_row_alone(
    kind: str, message: str, text: str, tmp_path: Path
) -> None:
    body = "".join(f"        {line}\n" for line in text.splitlines())
    head = f"{kind} f(prompts, completions, **kw):\n    if 'bad' in completions:\n"
    (tmp_path / "r.py").write_text(head + body + "    return [1.0] * len(completions)\n")
    scorer = Scorer([Component("f", load_reward("r.py:f", {}, tmp_path))])
    good, bad = scorer.score_batch(["p", "p"], ["good", "bad"], {})
    assert good.total == 1.0
    assert (bad.total, bad.outcome) == (None, Outcome.INFRASTRUCTURE)
    assert re.search(message, bad.why), bad.why


def test_an_interrupt_goes_through(tmp_path: Path) -> None:
    (tmp_path / "r.py").write_text("def f(prompts, completions, **kw):\n    raise KeyboardInterrupt\n")
    scorer = Scorer([Component("f", load_reward("r.py:f", {}, tmp_path))])
    with pytest.raises(KeyboardInterrupt):
        scorer.score_batch(["p"], ["a"], {})
