"""The state of every gate: pure reading of records against what stands in the workspace now.

:data:`DEPENDS` is the staleness table: a gate goes stale when one of its parts differs from what its record was
made from. A lesser change of data (at most 10% of rows) leaves the inspection standing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlvr.errors import GateRefused, RlvrError
from rlvr.records.base import Fingerprints, Frozen, GateState, Record

CHAIN = ("admit", "audit", "probe", "inspect", "plan")
"""Gates in order; ``train`` starts only when all have passed."""

DEPENDS: Mapping[str, tuple[str, ...]] = {
    "admit": (),  # computed afresh each time, so never stale
    "audit": ("reward", "data"),
    "probe": ("reward", "data", "model", "sampling"),
    "inspect": ("reward", "data", "model", "sampling", "labels"),
    "plan": ("model", "recipe", "lengths"),
}
INSPECT_DATA_TOLERANCE = 0.10
"""Share of changed rows up to which an inspection stands (design decision: one row in ten)."""

SIMULATED = "simulated reader"
"""What the demo's reader calls itself."""

COMMANDS: Mapping[str, str] = {
    "admit": "rlvr check",
    "audit": "rlvr audit",
    "probe": "rlvr probe",
    "inspect": "rlvr inspect",
    "plan": "rlvr plan",
}
RESCORED = ("probe", "inspect")
"""Gates that a change of the reward alone refreshes by ``--rescore``, without sampling."""


class GateReport(Frozen):
    """One gate as ``status`` prints it.

    Attributes:
        name: Gate.
        state: ``passed``, ``failed``, ``missing`` or ``stale``.
        why: One sentence.
        evidence: The record that the state was read from, plain JSON; empty when missing.
        changed: Parts that differ from what the record was made from.
        waived: The waiver's reason, where one lets a failed gate pass.
    """

    name: str
    state: GateState
    why: str
    evidence: dict[str, Any] = {}
    changed: list[str] = []
    waived: str | None = None


class ChainStatus(Frozen):
    """The whole chain.

    Attributes:
        passed: Whether training may start.
        next: The next command.
        gates: One report a gate, in order.
    """

    passed: bool
    next: str
    gates: list[GateReport]


def evaluate(
    records: Mapping[str, Record | RlvrError | None],
    now: Fingerprints,
    *,
    changed_rows: float = 0.0,
    waivers: Mapping[str, str | None] | None = None,
    is_demo: bool = False,
) -> ChainStatus:
    """Judge every gate.

    Args:
        records: Gate to its record, None where there is none, or the error that reading it raised.
        now: Fingerprints of the workspace as it stands.
        changed_rows: Share of training rows that the inspection has not seen, in [0, 1].
        waivers: Gate to the reason under ``gates.NAME.waive``.
        is_demo: Whether this is the untouched demo workspace, the only place for a simulated reader.

    Returns:
        The chain, with the next command.
    """
    waived = waivers or {}
    gates = [_report(name, records.get(name), now, changed_rows, waived.get(name), is_demo) for name in CHAIN]
    open_gates = [gate for gate in gates if gate.state != "passed"]
    following = _next_command(open_gates[0]) if open_gates else "rlvr train"
    return ChainStatus(passed=not open_gates, next=following, gates=gates)


def _report(
    name: str,
    record: Record | RlvrError | None,
    now: Fingerprints,
    changed_rows: float,
    waiver: str | None,
    is_demo: bool,
) -> GateReport:
    if record is None:
        return GateReport(name=name, state="missing", why=f"not done yet: {COMMANDS[name]}")
    if isinstance(record, RlvrError):
        return GateReport(name=name, state="failed", why=record.message().replace("\n", "; "))
    evidence = record.model_dump(mode="json")
    changed = _changed(name, record.made_from, now, changed_rows)
    if changed:
        why = f"{' and '.join(changed)} changed since {record.made_at or 'it was made'}"
        return GateReport(name=name, state="stale", why=why, evidence=evidence, changed=changed)
    if _is_simulated(record) and not is_demo:
        why = "its reader was simulated, which counts in the demo alone: a person must read"
        return GateReport(name=name, state="failed", why=why, evidence=evidence)
    if record.passed:
        return GateReport(name=name, state="passed", why=record.why, evidence=evidence)
    if waiver and name != "inspect":
        why = f"waived: {waiver} (was: {record.why})"
        return GateReport(name=name, state="passed", why=why, evidence=evidence, waived=waiver)
    return GateReport(name=name, state="failed", why=record.why, evidence=evidence)


def _is_simulated(record: Record) -> bool:
    readers = [str(reader) for reader in getattr(record, "readers", [])]
    return bool(getattr(record, "simulated", False)) or any(SIMULATED in reader for reader in readers)


def _changed(name: str, made_from: Fingerprints, now: Fingerprints, changed_rows: float) -> list[str]:
    # An empty fingerprint is no freshness: what a gate depends on must be named in its record.
    changed = [part for part in DEPENDS[name] if getattr(made_from, part) != getattr(now, part)]
    if name == "inspect" and changed_rows <= INSPECT_DATA_TOLERANCE:
        changed = [part for part in changed if part != "data"]
    return changed


def _next_command(gate: GateReport) -> str:
    rescored = gate.state == "stale" and gate.changed == ["reward"] and gate.name in RESCORED
    return f"{COMMANDS[gate.name]} --rescore" if rescored else COMMANDS[gate.name]


def require_passed(chain: ChainStatus) -> None:
    """Refuse to train past a gate.

    Raises:
        GateRefused: ``gate.closed``, naming every gate that is not passed, and the next command.
    """
    closed = [gate for gate in chain.gates if gate.state != "passed"]
    if not closed:
        return
    listed = "; ".join(f"{gate.name} is {gate.state} ({gate.why})" for gate in closed)
    raise GateRefused(
        "gate.closed",
        listed,
        where="gates",
        expected="every gate passed and fresh; nothing trains past one",
        fix=f"`{chain.next}`",
    )
