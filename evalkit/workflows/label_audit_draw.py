"""Which items an audit of the labels is drawn from, at which point; drawn again from its seed it is the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalkit.labels.audit import ClassCounts, draw_ids
from evalkit.routing.certify import class_units
from evalkit.routing.data import Floats, RoutingData
from evalkit.routing.path import fixed_path
from evalkit.routing.policies import routed_tier
from evalkit.routing.search import certifying_items
from evalkit.routing.units import demand_threshold
from evalkit.statistics.bounds import effective_n
from evalkit.study.models import RoutingStudy

__all__ = ["AuditPoint", "Drawn", "draw_classes", "point_at", "point_everywhere"]


@dataclass(frozen=True)
class AuditPoint:
    """The point that is audited: thresholds in the user's units (None for decisions, and for all cheap labels),
    what each item is routed to, and which items certify. everywhere: nothing is taken to go up, so that what is
    found holds at every threshold of every router."""

    thresholds: tuple[float, ...] | None
    tier: NDArray[np.int8]
    levels: Floats
    certifying: NDArray[np.bool_]
    everywhere: bool = False


@dataclass(frozen=True)
class Drawn:
    """What was drawn of one risk class: `ids` of those labelled cheap, `need_ids` of the `need_labels` that are
    labelled as needs."""

    counts: ClassCounts
    ids: tuple[str, ...]
    need_labels: int = 0
    need_ids: tuple[str, ...] = ()


def _certifying(study: RoutingStudy, data: RoutingData, *, fixed: bool) -> NDArray[np.bool_]:
    mask = None if fixed or study.router.thresholds is not None else certifying_items(data)
    return np.ones(data.n, dtype=bool) if mask is None else mask


def point_everywhere(study: RoutingStudy, data: RoutingData) -> AuditPoint:
    """All items labelled with the cheapest tier, wherever a router sends them; those that certify, and all where a
    router is fixed in advance, since it is certified on all."""
    fixed = any(r.decisions is not None or r.thresholds is not None for r in study.all_routers)
    certifying = _certifying(study, data, fixed=fixed)
    return AuditPoint(None, np.zeros(data.n, dtype=np.int8), np.ones((data.n, data.k - 1)), certifying, True)


def point_at(
    study: RoutingStudy,
    data: RoutingData,
    thresholds: Sequence[float] | None,
    decisions: Sequence[int] | NDArray[np.int8] | None = None,
) -> AuditPoint:
    """The point of thresholds (K - 1, the user's units), or of decisions (N,)."""
    if decisions is not None:
        tier = np.asarray(decisions, dtype=np.int8)
        levels = (tier[:, None] > np.arange(data.k - 1)).astype(np.float64)
        return AuditPoint(None, tier, levels, _certifying(study, data, fixed=True))
    assert thresholds is not None
    assert data.demand is not None
    demand = data.demand[:, 0] if data.demand.ndim == 2 and data.demand.shape[1] == 1 else data.demand
    up = study.router.higher_means != "cheap_is_enough"
    path = fixed_path(demand, [demand_threshold(t, up) for t in thresholds])
    certifying = _certifying(study, data, fixed=False)
    return AuditPoint(tuple(thresholds), routed_tier(path.levels, 1.0), path.levels, certifying)


def _heaviest_along_a_path(study: RoutingStudy, data: RoutingData, point: AuditPoint, r: int) -> float:
    """The largest weight among the units of class `r` that certify a searched router, where one stands beside a
    fixed one, which certifies on all; +inf elsewhere."""
    searched = any(router.thresholds is None and router.decisions is None for router in study.all_routers)
    mask = certifying_items(data) if searched and point.certifying.all() else None
    if mask is None:
        return float("inf")
    _, weight = class_units(data.subset(mask), point.levels[mask], r)
    return float("inf") if not len(weight) else float(weight.max() * data.weight[mask].mean())


def draw_classes(
    study: RoutingStudy,
    ids: Sequence[str],
    data: RoutingData,
    point: AuditPoint,
    per_class: int,
    seed: int,
    needs_per_class: int = 0,
    *,
    labels_hash: str,
) -> list[Drawn]:
    """Simple random samples of each risk class: of items labelled cheap that stay below the strongest tier, and of
    those labelled as needs.

    Other labels draw anew (`labels_hash`): after an audit whose findings were put right, the same items would be
    free of what it found, and so say nothing of the rest.
    """
    held = data if point.certifying.all() else data.subset(point.certifying)
    levels = point.levels[point.certifying]
    hidden = point.certifying & (data.required == 0) & (point.tier < data.k - 1) & (data.weight > 0)
    out = []
    for r, (name, rule) in enumerate(study.risk.items()):
        level, weight = class_units(held, levels, r)
        population = np.flatnonzero(hidden & (data.risk == r))
        n = effective_n(weight) if len(weight) else 0.0
        share = float(weight[level < 1.0].sum() / weight.sum()) if len(weight) else 0.0
        even = len(weight) == 0 or float(np.ptp(weight)) <= 1e-12 * float(weight.max())
        n = float(len(weight)) if even else n
        under = float(round(share * n)) if even else share * n
        scale = 1.0
        if len(population) and len(weight):
            unit = float(held.weight.max()) / float(data.weight[point.certifying].max())  # a subset is rescaled
            heaviest = min(float(weight.max()), _heaviest_along_a_path(study, data, point, r))
            scale = max(1.0, unit * float(data.weight[population].max()) / heaviest)
        grouped = data.group is not None
        counts = ClassCounts(
            name, rule.max_under_route, under, n, len(population), scale, grouped, rule.gate_on == "estimate"
        )
        needs = np.flatnonzero(point.certifying & data.needs & (data.risk == r) & (data.weight > 0))
        cheap_ids = draw_ids([ids[int(i)] for i in population], per_class, seed, f"{labels_hash}\x00{name}")
        need_ids = draw_ids(
            [ids[int(i)] for i in needs], needs_per_class, seed, f"{labels_hash}\x00{name}\x00needs"
        )
        out.append(Drawn(counts, tuple(cheap_ids), len(needs), tuple(need_ids)))
    return out
