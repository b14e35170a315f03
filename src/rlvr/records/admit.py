"""What admit decided: whether verifiable-reward training is the right method for this task at all."""

from __future__ import annotations

from rlvr.records.base import Frozen, Record


class Refusal(Frozen):
    """One reason not to train by GRPO here.

    Attributes:
        code: Stable name such as ``admit.preference``.
        found: What says so.
        route: Where to go instead.
        why: Why there.
        page: Page of the documentation that explains it.
    """

    code: str
    found: str
    route: str
    why: str
    page: str = "docs/probe.md#admit"


class AdmitRecord(Record):
    """Decision of admit.

    Attributes:
        signal: What decides success, as configured.
        refusals: Empty when admitted.
        remarks: Facts worth knowing that refuse nothing.
        rows: Number of training rows looked at.
        distinct_prompts: Number of distinct prompts among them.
        overlap: Prompts that stand in training and held-out data alike.
        routing: The decision that brought the user here, as configured.
    """

    signal: str
    refusals: list[Refusal] = []
    remarks: list[str] = []
    rows: int = 0
    distinct_prompts: int = 0
    overlap: int = 0
    routing: dict[str, str] = {}
