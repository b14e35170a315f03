import pickle

import pytest

from rlvr.errors import ConfigError, DataError, GateRefused, InfrastructureError, RlvrError, did_you_mean


def test_message_says_where_what_expected_and_what_to_do():
    error = DataError("data.empty", "no rows", where="a.jsonl", expected="one prompt", fix="add rows")
    assert error.message() == "a.jsonl: no rows\nexpected: one prompt\ndo: add rows"


@pytest.mark.parametrize(
    ("kind", "code"), [(ConfigError, 2), (DataError, 2), (GateRefused, 3), (InfrastructureError, 4)]
)
def test_exit_codes(kind: type[RlvrError], code: int):
    assert kind.exit_code == code


def test_errors_cross_process_boundaries():
    error = GateRefused("gate.closed", "audit is stale", where="gates", fix="rlvr audit")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is GateRefused
    assert again.as_dict() == error.as_dict()


def test_did_you_mean_names_the_nearest():
    assert did_you_mean("wieght", ["weight", "name"]) == "did you mean 'weight'?"
    assert did_you_mean("zzz", ["weight"]) == ""
