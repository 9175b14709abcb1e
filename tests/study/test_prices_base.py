"""The prices of the installed genai-prices package as a card: its own `calc_price` says what each cost must be."""

from __future__ import annotations

import socket
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import genai_prices
import pytest
from genai_prices.data import providers

from evalkit.costs import Cost, Kind, PriceCard, Rates, Usage, card_fingerprint, cost_on_card, normal_usage
from evalkit.errors import InputError
from evalkit.study.prices import read_price_card
from evalkit.study.prices_base import PROVIDERS, base_card

PROMPTS = (1, 999, 32_000, 32_001, 100_001, 128_001, 200_000, 200_001, 272_000, 272_001, 1_000_001)


@pytest.fixture(scope="module")
def card() -> PriceCard:
    return base_card()


def theirs(name: str, usage: Usage, on: date, *, batch: bool = False) -> Decimal:
    prefix, _, model = name.partition("/")
    counts = genai_prices.Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        cache_write_1h_tokens=usage.cache_write_1h_tokens,
    )
    return genai_prices.calc_price(
        counts,
        model,
        provider_id=PROVIDERS[prefix],
        genai_request_timestamp=datetime(on.year, on.month, on.day, 12, tzinfo=UTC),
        price_context={"processing": "batch"} if batch else None,
    ).total_price


def same(ours: Cost, cost: Decimal) -> bool:
    """Equal, but for the rounding of the package: it divides with 28 digits."""
    return ours.usd is not None and abs(ours.usd - cost) <= cost * Decimal("1e-24")


def test_every_model_costs_what_the_package_says(card: PriceCard) -> None:
    checked = 0
    for place, name in enumerate(card.models):
        prompt = PROMPTS[place % len(PROMPTS)]
        usage = Usage(input_tokens=prompt, cache_read_tokens=prompt // 3, output_tokens=500)
        assert same(cost_on_card(usage, card, name), theirs(name, usage, date(2026, 11, 10))), (name, usage)
        checked += 1
    assert checked > 1500


def test_models_with_several_prices_cost_what_they_did_on_each_day(card: PriceCard) -> None:
    days = {period.start for periods in card.models.values() for period in periods} - {None, date.min}
    some = sorted(day for day in days if day)[::3]
    usage = Usage(input_tokens=300_000, cache_read_tokens=100, output_tokens=500)
    dated = [name for name, periods in card.models.items() if len(periods) > 1]
    assert len(dated) > 200
    for place, name in enumerate(dated):
        for day in (date(2024, 1, 1), some[place % len(some)], date(2027, 3, 1)):
            assert same(cost_on_card(usage, card, name, on=day), theirs(name, usage, day)), (name, day)


def test_every_boundary_of_a_tier_is_where_the_package_has_it(card: PriceCard) -> None:
    checked = 0
    for name, periods in card.models.items():
        for tier in periods[-1].tiers:
            for prompt in (tier.above, tier.above + 1):
                usage = Usage(input_tokens=prompt, cache_read_tokens=7, output_tokens=3)
                assert same(
                    cost_on_card(usage, card, name, on=date(2027, 3, 1)), theirs(name, usage, date(2027, 3, 1))
                )
                checked += 1
    assert checked > 100


def test_a_batch_costs_what_the_package_says_or_is_unknown(card: PriceCard) -> None:
    known = 0
    usage = Usage(input_tokens=250_000, cache_read_tokens=0, output_tokens=500)
    for name in card.models:
        ours = cost_on_card(usage, card, name, batch=True)
        if ours.usd is None:
            assert "batch_factor" in str(ours.reason)
            continue
        assert same(ours, theirs(name, usage, date(2026, 11, 10), batch=True)), name
        known += 1
    assert known > 80


def test_cache_writes_differ_where_the_package_bills_them_as_something_else(card: PriceCard) -> None:
    unknown: set[str] = set()
    checked = 0
    for name in card.models:
        price = card.price(name)
        assert price is not None
        usage = Usage(input_tokens=900, cache_write_tokens=600, cache_write_1h_tokens=200, output_tokens=5)
        ours = cost_on_card(usage, card, name)
        rates = price.period.rates_for(900)
        if rates.cache_write is None or rates.cache_write_1h is None:
            # The package bills them as input, or an hour's as five minutes'; with some providers they cost more.
            assert ours.usd is None
            unknown.add(str(ours.reason).partition(" has ")[2])
        else:
            assert same(ours, theirs(name, usage, date(2026, 11, 10))), name
            checked += 1
    assert checked > 50
    assert unknown == {
        "no cache_write price, and this request wrote to the cache",
        "no cache_write_1h price, and this request wrote to the cache",
    }


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("openai/gpt-5-nano", "openai gpt-5-nano"),
        ("openai/GPT-5-nano-2025-08-07", "openai gpt-5-nano"),
        ("anthropic/claude-sonnet-4-5-20250929", "anthropic claude-sonnet-4-5"),
        ("vertex_ai/claude-sonnet-4-5@20250929", "google claude-sonnet-4-5"),
        ("gemini/gemini-2.5-flash", "google gemini-2.5-flash"),
        ("openrouter/openai/gpt-5-nano", "openrouter openai/gpt-5-nano"),
        ("bedrock/us.anthropic.claude-opus-4-7", "aws regional.anthropic.claude-opus-4-7-v1:0"),
        ("bedrock/converse/global.anthropic.claude-opus-5", "aws global.anthropic.claude-opus-5"),
        ("xai/grok-4", "x-ai grok-4-0709"),
    ],
)  # fmt: skip
def test_a_name_is_the_one_of_the_model(card: PriceCard, name: str, model: str) -> None:
    price = card.price(name)
    assert price is not None
    assert str(price.period.source).endswith(f", {model}")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("gpt-5-nano", "prices a model by provider and name, such as openai/gpt-5-nano"),
        ("openai/gpt-5-nan", "has no model of this exact name for openai"),
        ("openai/gpt-5-nano-turbo", "has no model of this exact name for openai"),
        ("anthropic/claude-sonnet-4-5-next", "has no model of this exact name for anthropic"),
        ("azure/gpt-4o", "has no model of this exact name for azure"),  # the name of a deployment says little
        ("demo/mid", "has no provider demo"),
        ("openai/", "has no model of this exact name for openai"),
        ("deepseek/deepseek-chat", "has a price that depends on the time of day"),
        ("perplexity/sonar", "has a price by requests_kcount"),
        ("openai/text-embedding-3-small", "has no output price for tokens"),
    ],
)
def test_no_price_is_guessed(card: PriceCard, name: str, why: str) -> None:
    assert card.price(name) is None
    assert f"{name} has no price: genai-prices {genai_prices.__version__} {why}" in str(card.missing(name))
    assert card.origin(name) is None


def test_a_name_is_priced_as_the_model_that_the_package_finds() -> None:
    """Whatever has a price here, the package itself takes for the same model."""
    by_id = {provider.id: provider for provider in providers}
    for name in base_card().models:
        prefix, _, model = name.partition("/")
        provider = by_id[PROVIDERS[prefix]]
        assert provider.find_model(model.lower()) is not None, name


def test_other_processing_than_the_standard_one_has_no_price(card: PriceCard) -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    known = cost_on_card(normal_usage(usage), card, "openai/gpt-5-nano")
    assert known.usd == Decimal("0.000009")  # 100 x .05 + 10 x .4 per million
    flex = cost_on_card(normal_usage({"usage": usage, "service_tier": "flex"}), card, "openai/gpt-5-nano")
    assert flex == Cost(
        None, "was served with service_tier flex, and openai/gpt-5-nano has the standard price only"
    )


def test_the_card_is_dated_cited_and_needs_no_network(card: PriceCard, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a network call")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    base_card.cache_clear()
    again = base_card()
    assert again.fingerprint == card.fingerprint
    assert (card.kind, card.source) == (Kind.CITED, f"genai-prices {genai_prices.__version__}")
    if genai_prices.__version__ == "0.2.3":
        assert card.as_of == date(2026, 11, 10)


def test_a_package_of_an_unknown_day_prices_no_model_that_had_several_prices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("evalkit.study.prices_base._RELEASED", {})
    base_card.cache_clear()
    try:
        undated = base_card()
        assert undated.as_of is None
        assert "write as_of" in undated.notices[0]
        assert undated.price("openai/gpt-5-nano") is None
        assert "there is no date to choose by" in str(undated.missing("openai/gpt-5-nano"))
        assert undated.price("openai/gpt-5-nano", date(2026, 11, 1)) is not None
    finally:
        base_card.cache_clear()


CARD = """\
currency: USD
unit: per_1m_tokens
as_of: "2026-11-20"
kind: measured
base: genai-prices
models:
  openai/gpt-5-nano: {input: 0.04, output: 0.3}
"""


def test_the_users_card_stands_above_the_base(tmp_path: Path) -> None:
    path = tmp_path / "prices.yaml"
    path.write_text(CARD, encoding="utf-8")
    card = read_price_card(path)
    own, below = card.price("openai/gpt-5-nano"), card.price("anthropic/claude-opus-5")
    assert own is not None
    assert below is not None
    assert own.period.rates == Rates(Decimal("0.04"), Decimal("0.3"))
    assert (own.period.kind, below.period.kind) == (Kind.MEASURED, Kind.CITED)
    assert (card.origin("openai/gpt-5-nano"), card.origin("anthropic/claude-opus-5")) == (
        str(path),
        "genai-prices",
    )
    assert card.origin("demo/none") is None
    assert str(card.missing("demo/none")).startswith(f'{path}: field models."demo/none": demo/none has no price: ')
    assert card.as_of == date(2026, 11, 20)


def test_the_fingerprint_covers_both_cards_and_old_cards_keep_theirs(tmp_path: Path) -> None:
    alone, with_base = tmp_path / "alone.yaml", tmp_path / "prices.yaml"
    alone.write_text(CARD.replace("base: genai-prices\n", ""), encoding="utf-8")
    with_base.write_text(CARD, encoding="utf-8")
    plain, both = read_price_card(alone), read_price_card(with_base)
    assert plain.base is None
    assert both.base is not None
    assert plain.price("anthropic/claude-opus-5") is None
    assert len({plain.fingerprint, both.fingerprint, base_card().fingerprint}) == 3
    assert both.fingerprint == card_fingerprint(both)
    # As computed before a card could have a base.
    assert plain.fingerprint == "f414f0c60be0439d67485cb4f1ba5c8691898d44d271ce6cc64706c8f55cc5db"


def test_a_card_may_be_the_base_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "prices.yaml"
    path.write_text("currency: USD\nunit: per_1m_tokens\nkind: cited\nbase: genai-prices\n", encoding="utf-8")
    assert read_price_card(path).price("openai/gpt-5-nano") is not None
    assert read_price_card("genai-prices") is base_card()
    path.write_text("currency: USD\nunit: per_1m_tokens\nbase: litellm\n", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_price_card(path)
    assert any(fault.field == "base" and "genai-prices" in fault.what for fault in caught.value.faults)
