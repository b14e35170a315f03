"""Where the answer stands: outside thinking, before end tokens, in the last complete tag."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr.rewards.reading import clean_spaces, last_tag, outside_thinking, without_end_tokens


@pytest.mark.parametrize(
    ("text", "visible"),
    [
        ("a", "a"),
        ("<think>a</think>b", "b"),
        ("a</think>b", "b"),
        ("<think>a", ""),
        ("a<think>b</think>c", "ac"),
        ("a<think>b", "a"),
        ("<think>a<think>b</think>c</think>d", "d"),
        ("<thinking>a</thinking>b", "b"),
        ("<THINK>a</THINK>b", "b"),
        ("[THINK]a[/THINK]b", "b"),
        ("a[/THINK]b", "b"),
        ("<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b", "b"),
        ("<|channel|>analysis<|message|>a", ""),
        ("x < y and [z]", "x < y and [z]"),
    ],
)
def test_what_is_visible(text: str, visible: str) -> None:
    assert outside_thinking(text) == visible


@pytest.mark.parametrize(
    ("text", "visible"), [("a", ""), ("a</think>b", "b"), ("<think>a</think>b", "b"), ("[a]", "")]
)
def test_what_is_visible_when_the_template_opened_the_thinking(text: str, visible: str) -> None:
    assert outside_thinking(text, prefilled=True) == visible


@pytest.mark.parametrize(
    "token", ["<|im_end|>", "</s>", "<|eot_id|>", "<end_of_turn>", "<|endoftext|>", "<｜end▁of▁sentence｜>"]
)
def test_end_tokens_at_the_end_alone_are_dropped(token: str) -> None:
    assert without_end_tokens(f"4{token}\n{token}  ") == "4"
    assert without_end_tokens(f"{token}4") == f"{token}4"


@given(st.text(alphabet="ab<>/ |im_endthink", max_size=60))
def test_nothing_is_invented(text: str) -> None:
    assert set(outside_thinking(text)) <= set(text)
    assert text.startswith(without_end_tokens(text).rstrip())


def test_long_tails_are_read_in_time() -> None:
    started = time.monotonic()
    for tail in (
        " " * 100_000,
        "</s>" * 50_000,
        "</s> " * 50_000,
        ">" * 100_000,
        "<" * 100_000,
        " >" * 50_000,
    ):
        without_end_tokens("4" + tail)
        outside_thinking("4" + tail)
        last_tag("4" + tail, "answer")
    assert time.monotonic() - started < 3


def test_spaces_and_invisible_marks() -> None:
    assert clean_spaces("  a\u00a0\u200b b\ufeff\n c ") == "a b c"
    assert clean_spaces("cafe\u0301") == "caf\u00e9"


@pytest.mark.parametrize(
    ("text", "content"),
    [("<a>1</a>", "1"), ("<a>1</a><a>2</a>", "2"), ("<a>1</a><a>", None), ("<a>1", None), ("1</a>", None),
     ("<a><a>1</a></a>", None), ("use <a>: <a>1</a>", "1"), ("", None)],
)  # fmt: skip
def test_the_last_complete_tag(text: str, content: str | None) -> None:
    assert last_tag(text, "a").content == content
