"""Price cards as values: exact decimals per 1M tokens, dated, with their origin. No file is read here."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from enum import StrEnum

from evalkit.costs.decimals import plain_decimal
from evalkit.errors import Fault, visible

__all__ = [
    "Kind",
    "Price",
    "PriceCard",
    "PricePeriod",
    "Rates",
    "Tier",
    "card_fingerprint",
    "layered",
    "same_prices",
]


class Kind(StrEnum):
    """Where a number comes from: read in a source, assumed for the study, or measured on invoices."""

    CITED = "cited"
    ASSUMED = "assumed"
    MEASURED = "measured"


@dataclass(frozen=True, slots=True)
class Rates:
    """USD per 1M tokens. A cache price of None is not on the card."""

    input: Decimal
    output: Decimal
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None
    cache_write_1h: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Tier:
    """Rates of a request whose whole prompt has strictly more than `above` tokens."""

    above: int
    rates: Rates


@dataclass(frozen=True, slots=True)
class PricePeriod:
    """What a model costs from a day on (None: always). `batch_factor` multiplies a call made through a batch API.

    `kinds` holds the origin of single numbers where it differs from `kind`. `standard_only`: the numbers are those
    of the provider's standard processing, and of no other service tier, speed or region.
    """

    rates: Rates
    tiers: tuple[Tier, ...] = ()
    batch_factor: Decimal | None = None
    start: date | None = None
    kind: Kind = Kind.ASSUMED
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    source: str | None = None
    standard_only: bool = False

    def rates_for(self, input_tokens: int) -> Rates:
        """The rates for a prompt of this size: the highest tier that it is strictly above, for all its tokens."""
        chosen = self.rates
        for tier in self.tiers:
            if input_tokens > tier.above:
                chosen = tier.rates
        return chosen


@dataclass(frozen=True, slots=True)
class Price:
    """The price of one model at one time, and the card it stands on."""

    model: str
    period: PricePeriod
    card: str = ""


@dataclass(frozen=True, slots=True)
class PriceCard:
    """One card. `models` holds the dated prices of each model, earliest first; `fingerprint` hashes all of it.

    `base` is the card below it: a model that `models` does not name is priced there. `why_missing` says why a
    model has no price, where a card knows more than that it is not named.
    """

    models: Mapping[str, tuple[PricePeriod, ...]]
    as_of: date | None = None
    source: str | None = None
    kind: Kind = Kind.ASSUMED
    currency: str = "USD"
    file: str = "price card"
    fingerprint: str = ""
    notices: tuple[str, ...] = ()
    base: PriceCard | None = None
    why_missing: Callable[[str], str | None] | None = field(default=None, repr=False, compare=False)

    def price(self, model: str, on: date | None = None) -> Price | None:
        """The price of `model` on a day; without a day, on the card's own `as_of`. Never today's.

        None where the card has no price for it: that is unknown, not free. A model that the card names is never
        priced by its base.
        """
        day = on or self.as_of
        periods = self.models.get(model)
        if periods is None:
            return None if self.base is None else self.base.price(model, day)
        chosen: PricePeriod | None = None
        for period in periods:
            if period.start is None or (day is not None and period.start <= day):
                chosen = period
        return None if chosen is None else Price(model, chosen, self.file)

    def missing(self, model: str, on: date | None = None) -> Fault:
        """Why `model` has no price here and what to do, with the key to write."""
        day = on or self.as_of
        if self.base is not None and model not in self.models:
            below = self.base.missing(model, day)
            return Fault(below.what, below.fix, file=self.file, field=below.field)
        why = None if self.why_missing is None else self.why_missing(model)
        if self.models.get(model) and day is None:
            what, fix = "has dated prices only, and there is no date to choose by", "write as_of on the card"
        elif self.models.get(model):
            what, fix = f"has no price on {day}", "add the price that held then"
        else:
            what = f"{visible(model)} has no price" + (f": {why}" if why else "")
            fix = "add it, or write input: 0 and output: 0 if it is free"
        return Fault(what, fix, file=self.file, field=f'models."{visible(model)}"')

    def origin(self, model: str) -> str | None:
        """Which card prices `model`: this one's file or that of a card below; None where none names it."""
        if model in self.models:
            return self.file
        return None if self.base is None else self.base.origin(model)

    def repriced(self, fingerprint: str, as_of: date | str | None) -> str | None:
        """The notice that a finished run was priced with another card; None where it was this one."""
        if fingerprint == self.fingerprint:
            return None
        return f"re-priced with {visible(self.file)} as of {_day(self.as_of)}; run used {_day(as_of)}"


def layered(card: PriceCard, base: PriceCard) -> PriceCard:
    """`card` above `base`: a model that the card names is priced by it, all others by the base.

    The fingerprint covers both. The day of the card, where it has one, chooses among the base's prices too.
    """
    both = replace(card, base=base, as_of=card.as_of or base.as_of, notices=(*card.notices, *base.notices))
    return replace(both, fingerprint=card_fingerprint(both))


def same_prices(fingerprints: Sequence[str]) -> bool:
    """All runs were priced with one card, so that their costs can be compared."""
    return len(set(fingerprints)) <= 1


def _day(day: date | str | None) -> str:
    return "an unknown date" if day is None else visible(day, 20)


def card_fingerprint(card: PriceCard) -> str:
    """sha256 of what a card says, as 64 hex digits: not of its file name, number forms or order of models."""
    content: dict[str, object] = {
        "currency": card.currency,
        "as_of": None if card.as_of is None else card.as_of.isoformat(),
        "source": card.source,
        "kind": str(card.kind),
        "models": {name: [_period(period) for period in periods] for name, periods in card.models.items()},
    }
    if card.base is not None:
        content["base"] = card.base.fingerprint or card_fingerprint(card.base)
    text = json.dumps(["evalkit.prices/1", content], ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _period(period: PricePeriod) -> dict[str, object]:
    standard = {"standard_only": True} if period.standard_only else {}
    return standard | {
        "rates": _rates(period.rates),
        "tiers": [[tier.above, _rates(tier.rates)] for tier in period.tiers],
        "batch_factor": _number(period.batch_factor),
        "start": None if period.start is None else period.start.isoformat(),
        "kind": str(period.kind),
        "kinds": {name: str(kind) for name, kind in period.kinds.items()},
        "source": period.source,
    }


def _rates(rates: Rates) -> list[str | None]:
    return [
        _number(value)
        for value in (rates.input, rates.output, rates.cache_read, rates.cache_write, rates.cache_write_1h)
    ]


def _number(value: Decimal | None) -> str | None:
    return None if value is None else plain_decimal(value)
