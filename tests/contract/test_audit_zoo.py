"""The audit on its own zoo: planted defects are named, sound rewards raise no alarm."""

import pytest

from rlvr.audit.selftest import run_selftest
from rlvr.audit.zoo.datasets import DATASETS
from rlvr.audit.zoo.index import ZOO
from rlvr.records.audit import CATEGORIES

QUICK = {
    "any_box",
    "ascii_folded",
    "cached",
    "digits_only",
    "jitter",
    "hollow_tags",
    "message_count",
    "form_costs",
    "compiles",
    "one_for_all",
    "raises",
    "tagged_exact",
    "answer_and_form",
    "extracted_record",
    "overlong",
    "fraction_value",
}


def test_the_zoo_is_large_enough_and_names_known_categories():
    assert len({(one.module, one.function) for one in ZOO if not one.is_sound}) >= 40
    assert len({(one.module, one.function) for one in ZOO if one.is_sound}) >= 20
    known = {name for group in CATEGORIES.values() for name in group}
    assert all(set(one.categories) <= known and one.rows in DATASETS for one in ZOO)
    assert all(one.path.is_file() for one in ZOO)


@pytest.mark.parametrize("name", sorted(QUICK))
def test_some_specimens(name):
    outcome = run_selftest([one for one in ZOO if one.function == name][:1]).outcomes[0]
    if outcome.specimen.is_sound:
        assert not outcome.alarms
        assert outcome.audit.findings == [
            one for one in outcome.audit.findings if one.severity in ("info", "low")
        ]
    else:
        assert outcome.found, [one.category for one in outcome.audit.findings]


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_whole_zoo():
    result = run_selftest()
    assert result.recall >= 0.95, result.table()
    assert not [one for one in result.sound if one.alarms], result.table()
