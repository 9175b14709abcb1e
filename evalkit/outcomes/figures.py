"""Figures of recorded outcomes by themselves, without a router: who passes what, and at what cost."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evalkit.outcomes.rates import PassRate, pass_rate
from evalkit.outcomes.table import Outcomes

__all__ = ["OracleShare", "PassTable", "TierTotals", "item_passes", "oracle_share", "pass_table", "tier_totals"]


@dataclass(frozen=True, slots=True)
class OracleShare:
    """`solved`: share of items that some tier passes. `by_tier`: share of items sent to each tier by an oracle
    that takes the least tier that passes, and the cheapest where none does."""

    solved: float
    by_tier: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class PassTable:
    """Items by which of two tiers pass them."""

    both: int
    weak_only: int
    strong_only: int
    neither: int


@dataclass(frozen=True, slots=True)
class TierTotals:
    """One tier on all items. Costs are None where one of the `unknown_costs` items has no known cost."""

    items: int
    pass_rate: PassRate
    cost_usd_total: float | None
    cost_usd_per_request: float | None
    unknown_costs: int


def item_passes(outcomes: Outcomes) -> npt.NDArray[np.bool_]:
    """(N, K) whether a tier passes an item: there are samples and every one passed; unanswered is no pass."""
    return np.asarray((outcomes.samples > 0) & (outcomes.passed.sum(axis=2) == outcomes.samples))


def oracle_share(outcomes: Outcomes) -> OracleShare:
    """What an oracle over the tiers solves, and the share of items it sends to each tier."""
    passes = item_passes(outcomes)
    n = len(passes)
    if n == 0:
        raise ValueError("The `outcomes` parameter of `oracle_share` must have items. Got 0 instead.")
    taken = np.where(passes.any(axis=1), passes.argmax(axis=1), 0)
    share = np.bincount(taken, minlength=passes.shape[1]) / n
    return OracleShare(float(passes.any(axis=1).mean()), tuple(float(s) for s in share))


def pass_table(outcomes: Outcomes, weak: int, strong: int) -> PassTable:
    """Counts of items by which of the tiers `weak` and `strong` (positions) pass them."""
    passes = item_passes(outcomes)
    a, b = passes[:, weak], passes[:, strong]
    return PassTable(int((a & b).sum()), int((a & ~b).sum()), int((~a & b).sum()), int((~a & ~b).sum()))


def tier_totals(outcomes: Outcomes, tier: int) -> TierTotals:
    """Pass rate and cost of sending every item to `tier`; an item's cost is the mean over its samples."""
    cost = outcomes.cost_usd[:, tier]
    present = outcomes.status[:, tier] >= 0
    k = outcomes.samples[:, tier]
    known = (k > 0) & ~(np.isnan(cost) & present).any(axis=1)
    unknown = int((~known).sum())
    n = len(outcomes.ids)
    total = None
    if unknown == 0 and n:
        sums = np.where(present, np.nan_to_num(cost), 0.0).sum(axis=1) / k
        total = math.fsum(sums.tolist())
    return TierTotals(n, pass_rate(outcomes, tier), total, None if total is None else total / n, unknown)
