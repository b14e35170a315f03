"""The verdict, from samples and their scores. Pure: no model, no files, no clock.

Two questions are asked of distinct prompts, each by the confidence sequence of :mod:`rlvr.probe.sequence`:

- *support*: is mean success over 1%? Asked at both temperatures; the capital is the mean of both, which stays a fair
  bet when neither exceeds 1%.
- *signal*: do more than 0.5% of groups at the training temperature hold both outcomes? A mean of 50% from prompts
  that always or never succeed trains nothing.

Zone of indifference: success from 1% to 4%, signal from 0.5% to 12% of groups. Outside it at most 5% of models are
let through wrongly and at most 5% stopped wrongly (``benchmarks/probe.py``); inside, any verdict is a fair one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rlvr.probe import estimate, sequence
from rlvr.probe.estimate import Judged, Tally
from rlvr.probe.sequence import ALPHA, Observations
from rlvr.records.probe import Cause, Causes, Verdict

HOPELESS = 0.01
"""Success at or below which a model must not be let through."""
RARE = 0.02
"""Success that is called rare when it is surely below this."""
PROMISING = 0.04
"""Success from which a model must not be stopped."""
SILENT = 0.005
"""Share of groups with a signal at or below which training would be idle."""
SPEAKING = 0.12
"""Share of groups with a signal that training must not be kept from."""
NEARLY_ALWAYS = 0.95
SURELY_MOST = 0.90
FEW_PROMPTS = 20
"""Distinct prompts below which nothing is said of a task but that there are too few."""
GROUP = 8
TRUNCATED = 0.10
NOTHING_FORMED = 0.95
UNPAID_MATCHES = (3, 0.10)
"""Number and share of zeros that hold the reference as their answer, from which the grader is doubted."""
INFRASTRUCTURE = 0.05
ZEROS_TO_READ = 10
MORE = (1.25, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32)

SFT = "lora-qlora-recipes (SFT)"


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
    """

    gold_checked: int = 0
    gold_paid: int = 0
    unpaid_matches: int = 0
    zeros_read: int | None = None
    population: int | None = None
    low_temperature: float | None = None
    training_temperature: float | None = None


@dataclass(frozen=True, slots=True)
class Ruling:
    """A verdict with its reason."""

    verdict: Verdict
    why: str
    next_step: str = ""
    route: str = ""
    more: int | None = None
    decided_by: Literal["low", "training", "both", "none"] = "none"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the verdict is made from.

    Attributes:
        low: Shares of prompts at the low temperature.
        training: Shares of prompts at the training temperature.
        signal: Chance of a mixed group of each prompt at the training temperature.
        group: Group size that ``signal`` is about; 0 when there is one completion a prompt.
        prompts: Distinct prompts with any judged completion.
        uncut_prompts: Distinct prompts with a judged completion that the cap did not end.
        fewest: Fewest judged completions of a prompt.
        causes: Causes of the zeros.
        right: Right completions.
    """

    low: Observations
    training: Observations
    signal: Observations
    group: int
    prompts: int
    uncut_prompts: int
    fewest: int
    causes: Causes
    right: int


def judge(judged: Sequence[Judged], facts: Facts) -> tuple[Ruling, Evidence, list[Tally]]:
    """Return the ruling over completions with their scores, the evidence, and the tallies it rests on."""
    tallies = estimate.tally(judged)
    evidence = _evidence(judged, tallies, facts)
    return rule(evidence, facts), evidence, tallies


def rule(evidence: Evidence, facts: Facts) -> Ruling:
    """Decide. The order matters: a grader or a cap at fault says nothing about the model."""
    causes = evidence.causes
    if evidence.prompts == 0:
        return Ruling("undecided", "no completion could be judged", "mend what keeps the reward from judging")
    total = causes.infrastructure + causes.zeros + evidence.right
    if causes.infrastructure > INFRASTRUCTURE * total:
        return Ruling(
            "undecided",
            f"the reward could not judge {causes.infrastructure} of {total} completions, which says nothing",
            "mend the verifier, then `rlvr probe --rescore`",
        )
    if evidence.right == 0:
        return _no_success(evidence, facts)
    return _some_success(evidence)


def _no_success(evidence: Evidence, facts: Facts) -> Ruling:
    causes = evidence.causes
    none = f"no success on {evidence.prompts} distinct prompts"
    if causes.main == "grader":
        return Ruling(
            "undecided", f"{none}, but {_grader(causes)}: this says nothing about the model", MEND_GRADER
        )
    needed = sequence.prompts_for_zero_bound(HOPELESS)
    if causes.main == "truncated" and evidence.uncut_prompts < needed:
        return Ruling(
            "undecided",
            f"{none}, but the length cap ended {causes.truncated} of {causes.zeros} completions",
            "raise sampling.max_completion_length, then `rlvr probe`",
        )
    if not _surely_none(evidence, facts, needed):
        more = needed - evidence.prompts
        bound = sequence.zero_bound(evidence.prompts)
        return Ruling(
            "undecided",
            f"{none}, which still allows success in {bound:.1%} of prompts; {more} more distinct prompts decide",
            "sample more distinct prompts (raise gates.probe.prompts), then `rlvr probe`",
            more=more,
        )
    return _unsupported(none, evidence, facts)


def _surely_none(evidence: Evidence, facts: Facts, needed: int) -> bool:
    if evidence.prompts >= needed:
        return True
    # All prompts of a small data set were drawn, so the draws bound its mean success: (1 - p)^draws < 5%.
    is_census = facts.population is not None and evidence.prompts >= facts.population >= FEW_PROMPTS
    return is_census and evidence.prompts * evidence.fewest >= needed


def _unsupported(none: str, evidence: Evidence, facts: Facts) -> Ruling:
    unread = facts.zeros_read is not None and facts.zeros_read < ZEROS_TO_READ
    if unread:
        return Ruling(
            "undecided",
            f"{none}; before anybody is sent to SFT, {ZEROS_TO_READ} of the zeros are read ({facts.zeros_read} are)",
            "`rlvr inspect` opens on the zeros; then `rlvr probe --rescore`",
        )
    bound = sequence.zero_bound(evidence.prompts)
    why = f"{none}: success in under {max(bound, 1e-4):.1%} of prompts at 95%; {_zero_words(evidence.causes)}"
    if facts.zeros_read is None:
        return Ruling("no support", why, READ_FIRST, decided_by="both")
    return Ruling("no support", why, f"teach the task first: {SFT}", SFT, decided_by="both")


def _zero_words(causes: Causes) -> str:
    if causes.main == "ill-formed":
        return "nothing is well-formed, so show the format in the prompt, or teach it by SFT"
    if causes.main == "truncated":
        return f"{causes.truncated} of {causes.zeros} were cut by the length cap, the others are not right either"
    return "answers are read and are not right"


def _grader(causes: Causes) -> str:
    if causes.gold_checked and not causes.gold_paid:
        return f"the reward pays none of {causes.gold_checked} reference answers either"
    return f"{causes.unpaid_matches} unpaid completions end in the reference answer"


MEND_GRADER = "`rlvr rewards try` shows how the reward reads an answer; mend it, then `rlvr probe --rescore`"
READ_FIRST = "read the ten zeros shown here first; only if they are truly wrong, teach the task by SFT"


def _some_success(evidence: Evidence) -> Ruling:
    support, decided_by = _support(evidence)
    rate = _mean(evidence)
    if _surely_saturated(evidence):
        return Ruling(
            "saturated",
            f"{rate:.1%} right already: too few failures to learn from",
            "take harder prompts (`rlvr probe --filter` drops the solved ones), or train on another task",
            decided_by="training" if evidence.training else "low",
        )
    if evidence.group and _log(sequence.log_capital_below(evidence.signal, SPEAKING)):
        return _silent(evidence, rate)
    if not support:
        return _rare_or_undecided(evidence, rate)
    if evidence.prompts < FEW_PROMPTS:
        more = FEW_PROMPTS - evidence.prompts
        why = (
            f"{rate:.1%} right, but only {evidence.prompts} distinct prompts: {more} more are needed to judge"
        )
        return Ruling("undecided", why, "add prompts, then `rlvr probe`", more=more)
    if not evidence.group:
        return Ruling(
            "undecided",
            f"{rate:.1%} right, but with one completion a prompt nobody can say whether a group would hold both "
            "outcomes",
            f"sample at least {GROUP} completions of {FEW_PROMPTS} or more prompts at the training temperature",
            more=FEW_PROMPTS,
        )
    if not _log(sequence.log_capital_above(evidence.signal, SILENT)):
        return _unclear_signal(evidence, rate)
    mixed = sequence.mean_of(evidence.signal)
    return Ruling(
        "sweet spot",
        f"{rate:.1%} right, and {mixed:.0%} of groups of {evidence.group} would hold both outcomes",
        "`rlvr inspect`",
        decided_by=decided_by,
    )


def _log(capital: float, alpha: float = ALPHA) -> bool:
    return capital >= -math.log(alpha)


def _support(evidence: Evidence) -> tuple[bool, Literal["low", "training", "both"]]:
    """Return whether success is surely over 1%, and which temperature showed it."""
    low, training = (
        sequence.log_capital_above(evidence.low, HOPELESS),
        sequence.log_capital_above(evidence.training, HOPELESS),
    )
    decided_by: Literal["low", "training", "both"] = "training" if training >= low else "low"
    return _log(_both(evidence, low, training)), decided_by


def _both(evidence: Evidence, low: float, training: float) -> float:
    """Return the log of the mean capital; of the one there is when only one temperature was sampled."""
    if not evidence.low:
        return training
    if not evidence.training:
        return low
    high, less = max(low, training), min(low, training)
    return high + math.log1p(math.exp(less - high)) - math.log(2)


def _surely_saturated(evidence: Evidence) -> bool:
    seen = evidence.training or evidence.low
    often = sequence.mean_of(seen) >= NEARLY_ALWAYS
    return often and _log(sequence.log_capital_above(seen, SURELY_MOST))


def _silent(evidence: Evidence, rate: float) -> Ruling:
    """Rule where surely too few groups hold both outcomes although some completions are right."""
    always = f"prompts always or never succeed: {_signal_words(evidence)}"
    if rate >= 0.2:
        return Ruling(
            "saturated",
            f"{rate:.1%} right, but {always}; the mean trains nothing",
            "drop the solved prompts (`rlvr probe --filter`) and teach the others by SFT, or take prompts in between",
            decided_by="training",
        )
    if rate <= HOPELESS and evidence.low and sequence.mean_of(evidence.low) >= PROMISING:
        low = sequence.mean_of(evidence.low)
        return Ruling(
            "rare",
            f"{low:.1%} right at the low temperature, but {rate:.1%} at the training temperature",
            "lower sampling.temperature, then `rlvr probe`",
            decided_by="training",
        )
    return Ruling("rare", f"{rate:.1%} right; {always}", RARE_STEPS, decided_by="training")


RARE_STEPS = (
    "`rlvr probe --filter` keeps the prompts that can teach; or take easier prompts, larger groups, "
    "or SFT first"
)


def _rare_or_undecided(evidence: Evidence, rate: float) -> Ruling:
    low = sequence.log_capital_below(evidence.low, RARE)
    training = sequence.log_capital_below(evidence.training, RARE)
    if _log(_both(evidence, low, training)):
        why = f"success seen, but surely under {RARE:.0%} of draws ({rate:.2%} observed)"
        return Ruling("rare", why, RARE_STEPS, decided_by="low" if low >= training else "training")
    more = _more_prompts(evidence)
    return Ruling(
        "undecided",
        f"{rate:.2%} right on {evidence.prompts} distinct prompts: neither surely over {HOPELESS:.0%} nor surely "
        f"under {RARE:.0%}",
        _sample_more(more),
        more=more,
    )


def _unclear_signal(evidence: Evidence, rate: float) -> Ruling:
    more = _more(evidence.signal, _signal_decided)
    return Ruling(
        "undecided",
        f"{rate:.1%} right, but {_signal_words(evidence)}: too few to tell",
        "raise gates.probe.rollout_prompts, then `rlvr probe`"
        + (f"; about {more} more prompts decide" if more else ""),
        more=more,
    )


def _signal_decided(seen: Observations) -> bool:
    above, below = sequence.log_capital_above(seen, SILENT), sequence.log_capital_below(seen, SPEAKING)
    return _log(max(above, below))


def _signal_words(evidence: Evidence) -> str:
    mixed = sum(times for share, times in evidence.signal.items() if share > 0)
    return f"{mixed} of {sum(evidence.signal.values())} prompts gave both outcomes among {evidence.group}"


def _sample_more(more: int | None) -> str:
    if more is None:
        return "success is between: filter prompts (`rlvr probe --filter`) rather than sampling on"
    return f"about {more} more distinct prompts decide: raise gates.probe.prompts, then `rlvr probe`"


def _more_prompts(evidence: Evidence) -> int | None:
    seen = evidence.low or evidence.training

    def decided(scaled: Observations) -> bool:
        above = sequence.log_capital_above(scaled, HOPELESS)
        return _log(max(above, sequence.log_capital_below(scaled, RARE)))

    return _more(seen, decided)


def _more(seen: Observations, decided: Callable[[Observations], bool]) -> int | None:
    """Return how many more prompts decide if the shares seen so far go on; None when 32 times as many do not."""
    now = sum(seen.values())
    for times in MORE:
        if decided({share: number * times for share, number in seen.items()}):
            return math.ceil(now * (times - 1))
    return None


def _mean(evidence: Evidence) -> float:
    return sequence.mean_of(evidence.training or evidence.low)


def _evidence(judged: Sequence[Judged], tallies: Sequence[Tally], facts: Facts) -> Evidence:
    asked = [one for one in tallies if one.low or one.training]
    group = _group(asked)
    signal = [
        estimate.informative_share(sum(one.training), len(one.training), group)
        for one in asked
        if group and len(one.training) >= group
    ]
    uncut = {
        tuple((message.role, message.content.strip()) for message in sample.prompt)
        for sample, score in judged
        if estimate.is_judged(score) and not sample.truncated
    }
    return Evidence(
        low=sequence.count(estimate.share(one.low) for one in asked if one.low),
        training=sequence.count(estimate.share(one.training) for one in asked if one.training),
        signal=sequence.count(one for one in signal if one is not None),
        group=group,
        prompts=len(asked),
        uncut_prompts=len(uncut),
        fewest=min((len(one.low) + len(one.training) for one in asked), default=0),
        causes=causes(judged, facts),
        right=sum(one.successes for one in asked),
    )


def _group(tallies: Sequence[Tally]) -> int:
    """Return the largest group, up to 8, that nine in ten of the prompts with several completions can fill."""
    sizes = sorted(len(one.training) for one in tallies if len(one.training) > 1)
    return min(GROUP, sizes[len(sizes) // 10]) if sizes else 0


def causes(judged: Sequence[Judged], facts: Facts) -> Causes:
    """Count why completions were not paid, and name the main cause."""
    found = [estimate.cause_of(sample, score) for sample, score in judged]
    counts = Counter(found)
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
    if not zeros:
        return "infrastructure" if counts["infrastructure"] else None
    doubted = facts.unpaid_matches >= max(UNPAID_MATCHES[0], UNPAID_MATCHES[1] * zeros)
    if (facts.gold_checked and not facts.gold_paid) or doubted:
        return "grader"
    if counts["right"]:
        missed: tuple[Cause, ...] = ("wrong", "ill-formed", "truncated")
        return max(missed, key=lambda name: counts[name])
    if counts["truncated"] > TRUNCATED * zeros:
        return "truncated"
    return "ill-formed" if counts["ill-formed"] >= NOTHING_FORMED * zeros else "wrong"
