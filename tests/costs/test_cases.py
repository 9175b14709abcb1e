"""Cases from practice about tokens and prices, with the exact values that each of them gives."""

from __future__ import annotations

import json
import socket
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from evalkit.costs import (
    LAYOUTS,
    Cost,
    PriceCard,
    PricePeriod,
    Rates,
    cost_on_card,
    normal_usage,
    same_prices,
    total_usd,
)
from evalkit.errors import Fault, InputError
from evalkit.study.prices import read_price_card


class Case:
    """The folder of one case."""

    def __init__(self, shared: Path, name: str) -> None:
        self.folder = shared / "cases" / name
        self.expected: dict[str, Any] = self.read("expect.json")
        self.values = self.expected["values"]

    def read(self, name: str) -> Any:
        return json.loads((self.folder / name).read_text(encoding="utf-8"))

    def card(self, name: str = "prices.json") -> PriceCard:
        return read_price_card(self.folder / name)

    def said(self, *messages: str) -> None:
        """Every group of tokens stands together in one of the messages."""
        for tokens in self.expected["message_must_contain"]:
            assert any(all(token in message for token in tokens) for message in messages), tokens


def test_c01_cached_tokens_are_part_of_the_prompt(shared: Path) -> None:
    case = Case(shared, "C01-cached-inside-prompt")
    card = case.card()
    for name in ("response.json", "response_text_tokens.json"):
        usage = normal_usage(case.read(name))
        cost = cost_on_card(usage, card, "demo/mid")
        assert cost.usd == Decimal(case.values["cost_usd"]) == Decimal("0.007")
        assert cost.notices == ()
        without = PriceCard(models={"demo/mid": (PricePeriod(Rates(Decimal(2), Decimal(8))),)})
        cost = cost_on_card(usage, without, "demo/mid")
        assert cost.usd == Decimal(case.values["no_cache_price"]) == Decimal("0.01")
        assert "no cache_read price" in cost.notices[0]


def test_c03_more_cached_than_prompt_tokens(shared: Path) -> None:
    case = Case(shared, "C03-cached-exceeds-prompt")
    raw = case.read("response.json")
    usage = normal_usage(raw)
    assert usage.inconsistent
    cost = cost_on_card(usage, case.card(), "demo/mid")
    assert cost.usd is None
    case.said(str(Fault(str(usage.problem), str(usage.fix), file="response.json")))
    total = total_usd([cost, Cost(Decimal("0.5"))])
    assert str(total) == ">= 0.5 (1 of 2 calls priced)"
    declared = normal_usage(raw, LAYOUTS["anthropic"])
    usd = cost_on_card(declared, case.card(), "demo/mid").usd
    assert usd == Decimal(case.values["declared_excluded_cost_usd"]) == Decimal("0.00395")


def test_c04_reasoning_inside_completion(shared: Path) -> None:
    case = Case(shared, "C04-reasoning-inside-completion")
    usage = normal_usage(case.read("response.json"))
    usd = cost_on_card(usage, case.card(), "demo/reasoning").usd
    assert usd == Decimal(case.values["cost_usd"]) == Decimal("0.0053")
    assert (usage.output_tokens, usage.reasoning_tokens) == (1200, 900)
    assert usage.visible_tokens == case.values["visible_tokens"] == 300
    assert usage.reasoning_share == 0.75


def test_c05_reasoning_beside_output(shared: Path) -> None:
    case = Case(shared, "C05-reasoning-outside-output")
    card = case.card()
    for name in ("native.json", "beside.json", "inside.json"):
        usd = cost_on_card(normal_usage(case.read(name)), card, "demo/thinker").usd
        assert usd == Decimal(case.values["cost_usd"]) == Decimal("0.0114"), name
    raw = case.read("ambiguous.json")
    cost = cost_on_card(normal_usage(raw), card, "demo/thinker")
    assert cost.usd is None
    assert "0.0114 USD if reasoning_tokens are inside output_tokens" in str(cost.reason)
    assert f"{case.values['ambiguous_beside']} USD if reasoning_tokens are beside output_tokens" in str(
        cost.reason
    )
    case.said(f"ambiguous.json: {cost.reason}")
    assert cost_on_card(normal_usage(raw, LAYOUTS["xai"]), card, "demo/thinker").usd == Decimal("0.0198")
    assert cost_on_card(normal_usage(raw, LAYOUTS["openai"]), card, "demo/thinker").usd == Decimal("0.0114")


def test_c07_no_price_is_not_a_price_of_zero(shared: Path) -> None:
    case = Case(shared, "C07-unknown-model-price")
    card = case.card()
    lines = (case.folder / "calls.jsonl").read_text(encoding="utf-8").splitlines()
    calls = [json.loads(line) for line in lines]
    costs = {call["query_id"]: cost_on_card(normal_usage(call), card, call["model"]) for call in calls}
    assert costs["q1"].usd == Decimal(case.values["q1"]) == Decimal("0.0028")
    assert costs["q2"].usd is None
    assert costs["q3"].usd == Decimal(case.values["q3"]) == 0
    total = total_usd(costs.values())
    assert str(total) == ">= 0.0028 (2 of 3 calls priced)"
    assert total.usd is None
    assert total.known_usd == Decimal(case.values["total_lower_bound"])
    case.said(*total.reasons)
    assert 'models."demo/brand-new-2026"' in total.reasons[0]
    assert "demo/brand-new-2026 has no price" in total.reasons[0]
    assert "input: 0" in total.reasons[0]


def test_c08_units_are_stated_and_odd_magnitudes_stop(shared: Path) -> None:
    case = Case(shared, "C08-price-units")
    usage = normal_usage({"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100})
    for name in ("per_1k.json", "per_1m.json"):
        usd = cost_on_card(usage, case.card(name), "demo/mid").usd
        assert usd == Decimal(case.values["cost_usd"]) == Decimal("0.0028")
    messages: list[str] = []
    for name in ("no_unit.json", "suspicious.json", "strings.json"):
        with pytest.raises(InputError) as caught:
            case.card(name)
        messages += [str(fault) for fault in caught.value.faults]
    case.said(*messages)
    strings = [message for message in messages if "strings.json" in message]
    assert ['models."demo/mid".input' in strings[0], 'models."demo/mid".output' in strings[1]] == [True, True]
    assert "per_1k_tokens" in messages[0]
    assert "per_token" in messages[0]


def test_c13_the_card_of_a_run_is_named(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(shared, "C13-price-drift")

    def refuse(*_: object) -> None:
        raise AssertionError("a network call")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    old, new, run = case.card("prices_old.json"), case.card("prices_new.json"), case.read("run.json")
    assert len(old.fingerprint) == 64
    assert old.fingerprint != new.fingerprint
    notice = new.repriced(run["prices_sha256"], run["prices_as_of"])
    assert notice is not None
    case.said(notice)
    assert notice.endswith("prices_new.json as of 2026-03-01; run used 2026-01-15")
    assert new.repriced(new.fingerprint, new.as_of) is None
    assert not same_prices([old.fingerprint, new.fingerprint])
