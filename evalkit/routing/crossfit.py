"""The loss to expect at a chosen threshold, measured on items that did not choose it.

The apparent loss at a searched threshold is optimistic. Each of ten folds is judged at the threshold that the
other nine would choose, where the certified rank is matched to their size instead of derived anew.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evalkit.routing.certify import Certificate, class_units, shares_along
from evalkit.routing.data import Floats
from evalkit.routing.folds import group_folds
from evalkit.routing.points import ItemMeasures, item_measures
from evalkit.routing.policies import PathCosts, routed_tier
from evalkit.routing.select import least, objective, on_estimate
from evalkit.routing.sweep import sweep_of
from evalkit.statistics.bounds import upper_bound

__all__ = ["cross_fitted_tiers", "matched_threshold", "routing_loss_upper_usd"]


def cross_fitted_tiers(
    measures: ItemMeasures,
    levels: Floats,
    certificate: Certificate,
    allowed_failing: float | None,
    allowed_escalated: float | None,
    allowed_slow: float | None,
    folds: int = 10,
) -> NDArray[np.int8] | None:
    """(N,) the tier every item would end at under the threshold chosen without its fold; None where a fold cannot
    choose (too few items, unknown costs).

    The three shares are those that the certificate itself allowed at its ends (None: no such limit): each fold
    walks to the same share.
    """
    data = measures.data
    total = measures.expected_total_usd
    if total is None or np.isnan(total).any() or data.n < folds:
        return None
    fold = group_folds(data, measures.settings.seed, folds)
    if int(fold.max()) + 1 < folds:
        return None
    chance = np.random.default_rng([measures.settings.seed, 1])
    tier = np.zeros(data.n, dtype=np.int8)
    for f in range(folds):
        held = fold == f
        train = _subset(measures, ~held)
        part = levels[~held]
        sweep = sweep_of(part)
        shares = shares_along(train, part, sweep)
        highest = np.inf
        for bound in certificate.classes:
            level, _ = class_units(train.data, part, bound.risk)
            units = bound.units
            held_back = bound.tolerance.failures_allowed * units / max(bound.tolerance.n, 1e-300)
            matched = matched_threshold(level, bound.tolerance.threshold, held_back, units, chance)
            highest = min(highest, matched)
        allowed = sweep.levels <= highest
        if highest == np.inf:
            allowed[:] = True
        if allowed_failing is not None and shares.failing is not None:
            allowed &= _reached(shares.failing[::-1] <= allowed_failing + 1e-12)[::-1]
        if allowed_escalated is not None:
            allowed &= _reached(shares.escalated <= allowed_escalated + 1e-12)
        if allowed_slow is not None and shares.slow is not None:
            allowed &= _reached(shares.slow <= allowed_slow + 1e-12)
        goal = objective(train, sweep)
        if goal is None:
            return None
        allowed &= on_estimate(train, shares, goal)
        place = least(goal, allowed)
        level_f = sweep.levels[-1] if place is None else sweep.levels[place]
        if place is None or place == len(sweep) - 1:
            level_f = min(float(level_f), float(levels.min()))
        tier[held] = routed_tier(levels[held], float(level_f))
    return tier


def matched_threshold(levels: Floats, threshold: float, k: float, n: int, chance: np.random.Generator) -> float:
    """The threshold at the rank that matches rank k + 1 of n among these levels, randomised between ranks."""
    if threshold in (np.inf, -np.inf):
        return threshold
    rank = (k + 1.0) * (len(levels) + 1.0) / (n + 1.0)
    whole = int(np.floor(rank)) + int(chance.random() < rank - np.floor(rank))
    if whole < 1 or len(levels) == 0:
        return -np.inf
    place = min(whole, len(levels)) - 1
    return float(np.partition(levels, place)[place])


def _reached(passing: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return np.logical_and.accumulate(passing)


def _subset(measures: ItemMeasures, mask: NDArray[np.bool_]) -> ItemMeasures:
    data = measures.data.subset(mask)
    costs = measures.costs
    cut = PathCosts(
        costs.policy,
        None if costs.usd is None else costs.usd[mask],
        None if costs.task_s is None else costs.task_s[mask],
    )
    return item_measures(data, measures.settings, cut)


def routing_loss_upper_usd(measures: ItemMeasures, tier: NDArray[np.int8], confidence: float) -> float | None:
    """The routing loss with every error rate at its exact upper bound, Bonferroni over the rates.

    Rates: under-routing by risk class (of its needs), unnecessary escalation and contract failures (of all
    items). An unnecessary escalation is priced at the mean of those seen, or at the dearest step where none was.
    """
    data, settings = measures.data, measures.settings
    if measures.excess_usd is None or data.contract_failed is None or np.isnan(measures.excess_usd).any():
        return None
    at = tier[:, None].astype(np.int64)
    under = np.take_along_axis(measures.under, at, axis=1)[:, 0]
    over = np.take_along_axis(measures.over, at, axis=1)[:, 0]
    excess = np.take_along_axis(measures.excess_usd, at, axis=1)[:, 0]
    contract = np.take_along_axis(data.contract_failed, at, axis=1)[:, 0]
    rates = len(settings.classes) + 2
    level = 1.0 - (1.0 - confidence) / rates
    loss = 0.0
    for r, rule in enumerate(settings.classes):
        needs = data.needs & (data.risk == r)
        n = int(needs.sum())
        if n:
            bound = upper_bound(int((under & needs).sum()), n, level) or 0.0
            loss += rule.under_route_loss_usd * bound * float(data.weight[needs].sum())
    many = int(over.sum())
    each = float(measures.excess_usd.max(initial=0.0))
    if many and data.weight[over].sum() > 0:
        each = float((excess * data.weight)[over].sum() / data.weight[over].sum())
    loss += max(each, 0.0) * (upper_bound(many, data.n, level) or 0.0) * data.n
    failing = float(np.ceil(contract.sum() - 1e-9))
    loss += settings.contract_failure_cost_usd * (upper_bound(failing, data.n, level) or 0.0) * data.n
    return float(loss)
