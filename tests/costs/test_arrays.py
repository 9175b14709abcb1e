"""Pricing a column of requests gives, to the last digit, what pricing each request gives."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.costs import Price, PricePeriod, Rates, Tier, Usage, cost_usd
from evalkit.costs.arrays import cost_usd_array

NAN = float("nan")
rate = st.decimals(0, 1000, places=6)
odd_rate = st.decimals(0, 1000, places=14)
count = st.none() | st.integers(0, 400_000)


@st.composite
def periods(draw: st.DrawFn) -> PricePeriod:
    one = draw(st.sampled_from([rate, odd_rate]))
    maybe = st.none() | one
    base = Rates(draw(one), draw(one), draw(maybe), draw(maybe))
    tiers = tuple(
        Tier(above, Rates(draw(one), draw(one), draw(maybe), draw(maybe)))
        for above in draw(st.sampled_from([(), (200_000,), (1_000, 272_000)]))
    )
    return PricePeriod(
        base, tiers=tiers, batch_factor=draw(st.none() | st.sampled_from([Decimal("0.5"), Decimal("0.8")]))
    )


requests = st.lists(st.tuples(count, count, count, count, count), max_size=12)


@given(periods(), requests, st.booleans())
def test_a_column_costs_what_its_requests_cost(
    period: PricePeriod, rows: list[tuple[int | None, ...]], batch: bool
) -> None:
    price = Price("m", period)
    rows = [*rows, (1001, 10, None, 3, 2), (272_001, 1000, None, 3, 2), (10**9, None, None, 10**9, None)]
    columns = np.array([[NAN if value is None else value for value in row] for row in rows], dtype=np.float64)
    usd, reasons = cost_usd_array(
        price,
        input_tokens=columns[:, 0],
        cache_read_tokens=columns[:, 1],
        cache_write_tokens=columns[:, 2],
        output_tokens=columns[:, 3],
        reasoning_tokens=columns[:, 4],
        batch=batch,
    )
    one_by_one = [
        cost_usd(
            Usage(
                input_tokens=row[0],
                cache_read_tokens=row[1],
                cache_write_tokens=row[2],
                output_tokens=row[3],
                reasoning_tokens=row[4],
            ),
            price,
            batch=batch,
        )
        for row in rows
    ]
    assert [None if np.isnan(value) else value for value in usd.tolist()] == [
        None if cost.usd is None else float(cost.usd) for cost in one_by_one
    ]
    assert sum(reasons.values()) == sum(cost.usd is None for cost in one_by_one)
    assert set(reasons) <= {cost.reason for cost in one_by_one}


def test_unknown_counts_are_unknown_costs_with_their_number() -> None:
    usd, reasons = cost_usd_array(
        Price("m", PricePeriod(Rates(Decimal(2), Decimal(8)))),
        input_tokens=np.array([1000, NAN, NAN, 10, 5, 7, 0, -1, 1.5]),
        output_tokens=np.array([100, 1, NAN, NAN, 1, 1, 1, 1, 1]),
        cache_read_tokens=np.array([0, 0, 0, 0, 6, 9, 0, 0, 0]),
    )
    assert usd[0] == 0.0028
    assert np.isnan(usd[1:]).all()
    assert reasons == {
        "input_tokens is unknown": 2,
        "output_tokens is unknown": 1,
        "cached tokens 6 are more than input_tokens 5": 2,
        "input_tokens is 0, and every request has a prompt": 1,
        "input_tokens is -1, below 0": 1,
        "a token count is 1.5, not a whole number": 1,
    }


def test_no_requests_cost_nothing_and_leave_no_reason() -> None:
    empty = np.array([], dtype=np.float64)
    usd, reasons = cost_usd_array(
        Price("m", PricePeriod(Rates(Decimal(2), Decimal(8)))), input_tokens=empty, output_tokens=empty
    )
    assert (usd.shape, reasons) == ((0,), {})


@pytest.mark.parametrize("input_price", ["2", "0.123456789", "0.1234567890123"])
def test_prices_of_any_length_are_exact(input_price: str) -> None:
    price = Price("m", PricePeriod(Rates(Decimal(input_price), Decimal(0))))
    usd, _ = cost_usd_array(price, input_tokens=np.array([3.0, 7.0]), output_tokens=np.array([0.0, 0.0]))
    assert usd.tolist() == [float(Decimal(input_price) * n / 10**6) for n in (3, 7)]
