"""Decides whether a task belongs here: GRPO needs a program that can tell a right completion from a wrong one.

Each refusal names the place to go and why. Images, preference columns and tools are refused where the data is read
(:mod:`rlvr.task.dataset`); this module judges what the configuration says and what the rows hold together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rlvr.config.schema import Reward, Routing
from rlvr.records.admit import AdmitRecord, Refusal
from rlvr.task.dataset import Row

ROUTES: Mapping[str, tuple[str, str]] = {
    "preference": (
        "preference-optimization (DPO)",
        "pairs say which answer people like better, not whether one is right; DPO trains on them without a verifier",
    ),
    "demonstration": (
        "lora-qlora-recipes (SFT)",
        "examples of good answers are imitated by SFT; GRPO would throw them away and search anew",
    ),
    "judgement": (
        "eval-harness-first",
        "an opinion without a calibrated judge is a reward that training will exploit: build the evaluation and "
        "calibrate the judge against human labels first",
    ),
}
"""Signal to where it belongs, and why."""

SIGNAL_REWARDS: Mapping[str, frozenset[str]] = {
    "unit_tests": frozenset({"unit_tests"}),
    "json_schema": frozenset({"json_schema"}),
    "tool_call": frozenset({"tool_call"}),
}
"""Signals that one built-in serves; a function of the user's serves any."""

METHODS = frozenset({"grpo", "rlvr", "gspo", "dapo", "dr_grpo", "dr.grpo", "rl"})
JUDGE = "judge"
DEMONSTRATION_COLUMNS = frozenset({"completion", "response", "output", "demonstration"})
MIN_LABELS = 30
"""Fewest human labels a calibration may rest on: below it, no error in 30 still allows 9.5% at 95%."""
MIN_AGREEMENT = 0.8
"""Least agreement of a judge with human labels."""
FEW_PROMPTS = 20


def admit(
    signal: str,
    rewards: Sequence[Reward],
    rows: Sequence[Row],
    *,
    held_out: Sequence[Row] = (),
    routing: Routing | None = None,
    calibration: Mapping[str, Any] | None = None,
    has_vision_tower: bool = False,
) -> AdmitRecord:
    """Decide whether this task is trained by GRPO on verifiable rewards.

    Args:
        signal: ``task.signal``.
        rewards: The configured components.
        rows: Training rows.
        held_out: Held-out rows.
        routing: The decision that brought the user here.
        calibration: A judge's calibration record: ``agreement`` in [0, 1] with ``labels`` human labels.
        has_vision_tower: Whether the checkpoint also reads images.
    """
    refusals = [
        *_signal_refusals(signal),
        *_judge_refusals(rewards, calibration),
        *_routing_refusals(signal, routing),
        *_data_refusals(rewards, rows),
    ]
    distinct = {row.prompt_hash for row in rows}
    overlap = len(distinct & {row.prompt_hash for row in held_out})
    return AdmitRecord(
        signal=signal,
        refusals=refusals,
        remarks=_remarks(signal, rewards, rows, len(distinct), overlap, has_vision_tower),
        rows=len(rows),
        distinct_prompts=len(distinct),
        overlap=overlap,
        routing={key: str(value) for key, value in routing.model_dump().items()} if routing else {},
        passed=not refusals,
        why=_why(signal, refusals),
    )


def _why(signal: str, refusals: Sequence[Refusal]) -> str:
    if not refusals:
        return f"success is decided by a verifier ({signal})"
    return "; ".join(f"{one.found}: go to {one.route}, since {one.why}" for one in refusals)


def _signal_refusals(signal: str) -> list[Refusal]:
    if signal not in ROUTES:
        return []
    route, why = ROUTES[signal]
    return [Refusal(code=f"admit.{signal}", found=f"task.signal is {signal}", route=route, why=why)]


def _judge_refusals(rewards: Sequence[Reward], calibration: Mapping[str, Any] | None) -> list[Refusal]:
    correctness = [
        one for one in rewards if (one.role or "correctness") == "correctness" and not _is_side(one)
    ]
    if not correctness or any(one.use != JUDGE for one in correctness):
        return []
    problem = _calibration_problem(calibration)
    if problem is None:
        return []
    route, why = ROUTES["judgement"]
    found = f"a judge is the only correctness signal, and {problem}"
    return [Refusal(code="admit.judge-uncalibrated", found=found, route=route, why=why)]


def _is_side(reward: Reward) -> bool:
    # Built-ins that are never correctness, whatever the configuration leaves out.
    return reward.role is None and reward.use in ("tags", "format", "length")


def _calibration_problem(calibration: Mapping[str, Any] | None) -> str | None:
    if not calibration:
        return "no calibration record is attached"
    agreement, labels = calibration.get("agreement"), calibration.get("labels")
    if not isinstance(agreement, int | float) or not isinstance(labels, int):
        return "its calibration record lacks agreement or labels"
    if labels < MIN_LABELS:
        return f"its calibration rests on {labels} human labels, fewer than {MIN_LABELS}"
    if agreement < MIN_AGREEMENT:
        return f"it agrees with people in {agreement:.0%} of cases, under {MIN_AGREEMENT:.0%}"
    return None


def _routing_refusals(signal: str, routing: Routing | None) -> list[Refusal]:
    if routing is None:
        return []
    found = []
    if routing.method.lower() not in METHODS:
        found.append(f"task.routing.method is {routing.method}, which is not reinforcement learning")
    if routing.signal != signal:
        found.append(f"task.routing.signal is {routing.signal}, but task.signal is {signal}")
    why = "the decision that brought this task here does not fit what stands here: one of them is wrong"
    return [
        Refusal(code="admit.routing", found=one, route="finetuning-method-selection", why=why)
        for one in found
    ]


def _data_refusals(rewards: Sequence[Reward], rows: Sequence[Row]) -> list[Refusal]:
    columns = {name for row in rows for name in row.columns}
    refusals = []
    if {"chosen", "rejected"} <= columns:
        route, why = ROUTES["preference"]
        found = "the data holds chosen and rejected completions"
        refusals.append(Refusal(code="admit.preference", found=found, route=route, why=why))
    reads_columns = {value for one in rewards for value in one.arguments.values() if isinstance(value, str)}
    only_demonstrations = bool(columns) and columns <= DEMONSTRATION_COLUMNS
    if only_demonstrations and not columns & reads_columns and all(":" not in one.use for one in rewards):
        route, why = ROUTES["demonstration"]
        found = f"beside the prompt the data holds only {sorted(columns)[0]!r}, which is a demonstration"
        refusals.append(Refusal(code="admit.demonstration", found=found, route=route, why=why))
    return refusals


def _remarks(
    signal: str,
    rewards: Sequence[Reward],
    rows: Sequence[Row],
    distinct: int,
    overlap: int,
    has_vision_tower: bool,
) -> list[str]:
    remarks = []
    if overlap:
        remarks.append(
            f"{overlap} prompts stand in training and held-out data alike: held-out accuracy would be flattered"
        )
    if distinct < len(rows):
        remarks.append(f"{len(rows) - distinct} rows repeat a prompt; the probe samples each prompt once")
    conflicts = _conflicts(rows)
    if conflicts:
        remarks.append(f"{conflicts} prompts have several different references: at most one can be right")
    if distinct < FEW_PROMPTS:
        remarks.append(f"only {distinct} distinct prompts: a model learns these by heart")
    if has_vision_tower:
        remarks.append("the checkpoint has a vision tower: it stays frozen and is counted in memory")
    serving = SIGNAL_REWARDS.get(signal)
    if serving and all(":" not in one.use and one.use not in serving for one in rewards):
        remarks.append(
            f"task.signal is {signal}, but no reward is {' or '.join(sorted(serving))} or your own function"
        )
    return remarks


def _conflicts(rows: Sequence[Row]) -> int:
    first: dict[str, str] = {}
    conflicting = set()
    for row in rows:
        known = first.setdefault(row.prompt_hash, row.row_hash)
        if known != row.row_hash:
            conflicting.add(row.prompt_hash)
    return len(conflicting)
