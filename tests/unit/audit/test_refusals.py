"""What the audit advises where an equal answer is refused."""

from rlvr.audit.attacks.refusals import equivalent_trials
from rlvr.audit.forms import Form, candidate_forms
from rlvr.audit.profile import Profile
from rlvr.audit.references import read_golds
from rlvr.audit.rows import AuditRow
from rlvr.audit.source import Source


def fixes(*answers):
    rows = [AuditRow(place, "q", {"answer": answer}) for place, answer in enumerate(answers)]
    form: Form = candidate_forms(Source())[0]
    profile = Profile("correctness", "answer", read_golds(rows, "answer"), Source(), forms=[form])
    profile.answers = dict(enumerate(answers))
    return {trial.fix for trial in equivalent_trials(profile, range(len(rows)))}


def test_zeros_are_left_alone_where_references_begin_with_them():
    (advice,) = fixes("1336", "0224")
    assert "zeros are part of the answer" in advice


def test_values_are_compared_where_no_reference_is_a_code():
    (advice,) = fixes("1336", "12.50")
    assert "trailing zeros" in advice
