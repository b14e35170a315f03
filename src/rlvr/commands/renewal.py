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
    from rlvr.commands.probing import Store
    from rlvr.gates import ChainStatus
    from rlvr.records.samples import Sample, ScoredSample

COMPARED = "compared"
"""Key in the store's notes: the reward that was found to judge differently."""


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
    """Score the kept completions anew; when all scores are as before, carry probe and inspection over."""
    from rlvr.commands.probing import Store, probe_workspace
    from rlvr.inspection.attestation import changed_scores
    from rlvr.records.samples import ScoredSample
    from rlvr.workspace import read_lines

    store, reward = Store(chain), chain.fingerprints.reward
    samples = store.samples()
    if not samples or store.made.get(COMPARED) == reward or _asks_a_server(chain):
        return False
    old = read_lines(store.scores, ScoredSample)
    new = _rescored(chain, store, samples)
    if changed_scores(old, new):
        store.note(**{COMPARED: reward})  # so that the next `status` does not score again in vain
        return False
    if "inspect" in stale:
        _renew_inspection(chain, new)
    if "probe" in stale:
        probe_workspace(chain, rescore=True, quiet=True)
    return True


def _asks_a_server(chain: Chain) -> bool:
    return any(reward.use == "judge" for reward in chain.config.rewards)


def _rescored(chain: Chain, store: Store, samples: list[Sample]) -> list[ScoredSample]:
    from rlvr.commands.probing import score_samples

    return score_samples(chain.scorer, samples, chat=bool(store.made.get("chat", True)))


def _renew_inspection(chain: Chain, new: list[ScoredSample]) -> None:
    """Compare with the scores that the labels were read against, which another rescore has not replaced."""
    from rlvr.inspection.attestation import renew
    from rlvr.inspection.folder import InspectionFolder
    from rlvr.records.inspection import Attestation
    from rlvr.workspace import now

    folder, reward = InspectionFolder.of_gates(chain.workspace.gates), chain.fingerprints.reward
    with chain.workspace.lock("inspect"):
        attestation, kept = folder.attestation(), folder.kept_scores()
        if attestation is None or kept is None:
            return
        renewed = renew(attestation, folder.labels(), kept.scores, new, reward=reward, at=now())
        if isinstance(renewed, Attestation):
            folder.write_attestation(renewed)
            folder.keep_scores(new, reward)
