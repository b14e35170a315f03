"""Reads completions that somebody already has: one a line, with a verdict of their own or to be scored here."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from rlvr.errors import DataError, did_you_mean
from rlvr.probe.estimate import LOW_TEMPERATURE
from rlvr.probe.evidence import IN_FILE
from rlvr.records.samples import Message, Sample, ScoredSample
from rlvr.workspace import content_hash

PROMPT = ("prompt", "question", "problem", "instruction", "query", "input", "messages")
COMPLETION = (
    "completion",
    "response",
    "output",
    "generation",
    "generated_text",
    "text",
    "completions",
    "responses",
)
REWARD = (
    "reward",
    "score",
    "rewards",
    "scores",
    "correct",
    "is_correct",
    "success",
    "passed",
    "accepted",
    "right",
)
TRUNCATED = ("truncated", "is_truncated", "clipped")
FINISH = ("finish_reason", "stop_reason")
TOKENS = ("tokens", "num_tokens", "completion_tokens", "n_tokens", "completion_length")
OUTCOMES = ("right", "wrong", "ill-formed", "not-applicable", "infrastructure")
FORMAT = ("well_formed", "format", "format_reward", "format_score", "format_ok", "parsed_ok")
EXTRACTED = ("extracted", "parsed", "parsed_answer", "extracted_answer")
SAMPLE = ("completion_id", "row_hash", "columns")
"""Keys by which a row is known as one that this package sampled itself; its data stand in ``columns``."""
OF_SAMPLE = (
    "prompt",
    "completion",
    "temperature",
    "tokens",
    "truncated",
    "outcome",
    "reward",
    "extracted",
    "why",
)
NAMED = "--reward exact, --reward file.py:function"
CUT = 1.0
Outcome = Literal["right", "wrong", "ill-formed", "not-applicable", "infrastructure"]


@dataclass(slots=True)
class Imported:
    """Completions of a file.

    Attributes:
        samples: In the order of the file; ``source`` is ``low`` where the file holds two temperatures.
        scores: The file's own verdicts; empty when it has none.
        is_chat: Whether prompts are chat messages, sample by sample.
        remarks: What was noticed while reading.
        temperatures: Low and training temperature as the file says; None when it does not.
    """

    samples: list[Sample] = field(default_factory=list)
    scores: list[ScoredSample] = field(default_factory=list)
    is_chat: list[bool] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    temperatures: tuple[float | None, float | None] = (None, None)


def read_completions(
    rows: Iterable[Mapping[str, Any]], where: str, *, cut: float = CUT, needs_verdict: bool = True
) -> Imported:
    """Return the completions of a file.

    Args:
        rows: Its rows: ``prompt``, ``completion`` and, unless they are scored here, ``reward``, ``score``,
            ``correct`` or ``outcome``; ``temperature``, ``truncated`` or ``finish_reason``, ``tokens`` and references
            are read where they stand. A row may also hold lists: ``completions`` with ``rewards``.
        where: Name for messages.
        cut: A reward at or above it counts as right.
        needs_verdict: Whether a row without a verdict is an error.

    Raises:
        DataError: A row lacks prompt, completion or verdict, or holds something else in their place; row named.
    """
    found = Imported()
    seen: dict[str, int] = {}
    for number, kept in enumerate(rows):
        row = _of_sample(kept)
        for one in _flattened(row, f"{where}, row {number}"):
            _add(found, one, number, f"{where}, row {number}", seen, cut, needs_verdict)
    if not found.samples:
        raise DataError("data.empty", "no completions", where=where, expected="one JSON object a line")
    _sort_temperatures(found)
    found.remarks += _remarks(found, cut)
    return found


def _of_sample(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a row that this package kept (:class:`~rlvr.records.samples.Sample`) as the plain row it came from."""
    columns = row.get("columns")
    if not isinstance(columns, Mapping) or not all(key in row for key in SAMPLE):
        return row
    return {**columns, **{key: row[key] for key in OF_SAMPLE if key in row}}


def with_scores(
    rows: Iterable[Mapping[str, Any]], scores: Mapping[str, ScoredSample]
) -> Iterable[Mapping[str, Any]]:
    """Yield kept rows with what the reward said of them, where that was kept too.

    Args:
        rows: Rows of a file of kept completions.
        scores: Completion id to its score.
    """
    for row in rows:
        score = scores.get(str(row.get("completion_id")))
        if score is None:
            yield row
        else:
            own = {"outcome": score.outcome, "reward": score.total, "extracted": score.extracted}
            yield {**row, **own, "why": score.why}


def _flattened(row: Mapping[str, Any], where: str) -> Iterable[dict[str, Any]]:
    """Yield one row a completion where a row holds several."""
    several = next((key for key in ("completions", "responses") if _is_several(row.get(key))), None)
    if several is None:
        yield dict(row)
        return
    texts = row[several]
    lists = {
        key: value
        for key, value in row.items()
        if key != several
        and isinstance(value, list)
        and key in (*REWARD, *TRUNCATED, *FINISH, *TOKENS, "outcomes")
    }
    for key, value in lists.items():
        if len(value) != len(texts):
            raise DataError(
                "data.damaged", f"{len(value)} entries in {key!r} for {len(texts)} completions", where=where
            )
    rest = {key: value for key, value in row.items() if key != several and key not in lists}
    for place, text in enumerate(texts):
        own = {"outcome" if key == "outcomes" else key: value[place] for key, value in lists.items()}
        yield {**rest, **own, "completion": text}


def _is_several(value: Any) -> bool:
    return isinstance(value, list) and not all(isinstance(one, Mapping) and "role" in one for one in value)


def _add(
    found: Imported,
    row: dict[str, Any],
    number: int,
    where: str,
    seen: dict[str, int],
    cut: float,
    needs_verdict: bool,
) -> None:
    from rlvr.task.dataset import as_messages

    prompt_key = _column(row, PROMPT, where, "prompt")
    completion_key = _column(row, COMPLETION, where, "completion")
    prompt, is_chat = as_messages(row[prompt_key], where)
    completion = _completion(row[completion_key], where)
    columns = {key: value for key, value in row.items() if key not in (prompt_key, completion_key)}
    key = content_hash([[one.role, one.content.strip()] for one in prompt])
    index = seen[key] = seen.get(key, -1) + 1
    text = "\n".join(one.content for one in completion)
    sample = Sample(
        completion_id=content_hash([key, index, text]),
        row=number,
        row_hash=key,
        prompt=prompt,
        completion=completion,
        source="import",
        temperature=_number(row.get("temperature"), where, "temperature", 1.0),
        index=index,
        tokens=int(_number(_first(row, TOKENS), where, "tokens", -1)),
        truncated=_truncated(row),
        columns=columns,
    )
    found.samples.append(sample)
    found.is_chat.append(is_chat)
    score = _score(row, sample, where, cut)
    if score is not None:
        found.scores.append(score)
    elif needs_verdict:
        raise _no_verdict(row, where)


def _column(row: Mapping[str, Any], names: Sequence[str], where: str, wanted: str) -> str:
    key = next((name for name in names if name in row), None)
    if key is not None:
        return key
    present = sorted(map(str, row))
    hint = did_you_mean(wanted, present)
    raise DataError(
        f"data.no-{wanted}",
        f"no column {wanted!r}; the row has {present or 'no columns'}",
        where=where,
        expected='rows such as {"prompt": "…", "completion": "…", "reward": 1.0}',
        fix=f"{hint} rename it to {wanted!r}".strip(),
    )


def _completion(value: Any, where: str) -> list[Message]:
    if isinstance(value, str):
        return [Message(role="assistant", content=value)]
    if isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
        texts = [
            str(one.get("content") or "") for one in value if one.get("role", "assistant") == "assistant"
        ]
        return [Message(role="assistant", content="\n".join(texts))]
    raise DataError(
        "data.completion-type",
        f"a completion that is {str(value)[:40]!r} ({type(value).__name__})",
        where=where,
        expected="a string (an empty one is fine) or a list of messages",
    )


def _first(row: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((row[name] for name in names if row.get(name) is not None), None)


def _number(value: Any, where: str, name: str, default: float) -> float:
    if value is None or value == "":
        return default
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise DataError(
            "data.not-a-number", f"{name} is {value!r}", where=where, expected="a finite number, or nothing"
        )
    return number


def _truncated(row: Mapping[str, Any]) -> bool:
    flag = _first(row, TRUNCATED)
    if flag is not None:
        return str(flag).strip().lower() in ("true", "1", "1.0", "yes")
    return str(_first(row, FINISH) or "").lower() in ("length", "max_tokens", "max_length")


def _score(row: Mapping[str, Any], sample: Sample, where: str, cut: float) -> ScoredSample | None:
    stated = str(row["outcome"]).replace("_", "-").lower() if row.get("outcome") is not None else None
    if stated is not None and stated not in OUTCOMES:
        raise DataError(
            "data.outcome", f"outcome {stated!r}", where=where, fix=did_you_mean(stated, OUTCOMES) or ""
        )
    key = next((name for name in REWARD if name in row), None)
    if key is None and stated is None:
        return None
    total = None if key is None or row[key] is None else _paid(row[key], where, key)
    outcome = stated or _outcome(row, sample, total, cut)
    return ScoredSample(
        completion_id=sample.completion_id,
        outcome=outcome,
        total=total,
        extracted=None if _first(row, EXTRACTED) is None else str(_first(row, EXTRACTED)),
        why=_why(row, key),
    )


def _why(row: Mapping[str, Any], key: str | None) -> str:
    if isinstance(row.get("why"), str) and row["why"].strip():
        return str(row["why"])
    return f"{key} {row[key]} {IN_FILE}" if key else f"outcome {IN_FILE}"


def _paid(value: Any, where: str, key: str) -> float:
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return float(value.strip().lower() == "true")
    return _number("nothing" if value == "" else value, where, key, math.nan)


def _outcome(row: Mapping[str, Any], sample: Sample, total: float | None, cut: float) -> Outcome:
    if total is None:
        return "not-applicable"
    if total >= cut - 1e-9:
        return "right"
    return "ill-formed" if _is_ill_formed(row, sample) else "wrong"


def _is_ill_formed(row: Mapping[str, Any], sample: Sample) -> bool:
    if not sample.text.strip():
        return True
    flag = _first(row, FORMAT)
    if flag is not None:
        return str(flag).strip().lower() in ("false", "0", "0.0", "no")
    return any(name in row and row[name] in (None, "") for name in EXTRACTED)


def _no_verdict(row: Mapping[str, Any], where: str) -> DataError:
    present = sorted(map(str, row))
    # Nearer than usual: `source` is no `score`.
    near = next((found for name in REWARD for found in get_close_matches(name, present, n=1, cutoff=0.8)), "")
    hint = f"did you mean {near!r}?" if near else ""
    return DataError(
        "data.no-reward",
        f"nothing says whether this completion is right; the row has {present}",
        where=where,
        expected="a column reward, score, correct or outcome",
        fix=f"{hint} rename it, or name a reward: {NAMED}" if hint else f"name a reward: {NAMED}",
    )


def _sort_temperatures(found: Imported) -> None:
    """Mark the low temperature where the file holds two."""
    stated = [one.temperature for one in found.samples if "temperature" in one.columns]
    low = {value for value in stated if value <= LOW_TEMPERATURE}
    high = {value for value in stated if value > LOW_TEMPERATURE}
    if low and high:
        found.samples = [
            one.model_copy(update={"source": "low"}) if one.temperature <= LOW_TEMPERATURE else one
            for one in found.samples
        ]
        if len(high) > 1:
            found.remarks.append(
                f"temperatures {sorted(high)} were taken together as the training temperature"
            )
    elif low:
        found.remarks.append(
            "only a low temperature: training samples at a higher one, where success may differ"
        )
    training = (
        next(iter(high)) if len(high) == 1 else (next(iter(low)) if len(low) == 1 and not high else None)
    )
    found.temperatures = (next(iter(low)) if len(low) == 1 and high else None, training)


def _remarks(found: Imported, cut: float) -> list[str]:
    remarks = []
    totals = [one.total for one in found.scores if one.total is not None]
    if totals and 0 < max(totals) < cut:
        remarks.append(
            f"the largest reward is {max(totals):g}, under the cut of {cut:g}: set --cut if it is full"
        )
    if totals and max(totals) > 2 * cut and cut == CUT:
        remarks.append(
            f"rewards go up to {max(totals):g}, and {cut:g} already counts as right: set --cut otherwise"
        )
    unlike = _differently_scored(found)
    if unlike:
        remarks.append(
            f"{unlike} completions were scored differently at different places: the reward is not stable"
        )
    repeated = _repeated_texts(found.samples)
    if repeated > 0.9:
        remarks.append(f"{repeated:.0%} of completions repeat another one of the same prompt word for word")
    return remarks


def _differently_scored(found: Imported) -> int:
    outcomes: dict[tuple[str, str], set[str]] = {}
    texts = {one.completion_id: (one.row_hash, one.text) for one in found.samples}
    for score in found.scores:
        outcomes.setdefault(texts[score.completion_id], set()).add(score.outcome)
    return sum(len(one) > 1 for one in outcomes.values())


def _repeated_texts(samples: Sequence[Sample]) -> float:
    several = [one for one in samples if one.temperature > 0]
    distinct = {(one.row_hash, one.text) for one in several}
    return 1 - len(distinct) / len(several) if several else 0.0


def rows_of_file(path: Path) -> Iterable[Mapping[str, Any]]:
    """Yield the rows of a JSONL, JSON, CSV or Parquet file."""
    from rlvr.task.dataset import read_file

    return read_file(path)
