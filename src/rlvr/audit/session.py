"""Calls the reward as the trainer would: the calling convention is found out first, then every call uses it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from rlvr.audit.rows import REFERENCE_NAMES, AuditRow
from rlvr.audit.runner import CALL_SECONDS, Facts, Result, Runner, Worker
from rlvr.rewards.contract import TRAINER_KEYWORDS

COMPLETION_NAMES = (
    "completion",
    "response",
    "output",
    "solution_str",
    "generation",
    "text",
    "prediction",
    "pred",
    "model_output",
    "generated",
    "content",
    "completion_text",
    "response_text",
    "pred_str",
)
BATCH_S = 3.0
WARM_S = 10.0
COLD_S = 0.02
FRESH_CALLS = 64
"""Calls after which a worker is replaced by a fresh one, so that a reward with a memory spoils little."""
STICKY_CALLS = 400
AT_ONCE = 4
"""Workers at the same time, where each mostly waits for a process of its own."""
CHUNK_S = 1.5
"""Seconds of calls that are sent at once; between chunks the clock of the audit is read."""
PROMPT_PARAMETERS = ("prompt", "prompt_str", "question", "problem", "query")
BATCH_NAMES = ("completions", "responses", "outputs", "generations", "predictions", "texts", "solutions_str")


@dataclass(frozen=True)
class Convention:
    """How the reward wants to be called.

    Attributes:
        mode: ``trl`` for a batch with keywords, ``sample`` for one completion a call.
        chat: Whether completions are lists of messages.
        allowed: Keywords it accepts, None when it accepts any.
        aliases: Parameter to the column, or to ``@completions`` and the like, that fills it.
        is_async: Whether it is awaited.
        words: The same in words.
    """

    mode: str
    chat: bool
    allowed: frozenset[str] | None = None
    aliases: Mapping[str, str] = field(default_factory=dict)
    is_async: bool = False

    @property
    def words(self) -> str:
        """The convention in words, as printed."""
        form = "chat completions (lists of messages)" if self.chat else "string completions"
        call = (
            "one completion a call" if self.mode == "sample" else "TRL batch (prompts, completions, columns)"
        )
        parts = ["async" if self.is_async else "sync", call, form]
        if self.mode == "trl" and self.allowed is not None:
            parts.append("without **kwargs")
        if self.aliases:
            parts.append(", ".join(f"{name} from {source}" for name, source in self.aliases.items()))
        return "; ".join(parts)


def convention_of(facts: Facts, rows: Sequence[AuditRow], columns: Sequence[str]) -> Convention:
    """Return the convention that signature and data suggest; chat or string is settled by trying."""
    names = set(facts.names)
    chat = rows[0].is_chat
    single = [name for name in COMPLETION_NAMES if name in names and name not in columns]
    if single and not names & {"completions", *BATCH_NAMES} and "completion_ids" not in names:
        aliases = {single[0]: "@completion"}
        for name in facts.required:
            if name not in aliases:
                aliases[name] = _sample_source(name, columns)
        return Convention("sample", False, None, aliases, facts.is_async)
    aliases = {}
    for name in facts.required:
        if name not in TRAINER_KEYWORDS and name not in columns:
            aliases[name] = "@completions" if name in BATCH_NAMES else _alias(name, columns)
    allowed = None if facts.takes_any_keyword else frozenset(names)
    return Convention("trl", chat, allowed, {k: v for k, v in aliases.items() if v}, facts.is_async)


def _sample_source(name: str, columns: Sequence[str]) -> str:
    if name in columns:
        return name
    if name in PROMPT_PARAMETERS:
        return "@prompt"
    if name == "extra_info":
        return "@row"
    return _alias(name, columns) or "@none"


def _alias(name: str, columns: Sequence[str]) -> str:
    """Return the column that a parameter without one most likely means."""
    near = [one for one in columns if one.rstrip("s") == name.rstrip("s")]
    known = [one for one in REFERENCE_NAMES if one in columns]
    return (near or known or [""])[0]


class Session:
    """One reward with its rows: scores texts, keeps what was scored, and holds the audit's clock.

    Args:
        runner: The loaded reward.
        rows: The user's rows.
        convention: How to call it.
        budget_s: Seconds after which further calls are skipped and reported as not checked.
    """

    def __init__(
        self, runner: Runner, rows: Sequence[AuditRow], convention: Convention, budget_s: float
    ) -> None:
        self.runner = runner
        self.rows = list(rows)
        self.convention = convention
        self.deadline = time.monotonic() + budget_s
        self.extra_columns: dict[str, str] = {}
        self._known: dict[tuple[int, str], Result] = {}
        self._spent = 0.0
        self._singles = 0
        self._workers: set[str] = set()
        self.hangs = 0
        self.sticky = False
        self.turned = False
        self.contained = False
        self.always_isolated = False
        self._worker: Worker | None = None
        self.first_call_s = 0.0

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline, not below 0."""
        return max(0.0, self.deadline - time.monotonic())

    @property
    def seconds_per_call(self) -> float:
        """Mean time of a call with one completion so far."""
        return self._spent / self._singles if self._singles else 0.001

    @property
    def words(self) -> str:
        """The convention in words; where the reward reads the other shape alone, what the trainer passes too."""
        if not self.turned:
            return self.convention.words
        passed = "strings" if self.convention.chat else "chat messages"
        return f"{self.convention.words}; the trainer passes {passed}"

    def with_chat(self, chat: bool) -> None:
        """Pass completions as messages, or as strings, from now on."""
        self.turned = chat != self.rows[0].is_chat
        self.convention = replace(self.convention, chat=chat)
        self._known.clear()

    def forget(self) -> None:
        """Drop every known result, since the columns changed."""
        self._known.clear()

    def request(self, rows: Sequence[int], texts: Sequence[str], **options: Any) -> dict[str, Any]:
        """Return one call as the child expects it."""
        if self.convention.mode == "sample":
            arguments = [self._sample_arguments(row, text) for row, text in zip(rows, texts, strict=True)]
            return {
                "mode": "sample",
                "arguments": arguments,
                "prompts": [],
                "completions": list(texts),
                "columns": {},
                **options,
            }
        completions = [self._completion(text) for text in texts]
        names = dict.fromkeys(name for row in self.rows for name in row.columns)
        columns: dict[str, Any] = {name: [self.rows[row].columns.get(name) for row in rows] for name in names}
        for name, source in {**self.convention.aliases, **self.extra_columns}.items():
            columns[name] = completions if source == "@completions" else columns.get(source)
        return {
            "mode": "trl",
            "prompts": [self.rows[row].prompt for row in rows],
            "completions": completions,
            "columns": columns,
            "allowed": self.convention.allowed,
            **options,
        }

    def _completion(self, text: str) -> Any:
        return [{"role": "assistant", "content": text}] if self.convention.chat else text

    def _sample_arguments(self, row: int, text: str) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for name, source in self.convention.aliases.items():
            if source == "@completion":
                values[name] = self._completion(text)
            elif source == "@prompt":
                values[name] = self.rows[row].prompt_text
            elif source == "@row":
                values[name] = dict(self.rows[row].columns)
            else:
                values[name] = None if source == "@none" else self.rows[row].columns.get(source)
        return values

    def sibling(self, runner: Runner) -> Session:
        """Return a session on another process that calls the same reward in the same way."""
        other = Session(runner, self.rows, self.convention, self.seconds_left)
        other.extra_columns = self.extra_columns
        other.turned = self.turned
        return other

    def singles(
        self, pairs: Iterable[tuple[int, str]], clock: float = CALL_SECONDS, *, isolated: bool = False
    ) -> list[Result]:
        """Score completions one by one, all in one fresh worker; known results are not asked for again.

        Args:
            pairs: Row and completion text.
            clock: Seconds a call may take.
            isolated: A fresh worker for every completion, for ones that may leave something behind.
        """
        wanted = list(pairs)
        isolated = (isolated or self.always_isolated) and not self.contained
        new = [pair for pair in dict.fromkeys(wanted) if pair not in self._known]
        size = int(min(64, max(1, CHUNK_S / self.seconds_per_call))) if self._singles else 4
        for group in [[pair] for pair in new] if isolated else _chunks(new, size):
            if self.seconds_left <= 0:
                break
            self._score(group, clock, isolated=isolated)
        skipped = Result("skipped", message="the audit's time was used up")
        return [self._known.get(pair, skipped) for pair in wanted]

    def warm_up(self, pairs: Sequence[tuple[int, str]]) -> None:
        """Make first calls, slow where a reward imports on its first call, before any clock is strict.

        Where a fresh worker stays slow on its first call, workers are kept for many calls.
        """
        requests = [self.request([row], [text]) for row, text in pairs]
        done = self.runner.warm(requests, WARM_S)
        if len(done) < len(requests):  # it hangs or ends the process on ordinary text
            self._known[pairs[len(done)]] = Result(
                "hang", message=f"no answer within {WARM_S:g} s", seconds=WARM_S
            )
            self.hangs += 1
            return
        with self.runner.worker() as worker:
            again = worker.run([requests[0], requests[0], *requests], WARM_S)
        first, second = again[0].seconds, again[1].seconds
        self.sticky = first > COLD_S and first > 5 * second
        self.first_call_s = again[0].wall
        for pair, result in zip(pairs, again[2:], strict=True):
            self._known[pair] = result

    def prefetch(self, pairs: Iterable[tuple[int, str]], clock: float = CALL_SECONDS) -> None:
        """Score completions at the same time, each in a worker of its own; for rewards that start processes."""
        new = [pair for pair in dict.fromkeys(pairs) if pair not in self._known]
        if self.seconds_left <= 0 or self.contained:
            return
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(lambda pair: self._one(pair, clock), new))

    def _one(self, pair: tuple[int, str], clock: float) -> None:
        if self.seconds_left > 0:
            self._score([pair], clock, isolated=True)

    def _standing_worker(self) -> Worker:
        """Return the worker that scores one completion after the other; it is renewed now and then."""
        limit = STICKY_CALLS if self.sticky else FRESH_CALLS
        if self._worker is not None and self._worker.calls >= limit:
            self._worker.close()
            self._worker = None
        if self._worker is None:
            self._worker = self.runner.worker()
        return self._worker

    def _score(self, pairs: Sequence[tuple[int, str]], clock: float, *, isolated: bool = False) -> None:
        started = time.monotonic()
        wanted = clock
        clock = min(clock, CALL_SECONDS / 4) if self.hangs > 2 else min(clock, max(self.seconds_left, 0.5))
        clock += 2 * self.first_call_s
        requests = [self.request([row], [text]) for row, text in pairs]
        if isolated:
            with self.runner.worker() as worker:
                results = worker.run(requests, clock, self.deadline)
        else:
            results = self._standing_worker().run(requests, clock, self.deadline)
        if clock < wanted and self.seconds_left <= 0:  # cut short by the deadline: nothing is known
            results = [_cut_short(result) for result in results]
        for pair, result in zip(pairs, results, strict=True):
            self._known[pair] = result
        found = sum(result.kind == "hang" for result in results)
        self.hangs += found
        if not found:
            self._spent += time.monotonic() - started
            self._singles += len(pairs)

    def known(self) -> list[tuple[tuple[int, str], Result]]:
        """Return every completion scored alone so far, with its result."""
        return list(self._known.items())

    def score(self, row: int, text: str) -> float | None:
        """Return the score of one completion; None when the call gave none."""
        return self.singles([(row, text)])[0].score

    def sequence(
        self, calls: Sequence[tuple[Sequence[int], Sequence[str]]], clock: float = 0.0, **options: Any
    ) -> list[Result]:
        """Run whole batches in one fresh worker, in order; the default clock follows the usual time of a call."""
        if self.seconds_left <= 0:
            return [Result("skipped", message="the audit's time was used up")] * len(calls)
        if not clock:
            longest = max(len(texts) for _, texts in calls)
            clock = max(BATCH_S, 4 * longest * self.seconds_per_call) + 2 * self.first_call_s
        with self.runner.worker() as worker:
            self._workers.add(str(worker.pid))
            return worker.run([self.request(rows, texts, **options) for rows, texts in calls], clock)

    def is_worker(self, pid: str) -> bool:
        """Whether ``pid`` is that of the process that ran the reward itself."""
        return pid in self._workers


def _cut_short(result: Result) -> Result:
    if result.kind != "hang":
        return result
    return Result("skipped", message="the audit's time was used up")


def _chunks(values: Sequence[tuple[int, str]], size: int) -> list[Sequence[tuple[int, str]]]:
    return [values[start : start + size] for start in range(0, len(values), size)]
