"""Which part of a completion is its code."""

import pytest

from rlvr.sandbox import ExtractionPolicy, extract_code

FENCE = "```"


def fenced(code: str, label: str = "python") -> str:
    return f"{FENCE}{label}\n{code}\n{FENCE}\n"


@pytest.mark.parametrize(
    ("completion", "code"),
    [
        (fenced("a = 1"), "a = 1\n"),
        (fenced("a = 1") + "better:\n" + fenced("a = 2"), "a = 2\n"),
        ("print(7)", None),
        ("", None),
        (f"{FENCE}python\na = 1\n", None),
        (fenced("a = 1") + f"{FENCE}python\na = 2\n", "a = 1\n"),
        (fenced("a = 1") + "It prints:\n" + fenced("7", ""), "a = 1\n"),
        (fenced("a = 1") + fenced('{"a": 1}', "json"), "a = 1\n"),
        (fenced('{"a": 1}', "json"), None),
        (fenced("a = 1", ""), "a = 1\n"),
        (fenced("a = 1", "Python3 title=x"), "a = 1\n"),
        (fenced("a = 1", "{.python}"), "a = 1\n"),
        ("~~~py\na = 1\n~~~", "a = 1\n"),
        (f"~~~python\ns = '''\n{FENCE}\n'''\n~~~", f"s = '''\n{FENCE}\n'''\n"),
        (f"````python\ns = '{FENCE}'\n{FENCE}\n````", f"s = '{FENCE}'\n{FENCE}\n"),
        (fenced("a = 1").replace("\n", "\r\n"), "a = 1\n"),
        ("<think>" + fenced("a = 1"), None),
        ("<think>" + fenced("a = 1") + "</think>" + fenced("a = 2"), "a = 2\n"),
        (fenced("a = 1") + "</think>no code", None),
        (fenced("s = 'a </b> c'"), "s = 'a </b> c'\n"),
        (fenced("   "), None),
        (f"{FENCE}python{FENCE} a = 1", None),
    ],
)
def test_last_block(completion: str, code: str | None) -> None:
    assert extract_code(completion) == code


def test_other_policies() -> None:
    two = fenced("a = 1") + fenced("a = 2")
    assert extract_code(two, ExtractionPolicy.FIRST_BLOCK) == "a = 1\n"
    assert extract_code("a = 1", "whole") == "a = 1"
    assert extract_code(" ", "whole") is None
    with pytest.raises(ValueError, match="none-such"):
        extract_code(two, "none-such")
