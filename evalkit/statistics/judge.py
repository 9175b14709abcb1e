"""A rate seen through a fallible judge, corrected by a sample that people graded. Never a gate by itself."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evalkit.statistics._parameters import bad_parameter, check_count, check_open_share, finite_array

__all__ = ["Estimate", "prediction_powered_mean", "rogan_gladen"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate with its two-sided interval; `naive` is what the judge alone says."""

    value: float
    lower: float
    upper: float
    naive: float


def rogan_gladen(
    flagged: int,
    n: int,
    found: int,
    positives: int,
    cleared: int,
    negatives: int,
    confidence: float = 0.95,
) -> Estimate | None:
    """A rate corrected for the judge's sensitivity and specificity, with an interval for all three uncertainties.

    The judge flags `flagged` of `n` items. Against human grades it flags `found` of `positives` and clears
    `cleared` of `negatives`: Se = found / positives, Sp = cleared / negatives. `(p + Sp - 1) / (Se + Sp - 1)`,
    kept in 0 .. 1 (Rogan and Gladen 1978); the interval adds pseudo-observations and shifts the centre, because
    the plain delta method covers too little near 0 (Lang and Reiczigel 2014). None without items or grades, and
    for a judge no better than chance (Se + Sp <= 1).

    >>> round(rogan_gladen(60, 1000, 90, 100, 194, 200).value, 9)
    0.034482759
    """
    from scipy.special import ndtri

    check_open_share("rogan_gladen", "confidence", confidence)
    pairs = (("flagged", flagged, "n", n), ("found", found, "positives", positives),
             ("cleared", cleared, "negatives", negatives))  # fmt: skip
    for name, k, of, size in pairs:
        check_count("rogan_gladen", of, size)
        if not 0 <= k <= size:
            raise bad_parameter("rogan_gladen", name, f"between 0 and `{of}` = {size}", k)
    if not (n and positives and negatives):
        return None
    naive, se, sp = flagged / n, found / positives, cleared / negatives
    if se + sp <= 1:
        return None
    value = min(1.0, max(0.0, (naive + sp - 1) / (se + sp - 1)))
    z = float(ndtri(0.5 + confidence / 2))
    total, se_size, sp_size = n + z * z, positives + 2.0, negatives + 2.0
    p, se, sp = (flagged + z * z / 2) / total, (found + 1) / se_size, (cleared + 1) / sp_size
    gain = se + sp - 1
    if gain <= 0:  # so few grades that the judge may be no better than chance
        return Estimate(value, 0.0, 1.0, naive)
    rate = (p + sp - 1) / gain
    se_variance, sp_variance = se * (1 - se) / se_size, sp * (1 - sp) / sp_size
    centre = rate + 2 * z * z * (rate * se_variance - (1 - rate) * sp_variance)
    variance = p * (1 - p) / total + rate**2 * se_variance + (1 - rate) ** 2 * sp_variance
    half = z * math.sqrt(variance) / gain
    return Estimate(value, min(value, max(0.0, centre - half)), max(value, min(1.0, centre + half)), naive)


def prediction_powered_mean(
    graded: ArrayLike,
    judged: ArrayLike,
    judged_only: ArrayLike,
    confidence: float = 0.95,
    power: float | None = None,
) -> Estimate | None:
    """A mean from few human grades and many of the judge's (prediction-powered inference).

    `graded`, `judged` (n,): people's and the judge's grades of the same items; `judged_only` (N,): the judge's of
    others. `lambda mean(judged_only) + mean(graded - lambda judged)`, variance
    `lambda^2 var(judged_only) / N + var(graded - lambda judged) / n`, normal interval. `power` is lambda; None
    takes the one that minimises the variance, `cov(graded, judged) / ((1 + n / N) var(all judged))`, kept in 0
    .. 1 (Angelopoulos et al. 2023). None without items of both kinds.
    """
    from scipy.special import ndtri

    check_open_share("prediction_powered_mean", "confidence", confidence)
    y = finite_array("prediction_powered_mean", "graded", graded)
    f = finite_array("prediction_powered_mean", "judged", judged)
    others = finite_array("prediction_powered_mean", "judged_only", judged_only)
    if f.size != y.size:
        raise bad_parameter("prediction_powered_mean", "judged", f"one per graded item ({y.size})", f"{f.size}")
    if not y.size or not others.size:
        return None
    if power is None:
        spread = float(np.concatenate([f, others]).var()) * (1 + y.size / others.size)
        covariance = float(((y - y.mean()) * (f - f.mean())).mean())
        power = min(1.0, max(0.0, covariance / spread)) if spread > 0 else 0.0
    rest = y - power * f
    value = power * float(others.mean()) + float(rest.mean())
    se = math.sqrt(power**2 * float(others.var()) / others.size + float(rest.var()) / y.size)
    half = float(ndtri(0.5 + confidence / 2)) * se
    return Estimate(value, value - half, value + half, float(others.mean()))
