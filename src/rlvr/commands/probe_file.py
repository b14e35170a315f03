"""``rlvr probe --from FILE``: the same verdict from completions that somebody already has, without a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlvr.commands.probing import check_gold, doubtful_pay, reference_columns, score_samples, unpaid_matches
from rlvr.errors import InfrastructureError
from rlvr.probe.evidence import Facts
from rlvr.probe.imported import CUT, Imported, read_completions, with_scores
from rlvr.probe.steps import FILE
from rlvr.probe.summary import build_record
from rlvr.records.base import Fingerprints
from rlvr.workspace import stamp, write_atomic

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlvr.records.probe import ProbeRecord
    from rlvr.records.samples import ScoredSample
    from rlvr.rewards.composite import Scorer


def probe_file(
    path: Path,
    *,
    reward: str | None = None,
    arguments: Mapping[str, Any] | None = None,
    cut: float | None = None,
    seed: int = 0,
) -> ProbeRecord:
    """Judge the completions of a file.

    Args:
        path: JSONL, JSON, CSV or Parquet.
        reward: Built-in or ``path.py:function`` that scores them; None: the file's own verdicts.
        arguments: Arguments of that reward.
        cut: A score at or above it counts as right.
        seed: Which examples are shown.

    Raises:
        DataError: A row is not a completion, or has no verdict; row named.
        ConfigError: The reward does not exist.
    """
    from rlvr.task.dataset import read_file

    rows = read_file(path) if reward is not None else with_scores(read_file(path), _scores_beside(path))
    found = read_completions(rows, str(path), cut=CUT if cut is None else cut, needs_verdict=reward is None)
    scorer = None if reward is None else _scorer(reward, arguments or {}, cut)
    scores = found.scores if scorer is None else _scored(found, scorer)
    return build_record(
        found.samples,
        scores,
        _facts(found, scores, scorer),
        remarks=[
            *found.remarks,
            *doubtful_pay(found.samples, scores, reference_columns(scorer) if scorer else []),
        ],
        seed=seed,
        stamp=stamp(Fingerprints()),
    )


def write_page(record: ProbeRecord, path: Path, page: Path | None) -> Path | None:
    """Write the page, beside the file unless ``page`` says where; None where that folder cannot be written to."""
    from rlvr.probe.page import render_page

    target = page or path.with_suffix(".probe.html")
    html = render_page(record, title=path.name, model="completions from a file")
    try:
        return write_atomic(target, html.encode("utf-8", "backslashreplace"))
    except InfrastructureError:
        if page is not None:
            raise
        return None


def _scores_beside(path: Path) -> dict[str, ScoredSample]:
    """Return the scores that a workspace's probe kept beside its completions."""
    from rlvr.records.samples import ScoredSample
    from rlvr.workspace import read_lines

    scores = path.with_name("scores.jsonl")
    if path.name != "completions.jsonl" or not scores.is_file():
        return {}
    return {one.completion_id: one for one in read_lines(scores, ScoredSample)}


def _scorer(reward: str, arguments: Mapping[str, Any], cut: float | None) -> Scorer:
    from rlvr.commands.chain import component
    from rlvr.config.schema import Reward
    from rlvr.rewards.composite import Scorer

    return Scorer([component(Reward(use=reward, cut=cut, arguments=dict(arguments)), Path.cwd())])


def _scored(found: Imported, scorer: Scorer) -> list[ScoredSample]:
    by_id: dict[str, ScoredSample] = {}
    for chat in (True, False):
        part = [one for one, own in zip(found.samples, found.is_chat, strict=True) if own is chat]
        if part:
            by_id.update((one.completion_id, one) for one in score_samples(scorer, part, chat=chat))
    return [by_id[one.completion_id] for one in found.samples]


def _facts(found: Imported, scores: list[ScoredSample], scorer: Scorer | None) -> Facts:
    columns = reference_columns(scorer) if scorer else []
    checked, paid = 0, 0
    if scorer is not None and not any(one.outcome == "right" for one in scores):
        firsts = list({one.row_hash: one for one in found.samples}.values())
        checked, paid = check_gold(scorer, firsts, found.is_chat[0])
    low, training = found.temperatures
    return Facts(
        gold_checked=checked,
        gold_paid=paid,
        unpaid_matches=unpaid_matches(found.samples, scores, columns),
        low_temperature=low,
        training_temperature=training,
        steps=FILE,
    )


def zeros_of(record: ProbeRecord) -> list[dict[str, Any]]:
    """Return the unpaid completions that are to be read where nothing succeeded."""
    if record.causes.zeros == 0 or any(one.cause == "right" for one in record.examples):
        return []
    return [
        {
            "row": one.row,
            "prompt": one.prompt[-1].content,
            "completion": one.completion,
            "reference": one.reference,
            "cause": one.cause,
            "why": one.score.why,
        }
        for one in record.examples
        if one.cause != "infrastructure"
    ][:10]
