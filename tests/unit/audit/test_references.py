import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr.audit.references import (
    answer_text,
    changed_json,
    equivalents,
    kind_of,
    last_box,
    looks_like_tests,
    near_misses,
    number_of,
    read_golds,
    wrong_answers,
)
from rlvr.audit.rows import AuditRow


def golds(*values, column="answer"):
    return read_golds([AuditRow(n, "q", {column: value}) for n, value in enumerate(values)], column)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("42", "number"),
        ("-3.5", "number"),
        ("1,234", "number"),
        ("$12.50", "number"),
        ("1/2", "fraction"),
        ("\\frac{1}{2}", "fraction"),
        ("B", "choice"),
        ("(C)", "choice"),
        ("yes", "boolean"),
        (True, "boolean"),
        ('{"a": 1}', "json"),
        ({"a": 1}, "json"),
        ("x^2+1", "latex"),
        ("Paris", "text"),
        (["a", "b"], "list"),
    ],
)
def test_kinds(value, kind):
    assert kind_of(value, answer_text(value)) == kind


def test_final_answers_are_taken_out_of_solutions():
    assert answer_text("6 * 7 = 42\n#### 42") == "42"
    assert answer_text("so \\boxed{\\frac{1}{2}} it is") == "\\frac{1}{2}"
    assert answer_text("<think>x</think><answer> 9 </answer>") == "9"
    assert last_box("\\boxed{1} and \\boxed{") == ""


@given(st.integers(-(10**6), 10**6))
def test_numbers_keep_their_value_and_variants_mean_what_they_say(number):
    gold = golds(str(number), "5", "7")[0]
    assert number_of(gold.text) == number
    for text, _, _ in equivalents(gold):
        assert number_of(text) == number, text
    for text, _, _ in near_misses(gold):
        assert number_of(text) != number, text
    for text in wrong_answers("number", gold.text, [gold.text], number):
        assert number_of(text) != number


@given(st.integers(-50, 50), st.integers(1, 60))
def test_fraction_variants_keep_the_value(top, bottom):
    text = f"{top}/{bottom}"
    gold = golds(text, "1/3")[0]
    for other, _, _ in equivalents(gold):
        assert number_of(other) == Fraction(top, bottom), other


@given(st.dictionaries(st.text(max_size=5), st.integers() | st.booleans() | st.text(max_size=5), min_size=1))
def test_a_changed_object_has_the_same_keys_and_no_equal_leaf(value):
    changed = changed_json(value)
    assert changed.keys() == value.keys()
    assert all(changed[key] != value[key] or value[key] == "zanzibar" for key in value)


def test_wrong_answers_never_accept_an_alias():
    gold = golds(["Paris", "City of Light"], ["Oslo"])[0]
    assert all("Paris" not in text and "Light" not in text for text in gold.wrong)


@pytest.mark.parametrize(
    "value",
    [
        ["assert f(1) == 2"],
        "def check(candidate):\n    assert candidate(1) == 2",
        [{"input": [1], "expected": 2}],
        {"inputs": ["1"], "outputs": ["2"]},
        json.dumps({"inputs": ["1"], "outputs": ["2"]}),
    ],
)
def test_tests_of_programs_are_recognised(value):
    assert looks_like_tests(value)


@pytest.mark.parametrize("value", ["42", ["a", "b"], {"name": "Ana"}, None, "Assert nothing."])
def test_answers_are_no_tests(value):
    assert not looks_like_tests(value)
