"""Outcome costs: as the file gives them, priced from tokens where it gives none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from evalkit.costs.arrays import cost_usd_array
from evalkit.outcomes.table import Outcomes
from evalkit.routing.data import Floats

__all__ = ["Candidate", "Priceable", "Priced", "price_outcomes"]


class Candidate(Protocol):
    """A tier or arm: its name, and the model asked for."""

    @property
    def name(self) -> str:
        """Its name in the study."""

    @property
    def model(self) -> str | None:
        """The model that the study names."""


class Priceable(Protocol):
    """A study with a price card and candidates in the order of its outcomes."""

    @property
    def prices(self) -> Path | None:
        """The file of the card."""

    @property
    def tiers(self) -> Sequence[Candidate]:
        """The candidates, in the order in which outcomes have them."""


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


def price_outcomes(study: Priceable, outcomes: Outcomes, *, noun: str = "tier") -> Priced:
    """Fill in the costs that the outcomes leave open from their token counts and the study's price card.

    A cost in the file is kept. Each row is priced as the model it names, one without a name as the tier's model;
    a model that is not on the card has no price. Tokens are in the normal form (cache inside input, reasoning
    inside output). `noun`: what the study calls its candidates.
    Raises InputError where the card cannot be read.
    """
    cost = outcomes.cost_usd.copy()
    if study.prices is None:
        return Priced(cost, None, None, None, (), None)
    from evalkit.study.prices import read_price_card
    from evalkit.study.prices_base import GENAI_PRICES

    card = read_price_card(study.prices)
    open_ = outcomes.present & np.isnan(cost)
    reasons: dict[str, int] = {}
    priced = 0
    origins: dict[str, dict[str, str | None]] = {}
    for j, tier in enumerate(study.tiers):
        for code, model in [(-1, tier.model), *enumerate(outcomes.model[j])]:
            i, s = np.nonzero(open_[:, j] & (outcomes.model_code[:, j] == code))
            if not len(i):
                continue
            price = None if model is None else card.price(model)
            if price is None:
                reason = f"{noun} {tier.name} names no model" if model is None else str(card.missing(model))
                reasons[reason] = reasons.get(reason, 0) + len(i)
                continue
            origins[price.model] = {
                "card": Path(card.origin(price.model) or "").name,
                "kind": price.period.kind.value,
                "source": price.period.source,
            }
            usd, refused = cost_usd_array(
                price,
                input_tokens=outcomes.input_tokens[i, j, s],
                output_tokens=outcomes.output_tokens[i, j, s],
                cache_read_tokens=outcomes.cache_read_tokens[i, j, s],
                cache_write_tokens=outcomes.cache_write_tokens[i, j, s],
                reasoning_tokens=outcomes.reasoning_tokens[i, j, s],
            )
            cost[i, j, s] = usd
            priced += int((~np.isnan(usd)).sum())
            for reason, count in refused.items():
                reasons[reason] = reasons.get(reason, 0) + count
    provenance: dict[str, Any] = {
        "file": study.prices.name,
        "hash": f"sha256:{card.fingerprint.removeprefix('sha256:')}",
        "kind": card.kind.value,
        "as_of": None if card.as_of is None else card.as_of.isoformat(),
        "source": card.source,
    }
    if card.base is not None or study.prices == Path(GENAI_PRICES):  # which of the two priced each model
        provenance["models"] = dict(sorted(origins.items()))
    note = None
    if priced:
        when = "an unknown date" if card.as_of is None else card.as_of.isoformat()
        note = f"{priced:,} outcome costs are computed from tokens at {card.kind.value} prices as of {when}."
    notices = tuple(
        f"{count:,} outcome{'s have' if count > 1 else ' has'} no cost: {reason}"
        for reason, count in reasons.items()
    )
    return Priced(cost, card.fingerprint, card.kind.value, note, (*card.notices, *notices), provenance)
