"""The search for a threshold: the path, its certificate, and the candidate that is selected along it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalkit.routing.certify import Certificate, Shares, certify, shares_along
from evalkit.routing.data import Floats, RoutingData, Settings
from evalkit.routing.direction import target_thresholds
from evalkit.routing.path import Path, fixed_path, path_through, score_path
from evalkit.routing.points import ItemMeasures, item_measures
from evalkit.routing.policies import path_costs
from evalkit.routing.select import Objective, Selection, objective, select
from evalkit.routing.sweep import Sweep, sweep_of
from evalkit.routing.units import demand_threshold, user_threshold

__all__ = [
    "CertifiedSelection",
    "Search",
    "certified_selection",
    "certifying_items",
    "level_at",
    "path_of",
    "search_along",
    "shown_place",
]


@dataclass(frozen=True)
class Search:
    """The certifying items' side of an analysis: their figures along the path, and what may be selected."""

    measures: ItemMeasures
    levels: Floats
    sweep: Sweep
    shares: Shares
    certificate: Certificate
    goal: Objective | None
    selection: Selection


@dataclass(frozen=True)
class CertifiedSelection:
    """What a study selects, without its report. Thresholds (K - 1) are in the user's units.

    selected: keeps every certified limit and has the least expected total; None where there is none. candidate:
    the least expected total under the observed limits, never a recommendation. certifying: items that certify.
    """

    selected: tuple[float, ...] | None
    candidate: tuple[float, ...] | None
    certificate: Certificate
    certifying: int


def certified_selection(data: RoutingData, settings: Settings) -> CertifiedSelection:
    """The threshold that `analyse` searches for, by the same steps, without gates, figures and stop rules.

    An approval needs more than this selection, so how often the selection breaks a limit is no less than how often
    an approved one does. ValueError where the data hold no scores.
    """
    measures = item_measures(data, settings, path_costs(data, settings, settings.policy))
    path, certifying = path_of(measures)
    search = search_along(measures, path, certifying)
    _, selection = shown_place(search)

    def thresholds(place: int | None) -> tuple[float, ...] | None:
        if place is None:
            return None
        level = level_at(search, path, place)
        return tuple(user_threshold(t, settings.direction_is_up) for t in path.thresholds_at(level))

    return CertifiedSelection(
        thresholds(selection.selected),
        thresholds(selection.candidate),
        search.certificate,
        search.measures.data.n,
    )


def path_of(
    measures: ItemMeasures,
    thresholds: Sequence[float] | None = None,
    decisions: NDArray[np.int8] | None = None,
) -> tuple[Path, NDArray[np.bool_] | None]:
    """The path and, where only some items may certify along it, which.

    thresholds (user's units) or decisions (N,) fix the point in advance. ValueError without scores or decisions,
    and where three or more tiers are searched without items that find the direction.
    """
    data, settings = measures.data, measures.settings
    if decisions is not None:
        return Path((decisions[:, None] > np.arange(data.k - 1)).astype(np.float64)), None
    if data.demand is None:
        raise ValueError("The `data` parameter of `analyse` must have scores, or `decisions` must be given.")
    demand = data.demand[:, 0] if data.demand.ndim == 2 and data.demand.shape[1] == 1 else data.demand
    if thresholds is not None:
        return fixed_path(demand, [demand_threshold(t, settings.direction_is_up) for t in thresholds]), None
    if data.k == 2:
        return score_path(demand), None
    if data.direction is None:
        raise ValueError("The `data` parameter of `analyse` must say which items find the direction.")
    certifying = certifying_items(data)
    if certifying is None:
        # Too few items for two parts: the path has its two ends only, so no item chose it and all may certify.
        return path_through(demand, demand[:0], (-np.inf,) * (data.k - 1)), None
    finders = data.subset(data.direction)
    target = target_thresholds(item_measures(finders, settings, path_costs(finders, settings, settings.policy)))
    if target is None:  # nothing to aim at: every threshold alike, at the same quantile
        target = (-np.inf,) * (data.k - 1)
    assert finders.demand is not None
    return path_through(demand, finders.demand, target), certifying


def certifying_items(data: RoutingData) -> NDArray[np.bool_] | None:
    """(N,) which items may certify where a threshold is searched for: those that find no direction. None: all,
    with two tiers, and where there are too few items for two parts."""
    if data.k == 2 or data.direction is None:
        return None
    if not data.weight[data.direction].any() or not data.weight[~data.direction].any():
        return None
    return ~data.direction


def search_along(
    measures: ItemMeasures, path: Path, certifying: NDArray[np.bool_] | None, fixed: bool = False
) -> Search:
    """Certificate and selection along `path` on the certifying items (None: all); a fixed point selects none."""
    if certifying is not None:
        data = measures.data.subset(certifying)
        measures = item_measures(
            data, measures.settings, path_costs(data, measures.settings, measures.costs.policy)
        )
    levels = path.levels if certifying is None else path.levels[certifying]
    sweep = sweep_of(levels)
    shares = shares_along(measures, levels, sweep)
    certificate = certify(measures, levels, sweep, shares)
    goal = objective(measures, sweep)
    selection = Selection(None, None) if fixed else select(measures, sweep, shares, certificate, goal)
    return Search(measures, levels, sweep, shares, certificate, goal, selection)


def shown_place(search: Search, fixed: bool = False) -> tuple[int, Selection]:
    """The candidate that everything is shown at, and the selection that stands."""
    if fixed:
        at = int(np.searchsorted(-search.sweep.levels, -1.0, side="left"))
        return min(at, len(search.sweep) - 1), search.selection
    selection = search.selection
    if search.measures.settings.delta is None:
        selection = Selection(None, selection.candidate)
    if selection.selected is not None:
        return selection.selected, selection
    if selection.candidate is not None:
        return selection.candidate, selection
    return len(search.sweep) - 1, selection


def level_at(search: Search, path: Path, place: int, fixed: bool = False) -> float:
    """The level of a candidate. The last one sends up all items, not only those that certify."""
    level = float(search.sweep.levels[place])
    if fixed or place < len(search.sweep) - 1:
        return level
    return min(level, float(path.levels[path.levels > -np.inf].min(initial=np.inf)))
