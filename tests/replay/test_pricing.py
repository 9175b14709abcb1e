from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.costs import PriceCard, PricePeriod, Rates, Tier
from evalkit.providers.call import Billed, Failure, FailureKind, Reply, Request
from evalkit.replay import CardPricing, Unpriced
from evalkit.replay.pricing import output_cap, prompt_bound, prompt_bytes

D = Decimal
CHEAP = PricePeriod(Rates(D("0.1"), D("0.4")), batch_factor=D("0.5"))
TOP = PricePeriod(
    Rates(D(2), D(10), cache_read=D("0.2"), cache_write=D("2.5")),
    (Tier(500, Rates(D(4), D(15), cache_read=D("0.4"), cache_write=D(5))),),
)
PRICING = CardPricing(PriceCard({"demo/cheap": (CHEAP,), "demo/frontier": (TOP,)}))


def request(text: str = "hello", model: str = "demo/cheap", **params: Any) -> Request:
    return Request(model, ({"role": "user", "content": text},), params)


def reply(served: str | None = "demo/cheap", **usage: int) -> Reply:
    return Reply("x", served_model=served, usage=usage or None)


def test_a_reply_is_priced_as_the_model_that_served_it() -> None:
    """Case C10: asked demo/cheap, answered by demo/frontier."""
    counts = {"prompt_tokens": 400, "completion_tokens": 600, "total_tokens": 1000}
    asked = PRICING.cost(request(), reply(**counts))
    served = PRICING.cost(request(), reply("demo/frontier", **counts))
    assert asked.usd == (400 * D("0.1") + 600 * D("0.4")) / 10**6
    assert served.usd == (400 * D(2) + 600 * D(10)) / 10**6
    # A gateway that leaves the provider out of the name.
    assert PRICING.cost(request(), reply("frontier", **counts)).usd == served.usd
    assert PRICING.cost(request(), reply("cheap", **counts)).usd == asked.usd
    assert PRICING.cost(request(), reply("demo/cheap-2026-01-31", **counts)).usd == asked.usd
    unknown = PRICING.cost(request(), reply("demo/other", **counts))
    assert unknown.usd is None
    assert "demo/other" in str(unknown.reason)


def test_an_alias_is_the_model_that_was_asked() -> None:
    counts = {"prompt_tokens": 10, "completion_tokens": 0, "total_tokens": 10}
    aliased = CardPricing(PRICING.card, {"demo/cheap": ("prod-small",)})
    assert aliased.cost(request(), reply("prod-small", **counts)).usd == D("0.000001")


@pytest.mark.parametrize(
    ("billed", "usage", "usd"),
    [
        (Billed.NO, None, D(0)),
        (Billed.UNKNOWN, None, None),
        (Billed.YES, {"prompt_tokens": 10, "completion_tokens": 0, "total_tokens": 10}, D("0.000001")),
    ],
)
def test_what_a_failure_costs(billed: Billed, usage: dict[str, int] | None, usd: Decimal | None) -> None:
    failure = Failure(FailureKind.CUT, "cut", billed=billed, usage=usage)
    assert PRICING.cost(request(), failure).usd == usd
    if usage is None:
        assert Unpriced().cost(request(), failure).usd == usd


def test_no_usage_is_no_cost_and_never_zero() -> None:
    found = PRICING.cost(request(), reply())
    assert found.usd is None
    assert found.reason


tokens = st.integers(0, 2000)


@given(
    text=st.text(max_size=300),
    model=st.sampled_from(["demo/cheap", "demo/frontier"]),
    cap=st.integers(0, 500),
    shares=st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)),
)
def test_no_reply_costs_more_than_its_bound(
    text: str, model: str, cap: int, shares: tuple[float, float, float, float]
) -> None:
    asked = request(text, model, max_tokens=cap)
    bound = PRICING.most(asked)
    assert bound.usd is not None
    assert bound.prompt_tokens is not None
    # Any counts that a tokenizer of one token a byte and a cap that holds can give.
    prompt = max(1, round(bound.prompt_tokens * shares[0]))
    read = round(prompt * shares[1])
    written = round((prompt - read) * shares[2]) if model == "demo/frontier" else 0
    output = round(cap * shares[3])
    usage = {
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "total_tokens": prompt + output,
        "prompt_tokens_details": {"cached_tokens": read, "cache_creation_tokens": written},
    }
    cost = PRICING.cost(asked, Reply("x", served_model=model, usage=usage))
    assert cost.usd is not None
    assert cost.usd <= bound.usd


@pytest.mark.parametrize("text", ["plain", "안녕하세요", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\ud800"])
def test_a_prompt_has_no_more_tokens_than_bytes(text: str) -> None:
    bound, _ = prompt_bound(request(text))
    assert bound is not None
    assert bound > len(text.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize(
    ("params", "why"),
    [
        ({"tools": [{"type": "web_search"}]}, "a tool of type web_search"),
        ({"web_search_options": {"search_context_size": "low"}}, "web_search_options"),
    ],
)
def test_what_is_billed_beside_tokens_has_no_bound(params: dict[str, Any], why: str) -> None:
    found = PRICING.most(request(max_tokens=10, **params))
    assert found.usd is None
    assert why in str(found.reason)


def test_a_file_by_its_address_has_no_bound_and_one_inside_has() -> None:
    def asking(url: str) -> Request:
        parts = [{"type": "text", "text": "?"}, {"type": "image_url", "image_url": {"url": url}}]
        return Request("demo/cheap", ({"role": "user", "content": parts},), {"max_tokens": 10})

    assert PRICING.most(asking("https://example.org/a.png")).usd is None
    inside = PRICING.most(asking("data:image/png;base64," + "A" * 5000))
    assert inside.prompt_tokens is not None
    assert inside.prompt_tokens > 5000


def test_tools_and_schemas_are_part_of_the_prompt() -> None:
    tool = {"type": "function", "function": {"name": "f", "description": "d" * 1000}}
    assert prompt_bytes(request(tools=[tool])) > prompt_bytes(request()) + 1000
    plain, with_tool = prompt_bound(request())[0], prompt_bound(request(tools=[tool]))[0]
    assert plain is not None
    assert with_tool is not None
    assert with_tool > plain + 1000
    assert prompt_bytes(request(user="u" * 1000)) == prompt_bytes(request())


@pytest.mark.parametrize(
    ("params", "cap"),
    [
        ({}, None),
        ({"max_tokens": 10}, 10),
        ({"max_completion_tokens": 20, "max_tokens": 10}, 20),
        ({"max_tokens": 10, "n": 3}, 30),
        ({"max_tokens": "10"}, None),
        ({"max_tokens": True}, None),
    ],
)
def test_the_cap_of_the_output(params: dict[str, Any], cap: int | None) -> None:
    assert output_cap(request(**params)) == cap


def test_a_long_context_price_is_part_of_the_bound_where_it_may_be_reached() -> None:
    short, long = request("x", "demo/frontier", max_tokens=0), request("x" * 400, "demo/frontier", max_tokens=0)
    bound = PRICING.most(short)
    assert bound.usd is not None
    assert bound.prompt_tokens is not None
    assert bound.prompt_tokens <= 500
    assert bound.usd == bound.prompt_tokens * D("2.5") / 10**6
    bound = PRICING.most(long)
    assert bound.usd is not None
    assert bound.prompt_tokens is not None
    assert bound.usd == bound.prompt_tokens * D(5) / 10**6


def test_a_batch_is_priced_at_its_factor_or_not_at_all() -> None:
    batch = CardPricing(PRICING.card, batch=True)
    whole, half = PRICING.most(request(max_tokens=10)).usd, batch.most(request(max_tokens=10)).usd
    assert whole is not None
    assert half == whole / 2
    least, half_least = PRICING.least(request("x" * 400)), batch.least(request("x" * 400))
    assert least is not None
    assert half_least == least / 2
    assert batch.most(request(model="demo/frontier", max_tokens=10)).usd is None


def test_a_cache_that_is_asked_for_needs_its_price() -> None:
    marked = {"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}]}
    asked = Request("demo/cheap", (marked,), {"max_tokens": 10})
    assert "cache_write" in str(PRICING.most(asked).reason)


@pytest.mark.parametrize(
    ("params", "bounded"),
    [
        ({"service_tier": "priority"}, False),
        ({"speed": "fast"}, False),
        ({"extra_body": {"service_tier": "flex"}}, False),
        ({"service_tier": ["odd"]}, False),
        ({"service_tier": "auto"}, True),
        ({"service_tier": "default", "speed": None}, True),
    ],
)
def test_a_standard_price_bounds_standard_processing_only(params: dict[str, Any], bounded: bool) -> None:
    standard = PricePeriod(Rates(D("0.1"), D("0.4")), standard_only=True)
    asked = request(max_tokens=10, **params)
    bound = CardPricing(PriceCard({"demo/cheap": (standard,)})).most(asked)
    assert (bound.usd is not None) is bounded
    assert bounded or "standard price only" in str(bound.reason)
    # A price that says nothing of processing is the user's own word.
    assert PRICING.most(asked).usd is not None
