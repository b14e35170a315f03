"""What every record shares: a schema number, when it was made, and fingerprints of what it was made from."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

GateState = Literal["passed", "failed", "missing", "stale"]
"""State of one gate, as ``status`` prints it."""


class Frozen(BaseModel):
    """A value that is never changed after it was made; unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="null")


class Fingerprints(Frozen):
    """Hashes of what a record was made from; an empty string means that it does not depend on that part.

    Attributes:
        reward: The reward closure: syntax trees, arguments, local modules, named files, library versions.
        data: Prompts and references of the training rows.
        held_out: Prompts and references of the held-out rows.
        model: Model revision, or size and time of a local folder's files.
        sampling: System prompt, chat template, temperatures, length caps.
        recipe: Method, hardware and overrides.
        labels: The reader's labels.
        lengths: Prompt and completion length quantiles, rounded up, as ``plan`` used them.
    """

    reward: str = ""
    data: str = ""
    held_out: str = ""
    model: str = ""
    sampling: str = ""
    recipe: str = ""
    labels: str = ""
    lengths: str = ""

    def changed(self, now: Fingerprints) -> list[str]:
        """Return the names of the parts that this record depends on and that differ now."""
        return [
            name
            for name in type(self).model_fields
            if getattr(self, name) and getattr(self, name) != getattr(now, name)
        ]


class Record(Frozen):
    """Base of the records that a stage writes.

    Attributes:
        schema_number: Rises when a field changes its meaning; a reader refuses a newer one.
        made_at: UTC time, ISO 8601.
        version: Version of rlvr that wrote it.
        made_from: See :class:`Fingerprints`.
        passed: Whether the gate that this record stands for has passed; what ``gates.py`` reads.
        why: One sentence for ``status``: why it passed or failed.
    """

    SCHEMA: ClassVar[int] = 1

    schema_number: int = 1
    made_at: str = ""
    version: str = ""
    made_from: Fingerprints = Field(default_factory=Fingerprints)
    passed: bool = False
    why: str = ""
