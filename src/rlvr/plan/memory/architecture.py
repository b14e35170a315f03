"""The shape of a model, read from its ``config.json`` alone, with an exact parameter count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rlvr.errors import ConfigError

LIMITS = {
    "hidden_size": (8, 65_536),
    "num_hidden_layers": (1, 1_000),
    "num_attention_heads": (1, 1_024),
    "vocab_size": (2, 10_000_000),
}
"""Plausible ranges; outside of them the configuration is broken."""

QUERY_KEY_NORM = {"qwen3", "qwen3_moe", "qwen3_vl_text", "gemma3_text", "gemma3", "olmo2"}
QKV_BIAS = {"qwen2", "qwen2_moe", "qwen2_vl", "qwen2_5_vl", "qwen2_5_vl_text", "qwen2_vl_text"}
DENSE_FAMILIES = {
    "llama",
    "mistral",
    "ministral",
    "qwen2",
    "qwen3",
    "phi3",
    "smollm3",
    "gemma",
    "gemma2",
    "gemma3_text",
    "granite",
    "olmo2",
    "qwen2_5_vl_text",
    "qwen2_vl_text",
    "qwen3_vl_text",
    "qwen2_vl",
    "qwen2_5_vl",
}
EXPERT_FAMILIES = {"mixtral", "qwen2_moe", "qwen3_moe", "olmoe"}
UNGATED = {"gpt_neox", "starcoder2", "phi"}


@dataclass(frozen=True)
class Architecture:
    """A decoder-only language model.

    Attributes:
        family: ``model_type`` of the configuration.
        hidden: Width.
        layers: Number of layers.
        heads: Query heads.
        kv_heads: Key and value heads.
        head_dim: Width of one head.
        intermediate: Width of the dense feed-forward, or of one expert.
        vocabulary: Size of the vocabulary.
        tied: Whether the head shares the embedding.
        experts: Experts a layer; 0 for a dense model.
        experts_per_token: Experts that one token passes through.
        shared_intermediate: Width of a shared expert; 0 without.
        dense_layers: Layers of a mixture-of-experts model that have no experts.
        dense_intermediate: Width of the feed-forward in those layers.
        qkv_bias: Whether query, key and value have biases.
        output_bias: Whether the output projection has one.
        qk_norm: Whether query and key are normalised.
        extra_norms: Further norms a layer beyond the usual two.
        gated: Whether the feed-forward has a gate.
        context: Longest position.
        vision_parameters: Parameters of a vision tower, which stays frozen.
        known: Whether the family is one that the closed form was checked on.
    """

    family: str
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocabulary: int
    tied: bool
    experts: int = 0
    experts_per_token: int = 0
    shared_intermediate: int = 0
    dense_layers: int = 0
    dense_intermediate: int = 0
    qkv_bias: bool = False
    output_bias: bool = False
    qk_norm: bool = False
    extra_norms: int = 0
    gated: bool = True
    context: int = 0
    vision_parameters: int = 0
    known: bool = True

    @property
    def query_width(self) -> int:
        """Width of all query heads."""
        return self.heads * self.head_dim

    @property
    def kv_width(self) -> int:
        """Width of all key (or value) heads."""
        return self.kv_heads * self.head_dim

    @property
    def embedding_parameters(self) -> int:
        """Parameters of the embedding."""
        return self.vocabulary * self.hidden

    @property
    def head_parameters(self) -> int:
        """Parameters of a head of its own; 0 when tied."""
        return 0 if self.tied else self.vocabulary * self.hidden

    @property
    def attention_parameters(self) -> int:
        """Parameters of the four projections of one layer, biases included."""
        weights = self.hidden * (2 * self.query_width + 2 * self.kv_width)
        bias = (self.query_width + 2 * self.kv_width) * self.qkv_bias + self.hidden * self.output_bias
        return weights + bias

    @property
    def mlp_matrices(self) -> int:
        """Matrices of one feed-forward."""
        return 3 if self.gated else 2

    @property
    def expert_parameters(self) -> int:
        """Parameters of one expert, or of the dense feed-forward."""
        return self.mlp_matrices * self.hidden * self.intermediate

    @property
    def norm_parameters(self) -> int:
        """Norm parameters of one layer."""
        return (2 + self.extra_norms) * self.hidden + self.qk_norm * self._qk_norm_width

    @property
    def _qk_norm_width(self) -> int:
        return self.query_width + self.kv_width if self.family == "olmo2" else 2 * self.head_dim

    @property
    def layer_parameters(self) -> int:
        """Parameters of one layer (of one with experts, where there are experts)."""
        common = self.attention_parameters + self.norm_parameters
        if not self.experts:
            return common + self.expert_parameters
        shared = self.mlp_matrices * self.hidden * self.shared_intermediate
        shared_gate = self.hidden if self.shared_intermediate else 0
        return (
            common + self.experts * self.expert_parameters + self.hidden * self.experts + shared + shared_gate
        )

    @property
    def dense_layer_parameters(self) -> int:
        """Parameters of one layer without experts in a mixture-of-experts model."""
        return (
            self.attention_parameters
            + self.norm_parameters
            + self.mlp_matrices * self.hidden * self.dense_intermediate
        )

    @property
    def text_parameters(self) -> int:
        """Parameters of the language model."""
        layers = (self.layers - self.dense_layers) * self.layer_parameters
        layers += self.dense_layers * self.dense_layer_parameters
        return self.embedding_parameters + self.head_parameters + layers + self.hidden

    @property
    def parameters(self) -> int:
        """All parameters, a vision tower included."""
        return self.text_parameters + self.vision_parameters

    @property
    def active_parameters(self) -> int:
        """Parameters that one token passes through, without the embedding table (a lookup)."""
        if not self.experts:
            return self.text_parameters - self.embedding_parameters + (self.embedding_parameters * self.tied)
        idle = (self.experts - self.experts_per_token) * self.expert_parameters
        lookup = 0 if self.tied else self.embedding_parameters
        return self.text_parameters - (self.layers - self.dense_layers) * idle - lookup

    @property
    def linear_parameters(self) -> int:
        """Parameters of the linear layers inside the blocks: what 4-bit quantization applies to.

        Experts are stored as one three-dimensional parameter, which bitsandbytes leaves in 16 bits (transformers 5).
        """
        per_layer = self.hidden * (2 * self.query_width + 2 * self.kv_width)
        return self.layers * (per_layer + (0 if self.experts else self.expert_parameters))

    def kv_bytes_per_token(self, element: int = 2) -> int:
        """Bytes of keys and values of one token over all layers."""
        return 2 * self.layers * self.kv_width * element


def read_architecture(config: Mapping[str, Any], *, where: str = "model") -> Architecture:
    """Return the shape of a model from its parsed configuration.

    Raises:
        ConfigError: Sizes are missing, absurd, or the model is no decoder-only language model.
    """
    text = config.get("text_config") or config
    if not isinstance(text, Mapping):
        raise _broken(where, "text_config is not an object")
    if config.get("is_encoder_decoder") or text.get("is_encoder_decoder"):
        raise _broken(
            where, f"{config.get('model_type', 'the model')} is an encoder-decoder", "a causal language model"
        )
    sizes = {name: _size(text, name, where) for name in LIMITS}
    heads, hidden = sizes["num_attention_heads"], sizes["hidden_size"]
    head_dim = int(text.get("head_dim") or hidden // heads)
    kv_heads = int(text.get("num_key_value_heads") or heads)
    if heads % kv_heads:
        raise _broken(where, f"num_attention_heads {heads} is no multiple of num_key_value_heads {kv_heads}")
    family = str(text.get("model_type") or config.get("model_type") or "unknown")
    experts = _experts(text)
    return Architecture(
        family=family,
        hidden=hidden,
        layers=sizes["num_hidden_layers"],
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        intermediate=_intermediate(text, experts, where),
        vocabulary=sizes["vocab_size"],
        tied=_tied(config, text, family),
        experts=experts,
        experts_per_token=int(text.get("num_experts_per_tok") or 2) if experts else 0,
        shared_intermediate=int(text.get("shared_expert_intermediate_size") or 0) if experts else 0,
        dense_layers=len(text.get("mlp_only_layers") or ()) if experts else 0,
        dense_intermediate=int(text.get("intermediate_size") or 0) if experts else 0,
        qkv_bias=family in QKV_BIAS or bool(text.get("attention_bias")),
        output_bias=bool(text.get("attention_bias")) and family in {"llama", "granite"},
        qk_norm=family in QUERY_KEY_NORM,
        extra_norms=2 if family in {"gemma2", "gemma3_text"} else 0,
        gated=family not in UNGATED,
        context=int(text.get("max_position_embeddings") or 0),
        vision_parameters=_vision(config.get("vision_config"), hidden),
        known=family in DENSE_FAMILIES | EXPERT_FAMILIES,
    )


def _size(text: Mapping[str, Any], name: str, where: str) -> int:
    value = text.get(name)
    low, high = LIMITS[name]
    if isinstance(value, bool) or not isinstance(value, int):
        raise _broken(where, f"config.json has no whole number {name} (found {value!r})")
    if not low <= value <= high:
        raise _broken(where, f"config.json says {name} = {value}", f"{low} to {high}")
    return value


def _experts(text: Mapping[str, Any]) -> int:
    for name in ("num_experts", "num_local_experts", "n_routed_experts"):
        if text.get(name):
            return int(text[name])
    return 0


def _intermediate(text: Mapping[str, Any], experts: int, where: str) -> int:
    value = (text.get("moe_intermediate_size") if experts else None) or text.get("intermediate_size")
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 1_000_000:
        raise _broken(where, f"config.json has no plausible intermediate_size (found {value!r})")
    return value


TIED_BY_DEFAULT = {"gemma", "gemma2", "gemma3_text", "gemma3"}


def _tied(config: Mapping[str, Any], text: Mapping[str, Any], family: str) -> bool:
    for source in (config, text):
        if "tie_word_embeddings" in source:
            return bool(source["tie_word_embeddings"])
    return family in TIED_BY_DEFAULT


def _vision(vision: Any, hidden: int) -> int:
    if not isinstance(vision, Mapping):
        return 0
    width = int(vision.get("hidden_size") or vision.get("embed_dim") or 0)
    depth = int(vision.get("num_hidden_layers") or vision.get("depth") or 0)
    inner = int(vision.get("intermediate_size") or 4 * width)
    return depth * (4 * width * width + 3 * width * inner) + 4 * width * hidden


def _broken(
    where: str, found: str, expected: str = "the configuration of a causal language model"
) -> ConfigError:
    return ConfigError(
        "plan.model-config",
        found,
        where=where,
        expected=expected,
        fix="check config.json of the model, or name a size that `rlvr plan --help` lists",
    )
