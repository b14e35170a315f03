"""A reader that is a program. It exists for the demo alone; its attestation says so, and ``train`` refuses it.

It never sees the reward: the caller gives it a judge of its own, so its agreement is not a tautology.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from rlvr.inspection.attestation import attest
from rlvr.inspection.folder import InspectionFolder, LabelBook
from rlvr.inspection.select import DEFAULT_COUNT, LEAST_READINGS, require_enough
from rlvr.records.base import Fingerprints
from rlvr.records.inspection import SIMULATED_READER, Attestation, Verdict
from rlvr.records.samples import Sample, ScoredSample
from rlvr.workspace import now


def simulated_reader(
    folder: InspectionFolder,
    samples: Sequence[Sample],
    scores: Sequence[ScoredSample],
    fingerprints: Fingerprints,
    judge: Callable[[Sample], bool],
    *,
    count: int = DEFAULT_COUNT,
    seed: int = 0,
    rows: Iterable[str] = (),
    version: str = "",
) -> Attestation:
    """Draw samples, let ``judge`` label them, and write an attestation that is marked as simulated.

    Args:
        folder: Where selection, labels and attestation are written.
        samples: The pool.
        scores: What the reward says of it.
        fingerprints: Of what pool and scores were made from.
        judge: True for a completion that a person would pass; must not be the reward itself.
        count: Samples to draw.
        seed: Of the draw.
        rows: Hashes of the training rows.
        version: Version of rlvr.

    Raises:
        DataError: ``inspect.too-few-samples``.
    """
    require_enough(samples, scores, LEAST_READINGS)
    folder.start_over()
    selection = folder.draw(samples, scores, count, seed, reason="first", made_from=fingerprints, rows=rows)
    folder.keep_scores(scores, fingerprints.reward)
    by_id = {sample.completion_id: sample for sample in samples}
    paid = {score.completion_id: score.outcome == "right" for score in scores}
    book = LabelBook(folder)
    for identifier in selection.completion_ids:
        verdict: Verdict = "pass" if judge(by_id[identifier]) else "fail"
        book.judge(
            SIMULATED_READER,
            by_id[identifier],
            verdict,
            reward=fingerprints.reward,
            accepted=paid[identifier],
        )
    attestation = attest(
        book.labels,
        samples,
        scores,
        fingerprints.model_copy(update={"labels": book.fingerprint}),
        SIMULATED_READER,
        simulated=True,
        drawn=selection.completion_ids,
        made_at=now(),
        version=version,
    )
    folder.write_attestation(attestation)
    return attestation
