"""From a run's evidence to the one change that it supports, as an exact difference of settings.

A variant is offered only on its symptom, one at a time, and after a reading; without the symptom it is refused with
what the evidence shows. Settings that the run already has are no change, and said so: a run of TRL 1.16 that states
no loss already trains with DAPO's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from rlvr.records.watch import Finding, Findings
from rlvr.variants import VARIANTS, Sign, Value, Variant, trl_settings
from rlvr.watch.facts import Facts

READ_FIRST: Final = 20
"""Completions of the run that a person reads before any variant. Source: design of this project."""

Effect = Literal["changes", "is so already", "acts only off-policy"]


@dataclass(frozen=True, slots=True)
class Change:
    """One setting.

    Attributes:
        field: GRPOConfig field, or a switch of this project.
        before: What the run had in effect.
        after: What the variant sets.
        effect: Whether that changes anything.
        why: What it does.
        source: Where the value comes from.
    """

    field: str
    before: Value
    after: Value
    effect: Effect
    why: str
    source: str


@dataclass(frozen=True, slots=True)
class Decision:
    """What the evidence supports.

    Attributes:
        variant: The variant, or None when none is supported.
        symptom: The finding that calls for it; None for a model with experts, which needs no symptom.
        changes: The whole difference, settings that are so already included.
        refusals: Why nothing (or not the variant asked for) is offered; also what must happen first.
        later: Further steps, each a change of its own.
    """

    variant: Variant | None
    symptom: Finding | None = None
    changes: tuple[Change, ...] = ()
    refusals: tuple[str, ...] = ()
    later: tuple[str, ...] = ()

    @property
    def effective(self) -> list[Change]:
        """The changes that do anything."""
        return [change for change in self.changes if change.effect == "changes"]

    @property
    def expects(self) -> Mapping[str, Sign]:
        """Metric to the sign of its change."""
        return self.variant.expects if self.variant else {}

    @property
    def ready(self) -> bool:
        """Whether it may be applied now."""
        return self.variant is not None and not self.refusals


def decide(
    findings: Findings,
    effective: Mapping[str, Any],
    facts: Facts,
    *,
    wanted: str | None = None,
    applied: str = "",
    read: int = 0,
    base_rows: int = 8,
) -> Decision:
    """Decide which variant a run's evidence supports.

    Args:
        findings: What watching found.
        effective: GRPOConfig field to the value in effect: the run's own over the installed TRL's defaults.
        facts: What is known of the run.
        wanted: A variant asked for by name; None takes what the evidence supports.
        applied: Variant that the run already carried.
        read: Completions of this run that a person has read.
        base_rows: Logged rows below which a run is no base to judge from.
    """
    if wanted is not None and wanted not in VARIANTS:
        return Decision(None, refusals=(f"no variant {wanted!r}; there are {', '.join(VARIANTS)}",))
    variant, symptom = _supported(findings, facts, wanted, effective)
    if variant is None:
        return Decision(None, refusals=tuple(_why_not(findings, wanted)))
    changes = tuple(_changes(variant, effective))
    blocked = [*_order(findings, variant, applied, facts), *_reading(findings, read, symptom)]
    if findings.rows < base_rows:
        blocked.append(f"only {findings.rows} rows are logged; a base run has at least {base_rows}")
    if not any(change.effect == "changes" for change in changes):
        blocked.append(f"the run already has every setting of {variant.title}: there is nothing to change")
    return Decision(variant, symptom, changes, tuple(blocked), tuple(_later(variant, findings)))


def _supported(
    findings: Findings, facts: Facts, wanted: str | None, effective: Mapping[str, Any]
) -> tuple[Variant | None, Finding | None]:
    if (
        facts.experts
        and wanted in (None, "gspo")
        and effective.get("importance_sampling_level") != "sequence"
    ):
        return VARIANTS["gspo"], findings.named("moe-instability")
    for finding in findings.alarms:
        for variant in VARIANTS.values():
            if finding.name in variant.answers and wanted in (None, variant.name):
                return variant, finding
    return None, None


def _why_not(findings: Findings, wanted: str | None) -> list[str]:
    names = [wanted] if wanted else list(VARIANTS)
    return [line for name in names for line in _without_symptom(findings, VARIANTS[name])]


def _without_symptom(findings: Findings, variant: Variant) -> list[str]:
    lines = []
    for symptom in variant.answers:
        found = findings.named(symptom)
        clear = next((c for c in findings.clear if c.name == symptom), None)
        missing = next((n for n in findings.not_judged if n.name == symptom), None)
        if found is not None:
            lines.append(f"{variant.title} answers {symptom}, which is information here: {found.evidence}")
        elif clear is not None:
            lines.append(f"{variant.title} answers {symptom}, which was not found: {clear.why}")
        elif missing is not None:
            lines.append(
                f"{variant.title} answers {symptom}, which could not be judged: needs {missing.needs}"
            )
    for symptom in variant.also_helps:
        alarm = next((a for a in findings.alarms if a.name == symptom), None)
        if alarm is not None:
            lines.append(f"it would ease {symptom}, but there is a cheaper remedy first: {alarm.action}")
    return lines


def _changes(variant: Variant, effective: Mapping[str, Any]) -> list[Change]:
    accumulation = int(effective.get("gradient_accumulation_steps") or 1)
    wanted = trl_settings(variant, accumulation)
    off_policy = (
        wanted["steps_per_generation"] != accumulation or int(effective.get("num_iterations") or 1) > 1
    )
    found = []
    for name, after in wanted.items():
        before = in_effect(name, effective)
        setting = variant.settings.get(name)
        if name == "steps_per_generation" and variant.accumulation_multiple is None:
            continue
        effect: Effect = "changes" if not _same(before, after) else "is so already"
        if name in ("epsilon", "epsilon_high") and effect == "changes" and not off_policy:
            effect = "acts only off-policy"
        why = setting.why if setting else "a batch serves several updates, so that clipping can act"
        source = setting.source if setting else "TRL 1.16: on-policy every ratio is 1"
        found.append(Change(name, before, after, effect, why, source))
    return found


def in_effect(field: str, effective: Mapping[str, Any]) -> Value:
    """Return the value that a field really has: TRL fills some in from others."""
    value: Value = effective.get(field)
    if field == "epsilon_high" and value is None:
        return in_effect("epsilon", effective)
    if field == "steps_per_generation" and value is None:
        accumulation = effective.get("gradient_accumulation_steps")
        return int(accumulation) if accumulation is not None else None
    if field == "scale_rewards" and isinstance(value, bool):
        return "group" if value else "none"
    return value


def _same(one: Value, other: Value) -> bool:
    numbers = isinstance(one, int | float) and isinstance(other, int | float)
    return abs(float(one or 0) - float(other or 0)) < 1e-12 if numbers else one == other


def _order(findings: Findings, variant: Variant, applied: str, facts: Facts) -> list[str]:
    """Return what must be settled before this variant."""
    lines = []
    suspects = [a for a in findings.alarms if a.suspects_reward and a.name not in variant.answers]
    if suspects:
        lines.append(
            f"the reward is suspected first ({suspects[0].name}): mend it, read again; a variant does not help"
        )
    if applied and applied != variant.name:
        lines.append(
            f"this run already carries {applied}: one change at a time; see `rlvr compare` with its base run"
        )
    if facts.experts and variant.name != "gspo":
        lines.append("the model has experts: GSPO is required and not left again")
    return lines


def _reading(findings: Findings, read: int, symptom: Finding | None) -> list[str]:
    if symptom is None or read >= READ_FIRST:
        return []
    return [
        f"{read} of {READ_FIRST} completions of this run were read: rlvr inspect --run {_run_name(findings)}; a "
        f"reward that "
        "pays the wrong thing looks the same"
    ]


def _run_name(findings: Findings) -> str:
    parts = findings.source.rstrip("/").split("/")
    return parts[parts.index("runs") + 1] if "runs" in parts[:-1] else "RUN"


def _later(variant: Variant, findings: Findings) -> list[str]:
    lines = []
    names = {alarm.name for alarm in findings.alarms}
    for name, setting in variant.switches.items():
        if name == "dynamic_sampling" and "no-signal" in names:
            lines.append(f"then, as a change of its own: dynamic sampling ({setting.why}; {setting.source})")
        if name == "overlong_punishment" and "truncation" in names:
            lines.append(
                f"then, as a change of its own: soft overlong punishment ({setting.why}; {setting.source}); it "
                f"changes "
                "the reward, so the resulting reward is read again first"
            )
    return lines
