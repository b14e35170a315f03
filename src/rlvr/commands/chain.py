"""What the commands share: one workspace opened, with its rows, rewards, fingerprints and the state of its gates."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlvr import fingerprint
from rlvr.errors import DataError, RlvrError
from rlvr.gates import ChainStatus, evaluate
from rlvr.records.base import Fingerprints, Record
from rlvr.workspace import Workspace, content_hash, read_objects

if TYPE_CHECKING:
    from rlvr.config.schema import Config, Reward
    from rlvr.records.admit import AdmitRecord
    from rlvr.rewards.composite import Component, Scorer
    from rlvr.task.dataset import Row

LABELS = "inspect/labels.jsonl"
LENGTH_STEP = 16
"""Lengths are rounded up to this many tokens before they are compared, so that a few tokens change no plan."""


class Chain:
    """One workspace and everything that its stages are made from, each read once.

    Args:
        folder: The workspace.
    """

    def __init__(self, folder: Path) -> None:
        self.workspace = Workspace(folder)

    @property
    def base(self) -> Path:
        """Folder that relative paths of the configuration are resolved against."""
        return self.workspace.root

    @property
    def config(self) -> Config:
        """The configuration."""
        return self.workspace.config

    @functools.cached_property
    def rows(self) -> list[Row]:
        """The training rows."""
        from rlvr.task.dataset import load_rows

        return load_rows(self.config.task.prompts, self.base, prompt_column=self.config.task.prompt_column)

    @functools.cached_property
    def held_out(self) -> list[Row]:
        """The held-out rows; empty where the configuration names none."""
        from rlvr.task.dataset import load_rows

        source = self.config.task.held_out
        if source is None:
            return []
        return load_rows(source, self.base, prompt_column=self.config.task.prompt_column)

    @functools.cached_property
    def scorer(self) -> Scorer:
        """All rewards as one."""
        from rlvr.rewards.composite import Scorer

        return Scorer([component(reward, self.base) for reward in self.config.rewards])

    @functools.cached_property
    def fingerprints(self) -> Fingerprints:
        """Fingerprints of everything as it stands now."""
        config, base = self.config, self.base
        return Fingerprints(
            reward=fingerprint.reward_fingerprint(config, base),
            data=fingerprint.data_fingerprint(self.rows),
            held_out=fingerprint.data_fingerprint(self.held_out),
            model=fingerprint.model_fingerprint(config, base),
            sampling=fingerprint.sampling_fingerprint(config, base),
            recipe=fingerprint.recipe_fingerprint(config),
            labels=labels_fingerprint(self.workspace),
            lengths=self.lengths_fingerprint,
        )

    @property
    def lengths_fingerprint(self) -> str:
        """Hash of the probe's lengths, rounded up; empty before there is a probe."""
        record = self.records().get("probe")
        lengths = getattr(record, "lengths", None)
        if lengths is None:
            return ""
        plain = lengths if isinstance(lengths, Mapping) else lengths.model_dump()
        return content_hash({name: _rounded(value) for name, value in plain.items()})

    def records(self) -> dict[str, Record | RlvrError | None]:
        """Return each gate's record, None where there is none, or the error that reading it raised."""
        from rlvr.records.audit import AuditRecord
        from rlvr.records.inspection import Attestation
        from rlvr.records.plan import PlanRecord
        from rlvr.records.probe import ProbeRecord

        kinds: dict[str, type[Record]] = {
            "audit": AuditRecord,
            "probe": ProbeRecord,
            "inspect": Attestation,
            "plan": PlanRecord,
        }
        return {"admit": self.admitted(), **{name: self._record(name, kind) for name, kind in kinds.items()}}

    def _record(self, name: str, kind: type[Record]) -> Record | RlvrError | None:
        try:
            return self.workspace.read_record(name, kind)
        except DataError as error:
            return error

    def admitted(self) -> AdmitRecord | RlvrError:
        """Return the admission, computed afresh: it is cheap and must never be stale."""
        from rlvr.task.admit import admit_config

        try:
            return admit_config(self.config, self.rows)
        except RlvrError as error:
            return error

    def status(self) -> ChainStatus:
        """Judge every gate as things stand."""
        records = self.records()
        gates = self.config.gates
        return evaluate(
            records,
            self.fingerprints,
            changed_rows=self._changed_rows(records.get("inspect")),
            waivers={"probe": gates.probe.waive, "plan": gates.plan.waive},
            is_demo=self.is_demo,
        )

    def _changed_rows(self, attestation: Record | RlvrError | None) -> float:
        known = getattr(attestation, "row_hashes", None)
        return fingerprint.changed_share(known, [row.row_hash for row in self.rows]) if known else 1.0

    @functools.cached_property
    def is_demo(self) -> bool:
        """Whether this is the embedded demo, untouched."""
        from rlvr.demo.workspace import is_demo

        return is_demo(self.base)


def component(reward: Reward, base: Path) -> Component:
    """Return one configured reward, loaded."""
    from rlvr.rewards import load_reward
    from rlvr.rewards.composite import DEFAULT_WEIGHTS, Component

    function = load_reward(reward.use, reward.arguments, base)
    role = reward.role or getattr(function, "role", "correctness")
    weight = reward.weight if reward.weight is not None else DEFAULT_WEIGHTS[role]
    name = reward.name or reward.use.rpartition(":")[2]
    return Component(name, function, weight, role, reward.cut)


def labels_fingerprint(workspace: Workspace) -> str:
    """Return the hash over every label event; empty before the first."""
    events = read_objects(workspace.gates / LABELS)
    return content_hash(events) if events else ""


def columns_of(rows: Sequence[Any]) -> dict[str, list[Any]]:
    """Return the columns of rows or samples as a reward receives them: one list a name, None where one lacks it."""
    names = sorted({name for row in rows for name in row.columns})
    return {name: [row.columns.get(name) for row in rows] for name in names}


def _rounded(value: Any) -> Any:
    if isinstance(value, int | float) and value > 1:
        return -(-int(value) // LENGTH_STEP) * LENGTH_STEP
    return None if isinstance(value, float) else value


Step = Callable[[], None]
