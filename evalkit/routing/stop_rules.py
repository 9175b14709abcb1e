"""Reasons not to release a router whatever the gates say."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evalkit.gates import StopRule
from evalkit.routing.certify import request_n
from evalkit.routing.data import Floats, RoutingData, Settings
from evalkit.statistics.bounds import lower_bound
from evalkit.statistics.paired import paired_difference
from evalkit.statistics.separation import Separation, separation

__all__ = ["router_separation", "stop_rules_of"]


def router_separation(data: RoutingData, confidence: float) -> Separation | None:
    """How well the demand ranks needs above the other solvable items; None without scores, needs or others.

    With one score a tier it is the cheapest tier's verifier that is judged.
    """
    if data.demand is None:
        return None
    demand = data.demand if data.demand.ndim == 1 else data.demand[:, 0]
    solvable = data.solvable
    _, rank = np.unique(demand[solvable], return_inverse=True)  # ranks only: infinite demands are legal
    return separation(rank.astype(np.float64), data.needs[solvable], confidence)


def stop_rules_of(
    data: RoutingData,
    settings: Settings,
    *,
    ranked: Separation | None,
    escalated: NDArray[np.bool_] | None,
    router_total_usd: Floats | None,
    arm_totals_usd: dict[str, Floats],
    cross_fitted: bool = False,
) -> list[StopRule]:
    """All stop rules at the judged, selected or candidate point.

    escalated (N,): items above the cheapest tier there; None without such a point. router_total_usd (N,):
    expected total per item, cross-fitted where the threshold was searched; None where unknown. arm_totals_usd:
    the same of the fixed arms that keep the limits on under-routing and quality; the gain is over the best.
    cross_fitted: router_total_usd stands at thresholds that were chosen without the item; the sentence says so, as
    it is another gain than that of the table of policies.
    """
    return [
        _separates(data, ranked),
        _overlap(data, settings),
        _near_total(data, settings, escalated),
        _gain(data, settings, router_total_usd, arm_totals_usd, cross_fitted),
    ]


def _separates(data: RoutingData, ranked: Separation | None) -> StopRule:
    name = "router_not_shown_to_separate"
    if data.demand is None:
        return StopRule(name, None, "Separation: not judged, decisions have no score", applies=False)
    if ranked is None:
        detail = (
            "Separation: cannot be judged, the items do not hold both some that need more and some that do not"
        )
        return StopRule(name, None, detail, "insufficient_evidence")
    lower = ranked.lower if ranked.lower is not None else 0.0
    upper = ranked.upper if ranked.upper is not None else 1.0
    seen = (
        f"AUC {ranked.auc:.3f} [{lower:.3f}, {upper:.3f}] over {ranked.n_positive + ranked.n_negative:,} items "
        f"({ranked.n_positive:,} need more)"
    )
    if ranked.auc == 1.0:
        return StopRule(name, False, f"The score separates: {seen}", "insufficient_evidence")
    if upper < 0.5 or ranked.auc == 0.0:
        detail = (
            f"The scores rank in the opposite order ({seen}): the direction looks reversed; "
            "check router.higher_means"
        )
        return StopRule(name, True, detail, "insufficient_evidence")
    if lower <= 0.5:
        return StopRule(name, True, f"The router is not shown to separate: {seen}", "insufficient_evidence")
    return StopRule(name, False, f"The score separates: {seen}", "insufficient_evidence")


def _overlap(data: RoutingData, settings: Settings) -> StopRule:
    name = "quality_overlaps"
    if data.passed is None:
        return StopRule(name, None, "Quality: cannot be compared, there are no outcomes")
    gain = paired_difference(data.passed[:, -1] - data.passed[:, 0], data.weight, data.group, settings.confidence)
    strong, cheap = data.tiers[-1], data.tiers[0]
    if gain.lower is None or gain.mean is None or gain.upper is None:
        return StopRule(name, None, "Quality: too few items to compare the tiers")
    seen = (
        f"{100 * gain.mean:+.1f} points [{100 * gain.lower:+.1f}, {100 * gain.upper:+.1f}] over {gain.n:,} items"
    )
    if gain.lower <= 0:
        return StopRule(name, True, f"{strong} is not shown to pass more often than {cheap}: {seen}")
    return StopRule(name, False, f"{strong} passes more often than {cheap}: {seen}")


def _near_total(data: RoutingData, settings: Settings, escalated: NDArray[np.bool_] | None) -> StopRule:
    name = "escalates_nearly_everything"
    if escalated is None:
        return StopRule(name, None, "Escalation: there is no operating point to judge", applies=False)
    n = request_n(data)
    share = float((escalated * data.weight).sum() / data.weight.sum())
    low = lower_bound(min(share * n, n), n, settings.confidence) or 0.0
    seen = f"{100 * share:.1f} % of {n:,.0f} requests escalate, at least {100 * low:.1f} %"
    limit = settings.near_total_escalation
    if low >= limit:
        return StopRule(name, True, f"Nearly everything escalates ({seen}; stop at {100 * limit:.0f} %)")
    return StopRule(name, False, f"Not nearly everything escalates: {seen} (stop at {100 * limit:.0f} %)")


def _gain(
    data: RoutingData,
    settings: Settings,
    router_total_usd: Floats | None,
    arms: dict[str, Floats],
    cross_fitted: bool,
) -> StopRule:
    name = "no_gain_over_best_fixed_arm"
    if not arms:
        return StopRule(name, None, "Gain over the best fixed arm: not known, since costs or outcomes are missing")
    if router_total_usd is None:
        detail = (
            "Gain over the best fixed arm: not known, since no threshold keeps every limit as observed, or too "
            "few items (or conversations) are there to judge a searched one on others: ten at least"
        )
        return StopRule(name, None, detail)
    means = {arm: float((t * data.weight).sum()) for arm, t in arms.items()}
    best = min(means, key=lambda arm: means[arm])
    gain = paired_difference(arms[best] - router_total_usd, data.weight, data.group, settings.stop_confidence)
    if gain.lower is None or gain.mean is None or gain.upper is None:
        return StopRule(name, None, "Gain over the best fixed arm: too few items")
    seen = (
        f"${gain.mean:.4g} a request [{gain.lower:.4g}, {gain.upper:.4g}] in expected total over {gain.n:,} items"
    ) + (", each at a threshold chosen without it" if cross_fitted else "")
    if gain.lower <= 0:
        return StopRule(name, True, f"No gain is shown over {best}: {seen}")
    return StopRule(name, False, f"Better than {best}, the best fixed arm: {seen}")
