"""Does a score separate the items that need a stronger tier from the others?"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalkit.statistics._parameters import bad_parameter, check_open_share

__all__ = ["Separation", "separation"]


@dataclass(frozen=True, slots=True)
class Separation:
    """The area under the ROC curve with DeLong's variance and its logit interval.

    auc           P(positive scores higher) + P(tie) / 2
    variance      DeLong's; None where a class has one item only and 0 < auc < 1
    lower, upper  two-sided; equal to `auc` at 0 and 1, which have no logit interval; None as `variance`
    """

    auc: float
    variance: float | None
    lower: float | None
    upper: float | None
    n_positive: int
    n_negative: int


def separation(scores: ArrayLike, positive: ArrayLike, confidence: float = 0.95) -> Separation | None:
    """How well higher `scores` (n,) mark the `positive` (n,) items; None where a class is empty.

    Midranks give each item its placement among the other class in O(n log n), ties counting half; the variance is
    `var(V10) / n_positive + var(V01) / n_negative` over the placements (DeLong, DeLong and Clarke-Pearson 1988, in
    the form of Sun and Xu 2014); the interval is `logit(auc) -+ z sqrt(variance) / (auc (1 - auc))`, mapped back.
    Scores may be infinite; ValueError for NaN.

    >>> separation([1.0, 2.0, 3.0, 4.0], [False, False, True, True]).auc
    1.0
    """
    check_open_share("separation", "confidence", confidence)
    x = np.asarray(scores, dtype=np.float64)
    y = np.asarray(positive)
    if x.ndim != 1 or x.shape != y.shape:
        raise bad_parameter(
            "separation", "positive", "one-dimensional and as long as `scores`", f"shape {y.shape} for {x.shape}"
        )
    if y.dtype != np.bool_ and not np.isin(y, (0, 1)).all():
        raise bad_parameter("separation", "positive", "true or false throughout", f"dtype {y.dtype}")
    missing = int(np.count_nonzero(np.isnan(x)))
    if missing:
        raise bad_parameter("separation", "scores", "free of NaN", f"{missing} of {x.size} NaN")
    y = y.astype(np.bool_)
    high, low = np.sort(x[y]), np.sort(x[~y])
    if not high.size or not low.size:
        return None
    above = _twice_below(high, low)
    auc = float(above.sum()) / (2.0 * high.size * low.size)
    if auc in {0.0, 1.0}:
        return Separation(auc, 0.0, auc, auc, high.size, low.size)
    if high.size < 2 or low.size < 2:
        return Separation(auc, None, None, None, high.size, low.size)
    placed_high, placed_low = above / (2.0 * low.size), _twice_below(low, high) / (2.0 * high.size)
    variance = float(placed_high.var(ddof=1)) / high.size + float(placed_low.var(ddof=1)) / low.size
    lower, upper = _logit_interval(auc, variance, confidence)
    return Separation(auc, variance, lower, upper, high.size, low.size)


def _twice_below(values: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.int64]:
    """Twice the number of `others` below each of `values`, ties counting one: whole numbers. Both sorted."""
    below = np.searchsorted(others, values, side="left")
    return (below + np.searchsorted(others, values, side="right")).astype(np.int64)


def _logit_interval(auc: float, variance: float, confidence: float) -> tuple[float, float]:
    from scipy.special import expit, ndtri

    centre = math.log(auc / (1.0 - auc))
    half = float(ndtri(0.5 + confidence / 2.0)) * math.sqrt(variance) / (auc * (1.0 - auc))
    return float(expit(centre - half)), float(expit(centre + half))
