"""What a change did: two runs side by side, each metric with the interval of its difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from rlvr.evaluation import Change, change
from rlvr.records.run import Evaluation
from rlvr.records.watch import Findings
from rlvr.variants import VARIANTS, Sign
from rlvr.watch.history import History
from rlvr.watch.statistics import Estimate, Series
from rlvr.watch.symptoms.case import Case

COMPARED: Final = (
    "held_out",
    "accuracy",
    "reward",
    "entropy",
    "length",
    "wrong_length",
    "right_length",
    "zero_variance_share",
    "truncated_share",
    "distinct_answer_share",
    "clipped_token_share",
    "ratio_max",
    "grad_norm",
    "kl",
)
"""Metrics compared over the last rows of the shared steps."""

Verdict = Literal["as expected", "against expectation", "not told apart", "no expectation"]


@dataclass(frozen=True, slots=True)
class Effect:
    """One metric in both runs.

    Attributes:
        metric: This project's name.
        first: Mean of the first run's last rows.
        second: Mean of the second run's last rows.
        difference: Second minus first, with its error.
        expected: Sign that the variant was to bring, None without one.
        verdict: What the interval says of it.
    """

    metric: str
    first: Estimate
    second: Estimate
    difference: Estimate
    expected: Sign | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Held-out accuracy of both final models.

    Attributes:
        first: The first run's.
        second: The second run's.
        before: The base model's before each run; None where none was measured alike.
        change: Second less first, paired by prompt; None when they cannot be compared.
        why_not: Why they cannot.
    """

    first: Evaluation
    second: Evaluation
    before: tuple[Evaluation | None, Evaluation | None] = (None, None)
    change: Change | None = None
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs side by side.

    Attributes:
        effects: One entry a metric that both log.
        settings: Field to both values, where they differ.
        gone: Symptoms of the first run that the second lacks.
        came: Symptoms of the second run that the first lacks.
        shared_steps: Last step that both reached; rows beyond it are left out.
        warnings: What makes the comparison weak.
        held_out: Held-out accuracy after both; None where a run was not measured.
    """

    effects: list[Effect]
    settings: dict[str, tuple[Any, Any]]
    gone: list[str]
    came: list[str]
    shared_steps: int
    warnings: list[str]
    held_out: HeldOut | None = None


def paired_held_out(
    first: Evaluation,
    second: Evaluation,
    *,
    before: tuple[Evaluation | None, Evaluation | None] = (None, None),
    differs: Sequence[str] = (),
) -> HeldOut:
    """Compare two final models prompt by prompt.

    Args:
        first: The first run's evaluation.
        second: The second run's.
        before: The base model's before each run.
        differs: What was not alike between the two measurements; with any of it there is no difference to state.
    """
    if differs:
        return HeldOut(
            first,
            second,
            before,
            None,
            f"{' and '.join(differs)} changed between the measurements; `rlvr eval RUN` measures again",
        )
    found = change(first.results, second.results)
    if not found.prompts:
        return HeldOut(first, second, before, None, "no prompt was judged in both")
    return HeldOut(first, second, before, found)


def compare_runs(
    first: tuple[Case, Findings],
    second: tuple[Case, Findings],
    *,
    variant: str = "",
    held_out: HeldOut | None = None,
) -> Comparison:
    """Compare two runs over the steps that both reached.

    Args:
        first: The base run and its findings.
        second: The changed run and its findings.
        variant: Name of the variant that the second carries, for the expected signs.
        held_out: Held-out accuracy after both, where both were measured.
    """
    shared = min(_last(first[0].history), _last(second[0].history))
    expected: Mapping[str, Sign] = VARIANTS[variant].expects if variant in VARIANTS else {}
    effects = [
        e for metric in COMPARED if (e := _effect(metric, first[0], second[0], shared, expected.get(metric)))
    ]
    settings = _differences(first[0].facts.settings, second[0].facts.settings)
    alarms = ({a.name for a in first[1].alarms}, {a.name for a in second[1].alarms})
    return Comparison(
        effects,
        settings,
        sorted(alarms[0] - alarms[1]),
        sorted(alarms[1] - alarms[0]),
        int(shared),
        _warnings(first[0], second[0], settings, variant) + _unmeasured(first[0], second[0], held_out),
        held_out,
    )


def _last(history: History) -> float:
    return float(history.steps[-1]) if len(history) else 0.0


def _effect(metric: str, first: Case, second: Case, shared: float, expected: Sign | None) -> Effect | None:
    one, other = _upto(first, metric, shared), _upto(second, metric, shared)
    if one is None or other is None:
        return None
    difference = other.late.minus(one.late)
    return Effect(metric, one.late, other.late, difference, expected, _verdict(difference, expected))


def _upto(case: Case, metric: str, shared: float) -> Series | None:
    found = case.series(metric, rows=3)
    if found is None and metric == "accuracy" and case.correctness_series:
        found = case.correctness_series[0]
    if found is None:
        return None
    keep = found.steps <= shared
    return Series(found.steps[keep], found.values[keep]) if keep.sum() >= 3 else None


def _verdict(difference: Estimate, expected: Sign | None) -> Verdict:
    if expected is None:
        return "no expectation"
    if expected == 0:
        return "as expected" if difference.low <= 0 <= difference.high else "against expectation"
    if difference.low <= 0 <= difference.high:
        return "not told apart"
    return "as expected" if (difference.value > 0) == (expected > 0) else "against expectation"


def _differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    skip = {"output_dir", "run_name", "logging_dir"}
    names = (set(first) | set(second)) - skip
    return {n: (first.get(n), second.get(n)) for n in sorted(names) if first.get(n) != second.get(n)}


def _warnings(first: Case, second: Case, settings: Mapping[str, Any], variant: str) -> list[str]:
    lines = ["one run each: the interval covers the noise within a run, not that of another seed"]
    allowed = set(VARIANTS[variant].settings) | {"steps_per_generation"} if variant in VARIANTS else set()
    others = sorted(set(settings) - allowed - {"seed"})
    if len(others) > (0 if variant else 1):
        lines.append(f"more than one thing differs: {', '.join(others)}")
    return lines


def _unmeasured(first: Case, second: Case, held_out: HeldOut | None) -> list[str]:
    if held_out is not None:
        return [f"no held-out difference: {held_out.why_not}"] if held_out.why_not else []
    if first.history.has("held_out") and second.history.has("held_out"):
        return []
    return ["no held-out accuracy in both runs: training numbers alone do not show that it is better"]
