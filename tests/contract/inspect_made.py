"""A workspace whose probe has sampled: configuration, data, a reward file of its own with a helper, completions."""

import json

from rlvr.commands.chain import Chain
from rlvr.commands.probing import Store, score_samples
from rlvr.records.samples import Message, Sample
from rlvr.workspace import write_lines

CONFIG = """\
model: ./model
task: {prompts: prompts.jsonl, signal: answer}
rewards:
  - {use: "rewards.py:last_number", arguments: {offset: 0}, depends_on: [units.txt]}
sampling: {temperature: 1.0, seed: 3407}
"""
REWARD = '''\
"""Reads the last number."""

from helper import numbers


def last_number(prompts, completions, answer, offset=0, **columns):
    found = [numbers(one[-1]["content"]) for one in completions]
    return [1.0 if got and got[-1] + offset == int(gold) else 0.0 for got, gold in zip(found, answer)]
'''
HELPER = """\
import re


def numbers(text):
    return [int(one) for one in re.findall(r"-?\\d+", text)]
"""
HEDGED = range(3, 120, 12)
"""Rows whose completion names two answers, the right one last: the reward pays them, a person does not."""
MENDED = REWARD.replace(
    "    return [1.0", "    found = [got if len(set(got)) == 1 else [] for got in found]\n    return [1.0"
)
ROWS = 120


def gold(row):
    return 2 * row + 5


def completion(row):
    if row in HEDGED:
        return f"It is {gold(row) + 1}, or {gold(row)}."
    return f"The answer is {gold(row) if row % 2 == 0 or row % 4 == 3 else gold(row) - 2}."


def is_right(sample):
    return sample.text == f"The answer is {gold(sample.row)}."


def workspace(folder):
    """Write everything up to the probe's completions; returns the folder."""
    (folder / "model").mkdir(parents=True)
    (folder / "model" / "config.json").write_text('{"model_type": "qwen2"}')
    (folder / "rlvr.yaml").write_text(CONFIG)
    (folder / "rewards.py").write_text(REWARD)
    (folder / "helper.py").write_text(HELPER)
    (folder / "units.txt").write_text("apples\n")
    rows = [{"prompt": f"What is {row} + {row} + 5?", "answer": str(gold(row))} for row in range(ROWS)]
    (folder / "prompts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    probed(folder)
    return folder


def samples_of(chain):
    return [
        Sample(
            completion_id=f"c{row.index:04d}",
            row=row.index,
            row_hash=row.row_hash,
            prompt=row.prompt,
            completion=[Message(role="assistant", content=completion(row.index))],
            source="low",
            temperature=0.2,
            tokens=8,
            columns=row.columns,
        )
        for row in chain.rows
    ]


def probed(folder):
    """Write completions and scores as the probe leaves them."""
    chain = Chain(folder)
    store, now = Store(chain), chain.fingerprints
    samples = samples_of(chain)
    write_lines(store.completions, samples)
    write_lines(store.scores, score_samples(chain.scorer, samples))
    store.note(model=now.model, sampling=now.sampling, reward=now.reward, chat=True, cap=64)


class Clock:
    """Seconds as the test says; each reading takes four."""

    def __init__(self, step=4.0):
        self.now, self.step = 0.0, step

    def __call__(self):
        self.now += self.step / 2
        return self.now


def read(sitting, judge=is_right):
    """Read until nothing is left, as a person who judges by ``judge``."""
    while (turn := sitting.turn()) is not None:
        identifier = turn.sample.completion_id
        verdict = "pass" if judge(turn.sample) else "fail"
        sitting.judge(identifier, verdict, sitting.revision(identifier))
