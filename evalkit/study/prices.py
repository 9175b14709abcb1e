"""`read_price_card`: a price card from its YAML or JSON file, checked whole, every price per 1M tokens."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal, localcontext
from pathlib import Path

from evalkit.costs.decimals import plain_decimal
from evalkit.costs.prices import Kind, PriceCard, PricePeriod, Rates, Tier, card_fingerprint, layered
from evalkit.errors import Fault, InputError, visible
from evalkit.study import nodes
from evalkit.study.fields import Report, Section, shown
from evalkit.study.nodes import Document, Node, Scalar, join_path
from evalkit.study.prices_base import GENAI_PRICES, base_card
from evalkit.study.strict_json import load_json
from evalkit.study.strict_yaml import load_yaml

__all__ = ["UNITS", "read_price_card"]

UNITS: dict[str, Decimal] = {
    "per_1m_tokens": Decimal(1),
    "per_1k_tokens": Decimal(1000),
    "per_token": Decimal(1_000_000),
}
"""Units of a card, and what makes each a price per 1M tokens."""

_LEAST, _MOST = Decimal("0.001"), Decimal(1000)
_KINDS = tuple(str(kind) for kind in Kind)
_CARD = ("currency", "unit", "as_of", "source", "kind", "plausible", "base", "models")
_RATES = ("input", "output", "cache_read", "cache_write", "cache_write_1h")
_MODEL = (*_RATES, "tiers", "batch_factor", "from", "kind", "kinds", "source")
_LITELLM = {
    "input_cost_per_token": "input",
    "output_cost_per_token": "output",
    "cache_read_input_token_cost": "cache_read",
    "cache_creation_input_token_cost": "cache_write",
    "prompt": "input",
    "completion": "output",
    "cached_input": "cache_read",
}
_PRICE_FIX = "write the price in the card's unit; write 0 if it is free"


def read_price_card(path: str | Path) -> PriceCard:
    """The price card in `path` (`.json`, else YAML), prices as exact decimals per 1M tokens.

    A card that says `base: genai-prices` has the prices of that package below its own; `genai-prices` in place of
    a file is that base alone.

    Raises `InputError` with every fault: no unit or currency, a price that is no number, a magnitude that no
    model has (unless `plausible: {from: ..., to: ...}` allows it), dates that overlap.
    """
    if str(path) == GENAI_PRICES:
        return base_card()
    document = load_json(path) if Path(path).suffix.lower() == ".json" else load_yaml(path)
    report = Report(document.file, document.faults)
    card, based = _card(report, document)
    if report.faults or card is None:
        raise InputError(report.in_order())
    card = replace(card, fingerprint=card_fingerprint(card))
    return layered(card, base_card()) if based else card


def _card(report: Report, document: Document) -> tuple[PriceCard | None, bool]:
    """The card, and whether it asks for the base."""
    if document.root is None:
        return None, False
    if not isinstance(document.root, nodes.Mapping):
        report.add(
            document.root.line, None, "is not a price card: it holds no keys", "write currency, unit, models"
        )
        return None, False
    top = Section(report, document.root, "", _CARD)
    _currency(top)
    unit = _unit(top)
    as_of = _day(top, "as_of")
    kind = top.choice("kind", _KINDS)
    scale = _Scale(unit or "per_1m_tokens", known=unit is not None, **_plausible(top))
    default = _Origin(Kind(kind) if kind else Kind.ASSUMED, top.text("source"))
    based = top.choice("base", (GENAI_PRICES,)) is not None
    models = {} if based and not top.has("models") else _models(top, scale, default)
    card = PriceCard(
        models=models,
        as_of=as_of,
        source=default.source,
        kind=default.kind,
        file=document.file,
        notices=tuple(_notices(top, document.file)),
    )
    return card, based


def _notices(top: Section, file: str) -> list[str]:
    notices = []
    if not top.has("as_of"):
        notices.append(str(Fault("the card says no as_of", "write the day its prices were read", file=file)))
    if not top.has("kind"):
        what = "the card does not say where its prices come from, so they count as assumed"
        notices.append(str(Fault(what, f"write kind: {', '.join(_KINDS[:-1])} or {_KINDS[-1]}", file=file)))
    return notices


def _currency(top: Section) -> None:
    currency = top.text("currency", missing="write currency: USD")
    if currency is not None and currency.upper() != "USD":
        top.fault("currency", f"is {visible(currency, 20)}, and costs are computed in USD", "convert the prices")


def _unit(top: Section) -> str | None:
    allowed = ", ".join(UNITS)
    written = top.text("unit", missing=f"write one of: {allowed}; it cannot be guessed from the numbers")
    if written is None:
        return None
    unit = written.strip().lower().replace(" ", "_").replace("-", "_")
    if unit not in UNITS:
        top.fault("unit", f'is "{visible(written, 60)}"; allowed: {allowed}', "write the unit of the prices")
        return None
    return unit


def _plausible(top: Section) -> dict[str, Decimal]:
    section = top.section("plausible", ("from", "to"), like="{from: 0.001, to: 1000}")
    if section is None:
        return {"least": _LEAST, "most": _MOST}
    least, most = section.decimal("from"), section.decimal("to")
    return {"least": _LEAST if least is None else least, "most": _MOST if most is None else most}


def _day(section: Section, key: str) -> date | None:
    written = section.text(key)
    if written is None:
        return None
    try:
        if len(written) != 10:
            raise ValueError(written)
        return date.fromisoformat(written)
    except ValueError:
        section.fault(key, f'"{visible(written, 40)}" is not a day', 'write it as "2026-01-15", in quotes')
        return None


@dataclass(frozen=True, slots=True)
class _Origin:
    kind: Kind
    source: str | None


@dataclass(frozen=True, slots=True)
class _Scale:
    """Turns a price in the card's unit into USD per 1M tokens and stops at magnitudes that no model has."""

    unit: str
    known: bool
    least: Decimal
    most: Decimal

    def price(self, section: Section, key: str, *, missing: str | None = None) -> Decimal | None:
        value = section.decimal(key, missing=missing)
        if value is None or not self.known:  # without a unit only the magnitude cannot be judged
            return value
        with localcontext() as context:
            context.prec = 60
            per_million = value * UNITS[self.unit]
        if value and not self.least <= per_million <= self.most:
            size = "more" if per_million > self.most else "less"
            what = (
                f"is {plain_decimal(value)} {self.unit}, that is {plain_decimal(per_million)} USD per 1M tokens: "
                f"{size} than any model costs"
            )
            edge = "to" if per_million > self.most else "from"
            fix = f"check the unit; if it is right, write plausible: {{{edge}: {plain_decimal(per_million)}}}"
            section.fault(key, what, fix)
            return None
        return per_million


def _models(top: Section, scale: _Scale, default: _Origin) -> dict[str, tuple[PricePeriod, ...]]:
    like = "{input: 2.00, output: 8.00}"
    node = top.get("models", missing=f"write models: and, for each model, {like}")
    if node is None:
        return {}
    if not isinstance(node, nodes.Mapping) or not node.entries:
        top.fault(
            "models", f"is {shown(node)} without models", f"write a line for each model, such as demo/mid: {like}"
        )
        return {}
    models: dict[str, tuple[PricePeriod, ...]] = {}
    for name, entry in node.entries.items():
        path = join_path("models", name)
        items = entry.node.items if isinstance(entry.node, nodes.Sequence) else (entry.node,)
        periods = []
        for index, item in enumerate(items):
            place = join_path(path, index) if isinstance(entry.node, nodes.Sequence) else path
            period = _period(top.report, item, place, entry.line, scale, default)
            if period is not None:
                periods.append((period, item.line, place))
        _in_order(top.report, periods)
        models[unicodedata.normalize("NFC", name)] = tuple(period for period, _, _ in periods)
        if not items:
            top.report.add(entry.line, path, "is an empty list", f"write {like}")
    return models


def _in_order(report: Report, periods: list[tuple[PricePeriod, int, str]]) -> None:
    """Every price but the first says from when it holds, and later ones stand later."""
    before: date | None = None
    for index, (period, line, place) in enumerate(periods):
        if index and period.start is None:
            report.add(
                line, f"{place}.from", "is required where a model has several prices", "write the first day"
            )
        if before is not None and period.start is not None and period.start <= before:
            what = f"is {period.start}, not after {before}"
            report.add(line, f"{place}.from", what, "write the prices of a model in the order of their days")
        before = period.start or before


def _period(
    report: Report, node: Node, path: str, line: int, scale: _Scale, default: _Origin
) -> PricePeriod | None:
    if not isinstance(node, nodes.Mapping):
        if not (isinstance(node, Scalar) and isinstance(node.value, nodes.Refused)):
            report.add(line, path, f"is {shown(node)}, not a mapping", "write {input: 2.00, output: 8.00}")
        return None
    section = Section(report, node, path, _MODEL, _explain)
    rates = _rates(section, scale, None)
    factor = section.decimal("batch_factor", low=0, high=1)
    start = _day(section, "from")
    kind = section.choice("kind", _KINDS)
    kinds = _kinds(section)
    source = section.text("source")
    tiers = _tiers(section, scale, rates)
    if rates is None:
        return None
    return PricePeriod(
        rates=rates,
        tiers=tiers,
        batch_factor=factor,
        start=start,
        kind=Kind(kind) if kind else default.kind,
        kinds=kinds,
        source=source or default.source,
    )


def _explain(key: str) -> tuple[str, str] | None:
    if key in _LITELLM:
        return "is a name from another price table", f"write {_LITELLM[key]}, in the card's unit"
    return None


def _rates(section: Section, scale: _Scale, base: Rates | None) -> Rates | None:
    """The rates of a section; a tier needs every cache price that its model has, since they do not carry over."""
    values: dict[str, Decimal | None] = {}
    for key in _RATES:
        needed = key in {"input", "output"} or (base is not None and getattr(base, key) is not None)
        values[key] = scale.price(section, key, missing=_PRICE_FIX if needed else None)
    if values["input"] is None or values["output"] is None:
        return None
    return Rates(
        input=values["input"],
        output=values["output"],
        cache_read=values["cache_read"],
        cache_write=values["cache_write"],
        cache_write_1h=values["cache_write_1h"],
    )


def _tiers(section: Section, scale: _Scale, base: Rates | None) -> tuple[Tier, ...]:
    node = section.get("tiers")
    if node is None:
        return ()
    if not isinstance(node, nodes.Sequence):
        section.fault("tiers", f"is {shown(node)}, not a list", "write [{above: 200000, input: ..., output: ...}]")
        return ()
    tiers: list[Tier] = []
    for index, item in enumerate(node.items):
        path = join_path(section.where("tiers"), index)
        if not isinstance(item, nodes.Mapping):
            fix = "write {above: 200000, input: ..., output: ...}"
            section.report.add(item.line, path, f"is {shown(item)}, not a mapping", fix)
            continue
        inner = Section(section.report, item, path, ("above", *_RATES))
        above = inner.integer("above", low=1, high=10**9, missing="write the prompt size above which it holds")
        rates = _rates(inner, scale, base)
        if above is None or rates is None:
            continue
        if tiers and above <= tiers[-1].above:
            inner.fault("above", f"is {above}, not more than {tiers[-1].above}", "write the tiers in rising order")
            continue
        tiers.append(Tier(above, rates))
    return tuple(tiers)


def _kinds(section: Section) -> Mapping[str, Kind]:
    inner = section.section("kinds", (*_RATES, "batch_factor"), like="{cache_read: assumed}")
    if inner is None:
        return {}
    return {key: Kind(kind) for key in inner.mapping.entries if (kind := inner.choice(key, _KINDS)) is not None}
