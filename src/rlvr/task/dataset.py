"""Reads prompts and references: JSONL, JSON, CSV and Parquet files, reasoning-gym tasks, and Hub data sets.

Files are read directly, since ``import datasets`` costs most of a second; only a Hub id needs it.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from rlvr.errors import ConfigError, DataError, InfrastructureError, did_you_mean
from rlvr.records.samples import Message
from rlvr.workspace import content_hash, path_from

READERS = (".jsonl", ".ndjson", ".json", ".csv", ".parquet")
"""Suffixes of files that are read directly."""

GYM_SCHEME = "reasoning-gym:"
GYM_DEFAULTS = {"size": 500, "seed": 42}
OTHER_PROMPT_NAMES = ("question", "problem", "instruction", "query", "input", "messages", "text")
IMAGE_COLUMNS = frozenset({"image", "images", "pixel_values", "video", "videos"})
TOOL_COLUMNS = frozenset({"tools", "environment", "environment_factory"})
IMAGE_PARTS = frozenset({"image", "image_url", "input_image", "video"})


@dataclass(frozen=True, slots=True)
class Row:
    """One prompt of the data.

    Attributes:
        index: Position in the data, from 0.
        prompt: Messages; a plain-text prompt is one user message.
        is_chat: Whether the data gave messages rather than a string.
        columns: The row's other columns, as a reward receives them.
        row_hash: Hash of prompt and columns (16 hexadecimal digits).
    """

    index: int
    prompt: list[Message]
    is_chat: bool
    columns: dict[str, Any] = field(default_factory=dict)
    row_hash: str = ""

    @property
    def prompt_hash(self) -> str:
        """Hash of the messages alone: equal for duplicates of a prompt."""
        return content_hash([[message.role, message.content.strip()] for message in self.prompt])


def load_rows(source: str, base: Path, *, prompt_column: str = "prompt") -> list[Row]:
    """Read and check every row.

    Args:
        source: A file, a Hub id (``owner/name?split=train&config=main``), or
            ``reasoning-gym:NAME?size=500&seed=42`` where further keys are options of that task.
        base: Folder that a relative path is resolved against.
        prompt_column: Column that holds the prompt, a string or a list of chat messages.

    Raises:
        DataError: Missing or empty data, a damaged line, a prompt that is missing or empty, images, tools, or
            preference pairs; row or line named.
        InfrastructureError: A Hub data set could not be fetched.
    """
    raw = _read(source, base)
    rows = [_row(source, index, values, prompt_column) for index, values in enumerate(raw)]
    if not rows:
        raise DataError(
            "data.empty",
            "no rows",
            where=source,
            expected="at least one prompt",
            fix="write one JSON object a line, with the key prompt and the references of your rewards",
        )
    return rows


def _read(source: str, base: Path) -> Iterable[Mapping[str, Any]]:
    if source.startswith(GYM_SCHEME):
        return _read_reasoning_gym(source)
    path = path_from(base, source)
    if path.is_file():
        return read_file(path)
    if (
        path.suffix.lower() in READERS
        or path.exists()
        or "/" not in source
        or source.startswith((".", "/", "~"))
    ):
        raise _missing(source, path)
    return _read_hub(source)


def _missing(source: str, path: Path) -> DataError:
    near = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
    hint = did_you_mean(path.name, near) or f"put the file there; {', '.join(READERS)} are read"
    found = "a folder, not a file" if path.is_dir() else "no such file"
    return DataError("data.missing", found, where=source, expected=f"a file {path}", fix=hint)


def read_file(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of one file as dictionaries, without looking for a prompt.

    Raises:
        DataError: ``data.missing``, ``data.kind``, ``data.encoding``, ``data.not-json`` or ``data.damaged``.
    """
    if not path.is_file():
        raise _missing(str(path), path)
    kind = path.suffix.lower()
    if kind == ".parquet":
        return _read_parquet(path)
    if kind == ".csv":
        return _read_csv(path)
    if kind == ".json":
        return _read_json(path)
    if kind in (".jsonl", ".ndjson", ""):
        return _read_jsonl(path)
    raise DataError(
        "data.kind", f"cannot read a {kind} file", where=str(path), expected=f"one of {', '.join(READERS)}"
    )


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            "data.encoding",
            f"byte {error.start} is not UTF-8",
            where=str(path),
            expected="a text file in UTF-8",
            fix="save it as UTF-8, or name a Parquet file .parquet",
        ) from None


def _read_jsonl(path: Path) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(_text(path).split("\n"), start=1):
        if line.strip():
            yield _object(path, number, line)


def _object(path: Path, number: int, line: str) -> dict[str, Any]:
    where = f"{path}:{number}"
    try:
        value = json.loads(line)
    except ValueError as error:
        short = line.strip()[:60]
        raise DataError(
            "data.not-json",
            f"not JSON ({error}): {short}",
            where=where,
            expected="one JSON object a line",
            fix=f"mend line {number}",
        ) from None
    except RecursionError:
        raise DataError("data.not-json", "nested too deeply", where=where) from None
    if not isinstance(value, dict):
        raise DataError(
            "data.not-an-object",
            f"a {type(value).__name__}",
            where=where,
            expected='an object such as {"prompt": "…", "answer": "…"}',
        )
    return value


def _read_json(path: Path) -> Iterator[dict[str, Any]]:
    text = _text(path)
    try:
        value = json.loads(text)
    except ValueError:
        yield from _read_jsonl(path)  # one object a line under the wrong suffix; else this names the line
        return
    except RecursionError:
        raise DataError("data.not-json", "nested too deeply", where=str(path)) from None
    rows = value if isinstance(value, list) else [value]
    for number, row in enumerate(rows):
        if not isinstance(row, dict):
            raise DataError("data.not-an-object", f"a {type(row).__name__}", where=f"{path}, row {number}")
        yield row


def _read_csv(path: Path) -> Iterator[dict[str, Any]]:
    reader = csv.DictReader(_text(path).splitlines(keepends=True))
    try:
        for number, row in enumerate(reader):
            if None in row:
                raise DataError("data.damaged", "more cells than columns", where=f"{path}, row {number}")
            yield dict(row)
    except csv.Error as error:  # a cell over the module's limit of 131072 characters
        raise DataError(
            "data.damaged",
            f"not readable as CSV: {error}",
            where=f"{path}:{reader.line_num}",
            fix="mend that line, or write the rows as .jsonl, where a text may have any length",
        ) from None


def _read_parquet(path: Path) -> Iterator[dict[str, Any]]:
    import pyarrow
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.read_table(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(
            "data.damaged", f"not a Parquet file ({str(error).splitlines()[0]})", where=str(path)
        ) from None
    yield from table.to_pylist()


def _read_hub(source: str) -> Iterator[dict[str, Any]]:
    name, _, query = source.partition("?")
    options = dict(parse_qsl(query))
    split = options.pop("split", "train")
    config = options.pop("config", None)
    if options:
        raise ConfigError(
            "data.hub-option",
            f"unknown option {sorted(options)[0]!r}",
            where=source,
            expected="split, config",
            fix=did_you_mean(sorted(options)[0], ["split", "config"]),
        )
    from datasets import load_dataset

    try:
        found = load_dataset(name, config, split=split)
    except ValueError as error:
        raise DataError("data.hub", str(error).splitlines()[0], where=source) from None
    except Exception as error:  # the Hub client raises kinds of its own for network, login and absence
        raise _hub_failed(source, error) from error
    yield from (dict(row) for row in found)


def _hub_failed(source: str, error: Exception) -> InfrastructureError:
    return InfrastructureError(
        "data.hub-unreachable",
        f"the Hub did not answer for this data set ({type(error).__name__})",
        where=source,
        expected="a network that reaches the Hub, and read access to the data set",
        fix="name a local .jsonl or .parquet file, or reasoning-gym:NAME, which needs no network",
    )


def gym_dataset(source: str) -> Any:
    """Return the reasoning-gym data set that ``source`` names; its ``score_answer`` is the verifier.

    Raises:
        ConfigError: ``data.reasoning-gym`` for an unknown task or option, or when the extra is not installed.
    """
    try:
        from reasoning_gym.factory import DATASETS, create_dataset
    except ImportError:
        raise ConfigError(
            "data.reasoning-gym",
            "reasoning-gym is not installed",
            where=source,
            fix="pip install 'rlvr[reasoning-gym]'",
        ) from None
    name, _, query = source.removeprefix(GYM_SCHEME).partition("?")
    if name not in DATASETS:
        fix = did_you_mean(name, DATASETS) or f"one of the {len(DATASETS)} tasks, such as chain_sum"
        raise ConfigError("data.reasoning-gym", f"no task {name!r}", where=source, fix=fix)
    options = {**GYM_DEFAULTS, **{key: _plain(value) for key, value in parse_qsl(query)}}
    try:
        return create_dataset(name, **options)
    except (TypeError, AssertionError, ValueError) as error:
        raise ConfigError(
            "data.reasoning-gym", f"the task refused its options: {error}", where=source
        ) from None


def _plain(value: str) -> Any:
    try:
        return json.loads(value)
    except ValueError:
        return value


def _read_reasoning_gym(source: str) -> Iterator[dict[str, Any]]:
    dataset = gym_dataset(source)
    for entry in dataset:
        # The scorer needs the whole entry, so it travels with the row as JSON.
        yield {
            "prompt": entry["question"],
            "answer": entry["answer"],
            "gym_entry": json.dumps(entry, default=str),
        }


def _row(source: str, index: int, values: Mapping[str, Any], prompt_column: str) -> Row:
    where = f"{source}, row {index}"
    _refuse_other_kinds(source, values)
    if prompt_column not in values:
        raise _no_prompt(where, values, prompt_column)
    _refuse_unwritable(where, values)
    prompt, is_chat = as_messages(values[prompt_column], where)
    columns = {key: value for key, value in values.items() if key != prompt_column}
    return make_row(index, prompt, is_chat, columns)


def _refuse_unwritable(where: str, values: Mapping[str, Any]) -> None:
    """Refuse a text that no file or tokenizer takes: half of a surrogate pair, as a cut-off escape leaves it."""
    for name, value in values.items():
        try:
            json.dumps({name: value}, ensure_ascii=False, default=str).encode()
        except UnicodeEncodeError as error:
            raise DataError(
                "data.surrogate",
                f"column {name!r} holds half a surrogate pair, {error.object[error.start]!a}",
                where=where,
                expected="text that UTF-8 can hold",
                fix="remove that character, or write the whole character where an escape was cut in two",
            ) from None
        except RecursionError:
            raise DataError("data.nested", f"column {name!r} is nested too deeply", where=where) from None


def make_row(index: int, prompt: list[Message], is_chat: bool, columns: dict[str, Any]) -> Row:
    """Return a row with its hash."""
    messages = [[message.role, message.content] for message in prompt]
    return Row(index, prompt, is_chat, columns, content_hash([messages, columns]))


def _no_prompt(where: str, values: Mapping[str, Any], prompt_column: str) -> DataError:
    present = sorted(map(str, values))
    likely = next((name for name in OTHER_PROMPT_NAMES if name in values), None)
    hint = did_you_mean(prompt_column, present) or (f"did you mean {likely!r}?" if likely else "")
    fix = f"{hint} Set task.prompt_column to the column that holds the prompt, or rename it".strip()
    return DataError(
        "data.no-prompt",
        f"no column {prompt_column!r}; the row has {present or 'no columns'}",
        where=where,
        expected=f"a column {prompt_column!r} in every row",
        fix=fix,
    )


def _refuse_other_kinds(source: str, values: Mapping[str, Any]) -> None:
    if {"chosen", "rejected"} <= values.keys():
        raise DataError(
            "data.preferences",
            "columns chosen and rejected: these are preference pairs, not prompts with a verifiable answer",
            where=source,
            expected="prompts and what a verifier needs to judge a completion",
            fix="go to preference-optimization (DPO); GRPO needs a verifier",
        )
    images = sorted(name for name in IMAGE_COLUMNS & values.keys() if values[name] is not None)
    if images:
        raise images_refused(f"{source}, column {images[0]}")
    tools = sorted(name for name in TOOL_COLUMNS & values.keys() if values[name])
    if tools:
        raise _tools_refused(f"{source}, column {tools[0]}")


def images_refused(where: str) -> DataError:
    """Return the refusal of vision-language data, with the page that explains it."""
    return DataError(
        "data.images",
        "images in the data",
        where=where,
        expected="prompts of text alone; vision-language RL is described here, not run",
        fix="read docs/vision-language.md for the tools that do it",
    )


def _tools_refused(where: str) -> DataError:
    return DataError(
        "data.tools",
        "tools or an environment in the data",
        where=where,
        expected="single-turn tasks: this version trains one prompt, one completion",
        fix="drop the column if the task needs no tool; a tool *call* as the answer is fine (signal: tool_call)",
    )


def as_messages(prompt: Any, where: str) -> tuple[list[Message], bool]:
    """Return a prompt as messages, and whether it was given as such.

    Raises:
        DataError: ``data.empty-prompt``, ``data.prompt-type``, ``data.prompt-role`` or ``data.images``.
    """
    if isinstance(prompt, str):
        if not prompt.strip():
            raise _empty_prompt(where, "an empty prompt")
        return [Message(role="user", content=prompt)], False
    if prompt is None or (isinstance(prompt, float) and math.isnan(prompt)):
        raise _empty_prompt(where, "a prompt that is None")
    if not isinstance(prompt, Sequence):
        raise DataError(
            "data.prompt-type",
            f"a prompt of type {type(prompt).__name__}",
            where=where,
            expected="a string or a list of messages with role and content",
        )
    messages = [_message(part, where) for part in prompt]
    if not any(message.role == "user" and message.content.strip() for message in messages):
        raise _empty_prompt(where, "a chat prompt without a user message")
    if messages[-1].role == "assistant":
        raise DataError(
            "data.prompt-role",
            "the last message is the assistant's",
            where=where,
            expected="a prompt that ends where the model is to answer",
            fix="drop the last message, or keep it in a reference column",
        )
    return messages, True


def _empty_prompt(where: str, found: str) -> DataError:
    return DataError(
        "data.empty-prompt",
        found,
        where=where,
        expected="text in every prompt",
        fix="remove or fill this row",
    )


def _message(part: Any, where: str) -> Message:
    if not isinstance(part, Mapping) or "role" not in part or "content" not in part:
        raise DataError(
            "data.prompt-type",
            f"a message that is {str(part)[:60]!r}",
            where=where,
            expected='messages such as {"role": "user", "content": "…"}',
        )
    if part["role"] == "tool" or part.get("tool_calls"):
        raise _tools_refused(where)
    if part["role"] not in ("system", "user", "assistant"):
        hint = did_you_mean(str(part["role"]), ["system", "user", "assistant"])
        raise DataError("data.prompt-role", f"role {part['role']!r}", where=where, fix=hint)
    return Message(role=part["role"], content=_content(part["content"], where))


def _content(content: Any, where: str) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        raise DataError("data.prompt-type", f"content of type {type(content).__name__}", where=where)
    texts = []
    for part in content:
        if isinstance(part, Mapping) and part.get("type") in IMAGE_PARTS:
            raise images_refused(where)
        texts.append(str(part.get("text", "")) if isinstance(part, Mapping) else str(part))
    return "".join(texts)
