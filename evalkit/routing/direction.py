"""The direction of a path over several thresholds, found on items that do not certify it."""

from __future__ import annotations

import numpy as np

from evalkit.routing.certify import P95_SLOW_SHARE, slow_share
from evalkit.routing.data import Floats
from evalkit.routing.points import ItemMeasures
from evalkit.routing.sweep import Sweep, sweep_of
from evalkit.statistics.multitier import constrained_minimum, ordered_minimum

__all__ = ["target_thresholds"]

ROUNDS = 8
# Candidate thresholds of the constrained search by number of tiers; with more distinct scores, their quantiles.
GRID = {3: 1024, 4: 256}
GRID_BEYOND = 64


def target_thresholds(measures: ItemMeasures) -> tuple[float, ...] | None:
    """The K - 1 demand thresholds of least expected total on these items; None where a cost is unknown.

    One score for all tiers: among the thresholds that keep every limit as observed, exactly (on quantiles of the
    scores where there are more than the grid holds); where none does, without the limits. One score a tier:
    coordinate descent from "everything up", each step exact in its own threshold.
    """
    total, demand = measures.expected_total_usd, measures.data.demand
    if total is None or demand is None or np.isnan(total).any() or len(demand) == 0:
        return None
    weighted = total * measures.data.weight[:, None]
    return _one_score(measures, weighted, demand) if demand.ndim == 1 else _score_per_tier(weighted, demand)


class _Along:
    """Per-boundary sums at ascending candidate thresholds, thinned to the grid."""

    def __init__(self, sweep: Sweep, tiers: int) -> None:
        self.sweep = sweep
        size = GRID.get(tiers, GRID_BEYOND)
        places = np.unique(np.round(np.linspace(0, len(sweep) - 1, min(size, len(sweep)))).astype(np.int64))
        self.places = places[::-1]  # candidates run from the highest threshold down
        self.thresholds = sweep.levels[self.places]

    def rows(self, values: Floats) -> Floats:
        """(K - 1, m) what passing each boundary adds, over the items that pass it."""
        steps = np.diff(values, axis=1)
        return np.stack([self.sweep.cumulative(np.ascontiguousarray(s))[self.places] for s in steps.T])


def _one_score(measures: ItemMeasures, total: Floats, demand: Floats) -> tuple[float, ...] | None:
    along = _Along(sweep_of(demand), total.shape[1])
    gains = along.rows(total)
    constraints, limits = _limits(measures, along)
    found = constrained_minimum(gains, np.stack(constraints), np.array(limits)) if constraints else None
    if found is None:
        found = ordered_minimum(gains)
    return None if found is None else tuple(float(along.thresholds[i]) for i in found[1])


def _limits(measures: ItemMeasures, along: _Along) -> tuple[list[Floats], list[float]]:
    """Every limit of the study as a sum over boundaries that must stay below a number."""
    data, settings = measures.data, measures.settings
    w = data.weight[:, None]
    constraints: list[Floats] = []
    limits: list[float] = []

    def at_most(values: Floats, most: float) -> None:
        base = float(values[:, 0].sum())
        constraints.append(along.rows(values))
        limits.append(most - base + 1e-9 * max(1.0, abs(most)))

    for r, rule in enumerate(settings.classes):
        of_class = data.needs & (data.risk == r)
        if rule.limit is not None and of_class.any():
            share = data.weight * of_class
            at_most(measures.under * share[:, None], rule.limit * float(share.sum()))
    bounds = settings.limits
    if bounds.min_pass_rate is not None and data.passed is not None:
        at_most((1.0 - data.passed) * w, (1.0 - bounds.min_pass_rate) * data.n)
    if bounds.max_escalation is not None:
        up = np.ones((data.n, data.k))
        up[:, 0] = 0.0
        at_most(up * w, bounds.max_escalation * data.n)
    if bounds.p95_task_s is not None:
        slow = slow_share(measures, bounds.p95_task_s)
        if slow is not None:
            at_most(slow * w, P95_SLOW_SHARE * data.n)
    if bounds.max_cost_per_request_usd is not None and measures.costs.usd is not None:
        at_most(measures.costs.usd * w, bounds.max_cost_per_request_usd * data.n)
    return constraints, limits


def _score_per_tier(total: Floats, demand: Floats) -> tuple[float, ...]:
    width = demand.shape[1]
    thresholds = np.full(width, -np.inf)
    for _ in range(ROUNDS):
        before = thresholds.copy()
        for j in range(width):
            arrives = np.all(demand[:, :j] >= thresholds[:j], axis=1)
            after = np.full(len(demand), width)  # the tier an item ends at once it passes boundary j
            for later in range(width - 1, j, -1):
                after = np.where(demand[:, later] >= thresholds[later], after, later)
            here = total[arrives, j]
            up = total[arrives, after[arrives]]
            if not arrives.any():
                continue
            sweep = sweep_of(demand[arrives, j])
            goal = sweep.cumulative(np.ascontiguousarray(up - here))
            thresholds[j] = sweep.levels[int(np.argmin(goal))]
        if np.array_equal(before, thresholds):
            break
    return tuple(float(t) for t in thresholds)
