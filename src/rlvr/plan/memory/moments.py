"""The moments of a step that can be its peak, and what is alive at each of them.

``moments.json`` is written by ``benchmarks/memory_moments.py`` from traces of the real model code. An entry such as
``"tokens*h": [26, 4]`` means 26 bytes, and 4 more for every layer, for each token and unit of width. The peak of an
update is the largest moment, so the closed form needs no model code at all.
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

from rlvr.plan.memory.shape import RunShape

CHUNK = 32_768
"""Vocabulary entries that TRL's head projects at once (s: TRL 1.16, ``_CHUNKED_LOGPROB_CHUNK_SIZE``)."""

TOKEN_CHUNK = 4_096
"""Tokens that it projects at once (s: TRL 1.16, ``TOKEN_CHUNK_SIZE``)."""

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
    for name, terms in _terms(kind_of_run(shape)).items():
        if (name == "head" and large) or (name == "large-head" and not large):
            continue
        found.append(_evaluate(name, terms, products, shape))
    if shape.method == "full":
        found.append(_last_moment(shape, products))
    return max(found, key=lambda moment: moment.total)


def _last_moment(shape: RunShape, products: dict[str, int]) -> Moment:
    # At the end the embedding's gradient is made; a shared one is added to that of the head, which waited for it.
    a = shape.architecture
    waiting = (8 if a.tied else 4) * a.embedding_parameters
    gradients = 4 * (a.text_parameters - (a.embedding_parameters if shape.accumulation == 1 else 0))
    return Moment("embedding", gradients + waiting + 4 * products["tokens*h"], 0)


def _terms(kind: str) -> dict[str, Terms]:
    table = _table()
    near = (kind, kind.replace("single", "accumulated"), kind.replace("qk-norm", "bare"))
    return next(table[name] for name in (*near, near[1].replace("qk-norm", "bare")) if name in table)


def _evaluate(name: str, terms: Terms, products: dict[str, int], shape: RunShape) -> Moment:
    layers = shape.architecture.layers
    total = sum((base + per_layer * layers) * products[key] for key, (base, per_layer) in terms.items())
    checkpoints = terms.get("tokens*h", (0, 0))[1] * layers * products["tokens*h"]
    shared = _shared_gradient(shape) if name in ("head", "large-head", "weights") else 0
    return Moment(name, total - shared, checkpoints)


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
    # Tokens are copied out for each of their experts: about two widths of the model beside the expert's own.
    return a.experts_per_token * (a.intermediate + a.hidden) + a.shared_intermediate
