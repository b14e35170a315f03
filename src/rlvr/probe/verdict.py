"""The verdict, from samples and their scores. Pure: no model, no files, no clock.

Two questions are asked of distinct prompts, each by the confidence sequence of :mod:`rlvr.probe.sequence`:

- *support*: is mean success over 1%? Asked at both temperatures; the capital is the mean of both, which stays a fair
  bet when neither exceeds 1%.
- *signal*: do more than 0.5% of groups of 8 at the training temperature hold both outcomes? A mean of 50% from
  prompts that always or never succeed trains nothing.

Zone of indifference: success from 1% to 4%, signal from 0.5% to 12% of groups. Outside it at most 5% of models are
let through wrongly and at most 5% stopped wrongly (``benchmarks/probe.py``); inside, any verdict is a fair one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from rlvr.probe import estimate, sequence
from rlvr.probe.estimate import Judged, Tally
from rlvr.probe.evidence import GROUP, Evidence, Facts, gather
from rlvr.probe.sequence import ALPHA, Observations
from rlvr.probe.steps import SFT, Steps
from rlvr.records.probe import Causes, Verdict

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
"""Success from which a model is called saturated, when it is surely over :data:`SURELY_MOST`."""
SURELY_MOST = 0.80
OFTEN = 0.20
"""Success from which prompts without a signal are called saturated rather than rare."""
FEW_PROMPTS = 20
"""Distinct prompts below which nothing is said of a task but that there are too few."""
INFRASTRUCTURE = 0.05
"""Share of completions that the reward could not judge, from which nothing is said of the model."""
ZEROS_TO_READ = 10
MORE = (1.25, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32)

Decider = Literal["low", "training", "both", "none"]


@dataclass(frozen=True, slots=True)
class Ruling:
    """A verdict with its reason.

    Attributes:
        verdict: The verdict.
        why: One sentence.
        next_step: What to do now.
        route: Where to go instead of training.
        more: How many more distinct prompts would decide.
        decided_by: Temperature whose samples decided.
    """

    verdict: Verdict
    why: str
    next_step: str
    route: str = ""
    more: int | None = None
    decided_by: Decider = "none"


def judge(judged: Sequence[Judged], facts: Facts) -> tuple[Ruling, Evidence, list[Tally]]:
    """Return the ruling over completions with their scores, the evidence, and the tallies it rests on."""
    tallies = estimate.tally(judged)
    evidence = gather(judged, tallies, facts)
    return rule(evidence, facts), evidence, tallies


def rule(evidence: Evidence, facts: Facts) -> Ruling:
    """Decide. The order matters: a verifier, grader or cap at fault says nothing about the model."""
    found = _not_judged(evidence, facts.steps)
    if found is not None:
        return found
    if evidence.right == 0:
        return _no_success(evidence, facts)
    return _with_form(_some_success(evidence, facts.steps), evidence, facts.steps)


def _not_judged(evidence: Evidence, steps: Steps) -> Ruling | None:
    causes = evidence.causes
    total = causes.infrastructure + causes.zeros + evidence.right
    if evidence.prompts == 0:
        return Ruling("undecided", f"none of {total} completions could be judged", steps.verifier)
    if causes.infrastructure > INFRASTRUCTURE * total:
        why = f"the reward could not judge {causes.infrastructure} of {total} completions"
        return Ruling("undecided", f"{why}, so nothing is said of the model", steps.verifier)
    return None


def _no_success(evidence: Evidence, facts: Facts) -> Ruling:
    causes, steps = evidence.causes, facts.steps
    none = f"no success on {evidence.prompts} distinct prompts"
    if causes.main == "grader":
        why = f"{none}, but {_grader(causes)}: this says nothing about the model"
        return Ruling("undecided", why, steps.grader)
    if causes.main == "truncated":  # those that end in time may be the guesses
        why = f"{none}, but the length cap ended {causes.truncated} of {causes.zeros} completions"
        return Ruling("undecided", why, steps.longer)
    needed = sequence.prompts_for_zero_bound(HOPELESS)
    if evidence.reason and not _surely_none(evidence, facts, needed):
        why = f"{none}, but {_form(evidence)}: this says how answers are written, not whether they are right"
        return Ruling("undecided", why, facts.steps.form)
    if not _surely_none(evidence, facts, needed):
        more = needed - evidence.prompts
        bound = sequence.zero_bound(evidence.prompts)
        why = f"{none}, which still allows success in {bound:.1%} of prompts; {more} more distinct prompts decide"
        return Ruling("undecided", why, steps.prompts, more=more)
    return _unsupported(none, evidence, facts)


def _grader(causes: Causes) -> str:
    if causes.gold_checked and not causes.gold_paid:
        return f"the reward pays none of {causes.gold_checked} reference answers either"
    return f"{causes.unpaid_matches} unpaid completions end in the reference answer"


def _surely_none(evidence: Evidence, facts: Facts, needed: int) -> bool:
    if evidence.prompts >= needed:
        return True
    # All prompts of a small data set were drawn, so the draws bound its mean success: (1 - p)^draws < 5%.
    is_census = facts.population is not None and evidence.prompts >= facts.population >= FEW_PROMPTS
    return is_census and evidence.prompts * evidence.fewest >= needed


def _unsupported(none: str, evidence: Evidence, facts: Facts) -> Ruling:
    read, steps = facts.zeros_read, facts.steps
    if read is not None and read < ZEROS_TO_READ:
        why = f"{none}; before anybody is sent to SFT, {ZEROS_TO_READ} of the zeros are read ({read} are)"
        return Ruling("undecided", why, steps.zeros)
    draws = max(evidence.prompts, evidence.prompts * evidence.fewest if facts.population else 0)
    bound = sequence.zero_bound(draws)
    words = (
        "nothing is well-formed, so show the format in the prompt, or teach it"
        if evidence.causes.main == "ill-formed"
        else "answers are read and are not right"
    )
    why = f"{none}: success surely under {bound:.1%}; {words}"
    found = (
        Ruling("no support", why, steps.zeros, decided_by="both")
        if read is None
        else Ruling("no support", why, steps.teach, SFT, decided_by="both")
    )
    return _with_form(found, evidence, steps)


def _form(evidence: Evidence) -> str:
    causes = evidence.causes
    count = f"{causes.ill_formed} of {causes.zeros} unpaid completions are ill-formed"
    return f"{count}, nearly all for one reason ({evidence.reason})"


def _with_form(found: Ruling, evidence: Evidence, steps: Steps) -> Ruling:
    """Put the form first where hardly anything is paid and nearly all the rest lacks one form."""
    if (
        not evidence.reason
        or evidence.rate >= OFTEN
        or found.verdict not in ("rare", "undecided", "no support")
    ):
        return found
    next_step = f"{steps.form}; if that was done: {found.next_step}"
    return replace(found, why=f"{found.why}; {_form(evidence)}", next_step=next_step)


def _some_success(evidence: Evidence, steps: Steps) -> Ruling:
    checks: tuple[Callable[[Evidence, Steps], Ruling | None], ...] = (
        _too_few,
        _saturated,
        _silent,
        _unsure_support,
        _no_groups,
        _unsure_signal,
    )
    for check in checks:
        found = check(evidence, steps)
        if found is not None:
            return found
    mixed = sequence.mean_of(evidence.signal)
    why = f"{evidence.rate:.1%} right, and {mixed:.0%} of groups of {evidence.group} would hold both outcomes"
    return Ruling("sweet spot", why, steps.ready, decided_by=_support(evidence)[1])


def _too_few(evidence: Evidence, steps: Steps) -> Ruling | None:
    more = FEW_PROMPTS - evidence.prompts
    if more <= 0:
        return None
    only = f"only {evidence.prompts} distinct prompt{'s' if evidence.prompts > 1 else ''}"
    why = f"{evidence.rate:.1%} right, but {only}: at least {more} more are needed to judge a task"
    return Ruling("undecided", why, steps.prompts, more=more)


def _saturated(evidence: Evidence, steps: Steps) -> Ruling | None:
    seen = evidence.training or evidence.low
    often = sequence.mean_of(seen) >= NEARLY_ALWAYS
    if not often or not _proven(sequence.log_capital_above(seen, SURELY_MOST)):
        return None
    why = f"{evidence.rate:.1%} right already: too few failures to learn from"
    return Ruling("saturated", why, steps.harder, decided_by="training" if evidence.training else "low")


def _silent(evidence: Evidence, steps: Steps) -> Ruling | None:
    """Rule where surely too few groups hold both outcomes although some completions are right."""
    if not evidence.group or not _proven(_log_silent(evidence.signal, evidence.group)):
        return None
    rate, words = evidence.rate, _signal_words(evidence)
    if rate >= OFTEN:
        why = f"{rate:.1%} right, but prompts always or never succeed ({words}): the mean trains nothing"
        return Ruling("saturated", why, steps.between, decided_by="training")
    low = sequence.mean_of(evidence.low)
    if rate <= HOPELESS and low >= PROMISING:
        why = f"{low:.1%} right at the low temperature, but {rate:.1%} at the training temperature"
        return Ruling("rare", why, steps.cooler, decided_by="training")
    return Ruling("rare", f"{rate:.1%} right; {words}", steps.rare, decided_by="training")


def _unsure_support(evidence: Evidence, steps: Steps) -> Ruling | None:
    if _support(evidence)[0]:
        return None
    low = sequence.log_capital_below(evidence.low, RARE)
    training = sequence.log_capital_below(evidence.training, RARE)
    seen = f"{evidence.rate:.2%} right on {evidence.prompts} distinct prompts"
    if _proven(_mean_capital(evidence, low, training)):
        why = f"{seen}: success exists, but surely under {RARE:.0%} of draws"
        return Ruling("rare", why, steps.rare, decided_by="low" if low >= training else "training")
    more = _more(evidence.low or evidence.training, _support_decided)
    why = f"{seen}: neither surely over {HOPELESS:.0%} nor surely under {RARE:.0%}"
    if more is None:
        return Ruling("undecided", why, steps.filter)
    return Ruling("undecided", f"{why}; about {more} more distinct prompts decide", steps.prompts, more=more)


def _no_groups(evidence: Evidence, steps: Steps) -> Ruling | None:
    if evidence.group:
        return None
    why = (
        f"{evidence.rate:.1%} right, but with one completion a prompt nobody can say whether a group would hold "
        f"both outcomes: {GROUP} completions of {FEW_PROMPTS} or more prompts decide"
    )
    return Ruling("undecided", why, steps.rollouts, more=FEW_PROMPTS)


def _unsure_signal(evidence: Evidence, steps: Steps) -> Ruling | None:
    if _proven(sequence.log_capital_above(evidence.signal, SILENT)):
        return None
    more = _more(evidence.signal, lambda seen: _signal_decided(seen, evidence.group))
    decide = f"; about {more} more prompts decide" if more else ""
    why = f"{evidence.rate:.1%} right, but {_signal_words(evidence)}: too few to tell{decide}"
    return Ruling("undecided", why, steps.rollouts, more=more)


def _proven(log_capital: float) -> bool:
    return log_capital >= -math.log(ALPHA)


def _support(evidence: Evidence) -> tuple[bool, Decider]:
    """Return whether success is surely over 1%, and which temperature showed it."""
    low = sequence.log_capital_above(evidence.low, HOPELESS)
    training = sequence.log_capital_above(evidence.training, HOPELESS)
    shown: Decider = "training" if training >= low else "low"
    return _proven(
        _mean_capital(evidence, low, training)
    ), shown if evidence.decide_by == "both" else evidence.decide_by


def _mean_capital(evidence: Evidence, low: float, training: float) -> float:
    """Return the log of the mean capital; of the one there is when one temperature decides or was sampled alone."""
    if not evidence.low or (evidence.decide_by == "training" and evidence.training):
        return training
    if not evidence.training or evidence.decide_by == "low":
        return low
    more, less = max(low, training), min(low, training)
    return more + math.log1p(math.exp(less - more)) - math.log(2)


def _log_silent(signal: Observations, group: int) -> float:
    # A smaller group holds both outcomes more seldom, at least in proportion to its size.
    return sequence.log_capital_below(signal, SPEAKING * group / GROUP)


def _support_decided(seen: Observations) -> bool:
    above = sequence.log_capital_above(seen, HOPELESS)
    return _proven(max(above, sequence.log_capital_below(seen, RARE)))


def _signal_decided(seen: Observations, group: int) -> bool:
    return _proven(max(sequence.log_capital_above(seen, SILENT), _log_silent(seen, group)))


def _signal_words(evidence: Evidence) -> str:
    prompts = int(sum(evidence.signal.values()))
    return f"{evidence.mixed} of {prompts} prompts gave both outcomes among {evidence.group}"


def _more(seen: Observations, decided: Callable[[Observations], bool]) -> int | None:
    """Return how many more prompts decide if the shares seen so far go on; None when 32 times as many do not."""
    now = sum(seen.values())
    for times in MORE:
        if decided({share: number * times for share, number in seen.items()}):
            return math.ceil(now * (times - 1))
    return None
