"""The dated base of prices: what the installed `genai-prices` package holds, as a price card. No network.

A model has a price here by its exact name alone, `provider/model` as LiteLLM writes it. Prices that a card cannot
say (by the time of day, by the request, for reasoning apart) are left out, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Any

from evalkit.costs.prices import Kind, PriceCard, PricePeriod, Rates, Tier, card_fingerprint
from evalkit.errors import visible

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, ModelPrice, Provider

__all__ = ["GENAI_PRICES", "PROVIDERS", "base_card"]

GENAI_PRICES = "genai-prices"
"""How a study or a price card asks for this base."""

PROVIDERS: dict[str, str] = {
    "anthropic": "anthropic",
    "azure": "azure",
    "baseten": "baseten",
    "bedrock": "aws",
    "bedrock_converse": "aws",
    "cerebras": "cerebras",
    "cloudflare": "cloudflare",
    "cohere": "cohere",
    "cohere_chat": "cohere",
    "databricks": "databricks",
    "deepseek": "deepseek",
    "fireworks_ai": "fireworks",
    "gemini": "google",
    "groq": "groq",
    "minimax": "minimax",
    "mistral": "mistral",
    "moonshot": "moonshotai",
    "novita": "novita",
    "openai": "openai",
    "openrouter": "openrouter",
    "ovhcloud": "ovhcloud",
    "perplexity": "perplexity",
    "together_ai": "together",
    "vertex_ai": "google",
    "xai": "x-ai",
    "zai": "zai",
}
"""The provider of a model's name as LiteLLM writes it -> the provider in the package."""

_RELEASED = {"0.2.3": date(2026, 11, 10)}
"""Version of the package -> the day it was released; the package does not say so itself."""

_RATES = {
    "input_mtok": "input",
    "output_mtok": "output",
    "cache_read_mtok": "cache_read",
    "cache_write_mtok": "cache_write",
    "cache_write_1h_mtok": "cache_write_1h",
}
# Billed for other media and for tools: a usage that has them is seen to have them, and its cost is unknown.
_SEEN_IN_USAGE = re.compile(r"audio|image|video|document|searches|messages|mchars")
_BATCH = {"processing": "batch"}
_DATE = re.compile(r"(?:[-@](?:20\d{6}|20\d{2}-\d{2}-\d{2}))$")
_REVISION = re.compile(r"-v\d+(?::\d+)?$")


@cache
def base_card() -> PriceCard:
    """The card of the installed package: `kind: cited`, dated with the day of its release where that is known.

    A price of a model is chosen by the day, as on any card; a card without a date prices no model that has had
    several prices.
    """
    from genai_prices.data import providers

    version = metadata.version(GENAI_PRICES)
    models = _BaseModels(providers, f"{GENAI_PRICES} {version}")
    day = _RELEASED.get(version)
    notices = () if day else (f"{GENAI_PRICES} {version} is not dated here: write as_of on a card with this base",)
    card = PriceCard(
        models=models,
        as_of=day,
        source=f"{GENAI_PRICES} {version}",
        kind=Kind.CITED,
        file=GENAI_PRICES,
        notices=notices,
        why_missing=models.why_missing,
    )
    return replace(card, fingerprint=card_fingerprint(card))


class _Unsayable(Exception):
    """A price that a card cannot say; the text says why."""


class _BaseModels(Mapping[str, tuple[PricePeriod, ...]]):
    """The periods of each model by its name as LiteLLM writes it, worked out when they are asked for."""

    def __init__(self, providers: list[Provider], source: str) -> None:
        self._source = source
        self._providers = {provider.id: provider for provider in providers}
        self._names: dict[str, dict[str, list[ModelInfo]]] = {}
        self._found: dict[str, tuple[PricePeriod, ...] | str] = {}

    def __getitem__(self, name: str) -> tuple[PricePeriod, ...]:
        found = self._look_up(name)
        if isinstance(found, str):
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        for prefix, provider in sorted(PROVIDERS.items()):
            for model in self._providers[provider].models if provider in self._providers else ():
                name = f"{prefix}/{model.id}"
                if not isinstance(self._look_up(name), str):
                    yield name

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def why_missing(self, name: str) -> str | None:
        """Why there is no price under this name; None where there is one."""
        found = self._look_up(name)
        return found if isinstance(found, str) else None

    def _look_up(self, name: str) -> tuple[PricePeriod, ...] | str:
        if name not in self._found:
            self._found[name] = self._periods(name)
        return self._found[name]

    def _periods(self, name: str) -> tuple[PricePeriod, ...] | str:
        prefix, slash, rest = name.partition("/")
        provider = self._providers.get(PROVIDERS.get(prefix, ""))
        if not slash:
            return f"{self._source} prices a model by provider and name, such as openai/{visible(name, 60)}"
        if provider is None:
            return f"{self._source} has no provider {visible(prefix, 60)}"
        models = self._named(provider, rest.removeprefix("converse/") if prefix == "bedrock" else rest)
        if not models:
            return f"{self._source} has no model of this exact name for {prefix}"
        try:
            found = [_periods_of(model, self._source) for model in models]
        except _Unsayable as reason:
            return f"{self._source} has {reason}"
        if any(periods != found[0] for periods in found):
            return f"{self._source} has several models of this name for {prefix}, at different prices"
        return tuple(
            replace(period, source=f"{self._source}, {provider.id} {models[0].id}") for period in found[0]
        )

    def _named(self, provider: Provider, name: str) -> list[ModelInfo]:
        """The models of exactly this name, or of it without the date of a snapshot, that the package finds too."""
        if provider.id not in self._names:
            index: dict[str, list[ModelInfo]] = {}
            for model in provider.models:
                for literal in {literal.lower() for literal in _literals(model)}:
                    index.setdefault(literal, []).append(model)
            self._names[provider.id] = index
        index = self._names[provider.id]
        plain = name.lower()
        for spelling in dict.fromkeys((plain, _DATE.sub("", plain), _REVISION.sub("", plain))):
            models = index.get(spelling, [])
            if models:
                matched = provider.find_model(plain)
                return models if any(model is matched for model in models) else []
        return []


def _literals(model: ModelInfo) -> Iterator[str]:
    """Names that the package writes out for a model: its id and whole names in its rules."""
    yield model.id
    yield model.id.removeprefix("regional.")
    stack: list[Any] = [model.match]
    while stack:
        clause = stack.pop()
        for kind in ("equals", "starts_with", "contains"):
            literal = getattr(clause, kind, None)
            if isinstance(literal, str):
                yield literal
        stack.extend(getattr(clause, "or_", ()))


def _periods_of(model: ModelInfo, source: str) -> tuple[PricePeriod, ...]:
    """The dated prices of a model, earliest first. Raises `_Unsayable`."""
    conditions = [price.constraint for price in model.prices] if isinstance(model.prices, list) else []
    batches = [variant for variant in model.price_variants or () if variant.when == _BATCH]
    conditions += [variant.constraint for variant in batches]
    days: set[date] = set()
    for condition in conditions:
        if condition is None:
            continue
        start = getattr(condition, "start_date", None)
        if start is None:
            raise _Unsayable("a price that depends on the time of day, which a card cannot say")
        days.add(start)
    periods: list[PricePeriod] = []
    for day in (None, *sorted(days)):
        at = datetime.combine(day or date.min, time.min, UTC)
        standard = model.get_prices(at)
        rates, tiers = _rates_of(standard)
        active = any(variant.constraint is None or variant.constraint.active(at) for variant in batches)
        factor = _factor(standard, model.get_prices(at, _BATCH)) if active else None
        period = PricePeriod(
            rates=rates,
            tiers=tiers,
            batch_factor=factor,
            # A card without a date must not choose the oldest of several prices.
            start=day or (date.min if days else None),
            kind=Kind.CITED,
            source=source,
            standard_only=True,
        )
        if not periods or replace(periods[-1], start=period.start) != period:
            periods.append(period)
    if len(periods) == 1:
        periods = [replace(periods[0], start=None)]
    return tuple(periods)


def _rates_of(price: ModelPrice) -> tuple[Rates, tuple[Tier, ...]]:
    """The rates of a price and those above each boundary of its tiers. Raises `_Unsayable`."""
    values = _values(price)
    for key in price.__dict__:
        if values.get(key) is not None and key not in _RATES and not _SEEN_IN_USAGE.search(key):
            raise _Unsayable(f"a price by {key.removesuffix('_mtok')}, which a card cannot say")
    for key in ("input_mtok", "output_mtok"):
        if values.get(key) is None:
            raise _Unsayable(f"no {_RATES[key]} price for tokens")
    starts = {tier.start for value in values.values() for tier in getattr(value, "tiers", ())}
    tiers = tuple(Tier(start, _at(values, start)) for start in sorted(starts))
    return _at(values, None), tiers


def _values(price: ModelPrice) -> dict[str, Any]:
    return {key: value for key, value in price.__dict__.items() if value is not None}


def _at(values: Mapping[str, Any], start: int | None) -> Rates:
    """The rates of prompts above `start`; None: below every boundary."""
    rates: dict[str, Decimal | None] = dict.fromkeys(_RATES.values())
    for key, name in _RATES.items():
        value = values.get(key)
        if value is None or isinstance(value, Decimal):
            rates[name] = value
            continue
        reached = [tier.price for tier in value.tiers if start is not None and tier.start <= start]
        rates[name] = reached[-1] if reached else value.base
    return Rates(**rates)  # type: ignore[arg-type]


def _factor(standard: ModelPrice, batch: ModelPrice) -> Decimal | None:
    """What every price of a batch is of the standard one; None where that differs, and the cost is then unknown.

    A batch at no other price for tokens is None too: its price is one for other media.
    """
    plain, at_batch = _rates_of(standard), _rates_of(batch)
    pairs = [(plain[0], at_batch[0])]
    if [tier.above for tier in plain[1]] != [tier.above for tier in at_batch[1]]:
        return None
    pairs += [(one.rates, two.rates) for one, two in zip(plain[1], at_batch[1], strict=True)]
    factors: set[Decimal] = set()
    for one, two in pairs:
        for name in _RATES.values():
            full, cut = getattr(one, name), getattr(two, name)
            if (full is None and cut is None) or full == cut == 0:
                continue
            if not full or cut is None or (cut / full) * full != cut:
                return None
            factors.add(cut / full)
    return factors.pop() if len(factors) == 1 and factors != {Decimal(1)} else None
