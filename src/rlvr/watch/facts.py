"""What is known of a run besides its numbers: its model, its settings, its rewards."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

EXPERT_KEYS: Final = (
    "num_local_experts",
    "num_experts",
    "n_routed_experts",
    "moe_num_experts",
    "num_experts_per_tok",
)
_EXPERT_NAMES: Final = re.compile(
    r"(?:^|[-_/])moe(?:$|[-_/])|moe|mixtral|\d+b-a\d+|gpt-oss|deepseek-(?:v2|v3|r1(?!-distill))|glm-4\.[5-9]|kimi-k2|"
    r"grok|dbrx|jamba|llama-4|granite-\d.*-tiny|minimax-m",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Facts:
    """What is known of a run besides its numbers.

    Attributes:
        experts: Whether the model routes between experts; None when unknown.
        settings: GRPOConfig fields that the run had, as far as known.
        reward_names: Names of the reward functions.
        reward_weights: Weight of each, where known.
        held_out_independent: Whether the held-out check is other code than the reward; None when unknown.
        pays_length: Names of rewards that pay length on purpose.
        model: Name of the model.
    """

    experts: bool | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    reward_names: tuple[str, ...] = ()
    reward_weights: Mapping[str, float] = field(default_factory=dict)
    held_out_independent: bool | None = None
    pays_length: tuple[str, ...] = ()
    model: str = ""


def has_experts(config: Mapping[str, Any], name: str = "") -> bool | None:
    """Tell from a model's ``config.json`` (or its name alone) whether it routes between experts.

    Args:
        config: The model's configuration; may be empty.
        name: The model's name, used when the configuration is not at hand.
    """
    inner = [config, config.get("text_config") or {}]
    if any(isinstance(part, Mapping) and any((part.get(k) or 0) for k in EXPERT_KEYS) for part in inner):
        return True
    if name and _EXPERT_NAMES.search(name):
        return True
    return False if config.get("model_type") else None
