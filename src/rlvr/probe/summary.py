"""Builds the probe's record from completions, their scores and the verdict. Pure."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rlvr.probe import estimate, sequence
from rlvr.probe.estimate import Judged, Tally
from rlvr.probe.evidence import GROUP, Facts
from rlvr.probe.verdict import judge
from rlvr.records.probe import Cause, Example, Informative, ProbeRecord, Rate, Success
from rlvr.records.samples import Sample, ScoredSample

GROUPS = (4, 8, 16)
PASS_AT = (1, 2, 4, 8, 16, 32, 64)
EXAMPLES = 5
ZEROS = 10
"""Unpaid completions shown where nothing succeeded, since that many are read before anybody is sent to SFT."""
SHOWN_CHARACTERS = 4000
WORTH_A_GROUP = 0.20
"""Share of groups with a signal below which a larger group is advised."""
REFERENCES = (
    "answer",
    "reference",
    "solution",
    "target",
    "gold",
    "expected",
    "label",
    "final_answer",
    "tests",
)


def build_record(
    samples: Sequence[Sample],
    scores: Iterable[ScoredSample],
    facts: Facts,
    *,
    prompt_tokens: Mapping[str, int] | None = None,
    cap: int = -1,
    duplicates: int = 0,
    remarks: Sequence[str] = (),
    seed: int = 0,
    stamp: Mapping[str, Any] | None = None,
) -> ProbeRecord:
    """Return the record.

    Args:
        samples: Completions.
        scores: What the reward said of them.
        facts: What the samples do not say themselves.
        prompt_tokens: Row hash to prompt length, tokens.
        cap: ``max_completion_length`` of the sampling, tokens.
        duplicates: Rows left out because their prompt stands elsewhere.
        remarks: Facts worth knowing.
        seed: Which examples are shown.
        stamp: Time, version and fingerprints.
    """
    judged = estimate.join(samples, scores)
    ruling, evidence, tallies = judge(judged, facts)
    informative = {str(size): _informative(tallies, size) for size in GROUPS}
    lengths = estimate.lengths(judged, prompt_tokens or {}, cap)
    return ProbeRecord(
        **(stamp or {}),
        passed=ruling.verdict == "sweet spot",
        why=f"{ruling.verdict}: {ruling.why}",
        verdict=ruling.verdict,
        decided_by=ruling.decided_by,
        next_step=ruling.next_step,
        route=ruling.route,
        more_samples=ruling.more,
        success=_success(tallies, facts),
        informative_groups={size: one.share for size, one in informative.items()},
        informative=informative,
        group_size=_group_size(informative),
        pass_at=_pass_at(tallies),
        split=_is_split(tallies),
        prompts_with_success=_share_with_success(tallies),
        histogram=estimate.histogram(tallies),
        bands=dict(Counter(estimate.band(one.training) for one in tallies)),
        causes=evidence.causes,
        prompts=estimate.prompt_results(tallies),
        lengths=lengths,
        samples_spent=len(samples),
        zeros_read=facts.zeros_read,
        duplicates=duplicates,
        remarks=[*remarks, *_remarks(lengths.truncated_share, _failures(judged))],
        examples=_examples(judged, seed),
        method=sequence.METHOD,
    )


def _success(tallies: Sequence[Tally], facts: Facts) -> Success:
    return Success(
        low_temperature=_rate([one.low for one in tallies if one.low], facts.low_temperature),
        training_temperature=_rate(
            [one.training for one in tallies if one.training], facts.training_temperature
        ),
    )


def _rate(outcomes: Sequence[Sequence[bool]], temperature: float | None) -> Rate | None:
    if not outcomes:
        return None
    seen = sequence.count(estimate.share(one) for one in outcomes)
    return Rate(
        rate=sequence.mean_of(seen),
        low=sequence.lower_bound(seen),
        high=_upper(seen, len(outcomes)),
        temperature=temperature,
        prompts=len(outcomes),
        samples=sum(map(len, outcomes)),
        right=sum(map(sum, outcomes)),
        prompts_with_success=sum(any(one) for one in outcomes),
    )


def _upper(seen: sequence.Observations, prompts: int) -> float:
    high = sequence.upper_bound(seen)
    return min(high, sequence.zero_bound(prompts)) if sequence.mean_of(seen) == 0 else high


def _informative(tallies: Sequence[Tally], size: int) -> Informative:
    shares = [estimate.informative_share(sum(one.training), len(one.training), size) for one in tallies]
    known = [one for one in shares if one is not None]
    if not known:
        return Informative()
    seen = sequence.count(known)
    return Informative(
        share=sequence.mean_of(seen),
        low=sequence.lower_bound(seen),
        high=sequence.upper_bound(seen),
        prompts=len(known),
    )


def _group_size(informative: Mapping[str, Informative]) -> int | None:
    """Return the group to choose: 8, or a larger one where groups of 8 would seldom hold both outcomes."""
    base = informative[str(GROUP)].share
    if base is None or base == 0:
        return None
    if base >= WORTH_A_GROUP:
        return GROUP
    sixteen = informative["16"].share
    return 16 if sixteen is None or sixteen >= WORTH_A_GROUP else 32


def _pass_at(tallies: Sequence[Tally]) -> dict[str, float]:
    found = {}
    for k in PASS_AT:
        known = [
            one
            for one in (estimate.pass_at(sum(tally.training), len(tally.training), k) for tally in tallies)
            if one is not None
        ]
        if known:
            found[str(k)] = sum(known) / len(known)
    return found


def _is_split(tallies: Sequence[Tally]) -> bool:
    """Return whether nearly all prompts, some and some, always or never succeed."""
    several = [one.training for one in tallies if len(one.training) >= 4]
    always = sum(all(one) for one in several)
    never = sum(not any(one) for one in several)
    tenth = len(several) / 10
    return bool(several) and always >= tenth and never >= tenth and always + never >= 9 * tenth


def _share_with_success(tallies: Sequence[Tally]) -> float:
    asked = [one for one in tallies if one.low or one.training]
    return sum(one.successes > 0 for one in asked) / len(asked) if asked else 0.0


def _failures(judged: Sequence[Judged]) -> list[str]:
    return [score.why for _, score in judged if score.outcome == "infrastructure"]


def _remarks(truncated_share: float, failures: Sequence[str]) -> list[str]:
    remarks = []
    if truncated_share > 0.10:
        remarks.append(
            f"the length cap ended {truncated_share:.0%} of completions: raise sampling.max_completion_length"
        )
    if failures:
        reason = f"; the first: {failures[0][:300]}" if failures[0] else ""
        remarks.append(f"{len(failures)} completions could not be judged and count as nothing{reason}")
    return remarks


def _examples(judged: Sequence[Judged], seed: int) -> list[Example]:
    kinds: dict[Cause, list[Judged]] = {}
    for pair in judged:
        kinds.setdefault(estimate.cause_of(*pair), []).append(pair)
    most = EXAMPLES if "right" in kinds else ZEROS
    order: tuple[Cause, ...] = ("right", "wrong", "ill-formed", "truncated", "infrastructure")
    chosen = random.Random(seed)  # noqa: S311  # a choice of examples, not a secret
    return [_example(pair, kind) for kind in order for pair in _spread(kinds.get(kind, []), chosen, most)]


def _spread(pairs: list[Judged], chosen: random.Random, most: int) -> list[Judged]:
    """Return up to ``most``, from as many prompts as there are."""
    shuffled = chosen.sample(pairs, len(pairs))
    seen: Counter[str] = Counter()
    ranked: list[tuple[int, int, Judged]] = []
    for pair in shuffled:
        ranked.append((seen[pair[0].row_hash], len(ranked), pair))
        seen[pair[0].row_hash] += 1
    return [pair for _, _, pair in sorted(ranked, key=lambda one: one[:2])[:most]]


def _example(pair: Judged, cause: Cause) -> Example:
    sample, score = pair
    text = sample.text
    return Example(
        row=sample.row,
        prompt=sample.prompt,
        completion=text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + " […]",
        reference=reference_of(sample.columns),
        temperature=sample.temperature if _is_stated(sample) else None,
        score=score,
        cause=cause,
    )


def _is_stated(sample: Sample) -> bool:
    return sample.source != "import" or "temperature" in sample.columns


def reference_of(columns: Mapping[str, Any]) -> str:
    """Return the row's reference as text: the first column with a usual name, or an empty string."""
    name = next((name for name in REFERENCES if columns.get(name) is not None), None)
    return "" if name is None else str(columns[name])[:SHOWN_CHARACTERS]
