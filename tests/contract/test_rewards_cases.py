"""Cases of mixed kinds: what a sound verifier accepts, each with the public trait behind it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from rlvr.rewards.cases import KINDS, Case, judge_cases, read_cases

DATA = Path(__file__).parent / "data"
SHARED, OWN = DATA / "reward_cases.jsonl", DATA / "reward_cases_own.jsonl"


@pytest.fixture(scope="module")
def judged() -> dict[str, tuple[Case, bool, float | None]]:
    cases = [*read_cases(SHARED), *read_cases(OWN)]
    verdicts = judge_cases(cases)
    return {
        case.id: (case, verdict.accepted, verdict.score)
        for case, verdict in zip(cases, verdicts, strict=True)
    }


@pytest.mark.parametrize("path", [SHARED, OWN], ids=["shared", "own"])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_case_comes_out_as_expected(kind: str, path: Path, judged: dict) -> None:
    cases = [case for case in read_cases(path) if case.kind == kind]
    assert cases
    wrong = [
        f"{case.id} expected {'accepted' if case.expected else 'refused'}: {case.why}"
        for case in cases
        if judged[case.id][1] is not case.expected
    ]
    assert not wrong, "\n".join(wrong)


def test_no_refused_case_is_paid(judged: dict) -> None:
    paid = [
        case.id
        for case, accepted, score in judged.values()
        if not accepted and score is not None and score > 0
    ]
    assert not paid


def test_own_cases_are_as_many_as_the_shared_ones_of_each_kind_and_have_their_own_names() -> None:
    shared, own = read_cases(SHARED), read_cases(OWN)
    counts = Counter(case.kind for case in shared), Counter(case.kind for case in own)
    assert all(counts[1][kind] >= counts[0][kind] for kind in counts[0])
    names = [case.id for case in [*shared, *own]]
    assert len(names) == len(set(names))


def test_every_case_keeps_its_source() -> None:
    for path in (SHARED, OWN):
        for line in path.read_text(encoding="utf-8").splitlines():
            assert json.loads(line)["source"]


def test_chat_completions_are_judged_like_strings(judged: dict) -> None:
    cases = [
        case
        for case in read_cases(SHARED)
        if case.kind in ("math", "gsm8k", "answer_tag", "format", "json_schema")
    ]
    chats = [
        Case(case.id, case.kind, [{"role": "assistant", "content": case.completion}], case.reference)
        for case in cases
    ]
    for case, verdict in zip(cases, judge_cases(chats), strict=True):
        assert verdict.accepted is judged[case.id][1], case.id
