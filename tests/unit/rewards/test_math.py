"""The mathematical reward: what decides, what never changes a verdict, and what always does."""

from __future__ import annotations

import pickle
import subprocess
import sys
import time
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvr.errors import DataError
from rlvr.rewards.contract import Outcome
from rlvr.rewards.math import Math
from rlvr.rewards.mathematics.compare import same
from rlvr.rewards.mathematics.extract import find_answer, gold_text

MATH = Math()
WHOLE = st.integers(min_value=-(10**12), max_value=10**12)
SMALL = st.integers(min_value=-9, max_value=9)


def boxed(answer: str) -> str:
    return rf"so \boxed{{{answer}}}"


def right(answer: str, gold: str) -> bool:
    return MATH.verdict(boxed(answer), gold).accepted


@pytest.mark.parametrize("reference", [None, "", " ", True, {}, b"5", [], "\\frac{1}{", "1/0", "???"])
def test_a_reference_that_is_no_gold_is_found_and_refused(reference: object) -> None:
    assert MATH.check_reference(reference)
    with pytest.raises(DataError, match="column 'answer'"):
        MATH.verdict(boxed("5"), reference)


@pytest.mark.parametrize(
    "reference", ["5", 5, 0.5, ["5", "6"], "x+1", "Tuesday", r"\text{(B)}", "#### 5", r"$\frac12$"]
)
def test_usual_references_are_gold(reference: object) -> None:
    assert MATH.check_reference(reference) is None


def test_any_of_several_references_is_accepted() -> None:
    assert MATH.verdict(boxed("6"), ["5", "6"]).accepted
    assert not MATH.verdict(boxed("7"), ["5", "6"]).accepted


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"\boxed{1} then \boxed{2}", "2"),
        (r"\boxed{1}, \boxed{2}", "1, 2"),
        (r"\boxed{1} \boxed{1}", "1"),
        (r"\boxed{1} then \boxed{", None),
        (r"\boxed{}", None),
        (r"<answer>3</answer> and \boxed{4}", "4"),
        (r"\boxed{4} and <answer>3</answer>", "3"),
        (r"<answer>so \boxed{4}</answer>", "4"),
        ("#### 5\nbye", "5"),
        ("#### Plan\n#### 5\n#### Notes:", "5"),
        ("The answer is 5. I hope so.", "5"),
        ("Nothing here,\nat all", None),
        ("", None),
        (r"\boxed{\text{a \} b}}", r"\text{a \} b}"),
    ],
)
def test_what_decides(text: str, answer: str | None) -> None:
    assert find_answer(text).text == answer


def test_the_gold_is_read_out_of_a_whole_solution() -> None:
    assert gold_text("6*7=42\n#### 42") == "42"
    assert gold_text(r"Thus $x=\boxed{\frac{1}{2}}$.") == r"\frac{1}{2}"


def test_the_reason_names_what_was_read() -> None:
    verdict = MATH.verdict(boxed("4"), "5")
    assert verdict.extracted == "4" and verdict.why == "'4' (boxed) is not '5'"


def test_tolerance_is_off_until_it_is_asked_for() -> None:
    assert not right("0.3333", r"\frac{1}{3}")
    assert Math(tolerance=1e-3).verdict(boxed("0.3333"), r"\frac{1}{3}").accepted
    assert not Math(tolerance=1e-3).verdict(boxed("0.34"), r"\frac{1}{3}").accepted


def test_prefilled_thinking_is_not_searched() -> None:
    prefilled = Math(think_prefilled=True)
    assert prefilled.verdict(boxed("5"), "5").outcome is Outcome.ILL_FORMED
    assert prefilled.verdict("hm</think>" + boxed("5"), "5").accepted


def test_what_is_remembered_between_rows_stays_small() -> None:
    from rlvr.rewards.mathematics import answers, surface

    before = answers._read_once.cache_info().currsize, surface._spelled.cache_info().currsize
    for sign in "12345":
        MATH.verdict(boxed(sign * 500_000), "5")
    assert (answers._read_once.cache_info().currsize, surface._spelled.cache_info().currsize) <= (
        before[0] + 1,
        before[1] + 1,
    )
    assert right(" " * 5000 + "5", "5")


def test_it_pickles() -> None:
    assert pickle.loads(pickle.dumps(MATH)).verdict(boxed("5"), "5").accepted


def test_the_fast_path_imports_no_sympy() -> None:
    program = (
        "import sys\nfrom rlvr.rewards.math import Math\n"
        r"assert Math().verdict(r'\boxed{\frac{1}{2}}', '0.5').accepted" + "\n"
        r"assert Math().verdict(r'\boxed{(x-1)(x+1)}', 'x^2-1').accepted" + "\n"
        r"assert Math().verdict(r'\boxed{\sqrt 8}', r'2\sqrt2').accepted" + "\n"
        "assert not {'sympy', 'math_verify', 'latex2sympy2_extended', 'torch'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


# What never changes a verdict


@given(
    WHOLE,
    st.sampled_from(
        [
            "{}",
            " {} ",
            r"\,{}\,",
            "{{{}}}",
            r"\text{{{}}}",
            "${}$",
            r"\left({}\right)",
            "{}.",
            "{}.0",
            "{}.000",
            "+{}",
            r"\mathbf{{{}}}",
        ]
    ),
)
def test_spacing_and_style_of_an_integer(value: int, form: str) -> None:
    spelled = form.format(value) if not (form == "+{}" and value < 0) else str(value)
    assert right(spelled, str(value))


@given(WHOLE)
def test_separators_of_thousands(value: int) -> None:
    for separator in (",", "{,}", r"\,", ",\\!", " "):
        assert right(f"{value:,}".replace(",", separator), str(value))
    assert right(str(value), f"{value:,}")


@given(WHOLE, st.integers(min_value=1, max_value=10**6))
def test_forms_of_a_fraction(above: int, below: int) -> None:
    gold = rf"\frac{{{above}}}{{{below}}}"
    for spelled in (
        rf"\dfrac{{{above}}}{{{below}}}",
        f"{above}/{below}",
        rf"\tfrac{{{3 * above}}}{{{3 * below}}}",
        rf"{above} \div {below}",
    ):
        assert right(spelled, gold), spelled
    reduced = Fraction(above, below)
    assert right(f"{reduced.numerator}/{reduced.denominator}", gold)


@given(st.integers(min_value=-(10**9), max_value=10**9), st.integers(min_value=0, max_value=8))
def test_a_decimal_and_its_fraction(digits: int, places: int) -> None:
    value = Fraction(digits, 10**places)
    spelled = f"{digits}e-{places}"
    sign, size = ("-" if digits < 0 else ""), str(abs(digits)).zfill(places + 1)
    decimal = sign + size[: len(size) - places] + ("." + size[len(size) - places :] if places else "")
    assert right(decimal, f"{value.numerator}/{value.denominator}")
    assert right(spelled, decimal)


@given(SMALL, SMALL, SMALL)
def test_expanded_and_factored_forms(a: int, b: int, c: int) -> None:
    factored = f"({c})(x-({a}))(x-({b}))"
    expanded = f"({c})x^2 - ({c * (a + b)})x + ({a * b * c})"
    assert same(factored, expanded) is True
    assert same(factored, f"{expanded} + 1") is False


@given(st.lists(WHOLE, min_size=2, max_size=5, unique=True), st.randoms(use_true_random=False))
def test_the_order_of_a_set_does_not_count_and_that_of_a_tuple_does(
    values: list[int], chance: object
) -> None:
    shuffled = list(values)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    gold, other = (", ".join(map(str, one)) for one in (values, shuffled))
    assert same(rf"\{{{gold}\}}", rf"\{{{other}\}}") is True
    assert same(f"({gold})", f"({other})") is (values == shuffled)


# What always changes a verdict


@given(WHOLE, st.integers(min_value=1, max_value=10**6))
def test_another_integer_is_wrong_in_every_form(value: int, change: int) -> None:
    for form in ("{}", "{}.0", r"{}\text{{ cm}}", r"\text{{{}}}", r"\${}"):
        assert not right(form.format(value + change), str(value))


@given(WHOLE, st.integers(min_value=1, max_value=10**6), st.integers(min_value=1, max_value=10**6))
def test_another_fraction_is_wrong(above: int, below: int, change: int) -> None:
    assert not right(f"{above + change}/{below}", rf"\frac{{{above}}}{{{below}}}")


@given(st.integers(min_value=10**18, max_value=10**40), st.integers(min_value=1, max_value=9))
def test_the_last_digit_of_a_long_number_counts(value: int, change: int) -> None:
    assert not right(str(value + change), str(value))
    assert not right(f"0.{value + change}", f"0.{value}")


@given(st.integers(min_value=2, max_value=999), st.integers(min_value=2, max_value=999))
def test_roots_are_told_apart(left: int, right_value: int) -> None:
    assert same(rf"\sqrt{{{left}}}", rf"\sqrt{{{right_value}}}") is (left == right_value)


@given(SMALL, SMALL)
def test_the_ends_of_intervals_count(low: int, width: int) -> None:
    low, high = sorted((low, low + width + 20))
    assert same(f"[{low},{high})", rf"{low} \le x < {high}") is True
    assert same(f"[{low},{high})", f"({low},{high})") is False
    assert same(f"[{low},{high})", f"[{low},{high + 1})") is False


# Bad input


@given(st.text(max_size=200))
@settings(max_examples=150)
def test_any_text_gets_a_verdict_without_a_child_or_an_exception(text: str) -> None:
    assert same("5", text, 0.0) in (True, False, None)
    assert find_answer(text).why


@given(st.text(alphabet=r"\{}[]()^_$,.-+*/=<>|!%:0123456789abcxyz &", max_size=60))
@settings(max_examples=250)
def test_mathematical_noise_never_raises(text: str) -> None:
    for gold in ("5", "x+1", "(1,2)", r"\{1,2\}", "x<2"):
        assert same(gold, text) in (True, False, None)


@pytest.mark.parametrize(
    "text",
    [
        "x" * 1_000_000,
        r"\boxed{" * 100_000,
        r"\boxed{" + "1" * 1_000_000 + "}",
        r"\boxed{" + "(" * 400 + "5" + ")" * 400 + "}",
        r"\boxed{" + "{" * 50_000 + "}" * 50_000 + "}",
        r"\boxed{" + r"\frac{1}{" * 300 + "1" + "}" * 300 + "}",
        r"\boxed{9^{9^{9^{9}}}}",
        r"\boxed{99999999!}",
        r"\boxed{2^{2^{2^{2^{2^{2}}}}}}",
        r"\boxed{" + "-" * 1400 + "5}",
        r"\boxed{" + "1+" * 700 + "1}",
        r"\boxed{\sqrt{10^{30000}+1}}",
        r"\boxed{\sqrt[7]{3^{60000}+1}}",
        r"\boxed{" + "+".join(f"{4990 - n}!" for n in range(200)) + "}",
        r"\boxed{" + "+".join(f"x^{{{4000 + n}}}" for n in range(100)) + "}",
        r"\boxed{" + "+".join(f"\\frac{{1}}{{x^{{{3000 + n}}}+1}}" for n in range(60)) + "}",
        r"\boxed{\sin(10^{30000})}",
        "\ud800\\boxed{\udfff}",
        "answer is " * 50_000,
        "$" * 200_000,
        "<think>" * 100_000,
        "#### " * 100_000,
        "\\boxed{\\text{" + "a " * 700 + "}}",
        r"\boxed{" + r"\text{ cm} " * 130 + "}",
    ],
)
def test_hostile_completions_are_quick_and_pay_nothing(text: str) -> None:
    started = time.monotonic()
    verdicts = [MATH._fast(text, "5"), Math(think_prefilled=True)._fast(text, "5")]
    assert not any(verdict.accepted for verdict in verdicts)
    assert time.monotonic() - started < 3


def test_the_budget_of_one_comparison_is_not_spent_by_those_before_it() -> None:
    for number in range(400):
        assert same(f"2x + 10^{{5000}} < {number} + 10^{{5000}}", f"x < {number}/2") is True
