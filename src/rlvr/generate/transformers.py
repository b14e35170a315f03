"""Samples with transformers: batched, and the same for a seed whatever stands beside a prompt in its batch.

Each completion has its own random keys, one a token, from which every word of the vocabulary gets its own exponential
waiting time; the word with the shortest time over its probability is the draw (the exponential race, the same as
Gumbel-max), and ``generate`` only takes the largest score. A resumed or differently batched run draws the same
completions, but where rounding of batched matrix products turns a race that was a dead heat. Inverting the cumulative
distribution instead would let such rounding move every draw from the long tail.
"""

# ruff: noqa: N803, N806  (B batch, T time, V vocabulary: shapes in names)
from __future__ import annotations

import contextlib
import io
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache, GenerationConfig, LogitsProcessor

from rlvr.errors import ConfigError, DataError, InfrastructureError, in_words
from rlvr.generate import Generated, Progress
from rlvr.generate.location import Location, load_failed, locate
from rlvr.generate.network import stay_offline_when_unreachable
from rlvr.generate.randomness import completion_seed, token_keys
from rlvr.generate.threads import TINY_PARAMETERS, fit_threads
from rlvr.records.samples import Message
from rlvr.task.prompt import no_template, plain_text

TURN_ENDS = ("<|im_end|>", "<|eot_id|>", "<end_of_turn>", "<|end|>", "<|endoftext|>", "</s>")
"""Marks that end an assistant's turn, used when the chat template writes them."""

TINY_BATCH = 512
"""Completions at once for a model so small that the overhead of a step outweighs its arithmetic."""


PLAIN_CACHE = frozenset(
    {
        "llama",
        "mistral",
        "mixtral",
        "qwen2",
        "qwen2_moe",
        "qwen3",
        "qwen3_moe",
        "gemma",
        "gemma2",
        "phi3",
        "olmo2",
    }
    | {"smollm3", "granite"}
)
"""Model types known to take a filled cache; others read a prompt once for each of its completions."""


class TransformersGenerator:
    """One causal language model with its tokenizer; see :class:`rlvr.generate.Generator`.

    Args:
        model: Local folder, ``.gguf`` file, adapter folder, or Hub id.
        base: Folder that relative paths are resolved against.
        adapter: Adapter on top of ``model``.
        chat_template: File with a Jinja template that replaces the tokenizer's own.
        top_p: Nucleus: the smallest set of tokens with at least this probability.
        batch_size: Completions at once; halved by itself when memory runs out.

    Raises:
        ConfigError: ``model.missing``, ``model.not-a-model`` or ``model.damaged``.
        InfrastructureError: ``model.unreachable``.
    """

    def __init__(
        self,
        model: str,
        base: Path,
        *,
        adapter: str | None = None,
        chat_template: Path | None = None,
        top_p: float = 1.0,
        batch_size: int = 64,
    ) -> None:
        location = locate(model, base, adapter)
        network, tokenizer = _load(location, base)
        if chat_template is not None:
            tokenizer.chat_template = _read_template(chat_template)
        self._set_up(network, tokenizer, f"transformers:{model}", top_p, batch_size)

    @classmethod
    def wrap(
        cls, network: Any, tokenizer: Any, *, name: str = "loaded", top_p: float = 1.0, batch_size: int = 64
    ) -> TransformersGenerator:
        """Return a generator over a model that is already loaded, such as the one in training."""
        self = cls.__new__(cls)
        self._set_up(network, tokenizer, name, top_p, batch_size)
        return self

    def _set_up(self, network: Any, tokenizer: Any, name: str, top_p: float, batch_size: int) -> None:
        fit_threads(network)
        self.network, self.tokenizer, self.name, self.top_p = network, tokenizer, name, top_p
        self.has_chat_template = bool(tokenizer.chat_template)
        self.context: int | None = getattr(network.config.get_text_config(), "max_position_embeddings", None)
        self.batch_size = (
            max(batch_size, TINY_BATCH) if _parameters(network) < TINY_PARAMETERS else batch_size
        )
        self.stop_tokens = _stop_tokens(network, tokenizer)
        self.pad_token = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else self.stop_tokens[0]

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
        """Sample ``count`` completions of every prompt; see :meth:`rlvr.generate.Generator.generate`."""
        encoded = self._encode(prompts)
        jobs = [
            _Job(place, index, encoded[place], completion_seed(seed, prompt, temperature, index))
            for place, prompt in enumerate(prompts)
            for index in range(count)
        ]
        jobs.sort(key=lambda job: len(job.tokens))  # little padding
        found: list[list[Generated | None]] = [[None] * count for _ in prompts]
        was_training = self.network.training
        self.network.eval()
        try:
            for job, one in self._run(jobs, temperature, max_tokens, progress):
                found[job.place][job.index] = one
        finally:
            self.network.train(was_training)
        return [[one for one in row if one is not None] for row in found]

    def count_tokens(self, prompts: Sequence[Sequence[Message]]) -> list[int]:
        """Return each prompt's length in tokens."""
        return [len(tokens) for tokens in self._encode(prompts)]

    def close(self) -> None:
        """Free the model."""
        self.network = None
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def render(self, prompt: Sequence[Message]) -> str:
        """Return the text that the model reads for ``prompt``.

        Raises:
            DataError: ``data.no-chat-template`` when it has a conversation and the model no template.
        """
        if self.has_chat_template:
            messages = [{"role": message.role, "content": message.content} for message in prompt]
            return _rendered(self.tokenizer, messages, self.name)
        if any(message.role == "assistant" for message in prompt):
            raise no_template("a conversation", self.name)
        return plain_text(prompt)

    def _encode(self, prompts: Sequence[Sequence[Message]]) -> list[list[int]]:
        texts = [self.render(prompt) for prompt in prompts]
        if not texts:
            return []
        # A template writes its own begin mark; plain text gets the tokenizer's.
        encoded = self.tokenizer(texts, add_special_tokens=not self.has_chat_template)["input_ids"]
        return [list(tokens) for tokens in encoded]

    def _run(
        self, jobs: list[_Job], temperature: float, max_tokens: int, progress: Progress | None
    ) -> Iterator[tuple[_Job, Generated]]:
        start, size = 0, self.batch_size
        while start < len(jobs):
            batch = jobs[start : start + size]
            try:
                done = self._batch(batch, temperature, max_tokens)
            except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
                size = _smaller(size, error, self.name)
                continue
            yield from zip(batch, done, strict=True)
            start += len(batch)
            if progress is not None:
                progress(len(batch))

    def _batch(self, batch: list[_Job], temperature: float, max_tokens: int) -> list[Generated]:
        width = max(len(job.tokens) for job in batch)
        device = self.network.device
        tokens_BT = torch.full((len(batch), width), self.pad_token, dtype=torch.long)
        mask_BT = torch.zeros_like(tokens_BT)
        for row, job in enumerate(batch):
            tokens_BT[row, width - len(job.tokens) :] = torch.tensor(job.tokens)
            mask_BT[row, width - len(job.tokens) :] = 1
        processors = (
            [] if temperature == 0 else [_Draw(batch, width, temperature, self.top_p, max_tokens, device)]
        )
        settings = GenerationConfig(
            do_sample=False,
            max_new_tokens=max_tokens,
            eos_token_id=self.stop_tokens,
            pad_token_id=self.pad_token,
        )
        tokens_BT, mask_BT = tokens_BT.to(device), mask_BT.to(device)
        with torch.inference_mode():
            out_BT = self.network.generate(
                input_ids=tokens_BT,
                attention_mask=mask_BT,
                past_key_values=self._read_once(batch, tokens_BT, mask_BT),
                logits_processor=processors,
                generation_config=settings,
            )
        return self._decode(out_BT[:, width:].tolist(), max_tokens)

    def _read_once(self, batch: list[_Job], tokens_BT: torch.Tensor, mask_BT: torch.Tensor) -> Any:
        """Return a cache of the prompts, each read once however many completions it gets; None: read them all."""
        first: dict[int, int] = {}
        for row, job in enumerate(batch):
            first.setdefault(job.place, row)
        if len(first) == len(batch) or tokens_BT.shape[1] < 2 or not _keeps_plain_cache(self.network):
            return None
        rows_U = torch.tensor(list(first.values()), device=tokens_BT.device)
        mask_UT = mask_BT[rows_U, :-1]
        cache = DynamicCache(config=self.network.config)
        self.network(
            input_ids=tokens_BT[rows_U, :-1],
            attention_mask=mask_UT,
            position_ids=(mask_UT.cumsum(-1) - 1).clamp(min=0),
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        places = {place: number for number, place in enumerate(first)}
        cache.batch_select_indices(torch.tensor([places[job.place] for job in batch], device=rows_U.device))
        return cache

    def _decode(self, rows: list[list[int]], max_tokens: int) -> list[Generated]:
        ends = [
            next((place for place, one in enumerate(row) if one in self.stop_tokens), None) for row in rows
        ]
        kept = [row if end is None else row[: end + 1] for row, end in zip(rows, ends, strict=True)]
        texts = self.tokenizer.batch_decode(kept, skip_special_tokens=True)
        return [
            Generated(text, len(row), end is None and len(row) >= max_tokens)
            for text, row, end in zip(texts, kept, ends, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class _Job:
    place: int
    index: int
    tokens: list[int]
    seed: int


class _Draw(LogitsProcessor):  # type: ignore[misc]  # transformers has no types
    """Leaves one token a row: the winner of the row's exponential race."""

    def __init__(
        self, batch: list[_Job], width: int, temperature: float, top_p: float, max_tokens: int, device: Any
    ) -> None:
        self.width, self.temperature, self.top_p = width, temperature, top_p
        keys = torch.stack([torch.from_numpy(token_keys(job.seed, max_tokens)) for job in batch])
        self.key_BT = keys.to(device)
        self.offset_V: torch.Tensor | None = None

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        step = input_ids.shape[1] - self.width
        share_BV = torch.softmax(scores.float() / self.temperature, dim=-1)
        if self.top_p < 1:
            share_BV = _nucleus(share_BV, self.top_p)
        if self.offset_V is None:
            self.offset_V = torch.arange(scores.shape[-1], device=scores.device) * _GAMMA
        wait_BV = _exponential(self.key_BT[:, step : step + 1] + self.offset_V)
        token_B = (share_BV / wait_BV.clamp(min=1e-30)).argmax(dim=-1, keepdim=True)
        return torch.full_like(scores, -torch.inf).scatter_(1, token_B, 0.0)


_GAMMA, _FIRST, _SECOND = -7046029254386353131, -4658895280553007687, -7723592293110705685
"""Constants of SplitMix64 (Steele, Lea and Flood 2014), as signed 64-bit integers."""


def _exponential(state_BV: torch.Tensor) -> torch.Tensor:
    """Return exponential numbers of mean 1, one for each 64-bit state, by SplitMix64's mixing."""
    mixed_BV = (state_BV ^ _shifted(state_BV, 30)) * _FIRST
    mixed_BV = (mixed_BV ^ _shifted(mixed_BV, 27)) * _SECOND
    mixed_BV = _shifted(mixed_BV ^ _shifted(mixed_BV, 31), 11)  # 53 bits
    # Short waits decide, and float32 keeps them exact in this form.
    part_BV = (mixed_BV.float() * 2.0**-53).clamp(1e-30, 1 - 2.0**-24)
    return -torch.log1p(-part_BV)


def _shifted(value: torch.Tensor, bits: int) -> torch.Tensor:
    # Integers are signed: without the mask a shift to the right would draw the sign in.
    return (value >> bits) & ((1 << (64 - bits)) - 1)


def _nucleus(share_BV: torch.Tensor, top_p: float) -> torch.Tensor:
    ordered_BV, order_BV = share_BV.sort(dim=-1, descending=True)
    before_BV = ordered_BV.cumsum(dim=-1) - ordered_BV
    return torch.zeros_like(share_BV).scatter_(1, order_BV, ordered_BV.masked_fill(before_BV >= top_p, 0.0))


def _load(location: Location, base: Path) -> tuple[Any, Any]:
    logging.getLogger("transformers").setLevel(logging.ERROR)
    transformers.utils.logging.disable_progress_bar()
    if not location.is_local:
        stay_offline_when_unreachable()
    extra = {"gguf_file": location.gguf_file} if location.gguf_file else {}
    device = "cuda" if torch.cuda.is_available() else "cpu"
    dtype = torch.bfloat16 if device == "cuda" and torch.cuda.is_bf16_supported() else torch.float32
    try:
        tokenizer = AutoTokenizer.from_pretrained(_tokenizer_home(location), **extra)
        with contextlib.redirect_stderr(io.StringIO()):  # the GGUF reader draws a bar that nothing turns off
            network = AutoModelForCausalLM.from_pretrained(location.name, dtype=dtype, **extra)
        if location.adapter:
            from peft import PeftModel

            network = PeftModel.from_pretrained(network, location.adapter)
    except ImportError as error:
        raise ConfigError(
            "model.library",
            f"a library is missing: {error}",
            where=f"model {location.name}",
            fix="pip install 'rlvr[gguf]'" if location.gguf_file else "install the library it names",
        ) from None
    except (OSError, ValueError, KeyError, RuntimeError, TypeError, AttributeError) as error:
        raise load_failed(location, base, error) from error
    except Exception as error:
        if type(error).__module__.partition(".")[0] in (
            "safetensors",
            "huggingface_hub",
            "httpx",
            "requests",
        ):
            raise load_failed(location, base, error) from error
        raise
    return network.to(device), tokenizer


def _tokenizer_home(location: Location) -> str:
    adapter = location.adapter
    if adapter and (Path(adapter) / "tokenizer_config.json").is_file():
        return adapter
    return location.name


def _read_template(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            "config.chat-template", f"cannot read it: {error}", where=f"sampling.chat_template {path}"
        ) from None


def _rendered(tokenizer: Any, messages: list[dict[str, str]], name: str) -> str:
    try:
        text = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    except Exception as error:  # a template is a program: it may raise anything
        roles = ", ".join(message["role"] for message in messages)
        raise DataError(
            "data.chat-template",
            f"the chat template refused a prompt with roles {roles}: {in_words(error)}",
            where=name,
            fix="drop the system prompt if the template knows none, or set sampling.chat_template",
        ) from None
    return str(text)


def _stop_tokens(network: Any, tokenizer: Any) -> list[int]:
    named = getattr(network.generation_config, "eos_token_id", None)
    found = list(named) if isinstance(named, list | tuple) else [named]
    found.append(tokenizer.eos_token_id)
    template = tokenizer.chat_template if isinstance(tokenizer.chat_template, str) else ""
    vocabulary = tokenizer.get_vocab()
    found += [vocabulary[mark] for mark in TURN_ENDS if mark in template and mark in vocabulary]
    stops = sorted({token for token in found if token is not None})
    if not stops:
        raise ConfigError(
            "model.no-end",
            "the tokenizer has no end-of-text token",
            expected="eos_token in the tokenizer, or eos_token_id in generation_config.json",
        )
    return stops


def _keeps_plain_cache(network: Any) -> bool:
    """Return whether the model keeps keys and values alone, layer by layer, so that rows can be repeated."""
    if getattr(network, "_is_stateful", False):
        return False
    config = network.config.get_text_config()
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    return (
        kinds <= {"full_attention", "sliding_attention"} and getattr(config, "model_type", "") in PLAIN_CACHE
    )


def _parameters(network: Any) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


def _smaller(size: int, error: BaseException, name: str) -> int:
    short_of_memory = (
        isinstance(error, torch.OutOfMemoryError | MemoryError) or "memory" in str(error).lower()
    )
    if not short_of_memory:
        raise error
    if size == 1:
        raise InfrastructureError(
            "generate.memory",
            "one completion alone does not fit into memory",
            where=name,
            fix="lower sampling.max_completion_length, or take a smaller model",
        ) from error
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return max(1, size // 2)
