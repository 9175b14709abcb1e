"""Reweighting a sample whose strata were sampled unevenly to the shares of the traffic."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evalkit.statistics._parameters import bad_parameter, check_open_share, finite_array

__all__ = ["StratifiedMean", "Stratum", "stratified_mean"]


@dataclass(frozen=True, slots=True)
class Stratum:
    """One stratum: its share of the traffic, items, mean and sample variance (None where there are too few)."""

    share: float
    n: int
    mean: float | None
    variance: float | None


@dataclass(frozen=True, slots=True)
class StratifiedMean:
    """The mean reweighted to traffic shares.

    mean            None where a stratum with traffic has no item: there is then no overall figure to gate on
    se, df          standard error, Satterthwaite's degrees of freedom; None where a stratum has fewer than 2 items
    lower, upper    two-sided t interval; None as `se`
    covered_mean    the mean over the strata that have items, None without any
    covered_share   their share of the traffic
    least, most     what the mean can be whatever the empty strata hold; None without a range of values
    strata          one entry per label
    """

    mean: float | None
    se: float | None
    df: float | None
    lower: float | None
    upper: float | None
    covered_mean: float | None
    covered_share: float
    least: float | None
    most: float | None
    strata: Mapping[Any, Stratum]


def stratified_mean(
    values: ArrayLike,
    strata: ArrayLike,
    shares: Mapping[Any, float],
    confidence: float = 0.95,
    value_range: tuple[float, float] | None = (0.0, 1.0),
) -> StratifiedMean:
    """The mean of `values` (n,), whose `strata` (n labels) were sampled unevenly, at the traffic's `shares`.

    `Y = sum W_h mean_h`, `Var = sum W_h^2 s_h^2 / n_h`, t with Satterthwaite's degrees of freedom
    `(sum a_h)^2 / sum a_h^2 / (n_h - 1)`, a_h = W_h^2 s_h^2 / n_h (Cochran 1977, 5.4). `shares` gives every
    label its share (rescaled to sum 1); labels of share 0 count nowhere. `value_range` bounds what an empty
    stratum may hold. ValueError for a label without a share.
    """
    check_open_share("stratified_mean", "confidence", confidence)
    x = finite_array("stratified_mean", "values", values)
    labels = np.asarray(strata)
    if labels.shape != x.shape:
        raise bad_parameter(
            "stratified_mean", "strata", f"one label per value ({x.size})", f"shape {labels.shape}"
        )
    wrong = [share for share in shares.values() if not (math.isfinite(share) and share >= 0)]
    total = sum(shares.values())
    if wrong or not total > 0:
        raise bad_parameter("stratified_mean", "shares", "finite, 0 or more and not all 0", wrong or dict(shares))
    unknown = sorted({str(label) for label in labels.tolist() if label not in shares})
    if unknown:
        raise bad_parameter("stratified_mean", "shares", "given for every label", f"none for {', '.join(unknown)}")
    parts: dict[Any, Stratum] = {}
    for label, share in shares.items():
        part = x[labels == label]
        mean = float(part.mean()) if part.size else None
        variance = float(part.var(ddof=1)) if part.size > 1 else None
        parts[label] = Stratum(share / total, part.size, mean, variance)
    return _combined(parts, confidence, value_range)


def _combined(
    parts: dict[Any, Stratum], confidence: float, value_range: tuple[float, float] | None
) -> StratifiedMean:
    from scipy.special import stdtrit

    traffic = [part for part in parts.values() if part.share > 0]
    seen = [(part.share, part.mean) for part in traffic if part.mean is not None]
    covered = min(1.0, sum(share for share, _ in seen))
    part_sum = sum(share * mean for share, mean in seen)
    empty = len(seen) < len(traffic)
    covered_mean = part_sum / covered if covered > 0 else None
    least = most = None
    if not empty:
        covered, least, most = 1.0, part_sum, part_sum
    elif value_range is not None:
        least, most = (part_sum + (1.0 - covered) * end for end in value_range)
    se = df = lower = upper = None
    terms = [(p.share**2 * p.variance / p.n, p.n - 1) for p in traffic if p.variance is not None]
    if len(terms) == len(traffic):
        total = sum(term for term, _ in terms)
        se = math.sqrt(total)
        # Relative terms, so that small variances do not vanish when squared.
        df = (
            1.0 / sum((term / total) ** 2 / free for term, free in terms)
            if total > 0
            else float(sum(free for _, free in terms))
        )
        half = float(stdtrit(df, 0.5 + confidence / 2)) * se
        lower, upper = part_sum - half, part_sum + half
    return StratifiedMean(
        None if empty else part_sum, se, df, lower, upper, covered_mean, covered, least, most, parts
    )
