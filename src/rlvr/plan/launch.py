"""How the run is started."""

from __future__ import annotations

from rlvr.plan.inputs import Machine
from rlvr.plan.memory.shape import RunShape
from rlvr.records.plan import Launch, PlanRecord


def launches(plan: PlanRecord, shape: RunShape, machine: Machine) -> list[Launch]:
    """Return the ways to start the run."""
    return [Launch(name="single", commands=["rlvr train"], note="one process")]
