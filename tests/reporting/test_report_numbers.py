"""How numbers are written: each form pinned, and what must hold for any number."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.reporting import numbers


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (numbers.percent(0.04), "4.0 %"),
        (numbers.percent(0.1213), "12.1 %"),
        (numbers.percent(0.0), "0.0 %"),
        (numbers.percent(1.0), "100.0 %"),
        (numbers.percent(0.9999), "99.99 %"),
        (numbers.percent(0.00004), "0.004 %"),
        (numbers.percent(0.0061), "0.61 %"),
        (numbers.percent(None), "n/a (not known)"),
        (numbers.percent(None, reason="0 required"), "n/a (0 required)"),
        (numbers.percent(0.0204, limit=0.02), "2.04 %"),
        (numbers.percent(0.0200001, limit=0.02), "2.00001 %"),
        (numbers.percent(0.02, limit=0.02), "2.0 %"),
        (numbers.percent(0.019999999999, limit=0.02), "1.9999999999 %"),
        (numbers.usd(1234.5), "$1,234"),
        (numbers.usd(3.876), "$3.88"),
        (numbers.usd(0.0123456), "$0.0123"),
        (numbers.usd(0.4), "$0.40"),
        (numbers.usd(0.05), "$0.05"),
        (numbers.usd(0.00045), "$0.00045"),
        (numbers.usd(0), "$0"),
        (numbers.usd(-2.5), "−$2.50"),
        (numbers.usd(0.0119996, limit=0.012), "$0.0119996"),
        (numbers.seconds(123.4), "123 s"),
        (numbers.seconds(12.34), "12.3 s"),
        (numbers.seconds(1.234), "1.23 s"),
        (numbers.seconds(0.1234), "0.123 s"),
        (numbers.usd(-4.18e-17), "$0"),
        (numbers.signed(-4.18e-17, "usd"), "$0"),
        (numbers.signed(1.1e-16, "share"), "0.0 points"),
        (numbers.seconds(0.001), "0.001 s"),
        (numbers.signed(13.701 - 13.7, "s"), "+0.001 s"),
        (numbers.per_thousand(2.5, 500), "$5.00"),
        (numbers.per_thousand(None, 500, reason="no price"), "n/a (no price)"),
        (numbers.per_thousand(1.0, 0), "n/a (0 requests)"),
        (numbers.exact(0.02, "share"), "2 %"),
        (numbers.exact(0.125, "share"), "12.5 %"),
        (numbers.exact(0.0005, "share"), "0.05 %"),
        (numbers.exact(1.0, "share"), "100 %"),
        (numbers.exact(0.006, "usd"), "$0.006"),
        (numbers.exact(8, "s"), "8 s"),
        (numbers.exact(0, "items"), "0"),
        (numbers.signed(0.011, "share"), "+1.1 points"),
        (numbers.signed(-0.4, "usd"), "−$0.40"),
        (numbers.signed(0.0, "usd"), "$0"),
        (numbers.signed_percent(-0.62), "−62.0 %"),
        (numbers.signed_count(-12), "−12"),
        (numbers.interval(0.7, 0.9, "share"), "70.0 % to 90.0 %"),
        (numbers.interval(None, 0.9, "share", reason="1 group"), "n/a (1 group)"),
        (numbers.count(12345), "12,345"),
        (numbers.count(12.0), "12"),
        (numbers.count(12.34), "12.3"),
        (numbers.of(2, 50, 0.04), "2 of 50 (4.0 %)"),
        (numbers.of(0, 0), "n/a (0 of 0)"),
        (numbers.threshold(0.1 + 0.2), "0.30000000000000004"),
        (numbers.threshold(5), "5"),
        (numbers.plain(0.82083333), "0.821"),
        (numbers.plain(0.99996), "0.99996"),
        (numbers.plain(0.50001), "0.50001"),
        (numbers.plain(1.0), "1.000"),
        (numbers.axis(0.25, 0.05, "share"), "25 %"),
        (numbers.axis(0.025, 0.005, "share"), "2.5 %"),
        (numbers.axis(2.5, 0.5, "usd"), "$2.5"),
        (numbers.axis(10.0, 5.0, "usd"), "$10"),
    ],
)
def test_forms(shown: str, expected: str) -> None:
    assert shown == expected


# Nearest rank, as published for the values 1 to n of the latency case.
@pytest.mark.parametrize(
    ("value", "n", "expected"),
    [
        (1.0, 1, "1.00 s (n 1; equals maximum, n too small)"),
        (50.0, 5, "50.0 s (n 5; equals maximum, n too small)"),
        (12.0, 19, "12.0 s (n 19; equals maximum, n too small)"),
        (18.0, 20, "18.0 s (n 20)"),
        (95.0, 100, "95.0 s (n 100)"),
        (None, 0, "n/a (0 values)"),
    ],
)
def test_percentile_says_its_n(value: float | None, n: int, expected: str) -> None:
    assert numbers.percentile(value, 95, n) == expected


def test_percentile_names_censored_values_and_never_repeats_a_note() -> None:
    note = "equals maximum, n too small"
    shown = numbers.percentile(7.0, 95, 12, censored=2, note=note)
    assert shown == "7.00 s (n 12; 2 censored; equals maximum, n too small)"
    assert "maximum" not in numbers.percentile(7.0, 50, 1)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_none_is_a_programming_error(bad: float) -> None:
    with pytest.raises(ValueError, match="must be finite"):
        numbers.percent(bad)
    with pytest.raises(ValueError, match="must be finite"):
        numbers.count(bad)


def test_text_and_truth_are_no_numbers() -> None:
    with pytest.raises(TypeError, match="Got str"):
        numbers.usd("3")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="Got bool"):
        numbers.percent(True)


SHARES = st.floats(0, 1, allow_nan=False)


def _value(shown: str) -> Decimal:
    text = shown.replace(",", "").replace("−", "-").replace("$", "")
    return Decimal(text.removesuffix(" %").removesuffix(" s"))


@given(SHARES, SHARES)
def test_rounding_never_moves_a_rate_on_or_over_its_limit(value: float, limit: float) -> None:
    shown, edge = _value(numbers.percent(value, limit=limit)), Decimal(repr(limit)) * 100
    assert shown.compare(edge) == (Decimal(repr(value)) * 100).compare(edge)


@given(SHARES)
def test_only_none_and_all_read_as_none_and_all(value: float) -> None:
    shown = _value(numbers.percent(value))
    assert (shown == 0) == (value == 0)
    assert (shown == 100) == (value == 1)


@given(st.floats(1e-6, 1e6) | st.floats(-1e6, -1e-6))
def test_money_keeps_its_first_three_digits(value: float) -> None:
    shown = float(_value(numbers.usd(value)))
    assert math.isclose(shown, value, rel_tol=0.006)
    assert "e" not in numbers.usd(value).lower()


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_threshold_reads_back_as_itself(value: float) -> None:
    assert float(numbers.threshold(value)) == value


def test_no_line_breaks_inside_a_number() -> None:
    assert numbers.unbroken("≤ 1.9 %") == "≤\u00a01.9\u00a0%"
    assert numbers.unbroken("4.65 s (n 420)") == "4.65\u00a0s (n 420)"
    assert numbers.unbroken("2 of 50") == "2 of 50"
    assert numbers.unbroken("−$402.00") == "−\u2060$402.00"
