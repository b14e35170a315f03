"""Whether the trainer passes chat messages: read from the model's files, without loading a tokenizer."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import NamedTuple

GGUF_HEAD_BYTES = 64 << 20
"""The metadata of a GGUF file, vocabulary included, stands within its first bytes."""
_GGUF_KEY = b"tokenizer.chat_template"
_TUNED = re.compile(r"(^|[-_/.])(instruct|chat|it|sft|dpo|rlhf|thinking)($|[-_/.])|qwen3", re.IGNORECASE)


class Shape(NamedTuple):
    """In which shape the trainer passes prompts and completions.

    Attributes:
        chat: Whether they are lists of messages.
        because: What says so, in words.
        assumed: Whether the model's files could not be read, so that it is a guess.
    """

    chat: bool
    because: str
    assumed: bool = False


def shape_of(name: str, *, is_local: bool, gguf_file: str | None, has_chat_rows: bool) -> Shape:
    """Return the shape that a model's chat template decides.

    Args:
        name: Folder or Hub id.
        is_local: Whether ``name`` is a folder.
        gguf_file: File in that folder that holds weights and tokenizer, where it is one.
        has_chat_rows: Whether the data holds messages; decides where the model's files are not here.
    """
    folder = Path(name) if is_local else cached_folder(name)
    if folder is not None and gguf_file:
        chat = _gguf_has_template(folder / gguf_file)
    elif folder is not None and (is_local or _has_tokenizer(folder)):
        chat = has_template(folder)
    else:
        tuned = bool(_TUNED.search(name))
        reason = (
            "the data holds messages" if has_chat_rows else "its name says so" if tuned else "a base model"
        )
        return Shape(has_chat_rows or tuned, f"{name} is not in the local cache ({reason})", assumed=True)
    return Shape(chat, "the model has a chat template" if chat else "the model has no chat template")


def has_template(folder: Path) -> bool:
    """Return whether the tokenizer of a model folder has a chat template."""
    if (folder / "chat_template.jinja").is_file() or any(folder.glob("additional_chat_templates/*.jinja")):
        return True
    names = ("tokenizer_config.json", "chat_template.json", "tokenizer.json")
    return any(_names_template(folder / name) for name in names)


def cached_folder(name: str) -> Path | None:
    """Return the snapshot of a Hub id in the local cache; None where there is none."""
    home = Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")
    cache = Path(os.environ.get("HF_HUB_CACHE") or home / "hub") / f"models--{name.replace('/', '--')}"
    try:
        revision = (cache / "refs" / "main").read_text("utf-8").strip()
    except OSError:
        return None
    folder = cache / "snapshots" / revision
    return folder if folder.is_dir() else None


def _has_tokenizer(folder: Path) -> bool:
    return any((folder / name).is_file() for name in ("tokenizer_config.json", "tokenizer.json"))


def _names_template(path: Path) -> bool:
    try:
        text = path.read_text("utf-8")
        found = json.loads(text) if "chat_template" in text else {}
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and bool(found.get("chat_template"))


def _gguf_has_template(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return _GGUF_KEY in file.read(GGUF_HEAD_BYTES)
    except OSError:
        return False
