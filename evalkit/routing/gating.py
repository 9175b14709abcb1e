"""The gates of a routing study: every limit held against its evidence, with the words that go with it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from evalkit.gates import Gate, Status
from evalkit.routing.certify import P95_SLOW_SHARE
from evalkit.routing.class_gate import class_gate
from evalkit.routing.data import Floats
from evalkit.routing.gate_parts import (
    SPENT,
    Builder,
    Evidence,
    Figures,
    Tally,
    confidence_of,
    count_text,
    fixed_gate,
    more_text,
    percent,
    place_at_least,
    place_at_most,
    requests_text,
)
from evalkit.routing.percentile_path import percentiles_along
from evalkit.routing.points import buckets_of, clean
from evalkit.routing.policies import routed_tier
from evalkit.statistics.bounds import lower_bound, missing_n, required_n, upper_bound
from evalkit.statistics.percentiles import upper_bound_rank

__all__ = ["Evidence", "gates_of"]


def gates_of(evidence: Evidence) -> list[Gate]:
    """All gates of the study, risk classes first in declared order."""
    settings = evidence.measures.settings
    gates = [class_gate(evidence, r) for r, limit in enumerate(settings.classes) if limit.limit is not None]
    if settings.limits.min_pass_rate is not None:
        gates.append(_pass_gate(evidence, settings.limits.min_pass_rate))
    if settings.limits.max_escalation is not None:
        gates.append(_escalation_gate(evidence, settings.limits.max_escalation))
    if settings.limits.p95_task_s is not None:
        gates.append(_p95_gate(evidence, settings.limits.p95_task_s))
    if settings.limits.max_cost_per_request_usd is not None:
        gates.append(_cost_gate(evidence, settings.limits.max_cost_per_request_usd))
    unknown = _unknown_cost_gate(evidence)
    return gates if unknown is None else [*gates, unknown]


def _pass_gate(evidence: Evidence, floor: float) -> Gate:
    settings, shares = evidence.measures.settings, evidence.shares
    label = "Pass rate"
    gate = Builder("pass_rate", label, floor, "min", "share", requests_text(evidence), confidence_of(evidence))
    if shares.failing is None:
        return gate.of(Status.NOT_STATABLE, f"{label}: there are no outcomes")
    n = evidence.certificate.n_requests
    limit = 1.0 - floor
    place = place_at_most(evidence, evidence.certificate.pass_level)
    tally = Tally(float(shares.failing[place]) * n, n)
    confidence = confidence_of(evidence)
    bound = upper_bound(min(tally.k, n), n, confidence)
    figures = Figures(
        observed=clean(1.0 - tally.rate),
        bound=None if bound is None else 1.0 - bound,
        k=clean(tally.k),
        n=clean(n),
    )
    seen = (
        f"{percent(1.0 - tally.rate)} of requests pass, unanswered counted as failed; at least "
        f"{percent(None if bound is None else 1.0 - bound)} with {percent(confidence)} confidence"
    )
    text = f"{label}: {seen} (limit {percent(floor)})"
    if settings.delta is None:
        return gate.of(Status.INSUFFICIENT, f"{label}: {seen}; {SPENT}", figures=figures)
    failed = shares.failing if shares.failed is None else shares.failed
    if evidence.fixed:
        certain = min(float(failed[place]) * n, n)
        least = "failures among the answered alone are at least {}"
        return fixed_gate(gate, text, tally, limit, settings.delta, figures, certain=certain, broken=least)
    if evidence.certificate.pass_level > -np.inf:
        return gate.of(Status.CERTIFIED, text, figures=figures)
    best = float(failed.min()) * n
    lower = lower_bound(best, n, 1.0 - settings.delta) or 0.0
    start = float(shares.failing[-1]) * n
    if lower > limit:
        return gate.of(
            Status.VIOLATED,
            f"{label}: no threshold reaches {percent(floor)}; the best seen is {percent(1 - best / n)}, at most "
            f"{percent(1 - lower)}",
            figures=figures,
        )
    more = missing_n(start, n, limit, settings.delta) if limit > 0 else None
    text = (
        f"{label}: with everything at {evidence.measures.data.tiers[-1]}, {percent(1 - start / n)} of "
        f"{count_text(n)} pass, which does not certify {percent(floor)}; {more_text(more, gate.n_is)}"
    )
    return gate.of(Status.INSUFFICIENT, text, missing_n=more, figures=figures)


def _escalation_gate(evidence: Evidence, limit: float) -> Gate:
    label = "Escalation rate"
    gate = Builder("escalation", label, limit, "max", "share", requests_text(evidence), confidence_of(evidence))
    return _cost_side(
        evidence,
        gate,
        evidence.shares.escalated,
        evidence.shares.escalated,
        limit,
        evidence.certificate.escalation_level,
        "of requests go above the cheapest tier",
    )


def _p95_gate(evidence: Evidence, limit_s: float) -> Gate:
    label = "p95 task time"
    settings, shares = evidence.measures.settings, evidence.shares
    gate = Builder("p95_task", label, limit_s, "max", "s", requests_text(evidence), confidence_of(evidence))
    if shares.slow is None:
        return gate.of(Status.NOT_STATABLE, f"{label}: no task times are known")
    seen, bound_s = _p95_seconds(evidence, place_at_least(evidence, evidence.certificate.slow_level))
    n = evidence.certificate.n_requests
    least = required_n(P95_SLOW_SHARE, 0, settings.delta or 1 - settings.confidence) or 0
    if n < least:
        k = float(shares.slow[evidence.place]) * n
        return gate.of(
            Status.NOT_STATABLE,
            f"{label}: {count_text(n)} requests cannot bound a 95th percentile; {least} are the least",
            missing_n=int(np.ceil(least - n)),
            figures=Figures(observed=clean(seen), k=clean(k), n=clean(n)),
        )
    text = f"of requests take longer than {limit_s:g} s or are unanswered"
    level = evidence.certificate.slow_level
    late = shares.slow if shares.late is None else shares.late
    judged = _cost_side(evidence, gate, shares.slow, late, P95_SLOW_SHARE, level, text)
    return replace(judged, observed=clean(seen), bound=clean(bound_s))


def _p95_seconds(evidence: Evidence, place: int) -> tuple[float | None, float | None]:
    """(p95, its exact upper bound) in seconds; unanswered requests never end. The bound is an order statistic, so
    it is stated for single samples of equal weight without groups only."""
    measures = evidence.measures
    data, task = measures.data, measures.costs.task_s
    if task is None or data.replied is None:
        return None, None
    level = float(evidence.sweep.levels[place])
    points = percentiles_along(data, measures.costs, buckets_of(evidence.levels, [level]), 1, 0.95)
    seen = None if points is None else points[0].value
    rank = upper_bound_rank(data.n, 0.95, confidence_of(evidence))
    if rank is None or task.shape[2] > 1 or data.group is not None or np.ptp(data.weight) > 0:
        return seen, None
    tier = routed_tier(evidence.levels, level).astype(np.int64)[:, None, None]
    seconds = np.take_along_axis(np.where(data.replied & ~np.isnan(task), task, np.inf), tier, axis=1).ravel()
    bound = float(np.partition(seconds, rank - 1)[rank - 1])
    return seen, bound if np.isfinite(bound) else None


def _cost_side(
    evidence: Evidence,
    gate: Builder,
    share: Floats,
    certain: Floats,
    limit: float,
    level: float,
    what: str,
) -> Gate:
    """A limit of the cost side; `certain` is the part of `share` that surely counts against it."""
    label = gate.label
    settings = evidence.measures.settings
    n = evidence.certificate.n_requests
    place = place_at_least(evidence, level)
    tally = Tally(min(float(share[place]) * n, n), n)
    confidence = confidence_of(evidence)
    bound = upper_bound(tally.k, n, confidence)
    in_share = gate.unit == "share"
    figures = Figures(
        observed=clean(tally.rate) if in_share else None,
        bound=bound if in_share else None,
        k=clean(tally.k),
        n=clean(n),
    )
    seen = f"{percent(tally.rate)} {what}; at most {percent(bound)} with {percent(confidence)} confidence"
    if settings.delta is None:
        return gate.of(Status.INSUFFICIENT, f"{label}: {seen}; {SPENT}", figures=figures)
    if evidence.fixed:
        text = f"{label}: {seen} (limit {percent(limit)})"
        sure = min(float(certain[place]) * n, n)
        return fixed_gate(gate, text, tally, limit, settings.delta, figures, certain=sure)
    if level == np.inf:
        best = float(certain.min()) * n
        if (lower_bound(best, n, 1.0 - settings.delta) or 0.0) > limit:
            text = f"{label}: no threshold keeps {percent(limit)}; the least seen is {percent(best / n)}"
            return gate.of(Status.VIOLATED, text, figures=figures)
        more = missing_n(float(share[0]) * n, n, limit, settings.delta) if limit > 0 else None
        text = (
            f"{label}: even with everything at {evidence.measures.data.tiers[0]}, {percent(limit)} is not "
            f"certified ({percent(float(share[0]))} {what}); {more_text(more, gate.n_is)}"
        )
        return gate.of(Status.INSUFFICIENT, text, missing_n=more, figures=figures)
    text = f"{label}: {seen} (limit {percent(limit)})"
    if evidence.selected or level <= evidence.certificate.highest or evidence.certificate.highest == -np.inf:
        return gate.of(Status.CERTIFIED, text, figures=figures)  # where the other side is open, it is named there
    if evidence.feasible:
        text = (
            f"{label}: a limit of {percent(limit)} and those on under-routing and quality are not certified "
            "at any one threshold; as observed one threshold keeps them all, so more labels may settle it"
        )
        return gate.of(Status.INSUFFICIENT, text, figures=figures)
    text = f"{label}: no threshold keeps a limit of {percent(limit)} together with the other limits"
    return gate.of(Status.INFEASIBLE, text, figures=figures)


def _cost_gate(evidence: Evidence, limit_usd: float) -> Gate:
    label, goal = "Cost per request", evidence.goal
    gate = Builder("cost_per_request", label, limit_usd, "max", "usd", "requests", confidence_of(evidence))
    if goal is None:
        return gate.of(Status.NOT_STATABLE, f"{label}: some costs are unknown", basis="estimate")
    mean = goal.cost_usd / evidence.measures.data.n
    seen = float(mean[evidence.place])
    figures = Figures(observed=clean(seen), n=float(evidence.measures.data.n))
    text = (
        f"{label}: ${seen:.6g} on average (limit ${limit_usd:.6g}); judged on the estimate, since no bound on a "
        "skewed mean can be relied on"
    )
    if seen <= limit_usd * (1 + 1e-12):
        return gate.of(Status.ESTIMATE, text, basis="estimate", figures=figures)
    if not evidence.fixed and float(mean.min()) <= limit_usd:
        text = f"{label}: no threshold keeps a limit of ${limit_usd:.6g} together with the other limits"
        status = Status.INSUFFICIENT if evidence.feasible else Status.INFEASIBLE
        return gate.of(status, text, basis="estimate", figures=figures)
    return gate.of(Status.VIOLATED, text, basis="estimate", figures=figures)


def _unknown_cost_gate(evidence: Evidence) -> Gate | None:
    data = evidence.measures.data
    gate = Builder("cost_known", "Costs known", None, "max", "items", "outcomes", None)
    if data.tier_cost_usd is None:
        return gate.of(Status.NOT_STATABLE, "Costs known: there are no outcomes and no assumed costs per tier")
    missing = np.isnan(data.tier_cost_usd)
    if not missing.any():
        return None
    tiers = ", ".join(name for j, name in enumerate(data.tiers) if missing[:, j].any())
    count = int(missing.sum())
    return gate.of(
        Status.NOT_STATABLE,
        f"Costs known: the cost of {count:,} of {missing.size:,} outcomes is unknown (tiers: {tiers}), so cost, "
        "saving and expected total cannot be stated; give cost_usd, or token counts and a price card",
        figures=Figures(k=float(count), n=float(missing.size)),
    )
