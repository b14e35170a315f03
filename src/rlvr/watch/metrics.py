"""One table of what logs call things: this project's name for a metric, and the names that trainers give it.

Covered: TRL 0.14 to 1.16, verl, ms-swift and OpenRLHF, and the commonest names of NeMo-RL, slime and prime-rl.
Names are compared without the prefixes that trackers add (``train/``, ``actor_train/``), and without case.

Sources: ``GRPOTrainer`` of the TRL releases named; verl ``metric_utils.py``, ``dp_actor.py`` and
``ray_trainer.py``; ms-swift ``grpo_trainer.py``; OpenRLHF ``ppo_trainer.py``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric.

    Attributes:
        name: This project's name.
        unit: Unit, for evidence and axes.
        says: What it is, in one line.
        aliases: Names in logs, the preferred one first where a log has several.
    """

    name: str
    unit: str
    says: str
    aliases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Match:
    """Where a raw name belongs.

    Attributes:
        metric: This project's name, ``component_mean`` or ``component_std``.
        rank: Position among the metric's aliases; the smallest wins when a log has several.
        component: Name of the reward function for the two component metrics.
        held_out: Whether the value was measured on held-out prompts.
    """

    metric: str
    rank: int = 0
    component: str = ""
    held_out: bool = False


METRICS: Final[tuple[Metric, ...]] = (
    Metric(
        "reward",
        "",
        "mean reward of the batch",
        (
            "reward",
            "critic/score/mean",
            "critic/rewards/mean",
            "rollout/raw_reward",
            "rollout/reward",
            "rollout/rewards",
            "reward/mean",
            "reward_mean",
            "mean_reward",
            "rewards/mean",
            "rewards_mean",
            "rewards",
            "reward_score",
            "objective/scores",
            "objective/rlhf_reward",
            "env/reward/total",
            "return",
        ),
    ),
    Metric(
        "reward_std",
        "",
        "spread of the reward",
        (
            "reward_std",
            "reward/std",
            "rewards/std",
            "critic/score/std",
            "critic/rewards/std",
            "group_reward_std",
        ),
    ),
    Metric("reward_max", "", "largest reward of the batch", ("critic/score/max", "reward/max", "reward_max")),
    Metric(
        "reward_min", "", "smallest reward of the batch", ("critic/score/min", "reward/min", "reward_min")
    ),
    Metric(
        "accuracy",
        "share",
        "share of training completions that are right",
        (
            "rlvr/right_share",
            "rewards/right_share",
            "rlvr/accuracy",
            "accuracy",
            "train_accuracy",
            "acc",
            "critic/acc/mean",
            "rollout/accuracy",
            "correct",
            "correctness",
            "solve_rate",
            "pass_rate",
            "success_rate",
            "reward/acc",
            "acc/mean",
            "pass@1",
        ),
    ),
    Metric(
        "held_out",
        "share",
        "independent check on held-out prompts",
        (
            "held_out/accuracy",
            "held_out_accuracy",
            "heldout_accuracy",
            "heldout/accuracy",
            "held_out",
            "holdout_accuracy",
            "eval_accuracy",
            "eval_acc",
            "eval/accuracy",
            "eval/acc",
            "eval_score",
            "eval/score",
            "eval_pass@1",
            "eval/pass@1",
            "eval_pass_at_1",
            "eval/all/avg@1",
            "validation/accuracy",
            "validation/acc",
            "val/accuracy",
            "val_accuracy",
            "val/acc",
            "val_acc",
            "val/score",
            "test/accuracy",
            "test_accuracy",
            "test/acc",
            "test_score",
            "evaluation/accuracy",
            "benchmark/accuracy",
        ),
    ),
    Metric(
        "held_out_reward",
        "",
        "the training reward on held-out prompts (the same code)",
        (
            "eval_reward",
            "eval/reward",
            "validation/reward",
            "val/reward",
            "held_out/reward",
            "eval/rollout/reward",
        ),
    ),
    Metric("loss", "", "loss", ("loss", "policy_loss", "actor/pg_loss", "actor/loss", "pg_loss", "act_loss")),
    Metric(
        "learning_rate",
        "",
        "learning rate",
        ("learning_rate", "actor/lr", "lr", "actor_lr", "optim/lr", "lr-pg_0"),
    ),
    Metric(
        "grad_norm",
        "",
        "gradient norm before clipping",
        (
            "grad_norm",
            "actor/grad_norm",
            "actor_grad_norm",
            "policy/grad_norm",
            "optim/grad_norm",
            "gradient_norm",
            "global_grad_norm",
        ),
    ),
    Metric(
        "kl",
        "nats a token",
        "KL to the reference policy",
        (
            "kl",
            "actor/kl_loss",
            "actor/reward_kl_penalty",
            "critic/kl",
            "objective/kl",
            "kl_loss",
            "kl/mean",
            "kl_mean",
            "mean_kl",
            "policy_kl",
            "kl_divergence",
            "kl_penalty",
            "rollout/kl",
        ),
    ),
    Metric(
        "entropy",
        "nats a token",
        "policy entropy",
        (
            "entropy",
            "entropy/mean",
            "actor/entropy",
            "actor/entropy_loss",
            "policy/entropy_avg",
            "policy/entropy",
            "policy_entropy",
            "mean_entropy",
            "entropy_mean",
            "approx_entropy",
            "actor/entropy_mean",
            "entropy_loss",
            "rollout/entropy",
            "token_entropy",
            "mean_token_entropy",
            "objective/entropy",
        ),
    ),
    Metric(
        "length",
        "tokens",
        "mean completion length",
        (
            "completions/mean_length",
            "completion_length",
            "completions/length/mean",
            "response_length/mean",
            "response_length",
            "rollout/response_lengths",
            "rollout/response_len/mean",
            "response_len/mean",
            "response_length_mean",
            "mean_response_length",
            "mean_completion_length",
            "completion_len_mean",
            "completion_length/mean",
            "completion_length_mean",
            "completions/mean_terminated_length",
            "mean_gen_tokens_per_sample",
            "seq_len/mean",
            "seq_lens",
            "num_actions",
            "response_len",
            "mean_length",
            "avg_length",
            "length/mean",
            "length",
        ),
    ),
    Metric(
        "length_min",
        "tokens",
        "shortest completion",
        ("completions/min_length", "response_length/min", "completion_length/min"),
    ),
    Metric(
        "length_max",
        "tokens",
        "longest completion",
        ("completions/max_length", "response_length/max", "completion_length/max"),
    ),
    Metric(
        "truncated_share",
        "share",
        "share of completions that the length cap ended",
        (
            "completions/clipped_ratio",
            "response_length/clip_ratio",
            "response_clip_ratio",
            "truncated_ratio",
            "rollout/truncated_ratio",
            "rollout/response_len/truncated_ratio",
            "truncation_rate",
            "truncated_share",
            "clipped_ratio",
            "completions/truncated",
            "is_truncated/mean",
            "overlong_ratio",
            "completions/clip_ratio",
            "truncated",
        ),
    ),
    Metric(
        "zero_variance_share",
        "share",
        "share of groups whose completions all got the same reward",
        (
            "rlvr/zero_variance_groups",
            "frac_reward_zero_std",
            "zero_variance_share",
            "zero_variance_groups",
            "zero_variance_fraction",
            "zero_variance_group_frac",
            "zero_var_group_frac",
            "frac_zero_std",
            "zero_std_ratio",
            "zero_std_frac",
            "rollout/zero_std_ratio",
            "grpo/zero_std_frac",
            "actor/zero_advantage_frac",
            "groups/zero_variance",
            "frac_zero_variance_groups",
        ),
    ),
    Metric(
        "informative_share",
        "share",
        "share of groups with reward variance",
        (
            "rlvr/informative_groups",
            "informative_groups",
            "dynamic_filtering_pass_rate",
            "train/effective_sample_ratio",
            "effective_group_ratio",
            "frac_mixed_outcomes",
            "by_group/frac_mixed",
        ),
    ),
    Metric(
        "all_right_share",
        "share",
        "share of groups whose completions are all right",
        (
            "rlvr/all_right_groups",
            "all_right_groups",
            "solve_all",
            "batch/solve_all",
            "batch_solve_all",
            "frac_all_correct",
            "by_group/frac_all_good",
            "all_correct_ratio",
        ),
    ),
    Metric(
        "all_wrong_share",
        "share",
        "share of groups without any right completion",
        (
            "rlvr/all_wrong_groups",
            "all_wrong_groups",
            "solve_none",
            "batch/solve_none",
            "batch_solve_none",
            "frac_all_wrong",
            "by_group/frac_all_bad",
            "all_wrong_ratio",
        ),
    ),
    Metric(
        "clipped_token_share",
        "share",
        "share of tokens (or sequences) whose ratio was clipped",
        (
            "clip_ratio/region_mean",
            "clip_ratio",
            "actor/pg_clipfrac",
            "ppo_clip_ratio",
            "policy/clipfrac_avg",
            "pg_clipfrac",
            "clipfrac",
            "clip_fraction",
        ),
    ),
    Metric(
        "clipped_low_share",
        "share",
        "clipped at the lower end",
        ("clip_ratio/low_mean", "actor/pg_clipfrac_lower"),
    ),
    Metric("clipped_high_share", "share", "clipped at the upper end", ("clip_ratio/high_mean",)),
    Metric(
        "policy_step_kl",
        "nats a token",
        "KL between two policies of one batch",
        ("actor/ppo_kl", "ppo_kl", "policy/approxkl_avg"),
    ),
    Metric(
        "ratio_mean",
        "",
        "importance ratio of trainer to engine, mean",
        (
            "sampling/importance_sampling_ratio/mean",
            "rollout_corr/rollout_is_mean",
            "mismatch/rollout_is_mean",
            "is_ratio/mean",
            "probs_ratio",
            "train/tis",
            "tis",
        ),
    ),
    Metric(
        "ratio_max",
        "",
        "importance ratio of trainer to engine, largest",
        (
            "sampling/importance_sampling_ratio/max",
            "rollout_corr/rollout_is_max",
            "mismatch/rollout_is_max",
            "is_ratio/max",
            "probs_ratio_max",
            "importance_ratio/max",
            "ratio/max",
            "ratio_max",
            "actor/ratio_max",
        ),
    ),
    Metric(
        "ratio_min",
        "",
        "importance ratio of trainer to engine, smallest",
        (
            "sampling/importance_sampling_ratio/min",
            "rollout_corr/rollout_is_min",
            "mismatch/rollout_is_min",
            "is_ratio/min",
            "importance_ratio/min",
            "ratio/min",
            "ratio_min",
        ),
    ),
    Metric(
        "logp_difference",
        "nats",
        "absolute difference of log-probabilities, engine to trainer, mean",
        (
            "sampling/sampling_logp_difference/mean",
            "train_rollout_logprob_abs_diff",
            "rollout_logp_diff/mean",
            "logp_diff/mean",
            "logprob_diff/mean",
            "sampling_logp_difference/mean",
        ),
    ),
    Metric(
        "logp_difference_max",
        "nats",
        "the same, largest",
        ("sampling/sampling_logp_difference/max", "rollout_logp_diff/max", "sampling_logp_difference/max"),
    ),
    Metric(
        "probability_difference",
        "probability",
        "absolute difference of probabilities, engine to trainer, mean",
        (
            "training/rollout_probs_diff_mean",
            "rollout_probs_diff_mean",
            "rollout_corr/rollout_probs_diff_mean",
            "mismatch/rollout_probs_diff_mean",
        ),
    ),
    Metric(
        "probability_difference_max",
        "probability",
        "the same, largest",
        ("training/rollout_probs_diff_max", "rollout_probs_diff_max"),
    ),
    Metric(
        "engine_kl",
        "nats a token",
        "KL between engine and trainer",
        (
            "rollout_corr/kl",
            "rollout_corr/k3_kl",
            "mismatch/mismatch_kl",
            "mismatch_kl/mean",
            "mismatch/kl",
            "gen_kl_error",
            "vllm_kl",
        ),
    ),
    Metric(
        "router_loss",
        "",
        "load-balancing loss of the router",
        (
            "aux_loss",
            "router_aux_loss",
            "router/aux_loss",
            "load_balancing_loss",
            "moe/aux_loss",
            "moe_aux_loss",
        ),
    ),
    Metric(
        "router_drift",
        "share",
        "share of tokens that engine and trainer route to other experts",
        (
            "router_drift",
            "router/drift",
            "moe/router_drift",
            "router_mismatch",
            "router/mismatch",
            "routing_drift",
        ),
    ),
    Metric(
        "right_length",
        "tokens",
        "mean length of right completions",
        (
            "rlvr/right_length",
            "right_length",
            "response_length/correct",
            "completions/correct_length",
            "length/correct",
        ),
    ),
    Metric(
        "wrong_length",
        "tokens",
        "mean length of wrong completions",
        (
            "rlvr/wrong_length",
            "wrong_length",
            "response_length/incorrect",
            "response_length/wrong",
            "completions/incorrect_length",
            "length/incorrect",
        ),
    ),
    Metric(
        "distinct_answer_share",
        "share",
        "distinct answers within a group, over its size",
        (
            "rlvr/distinct_answers",
            "distinct_answer_share",
            "distinct_answers",
            "diversity",
            "unique_answer_ratio",
        ),
    ),
    Metric(
        "top_answer_share",
        "share",
        "share of the commonest answer in the batch",
        ("rlvr/top_answer_share", "top_answer_share"),
    ),
    Metric(
        "advantage_mean",
        "",
        "mean advantage",
        ("critic/advantages/mean", "advantages/mean", "advantage/mean"),
    ),
)
"""Every metric that something here reads."""

STEP_NAMES: Final[tuple[str, ...]] = (
    "train/global_step",
    "training/global_step",
    "trainer/global_step",
    "global_step",
    "step",
    "steps",
    "train_step",
    "training_step",
    "rollout/step",
    "global_step/max_steps",
    "iteration",
    "iter",
    "_step",
)
"""Names of the step, the preferred one first."""

RUN_NAMES: Final[frozenset[str]] = frozenset(
    {"run", "run_id", "run_name", "_runid", "runid", "run id", "run name"}
)
"""Columns that tell several runs in one file apart."""

IGNORED: Final[frozenset[str]] = frozenset(
    {
        "epoch", "num_tokens", "step_time", "total_flos", "train_runtime", "train_samples_per_second",
        "train_steps_per_second", "train_loss", "_runtime", "_timestamp", "timestamp", "time", "wall_time",
        "elapsed_time", "remaining_time", "percentage", "memory(gib)", "seconds",
        "rewards/infrastructure_share", "train_speed(iter/s)", "train_speed(s/it)",
    }
)  # fmt: skip
"""Columns that say nothing about symptoms and need no remark."""

_PREFIXES: Final = re.compile(r"^(?:train|training|rl|grpo|metrics|actor_train|policy_train)/(?=.)")
_VALIDATION: Final = re.compile(
    r"^(?:val-core|val|validation|test|eval)[/_](?:.*[/_])?"
    r"(?:acc(?:uracy)?|test_score|score|pass@?1|pass_rate|correct(?:ness)?|mean_score|exact_match)"
    r"(?:/(?:mean|avg|acc)(?:@\d+)?|_mean)?(?:/.*)?$"
)
_VALIDATION_COMPONENT: Final = re.compile(r"^eval[_/]rewards/(?P<name>.+?)/(?P<what>mean|std)$")
_COMPONENT: Final = re.compile(r"^rewards/(?P<name>.+?)(?:/(?P<what>mean|std))?$")
_COMPONENT_SUFFIX: Final = re.compile(
    r"^(?P<name>(?!eval|mean|avg|average|total|max|min|std|train|val|test|group|raw|return)[a-z]\w*?)_reward(?:_mean|/mean)?(?P<what>)$"
)
_COMPONENT_LOOSE: Final = re.compile(
    r"^(?:reward_components?|component|env/reward|reward_metrics|rewards?_fn)s?[/.](?P<name>.+?)(?:/(?P<what>mean|std))?$"
)
_ENV_ALIASES: Final[dict[str, tuple[str, int]]] = {
    alias.lower(): (metric.name, rank) for metric in METRICS for rank, alias in enumerate(metric.aliases)
}
UNITS: Final[dict[str, str]] = {metric.name: metric.unit for metric in METRICS}
"""Metric to unit."""
SAYS: Final[dict[str, str]] = {metric.name: metric.says for metric in METRICS}
"""Metric to what it is."""


@lru_cache(maxsize=4096)
def match(raw: str) -> Match | None:
    """Return where a raw log name belongs, or None when nothing here reads it."""
    name = raw.strip().lower()
    for candidate in dict.fromkeys((name, _PREFIXES.sub("", name))):
        found = _match_exact(candidate) or _match_pattern(candidate, raw.strip())
        if found:
            return found
    return None


def is_ignored(raw: str) -> bool:
    """Whether a name needs no remark when nothing reads it."""
    name = _PREFIXES.sub("", raw.strip().lower())
    return name in IGNORED or name in RUN_NAMES or name in STEP_NAMES


def step_rank(raw: str) -> int | None:
    """Return how good a step column this is (0 is best), or None when it is none."""
    name = raw.strip().lower()
    return STEP_NAMES.index(name) if name in STEP_NAMES else None


def _match_exact(name: str) -> Match | None:
    found = _ENV_ALIASES.get(name)
    return Match(found[0], found[1]) if found else None


def _match_pattern(name: str, raw: str) -> Match | None:
    if inner := _VALIDATION_COMPONENT.match(name):
        return Match(f"component_{inner['what']}", 0, _component(raw, inner["name"]), held_out=True)
    if _VALIDATION.match(name):
        return Match("held_out", 100)
    if name in IGNORED:
        return None
    if inner := _COMPONENT.match(name) or _COMPONENT_LOOSE.match(name) or _COMPONENT_SUFFIX.match(name):
        return Match(f"component_{inner['what'] or 'mean'}", 0, _component(raw, inner["name"]))
    return None


def _component(raw: str, lowered: str) -> str:
    """Return the component's name with the case that the log has."""
    start = raw.lower().find(lowered)
    return raw[start : start + len(lowered)] if start >= 0 else lowered


_CORRECT: Final = re.compile(
    r"correct|accura|(?:^|[_/ ])acc(?:$|[_/ ])|exact|solution|solve|verif|unit_test|test_pass|pass_rate|"
    r"math(?!_format)|equal|outcome|answer(?!_format|_tag)|tool_call|json_schema|task|gsm|result|sorted|check|score_fn"
)
_STYLE: Final = re.compile(
    r"form(?:at|ed)|tag|xml|length|len(?:$|[_/ "
    "])|think|style|cosine|repeti|overlong|brevity|penalt|count|strict|soft|bonus|"
    r"language|structure|int_reward|digit"
)


def is_correctness(component: str) -> bool | None:
    """Tell by its name whether a reward component pays correctness; None when the name says nothing."""
    name = component.lower()
    if _STYLE.search(name):
        return False
    return True if _CORRECT.search(name) else None
