"""Random keys that belong to one completion: they depend on its prompt, place and seed, on nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rlvr.records.samples import Message

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray


def completion_seed(seed: int, prompt: Sequence[Message], temperature: float, index: int) -> int:
    """Return a 128-bit seed for completion ``index`` of ``prompt``."""
    digest = hashlib.sha256(f"{seed}\x00{temperature!r}\x00{index}".encode())
    for message in prompt:
        digest.update(f"\x00{message.role}\x00{message.content}".encode("utf-8", "surrogatepass"))
    return int.from_bytes(digest.digest()[:16], "big")


def token_keys(seed: int, size: int) -> NDArray[numpy.int64]:
    """Return ``size`` 64-bit keys, one a token (counter-based: Salmon et al. 2011, Philox)."""
    import numpy

    return numpy.random.Generator(numpy.random.Philox(key=seed)).integers(-(2**63), 2**63, size=size)
