"""The moments of a step that can be its peak, and what is alive at each of them.

``moments.json`` is written by ``benchmarks/memory_moments.py`` from traces of the real model code. An entry such as
``"tokens*h": [26, 4]`` means 26 bytes, and 4 more for every layer, for each token and unit of width. The peak of an
update is the largest moment, so the closed form needs no model code at all.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

from rlvr.plan.memory.shape import RunShape

CHUNK = 32_768
"""Vocabulary entries that TRL's head projects at once (s: TRL 1.16, ``_CHUNKED_LOGPROB_CHUNK_SIZE``)."""

TOKEN_CHUNK = 4_096
"""Tokens that it projects at once (s: TRL 1.16, ``TOKEN_CHUNK_SIZE``)."""

OLD_LOGIT_BYTES = 16
"""Bytes of a logit before TRL's head was fused: what published runs of that time rise by for each token."""

GRADIENTS_OF_THREE = 12
"""Bytes of the fp32 gradients of three matrices of one size, for each of their entries."""

Terms = dict[str, tuple[int, int]]


class Moment(NamedTuple):
    """One moment of an update.

    Attributes:
        name: The proportions that bring it about, such as ``feed-forward`` or ``head``.
        total: Bytes that are alive, the stored weights and the optimizer left out.
        checkpoints: Of these, what grows with tokens and layers.
    """

    name: str
    total: int
    checkpoints: int


@lru_cache(maxsize=1)
def _table() -> dict[str, dict[str, Terms]]:
    text = (files("rlvr.plan.memory") / "moments.json").read_text("utf-8")
    found: dict[str, dict[str, Terms]] = json.loads(text)["moments"]
    return found


def kind_of_run(shape: RunShape) -> str:
    """Return the name under which the table holds a run of this kind."""
    compute = "fp32" if shape.compute == "fp32" else "bf16"
    traced_on_cpu = shape.device != "cuda" or compute == "fp32"
    method = "lora" if traced_on_cpu and shape.method == "qlora" else shape.method
    parts = ["cpu" if traced_on_cpu else "cuda", method, compute]
    parts.append("checkpointing" if shape.checkpointing else "plain")
    parts.append("accumulated" if shape.accumulation > 1 else "single")
    return " ".join([*parts, "qk-norm" if shape.architecture.qk_norm else "bare"])


def largest_moment(shape: RunShape) -> Moment:
    """Return the moment of an update at which most is alive."""
    products = _products(shape)
    large = shape.architecture.vocabulary > CHUNK
    found = []
    for name, terms in _table()[kind_of_run(shape)].items():
        if (name == "head" and large) or (name == "large-head" and not large):
            continue
        found.append(_evaluate(name, terms, products, shape))
    if not shape.chunked_loss:
        found.append(_whole_logits(shape, products))
    if shape.method == "full":
        found.append(_last_moment(shape, products))
    return max(found, key=lambda moment: moment.total)


def _whole_logits(shape: RunShape, products: dict[str, int]) -> Moment:
    # Before TRL 1.13 the logits of all scored positions were kept: in 16 bits, scaled, and for entropy and softmax.
    a = shape.architecture
    hidden = 2 * products["tokens*h"]
    checkpoints = hidden * a.layers if shape.checkpointing else 0
    logits = OLD_LOGIT_BYTES * shape.micro_batch * (shape.completion + 1) * a.vocabulary
    gradients = shape.adapter_parameters * 2 if shape.accumulation > 1 else 0
    return Moment("head", logits + checkpoints + 3 * hidden + gradients, checkpoints)


def _last_moment(shape: RunShape, products: dict[str, int]) -> Moment:
    # At the end the embedding's gradient is made; a shared one is added to that of the head, which waited for it, and
    # the sum is a third tensor.
    a = shape.architecture
    waiting = (12 if a.tied else 4) * a.embedding_parameters
    gradients = 4 * (a.text_parameters - (a.embedding_parameters if shape.accumulation == 1 else 0))
    return Moment("embedding", gradients + waiting + 4 * products["tokens*h"], 0)


def _evaluate(name: str, terms: Terms, products: dict[str, int], shape: RunShape) -> Moment:
    layers = shape.architecture.layers
    terms = _of_experts(terms) if shape.architecture.experts and shape.method == "full" else terms
    total = sum((base + per_layer * layers) * products[key] for key, (base, per_layer) in terms.items())
    checkpoints = terms.get("tokens*h", (0, 0))[1] * layers * products["tokens*h"]
    shared = _shared_gradient(shape) if name in ("head", "large-head", "weights") else 0
    deltas = 0 if "head" in name else _expert_deltas(shape)
    return Moment(name, total - shared + deltas + _expert_gradients(shape), checkpoints)


def _of_experts(terms: Terms) -> Terms:
    # Grouped products are outside of autocast: no 16-bit copies of the experts, and activations in their own type.
    found = dict(terms)
    if "h*f" in found:
        base, per_layer = found["h*f"]
        found["h*f"] = (base, min(per_layer, GRADIENTS_OF_THREE))
    return found


def _expert_deltas(shape: RunShape) -> int:
    # PEFT adds the product of an expert adapter to the experts' weights of a layer, a second copy of them in 16 bits.
    a = shape.architecture
    on_experts = (
        a.experts and shape.method != "full" and {"gate_proj", "up_proj", "down_proj"} & set(shape.targets)
    )
    return 2 * a.experts * a.expert_parameters if on_experts else 0


def _expert_gradients(shape: RunShape) -> int:
    # The table's adapters are those of a dense model.
    if not shape.architecture.experts or shape.method == "full":
        return 0
    dense = replace(shape, architecture=replace(shape.architecture, experts=0))
    missing = shape.adapter_parameters - dense.adapter_parameters
    return missing * (4 if shape.method == "lora" else 2)


def _shared_gradient(shape: RunShape) -> int:
    # The table's models have a head of their own; a shared one has one stored gradient instead of two, but in later
    # moments the head's new gradient still waits for that of the embedding.
    a = shape.architecture
    shared = shape.method == "full" and a.tied and shape.accumulation > 1
    return 4 * a.embedding_parameters if shared else 0


def _products(shape: RunShape) -> dict[str, int]:
    a, length, rank = shape.architecture, shape.prompt + shape.completion, shape.rank
    tokens = shape.micro_batch * length
    scored = shape.micro_batch * (shape.completion if shape.device == "cuda" else length - 1)
    projected = min(scored, TOKEN_CHUNK)
    # On a CUDA device the tile is worked on in place, so nothing but the tile itself is there.
    on_cuda_in_fp32 = shape.device == "cuda" and shape.compute == "fp32"
    return {
        "tokens*h": tokens * a.hidden,
        "tokens*q": tokens * a.query_width,
        "tokens*k": tokens * a.kv_width,
        "tokens*f": tokens * _feed_forward(shape),
        "tokens*rank": tokens * rank,
        "tokens*heads": tokens * a.heads,
        "scored*h": scored * a.hidden,
        "scored*chunk": projected * CHUNK // (8 if on_cuda_in_fp32 else 1),
        "scored*vocabulary": 0 if on_cuda_in_fp32 else projected * a.vocabulary,
        "vocabulary*h": a.embedding_parameters,
        "chunk*h": min(CHUNK, a.vocabulary) * a.hidden,
        "h*f": a.hidden * a.intermediate * max(a.experts, 1),
        "h*q": a.hidden * a.query_width,
        "h*k": a.hidden * a.kv_width,
        "rank*h": rank * a.hidden,
        "rank*f": rank * a.intermediate,
        "rank*q": rank * a.query_width,
        "rank*k": rank * a.kv_width,
        "length*length": shape.micro_batch * length * length,
    }


def _feed_forward(shape: RunShape) -> int:
    a = shape.architecture
    if not a.experts:
        return a.intermediate
    # Tokens are copied out for each of their experts: 10 bytes a unit of the model's width and 8 of the expert's,
    # where the table has 14 for a dense feed-forward. Experts that are tuned fully stay outside of autocast, in fp32.
    full = shape.method == "full" and shape.compute != "fp32"
    width = 2 * (a.intermediate + a.hidden) if full else (8 * a.intermediate + 10 * a.hidden) // 14
    return a.experts_per_token * width + a.shared_intermediate
