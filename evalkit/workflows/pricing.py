"""Outcome costs: as the file gives them, priced from tokens where it gives none."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from evalkit.costs.cost import cost_on_card
from evalkit.costs.prices import PriceCard
from evalkit.costs.usage import Usage
from evalkit.outcomes.table import Outcomes
from evalkit.routing.data import Floats
from evalkit.study.models import RoutingStudy

__all__ = ["Priced", "price_outcomes"]


@dataclass(frozen=True)
class Priced:
    """cost_usd (N, K, S), NaN unknown. card_hash and card_kind are those of the card that priced anything, else
    None; note says in one sentence what the costs rest on; notices name what could not be priced."""

    cost_usd: Floats
    card_hash: str | None
    card_kind: str | None
    note: str | None
    notices: tuple[str, ...]
    provenance: dict[str, Any] | None


def price_outcomes(study: RoutingStudy, outcomes: Outcomes) -> Priced:
    """Fill in the costs that the outcomes leave open from their token counts and the study's price card.

    A cost in the file is kept. Tokens are in the normal form (cache inside input, reasoning inside output).
    Raises InputError where the card cannot be read.
    """
    cost = outcomes.cost_usd.copy()
    if study.prices is None:
        return Priced(cost, None, None, None, (), None)
    from evalkit.study.prices import read_price_card

    card = read_price_card(study.prices)
    open_ = np.argwhere(outcomes.present & np.isnan(cost))
    reasons: dict[str, int] = {}
    priced = 0
    for i, j, s in open_:
        usd, reason = _price(study, outcomes, card, int(i), int(j), int(s))
        if usd is None:
            reasons[reason] = reasons.get(reason, 0) + 1
        else:
            cost[i, j, s] = usd
            priced += 1
    provenance = {
        "file": study.prices.name,
        "hash": f"sha256:{card.fingerprint.removeprefix('sha256:')}",
        "kind": card.kind.value,
        "as_of": None if card.as_of is None else card.as_of.isoformat(),
        "source": card.source,
    }
    note = None
    if priced:
        when = "an unknown date" if card.as_of is None else card.as_of.isoformat()
        note = f"{priced:,} outcome costs are computed from tokens at {card.kind.value} prices as of {when}."
    notices = tuple(
        f"{count:,} outcome{'s have' if count > 1 else ' has'} no cost: {reason}"
        for reason, count in reasons.items()
    )
    return Priced(cost, card.fingerprint, card.kind.value, note, (*card.notices, *notices), provenance)


def _price(
    study: RoutingStudy, outcomes: Outcomes, card: PriceCard, i: int, j: int, s: int
) -> tuple[float | None, str]:
    names = outcomes.model[j]
    model = names[0] if len(names) == 1 else study.tiers[j].model
    if model is None or card.price(model) is None:
        model = study.tiers[j].model if study.tiers[j].model is not None else model
    if model is None:
        return None, f"tier {study.tiers[j].name} names no model to look up on the card"
    usage = Usage(
        input_tokens=_count(outcomes.input_tokens[i, j, s]),
        cache_read_tokens=_count(outcomes.cache_read_tokens[i, j, s]),
        cache_write_tokens=_count(outcomes.cache_write_tokens[i, j, s]),
        output_tokens=_count(outcomes.output_tokens[i, j, s]),
        reasoning_tokens=_count(outcomes.reasoning_tokens[i, j, s]),
    )
    seen = cost_on_card(usage, card, model)
    return (None, seen.reason or "unknown") if seen.usd is None else (float(seen.usd), "")


def _count(value: float) -> int | None:
    return None if math.isnan(value) else int(value)
