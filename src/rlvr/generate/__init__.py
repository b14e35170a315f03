"""Backends that sample completions, behind one protocol; none is imported before it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from rlvr.records.samples import Message

if TYPE_CHECKING:
    from rlvr.config.schema import Config

Progress = Callable[[int], None]
"""Called with the number of completions done since the last call."""


@dataclass(frozen=True, slots=True)
class Generated:
    """One completion.

    Attributes:
        text: What the model wrote, without special tokens.
        tokens: Number of generated tokens, the end mark included; -1 when the backend does not say.
        truncated: Whether the length cap ended it.
    """

    text: str
    tokens: int
    truncated: bool


class Generator(Protocol):
    """One backend with one model loaded.

    Attributes:
        name: Backend and model, for records.
        has_chat_template: Whether messages are put through a chat template; True when a server does it.
        context: Longest prompt plus completion in tokens; None when unknown.
        batch_size: Completions that are best asked for at once.
    """

    name: str
    has_chat_template: bool
    context: int | None
    batch_size: int

    def generate(
        self,
        prompts: Sequence[Sequence[Message]],
        *,
        count: int,
        temperature: float,
        max_tokens: int,
        seed: int,
        progress: Progress | None = None,
    ) -> list[list[Generated]]:
        """Sample ``count`` completions of every prompt.

        Args:
            prompts: Messages, system prompt included.
            count: Completions a prompt.
            temperature: Sampling temperature; 0 takes the most likely token.
            max_tokens: Longest completion, tokens.
            seed: With the same seed, transformers draws the same completion for the same prompt and place in
                its list, whatever else is asked for beside it.
            progress: Told as completions are done.

        Raises:
            InfrastructureError: The backend failed; what earlier calls returned stands.
        """
        ...

    def count_tokens(self, prompts: Sequence[Sequence[Message]]) -> list[int]:
        """Return each prompt's length in tokens as the model reads it; -1 when the backend cannot say."""
        ...

    def close(self) -> None:
        """Free the model."""
        ...


def open_generator(config: Config, base: Path, *, batch_size: int | None = None) -> Generator:
    """Load the configured model in the configured backend.

    Args:
        config: The configuration; ``model``, ``adapter`` and ``sampling`` are read.
        base: Folder that relative paths are resolved against.
        batch_size: Overrides ``sampling.batch_size``.

    Raises:
        ConfigError: ``model.*`` when it is no model, or the backend is not installed.
        InfrastructureError: ``model.unreachable`` when it is on the Hub and the Hub is not reachable.
    """
    size = batch_size or config.sampling.batch_size
    sampling = config.sampling
    if sampling.backend == "endpoint":
        from rlvr.generate.endpoint import EndpointGenerator

        return EndpointGenerator(
            sampling.endpoint or "",
            sampling.endpoint_model or config.model,
            api_key_variable=sampling.api_key_variable,
            top_p=sampling.top_p,
            concurrency=size,
        )
    template = (base / sampling.chat_template) if sampling.chat_template else None
    if sampling.backend == "vllm":
        from rlvr.generate.vllm import VllmGenerator

        return VllmGenerator(
            config.model, base, adapter=config.adapter, chat_template=template, top_p=sampling.top_p
        )
    from rlvr.generate.transformers import TransformersGenerator

    return TransformersGenerator(
        config.model,
        base,
        adapter=config.adapter,
        chat_template=template,
        top_p=sampling.top_p,
        batch_size=size,
    )
