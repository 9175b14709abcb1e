"""One routing study, judged: the path, the certificate, the selection, its gates, stop rules and verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evalkit.gates import Gate, StopRule, Verdict, decide
from evalkit.routing.audited import AuditedClass, audit_level, audited_class
from evalkit.routing.baselines import Baseline, baselines_of, point_of_tiers
from evalkit.routing.certify import P95_SLOW_SHARE, class_units
from evalkit.routing.crossfit import cross_fitted_tiers, routing_loss_upper_usd
from evalkit.routing.data import Floats, RoutingData, Settings
from evalkit.routing.gating import Evidence, gates_of
from evalkit.routing.path import Path
from evalkit.routing.points import ItemMeasures, OperatingPoint, buckets_of, clean, evaluate, item_measures
from evalkit.routing.policies import path_costs, routed_tier
from evalkit.routing.search import Search, level_at, path_of, search_along, shown_place
from evalkit.routing.select import Selection, least, on_estimate
from evalkit.routing.stop_rules import router_separation, stop_rules_of
from evalkit.routing.sweep import Sweep
from evalkit.routing.units import user_threshold
from evalkit.statistics.bounds import effective_n, max_failures_real
from evalkit.statistics.paired import Difference, paired_difference
from evalkit.statistics.separation import Separation

__all__ = ["Comparison", "CrossFitted", "RoutingResult", "analyse"]


@dataclass(frozen=True)
class Comparison:
    """Router minus baseline, per request, paired by item."""

    against: str
    what: str
    difference: Difference


@dataclass(frozen=True)
class CrossFitted:
    """Totals over all items at thresholds that did not see them; the interval is approximate."""

    routing_loss_usd: float
    lower: float | None
    upper: float | None
    n: int


@dataclass(frozen=True)
class RoutingResult:
    """Everything a report needs about one policy. Thresholds are in the user's units.

    selected is None unless the verdict approves. shown is the point the gates and items are shown at: the judged,
    selected or candidate one, else everything at the strongest tier; `tier` (N,) sends the items there.
    without (class name, threshold): what the threshold would be without that class, a diagnostic. audited: what an
    audit of the labels says of each class, beside the needs that certify; None without an audit or without needs.
    audit_covers: thresholds of the points that it speaks of. search, place: the certifying items along the path,
    and the candidate there that is shown.
    """

    policy: str
    verdict: Verdict
    gates: tuple[Gate, ...]
    stop_rules: tuple[StopRule, ...]
    selected: OperatingPoint | None
    candidate: OperatingPoint | None
    judged: OperatingPoint | None
    shown: OperatingPoint
    points: tuple[OperatingPoint, ...]
    thresholds_evaluated: int
    highest: tuple[float, ...] | None
    lowest: tuple[float, ...] | None
    baselines: dict[str, Baseline]
    comparisons: tuple[Comparison, ...]
    separation: Separation | None
    cross_fitted: CrossFitted | None
    routing_loss_upper_usd: float | None
    tier: NDArray[np.int8]
    measures: ItemMeasures
    certifying: int
    audited: tuple[AuditedClass | None, ...]
    audit_covers: frozenset[tuple[float, ...]]
    without: tuple[tuple[str, float | None], ...]
    search: Search
    place: int


def analyse(
    data: RoutingData,
    settings: Settings,
    *,
    thresholds: Sequence[float] | None = None,
    decisions: NDArray[np.int8] | None = None,
) -> RoutingResult:
    """Judge one policy. With `thresholds` (user's units) or `decisions` (N,) the point is fixed in advance and
    tested; otherwise the threshold is searched for. Raises ValueError where neither scores nor decisions exist."""
    measures = item_measures(data, settings, path_costs(data, settings, settings.policy))
    fixed = thresholds is not None or decisions is not None
    path, certifying = path_of(measures, thresholds, decisions)
    mask = np.ones(data.n, dtype=bool) if certifying is None else certifying
    search = search_along(measures, path, certifying, fixed)
    place, selection = shown_place(search, fixed)
    level = level_at(search, path, place, fixed)
    tier = routed_tier(path.levels, level)
    evidence = Evidence(
        search.measures,
        search.levels,
        search.sweep,
        search.shares,
        search.certificate,
        search.goal,
        fixed,
        place,
        selection.selected is not None,
        selection.candidate is not None,
    )
    gates = gates_of(evidence)

    chosen = _chosen_levels(search, place, selection, settings.max_points, level) if not fixed else [level]
    user = [tuple(user_threshold(t, settings.direction_is_up) for t in path.thresholds_at(x)) for x in chosen]
    if decisions is not None:
        user = [()]
    reach = audit_level(search.measures.data, search.levels)
    names = [f"point {i}" for i in range(len(chosen))]
    points = evaluate(measures, buckets_of(path.levels, chosen), names, user)
    shown = points[chosen.index(level)]

    router = point_of_tiers(measures, tier, "router")
    other_policy = "cascade" if settings.policy == "direct" else "direct"
    other = None
    if data.demand is not None and data.demand.ndim == 1:
        other = item_measures(data, settings, path_costs(data, settings, other_policy))
    baselines = baselines_of(data, settings, router, other, tier)

    total, cross = _cut(router.expected_total_usd, mask), None
    if selection.selected is not None:  # the point was searched for: compare it on items that did not choose it
        fitted, total = _cross_fit(search), None  # never the apparent gain at a threshold that was searched for
        if fitted is not None:
            total = point_of_tiers(search.measures, fitted, "cross_fitted").expected_total_usd
            cross = _cross_fitted(search.measures, fitted)
    certified_on = search.measures.data
    ranked = router_separation(certified_on, settings.confidence)
    strict = ranked if settings.chosen_from == 1 else router_separation(certified_on, settings.stop_confidence)
    has_point = fixed or selection.selected is not None or selection.candidate is not None
    arms = {
        name: _cut(baselines[name].expected_total_usd, mask) for name in _admissible(data, settings, baselines)
    }
    rules = stop_rules_of(
        certified_on,
        settings,
        ranked=strict,
        escalated=(tier[mask] > 0) if has_point else None,
        router_total_usd=_known(total) if has_point else None,
        arm_totals_usd={name: known for name, values in arms.items() if (known := _known(values)) is not None},
        cross_fitted=selection.selected is not None,
    )
    uncertified = _uncertified(data, settings, gates)
    verdict = decide(gates, rules, uncertified=uncertified, has_selection=fixed or selection.selected is not None)
    if settings.delta is None:
        spent = "Label a fresh sample and judge that one: these labels were looked at more often than was declared"
        verdict = replace(verdict, next_step=spent)
    approved = verdict.decision.value == "approve"
    return RoutingResult(
        policy="decisions" if decisions is not None else settings.policy,
        verdict=verdict,
        gates=tuple(gates),
        stop_rules=tuple(rules),
        selected=replace(shown, name="selected") if approved else None,
        candidate=_named(points, chosen, search, selection.candidate, level, "candidate"),
        judged=replace(shown, name="judged") if fixed else None,
        shown=replace(shown, name="shown"),
        points=tuple(points),
        thresholds_evaluated=1 if fixed else len(search.sweep),
        highest=None if fixed else _end(path, search.certificate.highest, search.sweep, settings),
        lowest=None if fixed else _end(path, search.certificate.lowest, search.sweep, settings),
        baselines=baselines,
        comparisons=tuple(_comparisons(data, settings, router, baselines)),
        separation=ranked,
        cross_fitted=cross,
        routing_loss_upper_usd=clean(routing_loss_upper_usd(measures, tier, settings.confidence)),
        tier=tier,
        measures=measures,
        certifying=int(mask.sum()),
        audit_covers=frozenset(at for at, x in zip(user, chosen, strict=True) if x <= reach),
        audited=tuple(_audited(search.measures, r) for r in range(len(settings.classes))),
        without=() if fixed else tuple(_without(search, settings, path)),
        search=search,
        place=place,
    )


def _chosen_levels(search: Search, place: int, selection: Selection, most: int, level: float) -> list[float]:
    """At most `most` levels, descending: both ends, the shown and the candidate point, and an even spread."""
    last = len(search.sweep) - 1
    keep = {0, last, place}
    if selection.candidate is not None:
        keep.add(selection.candidate)
    spread = np.unique(np.round(np.linspace(0, last, max(2, most - len(keep)))).astype(np.int64))
    places = sorted(keep | {int(i) for i in spread})
    chosen = [float(search.sweep.levels[i]) for i in places]
    if place == last:
        chosen[-1] = level
    return chosen


def _named(
    points: Sequence[OperatingPoint],
    chosen: Sequence[float],
    search: Search,
    candidate: int | None,
    level: float,
    name: str,
) -> OperatingPoint | None:
    if candidate is None:
        return None
    wanted = float(search.sweep.levels[candidate])
    if wanted not in chosen:
        wanted = level
    return replace(points[list(chosen).index(wanted)], name=name)


def _end(path: Path, level: float, sweep: Sweep, settings: Settings) -> tuple[float, ...] | None:
    """An end of the certified range in the user's units; None where it is open or empty."""
    if not np.isfinite(level):
        return None
    return tuple(user_threshold(t, settings.direction_is_up) for t in path.thresholds_at(level))


def _cross_fit(search: Search) -> NDArray[np.int8] | None:
    settings, n = search.measures.settings, search.certificate.n_requests
    delta = settings.delta if settings.delta is not None else 1.0 - settings.confidence
    limits = settings.limits

    def share(limit: float | None) -> float | None:
        return None if limit is None else max(0.0, max_failures_real(n, limit, delta)) / n

    return cross_fitted_tiers(
        search.measures,
        search.levels,
        search.certificate,
        share(None if limits.min_pass_rate is None else 1.0 - limits.min_pass_rate),
        share(limits.max_escalation),
        share(None if limits.p95_task_s is None else P95_SLOW_SHARE),
    )


def _cross_fitted(measures: ItemMeasures, tier: NDArray[np.int8]) -> CrossFitted | None:
    losses = measures.routing_loss_usd
    if losses is None or np.isnan(losses).any():
        return None
    data = measures.data
    per_item = np.take_along_axis(losses, tier[:, None].astype(np.int64), axis=1)[:, 0]
    seen = paired_difference(per_item, data.weight, data.group, measures.settings.confidence)
    if seen.mean is None:
        return None
    n = data.n
    lower = None if seen.lower is None else clean(seen.lower * n)
    upper = None if seen.upper is None else clean(seen.upper * n)
    return CrossFitted(clean(seen.mean * n), lower, upper, n)


def _cut(values: Floats | None, mask: NDArray[np.bool_]) -> Floats | None:
    return None if values is None else values[mask]


def _known(values: Floats | None) -> Floats | None:
    return None if values is None or np.isnan(values).any() else values


def _admissible(data: RoutingData, settings: Settings, baselines: dict[str, Baseline]) -> tuple[str, ...]:
    """The fixed arms seen to keep the limits on under-routing and quality; the strongest always. A class without a
    need shows nothing."""
    out = []
    for tier in data.tiers:
        point = baselines[f"always:{tier}"].point
        broken = [
            rule.limit is not None and (figures.under_route_rate is None or figures.under_route_rate > rule.limit)
            for rule, figures in zip(settings.classes, point.by_risk, strict=True)
        ]
        floor = settings.limits.min_pass_rate
        low = floor is not None and point.pass_rate_lower is not None and point.pass_rate_lower < floor
        if tier == data.tiers[-1] or not (any(broken) or low):
            out.append(f"always:{tier}")
    return tuple(out)


def _audited(measures: ItemMeasures, r: int) -> AuditedClass | None:
    data, settings = measures.data, measures.settings
    if data.audit is None:
        return None
    _, weight = class_units(data, np.zeros((data.n, data.k - 1)), r)
    delta = 1.0 - settings.confidence if settings.delta is None else settings.delta
    return audited_class(data, r, effective_n(weight), delta)


def _uncertified(data: RoutingData, settings: Settings, gates: Sequence[Gate]) -> tuple[str, ...]:
    certified = {g.name for g in gates if g.status.value == "certified"}
    return tuple(name for name in data.risk_classes if f"under_route:{name}" not in certified)


def _comparisons(
    data: RoutingData, settings: Settings, router: Baseline, baselines: dict[str, Baseline]
) -> list[Comparison]:
    out = []
    for name, base in baselines.items():
        for what in ("expected_total_usd", "cost_usd", "passed"):
            ours, theirs = _known(getattr(router, what)), _known(getattr(base, what))
            if ours is None or theirs is None:
                continue
            seen = paired_difference(ours - theirs, data.weight, data.group, settings.confidence)
            out.append(Comparison(name, "pass_rate" if what == "passed" else what, seen))
    return out


def _without(search: Search, settings: Settings, path: Path) -> list[tuple[str, float | None]]:
    """For each class that certifies nothing: the first threshold that would be chosen without it."""
    stuck = [c for c in search.certificate.classes if c.tolerance.threshold == -np.inf]
    out: list[tuple[str, float | None]] = []
    for bound in stuck:
        others = tuple(c for c in search.certificate.classes if c.risk != bound.risk)
        allowed = search.sweep.levels <= replace(search.certificate, classes=others).highest
        allowed &= search.sweep.levels >= search.certificate.lowest
        allowed &= on_estimate(search.measures, search.shares, search.goal)
        place = None if search.goal is None else least(search.goal, allowed)
        value = None
        if place is not None:
            value = user_threshold(
                path.thresholds_at(float(search.sweep.levels[place]))[0], settings.direction_is_up
            )
        out.append((search.measures.data.risk_classes[bound.risk], value))
    return out
