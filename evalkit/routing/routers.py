"""Several routers judged on the same items: the best of them, and what it gains over each of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evalkit.routing.analysis import RoutingResult
from evalkit.routing.baselines import point_of_tiers
from evalkit.statistics.paired import Difference, mcnemar_exact, paired_difference

__all__ = ["RouterComparison", "against_others", "best_of", "rank"]

_ORDER = {"approve": 0, "insufficient_evidence": 1, "reject": 2}
_FIGURES = ("expected_total_usd", "cost_usd", "passed")


@dataclass(frozen=True, slots=True)
class RouterComparison:
    """The chosen router minus another, per request, at the points that both are shown at.

    what: expected_total_usd, cost_usd or pass_rate. confidence: of the interval, so that all comparisons of one
    figure hold together. For passes of single requests that are independent: `gained` items only the chosen one
    passes, `lost` only the other, and McNemar's exact two-sided p; None elsewhere.
    """

    against: int
    what: str
    difference: Difference
    confidence: float
    gained: int | None = None
    lost: int | None = None
    p_value: float | None = None


def rank(result: RoutingResult) -> tuple[int, float]:
    """Least is best: an approved one before one without evidence before a rejected one, then less expected total.

    Each was given its part of the error rate, so that the guarantee holds for whichever is chosen.
    """
    total = result.shown.expected_total_usd
    return _ORDER[result.verdict.decision.value], float("inf") if total is None else total


def best_of(results: Sequence[RoutingResult]) -> int:
    """The place of the best; of equals the one named first."""
    return min(range(len(results)), key=lambda i: rank(results[i]))


def against_others(results: Sequence[RoutingResult], chosen: int, confidence: float) -> list[RouterComparison]:
    """The chosen router compared with each other one, item by item (`statistics.paired`).

    Intervals are at `1 - (1 - confidence) / (routers - 1)` (Bonferroni over the others) and, since the points and
    the choice were made on the same items, descriptive: they certify nothing.
    """
    others = [i for i in range(len(results)) if i != chosen]
    if not others:
        return []
    level = 1.0 - (1.0 - confidence) / len(others)
    data = results[chosen].measures.data
    best = point_of_tiers(results[chosen].measures, results[chosen].tier, "chosen")
    out = []
    for i in others:
        other = point_of_tiers(results[i].measures, results[i].tier, "other")
        for figure in _FIGURES:
            ours, theirs = getattr(best, figure), getattr(other, figure)
            if ours is None or theirs is None or np.isnan(ours).any() or np.isnan(theirs).any():
                continue
            seen = paired_difference(ours - theirs, data.weight, data.group, level)
            if figure != "passed":
                out.append(RouterComparison(i, figure, seen, level))
                continue
            gained = lost = p_value = None
            single = data.sampled is None and data.replied is not None and data.replied.shape[2] == 1
            if single and data.group is None and np.ptp(data.weight) == 0:
                gained, lost = int((ours > theirs).sum()), int((ours < theirs).sum())
                p_value = mcnemar_exact(lost, gained)
            out.append(RouterComparison(i, "pass_rate", seen, level, gained, lost, p_value))
    return out
