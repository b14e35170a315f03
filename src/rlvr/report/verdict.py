"""The verdict on a run in one sentence; pure.

A gain counts when the paired 95% interval lies above zero, and is called *improved* only when a person has read at
least :data:`READINGS` of the run's own completions: held-out accuracy judged by the reward's own code rises just as
well when the policy has learned to be paid.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from rlvr.evaluation import Change, change

if TYPE_CHECKING:
    from rlvr.records.inspection import Attestation
    from rlvr.records.run import Evaluation, Manifest

READINGS = 20
"""On-policy completions that a person reads before a gain is called one (design decision)."""

Word = Literal[
    "improved",
    "improved, unread",
    "improved, disputed",
    "no change shown",
    "worse",
    "not comparable",
    "not measured",
]
Tone = Literal["good", "warning", "bad", "neutral"]

TONES: dict[Word, Tone] = {
    "improved": "good",
    "improved, unread": "warning",
    "improved, disputed": "warning",
    "no change shown": "neutral",
    "worse": "bad",
    "not comparable": "warning",
    "not measured": "neutral",
}


@dataclass(frozen=True)
class RunVerdict:
    """What became of a run.

    Attributes:
        word: The verdict.
        sentence: The verdict with its numbers.
        notes: What limits it, in sentences.
        next: The next command; empty when there is none.
        change: The paired change; None when nothing was compared.
    """

    word: Word
    sentence: str
    notes: tuple[str, ...] = ()
    next: str = ""
    change: Change | None = None

    @property
    def statement(self) -> str:
        """Return the sentence without the verdict in front of it, for where that stands already."""
        head, _, rest = self.sentence.partition(": ")
        said = rest if head.lower().startswith(self.word) and rest else self.sentence
        return said[0].upper() + said[1:]

    @property
    def tone(self) -> Tone:
        """Return how the page colours it."""
        return TONES[self.word]


def judge(
    manifest: Manifest | None,
    before: Evaluation | None,
    after: Evaluation | None,
    reading: Attestation | None,
) -> RunVerdict:
    """Return the verdict on a run.

    Args:
        manifest: The run; None for a folder that something else wrote.
        before: Held-out accuracy of the base model.
        after: Held-out accuracy of the trained model.
        reading: Attestation over the run's own completions.
    """
    if before is None or after is None:
        return _not_measured(manifest, before, after)
    moved = compared_differently(before, after)
    if moved:
        return RunVerdict(
            "not comparable",
            f"Not comparable: {' and '.join(moved)} changed between the two measurements.",
            next=f"rlvr eval {manifest.name}" if manifest else "",
        )
    found = change(before.results, after.results)
    if not found.prompts:
        return RunVerdict("not comparable", "Not comparable: the two measurements share no prompt.")
    word = _word(found, manifest, reading)
    numbers = f"{_numbers(before, after, found)}"
    return RunVerdict(
        word,
        f"{word[0].upper()}{word[1:]}: {numbers}.",
        tuple(_notes(word, manifest, after, reading)),
        _next(word, manifest),
        found,
    )


def readings(manifest: Manifest | None, reading: Attestation | None) -> int:
    """Return how many of the run's completions a person has read; a simulated reader counts in the demo alone."""
    if reading is None or (reading.simulated and not (manifest and manifest.is_demo)):
        return 0
    return reading.read


def _word(found: Change, manifest: Manifest | None, reading: Attestation | None) -> Word:
    if found.high < 0:
        return "worse"
    if found.low <= 0:
        return "no change shown"
    if readings(manifest, reading) < READINGS:
        return "improved, unread"
    return "improved" if reading is not None and not reading.open_disagreements else "improved, disputed"


def _numbers(before: Evaluation, after: Evaluation, found: Change) -> str:
    direction = "rose" if found.difference > 0 else "fell" if found.difference < 0 else "stayed"
    return (
        f"held-out accuracy {direction} from {before.accuracy:.1%} to {after.accuracy:.1%} "
        f"({points(found.difference)} points, 95% interval {points(found.low)} to {points(found.high)}, "
        f"{p_text(found.p_value)}, {found.prompts} prompts)"
    )


def points(share: float) -> str:
    """Return a difference of shares in signed percentage points."""
    return f"{100 * share:+.1f}"


def p_text(value: float) -> str:
    """Return a p-value as people write it."""
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"


def _notes(
    word: Word, manifest: Manifest | None, after: Evaluation, reading: Attestation | None
) -> list[str]:
    notes = []
    if word == "improved, unread":
        read = readings(manifest, reading)
        notes.append(
            f"{read} of the {READINGS} on-policy completions that a person must read were read: until then the gain "
            "may be a gain at being paid."
        )
        if reading is not None and reading.simulated and not read:
            notes.append("A simulated reader read them, which counts in the demo alone.")
    if word == "improved, disputed" and reading is not None:
        notes.append(
            f"Reader and reward still differ on {len(reading.open_disagreements)} of the run's own completions."
        )
    if not after.independent:
        notes.append(
            f"The check for held-out prompts, {after.check or 'the reward'}, is the reward's own code, so hacking of "
            "the reward cannot be told from skill by these numbers."
        )
    if after.failed:
        notes.append(
            f"{after.failed} completions could not be judged (infrastructure); they count as nothing."
        )
    if manifest is not None and manifest.state != "finished":
        notes.append(f"The run is {manifest.state} at step {manifest.steps}.")
    return notes


def _next(word: Word, manifest: Manifest | None) -> str:
    name = manifest.name if manifest else "RUN"
    if word in ("improved, unread", "improved, disputed"):
        return f"rlvr inspect --run {name}"
    if word in ("no change shown", "worse"):
        return f"rlvr watch {name}"
    return "rlvr export handover" if word == "improved" else ""


def compared_differently(before: Evaluation, after: Evaluation) -> list[str]:
    """Return what differs between two measurements that must be the same for them to be compared."""
    parts = {"held_out": "the held-out prompts", "sampling": "sampling", "reward": "the reward"}
    moved = [
        words
        for part, words in parts.items()
        if getattr(before.made_from, part) != getattr(after.made_from, part)
    ]
    if before.check != after.check:
        moved.append("the check")
    if (before.temperature, before.rollouts) != (after.temperature, after.rollouts):
        moved.append("temperature or completions a prompt")
    return moved


def _not_measured(
    manifest: Manifest | None, before: Evaluation | None, after: Evaluation | None
) -> RunVerdict:
    if manifest is None:
        return RunVerdict(
            "not measured",
            "Not measured: this folder holds no held-out evaluation, so the page shows curves and no verdict.",
            ("Training reward is no evidence of skill: it is what was optimised.",),
        )
    if manifest.state in ("running", "interrupted", "paused"):
        words = f"Not measured yet: the run is {manifest.state} at step {manifest.steps or '?'}"
        return RunVerdict("not measured", f"{words}.", next=f"rlvr train --name {manifest.name} --resume")
    if manifest.state in ("stopped", "failed"):
        why = " ".join(manifest.stopped.split()) or "no reason was recorded"
        return RunVerdict("not measured", f"Not measured: the run {manifest.state} ({why}).")
    lacking = "before" if before is None else "after"
    both = "before and after" if before is None and after is None else lacking
    return RunVerdict(
        "not measured",
        f"Not measured: held-out accuracy {both} training is missing.",
        next=f"rlvr eval {manifest.name}",
    )
