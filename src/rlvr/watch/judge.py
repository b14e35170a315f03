"""From a source that was read to its findings."""

from __future__ import annotations

import dataclasses

from rlvr.records.watch import Findings
from rlvr.watch.ingest.source import Source
from rlvr.watch.symptoms import judge_history


def judge_source(source: Source, *, experts: bool | None = None) -> Findings:
    """Judge a source.

    Args:
        source: What was read.
        experts: Whether the model routes between experts, when the caller knows better than the files.
    """
    facts = source.facts if experts is None else dataclasses.replace(source.facts, experts=experts)
    found = judge_history(source.history, source.completions, facts)
    return found.model_copy(
        update={
            "source": source.path,
            "format": source.format,
            "remarks": [*dict.fromkeys([*source.remarks, *found.remarks])],
        }
    )
