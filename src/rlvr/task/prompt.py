"""How a row becomes what the model reads: system prompt, chat or plain text, and whether it fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rlvr.errors import DataError
from rlvr.records.samples import Message
from rlvr.task.dataset import Row


def with_system(messages: Sequence[Message], system_prompt: str | None) -> list[Message]:
    """Return the messages with the system prompt in front, unless they bring their own."""
    if not system_prompt or any(message.role == "system" for message in messages):
        return list(messages)
    return [Message(role="system", content=system_prompt), *messages]


def for_trainer(messages: Sequence[Message], is_chat: bool, has_template: bool) -> str | list[dict[str, str]]:
    """Return a prompt as TRL takes it, so that training sees what the probe sampled from.

    A model with a chat template always reads messages through it; TRL would pass a plain string as it stands.
    A model without one reads the text of a plain prompt, system prompt first.

    Raises:
        DataError: ``data.no-chat-template`` for a chat prompt on a model without a template.
    """
    if has_template:
        return [{"role": message.role, "content": message.content} for message in messages]
    if is_chat:
        raise no_template("a chat prompt")
    return plain_text(messages)


def plain_text(messages: Sequence[Message]) -> str:
    """Return the contents of the messages, an empty line between them."""
    return "\n\n".join(message.content for message in messages)


def require_template(rows: Sequence[Row], has_template: bool, model: str) -> None:
    """Refuse chat prompts on a model that has no chat template.

    Raises:
        DataError: ``data.no-chat-template``, naming the first such row.
    """
    chat = next((row for row in rows if row.is_chat), None)
    if chat is not None and not has_template:
        raise no_template(f"row {chat.index} holds chat messages", model)


def no_template(found: str, model: str = "") -> DataError:
    """Return the error for chat prompts on a model without a template."""
    return DataError(
        "data.no-chat-template",
        f"{found}, and the model has no chat template",
        where=model,
        expected="a model with a chat template, or prompts that are plain strings",
        fix="set sampling.chat_template to a Jinja file, or write the prompts as strings",
    )


@dataclass(frozen=True, slots=True)
class Length:
    """A prompt and its length.

    Attributes:
        index: Row of the data.
        tokens: Prompt length in tokens.
    """

    index: int
    tokens: int


def require_room(lengths: Sequence[Length], completion: int, context: int | None, model: str) -> None:
    """Refuse prompts that leave no room for the completion; a trainer would go on without a word.

    Args:
        lengths: Prompt lengths, tokens.
        completion: Longest completion, tokens.
        context: The model's context, tokens; None when it has no fixed one.
        model: Name for the message.

    Raises:
        DataError: ``data.prompt-too-long``, with the rows and the numbers.
    """
    if context is None:
        return
    long = sorted((one for one in lengths if one.tokens + completion > context), key=lambda one: -one.tokens)
    if not long:
        return
    rows = ", ".join(str(one.index) for one in long[:5]) + (", …" if len(long) > 5 else "")
    worst = long[0]
    raise DataError(
        "data.prompt-too-long",
        f"{len(long)} of {len(lengths)} prompts do not fit (rows {rows}): the longest has {worst.tokens} tokens, "
        f"and {completion} more are asked for",
        where=model,
        expected=f"prompt and completion within the context of {context} tokens",
        fix=f"remove or shorten these rows, or lower sampling.max_completion_length to at most "
        f"{context - worst.tokens}"
        if worst.tokens < context
        else "remove or shorten these rows; some prompts alone exceed the context",
    )


def distinct(rows: Sequence[Row]) -> tuple[list[Row], int]:
    """Return the first row of every distinct prompt, in order, and how many duplicates were left out."""
    seen: set[str] = set()
    kept = []
    for row in rows:
        if row.prompt_hash not in seen:
            seen.add(row.prompt_hash)
            kept.append(row)
    return kept, len(rows) - len(kept)
