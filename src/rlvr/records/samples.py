"""Completions that were sampled once and kept, and the scores that a reward gave them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from rlvr.records.base import Frozen

Role = Literal["system", "user", "assistant", "tool"]


class Message(Frozen):
    """One chat message."""

    role: Role
    content: str


class Sample(Frozen):
    """One completion of one prompt.

    Attributes:
        completion_id: Hash over prompt, temperature, index and text; labels and scores refer to it.
        row: Index of the prompt in the training (or held-out) data.
        row_hash: Hash of the prompt and its references.
        prompt: Messages sent to the model; a plain-text prompt is one user message.
        completion: Messages that came back (one assistant message for single-turn tasks).
        source: ``low`` (low temperature), ``training`` (training temperature), ``run`` (a training run),
            ``import`` (a file the user had).
        temperature: Sampling temperature.
        index: Which of the completions of this prompt at this temperature.
        tokens: Number of generated tokens; -1 when unknown.
        truncated: Whether the length cap ended it.
        columns: The row's other columns, as the reward receives them.
    """

    completion_id: str
    row: int
    row_hash: str
    prompt: list[Message]
    completion: list[Message]
    source: Literal["low", "training", "run", "import"]
    temperature: float = 1.0
    index: int = 0
    tokens: int = -1
    truncated: bool = False
    step: int = -1
    columns: dict[str, Any] = Field(default_factory=dict)

    @property
    def text(self) -> str:
        """The completion's text, assistant messages joined by a line break."""
        return "\n".join(message.content for message in self.completion if message.role == "assistant")


class ScoredSample(Frozen):
    """What the rewards said of one completion.

    Attributes:
        completion_id: The sample.
        outcome: Overall outcome: that of the correctness component, ``infrastructure`` when any component failed.
        total: Weighted sum as TRL computes it; None when the row is neutral.
        components: Component name to unweighted score.
        extracted: What the correctness component read as the answer.
        why: The correctness component's reason.
    """

    completion_id: str
    outcome: Literal["right", "wrong", "ill-formed", "not-applicable", "infrastructure"]
    total: float | None
    components: dict[str, float | None] = Field(default_factory=dict)
    extracted: str | None = None
    why: str = ""
