"""Admission: every route, from the configuration and from the data."""

import pytest

from rlvr.config.schema import Reward, Routing
from rlvr.records.samples import Message
from rlvr.task.admit import admit
from rlvr.task.dataset import make_row


def rows(count=40, **columns):
    return [
        make_row(place, [Message(role="user", content=f"q{place}")], False, columns or {"answer": str(place)})
        for place in range(count)
    ]


EXACT = [Reward(use="exact")]


@pytest.mark.parametrize("signal", ["unit_tests", "answer", "json_schema", "tool_call", "parser", "grader"])
def test_verifiable_signals_are_admitted(signal):
    found = admit(signal, [Reward(use="reward.py:f")], rows())
    assert found.passed
    assert not found.refusals
    assert not found.remarks
    assert signal in found.why


@pytest.mark.parametrize(
    ("signal", "route"),
    [
        ("preference", "preference-optimization (DPO)"),
        ("demonstration", "lora-qlora-recipes (SFT)"),
        ("judgement", "eval-harness-first"),
    ],
)
def test_the_others_are_sent_where_they_belong(signal, route):
    found = admit(signal, EXACT, rows())
    assert not found.passed
    assert [one.route for one in found.refusals] == [route]
    assert route in found.why
    assert found.refusals[0].why


def test_preference_columns_say_so_whatever_the_configuration_says():
    found = admit("answer", EXACT, rows(chosen="a", rejected="b"))
    assert [one.code for one in found.refusals] == ["admit.preference"]


def test_demonstrations_alone_are_imitated_not_trained():
    found = admit("answer", EXACT, rows(completion="A long answer."))
    assert [one.code for one in found.refusals] == ["admit.demonstration"]
    own = admit("answer", [Reward(use="exact", arguments={"reference": "completion"})], rows(completion="7"))
    assert own.passed


@pytest.mark.parametrize(
    ("calibration", "needle"),
    [
        (None, "no calibration record"),
        ({"agreement": 0.9}, "lacks"),
        ({"agreement": 0.9, "labels": 12}, "12 human labels"),
        ({"agreement": 0.7, "labels": 100}, "70%"),
    ],
)
def test_a_judge_alone_needs_calibration(calibration, needle):
    found = admit("grader", [Reward(use="judge"), Reward(use="tags")], rows(), calibration=calibration)
    assert [one.route for one in found.refusals] == ["eval-harness-first"]
    assert needle in found.refusals[0].found


def test_a_calibrated_judge_is_admitted_and_one_beside_a_verifier_too():
    assert admit("grader", [Reward(use="judge")], rows(), calibration={"agreement": 0.9, "labels": 60}).passed
    assert admit("grader", [Reward(use="judge"), Reward(use="exact")], rows()).passed


def test_routing_must_fit_what_stands_here():
    ok = Routing(method="grpo", signal="answer", by="finetuning-method-selection")
    assert admit("answer", EXACT, rows(), routing=ok).routing["by"] == "finetuning-method-selection"
    bad = admit("answer", EXACT, rows(), routing=Routing(method="sft", signal="grader"))
    assert len(bad.refusals) == 2
    assert {one.code for one in bad.refusals} == {"admit.routing"}


def test_remarks_refuse_nothing():
    data = rows(10)
    again = [make_row(10, data[0].prompt, False, {"answer": "other"})]
    found = admit("unit_tests", EXACT, [*data, *again], held_out=data[:3], has_vision_tower=True)
    assert found.passed
    assert found.overlap == 3
    assert found.distinct_prompts == 10
    text = " ".join(found.remarks)
    for needle in (
        "3 prompts stand in training and held-out",
        "1 rows repeat",
        "several different references",
        "only 10",
        "vision tower",
        "no reward is unit_tests",
    ):
        assert needle in text
