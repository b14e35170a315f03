"""The data set as TRL takes it: the prompt and a row number, nothing else.

Columns stay outside: Arrow unifies the keys of nested references (a JSON schema, a tool call) and fills in None,
which changes what the reward sees. The reward gets a row's own columns by its number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rlvr.rewards.contract import TRAINER_KEYWORDS, Completion, RewardFunction, Scores

if TYPE_CHECKING:
    from datasets import Dataset

    from rlvr.task.dataset import Row

ROW = "row"


def as_dataset(rows: Sequence[Row], render: Callable[[Row], Any]) -> Dataset:
    """Return a data set with the columns ``prompt`` and ``row``.

    Args:
        rows: The training rows.
        render: Makes a row's prompt: a string, or chat messages as dictionaries.
    """
    from datasets import Dataset

    return Dataset.from_list([{"prompt": render(row), ROW: position} for position, row in enumerate(rows)])


class RowColumns:
    """Looks up the columns of a batch once, so that all reward functions share the same lists."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._columns = [row.columns for row in rows]
        self._names = sorted({name for row in rows for name in row.columns} - TRAINER_KEYWORDS)
        self._seen: Sequence[int] | None = None
        self._found: dict[str, list[Any]] = {}

    def of(self, numbers: Sequence[int]) -> dict[str, list[Any]]:
        """Return every column for the given row numbers, None where a row lacks it."""
        if numbers is not self._seen:
            batch = [self._columns[number] for number in numbers]
            self._found = {name: [columns.get(name) for columns in batch] for name in self._names}
            self._seen = numbers
        return self._found


class RowReward:
    """A reward function that receives the columns of its rows."""

    def __init__(self, function: RewardFunction, columns: RowColumns) -> None:
        self.function = function
        self.columns = columns
        self.__name__ = function.__name__

    def __call__(
        self, prompts: Sequence[Any], completions: Sequence[Completion], row: Sequence[int], **keywords: Any
    ) -> Scores:
        """Score a batch with TRL's signature."""
        return self.function(prompts, completions, **{**self.columns.of(row), **keywords})
