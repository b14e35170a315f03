"""Samples, scores and readings for the tests of the inspection."""

from rlvr.inspection.labels import fold, next_event
from rlvr.records.samples import Message, Sample, ScoredSample


def sample(number, text=None, *, row=None, source="low", **columns):
    row = number if row is None else row
    return Sample(
        completion_id=f"c{number:04d}",
        row=row,
        row_hash=f"row{row}",
        prompt=[Message(role="user", content=f"What is {row} + {row}?")],
        completion=[Message(role="assistant", content=text or f"The answer is {2 * row}.")],
        source=source,
        columns={"answer": str(2 * row), **columns},
    )


def score(number, outcome="right", total=None, **fields):
    worth = 1.0 if outcome == "right" else 0.0
    total = worth if total is None else total
    return ScoredSample(
        completion_id=f"c{number:04d}", outcome=outcome, total=total, components={"math": total}, **fields
    )


def pool(paid=60, unpaid=60):
    """A pool of distinct prompts: the first ``paid`` are right, the others wrong."""
    samples = [sample(number) for number in range(paid + unpaid)]
    scores = [score(number, "right" if number < paid else "wrong") for number in range(paid + unpaid)]
    return samples, scores


class Reading:
    """Events as a reader's keys would append them."""

    def __init__(self, reader="ada"):
        self.reader = reader
        self.events = []

    def add(self, kind, **fields):
        self.events.append(next_event(self.events, at="2026-01-01T00:00:00Z", kind=kind, **fields))
        return self

    def judge(self, number, verdict, *, reader=None, seconds=4.0):
        identifier = number if isinstance(number, str) else f"c{number:04d}"
        return self.add(
            "judged",
            reader=reader or self.reader,
            completion_id=identifier,
            verdict=verdict,
            seconds=seconds,
            characters=20,
        )

    def change(self, number, verdict, reason="misread", *, reader=None):
        return self.add(
            "changed",
            reader=reader or self.reader,
            completion_id=f"c{number:04d}",
            verdict=verdict,
            text=reason,
        )

    def rescored(self, *numbers):
        return self.add("rescored", changed=[f"c{number:04d}" for number in numbers])

    def agree(self, scores, numbers, *, reader=None, seconds=4.0):
        for number in numbers:
            verdict = "pass" if scores[number].outcome == "right" else "fail"
            self.judge(number, verdict, reader=reader, seconds=seconds)
        return self

    @property
    def labels(self):
        return fold(self.events)
