"""Equality of what is expected with what came back."""

import json
import math
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvr.sandbox.compare import printable, text_equal, values_equal
from rlvr.sandbox.guest.codec import MAX_DEPTH, Encoder, NotPlainError, Opaque, decode
from rlvr.sandbox.protocol import Comparison

numbers = st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False)
scalars = st.none() | numbers | st.text(max_size=9) | st.binary(max_size=9)
hashable = scalars | st.tuples(scalars, scalars) | st.frozensets(scalars, max_size=2)
plain = st.recursive(
    scalars,
    lambda below: (
        st.lists(below, max_size=4)
        | st.tuples(below, below)
        | st.dictionaries(hashable, below, max_size=3)
        | st.sets(scalars, max_size=3)
    ),
    max_leaves=6,
)


def sent(value: object, size: int = 1 << 20) -> object:
    return json.loads(json.dumps(Encoder(size).encode(value)))


@settings(max_examples=80, deadline=None)
@given(plain)
def test_a_value_survives_the_way_and_equals_itself(value: object) -> None:
    assert values_equal(value, sent(value))
    assert decode(sent(value)) == value


@settings(max_examples=80, deadline=None)
@given(plain, plain)
def test_equality_is_pythons(one: object, other: object) -> None:
    if not _holds_sequence(one) and not _holds_sequence(other):
        assert values_equal(one, sent(other)) == (one == other)


def _holds_sequence(value: object) -> bool:
    return isinstance(value, list | tuple | dict)


@pytest.mark.parametrize(
    ("expected", "received", "equal"),
    [
        (4, 4.0, True),
        (4.0, 4, True),
        ([1, 2], (1, 2), True),
        ((1, [2]), [1, (2,)], True),
        ({1: (2,)}, {1: [2]}, True),
        ({1, 2}, [1, 2], False),
        ([1, 2], {1, 2}, False),
        ({"1": 2}, {1: 2}, False),
        ("1", 1, False),
        (1, "1", False),
        (None, 0, False),
        (0, None, False),
        ([], None, False),
        ([], {}, False),
        ([1], [1, 1], False),
        (math.nan, math.nan, False),
        (math.inf, math.inf, True),
        (2**80, 2**80, True),
        (2**80, 2**80 + 1, False),
        (b"a", bytearray(b"a"), True),
        (1 + 2j, 1 + 2j, True),
        ({(1, 2)}, {(1, 2)}, True),
        ({frozenset({1})}, {frozenset({1})}, True),
        ("é\ud800", "é\ud800", True),
    ],
)
def test_values(expected: object, received: object, equal: bool) -> None:
    assert values_equal(expected, sent(received)) is equal


@pytest.mark.parametrize(
    ("expected", "received", "equal"),
    [
        (0.3, 0.1 + 0.2, True),
        (1e9, 1e9 + 1, True),
        (1.0, 1.1, False),
        (0.0, math.nan, False),
        (math.nan, math.nan, False),
        (0.0, math.inf, False),
        (math.inf, 1.0, False),
        (1, 1.0000001, False),
        (1.0, 1, True),
        ([1.0], [1.0000001], True),
        ({"a": 1.0}, {"a": 1.0000001}, True),
        (1.0, "1.0", False),
        (1.0, 10**400, False),
        (1.0, complex(1, 0), True),
    ],
)
def test_tolerance_is_for_floats_only(expected: object, received: object, equal: bool) -> None:
    assert values_equal(expected, sent(received), 1e-6) is equal


class Always:
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize("value", [Always(), [Always()], {"a": Always()}, object, print, iter([])])
def test_what_is_not_plain_equals_nothing(value: object) -> None:
    assert not values_equal(4, sent(value))
    assert not values_equal([4], sent(value))
    assert not values_equal({"a": 4}, sent(value))
    assert Opaque("A") != Opaque("A")
    with pytest.raises(TypeError):
        bool(Opaque("A"))


def test_bounds() -> None:
    deep: list[object] = []
    for _ in range(MAX_DEPTH + 1):
        deep = [deep]
    with pytest.raises(NotPlainError, match="nested"):
        sent(deep)
    with pytest.raises(NotPlainError, match="limit"):
        sent("x" * 2000, 1000)
    with pytest.raises(NotPlainError, match="type"):
        Encoder(1000, strict=True).encode(Always())


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"T": 1},
        {"T": [1], "S": [1]},
        {"S": [[1]]},
        {"D": [[1]]},
        {"D": [[[1], 2]]},
        {"I": "zz"},
        {"F": "1e400"},
        {"C": [1]},
        {"B": "x"},
        {"O": 1},
        {"Z": 1},
        {"A": ["<f8", [2], [1]]},
        {"A": ["<O8", [1], [1]]},
        {"A": ["<f8", [10**9, 0], []]},
        {"A": 3},
    ],
)
def test_malformed_encodings_are_refused_and_equal_nothing(data: object) -> None:
    for expected in (1, [1], {1}, {1: 2}, "1", None):
        assert not values_equal(expected, data)


def test_crafted_collisions_cost_nothing() -> None:
    keys = [i * (2**61 - 1) for i in range(20_000)]
    started = time.process_time()
    assert not values_equal(set(range(20_000)), {"S": keys})
    assert not values_equal(dict.fromkeys(range(20_000)), {"D": [[key, None] for key in keys]})
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    ("expected", "printed", "equal"),
    [
        ("7\n", b"7", True),
        ("7", b"7\n\n", True),
        ("1 2", b"  1   2 \n", True),
        ("1\n2", b"1\r\n2\r\n", True),
        ("1\n2\n3", b"1\n2\n3\n4\n", False),
        ("1\n2\n3", b"1\n2\n", False),
        ("1 2 3", b"3 1 2", False),
        ("1 2", b"12", False),
        ("1\n2", b"1 2", False),
        ("1\n\n2", b"1\n2", False),
        ("", b"", True),
        ("", b"x", False),
        ("0.3", b"0.30000000000000004", False),
        ("é", "é".encode(), True),
    ],
)
def test_lines(expected: str, printed: bytes, equal: bool) -> None:
    assert text_equal(expected, printed, Comparison.LINES, 1e-6) is equal


@pytest.mark.parametrize(
    ("expected", "printed", "equal"),
    [
        ("0.3", b"0.30000000000000004", True),
        ("0.3 a", b"0.30000001 a", True),
        ("0.3", b"0.4", False),
        ("0.3", b"nan", False),
        ("0.3", b"inf", False),
        ("inf", b"0.3", False),
        ("nan", b"nan", True),
        ("3", b"3.0000001", False),
        ("3", b"3.0", True),
        ("1000000.0", b"1_000_000.0", False),
        ("0.3", "٠.٣".encode(), False),
        ("0.3\n0.4", b"0.3", False),
        ("1e400", b"1e500", False),
        ("0.5", b"0.5" + b"0" * 1000, False),
        ("9007199254740993", b"9007199254740992", False),
    ],
)
def test_tolerance_in_text(expected: str, printed: bytes, equal: bool) -> None:
    assert text_equal(expected, printed, Comparison.FLOAT, 1e-6) is equal


def test_exact_text_is_exact() -> None:
    assert text_equal("7\n", b"7\n", Comparison.EXACT, 0)
    assert not text_equal("7\n", b"7", Comparison.EXACT, 0)


def test_messages_do_nothing_to_a_terminal() -> None:
    assert printable("a\x1b[2Jb") == "a\\x1b[2Jb"
    assert printable("é a") == "é a"
