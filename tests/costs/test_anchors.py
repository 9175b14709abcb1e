"""Payloads of real providers with costs that were checked elsewhere."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

from evalkit.costs import Price, PricePeriod, Rates, cost_usd, normal_usage


def test_every_anchor_costs_what_it_costs(shared: Path) -> None:
    anchors = json.loads(
        (shared / "formats" / "cost_anchors.json").read_text(encoding="utf-8"), parse_float=Decimal
    )
    assert len(anchors) == 11
    for anchor in anchors:
        listed = {name: Decimal(str(value)) for name, value in anchor["usd_per_mtok"].items()}
        rates = Rates(
            input=listed["input"],
            output=listed["output"],
            cache_read=listed.get("cache_read"),
            cache_write=listed.get("cache_write_5m", listed.get("cache_write")),
            cache_write_1h=listed.get("cache_write_1h"),
        )
        usage = normal_usage(anchor["payload"])
        cost = cost_usd(usage, Price(anchor["name"], PricePeriod(rates)))
        assert cost.usd == Decimal(anchor["expected_usd"]), anchor["name"]
        assert cost.usd not in {Decimal(wrong) for wrong in (anchor["known_wrong"] or {}).values()}
        written_out = anchor["genai_prices"]["usage"]
        assert usage.input_tokens == written_out["input_tokens"], anchor["name"]
        assert usage.output_tokens == written_out["output_tokens"], anchor["name"]


def test_the_batch_discount_stacks_on_cache_prices() -> None:
    payload = {
        "input_tokens": 5,
        "cache_creation_input_tokens": 1253,
        "cache_read_input_tokens": 128955,
        "output_tokens": 120,
    }
    rates = Rates(input=Decimal(3), output=Decimal(15), cache_read=Decimal("0.3"), cache_write=Decimal("3.75"))
    price = Price("claude-sonnet-4-5", PricePeriod(rates, batch_factor=Decimal("0.5")))
    assert cost_usd(normal_usage(payload), price).usd == Decimal("0.04520025")
    assert cost_usd(normal_usage(payload), price, batch=True).usd == Decimal("0.022600125")


def test_recorded_formats_of_other_tools_agree(shared: Path) -> None:
    """One call in two formats, and one call in three generations of attribute names."""
    formats = shared / "formats"
    logged = json.loads((formats / "litellm_standard_logging_payload.json").read_text(encoding="utf-8"))
    span = json.loads((formats / "openinference_span.json").read_text(encoding="utf-8"))
    ours = normal_usage(logged["metadata"]["usage_object"])
    theirs = normal_usage(span["attributes"])
    for usage in (ours, theirs):
        assert (usage.input_tokens, usage.cache_read_tokens) == (2400, 1920)
        assert (usage.output_tokens, usage.reasoning_tokens) == (310, 256)
    observations = [
        json.loads(line)
        for line in (formats / "langfuse_observations.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    rates = Rates(input=Decimal(3), output=Decimal(15), cache_read=Decimal("0.3"), cache_write=Decimal("3.75"))
    cost = cost_usd(normal_usage(observations[0]), Price("m", PricePeriod(rates)))
    assert cost.usd == Decimal(str(observations[0]["costDetails"]["total"]))
    assert normal_usage(observations[1]).problem == "no usage was returned"
    spans = json.loads((formats / "otel_genai_span_attrs_by_version.json").read_text(encoding="utf-8"))
    for version in ("1.37-1.41 (open-telemetry/semantic-conventions)",):
        usage = normal_usage(spans[version])
        assert (usage.input_tokens, usage.cache_read_tokens, usage.cache_write_tokens) == (130213, 128955, 1253)
    batch = [
        json.loads(line)
        for line in (formats / "openai_batch_output.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert normal_usage(batch[1]["response"]["body"]).cache_write_tokens == 9077
