"""Samples completions once and keeps them: appended as they come, so that a killed probe goes on where it stopped.

The work is cut into chunks that depend on the data, the budget and the seed alone, never on what is done already. A
chunk that a kill left half written is drawn again (the same, on a backend that keeps to its seed) and only what is
missing is appended.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rlvr.generate import Generated, Generator
from rlvr.records.samples import Message, Sample
from rlvr.task.dataset import Row
from rlvr.task.prompt import with_system
from rlvr.workspace import append_lines, content_hash

Source = Literal["low", "training"]

LOOK_EVERY = 64
"""Completions between two looks, where sampling may stop early."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How to sample.

    Attributes:
        temperature: Sampling temperature.
        source: Which of the two temperatures this is.
        count: Completions a prompt.
        max_tokens: Longest completion, tokens.
        system_prompt: Put in front of every prompt.
        seed: Seed of the draws.
        first: Index of the first of these completions; a later round starts where the earlier one ended.
    """

    temperature: float
    source: Source
    count: int
    max_tokens: int
    system_prompt: str | None
    seed: int
    first: int = 0

    @property
    def indexes(self) -> range:
        """Indexes of the completions of a prompt."""
        return range(self.first, self.first + self.count)


Appended = Callable[[Sequence[Sample]], None]
"""Called with each chunk's new samples, once they are on disk."""
Key = tuple[str, str, int]
"""Row hash, source, index."""


def shuffled(rows: Sequence[Row], seed: int) -> list[Row]:
    """Return the rows in an order that depends on the seed, so that the first n are a random draw."""
    return random.Random(seed).sample(list(rows), len(rows))  # noqa: S311  # an order, not a secret


def key_of(sample: Sample) -> Key:
    """Return what tells a sample from the others of its probe."""
    return (sample.row_hash, sample.source, sample.index)


def sample_rows(
    rows: Sequence[Row],
    plan: Plan,
    generator: Generator,
    path: Path,
    done: dict[Key, Sample],
    *,
    appended: Appended | None = None,
    progress: Callable[[int], None] | None = None,
    enough: Callable[[], bool] | None = None,
) -> list[Sample]:
    """Sample what is missing and return all samples of ``rows``, old and new.

    Args:
        rows: Distinct prompts, in the order in which they are sampled.
        plan: How to sample.
        generator: The backend.
        path: File that samples are appended to.
        done: What stands in the file already; new samples are added to it.
        appended: Told of new samples.
        progress: Told how many completions are done, kept ones included.
        enough: Asked after each chunk; True stops early.

    Raises:
        InfrastructureError: The backend or the disk failed; what was appended stands.
    """
    found: list[Sample] = []
    size = generator.batch_size if enough is None else min(generator.batch_size, LOOK_EVERY)
    for chunk in chunks(rows, size, plan.count):
        wanted = [(row.row_hash, plan.source, index) for row in chunk for index in plan.indexes]
        if not all(key in done for key in wanted):
            new = [one for one in _drawn(chunk, plan, generator) if key_of(one) not in done]
            append_lines(path, new)
            done.update((key_of(one), one) for one in new)
            if appended is not None:
                appended(new)
        found += [done[key] for key in wanted]
        if progress is not None:
            progress(len(wanted))
        if enough is not None and enough():
            break
    return found


def chunks(rows: Sequence[Row], batch_size: int, count: int) -> Iterator[Sequence[Row]]:
    """Yield the prompts whose completions fill a batch."""
    size = max(1, batch_size // count)
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def _drawn(rows: Sequence[Row], plan: Plan, generator: Generator) -> Iterator[Sample]:
    prompts = [with_system(row.prompt, plan.system_prompt) for row in rows]
    answers = generator.generate(
        prompts,
        count=plan.count,
        temperature=plan.temperature,
        max_tokens=plan.max_tokens,
        seed=plan.seed + plan.first,
    )
    for row, prompt, completions in zip(rows, prompts, answers, strict=True):
        for index, one in zip(plan.indexes, completions, strict=True):
            yield make_sample(row, prompt, one, plan, index)


def make_sample(row: Row, prompt: Sequence[Message], one: Generated, plan: Plan, index: int) -> Sample:
    """Return one completion as it is kept."""
    identity = [row.row_hash, plan.temperature, index, one.text]
    return Sample(
        completion_id=content_hash(identity),
        row=row.index,
        row_hash=row.row_hash,
        prompt=list(prompt),
        completion=[Message(role="assistant", content=one.text)],
        source=plan.source,
        temperature=plan.temperature,
        index=index,
        tokens=one.tokens,
        truncated=one.truncated,
        columns=row.columns,
    )
