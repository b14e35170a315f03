import pytest

from rlvr.errors import DataError, GateRefused
from rlvr.gates import CHAIN, DEPENDS, evaluate, require_passed
from rlvr.records.base import Fingerprints, Record

PARTS = {name: f"{name}-1" for name in Fingerprints.model_fields}
NOW = Fingerprints(**PARTS)


class Reading(Record):
    simulated: bool = False


def passed(**update) -> dict:
    records = {name: Reading(made_from=NOW, passed=True, why="fine") for name in CHAIN}
    return records | update


def states(chain) -> dict[str, str]:
    return {gate.name: gate.state for gate in chain.gates}


def test_all_passed_and_fresh_opens_training():
    chain = evaluate(passed(), NOW)
    assert chain.passed
    assert chain.next == "rlvr train"
    require_passed(chain)


TABLE = {
    "reward": {"audit", "probe", "inspect"},
    "data": {"audit", "probe", "inspect"},
    "model": {"probe", "inspect", "plan"},
    "sampling": {"probe", "inspect"},
    "recipe": {"plan"},
    "lengths": {"plan"},
    "labels": {"inspect"},
    "held_out": set(),
}


@pytest.mark.parametrize("part", sorted(PARTS))
def test_staleness_table(part: str):
    now = NOW.model_copy(update={part: "changed"})
    chain = evaluate(passed(), now, changed_rows=1.0)
    assert {gate.name for gate in chain.gates if gate.state == "stale"} == TABLE[part]
    for gate in chain.gates:
        if gate.state == "stale":
            assert part in gate.why


@pytest.mark.parametrize(
    ("share", "state"), [(0.0, "passed"), (0.1, "passed"), (0.11, "stale"), (1.0, "stale")]
)
def test_inspection_stands_while_at_most_a_tenth_of_the_rows_changed(share: float, state: str):
    now = NOW.model_copy(update={"data": "changed"})
    assert states(evaluate(passed(), now, changed_rows=share))["inspect"] == state


@pytest.mark.parametrize("name", CHAIN)
@pytest.mark.parametrize("state", ["missing", "failed", "stale", "damaged"])
def test_training_is_refused_with_any_gate_closed(name: str, state: str):
    if state == "stale" and not DEPENDS[name]:
        pytest.skip("admission is computed afresh each time")
    closed = {
        "missing": None,
        "failed": Reading(made_from=NOW, passed=False, why="it failed"),
        "stale": Reading(made_from=Fingerprints(**dict.fromkeys(PARTS, "old")), passed=True),
        "damaged": DataError("record.damaged", "torn", where="gates/x.json"),
    }[state]
    chain = evaluate(passed(**{name: closed}), NOW, changed_rows=1.0)
    assert not chain.passed
    assert name in chain.next or name == "admit"
    with pytest.raises(GateRefused) as caught:
        require_passed(chain)
    assert caught.value.exit_code == 3
    assert name in caught.value.found


def test_rescoring_is_the_next_step_after_a_change_of_the_reward_alone():
    now = NOW.model_copy(update={"reward": "changed"})
    records = passed(audit=Reading(made_from=now, passed=True))
    assert evaluate(records, now).next == "rlvr probe --rescore"


def test_a_waiver_opens_a_failed_gate_and_is_shown():
    failed = Reading(made_from=NOW, passed=False, why="saturated")
    chain = evaluate(passed(probe=failed), NOW, waivers={"probe": "we train for format"})
    gate = next(gate for gate in chain.gates if gate.name == "probe")
    assert chain.passed
    assert gate.waived == "we train for format"
    assert "saturated" in gate.why


@pytest.mark.parametrize("record", [None, Reading(made_from=Fingerprints(model="old"), passed=True)])
def test_a_waiver_opens_neither_a_missing_nor_a_stale_gate(record):
    assert not evaluate(passed(probe=record), NOW, waivers={"probe": "we are in a hurry"}).passed


def test_inspection_is_never_waived():
    failed = Reading(made_from=NOW, passed=False, why="two disagreements")
    assert not evaluate(passed(inspect=failed), NOW, waivers={"inspect": "we are in a hurry"}).passed


@pytest.mark.parametrize("is_demo", [True, False])
def test_a_simulated_reader_counts_in_the_demo_alone(is_demo: bool):
    simulated = Reading(made_from=NOW, passed=True, simulated=True)
    assert evaluate(passed(inspect=simulated), NOW, is_demo=is_demo).passed is is_demo


@pytest.mark.parametrize("name", [gate for gate in CHAIN if DEPENDS[gate]])
def test_a_record_without_fingerprints_is_stale(name: str):
    made_by_hand = Reading(made_from=Fingerprints(), passed=True, why="trust me")
    assert states(evaluate(passed(**{name: made_by_hand}), NOW, changed_rows=1.0))[name] == "stale"
