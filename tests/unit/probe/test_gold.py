"""References as completions, and completions that hold the reference."""

import pytest

from rlvr.probe.gold import gold_forms, holds_reference, references_in


def test_the_usual_forms_of_a_reference():
    forms = gold_forms("42")
    assert "<answer>42</answer>" in forms
    assert "\\boxed{42}" in forms
    assert "42" in forms
    assert gold_forms("Because 6 * 7.\n#### 42")[0] == "42"
    assert gold_forms({"a": 1})[0] == '{"a": 1}'


@pytest.mark.parametrize(
    ("text", "reference", "holds"),
    [
        ("<answer> 42 </answer>", "42", True),
        ("<answer>41</answer> or <answer>42</answer>", "42", True),
        ("<answer>42</answer> or <answer>41</answer>", "42", False),
        ("so \\boxed{42}.", "42", True),
        ("#### 42", "6 * 7\n#### 42", True),
        ("The answer is **42**.", "42", True),
        ("42", 42, True),
        ("142", "42", False),
        ("it is not 42 at all", "42", False),
        ("", "", False),
        ("x", None, False),
    ],
)
def test_the_last_answer_decides(text, reference, holds):
    assert holds_reference(text, [] if reference is None else [reference]) is holds


def test_the_rewards_own_column_and_the_usual_one_may_hold_the_reference():
    columns = {"answer": "1", "gold": "2", "mine": "3", "empty": ""}
    assert references_in(columns, ["mine"]) == ["3", "1"]
    assert references_in(columns, ["empty", "answer"]) == ["1"]
    assert references_in({"other": 1}) == []
    assert holds_reference("<answer>1</answer>", ["an entry", "1"])
