import json

from rlvr.audit.forms import best_forms, candidate_forms, distinct
from rlvr.audit.source import read_source


def forms(tmp_path, text):
    path = tmp_path / "r.py"
    path.write_text(text)
    return candidate_forms(read_source(path, "reward"))


def test_marks_of_the_source_give_forms(tmp_path):
    found = forms(
        tmp_path, 'def reward(completions):\n    return [c.split("<solution>")[1] for c in completions]\n'
    )
    assert any("<solution>7</solution>" in form("7") for form in found)


def test_keys_of_a_parsed_object_give_json_forms(tmp_path):
    text = (
        'import json\ndef reward(completions):\n    return [json.loads(c)["verdict"] for c in completions]\n'
    )
    written = [form("7") for form in forms(tmp_path, text)]
    assert any(one.startswith("{") and json.loads(one) == {"verdict": 7} for one in written)


def test_a_phrase_gives_a_form(tmp_path):
    text = 'def reward(completions):\n    return [c.split("My final result:")[-1] for c in completions]\n'
    assert any("My final result: 7" in form("7") for form in forms(tmp_path, text))


def test_hinted_forms_win_over_plainer_ones_that_are_paid_alike(tmp_path):
    text = 'def reward(completions):\n    return [c.split("####")[1] for c in completions]\n'
    best = best_forms((form, 1.0) for form in forms(tmp_path, text))[0]
    assert "#### 7" in best("7")


def test_forms_that_write_the_same_text_are_tried_once(tmp_path):
    found = forms(tmp_path, "def reward(completions):\n    return completions\n")
    assert len(distinct([*found, *found])) == len(distinct(found))


def test_a_long_text_gets_into_every_form(tmp_path):
    for form in forms(tmp_path, "def reward(completions):\n    return completions\n"):
        if "@R" in form("@A", "@R") or form("@A") == "@A":
            assert "many words" in form.after("7", "many words")
