"""Operating points: every figure of one way to send the items, computed for many thresholds at once.

All figures but percentiles are sums over items of a function of the tier an item ends at, so one histogram a
boundary over the points serves each of them. One formula a figure stands here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalkit.routing.data import Floats, RoutingData, Settings
from evalkit.routing.percentile_path import PercentilePoint, percentiles_along
from evalkit.routing.policies import PathCosts
from evalkit.statistics.rounding import clean

__all__ = [
    "ItemMeasures",
    "OperatingPoint",
    "RiskFigures",
    "buckets_of",
    "buckets_of_tier",
    "clean",
    "evaluate",
    "item_measures",
]

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class RiskFigures:
    """One risk class at one operating point; counts are of items, unweighted."""

    needs: int
    under_route_count: int
    under_route_rate: float | None
    confusion: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class OperatingPoint:
    """One operating point. USD and rates of requests are weighted by traffic (weights of mean 1); counts,
    confusion and under-route rates are not. None is unknown or undefined, never zero."""

    name: str
    thresholds: tuple[float, ...]
    escalation_rate: float
    under_route_count: int
    under_route_rate: float | None
    risk_weighted_under_route: float | None
    unnecessary_escalation_count: int
    contract_failure_count: float | None
    under_route_loss_usd: float
    unnecessary_escalation_usd: float | None
    contract_loss_usd: float | None
    routing_loss_usd: float | None
    expected_total_usd: float | None
    cost_usd_total: float | None
    cost_usd_per_request: float | None
    saving_usd_vs_strongest: float | None
    saving_on_unsolvable_usd: float | None
    pass_rate: float | None
    pass_rate_lower: float | None
    pass_rate_upper: float | None
    p95_task: PercentilePoint | None
    by_risk: tuple[RiskFigures, ...]
    confusion: tuple[tuple[float, ...], ...]
    confusion_weighted: tuple[tuple[float, ...], ...]
    confusion_loss_usd: tuple[tuple[float | None, ...], ...]
    accuracy: float | None


@dataclass(frozen=True)
class ItemMeasures:
    """Per item and final tier (N, K), traffic weight not yet applied; None where outcomes or costs are missing.

    under (N, K): routed below the required tier. over (N, K): routed above it without need.
    excess_usd: what an unnecessary escalation costs above the required tier's path (cheapest if unsolvable).
    expected_total_usd = usd + under_loss_usd + contract_usd.
    """

    data: RoutingData
    settings: Settings
    costs: PathCosts
    under: NDArray[np.bool_]
    over: NDArray[np.bool_]
    under_loss_usd: Floats
    excess_usd: Floats | None
    contract_usd: Floats | None
    expected_total_usd: Floats | None
    strongest_usd: Floats | None

    @property
    def routing_loss_usd(self) -> Floats | None:
        """(N, K) what an item adds to the routing loss."""
        if self.excess_usd is None or self.contract_usd is None:
            return None
        return self.under_loss_usd + self.excess_usd + self.contract_usd


def item_measures(data: RoutingData, settings: Settings, costs: PathCosts) -> ItemMeasures:
    """The loss and cost of every item at every tier, by the formulas that the whole product shares."""
    k = data.k
    tier = np.arange(k, dtype=np.int8)[None, :]
    required = data.required[:, None]
    under = (tier < required) & (required < k)
    floor = np.where(data.required < k, data.required, 0)
    over = tier > floor[:, None]
    loss = np.array([c.under_route_loss_usd for c in settings.classes])
    under_loss = under * loss[data.risk][:, None]
    contract = None
    if data.contract_failed is not None:
        contract = data.contract_failed * settings.contract_failure_cost_usd
    elif settings.contract_failure_cost_usd == 0:
        contract = np.zeros((data.n, k))  # whatever broke, it costs nothing
    excess = total = None
    if costs.usd is not None:
        needed = np.take_along_axis(costs.usd, floor[:, None].astype(np.int64), axis=1)
        excess = np.where(over, costs.usd - needed, 0.0)
        if contract is not None:
            total = costs.usd + under_loss + contract
    strongest = None if data.tier_cost_usd is None else data.tier_cost_usd[:, -1]
    return ItemMeasures(data, settings, costs, under, over, under_loss, excess, contract, total, strongest)


def buckets_of(levels: Floats, chosen: Sequence[float]) -> NDArray[np.int32]:
    """(N, K - 1) index of the first of the descending levels `chosen` at which an item passes each boundary;
    len(chosen) where it never does."""
    ascending = -np.asarray(chosen, dtype=np.float64)
    out = np.searchsorted(ascending, -levels.ravel(), side="left").reshape(levels.shape).astype(np.int32)
    out[levels == -np.inf] = len(chosen)
    return out


def buckets_of_tier(tier: NDArray[np.integer[Any]], tiers: int) -> NDArray[np.int32]:
    """(N, K - 1) buckets of a single point at which item i ends at `tier[i]`."""
    return np.asarray(tier[:, None] <= np.arange(tiers - 1), dtype=np.int32)


class _Along:
    """Sums of per-item functions of the final tier, at every point."""

    def __init__(self, buckets: NDArray[np.int32], points: int) -> None:
        self.buckets = buckets
        self.points = points

    def total(self, values: Floats) -> Floats:
        """(P,) sum over items of `values[i, tier of i]`; NaN at the points where one of these is NaN."""
        unknown = np.isnan(values)
        if unknown.any():
            out = self.total(np.where(unknown, 0.0, values))
            out[self.total(unknown.astype(np.float64)) > 0.5] = np.nan
            return out
        out = np.full(self.points, float(values[:, 0].sum()))
        scale = float(np.abs(values).sum())
        for j in range(self.buckets.shape[1]):
            step = values[:, j + 1] - values[:, j]
            added = np.bincount(self.buckets[:, j], weights=step, minlength=self.points + 1)
            out += np.cumsum(added[: self.points])
        out[np.abs(out) < 1e-13 * scale] = 0.0  # what cancels exactly must read as zero
        return out

    def cells(self, codes: NDArray[np.int64], wanted: int, weights: Floats | None, tiers: int) -> Floats:
        """(P, wanted, tiers) how much of each code ends at each tier."""
        reach = np.empty((self.points, wanted, tiers))
        base = np.bincount(codes, weights=weights, minlength=wanted)
        reach[:, :, 0] = base
        for j in range(self.buckets.shape[1]):
            joint = self.buckets[:, j].astype(np.int64) * wanted + codes
            added = np.bincount(joint, weights=weights, minlength=(self.points + 1) * wanted)
            reach[:, :, j + 1] = np.cumsum(added.reshape(self.points + 1, wanted)[: self.points], axis=0)
        out = reach.copy()
        out[:, :, :-1] -= reach[:, :, 1:]
        if weights is not None:
            out[np.abs(out) < 1e-13 * max(1.0, float(base.sum()))] = 0.0
        return out


def evaluate(
    measures: ItemMeasures,
    buckets: NDArray[np.int32],
    names: Sequence[str],
    thresholds: Sequence[tuple[float, ...]],
) -> list[OperatingPoint]:
    """The operating points with the given names and (user-facing) thresholds; `buckets` as from `buckets_of`."""
    data, settings, costs = measures.data, measures.settings, measures.costs
    n, k, risks = data.n, data.k, len(data.risk_classes)
    points = len(names)
    along = _Along(buckets, points)
    w = data.weight[:, None]

    cell = data.risk.astype(np.int64) * (k + 1) + data.required
    counts = along.cells(cell, risks * (k + 1), None, k).reshape(points, risks, k + 1, k)
    weighted = along.cells(data.required.astype(np.int64), k + 1, data.weight, k)
    under_cells = np.tril(np.ones((k + 1, k), dtype=bool), -1)
    under_cells[k] = False
    over_cells = np.triu(np.ones((k + 1, k), dtype=bool), 1)
    over_cells[k] = np.arange(k) > 0
    needs = counts[0, :, 1:k, :].sum(axis=(1, 2))
    under_by_risk = (counts * under_cells).sum(axis=(2, 3))
    weights_by_risk = np.array([c.weight for c in settings.classes])
    risk_total = float((counts[0, :, :k, :].sum(axis=(1, 2)) * weights_by_risk).sum())
    solvable = float(counts[0, :, :k, :].sum())

    escalated = weighted[:, :, 1:].sum(axis=(1, 2)) / n
    under_loss = along.total(measures.under_loss_usd * w)
    cost = None if costs.usd is None else along.total(costs.usd * w)
    excess = None if measures.excess_usd is None else along.total(measures.excess_usd * w)
    contract = None if measures.contract_usd is None else along.total(measures.contract_usd * w)
    failures = None if data.contract_failed is None else along.total(data.contract_failed)
    passed = None if data.passed is None else along.total(data.passed * w)
    answered = None if data.answered is None else along.total(data.answered * w)
    loss_cells = _loss_cells(measures, along, k)
    saving_unsolvable = strongest = None
    if measures.strongest_usd is not None and costs.usd is not None:
        strongest = float((measures.strongest_usd * data.weight).sum())
        lost = data.required == k
        saved = np.where(lost[:, None], (measures.strongest_usd[:, None] - costs.usd) * w, 0.0)
        saving_unsolvable = along.total(saved)
    p95 = percentiles_along(data, costs, buckets, points, 0.95)

    out = []
    for p in range(points):
        totals = [None if a is None else _known(a[p]) for a in (cost, excess, contract, passed, answered)]
        cost_p, excess_p, contract_p, passed_p, answered_p = totals
        under_p = float(under_loss[p])
        loss_p = None if excess_p is None or contract_p is None else under_p + excess_p + contract_p
        total_p = None if cost_p is None or contract_p is None else cost_p + under_p + contract_p
        out.append(
            OperatingPoint(
                name=names[p],
                thresholds=tuple(thresholds[p]),
                escalation_rate=clean(escalated[p]),
                under_route_count=int(under_by_risk[p].sum()),
                under_route_rate=_ratio(float(under_by_risk[p].sum()), float(needs.sum())),
                risk_weighted_under_route=_ratio(float(under_by_risk[p] @ weights_by_risk), risk_total),
                unnecessary_escalation_count=int((counts[p] * over_cells).sum()),
                contract_failure_count=None if failures is None else clean(failures[p]),
                under_route_loss_usd=clean(under_p),
                unnecessary_escalation_usd=clean(excess_p),
                contract_loss_usd=clean(contract_p),
                routing_loss_usd=clean(loss_p),
                expected_total_usd=clean(total_p),
                cost_usd_total=clean(cost_p),
                cost_usd_per_request=None if cost_p is None else clean(cost_p / n),
                saving_usd_vs_strongest=None
                if cost_p is None or strongest is None or np.isnan(strongest)
                else clean(strongest - cost_p),
                saving_on_unsolvable_usd=None
                if saving_unsolvable is None
                else clean(_known(saving_unsolvable[p])),
                pass_rate=None if passed_p is None or not answered_p else clean(passed_p / answered_p),
                pass_rate_lower=None if passed_p is None else clean(passed_p / n),
                pass_rate_upper=None
                if passed_p is None or answered_p is None
                else clean((passed_p + n - answered_p) / n),
                p95_task=None if p95 is None else p95[p],
                by_risk=tuple(
                    RiskFigures(
                        int(needs[r]),
                        int(under_by_risk[p, r]),
                        _ratio(float(under_by_risk[p, r]), float(needs[r])),
                        tuple(tuple(int(c) for c in row) for row in counts[p, r]),
                    )
                    for r in range(risks)
                ),
                confusion=tuple(tuple(int(c) for c in row) for row in counts[p].sum(axis=0)),
                confusion_weighted=tuple(tuple(clean(c) for c in row) for row in weighted[p]),
                confusion_loss_usd=tuple(tuple(clean(_known(c)) for c in row) for row in loss_cells[p]),
                accuracy=_ratio(float(np.trace(counts[p].sum(axis=0)[:k])), solvable),
            )
        )
    return out


def _loss_cells(measures: ItemMeasures, along: _Along, k: int) -> Floats:
    """(P, K + 1, K) under-route loss and excess cost by required and routed tier, traffic-weighted; NaN where the
    excess of an item in the cell is unknown."""
    data = measures.data
    loss = measures.under_loss_usd
    unknown = np.zeros(loss.shape, dtype=bool)
    if measures.excess_usd is not None:
        unknown = np.isnan(measures.excess_usd)
        loss = loss + np.where(unknown, 0.0, measures.excess_usd)
    loss = loss * data.weight[:, None]
    out = _by_cell(loss, data.required, along, k)
    out[np.abs(out) < 1e-13 * max(float(np.abs(loss).sum()), 1e-300)] = 0.0
    if measures.excess_usd is None:  # without costs only the cells on and below the diagonal are known
        out[:, np.triu(np.ones((k + 1, k), dtype=bool), 1)] = np.nan
        out[:, k, 1:] = np.nan
    elif unknown.any():
        out[_by_cell(unknown.astype(np.float64), data.required, along, k) > 0.5] = np.nan
    return out


def _by_cell(values: Floats, required: NDArray[np.int8], along: _Along, k: int) -> Floats:
    """(P, K + 1, K) sums of `values[i, tier of i]` by required tier and the tier the item ends at."""
    out = np.zeros((along.points, k + 1, k))
    for tier in range(k):
        at = values[:, tier]
        for edge, sign in ((tier - 1, 1.0), (tier, -1.0)):
            if edge == k - 1:
                continue
            if edge < 0:
                out[:, :, tier] += np.bincount(required, weights=at, minlength=k + 1)
                continue
            joint = along.buckets[:, edge].astype(np.int64) * (k + 1) + required
            added = np.bincount(joint, weights=at, minlength=(along.points + 1) * (k + 1))
            out[:, :, tier] += sign * np.cumsum(added.reshape(-1, k + 1)[: along.points], axis=0)
    return out


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _ratio(part: float, whole: float) -> float | None:
    return None if whole == 0 else clean(part / whole)
