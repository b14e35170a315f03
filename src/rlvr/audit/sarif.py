"""Findings as SARIF 2.1.0, which code hosts and editors show at the causing line (OASIS standard)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlvr.records.audit import Finding
from rlvr.workspace import write_atomic

_LEVELS = {"critical": "error", "high": "error", "medium": "warning", "low": "note", "info": "note"}


def write_sarif(path: Path, findings: Sequence[Finding]) -> Path:
    """Write the findings as a SARIF file, atomically."""
    return write_atomic(path, (json.dumps(as_sarif(findings), indent=2) + "\n").encode())


def as_sarif(findings: Sequence[Finding]) -> dict[str, Any]:
    """Return the findings as one SARIF run; accepted ones carry a suppression with its reason."""
    from rlvr import __version__

    rules = [{"id": name, "name": name} for name in dict.fromkeys(finding.category for finding in findings)]
    return {
        "version": "2.1.0",
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "runs": [
            {
                "tool": {"driver": {"name": "rlvr audit", "version": __version__, "rules": rules}},
                "results": [_result(finding) for finding in findings],
            }
        ],
    }


def _result(finding: Finding) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.category,
        "level": _LEVELS[finding.severity],
        "message": {"text": f"{finding.message} Fix: {finding.fix}."},
        "partialFingerprints": {"findingId/v1": finding.id},
        "properties": {
            "severity": finding.severity,
            "direction": finding.direction,
            "row": finding.row,
            "completion": finding.completion,
            "score": finding.score,
        },
    }
    if finding.file:
        region = {"startLine": finding.line or 1}
        place = {"artifactLocation": {"uri": Path(finding.file).as_uri()}, "region": region}
        result["locations"] = [{"physicalLocation": place}]
    if finding.accepted_because:
        result["suppressions"] = [{"kind": "external", "justification": finding.accepted_because}]
    return result
