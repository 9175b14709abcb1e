"""What an attempt cost, and the most that a request can cost, at the prices of a card. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal, localcontext
from typing import Any, Protocol

from evalkit.costs import Cost, PriceCard, cost_usd, normal_usage
from evalkit.costs.prices import Price
from evalkit.errors import visible
from evalkit.providers.call import Billed, Failure, Reply, Request
from evalkit.providers.served import same_model
from evalkit.replay.records import json_text

__all__ = [
    "BYTES_A_TOKEN",
    "Bound",
    "CardPricing",
    "Pricing",
    "Unpriced",
    "output_cap",
    "prompt_bound",
    "prompt_bytes",
]

BYTES_A_TOKEN = 4
"""About so many bytes of text are one token: for estimates, never for a bound."""

_MILLION = Decimal(10**6)
_DIGITS = 60
_CAPS = ("max_completion_tokens", "max_tokens", "max_output_tokens")
_PER_MESSAGE = 64
_PER_REQUEST = 256
_WITH_TOOLS = 2_048
_IN_PROMPT = ("tools", "functions", "response_format", "extra_body", "system", "instructions")
_HOSTED = ("web_search_options", "plugins", "file_ids", "search_parameters", "modalities", "audio")


@dataclass(frozen=True, slots=True)
class Bound:
    """The most that a request can take: `usd` None where it has no bound, with the `reason`. Tokens likewise."""

    usd: Decimal | None
    prompt_tokens: int | None
    output_tokens: int | None
    reason: str | None = None


class Pricing(Protocol):
    """Prices attempts. No call, no file."""

    def cost(self, request: Request, result: Reply | Failure) -> Cost:
        """The list price of what came of one attempt; unknown is None with its reason."""
        ...

    def most(self, request: Request, more_tokens: int = 0) -> Bound:
        """The most that one attempt at `request` can cost, with so many tokens added to its prompt."""
        ...

    def least(self, request: Request) -> Decimal | None:
        """About what its prompt alone costs, at four bytes a token; None where there is no price."""
        ...


class Unpriced:
    """No prices: every reply has an unknown cost, and no request has a bound."""

    def cost(self, request: Request, result: Reply | Failure) -> Cost:
        """0 for what was refused before anything was generated, else unknown."""
        if isinstance(result, Failure) and result.billed is Billed.NO:
            return Cost(Decimal(0))
        return Cost(None, "the study names no price card")

    def most(self, request: Request, more_tokens: int = 0) -> Bound:
        """No bound in USD."""
        tokens, _ = prompt_bound(request)
        tokens = None if tokens is None else tokens + more_tokens
        return Bound(None, tokens, output_cap(request), "the study names no price card")

    def least(self, request: Request) -> Decimal | None:
        """Not known."""
        return None


@dataclass(frozen=True)
class CardPricing:
    """Prices from `card`, on its own date unless `on` says another; `batch`: the calls go through a batch API.

    A reply is priced as the model that served it: `aliases` are other names of the requested one.
    """

    card: PriceCard
    aliases: Mapping[str, Collection[str]] = field(default_factory=dict)
    on: date | None = None
    batch: bool = False

    def cost(self, request: Request, result: Reply | Failure) -> Cost:
        """The list price of what came of one attempt; unknown is None with its reason."""
        if isinstance(result, Failure) and result.usage is None:
            if result.billed is Billed.NO:
                return Cost(Decimal(0))
            return Cost(None, "it gave no reply, and may have been charged all the same")
        price, missing = self.price_of(request.model, result.served_model)
        if price is None:
            return Cost(None, missing)
        return cost_usd(normal_usage(result.usage), price, batch=self.batch)

    def least(self, request: Request) -> Decimal | None:
        """About what its prompt alone costs, at four bytes a token; None where there is no price."""
        price = self.card.price(request.model, self.on)
        if price is None or (self.batch and price.period.batch_factor is None):
            return None
        tokens = prompt_bytes(request) // BYTES_A_TOKEN
        factor = (price.period.batch_factor or Decimal(1)) if self.batch else Decimal(1)
        return tokens * price.period.rates_for(tokens).input * factor / _MILLION

    def most(self, request: Request, more_tokens: int = 0) -> Bound:
        """Every byte of the prompt a token, every token of the output that is allowed, at the dearest rates."""
        prompt, unbounded = prompt_bound(request)
        output = output_cap(request)
        if unbounded is not None or prompt is None:
            return Bound(None, None, output, unbounded)
        prompt += more_tokens
        if output is None:
            return Bound(None, prompt, None, "it has no max_tokens")
        price = self.card.price(request.model, self.on)
        if price is None:
            return Bound(None, prompt, output, str(self.card.missing(request.model, self.on)))
        period = price.period
        if self.batch and period.batch_factor is None:
            return Bound(None, prompt, output, f"{visible(price.model)} has no batch_factor")
        faster = _processing(request) if period.standard_only else None
        if faster is not None:
            return Bound(None, prompt, output, f"{visible(price.model)} has the standard price only, not {faster}")
        rates = [period.rates, *(tier.rates for tier in period.tiers if prompt > tier.above)]
        caching = "cache_control" in json_text([request.messages, request.params])
        if caching and any(rate.cache_write is None for rate in rates):
            return Bound(None, prompt, output, f"{visible(price.model)} has no cache_write price")
        into = max(
            value
            for rate in rates
            for value in (rate.input, rate.cache_read, rate.cache_write, rate.cache_write_1h)
            if value is not None
        )
        with localcontext() as context:
            context.prec = _DIGITS
            usd = (prompt * into + output * max(rate.output for rate in rates)) / _MILLION
            if self.batch and period.batch_factor is not None:
                usd *= period.batch_factor
        return Bound(usd, prompt, output)

    def price_of(self, requested: str, served: str | None) -> tuple[Price | None, str | None]:
        """The price of the model that answered, or why there is none."""
        if served is None or same_model(requested, served, self.aliases):
            price = self.card.price(requested, self.on)
            return price, None if price is not None else str(self.card.missing(requested, self.on))
        way, slash, _ = requested.rpartition("/")
        for name in dict.fromkeys((served, f"{way}{slash}{served}", f"{requested.partition('/')[0]}/{served}")):
            price = self.card.price(name, self.on)
            if price is not None:
                return price, None
        return None, str(self.card.missing(served, self.on))


def prompt_bound(request: Request) -> tuple[int | None, str | None]:
    """The most tokens that a prompt can have, or why there is no bound.

    No tokenizer of the field makes more tokens than a text has UTF-8 bytes; a chat template adds some to each
    message, and tools add instructions of the provider. What is fetched by the provider has no bound here.
    """
    hosted = next((name for name in _HOSTED if request.params.get(name)), None)
    tools = request.params.get("tools") or request.params.get("functions") or ()
    for tool in tools if isinstance(tools, list | tuple) else ():
        kind = tool.get("type", "function") if isinstance(tool, Mapping) else "function"
        # Native layouts name a tool of one's own by its schema and give no type, or "custom".
        hosted = hosted or (None if kind in {"function", "custom"} else f"a tool of type {visible(kind, 40)}")
    if hosted is not None:
        return None, f"it uses {hosted}, which is billed beside its tokens"
    if any(_fetched(message.get("content")) for message in request.messages):
        return None, "a message refers to a file by its address, and nobody knows how many tokens that is"
    size = prompt_bytes(request) + _PER_REQUEST + _PER_MESSAGE * len(request.messages)
    return size + (_WITH_TOOLS if any(name in request.params for name in _IN_PROMPT) else 0), None


def prompt_bytes(request: Request) -> int:
    """UTF-8 bytes of everything that reaches the model: messages, tools and schemas, as JSON."""
    beside = [request.params[name] for name in _IN_PROMPT if name in request.params]
    return len(json_text([request.messages, beside]).encode("utf-8"))


def _fetched(content: Any) -> bool:
    if isinstance(content, str) or not isinstance(content, list | tuple):
        return False
    return any(isinstance(part, Mapping) and _part_fetched(part) for part in content)


def _part_fetched(part: Mapping[str, Any]) -> bool:
    if part.get("type", "text") == "text":
        return False
    text = json_text(part)
    return "base64" not in text


def _processing(request: Request) -> str | None:
    """The tier of processing that a request asks for, where that is not the standard one."""
    extra = request.params.get("extra_body")
    for params in (request.params, extra if isinstance(extra, Mapping) else {}):
        for name in ("service_tier", "speed"):
            if params.get(name) not in (None, "auto", "default", "standard", "standard_only"):
                return f"{name} {visible(params[name], 40)}"
    return None


def output_cap(request: Request) -> int | None:
    """The most output tokens that a request allows; None where it allows any number."""
    caps = [value for name in _CAPS if isinstance(value := request.params.get(name), int)]
    caps = [cap for cap in caps if not isinstance(cap, bool) and cap >= 0]
    if not caps:
        return None
    choices = request.params.get("n", 1)
    return max(caps) * (choices if isinstance(choices, int) and choices > 1 else 1)
