"""One component on one batch: call it as TRL does, isolate what raises, and read scores as verdicts."""

from __future__ import annotations

import asyncio
import inspect
import threading
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rlvr.errors import InfrastructureError, RewardError, RlvrError, did_you_mean, in_words
from rlvr.rewards.contract import (
    TRAINER_KEYWORDS,
    Completion,
    Outcome,
    Verdict,
    as_verifier,
    checked_scores,
)

if TYPE_CHECKING:
    from rlvr.rewards.composite import Component

PER_ROW_KEYWORDS = frozenset({"completion_ids", "environments"})
"""Keywords of TRL that hold one entry a completion, like a column of the data."""

_SLACK = 1e-9  # sums of floats that are meant to reach the cut


def evaluate(
    component: Component,
    prompts: Sequence[Any],
    completions: Sequence[Completion],
    keywords: Mapping[str, Any],
) -> list[Verdict]:
    """Return one verdict a completion; a row on which the component raises is an infrastructure failure.

    Raises:
        RewardError: The component broke its contract (component, row and value are named).
        DataError: A reference is no gold.
    """
    check_signature(component, keywords)
    logs = _Logs(keywords, len(completions))
    try:
        found = _call(component, prompts, completions, logs.keywords)
    except RlvrError as error:
        if not isinstance(error, InfrastructureError):
            raise
        found = _isolated(component, prompts, completions, logs)
    except KeyboardInterrupt:
        raise
    except BaseException:  # a user's code may raise anything, SystemExit too; each row is then tried alone
        found = _isolated(component, prompts, completions, logs)
    logs.flush()
    return found


def verdict_of_score(component: Component, score: float | None) -> Verdict:
    """Read a float of a user's function as a verdict: right at or above the cut."""
    if score is None:
        return Verdict(Outcome.NOT_APPLICABLE, None, why=f"{component.name} does not judge this row")
    cut = 1.0 if component.cut is None else component.cut
    if score >= cut - _SLACK:
        return Verdict(Outcome.RIGHT, score, why=f"{component.name} paid {score:g}, cut {cut:g}")
    missed = Outcome.ILL_FORMED if component.role == "format" else Outcome.WRONG
    return Verdict(missed, score, why=f"{component.name} paid {score:g}, under the cut {cut:g}")


def _call(
    component: Component,
    prompts: Sequence[Any],
    completions: Sequence[Completion],
    keywords: Mapping[str, Any],
) -> list[Verdict]:
    function = component.function
    verifier = as_verifier(function)
    if verifier is not None:
        verdicts = verifier.verdicts(completions, **keywords)
        checked_scores(component.name, [verdict.score for verdict in verdicts], len(completions))
        return [_with_cut(component, verdict) for verdict in verdicts]
    returned: Any = function(prompts=prompts, completions=completions, **keywords)
    if inspect.isawaitable(returned):
        returned = run_awaitable(returned)
    scores = checked_scores(component.name, returned, len(completions))
    return [verdict_of_score(component, score) for score in scores]


def check_signature(component: Component, keywords: Mapping[str, Any]) -> None:
    """Say which parameter of a user's function no column of the data fills.

    Raises:
        RewardError: ``reward.missing-column`` with the nearest column, ``reward.signature`` without ``**kwargs``.
    """
    function = component.function
    if as_verifier(function) is not None:
        return
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some callables of C extensions tell no signature
        return
    given = {"prompts", "completions", *keywords}
    positional = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    for one in parameters:
        if one.kind in positional and one.default is one.empty and one.name not in given:
            columns = sorted(set(keywords) - TRAINER_KEYWORDS)
            raise RewardError(
                "reward.missing-column",
                f"it needs {one.name!r}; the data has {columns or 'no columns'}",
                where=f"reward {component.name}",
                expected=f"a column {one.name!r}",
                fix=did_you_mean(one.name, columns) or "add the column, or rename the parameter",
            )
    if not any(one.kind is one.VAR_KEYWORD for one in parameters):
        raise RewardError(
            "reward.signature",
            "it does not take **kwargs, so it breaks on whatever else the trainer passes",
            where=f"reward {component.name}",
            expected="def reward(prompts, completions, **kwargs)",
            fix="add **kwargs to its parameters",
        )


def _with_cut(component: Component, verdict: Verdict) -> Verdict:
    """Apply a declared cut to a built-in reward that pays in parts."""
    if component.cut is None or verdict.score is None or verdict.outcome is not Outcome.WRONG:
        return verdict
    right = verdict.score >= component.cut - _SLACK
    return replace(verdict, outcome=Outcome.RIGHT) if right else verdict


def _isolated(
    component: Component, prompts: Sequence[Any], completions: Sequence[Completion], logs: _Logs
) -> list[Verdict]:
    found = []
    logs.restart()
    for row, completion in enumerate(completions):
        with logs.row(row) as keywords:
            found.append(_one_row(component, row, prompts[row : row + 1], completion, keywords))
    return found


def _one_row(
    component: Component, row: int, prompt: Sequence[Any], completion: Completion, keywords: Mapping[str, Any]
) -> Verdict:
    try:
        return _call(component, prompt, [completion], keywords)[0]
    except RlvrError as error:
        if not isinstance(error, InfrastructureError):
            raise
        return Verdict(Outcome.INFRASTRUCTURE, None, why=f"row {row}: {error.found}")
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # the failure of a user's code is data: attributed, and the row is neutral
        why = f"row {row} raised {in_words(error)} {_line(error)} on {_short(completion)}"
        return Verdict(Outcome.INFRASTRUCTURE, None, why=why)


def _line(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f"({frames[-1].filename}:{frames[-1].lineno})" if frames else ""


def _short(completion: Completion) -> str:
    text = repr(completion)
    return text if len(text) <= 100 else text[:97] + "..."


def run_awaitable(awaitable: Awaitable[Any]) -> Any:
    """Run an async reward to its end, in a thread of its own where a loop already runs."""

    async def finish() -> Any:
        return await awaitable

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(finish())
    box: list[Any] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            box.append(asyncio.run(finish()))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return box[0]


class _Logs:
    """Holds back what a component logs, so that a batch which raised half-way leaves no half columns."""

    def __init__(self, keywords: Mapping[str, Any], rows: int) -> None:
        self._given = keywords
        self._rows = rows
        self._columns: dict[str, list[Any]] = {}
        self._metrics: list[tuple[str, float]] = []
        self._row: int | None = None

    @property
    def keywords(self) -> dict[str, Any]:
        """The trainer's keywords with our own ``log_extra`` and ``log_metric`` in place of its."""
        ours: dict[str, Callable[..., None]] = {"log_extra": self._extra, "log_metric": self._metric}
        return {key: ours.get(key, value) for key, value in self._given.items() if value is not None}

    def restart(self) -> None:
        """Forget what the failed batch logged."""
        self._columns.clear()
        self._metrics.clear()

    def row(self, row: int) -> _Row:
        """Return the keywords of one row, as a context in which its logs go to that row."""
        return _Row(self, row)

    def of_row(self, row: int) -> dict[str, Any]:
        """Return the keywords of one row: every list of one entry a completion is cut to it."""
        self._row = row
        return {
            key: [value[row]] if self._is_per_row(key, value) else value
            for key, value in self.keywords.items()
        }

    def end_row(self) -> None:
        """Leave the row."""
        self._row = None

    def flush(self) -> None:
        """Hand everything to the trainer."""
        if (log_extra := self._given.get("log_extra")) is not None:
            for name, values in self._columns.items():
                log_extra(name, values)
        if (log_metric := self._given.get("log_metric")) is not None:
            for name, value in self._metrics:
                log_metric(name, value)

    def _is_per_row(self, key: str, value: Any) -> bool:
        listed = isinstance(value, Sequence) and not isinstance(value, str | bytes)
        return (listed or key in PER_ROW_KEYWORDS) and len(value) == self._rows

    def _extra(self, name: str, values: list[Any]) -> None:
        if self._row is None:
            self._columns.setdefault(name, []).extend(values)
            return
        column = self._columns.setdefault(name, [None] * self._rows)
        column[self._row] = values[0] if values else None

    def _metric(self, name: str, value: float) -> None:
        self._metrics.append((name, value))


class _Row:
    def __init__(self, logs: _Logs, row: int) -> None:
        self._logs = logs
        self._number = row

    def __enter__(self) -> dict[str, Any]:
        return self._logs.of_row(self._number)

    def __exit__(self, *_: object) -> None:
        self._logs.end_row()
