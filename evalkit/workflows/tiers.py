"""Figures by tier, over the requests that end there at the shown point."""

from __future__ import annotations

from typing import Any

import numpy as np

from evalkit.outcomes.status import Status
from evalkit.outcomes.table import Outcomes
from evalkit.routing.analysis import RoutingResult
from evalkit.routing.data import Floats
from evalkit.routing.points import clean
from evalkit.statistics.percentiles import percentile

__all__ = ["by_tier", "cost_matrix"]


def by_tier(result: RoutingResult, outcomes: Outcomes | None) -> list[dict[str, Any]]:
    """One row a tier: share of traffic, pass rates, cost, time percentiles (nearest rank, weighted), fallback and
    retry rates, unnecessary escalations and the seconds they add."""
    data, tier = result.measures.data, result.tier
    rows = []
    for j, name in enumerate(data.tiers):
        here = tier == j
        weight = data.weight[here]
        mass = float(weight.sum())
        row: dict[str, Any] = {
            "tier": name,
            "n": int(here.sum()),
            "share_of_traffic": clean(mass / data.n),
            "pass_rate": None,
            "pass_rate_lower": None,
            "pass_rate_upper": None,
            "cost_usd_per_request": _mean(result.measures.costs.usd, here, j, weight),
            "fallback_rate": None,
            "retry_rate": None,
            **{f"{what}_{p}_s": None for what in ("ttft", "request", "task") for p in ("p50", "p95")},
        }
        over = result.measures.over[here, j]
        row["unnecessary_escalations"] = int(over.sum())
        row["unnecessary_escalation_seconds"] = _added_seconds(result, here, j)
        if data.passed is not None and data.answered is not None and mass > 0:
            passed = float((data.passed[here, j] * weight).sum())
            answered = float((data.answered[here, j] * weight).sum())
            row["pass_rate"] = clean(passed / answered) if answered else None
            row["pass_rate_lower"] = clean(passed / mass)
            row["pass_rate_upper"] = clean((passed + mass - answered) / mass)
        if outcomes is not None and here.any():
            _times(row, result, outcomes, here, j)
        rows.append(row)
    return rows


def _times(row: dict[str, Any], result: RoutingResult, outcomes: Outcomes, here: Any, j: int) -> None:
    data = result.measures.data
    present = outcomes.present[here, j]
    ranked = outcomes.answered[here, j] & present
    share = data.weight[here][:, None] / np.maximum(present.sum(axis=1, keepdims=True), 1)
    share = np.broadcast_to(share, present.shape)
    columns: dict[str, Floats | None] = {
        "ttft": outcomes.ttft_s[here, j],
        "request": outcomes.request_s[here, j],
        "task": None if result.measures.costs.task_s is None else result.measures.costs.task_s[here, j],
    }
    for what, values in columns.items():
        if values is None:
            continue
        known = ranked & ~np.isnan(values)
        if not known.any() or (ranked & ~known).any():
            continue
        for name, q in (("p50", 0.5), ("p95", 0.95)):
            row[f"{what}_{name}_s"] = clean(percentile(values[known], q, share[known]))
    mass = float(share[present].sum())
    fallback = outcomes.having(Status.SERVED_BY_OTHER_MODEL)[here, j]
    row["fallback_rate"] = clean(float(share[fallback].sum()) / mass) if mass else None
    attempts = outcomes.attempts[here, j]
    if mass and not np.isnan(attempts[present]).any():
        row["retry_rate"] = clean(float(share[present & (attempts > 1)].sum()) / mass)


def _mean(values: Floats | None, here: Any, j: int, weight: Floats) -> float | None:
    if values is None or not weight.sum() > 0:
        return None
    mean = float((values[here, j] * weight).sum() / weight.sum())
    return None if np.isnan(mean) else clean(mean)


def _added_seconds(result: RoutingResult, here: Any, j: int) -> float | None:
    """Seconds that unnecessary escalations to tier j add over the required tier's path, over all such items."""
    task, data = result.measures.costs.task_s, result.measures.data
    over = result.measures.over[:, j] & here
    if task is None:
        return None
    if not over.any():
        return 0.0
    floor = np.where(data.required < data.k, data.required, 0).astype(np.int64)
    added = task[over, j] - np.take_along_axis(task, floor[:, None, None], axis=1)[over, 0]
    if np.isnan(added).any():
        return None
    return clean(float((added.mean(axis=1) * data.weight[over]).sum()))


def cost_matrix(result: RoutingResult) -> list[list[float | None]]:
    """Mean USD a request, rows required tier (then unsolvable), columns routed tier; None for an empty cell."""
    data, usd = result.measures.data, result.measures.costs.usd
    out: list[list[float | None]] = []
    for required in range(data.k + 1):
        row: list[float | None] = []
        for j in range(data.k):
            here = (data.required == required) & (result.tier == j)
            row.append(_mean(usd, here, j, data.weight[here]))
        out.append(row)
    return out
