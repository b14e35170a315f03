"""How a row becomes what the model reads."""

import pytest

from rlvr.errors import DataError
from rlvr.records.samples import Message
from rlvr.task.dataset import make_row
from rlvr.task.prompt import Length, distinct, for_trainer, require_room, require_template, with_system

USER = [Message(role="user", content="Hi")]


def test_the_system_prompt_stands_in_front_unless_the_data_brings_one():
    assert [one.role for one in with_system(USER, "Be brief.")] == ["system", "user"]
    own = [Message(role="system", content="Mine"), *USER]
    assert with_system(own, "Be brief.") == own
    assert with_system(USER, None) == USER


def test_training_is_given_what_the_probe_sampled_from():
    assert for_trainer(USER, False, True) == [{"role": "user", "content": "Hi"}]
    assert for_trainer(with_system(USER, "Be brief."), False, False) == "Be brief.\n\nHi"
    with pytest.raises(DataError) as caught:
        for_trainer(USER, True, False)
    assert caught.value.code == "data.no-chat-template"


def test_chat_prompts_need_a_template():
    rows = [make_row(0, USER, False, {}), make_row(1, USER, True, {})]
    require_template(rows, True, "m")
    require_template(rows[:1], False, "m")
    with pytest.raises(DataError, match="row 1"):
        require_template(rows, False, "m")


def test_prompts_that_leave_no_room_are_named():
    lengths = [Length(0, 100), Length(1, 90), Length(7, 10)]
    require_room(lengths, 28, 128, "m")
    require_room(lengths, 1000, None, "m")
    with pytest.raises(DataError, match=r"2 of 3 prompts do not fit \(rows 0, 1\)") as caught:
        require_room(lengths, 40, 128, "m")
    assert "at most 28" in caught.value.fix
    with pytest.raises(DataError, match="alone exceed"):
        require_room([Length(0, 200)], 1, 128, "m")


def test_duplicates_are_left_out_once():
    rows = [make_row(place, USER, False, {"answer": place}) for place in range(3)]
    kept, left_out = distinct([*rows, make_row(3, [Message(role="user", content="Bye")], False, {})])
    assert [row.index for row in kept] == [0, 3]
    assert left_out == 2
