"""Files of reward cases, judged by the built-in rewards: one object a line, ``{id, kind, completion, reference}``.

Kinds and what their reference holds: ``math``, ``gsm8k`` (gold text), ``answer_tag`` (text), ``format`` (layout and
options), ``json_schema`` (schema and options), ``tool_call`` (the call), ``code_stdio``, ``code_call`` (tests),
``judge`` (rubric), ``length_wrapper`` (a base reward and lengths).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlvr.errors import DataError, UsageError, did_you_mean
from rlvr.rewards.contract import Outcome, Verdict, Verifier
from rlvr.rewards.exact import Exact
from rlvr.rewards.json_schema import JsonSchema
from rlvr.rewards.judge import Judge
from rlvr.rewards.length import Length
from rlvr.rewards.math import Math
from rlvr.rewards.tags import Tags
from rlvr.rewards.tool_call import ToolCall
from rlvr.rewards.unit_tests import UnitTests


@dataclass(frozen=True, slots=True)
class Case:
    """One line of a file of cases.

    Attributes:
        id: Its name in the output.
        kind: See the module.
        completion: What a model wrote: a string, or chat messages.
        reference: What it is judged against.
        expected: Whether a sound verifier accepts it; None where the file does not say.
        why: The trait it shows.
        line: Line number in its file.
    """

    id: str
    kind: str
    completion: Any
    reference: Any
    expected: bool | None = None
    why: str = ""
    line: int = 0


def read_cases(path: Path) -> list[Case]:
    """Read a file of cases.

    Raises:
        UsageError: ``cases.line`` with the line that cannot be read, ``cases.kind`` for an unknown kind.
    """
    cases = []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        if line.strip():
            cases.append(_case(path, number, line))
    return cases


def _case(path: Path, number: int, line: str) -> Case:
    where = f"{path}:{number}"
    try:
        value = json.loads(line)
    except ValueError as error:
        raise UsageError(
            "cases.line", f"no JSON: {error}", where=where, expected="one JSON object a line"
        ) from error
    missing = [
        key for key in ("id", "kind", "completion") if not isinstance(value, Mapping) or key not in value
    ]
    if missing:
        raise UsageError(
            "cases.line",
            f"{missing[0]!r} is missing",
            where=where,
            expected="id, kind, completion, reference",
        )
    if value["kind"] not in KINDS:
        raise UsageError(
            "cases.kind",
            f"no kind {value['kind']!r}",
            where=where,
            expected=f"one of {', '.join(KINDS)}",
            fix=did_you_mean(str(value["kind"]), KINDS),
        )
    return Case(
        str(value["id"]),
        value["kind"],
        value["completion"],
        value.get("reference"),
        value.get("expected"),
        str(value.get("why", "")),
        number,
    )


def judge_cases(cases: Sequence[Case]) -> list[Verdict]:
    """Judge cases of mixed kinds, in order; those of one reward together."""
    groups: dict[tuple[str, str], list[int]] = {}
    jobs = [_job(case) for case in cases]
    for place, (verifier, _) in enumerate(jobs):
        groups.setdefault((verifier.__name__, repr(verifier)), []).append(place)
    found: dict[int, Verdict] = {}
    for places in groups.values():
        verifier = jobs[places[0]][0]
        verdicts = _judge_group(
            verifier, [cases[place].completion for place in places], [jobs[place][1] for place in places]
        )
        found.update(zip(places, verdicts, strict=True))
    return [found[place] for place in range(len(cases))]


def _job(case: Case) -> tuple[Verifier, dict[str, Any]]:
    """Return the reward of one case and the columns that it reads."""
    try:
        return KINDS[case.kind](case.reference)
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise UsageError(
            "cases.reference",
            f"the reference of {case.id} cannot be used: {type(error).__name__}: {error}",
            where=f"line {case.line}",
            expected=f"a reference of kind {case.kind}",
        ) from error


def _judge_group(
    verifier: Verifier, completions: Sequence[Any], columns: Sequence[dict[str, Any]]
) -> list[Verdict]:
    """Judge all at once; where a reference is no gold, one by one, so that only its own case is lost."""
    together = {key: [one[key] for one in columns] for key in columns[0]}
    try:
        return verifier.verdicts(completions, **together)
    except DataError as error:
        if len(completions) == 1:
            return [Verdict(Outcome.INFRASTRUCTURE, None, None, f"the reference is no gold: {error.found}")]
    return [
        _judge_group(verifier, [completion], [one])[0]
        for completion, one in zip(completions, columns, strict=True)
    ]


def _plain(verifier: Verifier) -> Callable[[Any], tuple[Verifier, dict[str, Any]]]:
    return lambda reference: (verifier, {"answer": reference})


def _format(reference: Mapping[str, Any]) -> tuple[Verifier, dict[str, Any]]:
    name = str(reference.get("format") or reference.get("layout") or "think_answer")
    layout = name if " " in name else name.replace("_", " ")
    minimum = {
        block: int(reference[f"min_{block}_chars"])
        for block in layout.split()
        if f"min_{block}_chars" in reference
    }
    verifier = Tags(
        layout=layout,
        minimum=minimum,
        strict_start=bool(reference.get("strict_start", False)),
        strict_end=bool(reference.get("strict_end", False)),
        think_prefilled=bool(reference.get("think_prefilled", False)),
    )
    return verifier, {}


def _json_schema(reference: Mapping[str, Any]) -> tuple[Verifier, dict[str, Any]]:
    verifier = JsonSchema(
        strict=bool(reference.get("strict", False)),
        assert_format=bool(reference.get("assert_format", False)),
        reject_duplicates=bool(reference.get("reject_duplicates", True)),
    )
    return verifier, {"answer": reference["schema"]}


def _length(reference: Mapping[str, Any]) -> tuple[Verifier, dict[str, Any]]:
    cache = reference.get("soft_cache")
    verifier = Length(
        base=Given(),
        max_length=int(reference["max_len"]),
        cache=int(cache or 0),
        form="cosine" if cache is None else "overlong",
    )
    return verifier, {"base_reward": reference["base_reward"], "completion_ids": int(reference["n_tokens"])}


class Given(Verifier):
    """A reward whose score is given: the base of the length cases."""

    reference_column = "base_reward"

    def verdict(self, completion: str, reference: Any) -> Verdict:
        """Return the given score; the full one is right."""
        if reference is None:
            return Verdict(
                Outcome.NOT_APPLICABLE, None, completion, "the base reward does not judge this row"
            )
        outcome = Outcome.RIGHT if reference >= 1.0 else Outcome.WRONG
        return Verdict(outcome, float(reference), completion, f"the base reward paid {reference}")

    def __repr__(self) -> str:
        return "Given()"


KINDS: dict[str, Callable[[Any], tuple[Verifier, dict[str, Any]]]] = {
    "math": _plain(Math()),
    "gsm8k": _plain(Math()),
    "answer_tag": _plain(Exact()),
    "format": _format,
    "json_schema": _json_schema,
    "tool_call": _plain(ToolCall()),
    "code_stdio": _plain(UnitTests()),
    "code_call": _plain(UnitTests()),
    "judge": _plain(Judge()),
    "length_wrapper": _length,
}
"""Kind of case to the reward and the columns that judge it."""
