"""Costs are exact decimals; what cannot be known is None with its reason."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.costs import (
    Cost,
    Price,
    PriceCard,
    PricePeriod,
    Rates,
    Tier,
    Usage,
    card_fingerprint,
    cost_on_card,
    cost_usd,
    normal_usage,
    same_prices,
    total_usd,
)
from evalkit.costs.cache import cache_break_even_requests, prefix_token_equivalents, weighted_tokens
from evalkit.costs.decimals import plain_decimal

MID = Rates(input=Decimal("2.00"), output=Decimal("8.00"), cache_read=Decimal("0.50"), cache_write=Decimal("2.50"))
LONG = Tier(272_000, Rates(input=Decimal(5), output=Decimal("22.5")))


def price(rates: Rates = MID, **more: object) -> Price:
    return Price("demo/mid", PricePeriod(rates, **more))  # type: ignore[arg-type]


def test_the_formula() -> None:
    usage = Usage(input_tokens=3000, cache_read_tokens=2000, cache_write_tokens=500, output_tokens=400)
    # 500 * 2 + 2000 * .5 + 500 * 2.5 + 400 * 8 = 6450 per million
    assert cost_usd(usage, price()) == Cost(Decimal("0.00645"))
    assert cost_usd(usage, price(), tool_usd=Decimal("0.01")).usd == Decimal("0.01645")


def test_reasoning_is_priced_once() -> None:
    usage = Usage(input_tokens=500, output_tokens=1200, reasoning_tokens=900)
    assert cost_usd(usage, price(Rates(Decimal(1), Decimal(4)))).usd == Decimal("0.0053")


@pytest.mark.parametrize(
    ("tokens", "usd"), [(272_000, "0.695"), (272_001, "1.382505"), (1, "0.0150025"), (1_000_000, "5.0225")]
)
def test_a_tier_holds_strictly_above_its_boundary_for_every_token(tokens: int, usd: str) -> None:
    tiered = price(Rates(Decimal("2.5"), Decimal(15)), tiers=(LONG,))
    assert cost_usd(Usage(input_tokens=tokens, output_tokens=1000), tiered).usd == Decimal(usd)


def test_the_highest_tier_that_is_passed_holds() -> None:
    tiers = (Tier(100, Rates(Decimal(2), Decimal(0))), Tier(200, Rates(Decimal(3), Decimal(0))))
    tiered = price(Rates(Decimal(1), Decimal(0)), tiers=tiers)
    usd = [cost_usd(Usage(input_tokens=n, output_tokens=0), tiered).usd for n in (100, 101, 200, 201)]
    assert usd == [Decimal("0.0001"), Decimal("0.000202"), Decimal("0.0004"), Decimal("0.000603")]


def test_the_whole_prompt_chooses_the_tier_cached_tokens_included() -> None:
    tiers = (Tier(100, Rates(Decimal(10), Decimal(10), cache_read=Decimal(1))),)
    tiered = price(Rates(Decimal(1), Decimal(1), cache_read=Decimal("0.1")), tiers=tiers)
    usage = Usage(input_tokens=101, cache_read_tokens=101, output_tokens=1)
    assert cost_usd(usage, tiered).usd == Decimal("0.000111")


def test_a_cache_read_without_a_price_is_billed_as_input_and_said_to_be() -> None:
    usage = Usage(input_tokens=3000, cache_read_tokens=2000, output_tokens=500)
    cost = cost_usd(usage, price(Rates(Decimal(2), Decimal(8))))
    assert cost.usd == Decimal("0.01")
    assert cost.notices == ("demo/mid has no cache_read price: cached tokens are billed as input",)
    assert (
        cost_usd(
            Usage(input_tokens=3000, cache_read_tokens=0, output_tokens=500), price(Rates(Decimal(2), Decimal(8)))
        ).notices
        == ()
    )


def test_a_cache_write_without_a_price_is_unknown() -> None:
    usage = Usage(input_tokens=3000, cache_write_tokens=2000, output_tokens=500)
    cost = cost_usd(usage, price(Rates(Decimal(2), Decimal(8))))
    assert cost == Cost(None, "demo/mid has no cache_write price, and this request wrote to the cache")
    hour = Usage(input_tokens=3000, cache_write_tokens=2000, cache_write_1h_tokens=1, output_tokens=500)
    assert "cache_write_1h" in str(cost_usd(hour, price()).reason)


def test_a_batch_needs_its_factor() -> None:
    usage = Usage(input_tokens=1000, output_tokens=100)
    assert cost_usd(usage, price(batch_factor=Decimal("0.5")), batch=True).usd == Decimal("0.0014")
    assert cost_usd(usage, price(batch_factor=Decimal("0.5"))).usd == Decimal("0.0028")
    assert cost_usd(usage, price(), batch=True).usd is None
    with_tool = cost_usd(usage, price(batch_factor=Decimal("0.5")), batch=True, tool_usd=Decimal(1))
    assert with_tool.usd == Decimal("1.0014")


@pytest.mark.parametrize(
    "usage",
    [
        Usage(),
        Usage(input_tokens=10),
        Usage(output_tokens=10),
        Usage(input_tokens=0, output_tokens=0),
        Usage(input_tokens=-1, output_tokens=0),
        Usage(input_tokens=10, output_tokens=-2),
        Usage(input_tokens=10, cache_read_tokens=6, cache_write_tokens=5, output_tokens=1),
        Usage(input_tokens=10, cache_read_tokens=-6, output_tokens=1),
        Usage(input_tokens=10, output_tokens=5, reasoning_tokens=6),
        Usage(input_tokens=10, cache_write_tokens=1, cache_write_1h_tokens=2, output_tokens=5),
        normal_usage(None),
    ],
)
def test_counts_that_contradict_themselves_have_no_cost(usage: Usage) -> None:
    cost = cost_usd(usage, price())
    assert cost.usd is None
    assert cost.reason


def test_a_free_model_costs_exactly_nothing() -> None:
    cost = cost_usd(Usage(input_tokens=1000, output_tokens=100), price(Rates(Decimal(0), Decimal(0))))
    assert cost == Cost(Decimal(0))


tokens = st.integers(1, 10**9)


@given(tokens, tokens, st.decimals("0.001", "1000", places=6), st.decimals("0.001", "1000", places=6))
def test_costs_are_exact(prompt: int, output: int, p_in: Decimal, p_out: Decimal) -> None:
    usd = cost_usd(Usage(input_tokens=prompt, output_tokens=output), price(Rates(p_in, p_out))).usd
    assert usd is not None
    exact = prompt * int(p_in * 10**6) + output * int(p_out * 10**6)
    assert int(usd.scaleb(12)) == exact
    assert usd.scaleb(12) == exact


@given(st.lists(st.none() | st.decimals(0, 1000, places=12), max_size=30))
def test_a_total_is_a_lower_bound_where_any_cost_is_unknown(values: list[Decimal | None]) -> None:
    total = total_usd(Cost(value, None if value is not None else "why") for value in values)
    known = [value for value in values if value is not None]
    assert total.known_usd == sum(int(value.scaleb(12)) for value in known) / Decimal(10**12)
    assert (total.priced, total.calls) == (len(known), len(values))
    assert (total.usd is None) == (len(known) < len(values))
    assert total.reasons == (("why",) if len(known) < len(values) else ())


def test_how_a_total_is_written() -> None:
    assert (
        str(total_usd([Cost(Decimal("0.00280")), Cost(None, "x"), Cost(Decimal(0))]))
        == ">= 0.0028 (2 of 3 calls priced)"
    )
    assert str(total_usd([Cost(Decimal("0.00280"))])) == "0.0028"
    assert str(total_usd([])) == "0"
    assert str(total_usd([Cost(None, "x")])) == ">= 0 (0 of 1 calls priced)"


def card(**models: tuple[PricePeriod, ...]) -> PriceCard:
    return PriceCard(models=models, as_of=date(2026, 8, 1), file="prices.yaml")


def test_prices_have_their_days() -> None:
    old, new = (
        PricePeriod(Rates(Decimal(2), Decimal(8))),
        PricePeriod(Rates(Decimal(1), Decimal(4)), start=date(2026, 7, 30)),
    )
    dated = card(m=(old, new))
    assert [
        found.period.rates.input
        for day in (date(2026, 7, 29), date(2026, 7, 30), None)
        if (found := dated.price("m", day)) is not None
    ] == [Decimal(2), Decimal(1), Decimal(1)]
    later = card(m=(new,))
    assert later.price("m", date(2026, 7, 29)) is None
    assert str(later.missing("m", date(2026, 7, 29))) == (
        'prices.yaml: field models."m": has no price on 2026-07-29. Fix: add the price that held then.'
    )
    undated = PriceCard(models={"m": (new,)})
    assert undated.price("m") is None
    assert "there is no date to choose by" in str(undated.missing("m"))


def test_an_unknown_model_is_named_with_the_key_to_write() -> None:
    cost = cost_on_card(Usage(input_tokens=1, output_tokens=1), card(), "demo/brand-new-2026")
    assert cost.usd is None
    assert cost.reason == (
        'prices.yaml: field models."demo/brand-new-2026": demo/brand-new-2026 has no price. Fix: add it, or write '
        "input: 0 and output: 0 if it is free."
    )


def test_the_fingerprint_of_a_card_hashes_what_it_says() -> None:
    base = card(
        a=(PricePeriod(Rates(Decimal("2.0"), Decimal(8))),), b=(PricePeriod(Rates(Decimal(1), Decimal(1))),)
    )
    same = card(
        b=(PricePeriod(Rates(Decimal("1.00"), Decimal(1))),), a=(PricePeriod(Rates(Decimal(2), Decimal("8.000"))),)
    )
    assert card_fingerprint(base) == card_fingerprint(same)
    assert len(card_fingerprint(base)) == 64
    for other in (
        card(
            a=(PricePeriod(Rates(Decimal("2.01"), Decimal(8))),), b=(PricePeriod(Rates(Decimal(1), Decimal(1))),)
        ),
        card(a=(PricePeriod(Rates(Decimal(2), Decimal(8))),)),
        card(
            a=(PricePeriod(Rates(Decimal(2), Decimal(8), cache_read=Decimal(0))),),
            b=(PricePeriod(Rates(Decimal(1), Decimal(1))),),
        ),
        PriceCard(models=base.models, as_of=date(2026, 8, 2), file="prices.yaml"),
    ):
        assert card_fingerprint(other) != card_fingerprint(base)


def test_runs_are_comparable_under_one_card_only() -> None:
    assert same_prices(["a", "a", "a"])
    assert not same_prices(["a", "b"])


def test_token_weights_and_cache_arithmetic() -> None:
    assert weighted_tokens(10_000, 200, 5) == 11_000
    assert weighted_tokens(500, 2_000, 5) == 10_500
    assert prefix_token_equivalents(2_000, 0.7, 0.1) == pytest.approx(740, rel=1e-12)
    assert prefix_token_equivalents(2_000, 0.7, 0.1) + 500 == pytest.approx(1_240, rel=1e-12)
    assert cache_break_even_requests(1.5, 0.2) == pytest.approx(1.625, rel=1e-12)
    with pytest.raises(ValueError, match=r"The `hit_rate` parameter .* must be in \[0, 1\]. Got 70 instead."):
        prefix_token_equivalents(2_000, 70, 0.1)
    with pytest.raises(ValueError, match=r"The `read_price` parameter .* Got 1 instead."):
        cache_break_even_requests(1.5, 1)


@pytest.mark.parametrize("requests", [2, 5])
def test_break_even_is_where_both_ways_cost_the_same(requests: int) -> None:
    for write, read in ((1.25, 0.1), (2.0, 0.02)):
        edge = cache_break_even_requests(write, read)
        cached = write + (requests - 1) * read
        assert (cached < requests) == (requests > edge)


@pytest.mark.parametrize(
    ("value", "text"),
    [("0.0070", "0.007"), ("1E+2", "100"), ("-0", "0"), ("0.000", "0"), ("5E-7", "0.0000005"), ("120", "120")],
)
def test_decimals_are_written_in_full(value: str, text: str) -> None:
    assert plain_decimal(Decimal(value)) == text


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**12), max_value=10**12))
def test_a_written_decimal_is_the_same_number(value: Decimal) -> None:
    assert Decimal(plain_decimal(value)) == value
