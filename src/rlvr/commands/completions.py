"""Completions that were sampled once and kept, and their scores under the reward as it stands."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlvr.commands.chain import Chain, columns_of
from rlvr.commands.progress import counting
from rlvr.records.samples import Message, Sample, ScoredSample
from rlvr.workspace import append_lines, content_hash, read_lines, write_atomic

if TYPE_CHECKING:
    from rlvr.rewards.composite import RowScore, Scorer

SCORED_AT_ONCE = 256


class Store:
    """The kept completions and scores of one workspace, and what they were made from.

    Args:
        chain: The workspace.
    """

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self.completions = chain.workspace.completions_path
        self.scores = chain.workspace.scores_path
        self.made_path = self.completions.parent / "made_from.json"
        self.page = chain.workspace.gates / "probe.html"

    @property
    def made(self) -> dict[str, Any]:
        """What the kept files were made from; empty before the first sample."""
        try:
            found = json.loads(self.made_path.read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    @property
    def chat(self) -> bool:
        """Whether the model has a chat template, so that rewards are given messages, as in training."""
        return bool(self.made.get("chat", True))

    def note(self, **parts: Any) -> None:
        """Write down what the kept files are made from."""
        write_atomic(self.made_path, (json.dumps({**self.made, **parts}) + "\n").encode())

    def set_aside(self) -> bool:
        """Move completions of another model or sampling out of the way; returns whether there were any."""
        made, now = self.made, self.chain.fingerprints
        if not self.completions.is_file() or all(
            made.get(part) == getattr(now, part) for part in ("model", "sampling")
        ):
            return False
        tag = content_hash([made.get("model"), made.get("sampling")])
        for path in (self.completions, self.scores):
            if path.is_file():
                path.rename(path.with_name(f"{path.stem}-{tag}.jsonl"))
        return True

    def samples(self) -> list[Sample]:
        """Return the kept completions of rows that are still in the data."""
        current = {row.row_hash for row in self.chain.rows}
        return [one for one in read_lines(self.completions, Sample) if one.row_hash in current]


class Scores:
    """Scores of kept completions under the reward as it stands; each is computed once and appended.

    Args:
        chain: The workspace.
        store: Its kept files.
        path: File of the scores; None: that of the store.
        part: Name under which the store notes the reward that they were made with.
    """

    def __init__(self, chain: Chain, store: Store, path: Path | None = None, part: str = "reward") -> None:
        self.chain = chain
        self.path = path or store.scores
        self.chat = store.chat
        reward = chain.fingerprints.reward
        if store.made.get(part) != reward:
            self.path.unlink(missing_ok=True)  # verdicts of another reward must not mix with new ones
            store.note(**{part: reward})
        self.known = {one.completion_id: one for one in read_lines(self.path, ScoredSample)}

    def of(self, samples: Sequence[Sample], *, quiet: bool = True) -> list[ScoredSample]:
        """Return the scores of ``samples``, in order."""
        missing = [one for one in samples if one.completion_id not in self.known]
        with counting("scoring", len(missing), quiet=quiet or not missing) as advance:
            for start in range(0, len(missing), SCORED_AT_ONCE):
                part = missing[start : start + SCORED_AT_ONCE]
                found = score_samples(self.chain.scorer, part, chat=self.chat)
                append_lines(self.path, found)
                self.known.update((one.completion_id, one) for one in found)
                advance(len(part))
        return [self.known[one.completion_id] for one in samples]


def score_samples(scorer: Scorer, samples: Sequence[Sample], *, chat: bool = True) -> list[ScoredSample]:
    """Score completions as training will: message lists on a model with a chat template, strings without one."""
    found = score_texts(scorer, samples, [one.text for one in samples], chat=chat)
    return [_scored(one.completion_id, score) for one, score in zip(samples, found, strict=True)]


def score_texts(
    scorer: Scorer, samples: Sequence[Any], texts: Sequence[str], *, chat: bool
) -> list[RowScore]:
    """Score texts as completions of the samples' (or rows') prompts."""
    from rlvr.task.prompt import plain_text

    prompts: list[Any] = []
    completions: list[Any] = []
    for one, text in zip(samples, texts, strict=True):
        prompts.append(_plain(one.prompt) if chat else plain_text(one.prompt))
        completions.append(_plain([Message(role="assistant", content=text)]) if chat else text)
    return scorer.score_batch(prompts, completions, columns_of(samples))


def _plain(messages: Sequence[Message]) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.content} for message in messages]


def _scored(completion_id: str, score: RowScore) -> ScoredSample:
    return ScoredSample(
        completion_id=completion_id,
        outcome=score.outcome.value,
        total=score.total,
        components=dict(score.components),
        extracted=score.extracted,
        why=score.why,
    )
