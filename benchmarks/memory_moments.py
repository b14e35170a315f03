"""Write the table that the closed form of memory rests on: what is alive at the moments that can be the peak.

    python benchmarks/memory_moments.py        about ten minutes; writes src/rlvr/plan/memory/moments.json

Each kind of run is traced on models whose sizes are all different, so that every storage that is alive at the peak
can be read as a product of named sizes (tokens x hidden, say). Models of different proportions peak at different
moments of a step; the closed form is the largest of these moments. Two depths tell what grows with the layers.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

from rlvr.plan.memory import trace
from rlvr.plan.memory.architecture import read_architecture
from rlvr.plan.memory.shape import RunShape
from rlvr.plan.trl_schema import version_of

TARGET = Path(trace.__file__).with_name("moments.json")
DEPTHS = (2, 4)
LONG = {"prompt": 1000, "completion": 9}
SHORT = {"prompt": 20, "completion": 50}
SMALL_HEAD = {"vocabulary": 38, "chunk": 46}
REGIMES: dict[str, dict[str, int]] = {
    "feed-forward": {"h": 110, "heads": 10, "kv": 2, "width": 14, "f": 1018, **LONG, **SMALL_HEAD},
    "attention": {"h": 110, "heads": 22, "kv": 11, "width": 46, "f": 118, **LONG, **SMALL_HEAD},
    "usual": {"h": 1010, "heads": 10, "kv": 2, "width": 98, "f": 2818, **LONG, **SMALL_HEAD},
    "weights": {
        "h": 1010,
        "heads": 10,
        "kv": 2,
        "width": 94,
        "f": 5018,
        "prompt": 6,
        "completion": 9,
        **SMALL_HEAD,
    },
    "head": {
        "h": 110,
        "heads": 10,
        "kv": 2,
        "width": 14,
        "f": 518,
        **SHORT,
        "vocabulary": 5003,
        "chunk": 9001,
    },
    "large-head": {
        "h": 110,
        "heads": 10,
        "kv": 2,
        "width": 14,
        "f": 518,
        **SHORT,
        "vocabulary": 9007,
        "chunk": 4001,
    },
}
BATCH, RANK = 3, 7
KINDS = [
    ("cuda", "full", "bf16"),
    ("cuda", "lora", "bf16"),
    ("cuda", "qlora", "bf16"),
    ("cpu", "full", "fp32"),
    ("cpu", "full", "bf16"),
    ("cpu", "lora", "fp32"),
    ("cpu", "lora", "bf16"),
]


class Recorder(trace.Meter):
    """A meter that also remembers which storages were alive at the peak."""

    def __init__(self) -> None:
        super().__init__()
        self.shapes: dict[int, tuple[int, int]] = {}
        self.best: list[tuple[str, int, int]] = []

    def see(self, tensor: Any) -> None:
        """Remember element count and size of an element."""
        storage = tensor.untyped_storage()
        if storage._cdata not in self._known:
            self.shapes[storage._cdata] = (storage.nbytes() // tensor.element_size(), tensor.element_size())
        super().see(tensor)

    def _look(self) -> None:
        before = self.peak
        super()._look()
        if self.peak > before:
            self.best = [
                (part, *self.shapes[key]) for key, (part, _, _) in self._known.items() if key in self.shapes
            ]


def symbols(sizes: dict[str, int], device: str) -> dict[int, str]:
    """Return element count to the product of names."""
    length = sizes["prompt"] + sizes["completion"]
    tokens = BATCH * length
    scored = BATCH * sizes["completion"] if device == "cuda" else BATCH * (length - 1)
    h, f, q, k = sizes["h"], sizes["f"], sizes["heads"] * sizes["width"], sizes["kv"] * sizes["width"]
    vocabulary, chunk = sizes["vocabulary"], sizes["chunk"]
    found: dict[int, str] = {}
    for name, count in {
        "tokens*h": tokens * h,
        "tokens*q": tokens * q,
        "tokens*k": tokens * k,
        "tokens*f": tokens * f,
        "tokens*rank": tokens * RANK,
        "tokens*heads": tokens * sizes["heads"],
        "scored*h": scored * h,
        "scored*chunk": scored * chunk,
        "scored*vocabulary": scored * vocabulary,
        "vocabulary*h": vocabulary * h,
        "chunk*h": chunk * h,
        "h*f": h * f,
        "h*q": h * q,
        "h*k": h * k,
        "rank*h": RANK * h,
        "rank*f": RANK * f,
        "rank*q": RANK * q,
        "rank*k": RANK * k,
        "length*length": BATCH * length * length,
    }.items():
        if found.setdefault(count, name) != name:
            raise SystemExit(f"{name} and {found[count]} are both {count} in {sizes}")
    return found


def alive(kind: dict[str, Any], family: str, sizes: dict[str, int], depth: int) -> Counter[str]:
    """Return product of names to bytes an element, summed over what is alive at the peak, weights left out."""
    from trl.trainer import utils

    config = {
        "model_type": family,
        "hidden_size": sizes["h"],
        "num_hidden_layers": depth,
        "num_attention_heads": sizes["heads"],
        "num_key_value_heads": sizes["kv"],
        "head_dim": sizes["width"],
        "intermediate_size": sizes["f"],
        "vocab_size": sizes["vocabulary"],
        "max_position_embeddings": 4096,
        "tie_word_embeddings": False,
    }
    shape = RunShape(
        read_architecture(config),
        micro_batch=BATCH,
        prompt=sizes["prompt"],
        completion=sizes["completion"],
        beta=0.0,
        rank=RANK,
        **kind,
    )
    recorder, meter, chunk = Recorder(), trace.Meter, utils._CHUNKED_LOGPROB_CHUNK_SIZE
    trace.Meter, utils._CHUNKED_LOGPROB_CHUNK_SIZE = (lambda: recorder), sizes["chunk"]  # type: ignore[assignment,misc]
    try:
        trace._trace(shape, config, depth)
    finally:
        trace.Meter, utils._CHUNKED_LOGPROB_CHUNK_SIZE = meter, chunk  # type: ignore[misc]
    names, total = symbols(sizes, shape.device), Counter[str]()
    for part, count, size in recorder.best:
        if part != "weights" and count in names and not (shape.method == "full" and "rank" in names[count]):
            total[names[count]] += size
    return total


def moment(kind: dict[str, Any], family: str, sizes: dict[str, int]) -> dict[str, list[int]] | None:
    """Return product to (bytes, bytes a layer), or None when both depths peak at different moments."""
    low, high = (alive(kind, family, sizes, depth) for depth in DEPTHS)
    found = {}
    for name in sorted({*low, *high}):
        per_layer, rest = divmod(high[name] - low[name], DEPTHS[1] - DEPTHS[0])
        base = low[name] - per_layer * DEPTHS[0]
        if rest:
            return None
        found[name] = [base, per_layer]
    return found


def moments(kind: dict[str, Any], family: str) -> dict[str, Any]:
    """Return the distinct moments of one kind of run."""
    found: dict[str, Any] = {}
    for name, sizes in REGIMES.items():
        value = moment(kind, family, sizes)
        if value is not None and value not in found.values():
            found[name] = value
    return found


def key(device: str, method: str, compute: str, checkpointing: bool, accumulated: bool, family: str) -> str:
    """Return the name of a kind of run, as the closed form looks it up."""
    parts = [device, method, compute, "checkpointing" if checkpointing else "plain"]
    return " ".join(
        [*parts, "accumulated" if accumulated else "single", "qk-norm" if family == "qwen3" else "bare"]
    )


def as_text(versions: dict[str, str], table: dict[str, Any]) -> str:
    """Return the table as JSON with one moment a line."""
    kinds = []
    for name, found in table.items():
        lines = ",\n".join(f"   {json.dumps(moment)}: {json.dumps(terms)}" for moment, terms in found.items())
        kinds.append(f"  {json.dumps(name)}: {{\n{lines}\n  }}")
    return f'{{\n "versions": {json.dumps(versions)},\n "moments": {{\n' + ",\n".join(kinds) + "\n }\n}\n"


def main() -> None:
    """Trace every kind and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    only = parser.parse_args().only
    table = json.loads(TARGET.read_text())["moments"] if TARGET.exists() else {}
    kinds = itertools.product((True, False), ("llama", "qwen3"), (True, False), KINDS)
    for accumulated, family, checkpointing, (device, method, compute) in kinds:
        name = key(device, method, compute, checkpointing, accumulated, family)
        if only not in name:
            continue
        kind = {
            "device": device,
            "method": method,
            "compute": compute,
            "weight_bytes": 2 if device == "cuda" and method != "full" else 4,
            "checkpointing": checkpointing,
            "accumulation": 2 if accumulated else 1,
            "padded": device == "cuda",
        }
        table[name] = moments(kind, family)
        print(name, list(table[name]), flush=True)
        versions = {library: version_of(library) for library in ("torch", "transformers", "trl", "peft")}
        TARGET.write_text(as_text(versions, table))


if __name__ == "__main__":
    main()
