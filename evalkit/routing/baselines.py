"""What a router is compared with: fixed arms, a random mix, a look-up by category, and the oracle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from evalkit.routing.data import Floats, RoutingData, Settings
from evalkit.routing.folds import group_folds
from evalkit.routing.percentile_path import PercentilePoint
from evalkit.routing.points import (
    ItemMeasures,
    OperatingPoint,
    RiskFigures,
    buckets_of_tier,
    clean,
    evaluate,
    item_measures,
)
from evalkit.routing.policies import path_costs
from evalkit.statistics.percentiles import percentile

__all__ = ["Baseline", "baselines_of", "category_tiers", "oracle_tiers", "point_of_tiers"]


@dataclass(frozen=True)
class Baseline:
    """A policy of comparison. Per item (N,), None where unknown: expected total, cost, and pass (lower)."""

    name: str
    point: OperatingPoint
    expected_total_usd: Floats | None
    cost_usd: Floats | None
    passed: Floats | None


def point_of_tiers(measures: ItemMeasures, tier: NDArray[np.int8], name: str) -> Baseline:
    """The operating point and per-item figures of sending item i to `tier[i]`."""
    point = evaluate(measures, buckets_of_tier(tier, measures.data.k), [name], [()])[0]
    return Baseline(
        name,
        point,
        _at(measures.expected_total_usd, tier),
        _at(measures.costs.usd, tier),
        _at(measures.data.passed, tier),
    )


def oracle_tiers(data: RoutingData) -> NDArray[np.int8] | None:
    """(N,) the least-cost tier that passes; nobody passes: the cheapest tier. Tier order decides equal and unknown
    costs. With several samples a tier passes when at least half of them do. None without outcomes."""
    if data.passed is None:
        return None
    passes = data.passed >= 0.5
    rank = np.tile(np.arange(data.k, dtype=np.float64), (data.n, 1))
    if data.tier_cost_usd is not None and not np.isnan(data.tier_cost_usd).any():
        rank = data.tier_cost_usd
    best = np.argmin(np.where(passes, rank, np.inf), axis=1)
    return np.where(passes.any(axis=1), best, 0).astype(np.int8)


def baselines_of(
    data: RoutingData,
    settings: Settings,
    router: Baseline | None,
    other: ItemMeasures | None = None,
    router_tiers: NDArray[np.int8] | None = None,
) -> dict[str, Baseline]:
    """Every baseline that the data allow, by name.

    router: the judged policy, whose cost the random mix matches. other: the same routing under the other policy
    (a cascade beside a direct router, or the reverse), with `router_tiers`.
    """
    fixed = item_measures(data, settings, path_costs(data, settings, "direct", overhead=False))
    out: dict[str, Baseline] = {}
    for j, name in enumerate(data.tiers):
        out[f"always:{name}"] = point_of_tiers(fixed, np.full(data.n, j, dtype=np.int8), f"always:{name}")
    if router is not None and router.point.cost_usd_per_request is not None:
        mix = _cost_matched_mix(fixed, list(out.values()), router.point.cost_usd_per_request)
        if mix is not None:
            out["random_mix"] = mix
    looked_up = category_tiers(fixed, settings)
    if looked_up is not None:
        out["category_lookup"] = point_of_tiers(fixed, looked_up, "category_lookup")
    best = oracle_tiers(data)
    if best is not None:
        out["oracle"] = point_of_tiers(fixed, best, "oracle")
    if other is not None and router_tiers is not None:
        name = other.costs.policy
        out[name] = point_of_tiers(other, router_tiers, name)
    return out


def _at(values: Floats | None, tier: NDArray[np.int8]) -> Floats | None:
    return None if values is None else np.take_along_axis(values, tier[:, None].astype(np.int64), axis=1)[:, 0]


def category_tiers(fixed: ItemMeasures, settings: Settings) -> NDArray[np.int8] | None:
    """(N,) by 10 group folds: the tier of least mean expected total in the item's category on the other folds."""
    data, total = fixed.data, fixed.expected_total_usd
    if data.category is None or total is None or np.isnan(total).any():
        return None
    codes, category = np.unique(data.category, return_inverse=True)
    fold = group_folds(data, settings.seed)
    tier = np.full(data.n, data.k - 1, dtype=np.int8)
    for f in range(int(fold.max()) + 1):
        train, held = fold != f, fold == f
        sums = np.stack(
            [
                np.bincount(category[train], weights=(total[:, j] * data.weight)[train], minlength=len(codes))
                for j in range(data.k)
            ]
        )
        seen = np.bincount(category[train], minlength=len(codes)) > 0
        choice = np.where(seen, np.argmin(sums, axis=0), data.k - 1)
        tier[held] = choice[category[held]]
    return tier


def _cost_matched_mix(fixed: ItemMeasures, arms: list[Baseline], cost_usd: float) -> Baseline | None:
    """The random mix of at most two arms with the given mean cost and the least expected total.

    Where the cost lies outside what the arms span, the nearest arm by itself."""
    costs = [arm.point.cost_usd_per_request for arm in arms]
    totals = [arm.point.expected_total_usd for arm in arms]
    if any(c is None for c in costs) or any(t is None for t in totals):
        return None
    c = np.array(costs, dtype=np.float64)
    t = np.array(totals, dtype=np.float64)
    target = min(max(cost_usd, float(c.min())), float(c.max()))
    best: tuple[float, int, int, float] | None = None
    for a, b in _pairs(c, target):
        share = 0.0 if c[b] == c[a] else float((target - c[a]) / (c[b] - c[a]))
        total = float((1 - share) * t[a] + share * t[b])
        if best is None or total < best[0]:
            best = (total, a, b, share)
    assert best is not None  # the target lies inside the span of the arms
    _, a, b, share = best
    return _blend(fixed, arms[a], arms[b], a, b, share)


def _pairs(costs: Floats, target: float) -> Iterator[tuple[int, int]]:
    for a in range(len(costs)):
        for b in range(len(costs)):
            if costs[a] <= target <= costs[b]:
                yield a, b


def _blend(fixed: ItemMeasures, a: Baseline, b: Baseline, tier_a: int, tier_b: int, share: float) -> Baseline:
    """What sending a random `share` of the requests to arm b and the rest to arm a is expected to give."""

    def mixed(x: object, y: object) -> object:
        if x is None or y is None:
            return None
        if isinstance(x, tuple) and isinstance(y, tuple):
            return tuple(mixed(u, v) for u, v in zip(x, y, strict=True))
        if isinstance(x, RiskFigures) and isinstance(y, RiskFigures):
            return RiskFigures(*(mixed(getattr(x, f.name), getattr(y, f.name)) for f in fields(x)))  # type: ignore[arg-type]
        if isinstance(x, int | float) and isinstance(y, int | float):
            return x if x == y else clean((1 - share) * x + share * y)
        return x

    values = {f.name: mixed(getattr(a.point, f.name), getattr(b.point, f.name)) for f in fields(a.point)}
    values |= {"name": "random_mix", "thresholds": (), "p95_task": _mixed_p95(fixed, tier_a, tier_b, share)}
    point = replace(a.point, **values)  # type: ignore[arg-type]

    def items(x: Floats | None, y: Floats | None) -> Floats | None:
        return None if x is None or y is None else (1 - share) * x + share * y

    return Baseline(
        "random_mix",
        point,
        items(a.expected_total_usd, b.expected_total_usd),
        items(a.cost_usd, b.cost_usd),
        items(a.passed, b.passed),
    )


def _mixed_p95(fixed: ItemMeasures, tier_a: int, tier_b: int, share: float) -> PercentilePoint | None:
    data, task = fixed.data, fixed.costs.task_s
    if task is None or data.replied is None:
        return None
    sampled = np.ones(task.shape, dtype=bool) if data.sampled is None else data.sampled
    per_sample = data.weight[:, None, None] / np.maximum(sampled.sum(axis=2, keepdims=True), 1)
    per_sample = np.broadcast_to(per_sample, task.shape)
    values, weights, unanswered, unknown = [], [], 0, 0
    for tier, part in ((tier_a, 1 - share), (tier_b, share)):
        if part <= 0:
            continue
        replied = data.replied[:, tier] & sampled[:, tier]
        known = replied & ~np.isnan(task[:, tier])
        unanswered += int((sampled[:, tier] & ~replied).sum())
        unknown += int((replied & ~known).sum())
        values.append(task[:, tier][known])
        weights.append(per_sample[:, tier][known] * part)
    ranked = np.concatenate(values)
    value = None if unknown else percentile(ranked, 0.95, np.concatenate(weights))
    return PercentilePoint(value, len(ranked), unanswered, unknown)
