"""Bootstrap intervals of the shown point and of the baselines; never used for a gate."""

from __future__ import annotations

import numpy as np

from evalkit.routing.analysis import RoutingResult
from evalkit.routing.baselines import Baseline, point_of_tiers
from evalkit.routing.data import Floats
from evalkit.statistics.bootstrap import percentile_interval, poisson_means, too_few_groups
from evalkit.statistics.paired import paired_difference

__all__ = ["Intervals", "point_intervals"]

Intervals = dict[str, dict[str, tuple[float, float]]]

_TOTALS = {"expected_total_usd", "routing_loss_usd", "saving_usd_vs_strongest"}


def point_intervals(result: RoutingResult) -> Intervals:
    """Two-sided intervals by point name and figure: the shown point ("shown") and every baseline.

    All columns share their draws, stratified by risk class. With fewer than 20 groups the t interval with G - 1
    takes the bootstrap's place. Figures that are unknown for an item are left out.
    """
    columns = _columns(result)
    data, settings = result.measures.data, result.measures.settings
    if data.n < 2 or not columns:
        return {}
    values = np.column_stack(list(columns.values()))
    if data.group is not None and too_few_groups(data.group):
        seen = [paired_difference(v, data.weight, data.group, settings.confidence) for v in values.T]
        ends = [None if d.lower is None or d.upper is None else (d.lower, d.upper) for d in seen]
    else:
        draws = poisson_means(
            values,
            weights=data.weight,
            strata=data.risk,
            groups=data.group,
            order=None if data.demand is None else _rank(data.demand),
            code=data.required,
            replicates=settings.bootstrap_replicates,
            seed=settings.seed,
        )
        low, high = percentile_interval(draws, settings.confidence)
        ends = [(float(a), float(b)) for a, b in zip(low, high, strict=True)]
    out: Intervals = {}
    for (name, figure), end in zip(columns, ends, strict=True):
        if end is not None:
            scale = data.n if figure in _TOTALS else 1
            out.setdefault(name, {})[figure] = (end[0] * scale, end[1] * scale)
    return out


def _rank(demand: Floats) -> Floats:
    first = demand if demand.ndim == 1 else demand[:, 0]
    return np.nan_to_num(first, posinf=float(np.finfo(np.float64).max), neginf=-float(np.finfo(np.float64).max))


def _columns(result: RoutingResult) -> dict[tuple[str, str], Floats]:
    measures, tier = result.measures, result.tier
    at = tier[:, None].astype(np.int64)
    columns: dict[tuple[str, str], Floats | None] = {("shown", "escalation_rate"): (tier > 0).astype(np.float64)}
    losses = measures.routing_loss_usd
    if losses is not None:
        columns["shown", "routing_loss_usd"] = np.take_along_axis(losses, at, axis=1)[:, 0]
    shown = point_of_tiers(measures, tier, "shown")
    if measures.strongest_usd is not None and shown.cost_usd is not None:
        columns["shown", "saving_usd_vs_strongest"] = measures.strongest_usd - shown.cost_usd
    for name, base in [("shown", shown), *result.baselines.items()]:
        columns |= _figures(name, base)
    return {key: v for key, v in columns.items() if v is not None and not np.isnan(v).any()}


def _figures(name: str, base: Baseline) -> dict[tuple[str, str], Floats | None]:
    return {
        (name, "pass_rate_lower"): base.passed,
        (name, "cost_usd_per_request"): base.cost_usd,
        (name, "expected_total_usd"): base.expected_total_usd,
    }
