"""Sampling once and keeping: a probe that dies goes on without drawing anything twice."""

import pytest

from rlvr.errors import InfrastructureError
from rlvr.generate import Generated
from rlvr.probe.sample import LOOK_EVERY, Plan, chunks, key_of, sample_rows
from rlvr.records.samples import Message, Sample
from rlvr.task.dataset import make_row
from rlvr.workspace import read_lines

ROWS = [
    make_row(place, [Message(role="user", content=f"q{place}")], False, {"answer": place})
    for place in range(20)
]
PLAN = Plan(1.0, "training", 4, 16, "Be brief.", seed=3)


class Counting:
    """A generator that counts what it is asked, and dies when told to."""

    name, has_chat_template, context, batch_size = "counting", True, None, 12

    def __init__(self, dies_after=None):
        self.asked, self.dies_after = [], dies_after

    def generate(self, prompts, *, count, temperature, max_tokens, seed, progress=None):
        if self.dies_after is not None and len(self.asked) >= self.dies_after:
            raise InfrastructureError("generate.died", "the backend died")
        self.asked.append([prompt[-1].content for prompt in prompts])
        assert all(prompt[0].content == "Be brief." for prompt in prompts)
        return [
            [Generated(f"{prompt[-1].content}/{index}/{seed}", 3, False) for index in range(count)]
            for prompt in prompts
        ]


def draw(path, generator, rows=ROWS, plan=PLAN, **options):
    done = {key_of(one): one for one in read_lines(path, Sample)}
    return sample_rows(rows, plan, generator, path, done, **options)


def test_a_generator_that_dies_half_way_loses_nothing(tmp_path):
    path = tmp_path / "completions.jsonl"
    with pytest.raises(InfrastructureError):
        draw(path, Counting(dies_after=3))
    kept = read_lines(path, Sample)
    assert len(kept) == 3 * 12
    again = Counting()
    found = draw(path, again)
    assert len(found) == 80
    assert sum(len(one) for one in again.asked) == 20 - 9
    assert read_lines(path, Sample)[:36] == kept
    whole = tmp_path / "whole.jsonl"
    assert [one.completion_id for one in draw(whole, Counting())] == [one.completion_id for one in found]
    idle = Counting()
    assert draw(path, idle) == found
    assert idle.asked == []


@pytest.mark.parametrize("bytes_kept", [0, 1, 300, 700, 5000, 5001])
def test_a_torn_file_is_completed(tmp_path, bytes_kept):
    whole, torn = tmp_path / "whole.jsonl", tmp_path / "torn.jsonl"
    expected = draw(whole, Counting())
    torn.write_bytes(whole.read_bytes()[:bytes_kept])
    assert draw(torn, Counting()) == expected
    keys = [key_of(one) for one in read_lines(torn, Sample)]
    assert len(keys) == len(set(keys)) == 80


def test_a_changed_row_alone_is_sampled_again(tmp_path):
    path = tmp_path / "completions.jsonl"
    draw(path, Counting())
    changed = [
        make_row(5, ROWS[5].prompt, False, {"answer": "other"}) if row.index == 5 else row for row in ROWS
    ]
    again = Counting()
    found = draw(path, again, changed)
    assert again.asked == [["q3", "q4", "q5"]]
    assert len(read_lines(path, Sample)) == 84
    assert {one.columns["answer"] for one in found if one.row == 5} == {"other"}


def test_a_later_round_starts_where_the_earlier_one_ended(tmp_path):
    path = tmp_path / "completions.jsonl"
    draw(path, Counting())
    later = draw(path, Counting(), plan=Plan(1.0, "training", 4, 16, "Be brief.", seed=3, first=4))
    assert {one.index for one in later} == {4, 5, 6, 7}
    assert not {one.text for one in later} & {one.text for one in draw(path, Counting())}


def test_looking_stops_early(tmp_path):
    rows = [make_row(place, [Message(role="user", content=f"q{place}")], False, {}) for place in range(200)]
    plan = Plan(0.2, "low", 1, 16, "Be brief.", seed=3)
    wide = Counting()
    wide.batch_size = 1000
    assert len(draw(tmp_path / "a.jsonl", wide, rows, plan, enough=lambda: True)) == LOOK_EVERY
    seen = []
    draw(tmp_path / "b.jsonl", Counting(), rows, plan, progress=seen.append, enough=lambda: sum(seen) >= 100)
    assert sum(seen) == 108


def test_chunks_depend_on_data_and_budget_alone():
    assert [len(one) for one in chunks(ROWS, 12, 4)] == [3] * 6 + [2]
    assert [len(one) for one in chunks(ROWS, 2, 4)] == [1] * 20
