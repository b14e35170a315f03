"""How many threads torch uses for a small model on a CPU."""

from __future__ import annotations

from typing import Any

import torch

TINY_PARAMETERS = 5_000_000
"""Below this size the threads of one operation wait for each other longer than they compute.

Measured with 0.2 million parameters on 2 busy cores: one thread fine-tunes in 44 s where two take over 250 s.
"""


def fit_threads(network: Any) -> None:
    """Use one thread for a tiny model on a CPU; leave torch's setting alone otherwise."""
    if next(network.parameters()).device.type != "cpu":
        return
    if sum(parameter.numel() for parameter in network.parameters()) < TINY_PARAMETERS:
        torch.set_num_threads(1)
