"""What a reading leaves behind: the samples drawn, every keypress as an event, and the attestation."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from rlvr.records.base import Frozen, Record
from rlvr.records.samples import ScoredSample

Verdict = Literal["pass", "fail", "unsure"]
"""A reader's judgement of one completion; ``unsure`` asks for a second reading."""

SIMULATED_READER = "simulated reader (a program, for the demo alone)"
"""Name under which the demo's program reads; labels under it never make an attestation that counts elsewhere."""

EventKind = Literal["judged", "noted", "changed", "rescored"]


class LabelEvent(Frozen):
    """One thing that happened, appended and never edited; the state is a fold over all of them.

    Attributes:
        number: Position in the file, from 0.
        at: UTC time, ISO 8601.
        kind: ``judged`` (blind), ``noted``, ``changed`` (a change of mind after the reveal, with a reason) or
            ``rescored`` (the reward was mended and every stored completion was scored again).
        reader: Who pressed the key; empty for ``rescored``.
        completion_id: The sample; empty for ``rescored``.
        verdict: The judgement, for ``judged`` and ``changed``.
        seconds: From the sample being shown to the key, for ``judged``.
        characters: Length of the completion, for ``judged``.
        text: The note, or the reason for a change.
        reward: Fingerprint of the reward closure at that moment.
        accepted: What the reward said when its verdict was revealed.
        changed: For ``rescored``: completions whose outcome or score came out differently.
        chain: Hash over the event and the chain before it, so that an edited line is noticed.
    """

    number: int
    at: str
    kind: EventKind
    reader: str = ""
    completion_id: str = ""
    verdict: Verdict | None = None
    seconds: float = 0.0
    characters: int = 0
    text: str = ""
    reward: str = ""
    accepted: bool | None = None
    changed: list[str] = Field(default_factory=list)
    chain: str = ""


class Draw(Frozen):
    """One round of samples drawn for reading.

    Attributes:
        seed: Seed of the draw.
        reason: ``first``, ``mended`` (fresh ones after a mend) or ``more``.
        reward: Fingerprint of the reward closure at the draw.
        completion_ids: In reading order.
    """

    seed: int
    reason: Literal["first", "mended", "more"]
    reward: str = ""
    completion_ids: list[str]


class Selection(Record):
    """The samples drawn so far, round by round; a later round never repeats an earlier one.

    Attributes:
        source: ``probe``, or the name of the run whose completions were drawn.
        draws: The rounds.
        rows_hash: Hash of the list in ``rows.json``, so that an edit of it is noticed; empty where an earlier
            version wrote the selection, and then not checked.
    """

    source: str = "probe"
    draws: list[Draw] = Field(default_factory=list)
    rows_hash: str = ""

    @property
    def completion_ids(self) -> list[str]:
        """All samples in reading order."""
        return [identifier for draw in self.draws for identifier in draw.completion_ids]


class Side(Frozen):
    """One kind of error among the samples that could show it.

    Attributes:
        read: Samples of this side with a decided reading.
        exist: Samples of this side among the distinct ones in the pool.
        errors: Readings that contradict the reward.
        upper: Exact one-sided 95% bound on the share of errors; None when the side is not judged.
        judged: Whether at least 15 were read.
    """

    read: int
    exist: int
    errors: int
    upper: float | None
    judged: bool


class FreshReadings(Frozen):
    """Samples first read after the latest mend of the reward."""

    needed: int
    read: int
    errors: int
    upper: float | None


class InterReader(Frozen):
    """Agreement of two people on the samples that both decided."""

    readers: tuple[str, str]
    both_read: int
    agreed: int
    agreement: float | None
    kappa: float | None


class Pace(Frozen):
    """How fast the samples were read.

    Attributes:
        median_seconds: Median time from a sample being shown to its key.
        floor_seconds: Median of the least time that a person needs for those samples.
        ratio: Median of time over least time; under 1 is refused.
        possible: Whether the pace is one that a person can read at.
    """

    median_seconds: float
    floor_seconds: float
    ratio: float
    possible: bool


class Standing(Frozen):
    """One label as it stands, with what the reward says of the same completion.

    The stored score is what a later reward is compared with, before the attestation renews itself.
    """

    completion_id: str
    verdict: Verdict
    reader: str
    outcome: str
    total: float | None


class Reopening(Frozen):
    """A run closed the gate again, because a symptom names the reward; fresh readings open it.

    Attributes:
        at: UTC time, ISO 8601.
        run: The run.
        step: Training step of the symptom; -1 when it holds for the whole run.
        symptom: Its name.
        evidence: What was seen, in a sentence.
        answered_at: When fresh readings answered it; empty while open.
    """

    at: str
    run: str
    step: int = -1
    symptom: str
    evidence: str = ""
    answered_at: str = ""


class KeptScores(Record):
    """The scores that the labels were last compared with, and the reward that gave them.

    The inspection keeps its own copy, so that a mend is noticed whoever scored the completions again.
    """

    reward: str
    scores: list[ScoredSample]


class Renewal(Frozen):
    """A change of the reward's text that left every label and every stored score as it was."""

    at: str
    reward_before: str
    reward_after: str
    compared: int


class Attestation(Record):
    """What a person's reading says of the reward, and of exactly which reward, data, model and sampling.

    Attributes:
        source: ``probe``, or the name of a run whose own completions were read.
        reader: The first reader.
        readers: Everybody who read, the first one first.
        simulated: A program read, not a person; good for the demo alone.
        refusals: Each rule of passing that does not hold, as a sentence; empty when passed.
        read: Decided readings that stand under the current reward.
        needed: Readings that the rules ask for.
        agreement: Share of standing labels on the reward's side.
        agreement_low: Lower end of the exact two-sided 95% interval.
        agreement_high: Upper end.
        kappa: Cohen's kappa; None when undefined.
        kappa_note: Why kappa is undefined, or empty.
        table: Counts ``pass_right``, ``pass_unpaid``, ``fail_right``, ``fail_unpaid``.
        disagreement_upper: Exact one-sided 95% bound on the share of disagreement in the drawn sample.
        false_positives: Paid by the reward, failed by the reader.
        false_negatives: Not paid by the reward, passed by the reader.
        open_disagreements: Completions where a reader and the reward still differ.
        unsure: Completions that wait for a second reading.
        unread: Drawn samples without any reading.
        fresh: Readings after the latest mend; None when the reward was never mended.
        mends: Rescores that changed a score.
        reversals: Changes of mind between pass and fail.
        inter_reader: Agreement of the first two readers; None when one person read.
        pace: See :class:`Pace`.
        standing: The labels, each with the score stored beside it.
        renewals: Changes of the reward that renewed this attestation by themselves.
        reopened: Why a run closed the gate again; empty when none did, or fresh readings answered it.
        read_at_step: For a run: the training step of the newest completion read.
    """

    source: str = "probe"
    reader: str
    readers: list[str]
    simulated: bool = False
    refusals: list[str]
    read: int
    needed: int
    agreement: float | None
    agreement_low: float | None
    agreement_high: float | None
    kappa: float | None
    kappa_note: str = ""
    table: dict[str, int]
    disagreement_upper: float | None
    false_positives: Side
    false_negatives: Side
    open_disagreements: list[str]
    unsure: list[str]
    unread: int
    fresh: FreshReadings | None = None
    mends: int = 0
    reversals: int = 0
    inter_reader: InterReader | None = None
    pace: Pace
    standing: list[Standing]
    renewals: list[Renewal] = Field(default_factory=list)
    reopened: str = ""
    read_at_step: int = -1
