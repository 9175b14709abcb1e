"""A price card is read whole: exact, dated, with the origin of every number, and no unit guessed."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from evalkit.costs import Kind, PriceCard, Rates, Usage, cost_on_card
from evalkit.errors import InputError
from evalkit.study.prices import read_price_card

FULL = """\
currency: USD
unit: per 1M tokens
as_of: "2026-08-01"
source: the provider's price page
kind: cited
models:
  openai/gpt-5.4:
    input: 2.5
    output: 15
    cache_read: 0.25
    batch_factor: 0.5
    tiers:
      - {above: 272000, input: 5, output: 22.5, cache_read: 0.5}
  anthropic/claude-sonnet-4-5:
    input: 3
    output: 15
    cache_read: 0.3
    cache_write: 3.75
    cache_write_1h: 6
    kind: measured
    kinds: {cache_write_1h: assumed}
    source: invoices of July
  openai/gpt-5.6-luna:
    - {input: 1, output: 6, cache_read: 0.1, cache_write: 1.25}
    - {from: "2026-07-30", input: 0.2, output: 1.2, cache_read: 0.02, cache_write: 0.25}
  local/free: {input: 0, output: 0}
"""


def read(tmp_path: Path, text: str, name: str = "prices.yaml") -> PriceCard:
    (tmp_path / name).write_text(text, encoding="utf-8")
    return read_price_card(tmp_path / name)


def faults(tmp_path: Path, text: str, name: str = "prices.yaml") -> list[str]:
    with pytest.raises(InputError) as caught:
        read(tmp_path, text, name)
    return [str(fault).replace(f"{tmp_path}/", "") for fault in caught.value.faults]


def test_every_price_lands_where_it_belongs(tmp_path: Path) -> None:
    card = read(tmp_path, FULL)
    assert (card.currency, card.as_of, card.kind) == ("USD", date(2026, 8, 1), Kind.CITED)
    assert card.source == "the provider's price page"
    assert card.notices == ()
    assert card.file == str(tmp_path / "prices.yaml")
    (gpt,) = card.models["openai/gpt-5.4"]
    assert gpt.rates == Rates(Decimal("2.5"), Decimal(15), cache_read=Decimal("0.25"))
    assert gpt.batch_factor == Decimal("0.5")
    assert [(tier.above, tier.rates) for tier in gpt.tiers] == [
        (272_000, Rates(Decimal(5), Decimal("22.5"), cache_read=Decimal("0.5")))
    ]
    assert (gpt.kind, gpt.source) == (Kind.CITED, "the provider's price page")
    (sonnet,) = card.models["anthropic/claude-sonnet-4-5"]
    assert sonnet.rates == Rates(Decimal(3), Decimal(15), Decimal("0.3"), Decimal("3.75"), Decimal(6))
    assert (sonnet.kind, sonnet.source) == (Kind.MEASURED, "invoices of July")
    assert sonnet.kinds == {"cache_write_1h": Kind.ASSUMED}
    luna = card.models["openai/gpt-5.6-luna"]
    assert [period.start for period in luna] == [None, date(2026, 7, 30)]
    usage = Usage(input_tokens=9080, cache_write_tokens=9077, cache_read_tokens=0, output_tokens=40)
    before = cost_on_card(usage, card, "openai/gpt-5.6-luna", on=date(2026, 7, 29))
    after = cost_on_card(usage, card, "openai/gpt-5.6-luna")
    assert (before.usd, after.usd) == (Decimal("0.01158925"), Decimal("0.00231785"))


def test_yaml_and_json_with_any_unit_are_the_same_card(tmp_path: Path) -> None:
    cards = [
        read(tmp_path, "currency: USD\nunit: per_1m_tokens\nmodels: {m: {input: 2.0, output: 8}}\n"),
        read(tmp_path, "currency: usd\nunit: Per 1K tokens\nmodels:\n  m:\n    output: 0.008\n    input: 0.002\n"),
        read(
            tmp_path,
            '{"currency": "USD", "unit": "per_token", "models": {"m": {"input": 2e-6, "output": 8.0E-6}}}',
            "prices.json",
        ),
    ]
    assert len({card.fingerprint for card in cards}) == 1
    assert all(card.models["m"][0].rates == Rates(Decimal(2), Decimal(8)) for card in cards)


def test_a_card_says_what_it_leaves_open(tmp_path: Path) -> None:
    card = read(tmp_path, "currency: USD\nunit: per_1m_tokens\nmodels: {m: {input: 2, output: 8}}\n")
    assert card.kind is Kind.ASSUMED
    assert "says no as_of" in card.notices[0]
    assert "count as assumed" in card.notices[1]


def test_all_faults_of_a_card_come_in_one_run(tmp_path: Path) -> None:
    text = """\
currency: EUR
unit: per_1b_tokens
as_of: 2026-08-01
kind: guessed
models:
  a: {input: 2}
  b: {input: "$2", output: -1, cach_read: 1}
  c: {input_cost_per_token: 0.1, input: 1, output: 1, batch_factor: 50}
  d: 3
  e: []
  f:
    - {input: 1, output: 1, from: "2026-05-01"}
    - {input: 1, output: 1}
    - {input: 1, output: 1, from: "2026-04-01"}
  g: {input: 1, output: 1, cache_read: 0.1, tiers: [{above: 10, input: 2, output: 2}]}
  h: {input: 1, output: 1, from: "1 May", kinds: {input: guess}}
  a: {input: 1, output: 1}
"""
    assert [message.split(". Fix")[0] for message in faults(tmp_path, text)] == [
        "prices.yaml:1: field currency: is EUR, and costs are computed in USD",
        'prices.yaml:2: field unit: is "per_1b_tokens"; allowed: per_1m_tokens, per_1k_tokens, per_token',
        "prices.yaml:3: field as_of: without quotes YAML takes 2026-08-01 for a date",
        'prices.yaml:4: field kind: is "guessed"; allowed: cited, assumed, measured',
        "prices.yaml:6: field models.a.output: is required",
        "prices.yaml:7: field models.b.cach_read: is not a known key",
        'prices.yaml:7: field models.b.input: is "$2", not a number',
        "prices.yaml:7: field models.b.output: is -1, which is not 0 or more",
        "prices.yaml:8: field models.c.input_cost_per_token: is a name from another price table",
        "prices.yaml:8: field models.c.batch_factor: is 50, which is not from 0 to 1",
        "prices.yaml:9: field models.d: is 3, not a mapping",
        "prices.yaml:10: field models.e: is an empty list",
        "prices.yaml:13: field models.f[1].from: is required where a model has several prices",
        "prices.yaml:14: field models.f[2].from: is 2026-04-01, not after 2026-05-01",
        "prices.yaml:15: field models.g.tiers[0].cache_read: is required",
        'prices.yaml:16: field models.h.from: "1 May" is not a day',
        'prices.yaml:16: field models.h.kinds.input: is "guess"; allowed: cited, assumed, measured',
        "prices.yaml:17: field models.a: the key stands on line 6 already",
    ]


def test_dated_prices_stand_in_order(tmp_path: Path) -> None:
    head = "currency: USD\nunit: per_1m_tokens\nmodels:\n  m:\n"
    lines = [
        '    - {input: 1, output: 1, from: "2026-05-01"}\n',
        "    - {input: 1, output: 1}\n",
        '    - {input: 1, output: 1, from: "2026-04-01"}\n',
    ]
    assert [message.split(". Fix")[0] for message in faults(tmp_path, head + "".join(lines))] == [
        "prices.yaml:6: field models.m[1].from: is required where a model has several prices",
        "prices.yaml:7: field models.m[2].from: is 2026-04-01, not after 2026-05-01",
    ]


def test_tiers_stand_in_order(tmp_path: Path) -> None:
    tiers = "[{above: 10, input: 1, output: 1}, {above: 10, input: 1, output: 1}]"
    text = f"currency: USD\nunit: per_1m_tokens\nmodels: {{m: {{input: 1, output: 1, tiers: {tiers}}}}}\n"
    assert "models.m.tiers[1].above: is 10, not more than 10" in faults(tmp_path, text)[0]


@pytest.mark.parametrize(
    ("unit", "price", "shown"),
    [
        ("per_token", "2", "2000000 USD per 1M tokens: more than any model costs"),
        ("per_1k_tokens", "2.5", "2500 USD per 1M tokens: more than any model costs"),
        ("per_1m_tokens", "0.000002", "0.000002 USD per 1M tokens: less than any model costs"),
        ("per_1k_tokens", "0.0000005", "0.0005 USD per 1M tokens: less than any model costs"),
    ],
)
def test_magnitudes_that_no_model_has_stop_unless_allowed(
    tmp_path: Path, unit: str, price: str, shown: str
) -> None:
    text = f"currency: USD\nunit: {unit}\nmodels: {{m: {{input: {price}, output: 0}}}}\n"
    (message,) = faults(tmp_path, text)
    assert shown in message
    assert "plausible: {" in message
    allowed = text + "plausible: {from: 0, to: 10000000}\n"
    assert read(tmp_path, allowed).models["m"][0].rates.output == 0


@pytest.mark.parametrize(
    "text", ["- a\n", "currency: USD\nunit: per_token\nmodels: {}\n", "currency: USD\nunit: per_token\n"]
)
def test_a_card_has_models(tmp_path: Path, text: str) -> None:
    assert len(faults(tmp_path, text)) == 1


def test_files_that_are_no_card_are_named(tmp_path: Path) -> None:
    assert "p.json:1: is not JSON" in faults(tmp_path, "{'a': 1}", "p.json")[0]
    assert "prices.yaml:1: is empty" in faults(tmp_path, "")[0]
    with pytest.raises(InputError, match="there is no such file"):
        read_price_card(tmp_path / "missing.yaml")


def test_the_card_of_the_bundled_study_is_marked_as_assumed(repo: Path) -> None:
    card = read_price_card(repo / "labelsets" / "helpdesk" / "prices.yaml")
    assert card.kind is Kind.ASSUMED
    assert card.notices == ()
    assert len(card.models) == 3
