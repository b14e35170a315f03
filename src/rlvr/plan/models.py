"""Named sizes: the shapes of public models, so that a plan needs neither network nor weights.

Each line holds what the model's own published ``config.json`` says. A name is matched without its owner, in lower
case, and with or without suffixes such as ``-instruct``.
"""

from __future__ import annotations

import re
from typing import Any

Row = tuple[int, int, int, int, int, int, int, bool, int]
"""Hidden, layers, heads, key-value heads, head width, intermediate, vocabulary, tied, longest position."""

_SHAPES: dict[str, tuple[str, Row]] = {
    "qwen2.5-0.5b": ("qwen2", (896, 24, 14, 2, 64, 4864, 151936, True, 32768)),
    "qwen2.5-1.5b": ("qwen2", (1536, 28, 12, 2, 128, 8960, 151936, True, 32768)),
    "qwen2.5-3b": ("qwen2", (2048, 36, 16, 2, 128, 11008, 151936, True, 32768)),
    "qwen2.5-7b": ("qwen2", (3584, 28, 28, 4, 128, 18944, 152064, False, 32768)),
    "qwen2.5-14b": ("qwen2", (5120, 48, 40, 8, 128, 13824, 152064, False, 32768)),
    "qwen2.5-32b": ("qwen2", (5120, 64, 40, 8, 128, 27648, 152064, False, 32768)),
    "qwen2.5-72b": ("qwen2", (8192, 80, 64, 8, 128, 29568, 152064, False, 32768)),
    "qwen2.5-math-1.5b": ("qwen2", (1536, 28, 12, 2, 128, 8960, 151936, True, 4096)),
    "qwen2.5-math-7b": ("qwen2", (3584, 28, 28, 4, 128, 18944, 152064, False, 4096)),
    "deepseek-r1-distill-qwen-1.5b": ("qwen2", (1536, 28, 12, 2, 128, 8960, 151936, False, 131072)),
    "deepseek-r1-distill-qwen-7b": ("qwen2", (3584, 28, 28, 4, 128, 18944, 152064, False, 131072)),
    "qwen3-0.6b": ("qwen3", (1024, 28, 16, 8, 128, 3072, 151936, True, 40960)),
    "qwen3-1.7b": ("qwen3", (2048, 28, 16, 8, 128, 6144, 151936, True, 40960)),
    "qwen3-4b": ("qwen3", (2560, 36, 32, 8, 128, 9728, 151936, True, 40960)),
    "qwen3-8b": ("qwen3", (4096, 36, 32, 8, 128, 12288, 151936, False, 40960)),
    "qwen3-14b": ("qwen3", (5120, 40, 40, 8, 128, 17408, 151936, False, 40960)),
    "qwen3-32b": ("qwen3", (5120, 64, 64, 8, 128, 25600, 151936, False, 40960)),
    "qwen3-30b-a3b": ("qwen3_moe", (2048, 48, 32, 4, 128, 6144, 151936, False, 40960)),
    "qwen3-235b-a22b": ("qwen3_moe", (4096, 94, 64, 4, 128, 12288, 151936, False, 40960)),
    "llama-3.2-1b": ("llama", (2048, 16, 32, 8, 64, 8192, 128256, True, 131072)),
    "llama-3.2-3b": ("llama", (3072, 28, 24, 8, 128, 8192, 128256, True, 131072)),
    "llama-3.1-8b": ("llama", (4096, 32, 32, 8, 128, 14336, 128256, False, 131072)),
    "llama-3.1-70b": ("llama", (8192, 80, 64, 8, 128, 28672, 128256, False, 131072)),
    "llama-3.3-70b": ("llama", (8192, 80, 64, 8, 128, 28672, 128256, False, 131072)),
    "deepseek-r1-distill-llama-8b": ("llama", (4096, 32, 32, 8, 128, 14336, 128256, False, 131072)),
    "smollm2-135m": ("llama", (576, 30, 9, 3, 64, 1536, 49152, True, 8192)),
    "smollm2-360m": ("llama", (960, 32, 15, 5, 64, 2560, 49152, True, 8192)),
    "smollm2-1.7b": ("llama", (2048, 24, 32, 32, 64, 8192, 49152, True, 8192)),
    "smollm3-3b": ("smollm3", (2048, 36, 16, 4, 128, 11008, 128256, True, 65536)),
    "mistral-7b-v0.3": ("mistral", (4096, 32, 32, 8, 128, 14336, 32768, False, 32768)),
    "mixtral-8x7b": ("mixtral", (4096, 32, 32, 8, 128, 14336, 32000, False, 32768)),
    "phi-4": ("phi3", (5120, 40, 40, 10, 128, 17920, 100352, False, 16384)),
    "gemma-2-2b": ("gemma2", (2304, 26, 8, 4, 256, 9216, 256000, True, 8192)),
    "gemma-2-9b": ("gemma2", (3584, 42, 16, 8, 256, 14336, 256000, True, 8192)),
    "gemma-3-1b": ("gemma3_text", (1152, 26, 4, 1, 256, 6912, 262144, True, 32768)),
    "olmo-2-7b": ("olmo2", (4096, 32, 32, 32, 128, 11008, 100352, False, 4096)),
}

_EXPERTS: dict[str, dict[str, int]] = {
    "qwen3-30b-a3b": {"num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768},
    "qwen3-235b-a22b": {"num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 1536},
    "mixtral-8x7b": {"num_local_experts": 8, "num_experts_per_tok": 2},
}

SIZES: dict[str, str] = {
    "0.5b": "qwen2.5-0.5b",
    "1.5b": "qwen2.5-1.5b",
    "3b": "qwen2.5-3b",
    "7b": "qwen2.5-7b",
    "8b": "qwen3-8b",
    "14b": "qwen3-14b",
    "32b": "qwen3-32b",
    "70b": "llama-3.1-70b",
    "30b-a3b": "qwen3-30b-a3b",
}
"""A bare size, and the model that stands for it."""

_SUFFIX = re.compile(r"-(instruct|base|it|chat|thinking|hf|2507|sft|pt|\d{4}-instruct|v0\.1)$")


def named_models() -> list[str]:
    """Return all known names."""
    return [*SIZES, *_SHAPES]


def named_config(name: str) -> dict[str, Any] | None:
    """Return the configuration of a named model or size, or None for an unknown name."""
    key = name.strip().lower().rpartition("/")[2].removeprefix("meta-")
    while key not in _SHAPES and key not in SIZES and _SUFFIX.search(key):
        key = _SUFFIX.sub("", key)
    key = SIZES.get(key, key)
    if key not in _SHAPES:
        return None
    family, row = _SHAPES[key]
    hidden, layers, heads, kv_heads, head_dim, intermediate, vocabulary, tied, context = row
    return {
        "model_type": family,
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": head_dim,
        "intermediate_size": intermediate,
        "vocab_size": vocabulary,
        "tie_word_embeddings": tied,
        "max_position_embeddings": context,
        **_EXPERTS.get(key, {}),
    }
