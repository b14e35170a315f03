"""Error rates of the probe's verdict, by simulation: `python benchmarks/probe.py --write` (about a minute, one core).

Every simulated model has its own success on every prompt, spread unevenly: beta-distributed around a mean, or held by
a few prompts alone. The probe's own sequence and rule judge it under the default budget: a scan of up to 400 prompts
at the low temperature with a look after every prompt from the 32nd, then 8 rollouts of 64 prompts. Both temperatures
are given the same success, which is the hardest case for telling them apart from luck.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy
from numpy.typing import NDArray

from rlvr.probe import estimate, sequence
from rlvr.probe.evidence import GROUP, Evidence, Facts
from rlvr.probe.verdict import HOPELESS, PROMISING, SILENT, SPEAKING, rule
from rlvr.records.probe import Causes

PROMPTS, ROLLOUT_PROMPTS, ROLLOUTS, LOOK_FROM = 400, 64, 8, 32
FIXED = PROMPTS * 64
FACTS = Facts(zeros_read=10, population=100_000)
Array = NDArray[numpy.float64]
Family = Callable[[numpy.random.Generator, Array, int], Array]


def beta(concentration: float) -> Family:
    """Success of each prompt from a beta distribution around the model's mean."""

    def draw(rng: numpy.random.Generator, mean: Array, prompts: int) -> Array:
        size = (len(mean), prompts)
        return rng.beta(mean[:, None] * concentration, (1 - mean[:, None]) * concentration, size)

    return draw


def equal(rng: numpy.random.Generator, mean: Array, prompts: int) -> Array:
    """The same success on every prompt."""
    del rng
    return numpy.repeat(mean[:, None], prompts, axis=1)


def holders(rate: float) -> Family:
    """A few prompts hold all success, each succeeding at ``rate``; the others never do."""

    def draw(rng: numpy.random.Generator, mean: Array, prompts: int) -> Array:
        return rate * (rng.random((len(mean), prompts)) < mean[:, None] / rate)

    return draw


FAMILIES: dict[str, Family] = {
    "equal on all prompts": equal,
    "beta, concentration 10": beta(10),
    "beta, concentration 1": beta(1),
    "beta, concentration 0.3": beta(0.3),
    "held by few prompts, each half right": holders(0.5),
    "held by few prompts, each 1 in 5": holders(0.2),
}


def signal_of(family: Family, mean: float, rng: numpy.random.Generator) -> float:
    """Share of groups of 8 with both outcomes, of a model of this family and mean."""
    shares = family(rng, numpy.array([mean]), 40_000)[0]
    return float((1 - shares**GROUP - (1 - shares) ** GROUP).mean())


@dataclass
class Outcome:
    """What became of one set of models."""

    verdicts: Counter[str]
    samples: list[int]

    def share(self, *names: str) -> float:
        """Share of models with one of these verdicts."""
        return sum(self.verdicts[name] for name in names) / self.verdicts.total()


def capital_table() -> Array:
    """Log capital against "at most 1%" of (prompts, successes) at the low temperature."""
    table = numpy.full((PROMPTS + 1, PROMPTS + 1), -numpy.inf)
    logs = sequence.log_factors([0.0, 1.0], HOPELESS, sequence.alternatives_above(HOPELESS))
    for prompts in range(1, PROMPTS + 1):
        right = numpy.arange(prompts + 1)
        totals = (prompts - right)[:, None] * logs[0] + right[:, None] * logs[1] + sequence.LOG_WEIGHTS
        table[prompts, : prompts + 1] = numpy.logaddexp.reduce(totals, axis=1)
    return table


def judge(shares: Array, rng: numpy.random.Generator, table: Array) -> Outcome:
    """Probe each model (a row of ``shares``) and rule."""
    scan = rng.random(shares.shape) < shares
    right = scan.cumsum(axis=1)
    looks = numpy.arange(1, PROMPTS + 1)
    stops = (table[looks, right] >= sequence.LOG_NEEDED_FROM_ONE) & (looks >= LOOK_FROM)
    stops |= (right == 0) & (looks >= sequence.prompts_for_zero_bound(HOPELESS))
    stops[:, -1] = True
    spent = stops.argmax(axis=1) + 1
    rolled = rng.binomial(ROLLOUTS, shares[:, :ROLLOUT_PROMPTS])
    outcome = Outcome(Counter(), [])
    for prompts, hits, row in zip(spent, right[numpy.arange(len(spent)), spent - 1], rolled, strict=True):
        evidence = evidence_of(int(prompts), int(hits), row)
        outcome.verdicts[rule(evidence, FACTS).verdict] += 1
        outcome.samples.append(int(prompts) + ROLLOUTS * ROLLOUT_PROMPTS)
    return outcome


def evidence_of(prompts: int, hits: int, row: NDArray[numpy.int64]) -> Evidence:
    """What the probe would hand to the rule."""
    rolled = Counter(row.tolist())
    signal = Counter[float]()
    for right, times in rolled.items():
        signal[estimate.informative_share(right, ROLLOUTS, GROUP) or 0.0] += times
    zeros = prompts - hits + ROLLOUTS * ROLLOUT_PROMPTS - int(row.sum())
    return Evidence(
        low={share: times for share, times in ((1.0, hits), (0.0, prompts - hits)) if times},
        training={right / ROLLOUTS: times for right, times in rolled.items()},
        signal=signal,
        group=GROUP,
        prompts=max(prompts, ROLLOUT_PROMPTS),
        fewest=1,
        causes=Causes(zeros=zeros, wrong=zeros, main="wrong" if zeros else None),
        right=hits + int(row.sum()),
    )


def hopeless(rng: numpy.random.Generator, models: int) -> Array:
    """Means of models that must not be let through: half at the edge, half anywhere under it."""
    means = HOPELESS * rng.random(models)
    means[: models // 2] = HOPELESS
    return means


def promising(family: Family, rng: numpy.random.Generator, models: int) -> Array:
    """Means of models that must not be stopped: half at the lower edge, half anywhere up to 90%."""
    grid = [mean for mean in numpy.arange(PROMISING, 0.9, 0.005) if is_promising(family, mean, rng)]
    means = rng.choice(grid, models)
    means[: models // 2] = grid[0]
    return means


def is_promising(family: Family, mean: float, rng: numpy.random.Generator) -> bool:
    """Whether this family reaches the mean, with a signal in enough groups."""
    reached = float(family(rng, numpy.array([mean]), 40_000).mean())
    return reached > 0.95 * mean and signal_of(family, mean, rng) >= SPEAKING


def split(rng: numpy.random.Generator, models: int, prompts: int) -> Array:
    """Prompts that always or never succeed, with at most 0.5% in between: the mean trains nothing."""
    always = rng.uniform(0.05, 0.9, models)[:, None]
    shares = (rng.random((models, prompts)) < always).astype(float)
    shares[rng.random((models, prompts)) < SILENT] = 0.5
    return shares


def main() -> int:
    """Run every family and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=10_000, help="models of each kind and family")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/probe.md")
    options = parser.parse_args()
    start = time.time()
    text, worst = report(options.models, options.seed)
    text += f"\n{time.time() - start:.0f} s on one core, numpy {numpy.__version__}.\n"
    print(text)
    if options.write:
        path = Path(__file__).parent / "results" / "probe.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return 0 if worst <= 0.05 else 1


def report(models: int, seed: int) -> tuple[str, float]:
    """Return the page and the largest error."""
    rng = numpy.random.default_rng(seed)
    table = capital_table()
    lines, worst, spent = [], 0.0, []
    for name, family in FAMILIES.items():
        print(name, file=sys.stderr)
        bad = judge(family(rng, hopeless(rng, models), PROMPTS), rng, table)
        good = judge(family(rng, promising(family, rng, models), PROMPTS), rng, table)
        let, stopped, open_ = (
            bad.share("sweet spot"),
            good.share("no support", "rare", "saturated"),
            good.share("undecided"),
        )
        worst = max(worst, let, stopped + open_)
        spent += bad.samples + good.samples
        lines.append(
            f"| {name} | {let:.2%} | {stopped:.2%} | {stopped + open_:.2%} "
            f"| {numpy.median(bad.samples):.0f} | {numpy.median(good.samples):.0f} |"
        )
    idle = judge(split(rng, models, PROMPTS), rng, table)
    worst = max(worst, idle.share("sweet spot"))
    lines.append(
        f"| always or never right (mean 5 to 90%) | {idle.share('sweet spot'):.2%} | | "
        f"| {numpy.median(idle.samples):.0f} | |"
    )
    return page(models, seed, lines, spent), worst


def page(models: int, seed: int, lines: list[str], spent: list[int]) -> str:
    """Return the results as Markdown."""
    median = numpy.median(spent)
    head = f"""# The probe's verdict: errors and samples

`python benchmarks/probe.py --models {models} --seed {seed} --write`

{models} hopeless and {models} promising models a family, half of them exactly at the edge of the zone of
indifference (success {HOPELESS:.0%} to {PROMISING:.0%}, groups of {GROUP} with both outcomes {SILENT:.1%} to
{SPEAKING:.0%}). *Let through*: a hopeless model got `sweet spot`. *Stopped*: a promising one got `no support`, `rare`
or `saturated`. `undecided` refuses and asks for more samples: the next column counts it as a stop.

| success is | let through wrongly | stopped wrongly | stopped or undecided | median samples, hopeless | \
median samples, promising |
|---|---|---|---|---|---|
"""
    tail = f"""

Median over all models: {median:.0f} completions; a fixed 64 rollouts of each of the {PROMPTS} prompts are {FIXED}
({FIXED / median:.0f} times as many).
"""
    return head + "\n".join(lines) + tail


if __name__ == "__main__":
    sys.exit(main())
