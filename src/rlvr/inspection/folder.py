"""The files of one inspection: what was drawn, the samples themselves, every label, the attestation.

    selection.json    the draws, round by round, and what the pool was made from
    samples.jsonl     the drawn samples; labels stay checkable when the probe samples anew
    labels.jsonl      one event a line; see labels.py
    rows.json         hashes of the training rows that the pool was sampled from; the selection vouches for them
    scores.json       the scores that the labels were last compared with, and the reward that gave them
    reopened.jsonl    why a run closed the gate again
    earlier-N/        the same files of a reading that was started over

One process writes at a time (the workspace's lock), so two tabs, or a page and a terminal, cannot interleave.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rlvr.errors import DataError
from rlvr.inspection.attestation import judged, still_reopened
from rlvr.inspection.labels import Judgement, Labels, check_chain, fold, labels_fingerprint, next_event
from rlvr.inspection.select import select_samples
from rlvr.records.base import Fingerprints
from rlvr.records.inspection import (
    SIMULATED_READER,
    Attestation,
    Draw,
    EventKind,
    KeptScores,
    LabelEvent,
    Reopening,
    Selection,
    Verdict,
)
from rlvr.records.samples import Sample, ScoredSample
from rlvr.workspace import (
    append_lines,
    content_hash,
    now,
    read_lines,
    read_record,
    stamp,
    write_atomic,
    write_record,
)


class InspectionFolder:
    """Files of one inspection.

    Args:
        root: ``gates/inspect``, or ``inspect`` in a run's folder.
        record_path: Where the attestation stands: ``gates/inspect.json``, or ``inspect.json`` in the run's folder.
    """

    def __init__(self, root: Path, record_path: Path) -> None:
        self.root = root
        self.record_path = record_path

    @classmethod
    def of_gates(cls, gates: Path) -> InspectionFolder:
        """Return the inspection of a workspace, given its ``gates`` folder."""
        return cls(gates / "inspect", gates / "inspect.json")

    @classmethod
    def of_run(cls, run: Path) -> InspectionFolder:
        """Return the inspection of a run's own completions."""
        return cls(run / "inspect", run / "inspect.json")

    @property
    def labels_path(self) -> Path:
        """Every keypress, one event a line."""
        return self.root / "labels.jsonl"

    @property
    def selection_path(self) -> Path:
        """The draws."""
        return self.root / "selection.json"

    @property
    def samples_path(self) -> Path:
        """The drawn samples."""
        return self.root / "samples.jsonl"

    def events(self) -> list[LabelEvent]:
        """Read every label event back.

        Raises:
            DataError: ``labels.tampered`` or ``record.damaged``.
        """
        found = _readable_events(self.labels_path)
        check_chain(found, where=str(self.labels_path))
        return found

    def labels(self) -> Labels:
        """Return the state that the events fold to."""
        return fold(self.events())

    def labels_fingerprint(self) -> str:
        """Return the hash of all labels; a damaged file gives a hash that fits no attestation."""
        try:
            return labels_fingerprint(self.events())
        except DataError:
            return "damaged"

    def selection(self) -> Selection | None:
        """Return the draws so far, or None before the first."""
        return read_record(self.selection_path, Selection)

    def samples(self) -> list[Sample]:
        """Return the drawn samples."""
        return read_lines(self.samples_path, Sample)

    def attestation(self) -> Attestation | None:
        """Return the attestation, or None before the first reading."""
        return read_record(self.record_path, Attestation)

    def write_attestation(self, attestation: Attestation) -> None:
        """Write the attestation."""
        write_record(self.record_path, attestation)

    def seen_rows(self) -> list[str]:
        """Return the hashes of the training rows that the pool was sampled from; none before the first draw.

        Raises:
            DataError: ``record.damaged`` when the list is not the one that the selection was drawn from.
        """
        path, selection = self.root / "rows.json", self.selection()
        if selection is None or not path.is_file():
            return []
        rows = _row_hashes(path)
        if selection.rows_hash and content_hash(rows) != selection.rows_hash:
            raise _damaged_rows(path, "its rows are not those that the samples were drawn from")
        return rows

    def kept_scores(self) -> KeptScores | None:
        """Return the scores that the labels were last compared with, or None before the first sitting."""
        return read_record(self.root / "scores.json", KeptScores)

    def keep_scores(self, scores: Sequence[ScoredSample], reward: str) -> None:
        """Write down what the labels are compared with from now on."""
        record = KeptScores(
            **stamp(Fingerprints(reward=reward)), passed=True, reward=reward, scores=list(scores)
        )
        write_record(self.root / "scores.json", record)

    def reopenings(self) -> list[Reopening]:
        """Return the times that a run closed the gate again; a later line about the same one replaces it."""
        found = read_lines(self.root / "reopened.jsonl", Reopening)
        return list({(one.at, one.run, one.symptom): one for one in found}.values())

    def reopen(self, reopening: Reopening) -> None:
        """Close the gate again: a run shows a symptom that names the reward."""
        append_lines(self.root / "reopened.jsonl", [reopening])
        before = self.attestation()
        why = still_reopened(self.labels(), self.reopenings())
        if before is not None and why:
            refusals = [why, *(one for one in before.refusals if one != why)]
            closed = {"passed": False, "why": why, "reopened": why, "refusals": refusals}
            self.write_attestation(before.model_copy(update=closed))

    def answer_reopenings(self, run: str) -> int:
        """Note that the run's own completions were read and agreed on; returns how many reopenings that answers."""
        waiting = [one for one in self.reopenings() if one.run == run and not one.answered_at]
        answered = [one.model_copy(update={"answered_at": now()}) for one in waiting]
        append_lines(self.root / "reopened.jsonl", answered)
        before = self.attestation()
        if answered and before is not None and before.reopened:
            why = still_reopened(self.labels(), self.reopenings())
            self.write_attestation(judged(before.model_copy(update={"reopened": why}), self.labels()))
        return len(answered)

    def cases(self) -> list[tuple[Sample, Judgement]]:
        """Return every completion that a person judged, in earlier readings too: the reward's regression tests."""
        found: dict[str, tuple[Sample, Judgement]] = {}
        earlier = sorted(self.root.glob("earlier-*"), key=lambda path: int(path.name.rpartition("-")[2]))
        for root in [*earlier, self.root]:
            one = InspectionFolder(root, self.record_path)
            samples = {sample.completion_id: sample for sample in one.samples()}
            for identifier, judgement in one._readable_labels().standing().items():
                if identifier in samples and judgement.reader != SIMULATED_READER:
                    found[identifier] = samples[identifier], judgement
        return list(found.values())

    def _readable_labels(self) -> Labels:
        try:
            return self.labels()
        except DataError:
            return Labels()  # an edited file closes the gate, but is no test of the reward

    def draw(
        self,
        samples: Sequence[Sample],
        scores: Sequence[ScoredSample],
        count: int,
        seed: int,
        *,
        reason: str,
        made_from: Fingerprints,
        source: str = "probe",
        rows: Iterable[str] = (),
        **sides: int,
    ) -> Selection:
        """Draw ``count`` further samples and write them down, samples first, so that a kill leaves no gap."""
        before = self.selection()
        known = before.completion_ids if before else []
        draws = before.draws if before else []
        drawn = select_samples(samples, scores, count, seed + len(draws), exclude=set(known), **sides)
        if before is not None and not drawn:
            return before
        kept = {one.completion_id for one in self.samples()}
        wanted = set(drawn) - kept
        append_lines(self.samples_path, [one for one in samples if one.completion_id in wanted])
        seen = list(rows)
        if before is None:
            write_atomic(self.root / "rows.json", json.dumps({"rows": seen}).encode())
        draw = Draw.model_validate(
            {"seed": seed + len(draws), "reason": reason, "reward": made_from.reward, "completion_ids": drawn}
        )
        base = before or Selection(
            source=source, passed=True, rows_hash=content_hash(seen), **stamp(made_from)
        )
        selection = base.model_copy(update={"draws": [*draws, draw]})
        write_record(self.selection_path, selection)
        return selection

    def start_over(self) -> Path | None:
        """Put the reading so far aside, under ``earlier-N``; returns where, or None when there was none."""
        present = [self.selection_path, self.samples_path, self.labels_path]
        present += [self.root / "rows.json", self.root / "scores.json"]
        present = [path for path in present if path.exists()]
        if not present:
            return None
        number = 1 + sum(1 for _ in self.root.glob("earlier-*"))
        aside = self.root / f"earlier-{number}"
        aside.mkdir(parents=True)
        for path in present:
            path.replace(aside / path.name)
        return aside


def _row_hashes(path: Path) -> list[str]:
    try:
        rows = json.loads(path.read_text("utf-8"))["rows"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _damaged_rows(path, "it is not a list of row hashes") from None
    if not isinstance(rows, list) or not all(isinstance(row, str) for row in rows):
        raise _damaged_rows(path, "it is not a list of row hashes")
    return rows


def _damaged_rows(path: Path, found: str) -> DataError:
    return DataError(
        "record.damaged",
        found,
        where=str(path),
        expected="a file that rlvr wrote and nobody changed",
        fix="`rlvr inspect --start-over`",
    )


def _readable_events(path: Path) -> list[LabelEvent]:
    from pydantic import ValidationError

    try:
        return read_lines(path, LabelEvent)
    except ValidationError as error:
        raise DataError(
            "labels.tampered",
            f"a line is not a label event: {error.errors()[0]['msg']}",
            where=str(path),
            expected="a file that only readers' keys have written",
            fix="restore the file, or read again with `rlvr inspect --start-over`",
        ) from None


def _drop_torn_end(path: Path) -> None:
    """Cut off a last line that a kill left unfinished; its key was never answered."""
    if not path.is_file():
        return
    whole = path.read_bytes()
    end = whole.rfind(b"\n") + 1
    try:
        json.loads(whole[end:] or b"{}")
    except ValueError:
        write_atomic(path, whole[:end])


class LabelBook:
    """The one writer of a label file: each event is on disk before the key is answered."""

    def __init__(self, folder: InspectionFolder) -> None:
        self.folder = folder
        _drop_torn_end(folder.labels_path)
        self.events = folder.events()
        self.labels = fold(self.events)

    def add(self, kind: EventKind, *, at: str = "", **fields: Any) -> LabelEvent:
        """Append one event, flushed to disk, and take it into the state."""
        event = next_event(self.events, at=at or now(), kind=kind, **fields)
        append_lines(self.folder.labels_path, [event])
        self.events.append(event)
        self.labels.apply(event)
        return event

    def judge(self, reader: str, sample: Sample, verdict: Verdict, **fields: Any) -> LabelEvent:
        """Append a blind reading."""
        return self.add(
            "judged",
            reader=reader,
            completion_id=sample.completion_id,
            verdict=verdict,
            characters=len(sample.text),
            **fields,
        )

    @property
    def fingerprint(self) -> str:
        """Hash of all labels."""
        return labels_fingerprint(self.events)
