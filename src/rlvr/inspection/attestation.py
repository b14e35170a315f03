"""From labels to an attestation, the rules of passing, and how an attestation renews itself. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from rlvr.inspection.agreement import Table, interval, kappa, tabulate, upper_bound
from rlvr.inspection.labels import Judgement, Labels
from rlvr.inspection.pace import pace
from rlvr.inspection.select import (
    FRESH_AFTER_MEND,
    JUDGEABLE,
    LEAST_A_SIDE,
    LEAST_READINGS,
    count_sides,
)
from rlvr.records.base import Fingerprints
from rlvr.records.inspection import (
    SIMULATED_READER,
    Attestation,
    FreshReadings,
    InterReader,
    Pace,
    Renewal,
    Reopening,
    Side,
    Standing,
)
from rlvr.records.samples import Sample, ScoredSample

MOST_REVERSALS = 2
"""Changes of mind that one reader may make; more need a second reader."""
SECOND_READER_LEAST = 20
"""Samples that a second reader reads, the reversed ones among them."""


def attest(
    labels: Labels,
    samples: Sequence[Sample],
    scores: Sequence[ScoredSample],
    fingerprints: Fingerprints,
    reader: str = "",
    simulated: bool = False,
    *,
    drawn: Sequence[str] = (),
    exist: tuple[int, int] | None = None,
    made_at: str = "",
    version: str = "",
    source: str = "probe",
    needed: int = LEAST_READINGS,
    renewals: Sequence[Renewal] = (),
    reopenings: Sequence[Reopening] = (),
) -> Attestation:
    """Sum up what was read.

    Args:
        labels: The fold over all label events.
        samples: The pool that samples were drawn from, the read ones among them.
        scores: What the current reward says of the pool.
        fingerprints: Of what the scores and samples were made from.
        reader: Who to name where nobody read yet; otherwise the first reader stands.
        simulated: A program read: good for the demo alone.
        drawn: Completions drawn for reading, for counting the unread.
        exist: Distinct paid and unpaid samples in the pool; counted when not given.
        made_at: UTC time, ISO 8601.
        version: Version of rlvr.
        source: ``probe`` or a run's name.
        needed: Readings that the rules ask for: 50, or 20 for a run's own completions.
        renewals: Earlier renewals, kept on record.
        reopenings: Times that a run closed the gate again.

    Returns:
        The attestation; ``passed``, ``why`` and ``refusals`` follow from the rules of passing.
    """
    simulated = simulated or SIMULATED_READER in labels.readers
    by_id = {score.completion_id: score for score in scores}
    standing = _standing(labels, by_id)
    table = tabulate((one.verdict == "pass", one.outcome == "right") for one in standing)
    within = interval(table.agreed, table.total)
    agreement = kappa(table)
    paid, unpaid = exist or count_sides(samples, scores)
    fields: dict[str, Any] = {
        "made_at": made_at,
        "version": version,
        "made_from": fingerprints,
        "source": source,
        "reader": labels.readers[0] if labels.readers else reader,
        "readers": labels.readers or [reader],
        "simulated": simulated,
        "read": table.total,
        "needed": needed,
        "agreement": table.agreed / table.total if table.total else None,
        "agreement_low": within[0] if within else None,
        "agreement_high": within[1] if within else None,
        "kappa": agreement.value,
        "kappa_note": agreement.note,
        "table": table._asdict(),
        "disagreement_upper": upper_bound(table.total - table.agreed, table.total),
        "false_positives": _side(table.fail_right, table.pass_right, paid),
        "false_negatives": _side(table.pass_unpaid, table.fail_unpaid, unpaid),
        "open_disagreements": open_disagreements(labels, by_id),
        "unsure": labels.unsure(),
        "unread": _unread(labels, drawn),
        "fresh": fresh_readings(labels, standing),
        "mends": labels.epoch,
        "reversals": labels.reversals(),
        "inter_reader": inter_reader(labels),
        "pace": pace([]) if simulated else reading_pace(labels),
        "standing": standing,
        "renewals": list(renewals),
        "reopened": still_reopened(labels, reopenings),
        "read_at_step": max(
            (one.step for one in samples if one.completion_id in labels.standing()), default=-1
        ),
    }
    return judged(Attestation(refusals=[], **fields), labels)


def judged(found: Attestation, labels: Labels) -> Attestation:
    """Return the attestation with its verdict: the rules that do not hold, passed or not, and why."""
    refusals = rules(found, labels)
    why = refusals[0] if refusals else _praise(found)
    return found.model_copy(update={"refusals": refusals, "passed": not refusals, "why": why})


def _standing(labels: Labels, by_id: Mapping[str, ScoredSample]) -> list[Standing]:
    found = []
    for identifier, judgement in labels.standing().items():
        score = by_id.get(identifier)
        if score is None or score.outcome not in JUDGEABLE or judgement.verdict is None:
            continue
        found.append(
            Standing(
                completion_id=identifier,
                verdict=judgement.verdict,
                reader=judgement.reader,
                outcome=score.outcome,
                total=score.total,
            )
        )
    return found


def _side(errors: int, agreed: int, exist: int) -> Side:
    read = errors + agreed
    judged = read >= LEAST_A_SIDE
    return Side(
        read=read,
        exist=max(exist, read),
        errors=errors,
        upper=upper_bound(errors, read) if judged else None,
        judged=judged,
    )


def _unread(labels: Labels, drawn: Sequence[str]) -> int:
    met = {one for held in labels.by_reader.values() for one, found in held.items() if found.readings}
    return sum(identifier not in met for identifier in drawn)


def open_disagreements(labels: Labels, by_id: Mapping[str, ScoredSample]) -> list[str]:
    """Return the completions where any reader's decided judgement and the current reward differ."""
    return list(
        dict.fromkeys(
            one.completion_id for one in labels.decided() if _differs(one, by_id.get(one.completion_id))
        )
    )


def _differs(judgement: Judgement, score: ScoredSample | None) -> bool:
    if score is None or score.outcome not in JUDGEABLE:
        return False
    return (judgement.verdict == "pass") != (score.outcome == "right")


def fresh_readings(labels: Labels, standing: Iterable[Standing]) -> FreshReadings | None:
    """Return what was first read after the latest mend; None when the reward was never mended."""
    if labels.epoch == 0:
        return None
    fresh = [one for one in standing if labels.first_epoch(one.completion_id) == labels.epoch]
    errors = sum((one.verdict == "pass") != (one.outcome == "right") for one in fresh)
    return FreshReadings(
        needed=FRESH_AFTER_MEND, read=len(fresh), errors=errors, upper=upper_bound(errors, len(fresh))
    )


def inter_reader(labels: Labels) -> InterReader | None:
    """Return the agreement of the first two readers on what both decided; None when one person read."""
    if len(labels.readers) < 2:
        return None
    first, second = labels.readers[:2]
    both = [
        (one.verdict == "pass", other.verdict == "pass")
        for identifier, one in labels.by_reader[first].items()
        if one.decided and (other := labels.of(second, identifier)) is not None and other.decided
    ]
    table: Table = tabulate(both)
    return InterReader(
        readers=(first, second),
        both_read=table.total,
        agreed=table.agreed,
        agreement=table.agreed / table.total if table.total else None,
        kappa=kappa(table).value,
    )


def reading_pace(labels: Labels) -> Pace:
    """Return the pace of all blind readings of all readers; the slowest reader does not excuse the fastest."""
    paces = [
        pace((seconds, one.characters) for one in held.values() for seconds in one.seconds)
        for held in labels.by_reader.values()
        if any(one.seconds for one in held.values())
    ]
    return min(paces, key=lambda one: one.ratio) if paces else pace([])


def still_reopened(labels: Labels, reopenings: Iterable[Reopening]) -> str:
    """Return why a run closed the gate, or an empty string when twenty fresh readings have answered it."""
    for one in reopenings:
        since = sum(held.at > one.at for held in labels.standing().values())
        if not one.answered_at and since < FRESH_AFTER_MEND:
            return (
                f"reopened by run {one.run}: {one.symptom}"
                + (f" ({one.evidence})" if one.evidence else "")
                + f"; read {FRESH_AFTER_MEND} of its completions: `rlvr inspect --run {one.run}`"
            )
    return ""


def rules(found: Attestation, labels: Labels) -> list[str]:
    """Return each rule of passing that does not hold, the most useful to hear first."""
    return [
        *_enough_read(found),
        *_nothing_open(found),
        *_both_sides(found),
        *_fresh_enough(found),
        *([found.reopened] if found.reopened else []),
        *_second_reader(labels),
        *_readable_pace(found.pace),
    ]


def _enough_read(found: Attestation) -> Iterable[str]:
    if found.read < found.needed:
        yield f"{found.read} of at least {found.needed} samples read"


def _nothing_open(found: Attestation) -> Iterable[str]:
    count = len(found.open_disagreements)
    if count:
        yield (
            f"{count} open {_plural(count, 'disagreement')}: mend the reward and rescore, "
            "or change your own judgement with a reason"
        )
    waiting = len(found.unsure)
    if waiting:
        yield f"{waiting} {_plural(waiting, 'sample')} judged unsure: read again, or let a second reader decide"


def _both_sides(found: Attestation) -> Iterable[str]:
    if found.needed < LEAST_READINGS:
        return  # a run's own completions come as they are
    for name, side in (("paid", found.false_positives), ("unpaid", found.false_negatives)):
        reachable = min(LEAST_A_SIDE, side.exist)
        if found.read >= found.needed and side.read < reachable:
            yield f"{side.read} {name} samples read, at least {reachable} exist: draw more with `rlvr inspect`"


def _fresh_enough(found: Attestation) -> Iterable[str]:
    fresh = found.fresh
    if fresh is not None and fresh.read < fresh.needed:
        yield f"{fresh.read} of at least {fresh.needed} fresh samples read since the reward was mended"


def _second_reader(labels: Labels) -> Iterable[str]:
    for reader, held in labels.by_reader.items():
        turned = [identifier for identifier, one in held.items() if one.reversals]
        count = sum(one.reversals for one in held.values())
        others = (other for other in labels.readers if other != reader)
        if count > MOST_REVERSALS and not any(_read_enough(labels, other, turned) for other in others):
            yield (
                f"{reader} changed {count} judgements, more than {MOST_REVERSALS}: a second person reads at least "
                f"{SECOND_READER_LEAST} samples, those among them: `rlvr inspect --reader NAME`"
            )


def _read_enough(labels: Labels, reader: str, reversed_ids: Collection[str]) -> bool:
    decided = {identifier for identifier, one in labels.by_reader[reader].items() if one.decided}
    return len(decided) >= SECOND_READER_LEAST and decided.issuperset(reversed_ids)


def _readable_pace(found: Pace) -> Iterable[str]:
    if not found.possible:
        yield (
            f"the median reading took {found.median_seconds:.1f} s where nobody needs less than "
            f"{found.floor_seconds:.1f} s: nobody read; read again with `rlvr inspect --start-over`"
        )


def _praise(found: Attestation) -> str:
    bound = f", disagreement under {found.disagreement_upper:.1%} at 95%" if found.disagreement_upper else ""
    return f"{found.reader} read {found.read} samples and agrees with the reward on all of them{bound}"


def _plural(count: int, word: str) -> str:
    return word if count == 1 else f"{word}s"


class Refusal(NamedTuple):
    """Why an attestation does not renew itself."""

    why: str
    changed: list[str]


def changed_scores(old: Sequence[ScoredSample], new: Sequence[ScoredSample]) -> list[str]:
    """Return the completions of both whose outcome, total or component score differs."""
    before = {score.completion_id: _compared(score) for score in old}
    return [
        score.completion_id
        for score in new
        if score.completion_id in before and before[score.completion_id] != _compared(score)
    ]


def _compared(score: ScoredSample) -> tuple[Any, ...]:
    total = None if score.total is None else round(score.total, 9)
    parts = {name: None if value is None else round(value, 9) for name, value in score.components.items()}
    return score.outcome, total, tuple(sorted(parts.items()))


def renew(
    attestation: Attestation,
    labels: Labels,
    old: Sequence[ScoredSample],
    new: Sequence[ScoredSample],
    *,
    reward: str,
    at: str,
) -> Attestation | Refusal:
    """Carry an attestation over to a changed reward that judges exactly as before.

    Args:
        attestation: Of the reward before the change.
        labels: As they stand.
        old: Scores of the reward before.
        new: Scores of the same completions under the reward now.
        reward: Fingerprint of the reward now.
        at: UTC time, ISO 8601.

    Returns:
        The attestation under the new fingerprint, with the renewal on record; or why it stays closed.
    """
    changed = changed_scores(old, new)
    unscored = labels.standing().keys() - {score.completion_id for score in new}
    if unscored:
        return Refusal(f"{len(unscored)} labelled completions were not scored again", sorted(unscored))
    if changed:
        labelled = sum(identifier in labels.standing() for identifier in changed)
        return Refusal(
            f"the reward changed the scores of {len(changed)} of {len(new)} completions, {labelled} of them read: "
            f"at least {FRESH_AFTER_MEND} fresh samples must be read",
            changed,
        )
    if not attestation.passed:
        return Refusal(f"it had not passed before: {attestation.why}", [])
    renewal = Renewal(
        at=at, reward_before=attestation.made_from.reward, reward_after=reward, compared=len(new)
    )
    made_from = attestation.made_from.model_copy(update={"reward": reward})
    return attestation.model_copy(
        update={"made_from": made_from, "renewals": [*attestation.renewals, renewal]}
    )
