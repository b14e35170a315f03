"""What an export is made from, gathered by the command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlvr.config.schema import Config
    from rlvr.gates import ChainStatus
    from rlvr.records.base import Fingerprints
    from rlvr.records.plan import PlanRecord
    from rlvr.records.run import Manifest


@dataclass(frozen=True)
class ExportRow:
    """One row as a trainer reads it.

    Attributes:
        prompt: Chat messages with the system prompt, or plain text for a model without a chat template.
        columns: What the rewards need.
    """

    prompt: Any
    columns: Mapping[str, Any]


@dataclass(frozen=True)
class ExportInputs:
    """One workspace as it is handed over.

    Attributes:
        config: The configuration.
        plan: The plan whose settings are handed over.
        status: The gates as they stand.
        fingerprints: Hashes of everything as it stands.
        training: Training rows.
        held_out: Held-out rows.
        model: Checkpoint as a trainer loads it: an absolute path, or a Hub id.
        weights: Component name to weight, in the order in which they are logged.
        local_files: Path under ``task/`` to the bytes of a file that the rewards are made of.
        local_uses: ``use`` of the configuration to the same under ``task/``.
        chat_template: Text of the configured chat template; empty for the model's own.
        runs: Manifests of the runs of the workspace.
        samples: Whether the brief may hold completions.
        name: Name of the workspace's folder.
        made_at: UTC time, ISO 8601.
        version: Version of rlvr.
    """

    config: Config
    plan: PlanRecord
    status: ChainStatus
    fingerprints: Fingerprints
    training: Sequence[ExportRow]
    held_out: Sequence[ExportRow]
    model: str
    weights: Mapping[str, float]
    local_files: Mapping[str, bytes] = field(default_factory=dict)
    local_uses: Mapping[str, str] = field(default_factory=dict)
    chat_template: str = ""
    runs: Sequence[Manifest] = ()
    samples: bool = True
    name: str = "task"
    made_at: str = ""
    version: str = ""
