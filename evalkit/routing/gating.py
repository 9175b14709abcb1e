"""The gates of a routing study: every limit held against its evidence, with the words that go with it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from evalkit.gates import Gate, Status
from evalkit.routing.certify import P95_SLOW_SHARE, Certificate, Shares, class_units
from evalkit.routing.data import Floats
from evalkit.routing.percentile_path import percentiles_along
from evalkit.routing.points import ItemMeasures, buckets_of, clean
from evalkit.routing.policies import routed_tier
from evalkit.routing.select import Objective
from evalkit.routing.sweep import Sweep
from evalkit.statistics.bounds import effective_n, lower_bound, missing_n, required_n, upper_bound
from evalkit.statistics.percentiles import upper_bound_rank

__all__ = ["Evidence", "gates_of"]


@dataclass(frozen=True)
class Evidence:
    """What the gates are judged on: the certifying items along one path.

    fixed: the point was set in advance, so it is tested by itself. place: the candidate that is judged (fixed),
    selected, or, where nothing was selected, shown. feasible: some candidate keeps every limit as observed.
    """

    measures: ItemMeasures
    levels: Floats
    sweep: Sweep
    shares: Shares
    certificate: Certificate
    goal: Objective | None
    fixed: bool
    place: int
    selected: bool
    feasible: bool


@dataclass(frozen=True)
class _Tally:
    k: float
    n: float

    @property
    def rate(self) -> float:
        return self.k / self.n

    @property
    def text(self) -> str:
        return f"{_count(self.k)} of {_count(self.n)}, {_percent(self.rate)}"


def gates_of(evidence: Evidence) -> list[Gate]:
    """All gates of the study, risk classes first in declared order."""
    settings = evidence.measures.settings
    gates = [_class_gate(evidence, r) for r, limit in enumerate(settings.classes) if limit.limit is not None]
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


def _place_at_most(evidence: Evidence, level: float) -> int:
    """The candidate at which a limit of the safety side is shown: the judged one, or the last that keeps it."""
    if evidence.fixed or evidence.selected or level == -np.inf:
        return evidence.place
    return max(evidence.place, _first_at_most(evidence.sweep, level))


def _first_at_most(sweep: Sweep, level: float) -> int:
    return min(int(np.searchsorted(-sweep.levels, -level, side="left")), len(sweep) - 1)


def _place_at_least(evidence: Evidence, level: float) -> int:
    """The same for the cost side, walked from all-cheapest."""
    if evidence.fixed or evidence.selected or level == np.inf:
        return evidence.place
    if level == -np.inf:
        return evidence.place
    return min(evidence.place, _first_at_most(evidence.sweep, level))


def _class_gate(evidence: Evidence, r: int) -> Gate:
    measures, settings = evidence.measures, evidence.measures.settings
    data, rule = measures.data, settings.classes[r]
    limit = rule.limit if rule.limit is not None else 0.0
    name = data.risk_classes[r]
    unit_level, weight = class_units(data, evidence.levels, r)
    n_is = (
        "needs"
        if data.group is None or len(unit_level) == int((data.needs & (data.risk == r)).sum())
        else ("conversations with a need")
    )
    label = f"Under-routing, {name}"
    gate = _Builder(f"under_route:{name}", label, limit, "max", "share", n_is, _confidence(evidence))
    confidence = _confidence(evidence)
    if len(unit_level) == 0:
        weightless = (data.needs & (data.risk == r)).any()
        idle = "no item of this class that stands for traffic" if weightless else "no item of this class"
        return gate.of(
            Status.NOT_STATABLE,
            f"{label}: {idle} needs more than {data.tiers[0]}, so nothing can be said about it",
        )
    varied = float(np.ptp(weight)) > 1e-12 * float(weight.max())
    n = effective_n(weight) if varied else float(len(unit_level))
    held = next((c.tolerance for c in evidence.certificate.classes if c.risk == r), None)
    top = np.inf if held is None else held.threshold
    place = _place_at_most(evidence, top)
    tally = _Tally(min(float(evidence.shares.under[r][place]) * n, n), n)
    if not varied:
        tally = _Tally(float(round(tally.k)), n)
    bound = upper_bound(tally.k, tally.n, confidence)
    figures = _Figures(observed=clean(tally.rate), bound=bound, k=clean(tally.k), n=clean(tally.n))
    seen = f"{tally.text} under-routed; at most {_percent(bound)} with {_percent(confidence)} confidence"
    if rule.on_estimate:
        text = (
            f"NOT CERTIFIED (policy). {name}: {_count(tally.k)} of {_count(tally.n)} under-routed, "
            f"{_percent(tally.rate)}; could be {_percent(bound)}. Limit {_percent(limit)}. A threshold set on the "
            "estimate breaks the limit in more than half of studies"
        )
        if tally.rate <= limit + 1e-12:
            return gate.of(Status.ESTIMATE, text, basis="estimate", figures=figures)
        text = f"{label}: {seen} (limit {_percent(limit)}, judged on the estimate)"
        broken = Status.VIOLATED if evidence.fixed or evidence.feasible else Status.INFEASIBLE
        lower = lower_bound(tally.k, tally.n, confidence) or 0.0
        if evidence.fixed and lower <= limit:
            broken = Status.INSUFFICIENT
        return gate.of(broken, text, basis="estimate", figures=figures)
    if settings.delta is None:
        return gate.of(Status.INSUFFICIENT, f"{label}: {seen}; {_SPENT}", figures=figures)
    if evidence.fixed:
        text = f"{label}: {seen} (limit {_percent(limit)})"
        return _fixed(
            gate,
            text,
            tally,
            limit,
            settings.delta,
            figures,
            otherwise=None if settings.certifiable else _uncertifiable(evidence, r),
        )
    if held is None or held.threshold == -np.inf:
        more = missing_n(0, n, limit, settings.delta) if limit > 0 else None
        need = required_n(limit, 0, settings.delta) if limit > 0 else None
        text = f"{label}: {_count(n)} {n_is} cannot certify {_percent(limit)} even without an error" + (
            f"; {need:,} without an error would ({more:,} more)" if more and need else "; no n certifies 0"
        )
        return gate.of(Status.INSUFFICIENT, text, missing_n=more, figures=figures)
    status = Status.CERTIFIED if settings.certifiable else _uncertifiable(evidence, r)
    text = f"{label}: {seen} (limit {_percent(limit)})"
    if not settings.certifiable:
        text = f"NOT CERTIFIED (approximate: cross-fitted). {text}"
        if status is Status.INSUFFICIENT:
            text += "; the costliest class needs the frozen scores of a router trained on other items"
    return gate.of(status, text, basis="bound", figures=figures)


_SPENT = "this look was not declared in advance, so it certifies nothing"


def _fixed(
    gate: _Builder,
    text: str,
    tally: _Tally,
    limit: float,
    delta: float,
    figures: _Figures,
    *,
    otherwise: Status | None = None,
    certain: float | None = None,
    broken: str = "at least {}",
) -> Gate:
    """A point fixed in advance: tested from both sides at delta.

    `tally` counts all that may count against the limit; `certain` (default: the same) what surely does. `broken`
    says the bound that breaks the limit.
    """
    bound = upper_bound(tally.k, tally.n, 1.0 - delta)
    lower = lower_bound(tally.k if certain is None else certain, tally.n, 1.0 - delta)
    if bound is None or lower is None:
        return gate.of(Status.NOT_STATABLE, f"{gate.label}: no evidence", figures=figures)
    if bound <= limit:
        return gate.of(otherwise or Status.CERTIFIED, text, figures=figures)
    if lower > limit:
        return gate.of(
            Status.VIOLATED, f"{text}; {broken.format(_percent(lower))}, so it is broken", figures=figures
        )
    more = missing_n(tally.k, tally.n, limit, delta) if limit > 0 else None
    return gate.of(Status.INSUFFICIENT, f"{text}; {_more(more, gate.n_is)}", missing_n=more, figures=figures)


def _pass_gate(evidence: Evidence, floor: float) -> Gate:
    settings, shares = evidence.measures.settings, evidence.shares
    label = "Pass rate"
    gate = _Builder("pass_rate", label, floor, "min", "share", _requests(evidence), _confidence(evidence))
    if shares.failing is None:
        return gate.of(Status.NOT_STATABLE, f"{label}: there are no outcomes")
    n = evidence.certificate.n_requests
    limit = 1.0 - floor
    place = _place_at_most(evidence, evidence.certificate.pass_level)
    tally = _Tally(float(shares.failing[place]) * n, n)
    confidence = _confidence(evidence)
    bound = upper_bound(min(tally.k, n), n, confidence)
    figures = _Figures(
        observed=clean(1.0 - tally.rate),
        bound=None if bound is None else 1.0 - bound,
        k=clean(tally.k),
        n=clean(n),
    )
    seen = (
        f"{_percent(1.0 - tally.rate)} of requests pass, unanswered counted as failed; at least "
        f"{_percent(None if bound is None else 1.0 - bound)} with {_percent(confidence)} confidence"
    )
    text = f"{label}: {seen} (limit {_percent(floor)})"
    if settings.delta is None:
        return gate.of(Status.INSUFFICIENT, f"{label}: {seen}; {_SPENT}", figures=figures)
    failed = shares.failing if shares.failed is None else shares.failed
    if evidence.fixed:
        certain = min(float(failed[place]) * n, n)
        least = "failures among the answered alone are at least {}"
        return _fixed(gate, text, tally, limit, settings.delta, figures, certain=certain, broken=least)
    if evidence.certificate.pass_level > -np.inf:
        return gate.of(Status.CERTIFIED, text, figures=figures)
    best = float(failed.min()) * n
    lower = lower_bound(best, n, 1.0 - settings.delta) or 0.0
    start = float(shares.failing[-1]) * n
    if lower > limit:
        return gate.of(
            Status.VIOLATED,
            f"{label}: no threshold reaches {_percent(floor)}; the best seen is {_percent(1 - best / n)}, at most "
            f"{_percent(1 - lower)}",
            figures=figures,
        )
    more = missing_n(start, n, limit, settings.delta) if limit > 0 else None
    text = (
        f"{label}: with everything at {evidence.measures.data.tiers[-1]}, {_percent(1 - start / n)} of "
        f"{_count(n)} pass, which does not certify {_percent(floor)}; {_more(more, gate.n_is)}"
    )
    return gate.of(Status.INSUFFICIENT, text, missing_n=more, figures=figures)


def _escalation_gate(evidence: Evidence, limit: float) -> Gate:
    label = "Escalation rate"
    gate = _Builder("escalation", label, limit, "max", "share", _requests(evidence), _confidence(evidence))
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
    gate = _Builder("p95_task", label, limit_s, "max", "s", _requests(evidence), _confidence(evidence))
    if shares.slow is None:
        return gate.of(Status.NOT_STATABLE, f"{label}: no task times are known")
    seen, bound_s = _p95_seconds(evidence, _place_at_least(evidence, evidence.certificate.slow_level))
    n = evidence.certificate.n_requests
    least = required_n(P95_SLOW_SHARE, 0, settings.delta or 1 - settings.confidence) or 0
    if n < least:
        k = float(shares.slow[evidence.place]) * n
        return gate.of(
            Status.NOT_STATABLE,
            f"{label}: {_count(n)} requests cannot bound a 95th percentile; {least} are the least",
            missing_n=int(np.ceil(least - n)),
            figures=_Figures(observed=clean(seen), k=clean(k), n=clean(n)),
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
    rank = upper_bound_rank(data.n, 0.95, _confidence(evidence))
    if rank is None or task.shape[2] > 1 or data.group is not None or np.ptp(data.weight) > 0:
        return seen, None
    tier = routed_tier(evidence.levels, level).astype(np.int64)[:, None, None]
    seconds = np.take_along_axis(np.where(data.replied & ~np.isnan(task), task, np.inf), tier, axis=1).ravel()
    bound = float(np.partition(seconds, rank - 1)[rank - 1])
    return seen, bound if np.isfinite(bound) else None


def _cost_side(
    evidence: Evidence,
    gate: _Builder,
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
    place = _place_at_least(evidence, level)
    tally = _Tally(min(float(share[place]) * n, n), n)
    confidence = _confidence(evidence)
    bound = upper_bound(tally.k, n, confidence)
    in_share = gate.unit == "share"
    figures = _Figures(
        observed=clean(tally.rate) if in_share else None,
        bound=bound if in_share else None,
        k=clean(tally.k),
        n=clean(n),
    )
    seen = f"{_percent(tally.rate)} {what}; at most {_percent(bound)} with {_percent(confidence)} confidence"
    if settings.delta is None:
        return gate.of(Status.INSUFFICIENT, f"{label}: {seen}; {_SPENT}", figures=figures)
    if evidence.fixed:
        text = f"{label}: {seen} (limit {_percent(limit)})"
        sure = min(float(certain[place]) * n, n)
        return _fixed(gate, text, tally, limit, settings.delta, figures, certain=sure)
    if level == np.inf:
        best = float(certain.min()) * n
        if (lower_bound(best, n, 1.0 - settings.delta) or 0.0) > limit:
            text = f"{label}: no threshold keeps {_percent(limit)}; the least seen is {_percent(best / n)}"
            return gate.of(Status.VIOLATED, text, figures=figures)
        more = missing_n(float(share[0]) * n, n, limit, settings.delta) if limit > 0 else None
        text = (
            f"{label}: even with everything at {evidence.measures.data.tiers[0]}, {_percent(limit)} is not "
            f"certified ({_percent(float(share[0]))} {what}); {_more(more, gate.n_is)}"
        )
        return gate.of(Status.INSUFFICIENT, text, missing_n=more, figures=figures)
    text = f"{label}: {seen} (limit {_percent(limit)})"
    if evidence.selected or level <= evidence.certificate.highest or evidence.certificate.highest == -np.inf:
        return gate.of(Status.CERTIFIED, text, figures=figures)  # where the other side is open, it is named there
    if evidence.feasible:
        text = (
            f"{label}: a limit of {_percent(limit)} and those on under-routing and quality are not certified "
            "at any one threshold; as observed one threshold keeps them all, so more labels may settle it"
        )
        return gate.of(Status.INSUFFICIENT, text, figures=figures)
    text = f"{label}: no threshold keeps a limit of {_percent(limit)} together with the other limits"
    return gate.of(Status.INFEASIBLE, text, figures=figures)


def _cost_gate(evidence: Evidence, limit_usd: float) -> Gate:
    label, goal = "Cost per request", evidence.goal
    gate = _Builder("cost_per_request", label, limit_usd, "max", "usd", "requests", _confidence(evidence))
    if goal is None:
        return gate.of(Status.NOT_STATABLE, f"{label}: some costs are unknown", basis="estimate")
    mean = goal.cost_usd / evidence.measures.data.n
    seen = float(mean[evidence.place])
    figures = _Figures(observed=clean(seen), n=float(evidence.measures.data.n))
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
    gate = _Builder("cost_known", "Costs known", None, "max", "items", "outcomes", None)
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
        figures=_Figures(k=float(count), n=float(missing.size)),
    )


@dataclass(frozen=True)
class _Figures:
    observed: float | None = None
    bound: float | None = None
    k: float | None = None
    n: float | None = None


@dataclass(frozen=True)
class _Builder:
    name: str
    label: str
    limit: float | None
    limit_is: str
    unit: str
    n_is: str
    confidence: float | None

    def of(
        self,
        status: Status,
        message: str,
        *,
        figures: _Figures | None = None,
        basis: str = "bound",
        missing_n: int | None = None,
    ) -> Gate:
        seen = figures or _Figures()
        return Gate(
            name=self.name,
            label=self.label,
            limit=self.limit,
            limit_is=self.limit_is,
            unit=self.unit,
            observed=seen.observed,
            bound=clean(seen.bound),
            k=seen.k,
            n=seen.n,
            n_is=self.n_is,
            status=status,
            missing_n=missing_n,
            message=message,
            basis=basis,
            confidence=self.confidence,
        )


def _uncertifiable(evidence: Evidence, r: int) -> Status:
    """What a bound on cross-fitted scores is worth: approximate, which the costliest class may not rest on."""
    losses = [rule.under_route_loss_usd for rule in evidence.measures.settings.classes]
    return Status.INSUFFICIENT if losses[r] == max(losses) else Status.ESTIMATE


def _requests(evidence: Evidence) -> str:
    """What the n of a rate of requests counts: uneven weights and long conversations leave fewer."""
    whole = abs(evidence.certificate.n_requests - evidence.measures.data.n) < 1e-9
    return "requests" if whole else "effective requests"


def _confidence(evidence: Evidence) -> float:
    settings = evidence.measures.settings
    return settings.confidence if settings.delta is None else 1.0 - settings.delta


def _more(missing: int | None, n_is: str) -> str:
    if missing is None:
        return "more labels will not help at this rate"
    return f"{missing:,} more {n_is} without a further failure would settle it"


def _count(value: float) -> str:
    return f"{value:,.0f}" if abs(value - round(value)) < 1e-9 else f"{value:,.1f}"


def _percent(rate: float | None) -> str:
    return (
        "n/a" if rate is None else f"{100 * rate:.1f} %" if rate < 0.9995 or rate == 1 else f"{100 * rate:.2f} %"
    )
