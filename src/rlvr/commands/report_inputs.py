"""Gathers what a report is made from: a run of a workspace, a moved run folder, or a folder that TRL wrote.

Whatever is damaged or absent becomes a sentence on the page, never the end of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rlvr.errors import DataError, RlvrError
from rlvr.workspace import now, read_objects, read_record

if TYPE_CHECKING:
    from rlvr.commands.chain import Chain
    from rlvr.records.base import Record
    from rlvr.records.watch import Findings
    from rlvr.report.inputs import ReportInputs
    from rlvr.watch.ingest import Source

COUNTED = ("step", "outcome", "tokens")
"""Columns of a rollout that the page's curves need."""

T = TypeVar("T")
R = TypeVar("R", bound="Record")


def open_place(run: str | None, folder: Path) -> tuple[Path, Chain | None]:
    """Return the folder that ``run`` names, and the workspace where there is one.

    Raises:
        DataError: ``run.missing`` when nothing of that name exists.
    """
    from rlvr.commands.chain import Chain
    from rlvr.workspace import CONFIG_NAME

    if not (folder / CONFIG_NAME).is_file():
        if run is not None and Path(run).is_dir():
            return Path(run), _owner(Path(run))
        Chain(folder)  # raises workspace.missing, with what to do
    chain = Chain(folder)
    if run is None:
        latest = chain.workspace.latest_run()
        if latest is None:
            raise DataError("run.missing", "no run yet", where=str(chain.workspace.runs), fix="`rlvr train`")
        return latest, chain
    if (chain.workspace.runs / run).is_dir():
        return chain.workspace.runs / run, chain
    if Path(run).is_dir():
        return Path(run), _owner(Path(run))
    return chain.workspace.run_folder(run), chain  # raises run.missing, with the nearest name


def _owner(place: Path) -> Chain | None:
    """Return the workspace that a run folder stands in, where it does."""
    from rlvr.commands.chain import Chain
    from rlvr.workspace import CONFIG_NAME

    root = place.absolute().parent.parent
    inside = place.absolute().parent.name == "runs" and (root / CONFIG_NAME).is_file()
    return Chain(root) if inside else None


def gather(place: Path, chain: Chain | None, *, samples: bool = True) -> ReportInputs:
    """Read everything that a folder holds for its report."""
    from rlvr import __version__
    from rlvr.records.inspection import Attestation
    from rlvr.records.run import Evaluation, Manifest
    from rlvr.report.inputs import ReportInputs

    missing: list[str] = []
    manifest = _record(place / "manifest.json", Manifest, missing)
    name = place.absolute().name
    if manifest is not None and manifest.name != name:
        missing.append(f"The folder was renamed: its manifest calls the run {manifest.name}.")
        manifest = manifest.model_copy(update={"name": name})
    after = _record(place / "evaluation.json", Evaluation, missing)
    before = _before(chain, missing)
    source = _watched(place)
    log = _log(place, source, missing)
    _say_absent(place, manifest is not None, chain is not None, before, after, missing)
    return ReportInputs(
        name=name,
        manifest=manifest,
        log=log,
        rollouts=_rollouts(place, missing),
        before=before,
        after=after,
        status=_attempt(chain.status, missing, "the gates are shown as the run began") if chain else None,
        reading=_record(place / "inspect.json", Attestation, missing),
        findings=_findings(source),
        missing=missing,
        samples=samples,
        source=_shown_place(place, chain),
        made_at=now(),
        version=__version__,
    )


def _shown_place(place: Path, chain: Chain | None) -> str:
    """Return where the run stands, without the folders above its workspace: a page travels."""
    whole = place.absolute()
    above = chain.base.parent if chain else whole.parent
    return whole.relative_to(above).as_posix() if whole.is_relative_to(above) else whole.name


def _before(chain: Chain | None, missing: list[str]) -> Any:
    from rlvr.records.run import Evaluation

    if chain is None:
        return None
    return _record(chain.workspace.record_path("evaluation"), Evaluation, missing)


def _record(path: Path, kind: type[R], missing: list[str]) -> R | None:
    try:
        return read_record(path, kind)
    except DataError as error:
        found = _lenient(path, kind)
        if found is None:
            missing.append(f"{path.name} could not be read: {error.found}.")
        else:
            missing.append(f"{path.name}: {error.found}; what this version knows of it is shown.")
        return found
    except OSError as error:
        missing.append(f"{path.name} could not be read: {error.strerror or error}.")
        return None


def _lenient(path: Path, kind: type[R]) -> R | None:
    """Return the fields of a record of another version that this one knows; None when they are not enough."""
    from pydantic import ValidationError

    try:
        body = json.loads(path.read_text("utf-8"))["record"]
        return kind.model_validate({name: body[name] for name in kind.model_fields if name in body})
    except (OSError, ValueError, KeyError, TypeError, RecursionError, ValidationError):
        return None


def _watched(place: Path) -> Source | None:
    """Return the run as watching reads it, whatever wrote it; None where there is nothing to judge."""
    from rlvr.watch.ingest import read_source

    try:
        return read_source(place)
    except RlvrError:
        return None


def _findings(source: Source | None) -> Findings | None:
    from rlvr.watch.judge import judge_source

    return judge_source(source) if source is not None else None


def _log(place: Path, source: Source | None, missing: list[str]) -> list[dict[str, Any]]:
    try:
        rows = read_objects(place / "log.jsonl")
    except DataError as error:
        missing.append(f"log.jsonl could not be read ({error.found}).")
        rows = []
    if rows:
        return rows
    rows = _history_rows(source) if source is not None else []
    if not rows:
        missing.append("No logged numbers that a curve could be drawn from.")
    return rows


def _history_rows(source: Source) -> list[dict[str, Any]]:
    """Return a history that watching read as rows under its own names, with components under TRL's."""
    history = source.history
    columns = {name: values for name, values in history.columns.items() if len(values) == len(history)}
    columns |= {f"rewards/{name}/mean": one.mean for name, one in history.components.items()}
    return [
        {"step": float(step), **{name: float(values[row]) for name, values in columns.items()}}
        for row, step in enumerate(history.steps)
    ]


def _rollouts(place: Path, missing: list[str]) -> list[dict[str, Any]]:
    """Return every rollout by step, outcome and length, and whole where the page shows it: runs are long."""
    from rlvr.report.samples import telling_steps
    from rlvr.train.rollouts import NAME, read_rollouts

    try:
        rows = [{name: row.get(name) for name in COUNTED} for row in read_rollouts(place / NAME)]
        shown = set(telling_steps(row["step"] for row in rows))
        whole = iter([row for row in read_rollouts(place / NAME) if row.get("step") in shown])
        rows = [next(whole, row) if row["step"] in shown else row for row in rows]
    except (OSError, ValueError) as error:
        missing.append(f"{NAME} could not be read ({error}).")
        rows = []
    return rows or _parquet_rollouts(place)


def _parquet_rollouts(place: Path) -> list[dict[str, Any]]:
    """Return the completions that TRL's own ``log_completions`` kept: the last batch of each logged step."""
    paths = sorted(place.glob("completions/*.parquet"))
    if not paths:
        return []
    import pyarrow.parquet as parquet

    rows: list[dict[str, Any]] = []
    for path in paths:
        try:
            rows += parquet.read_table(path).to_pylist()
        except (OSError, ValueError):
            continue  # pyarrow's errors are ValueErrors; a torn file shows nothing
    return rows


def _attempt(work: Callable[[], T], missing: list[str], instead: str) -> T | None:
    try:
        return work()
    except RlvrError as error:
        missing.append(f"The workspace could not be read ({error.found}); {instead}.")
        return None


def _say_absent(
    place: Path, has_manifest: bool, has_workspace: bool, before: Any, after: Any, missing: list[str]
) -> None:
    said = " ".join(missing)
    if not has_manifest and "manifest.json" not in said:
        missing.append(
            "No manifest.json: another program wrote this folder, so settings, reasons and gates are not known."
        )
    if after is None and "evaluation.json" not in said:
        missing.append("No evaluation.json: held-out accuracy after training was not measured.")
    if not has_workspace:
        missing.append(
            "The folder stands in no workspace, so the accuracy before and the gates of today are not known."
        )
    elif before is None:
        missing.append("No gates/evaluation.json: held-out accuracy before training was not measured.")
