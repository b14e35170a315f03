"""One completion put to one reward as TRL would put it: as a string, or as a list of messages."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rlvr.errors import RewardError, RlvrError
from rlvr.rewards.composite import Component
from rlvr.rewards.contract import Completion, Verdict, as_verifier, checked_scores
from rlvr.rewards.evaluate import check_signature, run_awaitable

Shape = Literal["string", "messages"]
WORDS: Mapping[Shape, str] = {"string": "a string", "messages": "a list of messages"}
PACKAGE = Path(__file__).parents[1]
COLUMN = "answer"


@dataclass(frozen=True)
class Tried:
    """What a reward said of a completion.

    Attributes:
        shape: How the completion was passed.
        verdict: The verdict of a reward that gives reasons.
        score: The score of a plain function.
        other: What it raised on the shape that was tried before; empty where the first one worked.
    """

    shape: Shape
    verdict: Verdict | None = None
    score: float | None = None
    other: str = ""


def try_completion(
    name: str, reward: Any, completion: str, reference: Any = None, *, chat: bool = False
) -> Tried:
    """Put a completion to a reward, first as a string and then, where that raises, as a list of messages.

    Args:
        name: The reward, for messages.
        reward: The reward.
        completion: Text.
        reference: What the reward compares it with.
        chat: Pass a list of messages alone.

    Raises:
        RewardError: ``reward.raised`` with the line of the user's file, the exception and what was passed.
        RlvrError: What the reward itself says.
    """
    shapes: tuple[Shape, ...] = ("messages",) if chat else ("string", "messages")
    raised: list[str] = []
    where = ""
    for shape in shapes:
        passed = _shaped(completion, shape)
        try:
            verdict, score = _call(name, reward, passed, _prompt(shape), reference)
        except RlvrError:
            raise
        except Exception as error:  # a user's code may raise anything
            place = _place(reward, error)
            where = where or place
            raised.append(f"{type(error).__name__}: {error} ({place}) on {WORDS[shape]}, {_short(passed)}")
        else:
            return Tried(shape, verdict, score, "; ".join(raised))
    raise RewardError(
        "reward.raised",
        "it raised " + "; and ".join(raised),
        where=f"reward {name}, {where}",
        expected="one score a completion; TRL passes strings for prompts of text, lists of messages where those are "
        "messages",
        fix="mend that line" + ("; without --chat a string is tried first" if chat else ""),
    )


def _call(
    name: str, reward: Any, completion: Completion, prompt: Completion, reference: Any
) -> tuple[Verdict | None, float | None]:
    verifier = as_verifier(reward)
    if verifier is not None:
        columns = {verifier.reference_column: [reference]} if verifier.reference_column else {}
        (verdict,) = verifier.verdicts([completion], **columns)
        return verdict, None
    columns = {_column(reward): [reference]}
    check_signature(Component(name, reward), columns)
    returned: Any = reward(prompts=[prompt], completions=[completion], **columns)
    if inspect.isawaitable(returned):
        returned = run_awaitable(returned)
    return None, checked_scores(name, returned, 1)[0]


def _column(reward: Any) -> str:
    """Return the parameter that the reference goes to: the only one that must be given, else ``answer``."""
    try:
        parameters = inspect.signature(reward).parameters.values()
    except (TypeError, ValueError):  # some callables of C extensions tell no signature
        return COLUMN
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    needed = [
        one.name
        for one in parameters
        if one.kind in named and one.default is one.empty and one.name not in ("prompts", "completions")
    ]
    return needed[0] if len(needed) == 1 else COLUMN


def _shaped(completion: str, shape: Shape) -> Completion:
    return completion if shape == "string" else [{"role": "assistant", "content": completion}]


def _prompt(shape: Shape) -> Completion:
    return "" if shape == "string" else [{"role": "user", "content": ""}]


def _place(reward: Any, error: BaseException) -> str:
    """Return file and line of the user's code: the last in the reward's own file, else the first outside ours."""
    own = getattr(reward, "path", None)
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [one for one in frames if one.filename == own] or [
        one for one in reversed(frames) if PACKAGE not in Path(one.filename).parents
    ]
    return f"{theirs[-1].filename}:{theirs[-1].lineno}" if theirs else "its own code"


def _short(value: Completion) -> str:
    text = repr(value)
    return text if len(text) <= 100 else text[:97] + "..."
