"""Samples from any OpenAI-compatible chat endpoint, many requests at once, with retries that end.

Determinism is the server's affair: a seed is sent with every request, and servers may ignore it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import Any

from rlvr.errors import ConfigError, InfrastructureError
from rlvr.generate import Generated, Progress
from rlvr.generate.randomness import completion_seed
from rlvr.records.samples import Message

RETRIES = 4
"""Attempts after the first, at rising intervals, for refusals that pass: 429, 5xx, a broken connection."""
TIMEOUT_S = 600.0


class EndpointGenerator:
    """An OpenAI-compatible server; see :class:`rlvr.generate.Generator`.

    Args:
        base_url: Such as ``http://localhost:8000/v1``.
        model: Model name at the server.
        api_key_variable: Environment variable that holds the key; a server without keys needs none.
        top_p: Nucleus.
        concurrency: Requests under way at once.
        timeout: Seconds a request may take.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key_variable: str = "OPENAI_API_KEY",
        top_p: float = 1.0,
        concurrency: int = 64,
        timeout: float = TIMEOUT_S,
    ) -> None:
        self.base_url, self.model, self.top_p = base_url, model, top_p
        self.name = f"endpoint:{base_url} {model}"
        self.has_chat_template = True
        self.context: int | None = None
        self.batch_size = concurrency
        self.timeout = timeout
        self._key = os.environ.get(api_key_variable) or "none"
        self._key_variable = api_key_variable

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
        options = {"temperature": temperature, "top_p": self.top_p, "max_tokens": max_tokens}
        return asyncio.run(self._gather(prompts, count, options, seed, progress))

    def count_tokens(self, prompts: Sequence[Sequence[Message]]) -> list[int]:
        """Return -1 for each prompt: the protocol has no way to ask."""
        return [-1] * len(prompts)

    def close(self) -> None:
        """Nothing is held open between calls."""

    async def _gather(
        self,
        prompts: Sequence[Sequence[Message]],
        count: int,
        options: dict[str, Any],
        seed: int,
        progress: Progress | None,
    ) -> list[list[Generated]]:
        import openai

        gate = asyncio.Semaphore(self.batch_size)
        async with openai.AsyncOpenAI(
            base_url=self.base_url, api_key=self._key, max_retries=RETRIES, timeout=self.timeout
        ) as client:

            async def one(prompt: Sequence[Message], index: int) -> Generated:
                drawn = completion_seed(seed, prompt, options["temperature"], index) % 2**31
                async with gate:
                    found = await self._ask(client, prompt, {**options, "seed": drawn})
                if progress is not None:
                    progress(1)
                return found

            tasks = [
                asyncio.ensure_future(one(prompt, index)) for prompt in prompts for index in range(count)
            ]
            try:
                flat = await asyncio.gather(*tasks)
            except BaseException:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                raise
        return [flat[start : start + count] for start in range(0, len(flat), count)]

    async def _ask(self, client: Any, prompt: Sequence[Message], options: dict[str, Any]) -> Generated:
        import openai

        messages = [{"role": message.role, "content": message.content} for message in prompt]
        try:
            answer = await client.chat.completions.create(model=self.model, messages=messages, **options)
        except openai.APIStatusError as error:
            raise self._refused(error) from error
        except (openai.APIError, ValueError) as error:
            raise InfrastructureError(
                "endpoint.unreachable",
                f"no answer after {RETRIES + 1} attempts ({type(error).__name__}: {error})",
                where=self.base_url,
                expected="an OpenAI-compatible server that is up",
                fix="start it, or mend sampling.endpoint; what was sampled is kept, run the same command again",
            ) from error
        return self._read(answer)

    def _read(self, answer: Any) -> Generated:
        choices = getattr(answer, "choices", None)
        if not choices or choices[0].message is None:
            raise InfrastructureError(
                "endpoint.answer",
                f"an answer without a completion: {str(answer)[:120]}",
                where=self.base_url,
                expected="an OpenAI chat completion",
            )
        usage = getattr(answer, "usage", None)
        tokens = usage.completion_tokens if usage is not None else -1
        text = choices[0].message.content or ""
        return Generated(text, tokens, choices[0].finish_reason == "length")

    def _refused(self, error: Any) -> ConfigError | InfrastructureError:
        found = f"status {error.status_code}: {str(error.message)[:300]}"
        if error.status_code in (401, 403):
            return ConfigError(
                "endpoint.key",
                found,
                where=self.base_url,
                expected=f"a key in the environment variable {self._key_variable}",
            )
        if error.status_code in (400, 404, 422):
            return ConfigError(
                "endpoint.request",
                found,
                where=self.base_url,
                expected="a chat model under this name, prompts within its context, and a base URL ending in /v1",
                fix="mend sampling.endpoint or sampling.endpoint_model",
            )
        return InfrastructureError(
            "endpoint.failed",
            found,
            where=self.base_url,
            fix="what was sampled is kept; run the same command again when the server is well",
        )
