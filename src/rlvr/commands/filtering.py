"""``rlvr probe --filter``: keeps the prompts that can teach, within a budget of its own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rlvr.commands.chain import Chain
from rlvr.commands.completions import Scores, Store
from rlvr.commands.probing import in_order, loaded
from rlvr.commands.progress import counting
from rlvr.errors import DataError
from rlvr.probe import estimate
from rlvr.probe.filter import KEPT, ROUND, Place, budget, open_prompts, place, summary
from rlvr.probe.sample import Key, Plan, key_of, sample_rows
from rlvr.records.probe import FilterRecord
from rlvr.records.samples import Sample
from rlvr.workspace import read_lines, stamp, write_atomic

if TYPE_CHECKING:
    from rlvr.generate import Generator
    from rlvr.task.dataset import Row

KEPT_ROWS = "probe/filtered.jsonl"


def filter_workspace(
    chain: Chain, *, most: int | None = None, band: tuple[float, float] = estimate.BAND, quiet: bool = False
) -> FilterRecord:
    """Sample every distinct prompt in rounds until it is placed or the budget is spent, and write the kept rows.

    Args:
        chain: The workspace.
        most: Completions in all; None: the default budget.
        band: Success between which a prompt is worth training on.
        quiet: Draw no progress bar.

    Raises:
        DataError: ``filter.nothing-left`` when every prompt is surely outside the band.
        InfrastructureError: The backend failed; what was sampled is kept.
    """
    from rlvr.task.prompt import distinct

    with chain.workspace.lock("probe"):
        store = Store(chain)
        store.set_aside()
        rows = in_order(distinct(chain.rows)[0], chain.config.sampling.seed)
        allowed = budget(len(rows)) if most is None else most
        with loaded(chain, store, rows) as (generator, cap):
            rounds = _Rounds(chain, store, generator, cap, band)
            rounds.run(rows, allowed, quiet)
        return _write(chain, rows, rounds, allowed)


class _Rounds:
    """Draws rounds of completions of the prompts that are not placed yet."""

    def __init__(
        self, chain: Chain, store: Store, generator: Generator, cap: int, band: tuple[float, float]
    ) -> None:
        self.chain, self.generator, self.cap, self.band = chain, generator, cap, band
        self.path = store.completions.with_name("filter.jsonl")
        self.scores = Scores(chain, store, self.path.with_name("filter-scores.jsonl"), "filter_reward")
        current = {row.row_hash for row in chain.rows}
        kept = [one for one in read_lines(self.path, Sample) if one.row_hash in current]
        self.done: dict[Key, Sample] = {key_of(one): one for one in kept}
        self.counts: dict[str, tuple[int, int]] = {}
        self.spent = 0

    def run(self, rows: Sequence[Row], allowed: int, quiet: bool) -> None:
        """Sample until every prompt is placed, or ``allowed`` completions are spent."""
        by_hash = {row.row_hash: row for row in rows}
        first = 0
        with counting("filtering", allowed, quiet=quiet) as advance:
            while True:
                waiting = open_prompts(self.counts, list(by_hash), self.band)
                waiting = waiting[: (allowed - self.spent) // ROUND]
                if not waiting:
                    return
                found = self._round([by_hash[one] for one in waiting], first, advance)
                self._count(found)
                self.spent += len(found)
                first += ROUND

    def _round(self, rows: Sequence[Row], first: int, advance: Any) -> list[Sample]:
        sampling = self.chain.config.sampling
        plan = Plan(
            sampling.temperature,
            "training",
            ROUND,
            self.cap,
            sampling.system_prompt,
            sampling.seed + 1,  # apart from the probe's own draws
            first,
        )
        return sample_rows(rows, plan, self.generator, self.path, self.done, progress=advance)

    def _count(self, samples: Sequence[Sample]) -> None:
        for sample, score in zip(samples, self.scores.of(samples), strict=True):
            right, of = self.counts.get(sample.row_hash, (0, 0))
            judged = estimate.is_judged(score)
            self.counts[sample.row_hash] = (right + (score.outcome == "right"), of + judged)


def _write(chain: Chain, rows: Sequence[Row], rounds: _Rounds, allowed: int) -> FilterRecord:
    places: dict[str, Place] = {
        row.row_hash: place(*rounds.counts.get(row.row_hash, (0, 0)), rounds.band) for row in rows
    }
    by_prompt = {row.prompt_hash: places[row.row_hash] for row in rows}
    kept = [row for row in chain.rows if by_prompt[row.prompt_hash] in KEPT]
    if not kept:
        raise DataError(
            "filter.nothing-left",
            f"none of {len(rows)} prompts is inside {rounds.band[0]:.0%} to {rounds.band[1]:.0%}",
            where="task.prompts",
            fix="take other prompts, or teach the task first (SFT)",
        )
    column = chain.config.task.prompt_column
    lines = [json.dumps({column: _prompt(row), **row.columns}, ensure_ascii=False) for row in kept]
    path = chain.workspace.gates / KEPT_ROWS
    write_atomic(path, ("\n".join(lines) + "\n").encode())
    record = FilterRecord(
        **stamp(chain.fingerprints),
        passed=True,
        why=f"{len(kept)} of {len(chain.rows)} rows kept",
        band=rounds.band,
        budget=allowed,
        samples_spent=rounds.spent,
        places=summary(places.values()),
        kept_rows=len(kept),
        rows=len(chain.rows),
        path=str(path.relative_to(chain.base)),
        prompts={key: (*rounds.counts.get(key, (0, 0)), where) for key, where in places.items()},
    )
    chain.workspace.write_record("filter", record)
    return record


def _prompt(row: Row) -> Any:
    if not row.is_chat:
        return row.prompt[-1].content
    return [{"role": message.role, "content": message.content} for message in row.prompt]
