"""A pool of completions such as a small model writes, a reward file of a user's own, and a running page."""

import importlib.util
import threading
from pathlib import Path

from rlvr.inspection.folder import InspectionFolder
from rlvr.inspection.server import PageServer
from rlvr.inspection.session import Pool, Rules, Sitting
from rlvr.records.base import Fingerprints
from rlvr.records.samples import Message, Sample, ScoredSample

STRICT = '''
import re

def last_number(prompts, completions, answer, **columns):
    """Pays a completion whose last number is the answer."""
    found = [re.findall(r"-?\\d+", text.replace(",", "")) for text in completions]
    return [1.0 if numbers and numbers[-1] == gold else 0.0 for numbers, gold in zip(found, answer)]
'''
"""A reward that pays `the answer is 12, or 14`-style hedging by its last number."""

MENDED = STRICT.replace(
    "    return [1.0 if numbers",
    '    boxed = [re.findall(r"boxed\\{(-?\\d+)\\}", text) for text in completions]\n'
    "    return [1.0 if len(set(b)) == 1 and b[-1] == gold else 0.0 for b, gold in zip(boxed, answer)]\n"
    "    return [1.0 if numbers",
)


def prompt_of(row):
    crate = f"A crate holds {row + 3} rows of {row + 4} apples."
    return f"{crate} How many apples are in two crates? Answer in \\boxed{{}}."


def gold_of(row):
    return 2 * (row + 3) * (row + 4)


def text_of(row):
    gold = gold_of(row)
    product = (row + 3) * (row + 4)
    kind = row % 4
    if kind in (0, 2):
        return (
            f"One crate holds ${row + 3} \\times {row + 4} = {product}$ apples.\n\nTwo crates hold twice as many:\n"
            f"\\[2 \\cdot {product} = \\frac{{{4 * product}}}{{2}} = {gold}\\]\n\nThe answer is \\boxed{{{gold}}}."
        )
    if kind == 1:
        return f"There are ${row + 3} + {row + 4} = {2 * row + 7}$ apples in a crate, so \\boxed{{{4 * row + 14}}}."
    return f"I would multiply, which gives {product} apples a crate, and so about {gold + 10} in all."


HEDGED = range(2, 160, 16)
"""Rows whose completion names two answers, the right one last: the reward as first written pays them."""


def completion_of(row):
    if row in HEDGED:
        return f"It is \\boxed{{{gold_of(row) + 6}}}, or perhaps \\boxed{{{gold_of(row)}}}."
    return text_of(row)


def sample(row, text=None, source="low"):
    return Sample(
        completion_id=f"c{row:04d}",
        row=row,
        row_hash=f"row{row}",
        prompt=[Message(role="user", content=prompt_of(row))],
        completion=[Message(role="assistant", content=completion_of(row) if text is None else text)],
        source=source,
        tokens=90,
        columns={"answer": str(gold_of(row))},
    )


def load_reward(path):
    spec = importlib.util.spec_from_file_location("reward_under_test", path)
    module = importlib.util.module_from_spec(spec)
    exec(compile(path.read_text(), str(path), "exec"), module.__dict__)
    return module.last_number


def scored(path, samples):
    reward = load_reward(path)
    totals = reward(
        prompts=[one.prompt for one in samples],
        completions=[one.text for one in samples],
        answer=[one.columns["answer"] for one in samples],
    )
    return [
        ScoredSample(
            completion_id=one.completion_id,
            outcome="right" if total >= 1 else "wrong",
            total=total,
            components={"last_number": total},
            extracted=one.columns["answer"] if total >= 1 else None,
            why="its last number is the answer" if total >= 1 else "its last number is not the answer",
        )
        for one, total in zip(samples, totals, strict=True)
    ]


def accepted(row, text):
    """What a careful person holds of a completion: one boxed answer, and it is right."""
    return text.count("\\boxed{") == 1 and f"\\boxed{{{gold_of(row)}}}" in text


class Clock:
    """Seconds as the test says; each sample takes four."""

    def __init__(self, step=4.0):
        self.now, self.step = 0.0, step

    def __call__(self):
        self.now += self.step / 2
        return self.now


class Page:
    """A sitting with its page, served from this process on a thread of its own."""

    def __init__(
        self, tmp_path: Path, samples, *, scores=None, reader="ada", rules=None, clock=None, reward=STRICT
    ):
        self.reward_path = tmp_path / "rewards.py"
        if not self.reward_path.exists():
            self.reward_path.write_text(reward)
        self.samples = samples
        self.folder = InspectionFolder.of_gates(tmp_path / "gates")
        self.sitting = Sitting(
            self.folder,
            self.pool() if scores is None else Pool(samples, scores, Fingerprints(reward="r")),
            reader,
            rules or Rules(),
            clock=clock or Clock(),
            rescore=self.pool,
            version="test",
        )
        self.server = PageServer(self.sitting, ["rewards.py:last_number"])
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()

    def pool(self):
        import hashlib

        print_ = hashlib.sha256(self.reward_path.read_bytes()).hexdigest()[:16]
        made = Fingerprints(reward=print_, data="d", model="m", sampling="s")
        return Pool(
            self.samples, scored(self.reward_path, self.samples), made, [one.row_hash for one in self.samples]
        )

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server.door.port}"

    def close(self):
        self.server.stop()
        self.thread.join(10)
