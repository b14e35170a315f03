"""A run's completions in memory, as columns: what each said, earned and weighed, group by group.

Rows come in TRL's column layout (``step, prompt, completion``, one column a reward function, ``advantage``) with
this project's ``outcome, group, tokens, truncated`` where they exist. Without ``outcome`` correctness is read from
the reward component whose name says so, or from a reward with two levels; :attr:`Completions.right_by` says how.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from rlvr.watch.history import Floats, number
from rlvr.watch.metrics import is_correctness

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

TEXT_KEYS: Final = ("completion", "completions", "response", "responses", "output", "generated_text", "text")
PROMPT_KEYS: Final = ("prompt", "prompts", "input", "question", "query")
TOTAL_KEYS: Final = ("reward", "rewards", "score", "total_reward", "reward_total")
LENGTH_KEYS: Final = (
    "tokens",
    "completion_length",
    "response_length",
    "num_tokens",
    "length",
    "completion_tokens",
)
ANSWER_KEYS: Final = ("extracted", "extracted_answer", "predicted_answer", "pred", "parsed_answer")
REFERENCE_KEYS: Final = ("answer", "reference", "solution", "ground_truth", "gts", "target", "gold")
NOT_REWARDS: Final = frozenset(
    {"step", "global_step", "advantage", "advantages", "group", "row", "index", "epoch", "truncated", "seed",
     "temperature", "prompt_id", "sample_id", "id", "rank", "weight", "uid", *LENGTH_KEYS, *TOTAL_KEYS}
)  # fmt: skip
SHOWN_CHARACTERS: Final = 600
"""Characters of a text that are kept, for the page."""
ROW_CAP: Final = 120_000
"""Completions kept; past it every second step is dropped."""
UNKNOWN: Final = -9

_OUTCOMES: Final = {"right": 1, "wrong": 0, "ill-formed": -1}
_BOX: Final = re.compile(r"\\boxed\s*\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}")
_TAG: Final = re.compile(r"<answer>(.*?)</answer>", re.DOTALL | re.IGNORECASE)
_HASHES: Final = re.compile(r"####\s*(.+)")


@dataclass(frozen=True)
class Completions:
    """Completions of one run, in order of steps.

    Attributes:
        steps: Step of each.
        groups: Number of the group (one prompt at one step) of each.
        prompt_ids: Index into :attr:`prompts`.
        rewards: Total reward, NaN when unknown.
        components: Reward function's name to scores.
        outcomes: 1 right, 0 wrong, -1 ill-formed, :data:`UNKNOWN` otherwise.
        lengths: Length of each, in :attr:`length_unit`.
        truncated: 1.0, 0.0, or NaN when unknown.
        answers: Number of the answer that the completion gives (equal answers share a number).
        distinct_text: Share of distinct word pairs in each text, NaN for texts under eight words.
        answer_names: Answers by number, cut short.
        references: Number of the reference answer, -1 when unknown.
        prompts: Prompts by index, cut short.
        texts: Completions, cut short.
        length_unit: ``tokens`` or ``characters``.
        right_by: What correctness was read from; empty when it is unknown.
    """

    steps: Floats
    groups: Ints
    prompt_ids: Ints
    rewards: Floats
    components: Mapping[str, Floats]
    outcomes: NDArray[np.int8]
    lengths: Floats
    truncated: Floats
    answers: Ints
    distinct_text: Floats
    answer_names: Sequence[str]
    references: Ints
    prompts: Sequence[str]
    texts: Sequence[str]
    length_unit: str = "tokens"
    right_by: str = ""
    remarks: tuple[str, ...] = ()

    def __len__(self) -> int:
        return int(self.steps.size)

    @cached_property
    def knows_right(self) -> bool:
        """Whether correctness is known for most completions."""
        return bool(len(self)) and float((self.outcomes != UNKNOWN).mean()) > 0.5

    @cached_property
    def right(self) -> Mask:
        """Which are right."""
        return np.asarray(self.outcomes == 1)

    @cached_property
    def group_count(self) -> int:
        """Number of groups."""
        return int(self.groups.max()) + 1 if len(self) else 0

    @cached_property
    def group_sizes(self) -> Ints:
        """Completions a group."""
        return np.bincount(self.groups, minlength=self.group_count)

    @cached_property
    def group_steps(self) -> Floats:
        """Step of each group."""
        found = np.zeros(self.group_count)
        found[self.groups] = self.steps
        return found

    def group_means(self, values: Floats) -> Floats:
        """Return the mean of finite values by group, NaN where a group has none."""
        finite = np.isfinite(values)
        total = np.bincount(self.groups, weights=np.where(finite, values, 0.0), minlength=self.group_count)
        count = np.bincount(self.groups, weights=finite.astype(float), minlength=self.group_count)
        means: Floats = np.where(count > 0, total / np.maximum(count, 1), np.nan)
        return means

    @cached_property
    def group_spread(self) -> Floats:
        """Largest minus smallest total reward by group, NaN where unknown."""
        low = np.full(self.group_count, np.inf)
        high = np.full(self.group_count, -np.inf)
        finite = np.isfinite(self.rewards)
        np.minimum.at(low, self.groups[finite], self.rewards[finite])
        np.maximum.at(high, self.groups[finite], self.rewards[finite])
        spread: Floats = np.where(high >= low, high - low, np.nan)
        return spread

    @cached_property
    def zero_variance(self) -> Floats:
        """1.0 for a group (of two or more) whose rewards are all the same, else 0.0; NaN where unknown."""
        found: Floats = np.where(np.isnan(self.group_spread) | (self.group_sizes < 2), np.nan, 0.0)
        found[(self.group_spread < 1e-9) & (self.group_sizes >= 2)] = 1.0
        return found

    @cached_property
    def group_right_share(self) -> Floats:
        """Share of right completions by group, NaN where unknown."""
        known = np.where(self.outcomes == UNKNOWN, np.nan, (self.outcomes == 1).astype(float))
        return self.group_means(known)

    @cached_property
    def distinct_answers(self) -> Floats:
        """Distinct answers over group size, by group."""
        pairs = np.unique(np.stack([self.groups, self.answers]), axis=1)
        count = np.bincount(pairs[0], minlength=self.group_count)
        share: Floats = count / np.maximum(self.group_sizes, 1)
        return share

    def by_step(self, group_values: Floats) -> tuple[Floats, Floats]:
        """Return steps and the mean of a group measure at each, NaN groups left out."""
        keep = np.isfinite(group_values)
        steps, index = np.unique(self.group_steps[keep], return_inverse=True)
        total = np.bincount(index, weights=group_values[keep], minlength=steps.size)
        count = np.bincount(index, minlength=steps.size)
        return steps, total / np.maximum(count, 1)

    def upto(self, step: float) -> Completions:
        """Return the completions up to a step, as a live check sees them."""
        keep = self.steps <= step
        return Completions(
            self.steps[keep], self.groups[keep], self.prompt_ids[keep], self.rewards[keep],
            {name: values[keep] for name, values in self.components.items()}, self.outcomes[keep],
            self.lengths[keep], self.truncated[keep], self.answers[keep], self.distinct_text[keep],
            self.answer_names, self.references[keep], self.prompts,
            [t for t, k in zip(self.texts, keep, strict=True) if k], self.length_unit, self.right_by, self.remarks,
        )  # fmt: skip


def completions_from_rows(
    rows: Iterable[Mapping[str, Any]],
    *,
    rewards: Sequence[str] = (),
    weights: Mapping[str, float] | None = None,
) -> Completions | None:
    """Build completions from rows as files have them.

    Args:
        rows: One mapping a completion.
        rewards: Names of the reward functions, where known; otherwise every numeric column that is nothing else.
        weights: Weight of each reward function, for the total; 1.0 each when not given.

    Returns:
        The completions, or None when no row holds a completion.
    """
    builder = CompletionsBuilder(rewards=rewards, weights=weights)
    for row in rows:
        builder.add(row)
    return builder.build()


def looks_like_completions(columns: Iterable[str]) -> bool:
    """Whether columns are those of a file of completions."""
    names = {c.lower() for c in columns}
    return bool(names & {"completion", "completions", "response", "responses"}) and bool(
        names & ({"advantage", "advantages", "group", "step", "global_step"} | set(PROMPT_KEYS))
    )


def plain_text(value: Any) -> str:
    """Return a prompt or completion as text: a string itself, or the contents of chat messages."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return str(value.get("content") or value.get("text") or "")
    if isinstance(value, Sequence):
        return "\n".join(part for part in map(plain_text, value) if part)
    return "" if value is None else str(value)


def answer_of(text: str) -> str:
    """Return what a completion gives as its answer: last box, answer tag, ``####`` line, else its last line."""
    for pattern in (_BOX, _TAG, _HASHES):
        found = pattern.findall(text)
        if found:
            return " ".join(found[-1].split()).lower()[:80]
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return " ".join(lines[-1].split()).lower()[-80:] if lines else ""


class _Numbering:
    """Gives equal texts one number."""

    def __init__(self) -> None:
        self.numbers: dict[Any, int] = {}

    def of(self, key: Any) -> int:
        return self.numbers.setdefault(key, len(self.numbers))


@dataclass
class _Columns:
    steps: list[float] = field(default_factory=list)
    groups: list[Any] = field(default_factory=list)
    prompts: list[int] = field(default_factory=list)
    totals: list[float] = field(default_factory=list)
    scores: list[dict[str, float]] = field(default_factory=list)
    outcomes: list[int] = field(default_factory=list)
    tokens: list[float] = field(default_factory=list)
    characters: list[float] = field(default_factory=list)
    truncated: list[float] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    references: list[int] = field(default_factory=list)
    distinct: list[float] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def thin(self) -> None:
        """Drop every second step."""
        kept_steps = set(sorted(set(self.steps))[::2])
        keep = [step in kept_steps for step in self.steps]
        for name, values in vars(self).items():
            setattr(self, name, [v for v, k in zip(values, keep, strict=True) if k])


class CompletionsBuilder:
    """Collects completion rows."""

    def __init__(
        self,
        *,
        rewards: Sequence[str] = (),
        weights: Mapping[str, float] | None = None,
        row_cap: int = ROW_CAP,
    ) -> None:
        self._row_cap = row_cap
        self._rewards = tuple(rewards)
        self._weights = dict(weights or {})
        self._columns = _Columns()
        self._prompts = _Numbering()
        self._shown_prompts: list[str] = []
        self._answers = _Numbering()
        self._thinned = 1

    def add(self, row: Mapping[str, Any]) -> None:
        """Add one completion; rows without a text are passed over."""
        text = _first(row, TEXT_KEYS)
        if text is None:
            return
        completion, prompt = plain_text(text), plain_text(_first(row, PROMPT_KEYS))
        columns = self._columns
        step = number(row.get("step", row.get("global_step"))) or 0.0
        prompt_id = self._prompts.of(hash(prompt))
        if prompt_id == len(self._shown_prompts):
            self._shown_prompts.append(prompt[-SHOWN_CHARACTERS:])
        columns.steps.append(step)
        columns.groups.append((step, row["group"] if row.get("group") is not None else prompt_id))
        columns.prompts.append(prompt_id)
        columns.totals.append(_float(_first(row, TOTAL_KEYS)))
        columns.scores.append(self._scores(row))
        columns.outcomes.append(_OUTCOMES.get(str(row.get("outcome")), UNKNOWN))
        columns.tokens.append(_float(_first(row, LENGTH_KEYS)))
        columns.characters.append(float(len(completion)))
        columns.truncated.append(_float(row.get("truncated")))
        columns.answers.append(self._answers.of(self._answer(row, completion)))
        reference = _first(row, REFERENCE_KEYS)
        columns.references.append(-1 if reference is None else self._answers.of(_norm(reference)))
        columns.distinct.append(_distinct_pairs(completion))
        columns.texts.append(completion[:SHOWN_CHARACTERS])
        if len(columns.steps) > self._row_cap and len(set(columns.steps)) > 1:
            columns.thin()
            self._thinned *= 2

    def _scores(self, row: Mapping[str, Any]) -> dict[str, float]:
        if self._rewards:
            return {name: _float(row[name]) for name in self._rewards if name in row}
        return {
            name: float(value)
            for name, value in row.items()
            if isinstance(value, int | float)
            and not isinstance(value, bool)
            and name.lower() not in NOT_REWARDS
            and name.lower() not in REFERENCE_KEYS
        }

    def _answer(self, row: Mapping[str, Any], completion: str) -> str:
        found = _first(row, ANSWER_KEYS)
        if found is None:
            found = next((v for k, v in row.items() if k.endswith("_extracted") and v is not None), None)
        return _norm(found) if found is not None else answer_of(completion)

    def build(self) -> Completions | None:
        """Return the completions sorted by step, or None when there were none."""
        columns = self._columns
        if not columns.steps:
            return None
        order = np.argsort(np.asarray(columns.steps), kind="stable")
        components = self._component_arrays(order)
        rewards, how = self._totals(order, components)
        outcomes, right_by = _outcomes(
            np.asarray(columns.outcomes, dtype=np.int8)[order], components, rewards
        )
        lengths, unit = _lengths(columns, order)
        numbering = _Numbering()
        return Completions(
            steps=np.asarray(columns.steps, dtype=float)[order],
            groups=np.asarray([numbering.of(columns.groups[i]) for i in order], dtype=np.int64),
            prompt_ids=np.asarray(columns.prompts, dtype=np.int64)[order],
            rewards=rewards,
            components=components,
            outcomes=outcomes,
            lengths=lengths,
            truncated=np.asarray(columns.truncated, dtype=float)[order],
            answers=np.asarray(columns.answers, dtype=np.int64)[order],
            distinct_text=np.asarray(columns.distinct, dtype=float)[order],
            answer_names=[str(name) for name in self._answers.numbers],
            references=np.asarray(columns.references, dtype=np.int64)[order],
            prompts=self._shown_prompts,
            texts=[columns.texts[i] for i in order],
            length_unit=unit,
            right_by=right_by,
            remarks=tuple(filter(None, (how, self._thinning()))),
        )

    def _thinning(self) -> str:
        return (
            f"completions of every {self._thinned}th step were kept to bound memory"
            if self._thinned > 1
            else ""
        )

    def _component_arrays(self, order: NDArray[np.intp]) -> dict[str, Floats]:
        names = dict.fromkeys(name for scores in self._columns.scores for name in scores)
        found = {}
        for name in names:
            values = np.asarray([s.get(name, np.nan) for s in self._columns.scores], dtype=float)[order]
            if np.isfinite(values).any():
                found[name] = values
        return found

    def _totals(self, order: NDArray[np.intp], components: Mapping[str, Floats]) -> tuple[Floats, str]:
        totals = np.asarray(self._columns.totals, dtype=float)[order]
        if np.isfinite(totals).any() or not components:
            return totals, ""
        weighted = [np.nan_to_num(v) * self._weights.get(name, 1.0) for name, v in components.items()]
        scored = np.any([np.isfinite(v) for v in components.values()], axis=0)
        total: Floats = np.where(scored, np.sum(weighted, axis=0), np.nan)
        unknown = [name for name in components if name not in self._weights] if len(components) > 1 else []
        named = f"weights of {', '.join(unknown)} are unknown: each was counted once" if unknown else ""
        return total, named


def _first(row: Mapping[str, Any], keys: Sequence[str]) -> Any:
    return next((row[key] for key in keys if row.get(key) is not None), None)


def _float(value: Any) -> float:
    found = number(value) if value is not None else None
    return float("nan") if found is None else found


def _norm(value: Any) -> str:
    return " ".join(str(value).split()).lower()[:80]


def _distinct_pairs(text: str) -> float:
    words = text.split()[:400]
    if len(words) < 8:
        return float("nan")
    pairs = list(itertools.pairwise(words))
    return len(set(pairs)) / len(pairs)


def _lengths(columns: _Columns, order: NDArray[np.intp]) -> tuple[Floats, str]:
    tokens = np.asarray(columns.tokens, dtype=float)[order]
    if np.isfinite(tokens).mean() > 0.9:
        return tokens, "tokens"
    return np.asarray(columns.characters, dtype=float)[order], "characters"


def _outcomes(
    outcomes: NDArray[np.int8], components: Mapping[str, Floats], rewards: Floats
) -> tuple[NDArray[np.int8], str]:
    """Complete unknown outcomes from a reward that says correctness."""
    if (outcomes != UNKNOWN).mean() > 0.5:
        return outcomes, "outcome"
    named = [(name, values) for name, values in components.items() if is_correctness(name)]
    alone = list(components.items()) if len(components) == 1 else []
    for name, values in [*named, *alone, *([] if components else [("reward", rewards)])]:
        found = _two_levels(values)
        if found is not None:
            return found, f"{name} at its full score"
    return outcomes, ""


def _two_levels(values: Floats) -> NDArray[np.int8] | None:
    """Read a score as right or wrong when it has few levels; right is the highest, and must be above zero."""
    finite = values[np.isfinite(values)]
    levels = np.unique(np.round(finite, 6))
    if not 1 <= levels.size <= 4 or (levels.size == 1 and levels[0] <= 0 and levels[0] != 0):
        return None
    top = levels[-1] if levels[-1] > 0 else max(1.0, levels[-1])
    right = np.where(np.isfinite(values), (values >= top - 1e-6).astype(np.int8), UNKNOWN)
    return right.astype(np.int8)
