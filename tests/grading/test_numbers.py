"""The number check."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.grading import GradeStatus, Number, read_number


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", "12"),
        ("The total is 12.", "12"),
        ("12,000", "12000"),
        ("1,234,567.89", "1234567.89"),
        ("₩12,000", "12000"),
        ("12,000원입니다.", "12000"),
        ("총12,000원", "12000"),
        ("$0.50", "0.50"),
        (".5", "0.5"),
        ("-5", "-5"),
        ("−5", "-5"),
        ("-$5", "-5"),
        ("$-5", "-5"),
        ("It is -5.", "-5"),
        ("Answer — 5", "5"),
        ("5%", "5"),
        ("**5**", "5"),
        ("5kg", "5"),
        ("-> 5", "5"),
        ("So, 5, then.", "5"),
        ("007", "7"),
    ],
)
def test_one_number_is_read(text: str, value: str) -> None:
    assert read_number(text) == Decimal(value)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "empty"),
        ("twelve", "no_number"),
        ("…", "no_number"),
        ("3 or 4", "several_numbers"),
        ("3 + 4 = 7", "several_numbers"),
        ("12:30", "several_numbers"),
        ("1e3", "several_numbers"),
        ("12 000", "several_numbers"),
        ("1.234,5", "malformed_number"),
        ("1,2", "malformed_number"),
        ("12,0000", "malformed_number"),
        ("1.2.3", "malformed_number"),
        ("A4", "malformed_number"),
        ("A-4", "malformed_number"),
        ("- 5", "malformed_number"),
        ("Answer - 5", "malformed_number"),
        ("–5", "malformed_number"),
        ("--5", "malformed_number"),
        ("<5", "malformed_number"),
        ("≥ 5", "malformed_number"),
        ("2½", "malformed_number"),
        ("３", "malformed_number"),
        ("٣", "malformed_number"),
        ("x²5", "malformed_number"),
        ("9" * 101, "malformed_number"),
        ("3만", "scaled_number"),
        ("3 천", "scaled_number"),
        ("3k", "scaled_number"),
        ("3 million", "scaled_number"),
    ],
)
def test_what_can_be_read_in_two_ways_is_no_number(text: str, code: str) -> None:
    assert read_number(text) == code
    grade = Number().grade(text, "3")
    assert (grade.status, grade.reason, grade.passed) == (GradeStatus.CONTRACT_FAIL, code, False)


def test_tolerance_is_absolute_and_exact() -> None:
    check = Number(Decimal("0.1"))
    assert check.grade("10.1", "10").passed
    assert check.grade("9.9", "10").passed
    assert not check.grade("10.1000000000000000000000000000000000000001", "10").passed
    assert Number().grade("0.30", "0.3").passed  # 0.1 + 0.2 in binary is neither
    assert (
        Number().grade("10000000000000000000000000000000000001", "10000000000000000000000000000000000000").passed
        is False
    )


def test_a_reference_holds_one_number() -> None:
    assert Number().reference_fault("12,000") is None
    for reference in ("", "a dozen", "1 or 2"):
        assert Number().reference_fault(reference) is not None
    with pytest.raises(ValueError, match="must hold one number"):
        Number().grade("3", "three")


@given(st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**12), max_value=10**12))
def test_a_written_number_is_read_back(value: Decimal) -> None:
    assert read_number(f"{value:f}") == value
    assert read_number(f"It is {value:,f}.") == value


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_is_a_number_or_a_code(text: str) -> None:
    read = read_number(text)
    assert isinstance(read, Decimal) or read.isidentifier()


def test_a_long_hostile_reply_is_read_in_linear_time() -> None:
    assert read_number("." * 1_000_000) == "no_number"


@pytest.mark.parametrize(
    ("reference", "answer", "status"),
    [
        ("200", "202", "ok"),
        ("200", "202.01", "wrong"),
        ("200", "198", "ok"),
        ("-200", "-202", "ok"),
        ("-200", "202", "wrong"),
        ("0", "0.5", "ok"),  # relative to 0 is 0; the absolute tolerance is the larger one
        ("0", "0.51", "wrong"),
        ("10", "10.5", "ok"),
        ("10", "10.51", "wrong"),
        ("1" + "0" * 60, "101" + "0" * 58, "ok"),
        ("1" + "0" * 60, "101" + "0" * 57 + "1", "wrong"),  # one part in 10^58 beyond it
    ],
)
def test_the_larger_of_both_tolerances_holds(reference: str, answer: str, status: str) -> None:
    check = Number(Decimal("0.5"), Decimal("0.01"))
    assert check.grade(answer, reference).status.value == status
