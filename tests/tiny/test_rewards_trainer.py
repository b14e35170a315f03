"""A real GRPOTrainer on the scorer: rows that nobody could judge get no advantage and disturb no group."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
import torch

from rlvr.errors import InfrastructureError
from rlvr.rewards.composite import Component, Scorer
from rlvr.rewards.exact import Exact
from rlvr.rewards.tags import Tags

pytestmark = pytest.mark.tiny

GROUP = 4
TEXTS = [  # one group: right, wrong, ill-formed, and one on which the judge fails
    "<think>a</think><answer>4</answer>",
    "<think>a</think><answer>5</answer>",
    "no tags",
    "<think>a</think><answer>4</answer> flaky",
]


class Flaky:
    """A reward whose service fails on some rows."""

    __name__ = "flaky"

    def __call__(self, prompts: Any, completions: Any, **_: Any) -> list[float]:
        if any("flaky" in text for text in completions):
            raise InfrastructureError("judge.down", "the service is down")
        return [0.5] * len(completions)


def scorer() -> Scorer:
    return Scorer(
        [
            Component("right", Exact()),
            Component("tags", Tags(strict_end=False), weight=0.2, role="format"),
            Component("flaky", Flaky(), weight=0.1, cut=0.5),
        ]
    )


class Fixed:
    """A rollout that answers with given texts instead of sampling."""

    def __init__(self) -> None:
        self.texts = TEXTS

    def __call__(self, prompts: list[Any], trainer: Any) -> dict[str, Any]:
        def ids(text: str) -> list[int]:
            return trainer.processing_class(text)["input_ids"]

        completions = [ids(text) for text in self.texts]
        logprobs = [[-1.0] * len(completion) for completion in completions]
        return {
            "prompt_ids": [ids(prompt) for prompt in prompts],
            "completion_ids": completions,
            "logprobs": logprobs,
        }


@pytest.fixture(scope="module")
def trainer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    from datasets import Dataset
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
    from trl import GRPOConfig, GRPOTrainer

    alphabet = sorted(set("".join(TEXTS)) | set("abcdefghijklmnopqrstuvwxyz 0123456789+=?"))
    vocabulary = {sign: number for number, sign in enumerate(["<pad>", "<eos>", "<unk>", *alphabet])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.decoder = decoders.Fuse()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        eos_token="<eos>",
        unk_token="<unk>",
        padding_side="left",
    )
    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(vocabulary),
            hidden_size=16,
            intermediate_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_key_value_heads=2,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=1,
        )
    )
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")  # rollout functions are marked experimental
    one = scorer()
    arguments = GRPOConfig(
        output_dir=str(tmp_path_factory.mktemp("out")),
        per_device_train_batch_size=GROUP,
        num_generations=GROUP,
        max_completion_length=64,
        max_steps=1,
        reward_weights=one.weights(),
        report_to=[],
        use_cpu=True,
        bf16=False,
        logging_steps=1,
        loss_type="grpo",
        save_strategy="no",
        disable_tqdm=True,
    )
    data = Dataset.from_list([{"prompt": "2+2=?", "answer": "4"}] * GROUP)
    made = GRPOTrainer(
        model,
        reward_funcs=one.reward_functions(),
        args=arguments,
        train_dataset=data,
        processing_class=fast,
        rollout_func=Fixed(),
    )
    monkeypatch.undo()
    return made


def advantages(trainer: Any, texts: list[str]) -> list[float]:
    """Return the advantages that TRL computes for given texts, through its own scoring and grouping."""
    trainer.rollout_func.texts = texts
    trainer.model.train()
    output = trainer._generate_and_score_completions([{"prompt": "2+2=?", "answer": "4"} for _ in texts])
    return [float(value) for value in output["advantages"]]


def expected(totals: list[float]) -> list[float]:
    values = torch.tensor(totals)
    return ((values - values.mean()) / (values.std() + 1e-4)).tolist()


def test_a_row_without_verdict_gets_no_advantage_and_leaves_its_group_alone(trainer: Any) -> None:
    found = advantages(trainer, TEXTS)
    assert found[3] == 0.0
    assert found[:3] == pytest.approx(expected([1.25, 0.25, 0.0]), abs=1e-4)
    assert found[0] > found[1] > found[2]


def test_a_group_of_failures_trains_nothing(trainer: Any) -> None:
    assert advantages(trainer, [TEXTS[3]] * GROUP) == [0.0] * GROUP


def test_a_sound_group_is_scored_as_trl_would_without_us(trainer: Any) -> None:
    found = advantages(trainer, [TEXTS[0], TEXTS[1], TEXTS[1], TEXTS[2]])
    assert found == pytest.approx(expected([1.25, 0.25, 0.25, 0.0]), abs=1e-4)


def test_failures_were_counted_once_a_row(trainer: Any) -> None:
    failures = trainer.reward_funcs[0].scorer.failures
    before = failures.rows, failures.failed
    advantages(trainer, TEXTS)
    after = trainer.reward_funcs[0].scorer.failures
    assert (after.rows - before[0], after.failed - before[1]) == (GROUP, 1)


def test_a_real_step_trains_and_logs_every_component(trainer: Any) -> None:
    trainer.rollout_func.texts = TEXTS
    trainer.train()
    logged = {key for entry in trainer.state.log_history for key in entry}
    assert {"rewards/right/mean", "rewards/tags/mean", "rewards/flaky/mean", "rewards/right_share"} <= logged
    assert all(pickle.loads(pickle.dumps(function)).__name__ for function in trainer.reward_funcs)
