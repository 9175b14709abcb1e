"""Cost-effectiveness analysis: what quality costs along a ladder of arms, and whether the next step is worth it.

Arms are compared by mean quality (in any unit, such as points of pass rate) and mean cost per request in USD.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalkit.statistics._parameters import bad_parameter, check_open_share, finite_array, weight_array
from evalkit.statistics.bounds import effective_n, upper_bound

__all__ = [
    "ArmStatus",
    "CostPerGain",
    "Decision",
    "FiellerSet",
    "FrontierArm",
    "NetBenefit",
    "acceptability",
    "best_arm",
    "cost_per_gain",
    "fieller",
    "frontier",
    "net_benefit",
    "plateau",
]


class ArmStatus(StrEnum):
    """Where an arm stands to the frontier."""

    FRONTIER = "frontier"
    DOMINATED = "dominated"  # another arm is at least as good and no dearer
    EXTENDED_DOMINATED = "extended_dominated"  # a mix of two other arms is


@dataclass(frozen=True, slots=True)
class FrontierArm:
    """An arm's status, and its extra cost per extra quality against the arm before it on the frontier."""

    status: ArmStatus
    ratio: float | None


def frontier(quality: ArrayLike, cost: ArrayLike) -> tuple[FrontierArm, ...]:
    """Status and marginal ratio of each arm, in the order given.

    `quality`, `cost` (A,). Arms are sorted by cost, dominated ones are dropped, then those whose ratio is above
    that of the next (extended dominance), so that ratios rise along the frontier. The first arm of the frontier
    and arms off it have no ratio. Of equal arms the first named stays. A quality gain below 1e-12 of the
    largest quality is rounding, not a gain.

    >>> [arm.ratio for arm in frontier([78, 86, 87], [0.002, 0.004, 0.012])]
    [None, 0.00025, 0.008]
    """
    q, c = _arms("frontier", quality, cost)
    status = [ArmStatus.DOMINATED] * q.size
    noise = 1e-12 * float(np.abs(q).max(initial=0.0))
    hull: list[int] = []
    best = -math.inf
    for arm in np.lexsort((np.arange(q.size), -q, c)).tolist():
        if q[arm] - best <= noise:
            continue
        best = float(q[arm])
        while len(hull) > 1 and _ratio(q, c, hull[-2], hull[-1]) > _ratio(q, c, hull[-1], arm) * (1 + 1e-12):
            status[hull.pop()] = ArmStatus.EXTENDED_DOMINATED
        hull.append(arm)
        status[arm] = ArmStatus.FRONTIER
    ratios: list[float | None] = [None] * q.size
    for before, arm in pairwise(hull):
        ratios[arm] = _ratio(q, c, before, arm)
    return tuple(FrontierArm(*pair) for pair in zip(status, ratios, strict=True))


def best_arm(quality: ArrayLike, cost: ArrayLike, value: float) -> int:
    """The arm with the greatest net benefit `value * quality - cost`; of equals the cheapest, then the first.

    `value`: USD per unit of quality. Index into `quality` and `cost` (A,), A > 0.
    """
    q, c = _arms("best_arm", quality, cost)
    _check_value("best_arm", value)
    if not q.size:
        raise bad_parameter("best_arm", "quality", "one number per arm, and one arm at least", "no arms")
    return int(np.lexsort((np.arange(q.size), c, -(value * q - c)))[0])


class Decision(StrEnum):
    """Whether a step to a dearer arm is worth its price."""

    WORTH_IT = "worth it"
    NOT_WORTH_IT = "not worth it"
    UNDECIDED = "undecided at this n"


@dataclass(frozen=True, slots=True)
class NetBenefit:
    """Mean net benefit of a step in USD per task, its guarded bounds (None below 2 tasks) and the decision."""

    value: float | None
    lower: float | None
    upper: float | None
    decision: Decision
    n: int


def net_benefit(
    gains: ArrayLike,
    costs: ArrayLike,
    value: float,
    level: float,
    *,
    weights: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> NetBenefit:
    """Whether a step is worth it: `value * dQ - dC` against 0, paired by task, each side at error `level`.

    `gains` (n,): per-task differences of pass rate, fractions in -1 .. 1; `costs` (n,): differences of cost in
    USD; `value`: USD per unit pass rate; `level`: delta / (arms - 1). The one-sided t bounds are guarded by
    exact ones, because with few tasks the t interval collapses (p, q = sums of the positive and of the negative
    gains):

        lower = min(t lower, value * (p / n - upper_bound(ceil q, n)) - mean dC)
        upper = max(t upper, value * (upper_bound(ceil p, n) - q / n) - mean dC)

    Worth it: lower > 0. Not worth it: upper < 0. With value 1 and costs 0 `upper` bounds the gain, for `plateau`.

    `weights` (n,) >= 0 of the tasks; `groups` (n,) labels of tasks that hang together. The t bounds are then
    those of the weighted mean, robust to dependence within groups; in the exact ones p, q and n are those of
    `effective_n` tasks divided by the size of the largest group, whose tasks may all move together.
    """
    d, c = _tasks("net_benefit", gains, costs)
    check_open_share("net_benefit", "level", level)
    _check_value("net_benefit", value)
    if d.size and float(np.abs(d).max()) > 1.0:
        raise bad_parameter("net_benefit", "gains", "fractions between -1 and 1", float(d[np.abs(d).argmax()]))
    seen = _paired("net_benefit", d, c, weights, groups)
    if seen.n == 0:
        return NetBenefit(None, None, None, Decision.UNDECIDED, 0)
    mean = value * seen.gain - seen.cost
    if seen.df < 1:
        return NetBenefit(mean, None, None, Decision.UNDECIDED, seen.n)
    half = _t(1.0 - level, seen.df) * math.sqrt(max(0.0, _quadratic(seen.variance, value)))
    up, down, n = seen.up, seen.down, seen.size
    lower = min(mean - half, value * (up - _ceiling_bound(down * n, n, level)) - seen.cost)
    upper = max(mean + half, value * (_ceiling_bound(up * n, n, level) - down) - seen.cost)
    decision = Decision.WORTH_IT if lower > 0 else Decision.NOT_WORTH_IT if upper < 0 else Decision.UNDECIDED
    return NetBenefit(mean, lower, upper, decision, seen.n)


def plateau(upper_gains: Sequence[float | None], smallest_gain: float) -> int | None:
    """The first arm after which no step is worth having: every later step's gain is below `smallest_gain`.

    `upper_gains` (A - 1,): the upper bound on the gain of the step from arm j to j + 1, as `net_benefit` gives it
    with value 1 and costs 0, None where unknown; the same unit as `smallest_gain`. None where there is no plateau;
    the last arm alone is none.
    """
    first = None
    for step in range(len(upper_gains) - 1, -1, -1):
        gain = upper_gains[step]
        if gain is None or not gain < smallest_gain:
            break
        first = step
    return first


@dataclass(frozen=True, slots=True)
class FiellerSet:
    """The confidence set of a ratio: an `interval`, all that is `outside` one, or `everything` (no ends)."""

    kind: str
    lower: float | None
    upper: float | None


def fieller(
    gain: float, cost: float, gain_variance: float, cost_variance: float, covariance: float, t: float
) -> FiellerSet:
    """The confidence set of cost / gain by Fieller's theorem (Fieller 1954).

    All r with `(cost - r gain)^2 <= t^2 (cost_variance - 2 r covariance + r^2 gain_variance)`; variances are those
    of the means, `t` the quantile. An interval exactly where the interval of the gain excludes 0.
    """
    a = gain * gain - t * t * gain_variance
    b = gain * cost - t * t * covariance
    c = cost * cost - t * t * cost_variance
    inside = b * b - a * c
    if a == 0 or (a < 0 and inside <= 0):
        return FiellerSet("everything", None, None)
    root = math.sqrt(max(0.0, inside))
    lower, upper = sorted(((b - root) / a, (b + root) / a))
    return FiellerSet("interval" if a > 0 else "outside", lower, upper)


@dataclass(frozen=True, slots=True)
class CostPerGain:
    """Extra cost per extra quality with its Fieller interval; where it must not be printed, None and why not."""

    ratio: float | None
    lower: float | None
    upper: float | None
    reason: str | None


def cost_per_gain(
    gains: ArrayLike,
    costs: ArrayLike,
    confidence: float = 0.95,
    *,
    weights: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> CostPerGain:
    """The ratio of mean extra cost to mean gain, paired by task; printed only where the gain is measurable.

    `gains`, `costs` (n,). The ratio needs a gain whose two-sided t interval lies above 0, and a mean extra cost
    of 0 or more. Otherwise `reason` is "no measurable gain", "measurable loss" or "better and cheaper". `weights`
    (n,) >= 0 and `groups` (n,) as in `net_benefit`.
    """
    d, c = _tasks("cost_per_gain", gains, costs)
    check_open_share("cost_per_gain", "confidence", confidence)
    seen = _paired("cost_per_gain", d, c, weights, groups)
    if seen.df < 1:
        return CostPerGain(None, None, None, "no measurable gain")
    gain, cost, matrix = seen.gain, seen.cost, seen.variance
    t = _t(0.5 + confidence / 2, seen.df)
    half = t * math.sqrt(float(matrix[0, 0]))
    if abs(gain) <= half or abs(gain) <= 1e-12 * float(np.abs(d).max()):
        return CostPerGain(None, None, None, "no measurable gain")
    if gain < 0:
        return CostPerGain(None, None, None, "measurable loss")
    if cost < 0:
        return CostPerGain(None, None, None, "better and cheaper")
    ends = fieller(gain, cost, float(matrix[0, 0]), float(matrix[1, 1]), float(matrix[0, 1]), t)
    if ends.kind != "interval":  # the squares of such a gain are below the smallest float
        return CostPerGain(None, None, None, "no measurable gain")
    return CostPerGain(cost / gain, ends.lower, ends.upper, None)


def acceptability(
    quality: ArrayLike,
    cost: ArrayLike,
    values: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    replicates: int = 2000,
    seed: int,
) -> NDArray[np.float64]:
    """The cost-effectiveness acceptability curve: how often each arm is the best at each value, (L, A).

    `quality`, `cost` (n, A): per task and arm; `values` (L,): USD per unit of quality. The share of bootstrap
    replicates over tasks in which the arm has the greatest net benefit; ties go to the cheaper arm. Rows sum to 1.
    `weights` (n,) >= 0; `groups` (n,): tasks that are drawn together.
    """
    from evalkit.statistics.bootstrap import poisson_means

    q, c = np.asarray(quality, dtype=np.float64), np.asarray(cost, dtype=np.float64)
    if q.ndim != 2 or q.shape != c.shape or 0 in q.shape:
        raise bad_parameter("acceptability", "quality", "(tasks, arms) like `cost`", f"{q.shape} for {c.shape}")
    at = finite_array("acceptability", "values", values)
    means = poisson_means(
        np.concatenate([q, c], axis=1), weights=weights, groups=groups, replicates=replicates, seed=seed
    )
    arms = q.shape[1]
    w = weight_array("acceptability", weights, c.shape[0])
    mean_cost = c.mean(axis=0) if w is None else w @ c / w.sum()
    order = np.argsort(mean_cost, kind="stable")  # argmax takes the first: the cheapest
    mean_q, mean_c = means[:, :arms][:, order], means[:, arms:][:, order]
    curve = np.zeros((at.size, arms))
    for row, value in enumerate(at):
        winners = order[np.argmax(value * mean_q - mean_c, axis=1)]
        curve[row] = np.bincount(winners, minlength=arms) / replicates
    return curve


@dataclass(frozen=True, slots=True)
class _Paired:
    """Means of paired gains and costs, the (2, 2) variance of the means, and what the exact guard counts with:
    shares of positive and negative gain, out of `size` independent tasks."""

    n: int
    gain: float
    cost: float
    variance: NDArray[np.float64]
    df: int
    up: float
    down: float
    size: float


def _paired(
    function: str,
    d: NDArray[np.float64],
    c: NDArray[np.float64],
    weights: ArrayLike | None,
    groups: ArrayLike | None,
) -> _Paired:
    """`variance` is `G / (G - 1) * sum_g u_g u_g'`, u_g = sum over the group of w_i (x_i - mean) / sum(w): with
    equal weights and no groups the sample covariance over n."""
    w = weight_array(function, weights, d.size)
    labels = np.arange(d.size) if groups is None else np.asarray(groups)
    if labels.shape != (d.size,):
        raise bad_parameter(function, "groups", f"one label per task ({d.size})", f"shape {labels.shape}")
    if w is not None:
        used = w > 0
        d, c, labels, w = d[used], c[used], labels[used], w[used]
    n = d.size
    if n == 0:
        return _Paired(0, 0.0, 0.0, np.zeros((2, 2)), -1, 0.0, 0.0, 0.0)
    if w is None:
        share, size = np.full(n, 1.0 / n), float(n)
        gain, cost = float(d.mean()), float(c.mean())
    else:
        share, size = w / w.sum(), effective_n(w)
        gain, cost = float(share @ d), float(share @ c)
    _, unit = np.unique(labels, return_inverse=True)
    influence = np.stack(
        [np.bincount(unit, weights=share * (d - gain)), np.bincount(unit, weights=share * (c - cost))]
    )
    count = influence.shape[1]
    variance = influence @ influence.T * (count / (count - 1)) if count > 1 else np.zeros((2, 2))
    up = math.fsum((share * d)[d > 0].tolist())
    down = -math.fsum((share * d)[d < 0].tolist())
    return _Paired(n, gain, cost, variance, count - 1, up, down, size / int(np.bincount(unit).max()))


def _quadratic(variance: NDArray[np.float64], value: float) -> float:
    """The variance of `value * gain - cost`."""
    return float(value * value * variance[0, 0] - 2 * value * variance[0, 1] + variance[1, 1])


def _t(share: float, df: int) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(df, share))


def _ceiling_bound(amount: float, n: float, level: float) -> float:
    """The exact upper bound on a rate of `amount` (rounded up) out of n."""
    bound = upper_bound(min(n, math.ceil(amount - 1e-9)), n, 1.0 - level)
    return 1.0 if bound is None else bound


def _ratio(q: NDArray[np.float64], c: NDArray[np.float64], before: int, arm: int) -> float:
    return float((c[arm] - c[before]) / (q[arm] - q[before]))


def _arms(function: str, quality: ArrayLike, cost: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    q, c = finite_array(function, "quality", quality), finite_array(function, "cost", cost)
    if q.size != c.size:
        raise bad_parameter(function, "cost", f"one number per arm ({q.size})", f"{c.size} numbers")
    return q, c


def _tasks(function: str, gains: ArrayLike, costs: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    d, c = finite_array(function, "gains", gains), finite_array(function, "costs", costs)
    if d.size != c.size:
        raise bad_parameter(function, "costs", f"one number per task ({d.size})", f"{c.size} numbers")
    return d, c


def _check_value(function: str, value: float) -> None:
    if not (math.isfinite(value) and value >= 0):
        raise bad_parameter(function, "value", "a finite number, 0 or more", value)
