import pytest

from rlvr.watch.metrics import METRICS, Match, is_correctness, match


@pytest.mark.parametrize(
    ("raw", "metric"),
    [
        # TRL 0.14 to 1.16
        ("completion_length", "length"),
        ("completions/mean_length", "length"),
        ("clip_ratio", "clipped_token_share"),
        ("clip_ratio/region_mean", "clipped_token_share"),
        ("frac_reward_zero_std", "zero_variance_share"),
        ("sampling/sampling_logp_difference/mean", "logp_difference"),
        ("train/reward", "reward"),
        ("eval_reward", "held_out_reward"),
        # verl
        ("critic/score/mean", "reward"),
        ("actor/entropy", "entropy"),
        ("actor/entropy_loss", "entropy"),
        ("actor/kl_loss", "kl"),
        ("response_length/clip_ratio", "truncated_share"),
        ("training/rollout_probs_diff_mean", "probability_difference"),
        ("val-core/openai/gsm8k/acc/mean@1", "held_out"),
        ("val/test_score/openai/gsm8k", "held_out"),
        # ms-swift
        ("entropy/mean", "entropy"),
        ("completions/clipped_ratio", "truncated_share"),
        # OpenRLHF
        ("train/response_length", "length"),
        ("actor_grad_norm", "grad_norm"),
        ("ppo_clip_ratio", "clipped_token_share"),
        # ours
        ("held_out/accuracy", "held_out"),
        ("rlvr/informative_groups", "informative_share"),
        ("rlvr/right_share", "accuracy"),
    ],
)
def test_names(raw: str, metric: str) -> None:
    found = match(raw)
    assert found is not None
    assert found.metric == metric


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("rewards/format_reward/mean", "format_reward"),
        ("rewards/AccuracyReward", "AccuracyReward"),
        ("format_reward", "format"),
    ],
)
def test_reward_functions(raw: str, name: str) -> None:
    assert match(raw) == Match("component_mean", 0, name)


@pytest.mark.parametrize("raw", ["timing_s/gen", "perf/mfu", "num_tokens", "epoch", "advantage_reward_x/y/z"])
def test_other_names_are_not_taken_for_a_metric(raw: str) -> None:
    assert match(raw) is None


def test_no_name_stands_for_two_metrics() -> None:
    aliases = [alias.lower() for metric in METRICS for alias in metric.aliases]
    assert len(aliases) == len(set(aliases))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("accuracy_reward", True),
        ("correct", True),
        ("format_reward", False),
        ("well_formed", False),
        ("xmlcount", False),
        ("foo", None),
    ],
)
def test_what_a_reward_pays_by_its_name(name: str, said: bool | None) -> None:
    assert is_correctness(name) is said
