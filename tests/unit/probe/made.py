"""Completions made up for the tests: a model is a list of each prompt's chance of success."""

import random

from rlvr.records.samples import Message, Sample, ScoredSample


def judged(chances, *, low=1, training=8, rolled=64, seed=0, missed="wrong", cut=0.0, lost=0.0):
    """Samples and scores of a model, as the default probe would draw them."""
    rng = random.Random(seed)
    pairs = []
    for row, chance in enumerate(chances):
        for source, count in (("low", low), ("training", training if row < rolled else 0)):
            for index in range(count):
                pairs.append(_pair(row, source, index, rng, chance, missed, cut, lost))
    return pairs


def _pair(row, source, index, rng, chance, missed, cut, lost):
    right, truncated = rng.random() < chance, rng.random() < cut
    outcome = "right" if right and not truncated else missed
    if rng.random() < lost:
        outcome = "infrastructure"
    sample = Sample(
        completion_id=f"{row}-{source}-{index}",
        row=row,
        row_hash=f"hash{row}",
        prompt=[Message(role="user", content=f"What is {row} + {row}?")],
        completion=[Message(role="assistant", content=f"answer {index}")],
        source=source,
        temperature=0.2 if source == "low" else 1.0,
        index=index,
        tokens=5 + index,
        truncated=truncated,
        columns={"answer": str(2 * row)},
    )
    total = None if outcome == "infrastructure" else float(outcome == "right")
    return sample, ScoredSample(completion_id=sample.completion_id, outcome=outcome, total=total)
