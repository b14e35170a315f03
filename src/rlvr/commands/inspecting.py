"""The inspection of a workspace or a run: what can be read, when a reading starts over, how it is scored again."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlvr.commands.chain import Chain
from rlvr.errors import DataError, GateRefused, UsageError
from rlvr.inspection.folder import InspectionFolder
from rlvr.inspection.select import LEAST_ON_POLICY, LEAST_READINGS, require_enough
from rlvr.inspection.session import Pool, Rules, Sitting
from rlvr.records.inspection import SIMULATED_READER
from rlvr.records.samples import Message, Sample, ScoredSample

if TYPE_CHECKING:
    from rlvr.records.base import Fingerprints

NEWEST_SHARE = 0.25
"""Share of a run's steps, the newest ones, whose completions count as its own policy's."""
LEAST_POOL = 160
"""Completions of a run to choose from, where the newest steps hold fewer."""
LONGEST_NAME = 80


@contextlib.contextmanager
def opened(
    folder: Path, reader: str, *, run: str | None, start_over: bool, rescore: bool, say: Callable[[str], None]
) -> Iterator[Sitting]:
    """Open a sitting and hold its lock: one process writes labels at a time.

    Args:
        folder: The workspace.
        reader: Who reads.
        run: A run whose own completions are read; None for the gate.
        start_over: Put an earlier reading aside.
        rescore: Score every kept completion again first.
        say: Told remarks for the person who waits.

    Raises:
        UsageError: The reader's name cannot be used.
        DataError: There is nothing to read, or too little.
        GateRefused: ``inspect.reward-changed`` when the kept scores are another reward's.
        InfrastructureError: ``workspace.busy`` while another process reads.
    """
    _check_name(reader)
    chain = Chain(folder)
    with chain.workspace.lock("inspect" if run is None else f"inspect-{run}"):
        if run is None:
            yield _gate_sitting(chain, reader, start_over, rescore, say)
        else:
            yield _run_sitting(chain, reader, run, start_over)


def _check_name(reader: str) -> None:
    if not reader.strip() or len(reader) > LONGEST_NAME or not reader.isprintable():
        raise UsageError("inspect.reader", f"reader {reader!r}", expected="a name", fix="--reader NAME")
    if reader == SIMULATED_READER:
        raise UsageError("inspect.reader", "that name is the demo's program's", fix="--reader NAME")


def _gate_sitting(
    chain: Chain, reader: str, start_over: bool, rescore: bool, say: Callable[[str], None]
) -> Sitting:
    files = InspectionFolder.of_gates(chain.workspace.gates)
    pool = rescored_pool(chain.base) if rescore else gate_pool(chain)
    why = "as asked" if start_over else outdated(files, chain.fingerprints, pool.rows)
    if why and files.start_over():
        say(f"earlier labels were put aside: {why}; those of a person stay the reward's tests")
    require_enough(pool.samples, pool.scores, LEAST_READINGS)
    sampling, gate = chain.config.sampling, chain.config.gates.inspect
    return _sitting(
        files,
        pool,
        reader,
        Rules(count=gate.samples, needed=LEAST_READINGS, seed=sampling.seed),
        lambda: rescored_pool(chain.base),
    )


def _run_sitting(chain: Chain, reader: str, run: str, start_over: bool) -> Sitting:
    place = chain.workspace.run_folder(run)
    files = InspectionFolder.of_run(place)
    if start_over:
        files.start_over()
    pool = run_pool(chain, place)
    require_enough(pool.samples, pool.scores, LEAST_ON_POLICY)
    rules = Rules(count=LEAST_ON_POLICY, needed=LEAST_ON_POLICY, seed=chain.config.sampling.seed)
    return _sitting(files, pool, reader, rules, lambda: rescored_run(Chain(chain.base), pool))


def _sitting(
    files: InspectionFolder, pool: Pool, reader: str, rules: Rules, rescore: Callable[[], Pool]
) -> Sitting:
    from rlvr import __version__

    return Sitting(files, pool, reader, rules, rescore=rescore, version=__version__)


def outdated(files: InspectionFolder, now: Fingerprints, rows: Any) -> str:
    """Return why earlier labels cannot stand for this gate any more, or an empty string."""
    from rlvr.fingerprint import changed_share
    from rlvr.gates import INSPECT_DATA_TOLERANCE

    selection = files.selection()
    if selection is None:
        return ""
    moved = [part for part in selection.made_from.changed(now) if part in ("model", "sampling")]
    if moved:
        return f"another {' and '.join(moved)} sampled them"
    if changed_share(files.seen_rows(), rows) > INSPECT_DATA_TOLERANCE:
        return "more than a tenth of the rows changed"
    if SIMULATED_READER in files.labels().readers:
        return "a program had read, not a person"
    return ""


def gate_pool(chain: Chain) -> Pool:
    """Return the probe's completions with their scores, the earlier drawn ones among them.

    Raises:
        DataError: ``inspect.nothing-sampled`` or ``inspect.other-samples``.
        GateRefused: ``inspect.reward-changed``.
    """
    from rlvr.commands.probing import Store
    from rlvr.workspace import read_lines

    store, now = Store(chain), chain.fingerprints
    if not store.completions.is_file():
        raise DataError(
            "inspect.nothing-sampled", "there are no completions to read", fix="run `rlvr probe` first"
        )
    moved = [part for part in ("model", "sampling") if store.made.get(part) != getattr(now, part)]
    if moved:
        found = f"the kept completions were sampled with another {' and '.join(moved)}"
        raise DataError("inspect.other-samples", found, fix="run `rlvr probe` again")
    if store.made.get("reward") != now.reward:
        raise GateRefused(
            "inspect.reward-changed",
            "the reward changed since the completions were scored",
            expected="scores of the reward as it stands",
            fix="run `rlvr inspect --rescore`: seconds, no model",
        )
    samples = store.samples()
    known = {one.completion_id: one for one in read_lines(store.scores, ScoredSample)}
    scores = [known[one.completion_id] for one in samples if one.completion_id in known]
    return _with_earlier(chain, Pool(samples, scores, now, [row.row_hash for row in chain.rows]))


def _with_earlier(chain: Chain, pool: Pool) -> Pool:
    """Add completions that were drawn before and whose rows left the data: their labels still test the reward."""
    from rlvr.commands.probing import Store, score_samples

    present = {one.completion_id for one in pool.samples}
    earlier = [
        one
        for one in InspectionFolder.of_gates(chain.workspace.gates).samples()
        if one.completion_id not in present
    ]
    if not earlier:
        return pool
    scores = score_samples(chain.scorer, earlier, chat=bool(Store(chain).made.get("chat", True)))
    return Pool([*pool.samples, *earlier], [*pool.scores, *scores], pool.fingerprints, pool.rows, pool.source)


def rescored_pool(base: Path) -> Pool:
    """Score every kept completion under the reward as it stands on disk now.

    A process of its own does it, so that nothing of the reward before the mend is left in memory.

    Raises:
        RlvrError: The reward cannot be loaded, or broke its contract.
    """
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as worker:
        worker.submit(_rescore, base).result()
    return gate_pool(Chain(base))


def _rescore(base: Path) -> None:
    from rlvr.commands.probing import probe_workspace

    probe_workspace(Chain(base), rescore=True, quiet=True)


def run_pool(chain: Chain, run: Path) -> Pool:
    """Return the newest completions of a run, with the scores that trained it.

    Raises:
        DataError: ``inspect.no-rollouts``.
    """
    from rlvr.records.run import Manifest
    from rlvr.train.rollouts import NAME, read_rollouts
    from rlvr.workspace import read_record

    rows = list(read_rollouts(run / NAME))
    if not rows:
        raise DataError("inspect.no-rollouts", f"run {run.name} kept no completions", where=str(run / NAME))
    newest = rows[-max(LEAST_POOL, int(len(rows) * NEWEST_SHARE)) :]
    found = [_rollout(chain, number, row) for number, row in enumerate(newest, start=len(rows) - len(newest))]
    manifest = read_record(run / "manifest.json", Manifest)
    made_from = manifest.made_from if manifest else chain.fingerprints
    return Pool([one for one, _ in found], [score for _, score in found], made_from, (), run.name)


def _rollout(chain: Chain, number: int, row: Mapping[str, Any]) -> tuple[Sample, ScoredSample]:
    from rlvr.workspace import content_hash

    text = _text_of(row["completion"])
    index = int(row.get("row", -1))
    source = chain.rows[index] if 0 <= index < len(chain.rows) else None
    identifier = content_hash([number, row.get("step"), row.get("group"), text])
    prompt = source.prompt if source else [Message(role="user", content=_text_of(row["prompt"]))]
    sample = Sample(
        completion_id=identifier,
        row=index,
        row_hash=source.row_hash if source else content_hash(prompt[0].content),
        prompt=prompt,
        completion=[Message(role="assistant", content=text)],
        source="run",
        temperature=chain.config.sampling.temperature,
        index=number,
        tokens=int(row.get("tokens", -1)),
        truncated=bool(row.get("truncated", False)),
        step=int(row.get("step", -1)),
        columns=dict(source.columns) if source else {},
    )
    return sample, _trained_score(chain, identifier, row)


def _trained_score(chain: Chain, identifier: str, row: Mapping[str, Any]) -> ScoredSample:
    weights = {component.name: component.weight for component in chain.scorer.components}
    parts = {name: row[name] for name in weights if name in row}
    paid = [weights[name] * value for name, value in parts.items() if value is not None]
    return ScoredSample(
        completion_id=identifier,
        outcome=row.get("outcome") or "not-applicable",
        total=sum(paid) if paid else None,
        components=parts,
        extracted=row.get("extracted"),
    )


def _text_of(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "\n".join(str(message.get("content") or "") for message in value)


def rescored_run(chain: Chain, pool: Pool) -> Pool:
    """Score a run's completions under the reward as it stands now."""
    from rlvr.commands.probing import Store, score_samples

    chat = bool(Store(chain).made.get("chat", True))
    scores = score_samples(chain.scorer, list(pool.samples), chat=chat)
    made_from = pool.fingerprints.model_copy(update={"reward": chain.fingerprints.reward})
    return Pool(pool.samples, scores, made_from, pool.rows, pool.source)
