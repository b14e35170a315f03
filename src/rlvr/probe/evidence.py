"""What the verdict is made from: observations over distinct prompts, and the causes of the zeros. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rlvr.probe import estimate, sequence
from rlvr.probe.estimate import Judged, Tally
from rlvr.probe.sequence import Observations
from rlvr.probe.steps import WORKSPACE, Steps
from rlvr.records.probe import Cause, Causes

GROUP = 8
"""Group size that the verdict is about; smaller groups are refused in training."""
TRUNCATED = 0.10
NOTHING_FORMED = 0.95
UNPAID_MATCHES = (3, 0.10)
"""Number of zeros that hold the reference as their answer, from which the grader is doubted where nothing is paid;
and their share among the zeros where something is."""


ONE_REASON = 0.90
"""Share of the ill-formed completions that one reason explains, from which it is named."""
IN_FILE = "in the file"
"""How a verdict of a file's own ends, which tells no reason."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What the samples do not say themselves.

    Attributes:
        gold_checked: References put to the reward as completions.
        gold_paid: Of these, paid as right in at least one usual form.
        unpaid_matches: Zeros whose text holds the reference as its last answer.
        zeros_read: Zeros that a reader has labelled; None where nobody can (a file without a workspace).
        population: Distinct prompts in the data; None when unknown.
        low_temperature: Configured low temperature.
        training_temperature: Configured training temperature.
        steps: Words for what to do next.
        decide_by: Temperature whose success must show support.
    """

    gold_checked: int = 0
    gold_paid: int = 0
    unpaid_matches: int = 0
    zeros_read: int | None = None
    population: int | None = None
    low_temperature: float | None = None
    training_temperature: float | None = None
    steps: Steps = WORKSPACE
    decide_by: Literal["both", "low", "training"] = "both"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the verdict is made from.

    Attributes:
        low: Shares of right completions of prompts at the low temperature.
        training: The same at the training temperature.
        signal: Chance of a group of each prompt to hold both outcomes, at the training temperature.
        group: Group size that ``signal`` is about; 0 when there is one completion a prompt.
        prompts: Distinct prompts with any judged completion.
        fewest: Fewest judged completions of a prompt.
        causes: Causes of the zeros.
        right: Right completions.
        decide_by: Temperature whose success must show support.
        reason: Why nearly all zeros are ill-formed, in the reward's words; empty when there is no one reason.
    """

    low: Observations
    training: Observations
    signal: Observations
    group: int
    prompts: int
    fewest: int
    causes: Causes
    right: int
    decide_by: Literal["both", "low", "training"] = "both"
    reason: str = ""

    @property
    def rate(self) -> float:
        """Mean success at the training temperature, else at the low one."""
        return sequence.mean_of(self.training or self.low)

    @property
    def mixed(self) -> int:
        """Prompts that gave both outcomes."""
        return int(sum(times for share, times in self.signal.items() if share > 0))


def gather(judged: Sequence[Judged], tallies: Sequence[Tally], facts: Facts) -> Evidence:
    """Return the evidence of completions with their scores."""
    asked = [one for one in tallies if one.low or one.training]
    group = _group(asked)
    signal = [
        estimate.informative_share(sum(one.training), len(one.training), group)
        for one in asked
        if group and len(one.training) >= group
    ]
    found = causes(judged, facts)
    return Evidence(
        low=sequence.count(estimate.share(one.low) for one in asked if one.low),
        training=sequence.count(estimate.share(one.training) for one in asked if one.training),
        signal=sequence.count(one for one in signal if one is not None),
        group=group,
        prompts=len(asked),
        fewest=min((len(one.low) + len(one.training) for one in asked), default=0),
        causes=found,
        right=sum(one.successes for one in asked),
        decide_by=facts.decide_by,
        reason=_one_reason(judged) if found.ill_formed >= NOTHING_FORMED * max(found.zeros, 1) else "",
    )


def _one_reason(judged: Sequence[Judged]) -> str:
    """Return the reason that nine in ten ill-formed completions share, as the reward says it."""
    reasons = Counter(
        score.why for sample, score in judged if estimate.cause_of(sample, score) == "ill-formed"
    )
    ((reason, times),) = reasons.most_common(1) or [("", 0)]
    known = reason and not reason.endswith(IN_FILE)
    return reason if known and times >= ONE_REASON * reasons.total() else ""


def _group(tallies: Sequence[Tally]) -> int:
    """Return the largest group, up to 8, that nine in ten of the prompts with several completions can fill."""
    sizes = sorted(len(one.training) for one in tallies if len(one.training) > 1)
    return min(GROUP, sizes[len(sizes) // 10]) if sizes else 0


def causes(judged: Sequence[Judged], facts: Facts) -> Causes:
    """Count why completions were not paid, and name the main cause."""
    counts = Counter(estimate.cause_of(sample, score) for sample, score in judged)
    zeros = counts["truncated"] + counts["ill-formed"] + counts["wrong"]
    return Causes(
        zeros=zeros,
        truncated=counts["truncated"],
        ill_formed=counts["ill-formed"],
        wrong=counts["wrong"],
        infrastructure=counts["infrastructure"],
        gold_checked=facts.gold_checked,
        gold_paid=facts.gold_paid,
        unpaid_matches=facts.unpaid_matches,
        main=_main_cause(counts, zeros, facts),
    )


def _main_cause(counts: Mapping[Cause, int], zeros: int, facts: Facts) -> Cause | None:
    """Without success, the first that holds: grader, cap, form, truth; with success, the most frequent."""
    if not zeros:
        return "infrastructure" if counts["infrastructure"] else None
    share = UNPAID_MATCHES[1] * zeros if counts["right"] else 0
    doubted = facts.unpaid_matches >= max(UNPAID_MATCHES[0], share)
    if (facts.gold_checked and not facts.gold_paid) or doubted:
        return "grader"
    if counts["right"]:
        missed: tuple[Cause, ...] = ("wrong", "ill-formed", "truncated")
        return max(missed, key=lambda name: counts[name])
    if counts["truncated"] > TRUNCATED * zeros:
        return "truncated"
    return "ill-formed" if counts["ill-formed"] >= NOTHING_FORMED * zeros else "wrong"
