"""The format grammar."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr.errors import ConfigError
from rlvr.rewards.tags import Tags

GOOD = "<think>a</think><answer>4</answer>"


@pytest.mark.parametrize(
    ("completion", "kept"),
    [
        (GOOD, True),
        (GOOD + "<|im_end|>", True),
        (GOOD + "</s>\n", True),
        (GOOD + "<|im_end|><|endoftext|>", True),
        ("\n <think>a</think> \n\n <answer>4</answer>\n", True),
        ("<think></think><answer>4</answer>", True),
        ("<think>I must use <answer> here</think><answer>4</answer>", True),
        ("<think>a <answer>3</answer></think><answer>4</answer>", False),
        (GOOD + " Hope that helps!", False),
        ("Sure. " + GOOD, False),
        ("<think>a</think> so <answer>4</answer>", False),
        ("<think>a</think><answer>1</answer><answer>9</answer>", False),
        ("<answer>4</answer><think>a</think>", False),
        ("<think>a</think>", False),
        ("<answer>4</answer>", False),
        ("a</think><answer>4</answer>", False),
        ("<think>a</tool><answer>4</answer>", False),
        ("<think>a<answer>4</answer>", False),
        ("<think>a</think><answer>4", False),
        ("<think>a</think><answer></answer>", False),
        ("<think>a</think><answer> \u200b\n</answer>", False),
        ("<think>a <think>b</think> c</think><answer>4</answer>", False),
        ("<think>a</think><answer><answer>4</answer></answer>", False),
        ("<THINK>a</THINK><ANSWER>4</ANSWER>", False),
        ("<think >a</think ><answer>4</answer>", False),
        ("<think>a</think></answer>4<answer>", False),
        ("", False),
    ],
)
def test_think_then_answer(completion: str, kept: bool) -> None:
    assert Tags().verdict(completion, None).accepted is kept


def test_text_around_where_it_is_allowed() -> None:
    loose = Tags(strict_start=False, strict_end=False)
    assert loose.verdict(f"Sure. {GOOD} Bye.", None).accepted
    assert not loose.verdict("<think>a</think> so <answer>4</answer>", None).accepted


@pytest.mark.parametrize("text", ["a</think><answer>4</answer>", GOOD, "\n" + GOOD])
def test_prefilled_thinking_with_or_without_its_tag(text: str) -> None:
    assert Tags(think_prefilled=True).verdict(text, None).accepted


@pytest.mark.parametrize(
    ("layout", "completion", "kept"),
    [
        ("think? answer", "<answer>4</answer>", True),
        ("plan step+ answer", "<plan>p</plan><step>1</step><step>2</step><answer>4</answer>", True),
        ("plan step+ answer", "<plan>p</plan><answer>4</answer>", False),
        ("plan step* answer", "<plan>p</plan><answer>4</answer>", True),
        ("think ... answer", "<think>a</think> so <answer>4</answer>", True),
        ("think answer ...", GOOD + " bye", True),
        ("search-query", "<search-query>x</search-query>", True),
    ],
)
def test_layouts_of_ones_own(layout: str, completion: str, kept: bool) -> None:
    assert Tags(layout=layout).verdict(completion, None).accepted is kept


def test_minimum_of_visible_characters() -> None:
    assert not Tags(minimum={"think": 1}).verdict("<think> \n</think><answer>4</answer>", None).accepted
    assert Tags(minimum={"think": 1}).verdict(GOOD, None).accepted


@pytest.mark.parametrize("layout", ["", "...", "a{2}", "<think>", "1st"])
def test_a_broken_layout_is_refused(layout: str) -> None:
    with pytest.raises(ConfigError, match="layout"):
        Tags(layout=layout)


def test_a_minimum_for_an_unknown_block_is_refused() -> None:
    with pytest.raises(ConfigError, match="'thikn'"):
        Tags(minimum={"thikn": 1})


def test_as_a_trl_reward_it_needs_no_column() -> None:
    assert Tags()(prompts=["p", "p"], completions=[GOOD, "4"]) == [1.0, 0.0]


def test_the_reason_says_what_was_found() -> None:
    assert "found <think> text <answer>" in Tags().verdict("<think>a</think>so<answer>4</answer>", None).why


@given(st.text(alphabet=st.characters(blacklist_characters="<"), min_size=1, max_size=40))
def test_no_content_without_tags_breaks_or_makes_the_format(content: str) -> None:
    visible = Tags().verdict(f"<think>{content}</think><answer>4</answer>", None)
    assert visible.accepted
    assert not Tags().verdict(content, None).accepted


@given(st.lists(st.sampled_from(["<think>", "</think>", "<answer>", "</answer>", "x"]), max_size=12))
def test_every_accepted_text_has_one_block_of_each_in_order(parts: list[str]) -> None:
    text = "".join(parts)
    if Tags().verdict(text, None).accepted:
        after = text.partition("</think>")[2]
        assert after.startswith("<answer>") and after.endswith("</answer>") and after.count("<answer>") == 1
