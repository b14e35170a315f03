"""Rewards: the built-in ones by name, a user's by file or module, and one scorer for all of a task's.

For a guided tour read :mod:`rlvr.rewards.contract` (what a reward is), then :mod:`rlvr.rewards.composite`
(how several become one), then any built-in.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlvr.rewards.contract import RewardFunction

BUILTINS: dict[str, str] = {
    "choice": "rlvr.rewards.choice:Choice",
    "exact": "rlvr.rewards.exact:Exact",
    "json_schema": "rlvr.rewards.json_schema:JsonSchema",
    "judge": "rlvr.rewards.judge:Judge",
    "length": "rlvr.rewards.length:Length",
    "math": "rlvr.rewards.math:Math",
    "parser": "rlvr.rewards.parser:Parser",
    "reasoning_gym": "rlvr.rewards.reasoning_gym:ReasoningGym",
    "regex": "rlvr.rewards.regex:Regex",
    "tags": "rlvr.rewards.tags:Tags",
    "tool_call": "rlvr.rewards.tool_call:ToolCall",
    "unit_tests": "rlvr.rewards.unit_tests:UnitTests",
}
"""Name of each built-in reward, and where its class stands; a class is imported only when it is used."""


def load_reward(use: str, arguments: Mapping[str, Any] | None = None, base: Path = Path()) -> RewardFunction:
    """Return the reward that ``use`` names.

    Args:
        use: A built-in's name, ``path.py:function`` relative to ``base``, or ``package.module:function``.
        arguments: Keyword arguments: of the built-in's constructor, or passed to the user's function at each
            call (to its constructor where it is a class).
        base: The workspace.

    Raises:
        ConfigError: The reward does not exist, cannot be imported, or does not take these arguments.
    """
    from rlvr.rewards.loading import load

    return load(use, dict(arguments or {}), base, BUILTINS)


__all__ = ["BUILTINS", "load_reward"]
