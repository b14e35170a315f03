"""What the page shows, as plain JSON: built from a sitting, rendered ahead, never with the reward's verdict early."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from typing import Any

from rlvr.inspection.render import render_completion, render_text
from rlvr.inspection.session import Reveal, Sitting
from rlvr.records.samples import Sample
from rlvr.visible import visible

FIRST_COLUMNS = ("answer", "solution", "reference", "target", "expected", "gold", "ground_truth", "label")
"""Names of reference columns that are shown before any other."""
LONGEST_REFERENCE = 6_000
PREVIEW_CHARACTERS = 280
KEPT_RENDERINGS = 64
KEPT_WHOLE = 4


class View:
    """The page's answers for one sitting.

    Args:
        sitting: The reader's sitting.
        mend_at: Where the rewards stand, such as ``rewards.py:math``, shown beside a disagreement.
    """

    def __init__(self, sitting: Sitting, mend_at: Sequence[str] = ()) -> None:
        self.sitting = sitting
        self.mend_at = list(mend_at)
        self._last: str | None = None
        # A completion is rendered once blind and once with the answer marked; whole ones are big, so few are kept.
        self._completion = functools.lru_cache(KEPT_RENDERINGS)(self._render_completion)
        self._whole = functools.lru_cache(KEPT_WHOLE)(self._render_whole)

    def state(self) -> dict[str, Any]:
        """Return where the reader is: the sample to read, or the summary when all are read."""
        sitting = self.sitting
        with sitting.lock:
            turn = sitting.turn()
            current = None if turn is None else self._blind(turn.sample, turn.reading)
            return {
                "progress": self._progress(),
                "current": current,
                "last": self._last_strip(),
                "summary": self.summary() if turn is None else None,
            }

    def warm(self) -> None:
        """Render ahead what the next keys may ask for: the sample after this one, and this one unfolded."""
        with self.sitting.lock:
            queue = self.sitting.queue()[:2]
        for identifier in queue:
            self._sample(self.sitting.sample(identifier), None)
        for identifier in queue[:1]:
            self._whole(identifier, None, False)

    def judged(self, identifier: str, verdict: Any, revision: int) -> dict[str, Any]:
        """Take a verdict; a disagreement stays in sight, anything else goes on at once."""
        found = self.sitting.judge(identifier, verdict, revision)
        self._last = identifier if found else None
        if found is not None and found.agrees is False:
            self._last = None  # it is shown in full now
            return {"reveal": self.revealed(identifier), "state": None, "progress": self._progress()}
        return {"reveal": None, "state": self.state()}

    def opened(self, identifier: str) -> dict[str, Any]:
        """Return a sample that was read before: revealed when decided, blind when still unsure."""
        sitting = self.sitting
        found = sitting.labels.of(sitting.reader, identifier)
        if found is not None and found.decided:
            return {"reveal": self.revealed(identifier), "blind": None}
        sitting.begin_again(identifier)
        return {
            "reveal": None,
            "blind": self._blind(sitting.sample(identifier), found.readings + 1 if found else 1),
        }

    def back(self, identifier: str | None) -> dict[str, Any]:
        """Return the sample read before ``identifier``, or the latest one."""
        history = self.sitting.history()
        place = history.index(identifier) if identifier in history else len(history)
        if place == 0:
            return {"reveal": None, "blind": None}
        return self.opened(history[place - 1])

    def text(self, identifier: str, *, raw: bool) -> dict[str, Any]:
        """Return a completion in full, its answer marked only when the reader has decided."""
        sitting = self.sitting
        sitting.sample(identifier)
        found = sitting.labels.of(sitting.reader, identifier)
        extracted = sitting.reveal(identifier).score.extracted if found and found.decided else None
        return self._whole(identifier, extracted, raw)

    def revealed(self, identifier: str) -> dict[str, Any]:
        """Return a decided sample with the reward's verdict beside the reader's."""
        found = self.sitting.reveal(identifier)
        return {
            **self._sample(found.sample, found.score.extracted),
            **_verdicts(found),
            "components": [
                {"name": visible(name), "score": value}
                for name, value in sorted(found.score.components.items())
            ],
            "reasons": [visible(reason) for reason in found.judgement.reasons],
            "mend_at": self.mend_at,
        }

    def summary(self) -> dict[str, Any]:
        """Return the whole of what was read: agreement, bounds, table, and each disagreement."""
        sitting = self.sitting
        found = sitting.attestation()
        plain = found.model_dump(mode="json", exclude={"standing", "made_from"})
        return {
            **plain,
            "progress": self._progress(),
            "disagreements": [self._card(one) for one in found.open_disagreements],
            "undecided": [self._preview(one) for one in found.unsure],
            "left": len(sitting.queue()),
            "goal": sitting.goal(),
            "mine": len(sitting.history()),
            "exhausted": sitting.exhausted,
            "can_rescore": sitting.rescore is not None,
            "mend_at": self.mend_at,
        }

    def _progress(self) -> dict[str, Any]:
        sitting = self.sitting
        done, left = len(sitting.history()), len(sitting.queue())
        seconds = sorted(
            one
            for found in sitting.labels.by_reader.get(sitting.reader, {}).values()
            for one in found.seconds
        )
        goal = sitting.goal()
        return {
            "reader": visible(sitting.reader),
            "source": visible(sitting.pool.source),
            "second": bool(sitting.labels.readers) and sitting.labels.readers[0] != sitting.reader,
            "asked": goal,
            "done": done,
            "goal": max(goal, done) if left == 0 else max(goal, min(done + 1, done + left)),
            "left": left,
            "median_seconds": seconds[len(seconds) // 2] if seconds else None,
        }

    def _last_strip(self) -> dict[str, Any] | None:
        if self._last is None:
            return None
        return {"id": self._last, **_verdicts(self.sitting.reveal(self._last))}

    def _blind(self, sample: Sample, reading: int) -> dict[str, Any]:
        return {**self._sample(sample, None), "reading": reading}

    def _sample(self, sample: Sample, extracted: str | None) -> dict[str, Any]:
        found = self.sitting.labels.of(self.sitting.reader, sample.completion_id)
        return {
            "id": sample.completion_id,
            "revision": self.sitting.revision(sample.completion_id),
            "prompt": [
                {"role": message.role, "blocks": _cached_text(message.content)} for message in sample.prompt
            ],
            "reference": [
                {"name": visible(name), "blocks": _cached_text(value)} for name, value in reference(sample)
            ],
            "completion": self._completion(sample.completion_id, extracted),
            "characters": len(sample.text),
            "tokens": sample.tokens,
            "truncated": sample.truncated,
            "step": sample.step,
            "note": visible(found.note) if found else "",
        }

    def _card(self, identifier: str) -> dict[str, Any]:
        sitting = self.sitting
        mine = sitting.labels.of(sitting.reader, identifier)
        if mine is None or not mine.decided:  # another reader's disagreement
            other = next(one for one in sitting.labels.decided() if one.completion_id == identifier)
            return {**self._preview(identifier), "by": visible(other.reader), "verdict": other.verdict}
        found = sitting.reveal(identifier)
        return {**self._preview(identifier), "by": "", **_verdicts(found)}

    def _preview(self, identifier: str) -> dict[str, Any]:
        sample = self.sitting.sample(identifier)
        prompt = sample.prompt[-1].content if sample.prompt else ""
        names = [f"{name}: {value}" for name, value in reference(sample)[:1]]
        return {
            "id": identifier,
            "prompt": visible(_shortened(prompt)),
            "reference": visible(_shortened(names[0])) if names else "",
            "ending": visible(_ending(sample.text)),
        }

    def _render_completion(self, identifier: str, extracted: str | None) -> dict[str, Any]:
        return render_completion(self.sitting.sample(identifier).text, extracted)

    def _render_whole(self, identifier: str, extracted: str | None, raw: bool) -> dict[str, Any]:
        return render_completion(self.sitting.sample(identifier).text, extracted, raw=raw, unfolded=True)


def reference(sample: Sample) -> list[tuple[str, str]]:
    """Return the columns that a reward receives beside the completion, the reference first, as text."""
    order = {name: place for place, name in enumerate(FIRST_COLUMNS)}
    names = sorted(sample.columns, key=lambda name: (order.get(name.lower(), len(order)), name))
    shown = [(name, _as_text(sample.columns[name])) for name in names if sample.columns[name] is not None]
    return [(name, _shortened(text, LONGEST_REFERENCE)) for name, text in shown]


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


def _shortened(text: str, longest: int = PREVIEW_CHARACTERS) -> str:
    return text if len(text) <= longest else f"{text[:longest]} … ({len(text) - longest:,} characters more)"


def _ending(text: str) -> str:
    return text if len(text) <= PREVIEW_CHARACTERS else f"… {text[-PREVIEW_CHARACTERS:]}"


@functools.lru_cache(KEPT_RENDERINGS)
def _cached_text(text: str) -> list[dict[str, Any]]:
    return render_text(text)


def _verdicts(found: Reveal) -> dict[str, Any]:
    score = found.score
    return {
        "verdict": found.judgement.verdict,
        "seconds": found.judgement.seconds[-1] if found.judgement.seconds else None,
        "outcome": score.outcome,
        "accepted": score.outcome == "right",
        "agrees": found.agrees,
        "total": score.total,
        "extracted": None if score.extracted is None else visible(_shortened(score.extracted, 2_000)),
        "why": visible(score.why),
        "own_note": visible(found.judgement.note),
    }
