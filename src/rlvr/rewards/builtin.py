"""What the built-in rewards share: a name, a reference column, and the error of a bad reference."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rlvr.errors import DataError
from rlvr.rewards.contract import Verifier


@dataclass(frozen=True)
class Builtin(Verifier):
    """Base of the built-in rewards: frozen, picklable, built from keyword arguments.

    Attributes:
        reference: Column that holds each prompt's reference.
        name: Name under which TRL logs this reward; empty: the class's own.
    """

    reference: str | None = field(default="answer", kw_only=True)
    name: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "reference_column", self.reference)

    @property
    def __name__(self) -> str:
        return self.name or super().__name__

    def bad_reference(self, reference: Any, problem: str) -> DataError:
        """Return the error of a reference that cannot be used as gold."""
        shown = repr(reference)
        return DataError(
            "data.reference",
            f"{problem}: {shown if len(shown) <= 80 else shown[:77] + '...'}",
            where=f"reward {self.__name__}, column {self.reference_column!r}",
            expected="a reference that this reward can compare with",
            fix="mend or drop the row; `rlvr check` lists all such rows before training",
        )
