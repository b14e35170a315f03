"""Exact answers: the declared normalisation, the tag that decides, and references that are no gold."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr.errors import DataError, RewardError
from rlvr.rewards.contract import Outcome
from rlvr.rewards.exact import Exact

RIGHT, WRONG, ILL_FORMED = Outcome.RIGHT, Outcome.WRONG, Outcome.ILL_FORMED


@pytest.mark.parametrize(
    ("completion", "reference", "outcome"),
    [
        ("<answer>4</answer>", "4", RIGHT),
        ("<answer>\n 4\t</answer><|im_end|>\n", "4", RIGHT),
        ("<answer>paris</answer>", "Paris", RIGHT),
        ("<answer>The Beatles.</answer>", "Beatles", RIGHT),
        ("<answer>cafe\u0301</answer>", "caf\u00e9", RIGHT),
        ("<answer>I\u00a0am\u200b</answer>", "I am", RIGHT),
        ("<answer>don\u2019t</answer>", "Don't", RIGHT),
        ("<answer>A</answer>", "A", RIGHT),
        ("<answer>A</answer>", "the", WRONG),
        ("<answer>5!</answer>", "5", WRONG),
        ("<answer>Stop!</answer>", "stop", RIGHT),
        ("<answer>p\u0430ris</answer>", "paris", WRONG),  # a Cyrillic letter
        ("<answer>yes no</answer>", "yes", WRONG),
        ("<answer>10</answer>", "1", WRONG),
        ("<answer></answer>", "4", ILL_FORMED),
        ("<answer> \u200b </answer>", "4", ILL_FORMED),
        ("<answer>4", "4", ILL_FORMED),
        ("4</answer>", "4", ILL_FORMED),
        ("4", "4", ILL_FORMED),
        ("", "4", ILL_FORMED),
        ("<answer>4</answer> or rather <answer>", "4", ILL_FORMED),
        ("<answer>3</answer> no, <answer>4</answer>", "4", RIGHT),
        ("<answer>4</answer> no, <answer>3</answer>", "4", WRONG),
        ("<answer>3 <answer>4</answer></answer>", "4", ILL_FORMED),
        ("I reply in <answer> tags. <answer>4</answer>", "4", RIGHT),
        ("<think><answer>4</answer></think>", "4", ILL_FORMED),
        ("<think><answer>4</answer>", "4", ILL_FORMED),
        ("<think>x</think><answer>4</answer>", "4", RIGHT),
        ("<ANSWER>4</ANSWER>", "4", ILL_FORMED),
    ],
)
def test_one_completion(completion: str, reference: str, outcome: Outcome) -> None:
    assert Exact().verdict(completion, reference).outcome is outcome


def test_a_list_of_references_accepts_any_of_them() -> None:
    assert Exact().verdict("<answer>NYC</answer>", ["New York", "NYC"]).accepted
    assert not Exact().verdict("<answer>LA</answer>", ["New York", "NYC"]).accepted


def test_numbers_and_truth_values_are_references() -> None:
    assert Exact().verdict("<answer>4</answer>", 4).accepted
    assert Exact().verdict("<answer>True</answer>", True).accepted


def test_without_a_tag_the_whole_visible_text_is_the_answer() -> None:
    assert Exact(tag="").verdict("<think>hm</think> Paris.", "paris").accepted


def test_prefilled_thinking_is_not_searched() -> None:
    prefilled = Exact(think_prefilled=True)
    assert not prefilled.verdict("<answer>4</answer>", "4").accepted
    assert prefilled.verdict("hm</think><answer>4</answer>", "4").accepted


@pytest.mark.parametrize("reference", [None, "", "  ", [], [""], {"a": 1}, b"4", [["4"]]])
def test_a_reference_that_is_no_gold_is_an_error_of_the_data(reference: object) -> None:
    assert Exact().check_reference(reference)
    with pytest.raises(DataError, match="column 'answer'"):
        Exact().verdict("<answer>4</answer>", reference)


def test_plain_trl_call_reads_strings_and_chats_alike() -> None:
    reward = Exact(reference="city")
    chat = [[{"role": "assistant", "content": "<answer>Oslo</answer>"}]]
    assert reward(prompts=["p"], completions=["<answer>Oslo</answer>"], city=["oslo"]) == [1.0]
    assert reward(prompts=["p"], completions=chat, city=["oslo"]) == [1.0]


def test_a_misspelt_column_is_named_with_the_nearest() -> None:
    with pytest.raises(RewardError, match="did you mean 'anser'"):
        Exact()(prompts=["p"], completions=["x"], anser=["4"])


def test_a_completion_of_another_type_is_named_by_row() -> None:
    with pytest.raises(RewardError, match="row 1"):
        Exact()(prompts=["p", "p"], completions=["<answer>4</answer>", 3], answer=["4", "4"])


def test_it_pickles_under_its_name() -> None:
    again = pickle.loads(pickle.dumps(Exact(reference="city", name="city_right")))
    assert again.__name__ == "city_right"
    assert again(prompts=["p"], completions=["<answer>Oslo</answer>"], city=["Oslo"]) == [1.0]


def test_a_megabyte_and_lone_surrogates_get_a_verdict() -> None:
    assert Exact().verdict("<answer>" + "x" * 1_000_000, "4").outcome is ILL_FORMED
    assert Exact().verdict("\ud800<answer>\udfff4</answer>", "4").outcome is WRONG


@given(st.text(max_size=30), st.sampled_from(["", " ", "\n", "\u00a0", "\u200b"]))
def test_spacing_never_changes_a_verdict(answer: str, space: str) -> None:
    reward = Exact()
    if reward.check_reference(answer) or "<" in answer:
        return
    assert reward.verdict(f"<answer>{space}{answer}{space}</answer>", answer).accepted


@given(st.integers(), st.integers(min_value=1))
def test_a_changed_value_always_changes_the_verdict(value: int, change: int) -> None:
    assert not Exact().verdict(f"<answer>{value + change}</answer>", str(value)).accepted
