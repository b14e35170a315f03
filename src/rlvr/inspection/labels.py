"""Labels as an append-only list of events, and the state that folds out of them.

Nothing is edited: a change of mind is a further event. So a kill at any moment loses at most a line that was
never acknowledged, and what stands can always be traced to the keys that were pressed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rlvr.errors import DataError
from rlvr.records.inspection import EventKind, LabelEvent, Verdict
from rlvr.workspace import content_hash


@dataclass
class Judgement:
    """What one reader holds of one completion.

    Attributes:
        completion_id: The sample.
        reader: Who.
        verdict: As it stands now; None while only a note exists.
        readings: Blind readings: one, or two after ``unsure``.
        epoch: Mends of the reward before the first decided reading; -1 while undecided.
        seconds: Time of each blind reading.
        characters: Length of the completion.
        at: UTC time of the first decided reading, ISO 8601.
        reversals: Changes between pass and fail.
        reasons: Why each change was made.
        note: The latest note.
        revision: Events on this sample by this reader; a tab that holds an older one is out of date.
    """

    completion_id: str
    reader: str
    verdict: Verdict | None = None
    readings: int = 0
    epoch: int = -1
    seconds: list[float] = field(default_factory=list)
    characters: int = 0
    at: str = ""
    reversals: int = 0
    reasons: list[str] = field(default_factory=list)
    note: str = ""
    revision: int = 0

    @property
    def decided(self) -> bool:
        """Whether it says pass or fail."""
        return self.verdict in ("pass", "fail")


@dataclass
class Labels:
    """The fold over all events.

    Attributes:
        by_reader: Reader to completion to judgement; readers in the order they came.
        epoch: Mends of the reward so far that changed a score.
        mended: Completions whose score a mend changed, the latest mend last.
        events: How many events were folded.
    """

    by_reader: dict[str, dict[str, Judgement]] = field(default_factory=dict)
    epoch: int = 0
    mended: list[list[str]] = field(default_factory=list)
    events: int = 0

    @property
    def readers(self) -> list[str]:
        """Everybody who judged something, the first reader first."""
        return list(self.by_reader)

    def of(self, reader: str, completion_id: str) -> Judgement | None:
        """Return one reader's judgement of one completion, or None."""
        return self.by_reader.get(reader, {}).get(completion_id)

    def decided(self) -> list[Judgement]:
        """Every judgement that says pass or fail, of every reader."""
        return [one for held in self.by_reader.values() for one in held.values() if one.decided]

    def standing(self) -> dict[str, Judgement]:
        """Return the label of each completion: the first reader's, or a later one's where the first is unsure."""
        found: dict[str, Judgement] = {}
        for judgement in self.decided():
            found.setdefault(judgement.completion_id, judgement)
        return found

    def unsure(self) -> list[str]:
        """Completions that somebody called unsure and nobody has decided."""
        decided = self.standing()
        waiting = (
            one.completion_id
            for held in self.by_reader.values()
            for one in held.values()
            if one.verdict == "unsure"
        )
        return [identifier for identifier in dict.fromkeys(waiting) if identifier not in decided]

    def first_epoch(self, completion_id: str) -> int:
        """Return the epoch in which the completion was first decided by anybody; -1 when it never was."""
        epochs = [held[completion_id].epoch for held in self.by_reader.values() if completion_id in held]
        return min((epoch for epoch in epochs if epoch >= 0), default=-1)

    def reversed_ids(self) -> list[str]:
        """Completions on which a reader went from pass to fail or back."""
        turned = (
            one.completion_id for held in self.by_reader.values() for one in held.values() if one.reversals
        )
        return list(dict.fromkeys(turned))

    def reversals(self) -> int:
        """How often readers changed between pass and fail."""
        return sum(one.reversals for held in self.by_reader.values() for one in held.values())

    def apply(self, event: LabelEvent) -> None:
        """Take one further event into the state."""
        self.events += 1
        if event.kind == "rescored":
            if event.changed:
                self.epoch += 1
                self.mended.append(list(event.changed))
            return
        held = self.by_reader.setdefault(event.reader, {})
        judgement = held.setdefault(event.completion_id, Judgement(event.completion_id, event.reader))
        judgement.revision += 1
        if event.kind == "noted":
            judgement.note = event.text
        elif event.kind == "judged":
            self._judge(judgement, event)
        elif event.kind == "changed":
            _change(judgement, event)

    def _judge(self, judgement: Judgement, event: LabelEvent) -> None:
        judgement.readings += 1
        judgement.seconds.append(event.seconds)
        judgement.characters = event.characters
        judgement.verdict = event.verdict
        if judgement.decided and judgement.epoch < 0:
            judgement.epoch, judgement.at = self.epoch, event.at


def _change(judgement: Judgement, event: LabelEvent) -> None:
    if judgement.decided and event.verdict in ("pass", "fail") and event.verdict != judgement.verdict:
        judgement.reversals += 1
    judgement.verdict = event.verdict
    judgement.reasons.append(event.text)


def fold(events: Iterable[LabelEvent]) -> Labels:
    """Return the state after all events."""
    labels = Labels()
    for event in events:
        labels.apply(event)
    return labels


def next_event(before: Sequence[LabelEvent], *, at: str, kind: EventKind, **fields: Any) -> LabelEvent:
    """Return a further event with its number and its place in the chain of hashes."""
    event = LabelEvent(number=len(before), at=at, kind=kind, **fields)
    previous = before[-1].chain if before else ""
    return event.model_copy(update={"chain": _link(previous, event)})


def check_chain(events: Sequence[LabelEvent], *, where: str = "labels.jsonl") -> None:
    """Make sure that no event was edited, dropped or put in between.

    Raises:
        DataError: ``labels.tampered`` with the first event that does not fit.
    """
    previous = ""
    for number, event in enumerate(events):
        if event.number != number or event.chain != _link(previous, event):
            raise DataError(
                "labels.tampered",
                f"event {number} was changed after it was written, or one before it is missing",
                where=where,
                expected="a file that only readers' keys have written",
                fix="restore the file, or read again with `rlvr inspect --start-over`",
            )
        previous = event.chain


def labels_fingerprint(events: Sequence[LabelEvent]) -> str:
    """Return the hash of all labels: the end of the chain, so any change of any event changes it."""
    return events[-1].chain if events else ""


def _link(previous: str, event: LabelEvent) -> str:
    return content_hash([previous, event.model_dump(mode="json", exclude={"chain"})])
