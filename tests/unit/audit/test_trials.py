import pytest

from rlvr.audit.profile import Levels
from rlvr.audit.trials import Trial, outcome

LEVELS = Levels(right=1.2, wrong=0.2, prose=0.0)


def trial(**fields):
    return Trial("near_miss", "a", 0, "text", "why", "fix", **fields)


@pytest.mark.parametrize(
    ("score", "control", "expected"),
    [
        (1.2, None, "worked"),
        (1.0, None, "partly"),
        (0.3, None, "held"),
        (1.0, 0.0, "worked"),
        (1.0, 0.8, "partly"),
        (None, None, "held"),
    ],
)
def test_a_completion_that_must_be_refused(score, control, expected):
    assert outcome(trial(), LEVELS, score, control) == expected


@pytest.mark.parametrize(("score", "expected"), [(0.2, "worked"), (1.2, "held"), (0.9, "partly")])
def test_a_completion_that_must_be_paid(score, expected):
    assert outcome(trial(expect="paid"), LEVELS, score, None) == expected


def test_nothing_is_concluded_where_right_and_wrong_are_paid_alike():
    assert outcome(trial(), Levels(1.0, 1.0, 1.0), 1.0, None) == "held"
