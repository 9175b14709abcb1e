"""Nearest-rank percentiles of task time at many points of a path, without sorting at each point."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalkit.routing.data import RoutingData
from evalkit.routing.policies import PathCosts

__all__ = ["PercentilePoint", "percentiles_along"]


@dataclass(frozen=True)
class PercentilePoint:
    """A percentile of answered samples. n: samples ranked; unanswered: samples without a reply at this point;
    unknown: answered samples without a time (then the value is None)."""

    value: float | None
    n: int
    unanswered: int
    unknown: int


def percentiles_along(
    data: RoutingData, costs: PathCosts, buckets: NDArray[np.int32], points: int, q: float, bins: int = 1024
) -> list[PercentilePoint] | None:
    """The q-quantile (0 < q < 1) of path seconds, weighted by traffic, at each point; None without times.

    Nearest rank: the least value at or below which at least the share q of the weight lies. A coarse histogram
    over (point, time) finds the bin that holds it; the entries of that one bin are then ranked exactly.
    """
    if costs.task_s is None or data.replied is None:
        return None
    n, k, samples = costs.task_s.shape
    first = np.zeros((n, k), dtype=np.int64)  # a tier is the final one at points first <= p < past
    first[:, 1:] = buckets
    past = np.full((n, k), points, dtype=np.int64)
    past[:, :-1] = buckets
    live = (first < past)[:, :, None]
    sampled = np.ones((n, k, samples), dtype=bool) if data.sampled is None else data.sampled
    share = data.weight[:, None, None] / np.maximum(sampled.sum(axis=2, keepdims=True), 1)
    replied = data.replied & sampled & live
    known = replied & ~np.isnan(costs.task_s)
    out_of_time = _active(first, past, points, (sampled & ~data.replied & live).sum(axis=2))
    unknown = _active(first, past, points, (replied & ~known).sum(axis=2))
    ranked = _active(first, past, points, known.sum(axis=2))
    item, tier, sample = np.nonzero(known)
    value = costs.task_s[item, tier, sample]
    weight = np.broadcast_to(share, known.shape)[item, tier, sample]
    start, stop = first[item, tier], past[item, tier]
    if len(value) == 0:
        return [PercentilePoint(None, 0, int(out_of_time[p]), int(unknown[p])) for p in range(points)]
    edges = np.unique(np.quantile(value, np.linspace(0, 1, bins + 1)[1:], method="inverted_cdf"))
    place = np.searchsorted(edges, value, side="left")
    table = np.zeros((points + 1) * len(edges))
    table += np.bincount(start * len(edges) + place, weights=weight, minlength=len(table))
    table -= np.bincount(stop * len(edges) + place, weights=weight, minlength=len(table))
    mass = np.cumsum(table.reshape(points + 1, len(edges))[:points], axis=0)
    mass[np.abs(mass) < 1e-9] = 0.0
    running = np.cumsum(mass, axis=1)
    order = np.lexsort((value, place))
    bin_start = np.searchsorted(place[order], np.arange(len(edges)), side="left")
    bin_stop = np.searchsorted(place[order], np.arange(len(edges)), side="right")
    out = []
    for p in range(points):
        total = running[p, -1]
        if ranked[p] == 0 or total <= 0 or unknown[p]:
            out.append(PercentilePoint(None, int(ranked[p]), int(out_of_time[p]), int(unknown[p])))
            continue
        target = q * total - 1e-9 * total
        b = int(np.searchsorted(running[p], target, side="left"))
        below = running[p, b - 1] if b else 0.0
        entries = order[bin_start[b] : bin_stop[b]]
        entries = entries[(start[entries] <= p) & (p < stop[entries])]
        within = below + np.cumsum(weight[entries])
        at = min(int(np.searchsorted(within, target, side="left")), len(entries) - 1)
        out.append(
            PercentilePoint(float(value[entries[at]]), int(ranked[p]), int(out_of_time[p]), int(unknown[p]))
        )
    return out


def _active(
    first: NDArray[np.int64], past: NDArray[np.int64], points: int, amount: NDArray[np.int64]
) -> NDArray[np.float64]:
    """(P,) sum of `amount` (N, K) over the final tiers at each point."""
    weights = amount.ravel().astype(np.float64)
    table = np.bincount(first.ravel(), weights=weights, minlength=points + 1)
    table -= np.bincount(past.ravel(), weights=weights, minlength=points + 1)
    return np.asarray(np.cumsum(table)[:points], dtype=np.float64)
