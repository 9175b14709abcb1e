"""Steps of the ladder: what the next arm gains, breaks and costs against the one before it, paired by task."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from evalkit.reasoning.data import Floats, LadderData, Settings
from evalkit.reasoning.tasks import TaskFigures, independent_tasks
from evalkit.statistics.bounds import upper_bound
from evalkit.statistics.cost_effectiveness import (
    ArmStatus,
    CostPerGain,
    NetBenefit,
    acceptability,
    best_arm,
    cost_per_gain,
    frontier,
    net_benefit,
    plateau,
)
from evalkit.statistics.paired import Difference, minimum_detectable_from_se, paired_difference
from evalkit.statistics.rounding import clean

__all__ = [
    "Acceptability",
    "Flips",
    "Marginal",
    "Step",
    "acceptability_of",
    "best_at",
    "marginals_of",
    "plateau_of",
    "steps_of",
]

_RUN_LIMIT = 1e-12


@dataclass(frozen=True)
class Flips:
    """Tasks whose pass rate rose and fell, and how much in tasks (with single runs the same numbers)."""

    gained: int
    broken: int
    gained_tasks: float
    broken_tasks: float


@dataclass(frozen=True)
class Step:
    """From declared arm `before` to `arm` (positions).

    gain: difference of the pass rate (unanswered counted as failed), two-sided interval at the study's confidence.
    gain_bounds: net benefit with lambda 1 and no cost at the step's level: its guarded bounds of the gain alone.
    benefit: value x gain - cost at the same level; None without a value or with an unknown cost.
    detectable: the least true gain that this step would show as one with a chance of 80 %, as a fraction.
    """

    arm: int
    before: int
    gain: Difference
    cost: Difference | None
    flips: Flips
    gain_bounds: NetBenefit
    benefit: NetBenefit | None
    detectable: float | None


@dataclass(frozen=True)
class Marginal:
    """Where an arm stands to the frontier, and what a quality point costs beyond the arm before it there
    (`against`, position; None for the first of the frontier, arms off it and unknown costs)."""

    status: ArmStatus | None
    against: int | None
    price: CostPerGain | None


@dataclass(frozen=True)
class Acceptability:
    """How often each of `arms` (positions) is the best at each value of a quality point, over task bootstraps."""

    usd_per_point: tuple[float, ...]
    arms: tuple[int, ...]
    shares: tuple[tuple[float, ...], ...]


def steps_of(data: LadderData, tasks: TaskFigures, settings: Settings) -> list[Step]:
    """Every step in declared order, each at delta / (arms - 1) on each side."""
    level = settings.level_per_step(data.a)
    return [_step(data, tasks, settings, arm, level) for arm in range(1, data.a)]


def _step(data: LadderData, tasks: TaskFigures, settings: Settings, arm: int, level: float) -> Step:
    gains = tasks.passed[:, arm] - tasks.passed[:, arm - 1]
    gains = np.where(np.abs(gains) < _RUN_LIMIT, 0.0, gains)
    costs = tasks.cost_usd[:, arm] - tasks.cost_usd[:, arm - 1]
    known = not np.isnan(costs).any()
    about = {"weights": data.weight, "groups": data.group}
    gain = paired_difference(gains, data.weight, data.group, settings.confidence)
    bounds = net_benefit(gains, np.zeros(data.n), 1.0, level, **about)
    benefit = None
    if known and settings.value_usd is not None:
        benefit = net_benefit(gains, costs, settings.value_usd, level, **about)
    used = data.weight > 0
    up, down = gains > 0, gains < 0
    return Step(
        arm=arm,
        before=arm - 1,
        gain=gain,
        cost=paired_difference(costs, data.weight, data.group, settings.confidence) if known else None,
        flips=Flips(
            int((up & used).sum()),
            int((down & used).sum()),
            clean(math.fsum(gains[up & used].tolist())),
            clean(-math.fsum(gains[down & used].tolist())),
        ),
        gain_bounds=bounds,
        benefit=benefit,
        detectable=_detectable(data, gains, gain, level),
    )


def _detectable(data: LadderData, gains: Floats, gain: Difference, level: float) -> float | None:
    """The least true gain of a step with these differences that is shown (lower bound above 0) with chance .8.

    From the standard error by the noncentral t; at least what the exact guard asks of the observed gain, which
    with few tasks is the larger.
    """
    if gain.se is None or gain.df < 1:
        return None
    by_t = minimum_detectable_from_se(gain.se, gain.df, confidence=1.0 - 2.0 * level)
    n = independent_tasks(data)
    down = float(data.weight @ np.maximum(-gains, 0.0) / data.weight.sum())
    bound = upper_bound(min(n, math.ceil(down * n - 1e-9)), n, 1.0 - level) if n > 0 else 1.0
    guard = (1.0 if bound is None else bound) - down
    return clean(min(1.0, max(by_t or 0.0, guard)))


def plateau_of(steps: Sequence[Step], settings: Settings) -> int | None:
    """The first arm (position) after which no single step gains as much as is worthwhile; None without one."""
    if settings.smallest_gain is None or not steps or settings.delta is None:
        return None
    return plateau([step.gain_bounds.upper for step in steps], settings.smallest_gain)


def marginals_of(data: LadderData, tasks: TaskFigures, settings: Settings) -> list[Marginal]:
    """Each arm's place, among the arms whose costs are all known; prices are USD per quality point (.01)."""
    known = _priced(tasks)
    if not len(known):
        return [Marginal(None, None, None)] * data.a
    quality, cost = _means(data, tasks.passed[:, known]), _means(data, tasks.cost_usd[:, known])
    places = frontier(quality, cost)
    ladder = sorted((i for i, p in enumerate(places) if p.status is ArmStatus.FRONTIER), key=lambda i: cost[i])
    out: list[Marginal] = [Marginal(None, None, None)] * data.a
    for i, place in enumerate(places):
        arm = int(known[i])
        out[arm] = Marginal(place.status, None, None)
        if place.status is ArmStatus.FRONTIER and (at := ladder.index(i)) > 0:
            before = int(known[ladder[at - 1]])
            price = cost_per_gain(
                100.0 * (tasks.passed[:, arm] - tasks.passed[:, before]),
                tasks.cost_usd[:, arm] - tasks.cost_usd[:, before],
                settings.confidence,
                weights=data.weight,
                groups=data.group,
            )
            if price.lower is not None and price.lower < 0:  # the arm may even be cheaper: no price below 0
                price = replace(price, lower=0.0)
            out[arm] = Marginal(place.status, before, price)
    return out


def best_at(data: LadderData, tasks: TaskFigures, value_usd: float) -> int | None:
    """The arm (position) of greatest mean net benefit at this value of a unit of pass rate, as observed."""
    known = _priced(tasks)
    if not len(known):
        return None
    quality, cost = _means(data, tasks.passed[:, known]), _means(data, tasks.cost_usd[:, known])
    return int(known[best_arm(quality, cost, value_usd)])


def acceptability_of(data: LadderData, tasks: TaskFigures, settings: Settings) -> Acceptability | None:
    """The curve over values of a quality point that span the prices seen; None with fewer than two priced arms
    or two tasks."""
    known = _priced(tasks)
    if len(known) < 2 or data.n < 2:
        return None
    cost, quality = _means(data, tasks.cost_usd[:, known]), _means(data, tasks.passed[:, known])
    prices = [p.ratio / 100.0 for p in frontier(quality, cost) if p.ratio is not None and p.ratio > 0]
    if settings.value_usd:
        prices.append(settings.value_usd / 100.0)
    if not prices:
        prices = [float(np.ptp(cost)) / 10.0 or 1e-4]
    low, high = min(prices) / 10.0, max(prices) * 10.0
    points = [0.0, *(float(f"{v:.3g}") for v in np.geomspace(low, high, 24))]
    curve = acceptability(
        tasks.passed[:, known],
        tasks.cost_usd[:, known],
        100.0 * np.array(points),
        weights=data.weight,
        groups=data.group,
        replicates=settings.bootstrap_replicates,
        seed=settings.seed,
    )
    rows = tuple(tuple(clean(float(v)) for v in row) for row in curve)
    return Acceptability(tuple(points), tuple(int(a) for a in known), rows)


def _means(data: LadderData, values: Floats) -> Floats:
    """(A,) means per request of `values` (T, A), without the last digits: equal arms are equal."""
    share = data.weight / data.weight.sum()
    return np.array([clean(float(v)) for v in share @ values])


def _priced(tasks: TaskFigures) -> np.ndarray[tuple[int, ...], np.dtype[np.intp]]:
    """Positions of the arms whose costs are all known."""
    return np.flatnonzero(~np.isnan(tasks.cost_usd).any(axis=0)) if len(tasks.cost_usd) else np.zeros(0, np.intp)
