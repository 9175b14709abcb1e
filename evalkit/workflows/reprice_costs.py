"""The cost of each row of a run at a card: from the raw usage in its ledger, or from token counts of outcomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from evalkit.costs import Cost
from evalkit.costs.arrays import cost_usd_array
from evalkit.costs.prices import Price, PriceCard
from evalkit.providers.call import Failure, Reply
from evalkit.replay.cells import CellRecord, StepRecord
from evalkit.replay.ledger import Attempt, Ledger, Step
from evalkit.replay.plan import Cell
from evalkit.replay.pricing import CardPricing
from evalkit.replay.records import request_from

__all__ = ["LEDGER", "Costs", "Row", "costs_of_ledger", "costs_of_tokens"]

LEDGER = "ledger.sqlite"
"""The ledger in the folder of a run."""

_SEVERAL = "several calls are one row, and which of them were above the boundary of a price tier is not known"

Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, slots=True)
class Row:
    """One outcome. `model` is the one asked for, `served` the one that the row names; `tokens` are input, cache
    read, cache write, output and reasoning, NaN where unknown."""

    id: str
    tier: str
    sample: int
    model: str | None
    served: str | None
    attempts: int | None
    old_usd: float | None
    tokens: tuple[float, ...]


@dataclass(frozen=True)
class Costs:
    """USD of each row (R,), NaN where unknown, with the reasons of those and how many have each."""

    usd: Floats
    reasons: Mapping[str, int]

    @property
    def known(self) -> list[bool]:
        """Whether each row has a cost."""
        return [not unknown for unknown in np.isnan(self.usd).tolist()]


def costs_of_tokens(rows: Sequence[Row], card: PriceCard, *, batch: bool) -> Costs:
    """The costs of outcomes from their token counts, each as the model that served it."""
    pricing = CardPricing(card, batch=batch)
    usd = np.full(len(rows), np.nan)
    reasons: Counter[str] = Counter()
    groups: dict[tuple[str | None, str | None], list[int]] = {}
    for i, row in enumerate(rows):
        if row.old_usd == 0 and all(np.isnan(row.tokens)):
            usd[i] = 0.0  # refused before anything was generated: no price is part of it
        else:
            groups.setdefault((row.model, row.served), []).append(i)
    for (model, served), at in groups.items():
        if model is None:
            reasons[f"the row names no model; write --model {rows[at[0]].tier}=..."] += len(at)
            continue
        price, missing = pricing.price_of(model, served)
        if price is None:
            reasons[str(missing)] += len(at)
            continue
        several = [i for i in at if _tier_is_open(rows[i], price)]
        if several:
            reasons[_SEVERAL] += len(several)
            at = sorted(set(at) - set(several))
        counts = np.array([rows[i].tokens for i in at], dtype=np.float64).reshape(len(at), 5).T
        found, refused = cost_usd_array(
            price,
            input_tokens=counts[0],
            cache_read_tokens=counts[1],
            cache_write_tokens=counts[2],
            output_tokens=counts[3],
            reasoning_tokens=counts[4],
            batch=batch,
        )
        usd[at] = found
        reasons.update(refused)
    return Costs(usd, reasons)


def _tier_is_open(row: Row, price: Price) -> bool:
    """The counts of several calls are added up, and their sum is above a boundary that each may be below."""
    tiers = price.period.tiers
    return bool(tiers) and (row.attempts or 1) > 1 and row.tokens[0] > tiers[0].above


def costs_of_ledger(path: Path, rows: Sequence[Row], card: PriceCard, *, batch: bool) -> Costs:
    """The costs of outcomes from the raw usage of every attempt in the ledger. Raises `InputError`."""
    usd = np.full(len(rows), np.nan)
    reasons: Counter[str] = Counter()
    with Ledger.read(path) as ledger:
        batched = {run.run for run in ledger.runs() if batch or run.about.get("batch")}
        found = _costs_by_cell(ledger, card, batched)
    for i, row in enumerate(rows):
        cost = found.get((row.id, row.tier, row.sample), Cost(None, "the row is not in the ledger"))
        if cost.usd is None:
            reasons[cost.reason or "unknown"] += 1
        else:
            usd[i] = float(cost.usd)
    return Costs(usd, reasons)


def _costs_by_cell(ledger: Ledger, card: PriceCard, batched: set[str]) -> dict[tuple[str, str, int], Cost]:
    once, half = CardPricing(card), CardPricing(card, batch=True)
    costs: dict[tuple[str, str, int], Cost] = {}

    def cell_of(step: Step) -> tuple[str, str, int]:
        return step.item, step.candidate, step.sample

    mine = [step for step in ledger.steps() if step.purpose == "candidate"]
    for cell, steps in groupby(mine, cell_of):
        records = []
        for step in steps:
            request = request_from(ledger.request(step.key) or {})
            attempts = ledger.attempts(step.key)
            priced = tuple(_priced(one, (half if one.run in batched else once), request) for one in attempts)
            records.append(StepRecord(step.key, request, priced))
        complete = isinstance(records[-1].result, Reply)
        whole = Cell(*cell, first=records[0].request)
        costs[cell] = CellRecord(whole, tuple(records), complete).cost
    return costs


def _priced(attempt: Attempt, pricing: CardPricing, request: Any) -> Attempt:
    """The attempt at the prices of the card instead of those when it was made."""
    result = attempt.result
    if not isinstance(result, Reply | Failure):
        return replace(attempt, cost_usd=None)
    cost = pricing.cost(request, result)
    return replace(attempt, cost_usd=cost.usd, cost_reason=cost.reason)
