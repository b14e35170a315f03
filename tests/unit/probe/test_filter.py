"""Prompts are dropped only when they are surely outside the band."""

import random

import pytest

from rlvr.probe.filter import MOST, open_prompts, place, summary


@pytest.mark.parametrize(
    ("right", "of", "where"),
    [
        (0, 0, "unknown"),
        (0, 8, "unknown"),
        (0, 64, "unknown"),
        (0, 96, "too hard"),
        (8, 8, "unknown"),
        (96, 96, "too easy"),
        (4, 8, "inside"),
        (1, 8, "unknown"),
    ],
)
def test_places(right, of, where):
    assert place(right, of) == where


def test_the_band_is_the_users():
    assert place(2, 40, (0.3, 0.7)) == "too hard"
    assert place(5, 40, (0.01, 0.99)) == "inside"


def test_prompts_of_the_band_are_seldom_dropped_however_often_one_looks():
    rng = random.Random(0)
    dropped = 0
    for _ in range(300):
        right = of = 0
        while of < MOST and place(right, of) == "unknown":
            right += sum(rng.random() < 0.05 for _ in range(8))
            of += 8
        dropped += place(right, of) == "too hard"
    assert dropped <= 0.05 * 300 + 12


def test_rounds_go_to_what_is_still_open():
    counts = {"a": (4, 8), "b": (0, 8), "c": (0, MOST + 8)}
    assert open_prompts(counts, ["a", "b", "c", "d"]) == ["b", "d"]


def test_the_summary_names_all_places():
    assert summary(["inside", "too hard", "inside"]) == {
        "inside": 2,
        "unknown": 0,
        "too hard": 1,
        "too easy": 0,
    }
