"""One scorer for all components: each is evaluated once a batch, and a failure of one makes its row neutral.

TRL sums components with ``nansum``, so a row trains nothing only when *every* function returns None for it.
The scorer therefore sees all components of a batch before any of them answers TRL:

1. every component is evaluated once; one that raises is called again row by row, so that only the rows at
   fault are lost, each named with component, row and value;
2. where a component could not judge a row because something outside the task failed, every component of that
   row is None;
3. the order *well-formed and right > well-formed and wrong > ill-formed* is kept by paying correctness only
   where the format components found nothing wrong.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from rlvr.errors import ConfigError
from rlvr.rewards.contract import (
    TRAINER_KEYWORDS,
    Completion,
    Outcome,
    RewardFunction,
    Scores,
    Verdict,
    Verifier,
    as_verifier,
    column,
)
from rlvr.rewards.evaluate import check_signature, evaluate
from rlvr.rewards.failures import FailureCount
from rlvr.rewards.length import CORRECTNESS_COLUMN

Role = Literal["correctness", "format", "length"]

DEFAULT_WEIGHTS: Mapping[Role, float] = {"correctness": 1.0, "format": 0.2, "length": 0.2}
"""Weight of a component that states none."""


@dataclass(frozen=True)
class Component:
    """One reward of a scorer.

    Attributes:
        name: Name under which it is logged; unique within a scorer.
        function: The reward.
        weight: Factor of its score in the sum.
        role: ``correctness`` decides the outcome, ``format`` gates it, ``length`` sees the outcome of the
            others.
        cut: Score at or above which a row is right, for a reward that returns floats; None: the full score,
            1.0.
    """

    name: str
    function: RewardFunction
    weight: float = 1.0
    role: Role = "correctness"
    cut: float | None = None


@dataclass(frozen=True, slots=True)
class RowScore:
    """What all components said of one completion.

    Attributes:
        outcome: That of the correctness components; ``infrastructure`` when any component failed.
        total: Weighted sum as TRL computes it; None when the row is neutral.
        components: Component name to unweighted score.
        extracted: What the correctness component read as the answer.
        why: The reason, as one sentence.
        outcomes: Component name to its own outcome, before gating.
    """

    outcome: Outcome
    total: float | None
    components: Mapping[str, float | None]
    extracted: str | None = None
    why: str = ""
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BadReference:
    """A row of the data whose reference a component cannot use."""

    row: int
    component: str
    column: str
    value: Any
    why: str


class Scorer:
    """All rewards of a task as one; see the module for what it guarantees.

    Args:
        components: The rewards, in the order in which TRL logs them.
        format_gates: Whether correctness is paid only on well-formed rows.

    Raises:
        ConfigError: ``reward.names`` when two components share a name, ``reward.none`` when there is none.
    """

    def __init__(self, components: Sequence[Component], *, format_gates: bool = True) -> None:
        self.components = tuple(components)
        self.format_gates = format_gates
        self.failures = FailureCount()
        _check_components(self.components)
        self._shared = _SharedBatch()

    def score_batch(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Completion],
        columns: Mapping[str, Sequence[Any]],
        **trainer_kwargs: Any,
    ) -> list[RowScore]:
        """Score one batch with every component, once each.

        Args:
            prompts: One prompt a completion.
            completions: Strings or chat message lists.
            columns: The data's other columns, one entry a completion.
            **trainer_kwargs: What TRL passes beside the data: ``completion_ids``, ``trainer_state``,
                ``log_extra``, ``log_metric``.

        Raises:
            RewardError: A component broke its contract.
            DataError: A reference is no gold.
        """
        everything = {**columns, **trainer_kwargs}
        found: dict[str, list[Verdict]] = {}
        for component in sorted(self.components, key=lambda one: one.role == "length"):
            if component.role == "length":
                everything[CORRECTNESS_COLUMN] = self._outcomes(found, len(completions))
            found[component.name] = evaluate(component, prompts, completions, everything)
        rows = [
            self._row({name: verdicts[row] for name, verdicts in found.items()})
            for row in range(len(completions))
        ]
        self._count(rows)
        return rows

    def reward_functions(self) -> list[ComponentReward]:
        """Return one callable a component with TRL's signature; together they evaluate a batch once."""
        return [ComponentReward(self, component.name) for component in self.components]

    def weights(self) -> list[float]:
        """Return the weights in the order of :meth:`reward_functions`."""
        return [component.weight for component in self.components]

    def check_references(self, rows: Iterable[Mapping[str, Any]]) -> list[BadReference]:
        """Return the rows whose reference a built-in component cannot use, found before anything is sampled.

        Raises:
            RewardError: ``reward.missing-column`` when a row lacks the column that a component reads.
        """
        found = []
        for number, row in enumerate(rows):
            for component in self.components:
                verifier = as_verifier(component.function)
                if verifier is not None:
                    found += _bad_references(component.name, verifier, number, row)
                elif number == 0:
                    check_signature(component, dict.fromkeys([*row, *TRAINER_KEYWORDS]))
        return found

    def shared(
        self, component: str, prompts: Any, completions: Any, keywords: dict[str, Any]
    ) -> list[RowScore]:
        """Return this batch's scores, evaluating it when ``component`` is the first to ask."""
        return self._shared.get(
            component,
            (
                prompts,
                completions,
                *(value for _, value in sorted(keywords.items()) if isinstance(value, list)),
            ),
            lambda: self._evaluate_and_log(prompts, completions, keywords),
        )

    def _evaluate_and_log(self, prompts: Any, completions: Any, keywords: dict[str, Any]) -> list[RowScore]:
        rows = self.score_batch(prompts, completions, keywords)
        log_extra, log_metric = keywords.get("log_extra"), keywords.get("log_metric")
        if log_extra is not None:
            log_extra("outcome", [row.outcome.value for row in rows])
            log_extra("extracted", [row.extracted for row in rows])
            log_extra("why", [row.why for row in rows])
        if log_metric is not None and rows:
            failed = sum(row.outcome is Outcome.INFRASTRUCTURE for row in rows)
            log_metric("rewards/infrastructure_share", failed / len(rows))
            log_metric("rewards/right_share", sum(row.outcome is Outcome.RIGHT for row in rows) / len(rows))
        return rows

    def _outcomes(self, found: Mapping[str, Sequence[Verdict]], rows: int) -> list[str]:
        outcomes = []
        for row in range(rows):
            verdicts = {name: verdicts[row] for name, verdicts in found.items()}
            outcomes.append(self._decide(verdicts)[0].value)
        return outcomes

    def _decide(self, verdicts: Mapping[str, Verdict]) -> tuple[Outcome, Verdict, str]:
        """Return the overall outcome, the verdict that decided it, and why."""
        for component in self.components:
            verdict = verdicts.get(component.name)
            if verdict is not None and verdict.outcome is Outcome.INFRASTRUCTURE:
                return Outcome.INFRASTRUCTURE, verdict, f"{component.name}: {verdict.why}"
        name, verdict = self._deciding(verdicts)
        broken = self._broken_format(verdicts)
        if broken and verdict.outcome in (Outcome.RIGHT, Outcome.WRONG):
            paid = "not paid, since " if verdict.outcome is Outcome.RIGHT else ""
            return Outcome.ILL_FORMED, verdict, f"{paid}{broken}"
        return verdict.outcome, verdict, verdict.why or f"{name}: {verdict.outcome}"

    def _deciding(self, verdicts: Mapping[str, Verdict]) -> tuple[str, Verdict]:
        """Return the first correctness verdict that is not right, or the first that is."""
        deciding = [one for one in self.components if one.role == "correctness"] or list(self.components)
        judged = [
            (one.name, verdicts[one.name])
            for one in deciding
            if one.name in verdicts and verdicts[one.name].outcome is not Outcome.NOT_APPLICABLE
        ]
        if not judged:
            return deciding[0].name, verdicts.get(deciding[0].name) or Verdict(Outcome.NOT_APPLICABLE, None)
        return next((pair for pair in judged if pair[1].outcome is not Outcome.RIGHT), judged[0])

    def _broken_format(self, verdicts: Mapping[str, Verdict]) -> str:
        if not self.format_gates:
            return ""
        for component in self.components:
            verdict = verdicts.get(component.name)
            if (
                component.role == "format"
                and verdict
                and verdict.outcome in (Outcome.ILL_FORMED, Outcome.WRONG)
            ):
                return f"{component.name}: {verdict.why}"
        return ""

    def _row(self, verdicts: Mapping[str, Verdict]) -> RowScore:
        outcome, deciding, why = self._decide(verdicts)
        own = {one.name: verdicts[one.name].outcome for one in self.components}
        if outcome is Outcome.INFRASTRUCTURE:
            return RowScore(outcome, None, dict.fromkeys(own), deciding.extracted, why, own)
        gated = self._broken_format(verdicts)
        scores = {
            one.name: _gated(verdicts[one.name].score, bool(gated) and one.role == "correctness")
            for one in self.components
        }
        paid = [one.weight * score for one in self.components if (score := scores[one.name]) is not None]
        return RowScore(outcome, sum(paid) if paid else None, scores, deciding.extracted, why, own)

    def _count(self, rows: Sequence[RowScore]) -> None:
        failed = [row for row in rows if row.outcome is Outcome.INFRASTRUCTURE]
        self.failures = self.failures.add(len(rows), len(failed), failed[-1].why if failed else "")

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_shared": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._shared = _SharedBatch()


class ComponentReward:
    """One component of a scorer as a plain TRL reward: picklable, named, evaluated with the others."""

    def __init__(self, scorer: Scorer, name: str) -> None:
        self.scorer = scorer
        self.__name__ = name

    def __call__(self, prompts: Sequence[Any], completions: Sequence[Completion], **columns: Any) -> Scores:
        """Return this component's scores, None on rows that no component may train on."""
        rows = self.scorer.shared(self.__name__, prompts, completions, columns)
        return [row.components[self.__name__] for row in rows]


class _SharedBatch:
    """The latest batch's scores, kept until every component has taken them once.

    A batch is recognised by the identity of the lists that TRL passes to each function; holding them keeps
    their identity from being reused. A component that asks a second time gets a fresh evaluation.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._key: tuple[Any, ...] = ()
        self._served: set[str] = set()
        self._rows: list[RowScore] = []

    def get(
        self, component: str, key: tuple[Any, ...], evaluate_batch: Callable[[], list[RowScore]]
    ) -> list[RowScore]:
        with self._lock:
            if component in self._served or not self._matches(key):
                self._rows = evaluate_batch()
                self._key, self._served = key, set()
            self._served.add(component)
            return self._rows

    def _matches(self, key: tuple[Any, ...]) -> bool:
        same_length = len(key) == len(self._key) and bool(key)
        return same_length and all(one is other for one, other in zip(key, self._key, strict=True))


def _gated(score: float | None, gate: bool) -> float | None:
    return min(score, 0.0) if gate and score is not None else score


def _bad_references(name: str, verifier: Verifier, number: int, row: Mapping[str, Any]) -> list[BadReference]:
    if verifier.reference_column is None:
        return []
    where = f"{name}, row {number}"
    value = column(
        verifier.reference_column, {key: [entry] for key, entry in row.items()}, component=where, rows=1
    )[0]
    why = verifier.check_reference(value)
    return [BadReference(number, name, verifier.reference_column, value, why)] if why else []


def _check_components(components: Sequence[Component]) -> None:
    if not components:
        raise ConfigError("reward.none", "no reward is named", fix="name at least one under `rewards:`")
    names = [component.name for component in components]
    double = sorted({name for name in names if names.count(name) > 1})
    if double:
        raise ConfigError(
            "reward.names",
            f"two rewards are named {double[0]!r}",
            expected="a name of its own for each",
            fix="set `name:` on one of them",
        )
    _check_judges(components)


def _check_judges(components: Sequence[Component]) -> None:
    """Refuse a model judge as the only correctness signal unless people's labels show that it agrees with them."""
    deciding = [one for one in components if one.role == "correctness"]
    reasons = [getattr(as_verifier(one.function), "needs_calibration", "") for one in deciding]
    if deciding and all(reasons):
        raise ConfigError(
            "reward.judge-alone",
            f"{reasons[0]} is the only correctness signal",
            where=f"reward {deciding[0].name}",
            expected="a program that decides correctness, or a calibration record of at least 50 labels",
            fix="label with `rlvr inspect`, run `rlvr rewards calibrate`, name its record as `calibration:`",
        )
