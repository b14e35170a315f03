"""One reader's sitting: what comes next, what a key does, what is revealed. Page and terminal both speak to this.

The reader judges blind. After pass or fail the reward's verdict is revealed; ``unsure`` reveals nothing and brings
the sample back at the end for its second reading. A change of mind after the reveal needs a reason.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rlvr.errors import UsageError
from rlvr.inspection.attestation import SECOND_READER_LEAST, attest, changed_scores
from rlvr.inspection.folder import InspectionFolder, LabelBook
from rlvr.inspection.labels import Judgement, Labels
from rlvr.inspection.select import (
    DEFAULT_COUNT,
    FRESH_AFTER_MEND,
    JUDGEABLE,
    LEAST_A_SIDE,
    LEAST_READINGS,
    count_sides,
)
from rlvr.records.base import Fingerprints
from rlvr.records.inspection import Attestation, Renewal, Verdict
from rlvr.records.samples import Sample, ScoredSample
from rlvr.workspace import now


@dataclass(frozen=True)
class Pool:
    """What can be read, and what it was made from.

    Attributes:
        samples: Completions.
        scores: What the current reward says of them.
        fingerprints: Of the reward that gave those scores, and of data, model and sampling.
        rows: Hashes of the training rows.
        source: ``probe`` or a run's name.
    """

    samples: Sequence[Sample]
    scores: Sequence[ScoredSample]
    fingerprints: Fingerprints
    rows: Sequence[str] = ()
    source: str = "probe"


@dataclass(frozen=True)
class Rules:
    """How many samples a sitting asks for.

    Attributes:
        count: Samples of the first draw.
        needed: Decided readings that the rules ask for.
        seed: Of the draws.
        simulated: A program reads.
    """

    count: int = DEFAULT_COUNT
    needed: int = LEAST_READINGS
    seed: int = 0
    simulated: bool = False


class Turn(NamedTuple):
    """The sample to read now."""

    sample: Sample
    reading: int


class Reveal(NamedTuple):
    """A sample that was judged, beside what the reward says of it."""

    sample: Sample
    judgement: Judgement
    score: ScoredSample
    agrees: bool | None


class OutOfDate(UsageError):
    """A key was pressed on a state that has moved on, as in a second tab."""


class Rescored(NamedTuple):
    """What a rescore changed.

    Attributes:
        changed: Completions with another outcome or score.
        labelled: How many of them somebody had read.
        closed: Disagreements that it closed.
        fresh_needed: Fresh samples still to read.
        same_reward: The reward is the one that had scored before.
    """

    changed: list[str]
    labelled: int
    closed: int
    fresh_needed: int
    same_reward: bool


@dataclass
class Sitting:
    """One reader reading one pool.

    Attributes:
        folder: Where labels and attestation are written.
        pool: What can be read.
        reader: Who reads.
        rules: How many samples.
        clock: Seconds that only go forward; tests bring their own.
        rescore: Scores the pool again under the reward as it stands now; None where that is not possible.
        utc: Time for the record.
        version: Of rlvr, for the record.
    """

    folder: InspectionFolder
    pool: Pool
    reader: str
    rules: Rules = Rules()
    clock: Callable[[], float] = time.monotonic
    rescore: Callable[[], Pool] | None = None
    utc: Callable[[], str] = now
    version: str = ""

    def __post_init__(self) -> None:
        self.lock = threading.RLock()
        self.book = LabelBook(self.folder)
        before = self.folder.attestation()
        self._renewals: list[Renewal] = list(before.renewals) if before else []
        self._shown: dict[tuple[str, int], float] = {}
        self.mended_before = self._compare(self.pool)
        self._take_pool(self.pool)
        self.top_up()

    def _take_pool(self, pool: Pool) -> None:
        self.pool = pool
        self._sides = count_sides(pool.samples, pool.scores)
        self._index()

    def _index(self) -> None:
        kept = self.folder.samples()
        self._samples = {one.completion_id: one for one in [*kept, *self.pool.samples]}
        self._scores = {one.completion_id: one for one in self.pool.scores}
        selection = self.folder.selection()
        drawn = selection.completion_ids if selection else []
        self.drawn = [identifier for identifier in drawn if identifier in self._samples]

    @property
    def labels(self) -> Labels:
        """The state of all labels."""
        return self.book.labels

    # What comes next

    def queue(self) -> list[str]:
        """Return what this reader still reads: unread ones in order, then second readings."""
        mine = self.labels.by_reader.get(self.reader, {})
        unread = [one for one in self.drawn if one not in mine or not mine[one].readings]
        if self.labels.readers and self.reader != self.labels.readers[0]:
            first = {*self.labels.reversed_ids(), *self.labels.unsure()}
            unread.sort(key=lambda one: one not in first)  # what a second reader is needed for comes first
        waiting = set(self.labels.unsure())
        again = [one for one in mine if one in waiting and mine[one].readings == 1]
        return unread + again

    def turn(self) -> Turn | None:
        """Return the sample to read now, and start its clock; None when all are read."""
        queue = self.queue()
        if not queue:
            return None
        identifier = queue[0]
        reading = self._readings(identifier) + 1
        self._shown.setdefault((identifier, reading), self.clock())
        return Turn(self._samples[identifier], reading)

    def history(self) -> list[str]:
        """Return what this reader has read, in order."""
        return [
            one.completion_id for one in self.labels.by_reader.get(self.reader, {}).values() if one.readings
        ]

    def _readings(self, identifier: str) -> int:
        found = self.labels.of(self.reader, identifier)
        return found.readings if found else 0

    def revision(self, identifier: str) -> int:
        """Return how many events this reader has on a sample; what a tab must have seen to press a key."""
        found = self.labels.of(self.reader, identifier)
        return found.revision if found else 0

    def sample(self, identifier: str) -> Sample:
        """Return a drawn sample.

        Raises:
            OutOfDate: ``inspect.unknown-sample``.
        """
        if identifier not in self._samples or identifier not in self.drawn:
            raise OutOfDate("inspect.unknown-sample", f"no sample {identifier!r}", fix="reload the page")
        return self._samples[identifier]

    def top_up(self) -> int:
        """Draw what the rules still ask for; returns how many samples came."""
        with self.lock:
            short, sides = self._shortage()
            if short <= 0:
                return 0
            before = len(self.drawn)
            reason = "first" if not self.drawn else "mended" if self.labels.epoch else "more"
            self.folder.draw(
                self.pool.samples,
                self.pool.scores,
                short,
                self.rules.seed,
                reason=reason,
                made_from=self.pool.fingerprints,
                source=self.pool.source,
                rows=self.pool.rows,
                **sides,
            )
            self._index()
            return len(self.drawn) - before

    def _shortage(self) -> tuple[int, dict[str, int]]:
        if not self.drawn:
            return self.rules.count, {}
        found = self.attestation()
        met = {one for held in self.labels.by_reader.values() for one in held}
        waiting = [one for one in self.drawn if one not in met]
        paid = sum(self._scores[one].outcome == "right" for one in waiting if one in self._scores)
        side_paid = min(LEAST_A_SIDE, self._sides[0]) - found.false_positives.read - paid
        side_unpaid = min(LEAST_A_SIDE, self._sides[1]) - found.false_negatives.read - (len(waiting) - paid)
        if self.rules.needed < LEAST_READINGS:
            side_paid = side_unpaid = 0  # a run's own completions come as they are
        sides = {"least_paid": max(side_paid, 0), "least_unpaid": max(side_unpaid, 0)}
        fresh = found.fresh.needed - found.fresh.read if found.fresh else 0
        if found.reopened:
            fresh = max(fresh, self._reopened_shortage())
        undecided = len(found.unsure)  # read again, not replaced
        short = max(found.needed - found.read - undecided, fresh) - len(waiting)
        return max(short, sum(sides.values())), sides

    def _reopened_shortage(self) -> int:
        latest = max(one.at for one in self.folder.reopenings() if not one.answered_at)
        return FRESH_AFTER_MEND - sum(one.at > latest for one in self.labels.standing().values())

    @property
    def exhausted(self) -> bool:
        """Whether the rules ask for more samples than the pool still has."""
        return not self.queue() and self._shortage()[0] > 0

    # What a key does

    def judge(self, identifier: str, verdict: Verdict, revision: int) -> Reveal | None:
        """Take a blind reading; returns the reveal, None after ``unsure``.

        Raises:
            OutOfDate: ``inspect.out-of-date`` when the sample was judged meanwhile, or is not being shown.
        """
        with self.lock:
            sample = self.sample(identifier)
            found = self.labels.of(self.reader, identifier)
            self._check_revision(identifier, revision)
            reading = self._readings(identifier) + 1
            shown = self._shown.get((identifier, reading))
            if (found and found.decided) or shown is None:
                raise _moved_on(identifier)
            decided = verdict != "unsure"
            self.book.judge(
                self.reader,
                sample,
                verdict,
                at=self.utc(),
                seconds=round(self.clock() - shown, 3),
                reward=self.pool.fingerprints.reward,
                accepted=self._accepted(identifier) if decided else None,
            )
            self._save()
            return self.reveal(identifier) if decided else None

    def begin_again(self, identifier: str) -> None:
        """Start the clock of a second reading that the reader asked for by going back."""
        reading = self._readings(self.sample(identifier).completion_id) + 1
        self._shown.setdefault((identifier, reading), self.clock())

    def note(self, identifier: str, text: str) -> None:
        """Keep a note on a sample."""
        with self.lock:
            self.sample(identifier)
            self.book.add(
                "noted", at=self.utc(), reader=self.reader, completion_id=identifier, text=text.strip()
            )
            self._save()

    def change(self, identifier: str, verdict: Verdict, reason: str, revision: int) -> Reveal:
        """Take a change of mind after the reveal.

        Raises:
            OutOfDate: ``inspect.out-of-date``.
            UsageError: ``inspect.no-reason`` or ``inspect.no-change``.
        """
        with self.lock:
            self.sample(identifier)
            self._check_revision(identifier, revision)
            found = self.labels.of(self.reader, identifier)
            if found is None or not found.decided:
                raise _moved_on(identifier)
            if verdict == found.verdict or verdict == "unsure":
                raise UsageError(
                    "inspect.no-change",
                    f"your judgement is {found.verdict} already",
                    fix="choose the other one",
                )
            if len(reason.strip()) < SHORTEST_REASON:
                raise UsageError(
                    "inspect.no-reason",
                    "a change of judgement without a reason",
                    expected="a few words on what you had missed; they go on record",
                )
            self.book.add(
                "changed",
                at=self.utc(),
                reader=self.reader,
                completion_id=identifier,
                verdict=verdict,
                text=reason.strip(),
                reward=self.pool.fingerprints.reward,
                accepted=self._accepted(identifier),
            )
            self._save()
            self.top_up()
            return self.reveal(identifier)

    def mend(self) -> Rescored:
        """Score everything again under the reward as it stands now, and draw the fresh samples it asks for.

        Raises:
            UsageError: ``inspect.no-rescore`` where the pool cannot be scored again.
        """
        if self.rescore is None:
            raise UsageError("inspect.no-rescore", "these samples cannot be scored again here")
        before, new = self.pool, self.rescore()
        with self.lock:
            open_before = set(self.attestation().open_disagreements)
            changed = self._compare(new)
            self._take_pool(new)
            self.top_up()
            found = self.attestation()
            self.folder.write_attestation(found)
        return Rescored(
            changed=changed,
            labelled=sum(one in self.labels.standing() for one in changed),
            closed=len(open_before - set(found.open_disagreements)),
            fresh_needed=max(found.fresh.needed - found.fresh.read, 0) if found.fresh else 0,
            same_reward=before.fingerprints.reward == new.fingerprints.reward and not changed,
        )

    def _compare(self, new: Pool) -> list[str]:
        """Note a mend since the labels were last compared with scores, whoever scored again."""
        kept, reward = self.folder.kept_scores(), new.fingerprints.reward
        changed = changed_scores(kept.scores, new.scores) if kept else []
        if kept and (changed or kept.reward != reward):
            # The event comes before the scores: a kill between them asks for fresh samples once too often at worst.
            self.book.add("rescored", at=self.utc(), changed=changed, reward=reward)
            if not changed:
                self._renewals.append(
                    Renewal(
                        at=self.utc(),
                        reward_before=kept.reward,
                        reward_after=reward,
                        compared=len(new.scores),
                    )
                )
        if kept is None or kept.reward != reward or kept.scores != list(new.scores):
            self.folder.keep_scores(new.scores, reward)
        return changed

    def _check_revision(self, identifier: str, revision: int) -> None:
        if revision != self.revision(identifier):
            raise _moved_on(identifier)

    def _accepted(self, identifier: str) -> bool | None:
        score = self._scores.get(identifier)
        return None if score is None or score.outcome not in JUDGEABLE else score.outcome == "right"

    # What is shown

    def reveal(self, identifier: str) -> Reveal:
        """Return a decided sample beside the reward's verdict.

        Raises:
            OutOfDate: ``inspect.out-of-date`` before it was decided: the reward stays hidden until then.
        """
        found = self.labels.of(self.reader, identifier)
        score = self._scores.get(identifier)
        if found is None or not found.decided or score is None:
            raise _moved_on(identifier)
        accepted = self._accepted(identifier)
        agrees = None if accepted is None else accepted == (found.verdict == "pass")
        return Reveal(self.sample(identifier), found, score, agrees)

    def attestation(self) -> Attestation:
        """Return the attestation as it would stand now."""
        return attest(
            self.labels,
            list(self._samples.values()),
            self.pool.scores,
            self.pool.fingerprints.model_copy(update={"labels": self.book.fingerprint}),
            self.reader,
            self.rules.simulated,
            drawn=self.drawn,
            exist=self._sides,
            made_at=self.utc(),
            version=self.version,
            source=self.pool.source,
            needed=self.rules.needed,
            renewals=self._renewals,
            reopenings=self.folder.reopenings(),
        )

    def goal(self) -> int:
        """Return how many samples this reader is asked to read in all."""
        first = self.labels.readers[0] if self.labels.readers else self.reader
        return len(self.drawn) if first == self.reader else min(SECOND_READER_LEAST, len(self.drawn))

    def _save(self) -> None:
        """Keep the attestation in step with the labels, once there is one or all is read."""
        if not self.queue() or self.folder.record_path.is_file():
            self.folder.write_attestation(self.attestation())

    def close(self) -> Attestation:
        """Write the attestation; what was pressed is on disk already."""
        with self.lock:
            found = self.attestation()
            if self.labels.events:
                self.folder.write_attestation(found)
            return found


SHORTEST_REASON = 3
"""Characters of a reason; it must say something, not be long."""


def _moved_on(identifier: str) -> OutOfDate:
    return OutOfDate(
        "inspect.out-of-date",
        "this sample was judged meanwhile, perhaps in another tab",
        where=f"sample {identifier}",
        fix="the page shows where you are now; nothing was lost",
    )
