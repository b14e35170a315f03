"""What the page is made from, gathered by the command: records and rows, already read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlvr.gates import ChainStatus
    from rlvr.records.inspection import Attestation
    from rlvr.records.run import Evaluation, Manifest
    from rlvr.records.watch import Findings


@dataclass(frozen=True)
class ReportInputs:
    """One run as far as it is known; every part may be missing.

    Attributes:
        name: Name of the run, or of the folder.
        manifest: The run's manifest; None for a folder that something else wrote.
        log: Logged rows in order of steps, with TRL's names and ``step``.
        rollouts: On-policy completions, rows as ``train.rollouts`` writes them.
        before: Held-out accuracy of the base model, measured the same way as ``after``.
        after: Held-out accuracy of the trained model.
        status: The workspace's gates as they stand now; None without a workspace.
        reading: Attestation over this run's own completions.
        findings: What watching found.
        missing: What could not be found or read, and what that leaves out; sentences.
        samples: Whether prompts and completions may be shown.
        source: The folder, as the reader knows it.
        made_at: UTC time of the page, ISO 8601.
        version: Version of rlvr that writes the page.
    """

    name: str
    manifest: Manifest | None = None
    log: Sequence[Mapping[str, Any]] = ()
    rollouts: Sequence[Mapping[str, Any]] = ()
    before: Evaluation | None = None
    after: Evaluation | None = None
    status: ChainStatus | None = None
    reading: Attestation | None = None
    findings: Findings | None = None
    missing: Sequence[str] = field(default_factory=tuple)
    samples: bool = True
    source: str = ""
    made_at: str = ""
    version: str = ""
