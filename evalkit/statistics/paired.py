"""Comparing two policies, routers or arms on the same items."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalkit.statistics._parameters import (
    bad_parameter,
    check_count,
    check_open_share,
    finite_array,
    weight_array,
)

__all__ = [
    "Difference",
    "TaskMeans",
    "mcnemar_exact",
    "minimum_detectable_effect",
    "minimum_detectable_from_se",
    "paired_difference",
    "task_means",
]


@dataclass(frozen=True, slots=True)
class Difference:
    """A mean of paired differences with its t interval.

    mean          weighted mean; None without weight
    lower, upper  two-sided interval; None where there are fewer than two groups
    se            standard error, robust to dependence within groups; None as above
    df            degrees of freedom, groups - 1 (at least 0)
    n             items with weight
    """

    mean: float | None
    lower: float | None
    upper: float | None
    se: float | None
    df: int
    n: int


def paired_difference(
    differences: ArrayLike,
    weights: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    confidence: float = 0.95,
) -> Difference:
    """The mean of per-item differences with a group-robust t interval.

    `differences` (n,) in any unit; `weights` (n,) >= 0; `groups` (n,) labels of any kind, None = every item is its
    own. Mean `sum(w d) / sum(w)`; variance `G / (G - 1) * sum_g (sum_{i in g} w_i (d_i - mean) / sum(w))^2`
    (linearised ratio, clustered; Liang and Zeger 1986); t with G - 1. Items of weight 0 count nowhere.

    Differences that are all equal give an interval of width 0: for a rate set an exact bound beside it.

    >>> paired_difference([1.0, 2.0, 3.0, 6.0]).mean
    3.0
    """
    check_open_share("paired_difference", "confidence", confidence)
    d = finite_array("paired_difference", "differences", differences)
    w = weight_array("paired_difference", weights, d.size)
    w = np.ones(d.size) if w is None else w
    group = None if groups is None else _group_numbers("paired_difference", groups, d.size)
    counted = w > 0
    d, w = d[counted], w[counted]
    if not d.size:
        return Difference(None, None, None, None, 0, 0)
    share = w / w.max()
    share = share / share.sum()
    centre = float(d.min()) / 2 + float(d.max()) / 2
    mean = centre + float(share @ (d - centre))  # exact where all differences are equal
    influence = share * (d - mean)
    if group is not None:
        _, number = np.unique(group[counted], return_inverse=True)
        influence = np.bincount(number, weights=influence)
    count = influence.size
    if count < 2:
        return Difference(mean, None, None, None, count - 1, d.size)
    se = math.sqrt(count / (count - 1)) * float(np.linalg.norm(influence))
    half = _t_quantile(0.5 + confidence / 2, count - 1) * se
    return Difference(mean, mean - half, mean + half, se, count - 1, d.size)


def mcnemar_exact(b: int, c: int) -> float:
    """Two-sided exact p-value of McNemar's test for `b` and `c` discordant pairs; 1.0 without any.

    `min(1, 2 P(Binomial(b + c, 1/2) <= min(b, c)))` (McNemar 1947, exact form).

    >>> round(mcnemar_exact(5, 15), 9)
    0.041389465
    """
    from scipy.special import bdtr

    for name, value in (("b", b), ("c", c)):
        check_count("mcnemar_exact", name, value)
        if value != int(value):
            raise bad_parameter("mcnemar_exact", name, "a whole number", value)
    if b == c:
        return 1.0
    return min(1.0, 2.0 * float(bdtr(min(int(b), int(c)), int(b) + int(c), 0.5)))


@dataclass(frozen=True, slots=True)
class TaskMeans:
    """A mean over tasks that were run several times, and where its variance comes from.

    mean, se, df, lower, upper  of the task means; se and interval None for fewer than two tasks
    between   variance of the tasks' true means (method of moments; it may be negative); None where unknown
    within    variance of runs of the same task; None where no task has two runs
    tasks, runs  how many of each
    """

    mean: float | None
    se: float | None
    df: int
    lower: float | None
    upper: float | None
    between: float | None
    within: float | None
    tasks: int
    runs: int


def task_means(values: ArrayLike, tasks: ArrayLike, confidence: float = 0.95) -> TaskMeans:
    """The mean of task means with its t interval, df = tasks - 1, from k runs of each task.

    `values` (n,) one a run; `tasks` (n,) the task of each run. Every task counts once, whatever its number of
    runs. Runs are never pooled: the standard error is `sd(task means) / sqrt(tasks)`. One-way analysis of
    variance gives `within` = MSW and `between` = (MSB - MSW) / k, k = the mean number of runs corrected for
    imbalance.
    """
    check_open_share("task_means", "confidence", confidence)
    x = finite_array("task_means", "values", values)
    task = _group_numbers("task_means", tasks, x.size)
    if not x.size:
        return TaskMeans(None, None, 0, None, None, None, None, 0, 0)
    count = np.bincount(task)
    means = np.bincount(task, weights=x) / count
    overall = paired_difference(means, confidence=confidence)
    between, within = _variance_components(x, task, count, means)
    return TaskMeans(
        overall.mean, overall.se, overall.df, overall.lower, overall.upper, between, within, count.size, x.size
    )


def minimum_detectable_effect(
    n: int, between: float, within: float, runs: int = 1, *, confidence: float = 0.95, power: float = 0.80
) -> float | None:
    """The least true difference of two arms that a two-sided paired t test of `n` tasks finds with chance `power`.

    `between`: variance of the tasks' true differences; `within`: variance of one run of one arm; `runs` of each
    arm on each task. The variance of a task's difference is `between + 2 within / runs`. In the unit of the values
    (0.223 = 22.3 points of a pass rate). None for fewer than two tasks.

    >>> round(minimum_detectable_effect(30, 1 / 9, 1 / 6, 5), 3)
    0.223
    """
    check_count("minimum_detectable_effect", "n", n)
    check_count("minimum_detectable_effect", "between", between)
    check_count("minimum_detectable_effect", "within", within)
    if runs < 1:
        raise bad_parameter("minimum_detectable_effect", "runs", "1 or more", runs)
    if n < 2:
        return None
    se = math.sqrt((between + 2 * within / runs) / n)
    return minimum_detectable_from_se(se, n - 1, confidence=confidence, power=power)


def minimum_detectable_from_se(
    se: float, df: int, *, confidence: float = 0.95, power: float = 0.80
) -> float | None:
    """The least true difference that a two-sided t test with this standard error finds with chance `power`.

    Solves `P(|T| > t) = power` for the noncentrality of Student's T with `df` degrees of freedom. None for df < 1.
    """
    from scipy.optimize import brentq
    from scipy.special import ncfdtr

    check_count("minimum_detectable_from_se", "se", se)
    check_open_share("minimum_detectable_from_se", "confidence", confidence)
    check_open_share("minimum_detectable_from_se", "power", power)
    if power < 1 - confidence:
        raise bad_parameter("minimum_detectable_from_se", "power", "at least 1 - confidence", power)
    if df < 1:
        return None
    t = _t_quantile(0.5 + confidence / 2, df)

    def shortfall(shift: float) -> float:
        # T squared is noncentral F with 1 and df degrees of freedom, which has both tails.
        return float(ncfdtr(1, df, shift * shift, t * t)) - (1 - power)

    high = 1.0
    while shortfall(high) > 0:
        high *= 2
    return se * float(brentq(shortfall, 0.0, high, xtol=1e-12))


def _t_quantile(share: float, df: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(df, share))


def _group_numbers(function: str, groups: ArrayLike | None, size: int) -> NDArray[np.intp]:
    """Groups as whole numbers from 0; every item its own without groups."""
    if groups is None:
        return np.arange(size)
    labels = np.asarray(groups)
    if labels.shape != (size,):
        raise bad_parameter(function, "groups" if function == "paired_difference" else "tasks",
                            f"one label per value ({size})", f"shape {labels.shape}")  # fmt: skip
    return np.unique(labels, return_inverse=True)[1].reshape(size)


def _variance_components(
    x: NDArray[np.float64], task: NDArray[np.intp], count: NDArray[np.intp], means: NDArray[np.float64]
) -> tuple[float | None, float | None]:
    """(between, within) of a one-way layout by the method of moments."""
    tasks, runs = count.size, x.size
    if runs == tasks:
        return None, None
    within = float(((x - means[task]) ** 2).sum()) / (runs - tasks)
    if tasks < 2:
        return None, within
    grand = float(x.mean())
    mean_square = float((count * (means - grand) ** 2).sum()) / (tasks - 1)
    size = (runs - float((count.astype(float) ** 2).sum()) / runs) / (tasks - 1)
    return (mean_square - within) / size, within
