"""The user's own callable that accepts or refuses a text, as a reward."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlvr.errors import ConfigError
from rlvr.rewards.builtin import Builtin
from rlvr.rewards.contract import Outcome, Verdict
from rlvr.rewards.loading import load_function
from rlvr.rewards.reading import outside_thinking, without_end_tokens


@dataclass(frozen=True)
class Parser(Builtin):
    """Accept a text that the user's callable accepts.

    The callable takes the visible text (outside thinking, without end tokens), and the reference where it has a
    second parameter. It refuses by raising ``ValueError`` (``json.JSONDecodeError`` and most parsers' errors are
    such), ``SyntaxError``, or by returning ``False``; anything else accepts. ``None`` does not judge the row. Any
    other exception is a failure of the callable, never a wrong answer.

    Attributes:
        function: ``path.py:function`` relative to ``folder``, or ``package.module:function``.
        folder: Folder that ``function`` is relative to; the workspace where the configuration names none.
        think_prefilled: The chat template opens ``<think>``, so the completion starts inside it.
    """

    function: str = field(default="", kw_only=True)
    folder: str = field(default="", kw_only=True)
    think_prefilled: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.function:
            raise ConfigError(
                "reward.parser",
                "no function",
                where="reward parser",
                fix="set arguments.function: parser.py:accepts",
            )
        object.__setattr__(self, "_call", load_function(self.function, Path(self.folder)))
        if not self._takes_reference:
            object.__setattr__(self, "reference_column", None)

    @property
    def _callable(self) -> Callable[..., Any]:
        found: Callable[..., Any] = self.__dict__["_call"]
        return found

    @property
    def _takes_reference(self) -> bool:
        try:
            parameters = inspect.signature(self._callable).parameters.values()
        except (TypeError, ValueError):
            return False
        needed = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
        return len([one for one in needed if one.default is one.empty]) >= 2

    def verdict(self, completion: str, reference: Any) -> Verdict:
        """Ask the callable about one completion."""
        visible = without_end_tokens(outside_thinking(completion, prefilled=self.think_prefilled)).strip()
        if not visible:
            return Verdict(Outcome.ILL_FORMED, 0.0, "", "the completion is empty")
        try:
            answer = self._callable(visible, reference) if self._takes_reference else self._callable(visible)
        except (ValueError, SyntaxError) as error:
            return Verdict(Outcome.WRONG, 0.0, visible, f"refused: {type(error).__name__}: {error}"[:200])
        if answer is None and self._may_skip:
            return Verdict(Outcome.NOT_APPLICABLE, None, visible, "the callable does not judge this row")
        if answer is False:
            return Verdict(Outcome.WRONG, 0.0, visible, "refused")
        return Verdict(Outcome.RIGHT, 1.0, visible, "accepted")

    @property
    def _may_skip(self) -> bool:
        """Whether None means *not judged*: only where the callable says so in its return annotation."""
        try:
            annotation = inspect.signature(self._callable).return_annotation
        except (TypeError, ValueError):
            return False
        return "None" in str(annotation) and "bool" in str(annotation)

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_call"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__dict__["_call"] = load_function(self.function, Path(self.folder))
