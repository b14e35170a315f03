"""The record of every gate in order of time: who decided what, when, and over which content; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlvr.gates import GateReport
    from rlvr.report.inputs import ReportInputs

HASHES: Mapping[str, tuple[str, ...]] = {
    "admit": ("data",),
    "audit": ("reward", "data"),
    "probe": ("reward", "data", "model", "sampling"),
    "inspect": ("reward", "data", "model", "sampling", "labels"),
    "plan": ("model", "recipe", "lengths"),
    "evaluation": ("reward", "held_out", "model", "sampling"),
    "train": ("reward", "data", "model", "sampling", "recipe"),
}
"""Content that each entry is shown with."""

Entry = Mapping[str, Any]


@dataclass(frozen=True)
class Event:
    """One line of the timeline.

    Attributes:
        at: UTC time, ISO 8601; empty when unknown.
        name: Gate, or what happened.
        state: ``passed``, ``failed``, ``missing``, ``stale``, ``waived`` or a run's state.
        why: One sentence.
        who: Who decided; empty for a program.
        hashes: Content to hash.
        facts: Further facts, name and value.
    """

    at: str
    name: str
    state: str
    why: str
    who: str = ""
    hashes: Mapping[str, str] = field(default_factory=dict)
    facts: tuple[tuple[str, str], ...] = ()


def timeline(inputs: ReportInputs) -> list[Event]:
    """Return the gates, the run, its readings and its evaluations, in order of time; what was not done comes last."""
    events = _gates(inputs)
    if inputs.before is not None:
        events.append(_evaluation("held-out before", inputs.before.model_dump(mode="json")))
    if inputs.manifest is not None:
        events.append(_run(inputs.manifest.model_dump(mode="json")))
    if inputs.reading is not None:
        events.append(_reading("on-policy reading", inputs.reading.model_dump(mode="json"), ""))
    if inputs.after is not None:
        events.append(_evaluation("held-out after", inputs.after.model_dump(mode="json")))
    return sorted(events, key=lambda event: event.at or ("9999" if event.state == "missing" else ""))


def _gates(inputs: ReportInputs) -> list[Event]:
    if inputs.status is not None:
        return [_gate(gate) for gate in inputs.status.gates]
    if inputs.manifest is None:
        return []
    return [
        Event("", str(gate.get("name", "")), _state(gate), f"{gate.get('why', '')} (as the run began)")
        for gate in inputs.manifest.gates
    ]


def _state(gate: Entry) -> str:
    return "waived" if gate.get("waived") else str(gate.get("state", ""))


def _gate(gate: GateReport) -> Event:
    state = "waived" if gate.waived else gate.state
    if gate.name == "inspect" and gate.evidence:
        return _reading(gate.name, gate.evidence, state, gate.why)
    return Event(
        str(gate.evidence.get("made_at", "")),
        gate.name,
        state,
        gate.why,
        hashes=_hashes(gate.name, gate.evidence),
    )


def _reading(name: str, record: Entry, state: str, why: str = "") -> Event:
    readers = ", ".join(record.get("readers") or [record.get("reader", "")])
    unnamed = record.get("simulated") and "simulated" not in readers
    who = f"{readers} (simulated)" if unnamed else readers
    return Event(
        str(record.get("made_at", "")),
        name,
        state or ("passed" if record.get("passed") else "failed"),
        why or str(record.get("why", "")),
        who=who,
        hashes=_hashes("inspect", record),
        facts=tuple(_reading_facts(record)),
    )


def _reading_facts(record: Entry) -> list[tuple[str, str]]:
    facts = [("read", f"{record.get('read', 0)} ({record.get('needed', '?')} needed)")]
    if record.get("agreement") is not None:
        facts.append(("agreement", f"{record['agreement']:.1%}"))
    if record.get("kappa") is not None:
        facts.append(("kappa", f"{record['kappa']:.2f}"))
    if record.get("disagreement_upper") is not None:
        facts.append(("disagreement at most", f"{record['disagreement_upper']:.1%}"))
    for side, words in (("false_positives", "paid but failed"), ("false_negatives", "unpaid but passed")):
        if isinstance(record.get(side), Mapping):
            facts.append((words, f"{record[side].get('errors', 0)} of {record[side].get('read', 0)}"))
    pace = record.get("pace") or {}
    if pace.get("median_seconds"):
        facts.append(("pace", f"{pace['median_seconds']:.1f} s a sample"))
    return facts


def _evaluation(name: str, record: Entry) -> Event:
    return Event(
        str(record.get("made_at", "")),
        name,
        "measured",
        str(record.get("why", "")),
        hashes=_hashes("evaluation", record),
    )


def _run(record: Entry) -> Event:
    why = str(record.get("why") or record.get("stopped") or f"{record.get('steps', 0)} steps")
    return Event(
        str(record.get("made_at", "")),
        "train",
        str(record.get("state", "")),
        why,
        hashes=_hashes("train", record),
    )


def _hashes(name: str, record: Entry) -> dict[str, str]:
    made_from = record.get("made_from") or {}
    return {part: made_from[part] for part in HASHES.get(name, ()) if made_from.get(part)}
