"""What a request costs, in exact decimals. An unknown cost is None with its reason, never 0."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, localcontext

from evalkit.costs.decimals import plain_decimal
from evalkit.costs.prices import Price, PriceCard, Rates
from evalkit.costs.usage import Usage

__all__ = ["Cost", "CostTotal", "cost_on_card", "cost_usd", "total_usd"]

_MILLION = Decimal(10**6)
_DIGITS = 60  # enough for any count times any price, so that every product and sum is exact


@dataclass(frozen=True, slots=True)
class Cost:
    """USD of one request, or None and the `reason`, with a `fix` where the reason names none. `notices` say what a
    known cost rests on."""

    usd: Decimal | None
    reason: str | None = None
    notices: tuple[str, ...] = ()
    fix: str | None = None


def cost_usd(usage: Usage, price: Price, *, batch: bool = False, tool_usd: Decimal | None = None) -> Cost:
    """The list price of one request.

    `(input - cache_read - cache_write) * p_in + cache_read * p_read + cache_write * p_write + output * p_out +
    tool_usd`. The tier is chosen by the whole prompt (strictly above the boundary) and holds for all its tokens;
    `batch` multiplies the tokens' price by the card's batch factor. Reasoning is part of the output: priced once.
    A cache read without a price of its own is billed as input, and said to be; a cache write without one is
    unknown, since it costs more than input with some providers. Unknown, too, is the cost of tokens that are no
    text, of what is billed beside tokens where `tool_usd` does not say it, and of a processing that the price is
    not for.
    """
    if usage.problem is not None:
        return Cost(None, _with_readings(usage, price, batch=batch, tool_usd=tool_usd), fix=usage.fix)
    contradiction = usage.contradiction()
    if contradiction is not None:
        return Cost(None, contradiction)
    uncovered = _uncovered(usage, price, batch=batch, tool_usd=tool_usd)
    if uncovered is not None:
        return Cost(None, uncovered)
    prompt, output = usage.input_tokens or 0, usage.output_tokens or 0
    read, written = usage.cache_read_tokens or 0, usage.cache_write_tokens or 0
    written_1h = usage.cache_write_1h_tokens or 0
    rates = price.period.rates_for(prompt)
    unpriced = _unpriced(rates, written - written_1h, written_1h)
    if unpriced is not None:
        return Cost(None, f"{price.model} has no {unpriced} price, and this request wrote to the cache")
    if batch and price.period.batch_factor is None:
        return Cost(None, f"{price.model} has no batch_factor, and this request went through a batch API")
    notices: tuple[str, ...] = ()
    if read and rates.cache_read is None:
        notices = (f"{price.model} has no cache_read price: cached tokens are billed as input",)
    with localcontext() as context:
        context.prec = _DIGITS
        usd = (
            (prompt - read - written) * rates.input
            + read * (rates.input if rates.cache_read is None else rates.cache_read)
            + (written - written_1h) * (rates.cache_write or Decimal(0))
            + written_1h * (rates.cache_write_1h or Decimal(0))
            + output * rates.output
        ) / _MILLION
        if batch and price.period.batch_factor is not None:
            usd *= price.period.batch_factor
        return Cost(usd + (tool_usd or Decimal(0)), notices=notices)


def _uncovered(usage: Usage, price: Price, *, batch: bool, tool_usd: Decimal | None) -> str | None:
    """What this usage was billed for that the price does not say."""
    if usage.media is not None:
        return f"has {usage.media}, which a price for text does not cover"
    if usage.fees is not None and tool_usd is None:
        return f"has {usage.fees}, which is billed beside the counted tokens"
    as_asked = usage.processing is None or (batch and usage.processing == "service_tier batch")
    if price.period.standard_only and not as_asked:
        return f"was served with {usage.processing}, and {price.model} has the standard price only"
    return None


def _unpriced(rates: Rates, written: int, written_1h: int) -> str | None:
    if written and rates.cache_write is None:
        return "cache_write"
    return "cache_write_1h" if written_1h and rates.cache_write_1h is None else None


def _with_readings(usage: Usage, price: Price, *, batch: bool, tool_usd: Decimal | None) -> str:
    """The problem of a usage and, where several readings remain, what each of them would cost."""
    said = []
    for reading in usage.readings:
        usd = cost_usd(reading.usage, price, batch=batch, tool_usd=tool_usd).usd
        if usd is not None:
            said.append(f"{plain_decimal(usd)} USD if {reading.how}")
    return f"{usage.problem}: {', '.join(said)}" if said else str(usage.problem)


def cost_on_card(
    usage: Usage,
    card: PriceCard,
    model: str,
    *,
    on: date | None = None,
    batch: bool = False,
    tool_usd: Decimal | None = None,
) -> Cost:
    """The cost of one request at the card's price for `model`: unknown where the card has none."""
    price = card.price(model, on)
    if price is None:
        return Cost(None, str(card.missing(model, on)))
    return cost_usd(usage, price, batch=batch, tool_usd=tool_usd)


@dataclass(frozen=True, slots=True)
class CostTotal:
    """The sum of the known costs. It is the whole only where every call is priced."""

    known_usd: Decimal
    priced: int
    calls: int
    reasons: tuple[str, ...] = ()

    @property
    def usd(self) -> Decimal | None:
        """The total; None where any cost is unknown."""
        return self.known_usd if self.priced == self.calls else None

    def __str__(self) -> str:
        amount = plain_decimal(self.known_usd)
        if self.priced == self.calls:
            return amount
        return f">= {amount} ({self.priced:,} of {self.calls:,} calls priced)"


def total_usd(costs: Iterable[Cost]) -> CostTotal:
    """The total of many costs: a lower bound with its count where some are unknown; each reason once."""
    known, priced, calls = Decimal(0), 0, 0
    reasons: dict[str, None] = {}
    with localcontext() as context:
        context.prec = _DIGITS
        for cost in costs:
            calls += 1
            if cost.usd is None:
                reasons[cost.reason or "unknown"] = None
            else:
                known += cost.usd
                priced += 1
    return CostTotal(known, priced, calls, tuple(reasons))
