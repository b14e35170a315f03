"""What a training run leaves behind: its manifest, and held-out accuracy before and after."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from rlvr.records.base import Frozen, Record

RunState = Literal["running", "finished", "interrupted", "paused", "stopped", "failed"]


class PromptResult(Frozen):
    """One held-out prompt.

    Attributes:
        row_hash: Hash of the prompt and its references.
        prompt: Text of the last user message.
        correct: Completions that the check accepted.
        judged: Completions that the check judged; infrastructure failures are left out.
        completion: The first completion, for the reader.
        outcome: Outcome of the first completion.
    """

    row_hash: str
    prompt: str
    correct: int
    judged: int
    completion: str = ""
    outcome: str = ""


class Evaluation(Record):
    """Held-out accuracy of one policy.

    Attributes:
        accuracy: Mean over prompts of the share of accepted completions, in [0, 1].
        low: Lower end of the interval at 95%.
        high: Upper end of it.
        interval: Name and source of the interval.
        prompts: Number of prompts.
        rollouts: Completions a prompt.
        temperature: Sampling temperature.
        check: Name of what judged.
        independent: Whether the check is apart from the reward.
        failed: Completions that infrastructure failed to judge.
        step: Optimizer step of the policy; 0 is the base.
        results: One entry a prompt; empty for evaluations during training.
    """

    accuracy: float
    low: float
    high: float
    interval: str = ""
    prompts: int
    rollouts: int = 1
    temperature: float = 1.0
    check: str = ""
    independent: bool = False
    failed: int = 0
    step: int = 0
    results: list[PromptResult] = Field(default_factory=list)


class Manifest(Record):
    """One run: enough to repeat it, and what became of it.

    Attributes:
        name: Run's name, the folder under ``runs/``.
        state: See :data:`RunState`.
        stopped: Why it is not finished.
        model: Model as configured.
        method: Method section of the configuration.
        settings: GRPOConfig field to value, reason and source, as planned.
        rewards: Reward section of the configuration.
        sampling: Sampling section of the configuration.
        seed: Seed of the run.
        gates: The chain as it stood when training began.
        waivers: Gate to the reason under which it was waived; shown in red.
        variant: Applied variant, or empty.
        versions: Library to version.
        isolation: Rung on which model-written code ran; empty where none did.
        machine: Cores, memory and devices.
        is_demo: Whether this is the embedded demo.
        steps: Optimizer steps done.
        total_steps: Optimizer steps planned.
        seconds: Wall time of training so far.
        tokens: Completion tokens sampled so far.
        peak_bytes: Peak memory, device memory where there is one, otherwise resident memory.
        dropped_prompts: Prompts left out because they exceed the context.
        resumed: Times that the run was resumed.
    """

    SCHEMA: ClassVar[int] = 1

    name: str
    state: RunState = "running"
    stopped: str = ""
    model: str
    method: dict[str, Any] = Field(default_factory=dict)
    settings: dict[str, Any] = Field(default_factory=dict)
    rewards: list[dict[str, Any]] = Field(default_factory=list)
    sampling: dict[str, Any] = Field(default_factory=dict)
    seed: int = 0
    gates: list[dict[str, Any]] = Field(default_factory=list)
    waivers: dict[str, str] = Field(default_factory=dict)
    variant: str = ""
    versions: dict[str, str] = Field(default_factory=dict)
    isolation: str = ""
    machine: dict[str, Any] = Field(default_factory=dict)
    is_demo: bool = False
    steps: int = 0
    total_steps: int = 0
    seconds: float = 0.0
    tokens: int = 0
    peak_bytes: int = 0
    dropped_prompts: int = 0
    resumed: int = 0
