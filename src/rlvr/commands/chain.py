"""What the commands share: one workspace opened, with its rows, rewards, fingerprints and the state of its gates."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlvr import fingerprint
from rlvr.errors import DataError, RlvrError
from rlvr.gates import ChainStatus, evaluate
from rlvr.records.base import Fingerprints, Record
from rlvr.workspace import Workspace, content_hash, stamp

if TYPE_CHECKING:
    from rlvr.config.schema import Config, Reward, Role
    from rlvr.records.admit import AdmitRecord
    from rlvr.rewards.composite import Component, Scorer
    from rlvr.task.dataset import Row

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

    @property
    def fingerprints(self) -> Fingerprints:
        """Fingerprints of everything as it stands; labels and lengths are read anew, since the stages write them."""
        live = {"labels": self.labels_fingerprint, "lengths": self.lengths_fingerprint}
        return self._inputs.model_copy(update=live)

    @functools.cached_property
    def _inputs(self) -> Fingerprints:
        config, base = self.config, self.base
        return Fingerprints(
            reward=fingerprint.reward_fingerprint(config, base),
            data=fingerprint.data_fingerprint(self.rows),
            held_out=fingerprint.data_fingerprint(self.held_out),
            model=fingerprint.model_fingerprint(config, base),
            sampling=fingerprint.sampling_fingerprint(config, base),
            recipe=fingerprint.recipe_fingerprint(config),
        )

    @property
    def labels_fingerprint(self) -> str:
        """Hash over every label; empty before the first."""
        from rlvr.inspection.folder import InspectionFolder

        return InspectionFolder.of_gates(self.workspace.gates).labels_fingerprint()

    @property
    def lengths_fingerprint(self) -> str:
        """Hash of the probe's lengths, rounded up; empty before there is a probe."""
        from rlvr.records.probe import ProbeRecord

        lengths = getattr(self._record("probe", ProbeRecord), "lengths", None)
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
        found = {name: self._record(name, kind) for name, kind in kinds.items()}
        if found["inspect"] is not None and isinstance(self._seen_rows, DataError):
            found["inspect"] = self._seen_rows
        return {"admit": self.admitted(), **found}

    def _record(self, name: str, kind: type[Record]) -> Record | RlvrError | None:
        try:
            return self.workspace.read_record(name, kind)
        except DataError as error:
            return error

    def admitted(self) -> AdmitRecord | RlvrError:
        """Return the admission, computed afresh: it is cheap and must never be stale."""
        from rlvr.generate.location import is_vision_model, locate
        from rlvr.task.admit import admit

        task = self.config.task
        try:
            found = admit(
                task.signal,
                self.config.rewards,
                self.rows,
                held_out=self.held_out,
                routing=task.routing,
                calibration=self.calibration,
                has_vision_tower=is_vision_model(locate(self.config.model, self.base)),
            )
            return found.model_copy(update=stamp(self._inputs))
        except RlvrError as error:
            return error

    @property
    def calibration(self) -> dict[str, Any] | None:
        """The judge's calibration record, where one of the rewards names one."""
        for reward in self.config.rewards:
            name = reward.arguments.get("calibration")
            if isinstance(name, str) and (self.base / name).is_file():
                found: dict[str, Any] = json.loads((self.base / name).read_text("utf-8"))
                return found
        return None

    def status(self) -> ChainStatus:
        """Judge every gate as things stand."""
        records = self.records()
        gates = self.config.gates
        return evaluate(
            records,
            self.fingerprints,
            changed_rows=self._changed_rows(),
            waivers={"probe": gates.probe.waive, "plan": gates.plan.waive},
            is_demo=self.is_demo,
        )

    @property
    def _seen_rows(self) -> list[str] | DataError:
        """The rows that the inspection knows, or why they cannot be told."""
        from rlvr.inspection.folder import InspectionFolder

        try:
            return InspectionFolder.of_gates(self.workspace.gates).seen_rows()
        except DataError as error:
            return error

    def _changed_rows(self) -> float:
        known = self._seen_rows
        if isinstance(known, DataError):
            return 1.0
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
    role: Role = reward.role or getattr(function, "role", None) or "correctness"
    weight = reward.weight if reward.weight is not None else DEFAULT_WEIGHTS[role]
    name = reward.name or reward.use.rpartition(":")[2]
    return Component(name, function, weight, role, reward.cut)


def columns_of(rows: Sequence[Any]) -> dict[str, list[Any]]:
    """Return the columns of rows or samples as a reward receives them: one list a name, None where one lacks it."""
    names = sorted({name for row in rows for name in row.columns})
    return {name: [row.columns.get(name) for row in rows] for name in names}


def _rounded(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _rounded(part) for name, part in value.items()}
    if isinstance(value, int | float) and value > 1:
        return -(-int(value) // LENGTH_STEP) * LENGTH_STEP
    return None if isinstance(value, float) else value
