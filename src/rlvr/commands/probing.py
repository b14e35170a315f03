"""The probe of a workspace: samples what is missing, scores, decides, writes record and page."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rlvr.commands.chain import Chain
from rlvr.commands.completions import Scores, Store, score_samples, score_texts
from rlvr.commands.progress import counting
from rlvr.errors import DataError
from rlvr.probe import estimate, sequence
from rlvr.probe.evidence import Facts
from rlvr.probe.gold import gold_forms, holds_reference, lacks_reference, references_in
from rlvr.probe.summary import build_record
from rlvr.probe.verdict import HOPELESS
from rlvr.records.probe import ProbeRecord
from rlvr.records.samples import Sample, ScoredSample
from rlvr.workspace import content_hash, read_objects, stamp, write_atomic

__all__ = ["Scores", "Store", "probe_workspace", "score_samples", "score_texts"]

if TYPE_CHECKING:
    from rlvr.generate import Generator
    from rlvr.probe.sample import Plan, Source
    from rlvr.rewards.composite import Scorer
    from rlvr.task.dataset import Row

DEFAULT_CAP = 512
"""Longest completion in tokens where the configuration sets none and the context allows."""
LEAST_CAP = 16
GOLD_ROWS = 20
LOOK_FROM = 32
"""Distinct prompts before the first look at the sequence."""
COUNTED_PROMPTS = 20_000
"""Prompts whose length is measured."""


def probe_workspace(
    chain: Chain, *, rescore: bool = False, quiet: bool = False, say: Callable[[str], None] = lambda _: None
) -> ProbeRecord:
    """Probe, or with ``rescore`` only score anew what was kept, and write record and page.

    Args:
        chain: The workspace.
        rescore: Load no model.
        quiet: Draw no progress bars.
        say: Told remarks for the person who waits.

    Raises:
        DataError: Data, references or prompts must be mended; ``probe.nothing-kept`` without completions.
        InfrastructureError: The backend failed; what was sampled is kept.
    """
    with chain.workspace.lock("probe"):
        store = Store(chain)
        if rescore:
            _require_kept(store)
        else:
            if store.set_aside():
                say("model or sampling changed: earlier completions were set aside, sampling anew")
            _sample(chain, store, quiet)
        return _finish(chain, store, quiet)


def _require_kept(store: Store) -> None:
    made, now = store.made, store.chain.fingerprints
    moved = [part for part in ("model", "sampling") if made.get(part) != getattr(now, part)]
    if not store.completions.is_file():
        found = "no completions are kept"
    elif moved:
        found = f"the kept completions were sampled with another {' and '.join(moved)}"
    else:
        return
    raise DataError("probe.nothing-kept", found, where=str(store.completions), fix="run `rlvr probe`")


def _finish(chain: Chain, store: Store, quiet: bool) -> ProbeRecord:
    from rlvr.probe.page import render_page
    from rlvr.task.prompt import distinct

    samples = store.samples()
    scores = Scores(chain, store).of(samples, quiet=quiet)
    rows, duplicates = distinct(chain.rows)
    made = store.made
    record = build_record(
        samples,
        scores,
        facts_of(chain, store, samples, scores, len(rows)),
        prompt_tokens=made.get("prompt_tokens", {}),
        cap=int(made.get("cap", -1)),
        duplicates=duplicates,
        remarks=doubtful_pay(samples, scores, reference_columns(chain.scorer)),
        seed=chain.config.sampling.seed,
        stamp=stamp(chain.fingerprints),
    )
    chain.workspace.write_record("probe", record)
    write_atomic(store.page, render_page(record, title=chain.base.name, model=chain.config.model).encode())
    return record


def facts_of(
    chain: Chain, store: Store, samples: Sequence[Sample], scores: Sequence[ScoredSample], population: int
) -> Facts:
    """Return what the samples do not say themselves; references are tried only where nothing succeeded."""
    right = any(score.outcome == "right" for score in scores)
    checked, paid = (0, 0) if right else check_gold(chain.scorer, chain.rows, store.chat)
    columns = reference_columns(chain.scorer)
    return Facts(
        gold_checked=checked,
        gold_paid=paid,
        unpaid_matches=unpaid_matches(samples, scores, columns),
        zeros_read=zeros_read(chain, scores),
        population=population,
        low_temperature=chain.config.sampling.low_temperature,
        training_temperature=chain.config.sampling.temperature,
        decide_by=chain.config.gates.probe.decide_by,
    )


def check_gold(scorer: Scorer, rows: Sequence[Any], chat: bool) -> tuple[int, int]:
    """Put references to the reward as completions; returns how many were tried and how many paid in some form."""
    columns = reference_columns(scorer)
    tried = [
        (row, form)
        for row in rows[:GOLD_ROWS]
        for gold in references_in(row.columns, columns)
        for form in gold_forms(gold)
    ]
    if not tried:
        return 0, 0
    scores = score_texts(scorer, [row for row, _ in tried], [form for _, form in tried], chat=chat)
    paid = {
        row.row_hash for (row, _), score in zip(tried, scores, strict=True) if score.outcome.value == "right"
    }
    return len({row.row_hash for row, _ in tried}), len(paid)


def reference_columns(scorer: Scorer) -> list[str]:
    """Return the columns that the correctness components read as gold."""
    named = [
        getattr(one.function, "reference_column", None)
        for one in scorer.components
        if one.role == "correctness"
    ]
    return [name for name in named if isinstance(name, str)]


def unpaid_matches(
    samples: Sequence[Sample], scores: Sequence[ScoredSample], columns: Sequence[str] = ()
) -> int:
    """Return how many completions hold their reference as the last answer and were read as wrong."""
    return sum(
        score.outcome == "wrong" and holds_reference(sample.text, references_in(sample.columns, columns))
        for sample, score in zip(samples, scores, strict=True)
    )


def doubtful_pay(
    samples: Sequence[Sample], scores: Sequence[ScoredSample], columns: Sequence[str] = ()
) -> list[str]:
    """Return a remark where most paid completions lack their short reference: the reward may pay wrong answers."""
    paid = [one for one, score in zip(samples, scores, strict=True) if score.outcome == "right"]
    lacking = sum(lacks_reference(one.text, references_in(one.columns, columns)) for one in paid)
    if lacking <= len(paid) / 2:
        return []
    return [
        f"{lacking} of {len(paid)} paid completions do not contain their reference: the reward may pay wrong answers "
        "(`rlvr audit` attacks it)"
    ]


def zeros_read(chain: Chain, scores: Sequence[ScoredSample]) -> int:
    """Return how many unpaid completions a reader has labelled."""
    unpaid = {one.completion_id for one in scores if one.outcome != "right"}
    read = {
        str(event.get("completion_id"))
        for event in read_objects(chain.workspace.gates / "inspect" / "labels.jsonl")
    }
    return len(unpaid & read)


def _sample(chain: Chain, store: Store, quiet: bool) -> None:
    from rlvr.task.prompt import distinct

    rows = in_order(distinct(chain.rows)[0], chain.config.sampling.seed)
    with loaded(chain, store, rows) as (generator, cap):
        _Sampler(chain, store, generator, cap, quiet).run(rows)


@contextlib.contextmanager
def loaded(chain: Chain, store: Store, rows: Sequence[Row]) -> Iterator[tuple[Generator, int]]:
    """Load the model, check that it can read the prompts, and give it with the longest completion in tokens."""
    from rlvr.generate import open_generator
    from rlvr.task.prompt import require_template

    generator = open_generator(chain.config, chain.base)
    try:
        require_template(rows, generator.has_chat_template, chain.config.model)
        cap = _measure(chain, store, generator, rows)
        now = chain.fingerprints
        store.note(model=now.model, sampling=now.sampling, chat=generator.has_chat_template, cap=cap)
        yield generator, cap
    finally:
        generator.close()


def in_order(rows: Sequence[Row], seed: int) -> list[Row]:
    """Return the rows in a random order in which a changed row moves no other."""
    return sorted(rows, key=lambda row: content_hash([seed, row.row_hash]))


def _measure(chain: Chain, store: Store, generator: Generator, rows: Sequence[Row]) -> int:
    """Measure the prompts, refuse those that do not fit, and return the longest completion in tokens."""
    from rlvr.task.prompt import Length, require_room, with_system

    system = chain.config.sampling.system_prompt
    measured = list(rows[:COUNTED_PROMPTS])
    tokens = generator.count_tokens([with_system(row.prompt, system) for row in measured])
    lengths = [Length(row.index, size) for row, size in zip(measured, tokens, strict=True)]
    cap = chain.config.sampling.max_completion_length
    if cap is None:
        longest = max((one.tokens for one in lengths), default=0)
        room = DEFAULT_CAP if generator.context is None else generator.context - longest
        cap = max(LEAST_CAP, min(DEFAULT_CAP, room))
    require_room(lengths, cap, generator.context, chain.config.model)
    store.note(prompt_tokens={row.row_hash: size for row, size in zip(measured, tokens, strict=True)})
    return cap


class _Sampler:
    """Draws both temperatures, scoring as it goes, and stops the scan once it is decided."""

    def __init__(self, chain: Chain, store: Store, generator: Generator, cap: int, quiet: bool) -> None:
        self.chain, self.store, self.generator = chain, store, generator
        self.cap, self.quiet = cap, quiet
        self.scores = Scores(chain, store)

    def run(self, rows: Sequence[Row]) -> None:
        """Sample the scan, then the rollouts."""
        from rlvr.probe.sample import key_of

        budget = self.chain.config.gates.probe
        done = {key_of(one): one for one in self.store.samples()}
        self._draw(rows[: budget.prompts], "low", 1, done)
        self._draw(rows[: budget.rollout_prompts], "training", budget.rollouts, done)

    def _draw(self, rows: Sequence[Row], source: Source, count: int, done: dict[Any, Sample]) -> None:
        from rlvr.probe.sample import sample_rows

        plan = self._plan(source, count)
        title = f"sampling at temperature {plan.temperature:g}"
        with counting(title, len(rows) * count, quiet=self.quiet) as advance:
            sample_rows(
                rows,
                plan,
                self.generator,
                self.store.completions,
                done,
                progress=advance,
                enough=(lambda: self._decided(done)) if source == "low" else None,
            )

    def _plan(self, source: Source, count: int) -> Plan:
        from rlvr.probe.sample import Plan

        sampling = self.chain.config.sampling
        temperature = sampling.low_temperature if source == "low" else sampling.temperature
        return Plan(temperature, source, count, self.cap, sampling.system_prompt, sampling.seed)

    def _decided(self, done: dict[Any, Sample]) -> bool:
        """Return whether the low temperature alone shows support, or surely none."""
        samples = [one for one in done.values() if one.source == "low"]
        tallies = estimate.tally(zip(samples, self.scores.of(samples), strict=True))
        seen = sequence.count(estimate.share(one.low) for one in tallies if one.low)
        prompts = sum(seen.values())
        if prompts < LOOK_FROM or (self.chain.config.gates.probe.decide_by == "training" and seen.get(1.0)):
            return False
        if sequence.mean_of(seen) == 0:
            return prompts >= sequence.prompts_for_zero_bound(HOPELESS)
        # The final capital is the mean over two temperatures: twice as much from this one is enough.
        return sequence.log_capital_above(seen, HOPELESS) >= sequence.LOG_NEEDED_FROM_ONE
