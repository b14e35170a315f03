"""The variants of GRPO: their settings, the sources of these, and the symptom that calls for each.

Only definitions stand here, so that planning and watching read the same table. Nobody preselects a variant:
the fields in :data:`OWNED_FIELDS` are refused as overrides and come only from ``rlvr variant RUN --apply``,
with the evidence of the run attached. The one exception is a mixture-of-experts model, see
:func:`required_for`.

Sources:
    DAPO: arXiv 2503.14476, sections 3.1 to 3.4 and 4.1.
    Dr.GRPO: arXiv 2503.20783, section 3.
    GSPO: arXiv 2507.18071, sections 4.2 and 5.1 (clip range, four mini-batches a rollout batch).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

Value: TypeAlias = str | float | int | bool | None
VariantName: TypeAlias = Literal["dapo", "dr_grpo", "gspo"]
Sign: TypeAlias = Literal[-1, 0, 1]


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of a variant.

    Attributes:
        value: What TRL's field is set to.
        why: What it does, in one sentence.
        source: Where the value comes from.
    """

    value: Value
    why: str
    source: str


@dataclass(frozen=True, slots=True)
class Variant:
    """One variant of GRPO.

    Attributes:
        name: Name as ``rlvr variant --apply`` and ``rlvr.yaml`` have it.
        title: Name as its paper has it.
        answers: Symptoms that call for it, any of which is enough.
        also_helps: Symptoms that it eases but that have a cheaper remedy: they do not call for it.
        settings: TRL field name to its setting.
        accumulation_multiple: ``steps_per_generation`` as a multiple of ``gradient_accumulation_steps``.
        switches: Settings of rlvr itself that TRL does not have.
        changes_reward: Whether the resulting reward must be inspected again before it trains.
        expects: Metric (this project's name) to the sign of its change when the variant does what it is for.
        leaves: What it does not change, in sentences.
    """

    name: VariantName
    title: str
    answers: tuple[str, ...]
    also_helps: tuple[str, ...]
    settings: Mapping[str, Setting]
    accumulation_multiple: int | None
    switches: Mapping[str, Setting] = field(default_factory=dict)
    changes_reward: bool = False
    expects: Mapping[str, Sign] = field(default_factory=dict)
    leaves: tuple[str, ...] = ()


_DAPO = "arXiv 2503.14476"
_DR_GRPO = "arXiv 2503.20783"
_GSPO = "arXiv 2507.18071"

DAPO: Final = Variant(
    name="dapo",
    title="DAPO",
    answers=("entropy-collapse",),
    also_helps=("no-signal", "truncation"),
    settings={
        "loss_type": Setting(
            "dapo", "every token weighs the same, in long and short completions", f"{_DAPO} 3.3"
        ),
        "epsilon": Setting(0.2, "lower end of the clip range", f"{_DAPO} 4.1"),
        "epsilon_high": Setting(0.28, "room for unlikely tokens to become likelier", f"{_DAPO} 3.1, 4.1"),
        "beta": Setting(0.0, "no pull back to the reference policy", f"{_DAPO} 2.3"),
    },
    accumulation_multiple=4,
    switches={
        "dynamic_sampling": Setting(True, "groups without variance are sampled anew", f"{_DAPO} 3.2"),
        "overlong_punishment": Setting(
            0.2,
            "share of the length cap over which a penalty rises from 0 to 1, on all completions",
            f"{_DAPO} 3.4, 4.1 (buffer of 4,096 in 20,480 tokens)",
        ),
    },
    changes_reward=True,
    expects={"entropy": 1, "distinct_answer_share": 1, "zero_variance_share": -1, "truncated_share": -1},
    leaves=(
        "clipping acts only when a batch serves several updates: on-policy (steps_per_generation equal to "
        "gradient_accumulation_steps, one iteration) every ratio is 1 and epsilon_high does nothing",
        "a task that the model never solves stays unsolved: sampling anew finds no right completion",
        "mask_truncated_completions stays as it is, since sources disagree about it",
    ),
)

DR_GRPO: Final = Variant(
    name="dr_grpo",
    title="Dr.GRPO",
    answers=("wrong-answers-lengthen",),
    also_helps=(),
    settings={
        "loss_type": Setting(
            "dr_grpo", "a constant instead of 1/length, so long wrong answers cost in full", f"{_DR_GRPO} 3"
        ),
        "scale_rewards": Setting(
            "none",
            "no division by the group's spread, which favours very easy and very hard prompts",
            f"{_DR_GRPO} 3",
        ),
    },
    accumulation_multiple=None,
    expects={"wrong_length": -1, "length": -1, "accuracy": 0},
    leaves=(
        "the constant is max_completion_length: changing that later rescales the gradient",
        "a reward that pays length by itself: mend the reward instead",
        "advantages are no longer divided by the spread, so the same learning rate takes smaller steps",
    ),
)

GSPO: Final = Variant(
    name="gspo",
    title="GSPO",
    answers=("moe-instability",),
    also_helps=(),
    settings={
        "importance_sampling_level": Setting(
            "sequence", "one ratio a completion, since routing makes token ratios jump", f"{_GSPO} 4.2"
        ),
        "loss_type": Setting("grpo", "the objective of the paper, averaged by completion", f"{_GSPO} 4.2"),
        "epsilon": Setting(3e-4, "sequence ratios stay within a far narrower range", f"{_GSPO} 5.1"),
        "epsilon_high": Setting(4e-4, "the same, upper end", f"{_GSPO} 5.1"),
        "use_bias_correction_kl": Setting(
            False, "the unbiased KL holds at token level only", "TRL 1.16, GRPOConfig"
        ),
    },
    accumulation_multiple=4,
    expects={"ratio_max": -1, "clipped_token_share": 1, "grad_norm": -1},
    leaves=(
        "engine and trainer still differ where vLLM routes tokens otherwise than the trainer does",
        "an epsilon of token level (0.2) left in place would never clip a sequence ratio",
    ),
)

VARIANTS: Final[Mapping[str, Variant]] = MappingProxyType({v.name: v for v in (DAPO, DR_GRPO, GSPO)})
"""Every variant by name."""

OWNED_FIELDS: Final[frozenset[str]] = frozenset(
    {
        "loss_type",
        "epsilon",
        "epsilon_high",
        "delta",
        "scale_rewards",
        "multi_objective_aggregation",
        "importance_sampling_level",
        "mask_truncated_completions",
        "top_entropy_quantile",
        "off_policy_mask_threshold",
        "num_iterations",
        "steps_per_generation",
        "sapo_temperature_neg",
        "sapo_temperature_pos",
        "vespo_k_pos",
        "vespo_lambda_pos",
        "vespo_k_neg",
        "vespo_lambda_neg",
    }
)
"""GRPOConfig fields that come from a variant alone and are refused under ``recipe.overrides``."""

BASE_SETTINGS: Final[Mapping[str, Value]] = MappingProxyType(
    {
        "loss_type": "grpo",
        "epsilon": 0.2,
        "epsilon_high": None,
        "delta": None,
        "scale_rewards": "group",
        "importance_sampling_level": "token",
        "mask_truncated_completions": False,
        "num_iterations": 1,
    }
)
"""What the owned fields are in a base run (TRL 1.16 would choose ``loss_type="dapo"`` by itself)."""


def steps_per_generation(variant: Variant, gradient_accumulation_steps: int) -> int:
    """Return ``steps_per_generation``: optimizer micro-steps that one batch of completions serves.

    Args:
        variant: The variant.
        gradient_accumulation_steps: The plan's value; a base run generates once per that many micro-steps.
    """
    return gradient_accumulation_steps * (variant.accumulation_multiple or 1)


def trl_settings(variant: Variant, gradient_accumulation_steps: int) -> dict[str, Value]:
    """Return the GRPOConfig fields of a variant, ``steps_per_generation`` included."""
    found: dict[str, Value] = {name: setting.value for name, setting in variant.settings.items()}
    found["steps_per_generation"] = steps_per_generation(variant, gradient_accumulation_steps)
    return found


def required_for(expert_count: int) -> Variant | None:
    """Return the variant that a model must have before any symptom: GSPO when it routes between experts."""
    return GSPO if expert_count > 1 else None
