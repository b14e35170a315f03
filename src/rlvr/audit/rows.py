"""The user's rows as the audit sees them: prompt, columns, and which column holds the reference."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlvr.audit.runner import Facts
from rlvr.audit.source import Source
from rlvr.errors import DataError
from rlvr.rewards.contract import TRAINER_KEYWORDS

PROMPT_NAMES = (
    "prompt",
    "prompts",
    "question",
    "problem",
    "instruction",
    "query",
    "messages",
    "input",
    "text",
)
REFERENCE_NAMES = (
    "answer",
    "answers",
    "solution",
    "ground_truth",
    "gold",
    "gold_answer",
    "final_answer",
    "reference",
    "reference_answer",
    "target",
    "targets",
    "label",
    "labels",
    "expected",
    "expected_answer",
    "expected_output",
    "correct_answer",
    "correct",
    "truth",
    "tests",
    "test_cases",
    "test_list",
    "testcases",
    "test",
    "unit_tests",
    "assertions",
    "asserts",
    "input_output",
    "outputs",
    "output",
    "schema",
    "json_schema",
    "expected_json",
    "keywords",
    "result",
    "answer_key",
    "choice",
    "value",
    "sql",
    "entities",
)
TEST_NAMES = frozenset(
    {"tests", "test_cases", "test_list", "testcases", "test", "unit_tests", "assertions", "asserts"}
) | {"input_output", "hidden_tests", "public_tests", "checks", "cases", "examples", "io", "test_code"}
SOLUTION_NAMES = ("canonical_solution", "solution", "reference_solution", "code", "program", "answer")


@dataclass(frozen=True)
class AuditRow:
    """One row of the data.

    Attributes:
        index: Position in the data.
        prompt: As the trainer passes it: a string or a list of messages.
        columns: The other columns.
    """

    index: int
    prompt: Any
    columns: Mapping[str, Any]

    @property
    def is_chat(self) -> bool:
        """Whether the prompt is a list of messages, so that completions are too."""
        return isinstance(self.prompt, list)

    @property
    def prompt_text(self) -> str:
        """The prompt's text; messages joined by a line break."""
        if isinstance(self.prompt, str):
            return self.prompt
        return "\n".join(str(one.get("content") or "") for one in self.prompt if isinstance(one, Mapping))

    @property
    def question(self) -> str:
        """The last message of the user, or the whole prompt."""
        if isinstance(self.prompt, str):
            return self.prompt
        asked = [one for one in self.prompt if isinstance(one, Mapping) and one.get("role") == "user"]
        return str(asked[-1].get("content") or "") if asked else self.prompt_text


def as_rows(raw: Iterable[Mapping[str, Any]], where: str) -> list[AuditRow]:
    """Return plain dictionaries as rows.

    Raises:
        DataError: ``data.empty`` without a row, ``data.no-prompt`` when no column looks like a prompt.
    """
    rows = []
    for index, values in enumerate(raw):
        name = next((one for one in PROMPT_NAMES if values.get(one) not in (None, "", [])), None)
        if name is None:
            raise DataError(
                "data.no-prompt",
                f"row {index} has the columns {sorted(values) or 'none'}",
                where=where,
                expected="a column prompt: a string or a list of chat messages",
                fix='write {"prompt": "…", "answer": "…"} a line',
            )
        columns = {key: value for key, value in values.items() if key != name or name not in PROMPT_NAMES[:2]}
        rows.append(AuditRow(index, values[name], columns))
    if not rows:
        raise DataError("data.empty", "no rows", where=where, expected="at least one row, better ten")
    return rows


def columns_of(rows: Sequence[AuditRow]) -> list[str]:
    """Return the names of all columns, in the order of the first row."""
    return list(dict.fromkeys(name for row in rows for name in row.columns))


def used_columns(facts: Facts, source: Source, columns: Sequence[str]) -> list[str]:
    """Return the columns of the data that the reward reads, by its signature and source."""
    named = [name for name in facts.names if name in columns]
    read = [key for key in source.keys if key in columns and key not in named]
    return named + read


def reference_column(used: Sequence[str], rows: Sequence[AuditRow]) -> str:
    """Return the column that holds the reference, among those that the reward reads; empty when there is none."""
    filled = [name for name in used if any(row.columns.get(name) not in (None, "") for row in rows)]
    known = [name for name in REFERENCE_NAMES if name in filled]
    tests = [name for name in known if name in TEST_NAMES]
    if tests:
        return tests[0]
    if known:
        return known[0]
    others = [
        name for name in filled if name not in PROMPT_NAMES and name not in ("difficulty", "level", "id")
    ]
    return others[0] if others else ""


def missing_columns(facts: Facts, columns: Sequence[str]) -> list[str]:
    """Return the parameters without a default that neither the trainer nor a column fills."""
    return [name for name in facts.required if name not in columns and name not in TRAINER_KEYWORDS]
