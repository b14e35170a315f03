"""Builds the demo's model: about 0.2 million parameters, a character tokenizer, its own chat template.

It is saved as an ordinary checkpoint folder, so that everything after it is what a user's own model goes through.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from transformers.utils import logging as transformers_logging

from rlvr.demo.task import Question, demonstration
from rlvr.generate.threads import fit_threads

CHARACTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,:;!?+-*/=()[]{}<>'\"_#\n"
SPECIAL = ("<pad>", "<|end|>", "<|user|>", "<|assistant|>", "<|system|>")
TAGS = ("<answer>", "</answer>")
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)
STEPS = 400
BATCH = 64


def build_tokenizer() -> PreTrainedTokenizerFast:
    """Return a tokenizer with one token a character, and the answer tags as single tokens."""
    words = [*SPECIAL, *TAGS, *CHARACTERS, "<unk>"]
    tokenizer = Tokenizer(
        models.WordLevel({word: index for index, word in enumerate(words)}, unk_token="<unk>")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), behavior="isolated")
    tokenizer.decoder = decoders.Fuse()
    tokenizer.add_special_tokens(list(SPECIAL))
    tokenizer.add_tokens(list(TAGS))
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|end|>",
        pad_token="<pad>",
        unk_token="<unk>",
        padding_side="left",
    )
    fast.chat_template = CHAT_TEMPLATE
    return fast


def build_model(vocabulary: int, seed: int, hidden: int = 96, layers: int = 2) -> LlamaForCausalLM:
    """Return a small random Llama in fp32; the same weights for the same seed."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=256,
        tie_word_embeddings=True,
        eos_token_id=1,
        pad_token_id=0,
        bos_token_id=None,
    )
    return LlamaForCausalLM(config)


def teach(
    model: LlamaForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    examples: list[Question],
    seed: int,
    steps: int = STEPS,
    progress: Callable[[int, int], None] | None = None,
    demonstrate: Callable[[Question, random.Random], str] = demonstration,
) -> None:
    """Fine-tune on mixed demonstrations, so that the model succeeds sometimes.

    Args:
        model: Trained in place.
        tokenizer: Its tokenizer.
        examples: Questions to draw from.
        seed: Order and mixture of the demonstrations.
        steps: Optimizer steps of :data:`BATCH` examples.
        progress: Called with (done, all) after each step.
        demonstrate: Makes a completion to imitate; the demo's own mixture unless given.
    """
    fit_threads(model)
    rng = random.Random(seed)  # noqa: S311  # a data order, not a secret
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=3e-3, total_steps=steps, pct_start=0.1)
    model.train()
    for step in range(steps):
        batch = [_example(tokenizer, rng.choice(examples), rng, demonstrate) for _ in range(BATCH)]
        ids, labels = _collate(batch)
        loss = model(input_ids=ids, attention_mask=(ids != 0).long(), labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad(set_to_none=True)
        if progress is not None:
            progress(step + 1, steps)
    model.eval()


def save(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Save an ordinary checkpoint folder."""
    transformers_logging.disable_progress_bar()
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _example(
    tokenizer: PreTrainedTokenizerFast,
    question: Question,
    rng: random.Random,
    demonstrate: Callable[[Question, random.Random], str],
) -> tuple[list[int], list[int]]:
    head = f"<|user|>{question.prompt}<|end|><|assistant|>"
    prompt = tokenizer.encode(head, add_special_tokens=False)
    answer = tokenizer.encode(demonstrate(question, rng) + "<|end|>", add_special_tokens=False)
    return prompt + answer, [-100] * len(prompt) + answer


def _collate(batch: list[tuple[list[int], list[int]]]) -> tuple[torch.Tensor, torch.Tensor]:
    width = max(len(ids) for ids, _ in batch)
    ids = torch.tensor([row + [0] * (width - len(row)) for row, _ in batch])
    labels = torch.tensor([row + [-100] * (width - len(row)) for _, row in batch])
    return ids, labels
