"""Bootstrap intervals of the figures of single operating points and baselines; never used for a gate."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evalkit.routing.analysis import RoutingResult
from evalkit.routing.data import Floats
from evalkit.routing.points import ItemMeasures

__all__ = ["point_intervals"]


def point_intervals(result: RoutingResult) -> dict[str, dict[str, tuple[float, float]]]:
    """Two-sided percentile intervals by point name (the shown point also under the names it is known by)."""
    shown = _intervals(result.measures, result.tier)
    return {name: shown for name in ("shown", "selected", "judged")}


def _columns(measures: ItemMeasures, tier: NDArray[np.int8]) -> dict[str, Floats]:
    at = tier[:, None].astype(np.int64)

    def pick(values: Floats | None) -> Floats | None:
        return None if values is None else np.take_along_axis(values, at, axis=1)[:, 0]

    columns = {
        "escalation_rate": (tier > 0).astype(np.float64),
        "pass_rate_lower": pick(measures.data.passed),
        "cost_usd_per_request": pick(measures.costs.usd),
        "expected_total_usd": pick(measures.expected_total_usd),
        "routing_loss_usd": pick(measures.routing_loss_usd),
    }
    if measures.strongest_usd is not None and columns["cost_usd_per_request"] is not None:
        columns["saving_usd_vs_strongest"] = measures.strongest_usd - columns["cost_usd_per_request"]
    return {name: v for name, v in columns.items() if v is not None and not np.isnan(v).any()}


_TOTALS = {"expected_total_usd", "routing_loss_usd", "saving_usd_vs_strongest"}


def _intervals(measures: ItemMeasures, tier: NDArray[np.int8]) -> dict[str, tuple[float, float]]:
    from evalkit.statistics.bootstrap import percentile_interval, poisson_means

    data, settings = measures.data, measures.settings
    columns = _columns(measures, tier)
    if data.n < 2 or not columns:
        return {}
    draws = poisson_means(
        np.column_stack(list(columns.values())),
        weights=data.weight,
        strata=data.risk,
        groups=data.group,
        replicates=settings.bootstrap_replicates,
        seed=settings.seed,
    )
    out = {}
    for q, name in enumerate(columns):
        low, high = percentile_interval(draws[:, q], settings.confidence)
        scale = data.n if name in _TOTALS else 1
        out[name] = (float(low) * scale, float(high) * scale)
    return out
