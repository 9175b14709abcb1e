"""The direction of a path over several thresholds, found on items that do not certify it."""

from __future__ import annotations

import numpy as np

from evalkit.routing.data import Floats
from evalkit.routing.points import ItemMeasures
from evalkit.routing.sweep import sweep_of

__all__ = ["target_thresholds"]

ROUNDS = 8


def target_thresholds(measures: ItemMeasures) -> tuple[float, ...] | None:
    """The K - 1 demand thresholds of least expected total on these items; None where a cost is unknown.

    One score for all tiers: exact, by the prefix-minimum dynamic programme over ordered thresholds. One score a
    tier: coordinate descent from "everything up", each step exact in its own threshold.
    """
    total, demand = measures.expected_total_usd, measures.data.demand
    if total is None or demand is None or np.isnan(total).any() or len(demand) == 0:
        return None
    weighted = total * measures.data.weight[:, None]
    return _one_score(weighted, demand) if demand.ndim == 1 else _score_per_tier(weighted, demand)


def _one_score(total: Floats, demand: Floats) -> tuple[float, ...]:
    from evalkit.statistics.multitier import ordered_minimum

    sweep = sweep_of(demand)
    gains = np.stack([sweep.cumulative(total[:, j + 1] - total[:, j]) for j in range(total.shape[1] - 1)])
    # Candidates run from the highest threshold down; reversed, thresholds are non-decreasing over the boundaries.
    _, chosen = ordered_minimum(gains[:, ::-1])
    ascending = sweep.levels[::-1]
    return tuple(float(ascending[i]) for i in chosen)


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
