"""Folders: our runs, TRL's output, TensorBoard, wandb; and the facts that stand beside a log."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from rlvr.errors import DataError
from rlvr.watch.completions import Completions, completions_from_rows
from rlvr.watch.facts import Facts, has_experts
from rlvr.watch.history import History, history_from_rows, number
from rlvr.watch.ingest.source import Row, Rows, Source, refuse_empty, rows_of, split
from rlvr.watch.symptoms.case import Case

_STATE: Final = "trainer_state.json"
_ROLLOUTS: Final = (
    "completions.jsonl.gz",
    "completions.jsonl",
    "completions.parquet",
    "rollouts.jsonl",
    "completions",
)
_LOGS: Final = ("*.jsonl", "*.jsonl.gz", "*.csv", "*.tsv", "*.json", "*.log", "*.txt", "*.out", "*.wandb", "*.db",
                "*.ipynb", "*.parquet")  # fmt: skip
_NOT_LOGS: Final = re.compile(
    r"config|tokenizer|vocab|special_tokens|merges|added_tokens|adapter|manifest|index\.json|requirements|"
    r"^completions|rollouts|args\.json|metadata|summary",
    re.IGNORECASE,
)


def read_folder(folder: Path, *, run: str | None, completions: Path | None) -> Source:
    """Read the log in a folder: our ``log.jsonl``, the newest trainer_state.json, event files, or any single log.

    Raises:
        DataError: ``watch.no-log`` when the folder holds none, ``watch.several-logs`` when it is unclear which.
    """
    facts = facts_beside(folder)
    rows, path, remarks = _log_in(folder, run)
    history, inline = split(rows.rows, run=run if rows.format != "TensorBoard" else None)
    texts = read_completions(completions or folder, with_solved_weights(facts, history))
    kind = "run folder" if (folder / "log.jsonl").is_file() else rows.format
    source = Source(history, texts or inline, facts, kind, str(path), (*remarks, *rows.remarks))
    return refuse_empty(source)


def read_completions(place: Path, facts: Facts) -> Completions | None:
    """Read completions from a file, or from a folder that has them as we or TRL write them."""
    weights = dict(facts.reward_weights) or None
    rewards = [name for name in facts.reward_names if name]
    found = completions_from_rows(_rollout_rows(place), rewards=rewards, weights=weights)
    if found is None or set(rewards) <= set(found.components):
        return found
    # A total without one of its rewards says nothing of the groups: better every column that may be a reward.
    return completions_from_rows(_rollout_rows(place), weights=weights)


def with_solved_weights(facts: Facts, history: History) -> Facts:
    """Return the facts with the weights that the log shows, where nothing beside it states them."""
    if facts.reward_weights:
        return facts
    solved = {name: round(weight, 4) for name, weight in Case(history, None, facts).weights.items()}
    return dataclasses.replace(facts, reward_weights=solved)


def facts_beside(path: Path) -> Facts:
    """Return what the files beside a log say of its model and settings."""
    folder = path if path.is_dir() else path.parent
    manifest = _object(folder / "manifest.json") or _object(folder.parent / "manifest.json")
    config = _model_config(folder)
    settings = {**_object(folder / "args.json"), **_settings(manifest)}
    model = str(manifest.get("model") or config.get("_name_or_path") or _adapter_base(folder) or "")
    rewards = [entry for entry in manifest.get("rewards") or [] if isinstance(entry, Mapping)]
    return Facts(
        experts=has_experts(config, model),
        settings=settings,
        reward_names=tuple(_reward_name(r) for r in rewards),
        reward_weights=_weights(rewards, settings.get("reward_weights")),
        pays_length=tuple(_reward_name(r) for r in rewards if "length" in str(r.get("use"))),
        model=model,
    )


def _reward_name(reward: Mapping[str, Any]) -> str:
    """Return the name that a reward's column has: its own, else what stands after the file's name."""
    return str(reward.get("name") or str(reward.get("use") or "").rpartition(":")[2])


def _weights(rewards: Sequence[Mapping[str, Any]], trained: Any) -> dict[str, float]:
    """Return the weights that the trainer had, else those that every reward states; otherwise none."""
    names = [_reward_name(reward) for reward in rewards]
    stated = [reward.get("weight") for reward in rewards]
    for weights in (trained, stated):
        if isinstance(weights, Sequence) and len(weights) == len(names):
            found = [number(weight) for weight in weights if weight is not None]
            known = [weight for weight in found if weight is not None]
            if len(known) == len(names):
                return dict(zip(names, known, strict=True))
    return {}


def _log_in(folder: Path, run: str | None) -> tuple[Rows, Path, list[str]]:
    if (folder / "log.jsonl").is_file():
        return rows_of(folder / "log.jsonl"), folder, []
    states = _trainer_states(folder)
    if states:
        return rows_of(states[-1]), states[-1], []
    events = _event_folders(folder)
    if events:
        return _events(events, folder, run)
    return _only_log(folder)


def _trainer_states(folder: Path) -> list[Path]:
    """Return trainer_state.json files, the furthest checkpoint last."""
    found = [*folder.glob(_STATE), *folder.glob(f"checkpoint-*/{_STATE}"), *folder.glob(f"trainer/{_STATE}")]
    found += folder.glob(f"trainer/checkpoint-*/{_STATE}")
    return sorted(found, key=lambda p: (_last_number(p.parent.name), p.stat().st_mtime))


def _last_number(name: str) -> int:
    digits = re.findall(r"\d+", name)
    return int(digits[-1]) if digits else 1 << 60


def _event_folders(folder: Path) -> dict[Path, list[Path]]:
    found: dict[Path, list[Path]] = {}
    for file in folder.rglob("*tfevents*"):
        found.setdefault(file.parent, []).append(file)
    return found


def _events(events: dict[Path, list[Path]], folder: Path, run: str | None) -> tuple[Rows, Path, list[str]]:
    from rlvr.watch.ingest import tensorboard

    by_name = {str(place.relative_to(folder)): place for place in events}
    if run is not None and run in by_name:
        place = by_name[run]
    else:
        place = max(events, key=lambda p: sum(f.stat().st_size for f in events[p]))
    remarks = []
    if len(events) > 1:
        shown = ", ".join(sorted(by_name)[:5])
        remarks.append(
            f"{len(events)} folders hold event files ({shown}); judged: {place.relative_to(folder)}"
        )
    return tensorboard.event_folder(events[place]), place, remarks


def _only_log(folder: Path) -> tuple[Rows, Path, list[str]]:
    """Return the one file of a folder that is a log."""
    places = [folder, folder / "files", folder / "logs"]
    found = sorted(
        {p for place in places for glob in _LOGS for p in place.glob(glob) if not _NOT_LOGS.search(p.name)}
    )
    usable = []
    for path in found:
        with contextlib.suppress(DataError):
            rows = rows_of(path)
            if len(history_from_rows(rows.rows)) > 0:
                usable.append(path)
    if len(usable) == 1:
        return rows_of(usable[0]), usable[0], []
    if not usable:
        raise DataError(
            "watch.no-log",
            "no log of a run in this folder",
            where=str(folder),
            expected="log.jsonl, trainer_state.json, event files of TensorBoard, or one CSV, JSONL or text log",
            fix="name the log file itself",
        )
    raise DataError(
        "watch.several-logs",
        f"several logs: {', '.join(p.name for p in usable[:6])}",
        where=str(folder),
        fix="name the one to judge",
    )


def _rollout_rows(place: Path) -> Iterator[Row]:
    for path in _rollout_files(place):
        with contextlib.suppress(DataError):
            yield from rows_of(path).rows


def _rollout_files(place: Path) -> Sequence[Path]:
    if place.is_file():
        return [place]
    for name in _ROLLOUTS:
        for base in (place, place.parent if place.name.startswith("checkpoint-") else place):
            found = base / name
            if found.is_file():
                return [found]
            if found.is_dir():
                return sorted(found.glob("*.parquet")) or sorted(found.glob("*.jsonl*"))
    return sorted(place.glob("completions_*.parquet"))


def _model_config(folder: Path) -> dict[str, Any]:
    places = [
        folder,
        folder / "trainer",
        *sorted(folder.glob("checkpoint-*")),
        *sorted(folder.glob("trainer/check*")),
    ]
    for place in places:
        config = _object(place / "config.json")
        if config.get("model_type"):
            return config
    return {}


def _adapter_base(folder: Path) -> str:
    for place in (folder, *sorted(folder.glob("checkpoint-*"))):
        base = _object(place / "adapter_config.json").get("base_model_name_or_path")
        if base:
            return str(base)
    return ""


def _settings(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return field to value; the manifest has ``{value, why}`` for each."""
    return {
        name: entry.get("value") if isinstance(entry, Mapping) else entry
        for name, entry in (manifest.get("settings") or {}).items()
    }


def _object(path: Path) -> dict[str, Any]:
    with contextlib.suppress(OSError, ValueError):
        found = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(found, dict):
            return found.get("record", found) if isinstance(found.get("record"), dict) else found
    return {}
