"""Which candidate of a path is recommended, and which one would be if the observed figures were the truth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalkit.routing.audited import seen_limit
from evalkit.routing.certify import P95_SLOW_SHARE, Certificate, Shares, class_units, within
from evalkit.routing.data import Floats
from evalkit.routing.points import ItemMeasures
from evalkit.routing.sweep import Sweep, tier_steps
from evalkit.statistics.bounds import effective_n

__all__ = ["Objective", "Selection", "least", "objective", "observed", "on_estimate", "select"]


@dataclass(frozen=True)
class Objective:
    """expected_total_usd and cost_usd (m + 1,): totals at every candidate, traffic-weighted."""

    expected_total_usd: Floats
    cost_usd: Floats


@dataclass(frozen=True)
class Selection:
    """Candidate indices of a sweep. selected: the recommendation, None without one. candidate: the least
    expected total under the observed limits, never a recommendation; None where no candidate meets them."""

    selected: int | None
    candidate: int | None


def objective(measures: ItemMeasures, sweep: Sweep) -> Objective | None:
    """The totals along the sweep; None where a cost is unknown."""
    total, usd = measures.expected_total_usd, measures.costs.usd
    if total is None or usd is None or np.isnan(usd).any():
        return None
    weight = measures.data.weight
    base = np.array([total[:, 0] @ weight, usd[:, 0] @ weight])
    return Objective(*sweep.sums(tier_steps([total, usd], None if np.ptp(weight) == 0 else weight), base))


def least(goal: Objective, allowed: NDArray[np.bool_]) -> int | None:
    """The allowed candidate of least expected total; ties go to the lower cost, then to more escalation.

    Sums that differ by rounding alone (1e-12 of their size) are ties. None where nothing is allowed.
    """
    places = np.flatnonzero(allowed)
    if len(places) == 0:
        return None
    for values in (goal.expected_total_usd, goal.cost_usd):
        chosen = values[places]
        best = float(chosen.min())
        places = places[chosen <= best + 1e-12 * max(abs(best), float(np.abs(chosen).max()))]
    return int(places[-1])


def on_estimate(measures: ItemMeasures, shares: Shares, goal: Objective | None) -> NDArray[np.bool_]:
    """(m + 1,) candidates that keep what is judged on the observed figure: mean cost, and classes by policy."""
    settings = measures.settings
    allowed = np.ones(len(shares.escalated), dtype=bool)
    if settings.limits.max_cost_per_request_usd is not None:
        if goal is None:
            return np.zeros_like(allowed)
        mean = goal.cost_usd / measures.data.n
        allowed &= mean <= settings.limits.max_cost_per_request_usd * (1 + 1e-12)
    for r, limit in enumerate(settings.classes):
        if limit.limit is not None and limit.on_estimate:
            allowed &= ~(shares.under[r] > _seen(measures, r, limit.limit) + 1e-12)
    return allowed


def _seen(measures: ItemMeasures, r: int, limit: float) -> float:
    """The observed rate of class r at its limit: lower, where an audit saw needs that the labels miss."""
    data = measures.data
    if data.audit is None:
        return limit
    _, weight = class_units(data, np.zeros((data.n, data.k - 1)), r)
    return seen_limit(data, r, effective_n(weight), limit)


def observed(measures: ItemMeasures, shares: Shares, goal: Objective | None) -> NDArray[np.bool_]:
    """(m + 1,) candidates whose observed figures keep every limit."""
    settings = measures.settings
    allowed = on_estimate(measures, shares, goal)
    for r, limit in enumerate(settings.classes):
        if limit.limit is not None:
            allowed &= ~(shares.under[r] > _seen(measures, r, limit.limit) + 1e-12)
    limits = settings.limits
    if limits.min_pass_rate is not None and shares.failing is not None:
        allowed &= shares.failing <= 1.0 - limits.min_pass_rate + 1e-12
    if limits.max_escalation is not None:
        allowed &= shares.escalated <= limits.max_escalation + 1e-12
    if limits.p95_task_s is not None and shares.slow is not None:
        allowed &= shares.slow <= P95_SLOW_SHARE + 1e-12
    return allowed


def select(
    measures: ItemMeasures, sweep: Sweep, shares: Shares, certificate: Certificate, goal: Objective | None
) -> Selection:
    """The selection of a study whose threshold is searched for. Without known costs nothing is selected."""
    if goal is None:
        return Selection(None, None)
    certified = within(sweep, certificate) & on_estimate(measures, shares, goal)
    return Selection(least(goal, certified), least(goal, observed(measures, shares, goal)))
