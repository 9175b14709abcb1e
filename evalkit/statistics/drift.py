"""Does the live mix of requests still look like the labelled one? Counts by category or bin, in the same order."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalkit.statistics._parameters import bad_parameter, check_open_share

__all__ = ["Drift", "GoodnessOfFit", "drift", "goodness_of_fit"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Drift:
    """Measures of the distance of two mixes, with what chance alone would show.

    psi             population stability index, `sum (p - q) ln(p / q)`
    psi_null_mean   its mean without any drift, `(1/n + 1/m) (K - 1)`
    psi_null_upper  its upper quantile without any drift, `(1/n + 1/m) chi2(K - 1)`
    smoothed        a category was empty on one side: 1/2 was added to every count for the PSI
    chi2, p_value   two-sample chi-square test with K - 1 degrees of freedom
    js_divergence   Jensen-Shannon divergence in nats; js_distance is its square root
    """

    psi: float
    psi_null_mean: float
    psi_null_upper: float
    smoothed: bool
    chi2: float
    p_value: float
    js_divergence: float
    js_distance: float


def drift(reference: ArrayLike, live: ArrayLike, confidence: float = 0.95) -> Drift | None:
    """Compare the counts `reference` (K,) with `live` (K,); None where either is empty.

    Categories empty on both sides are left out. With few items a large PSI is nothing but chance: judge it against
    `psi_null_upper` (at `confidence`), not against fixed cut-offs.
    """
    from scipy.special import chdtrc, chdtri, rel_entr

    check_open_share("drift", "confidence", confidence)
    a, b = _counts("drift", "reference", reference), _counts("drift", "live", live)
    if a.size != b.size:
        raise bad_parameter("drift", "live", f"one count per category ({a.size})", f"{b.size} counts")
    used = (a > 0) | (b > 0)
    a, b = a[used], b[used]
    n, m = float(a.sum()), float(b.sum())
    if n <= 0 or m <= 0:
        return None
    free = a.size - 1
    smoothed = bool((a == 0).any() or (b == 0).any())
    p, q = _shares(a + 0.5 * smoothed), _shares(b + 0.5 * smoothed)
    psi = float(((p - q) * np.log(p / q)).sum())
    scale = 1 / n + 1 / m
    null_upper = scale * float(chdtri(free, 1 - confidence)) if free else 0.0
    p, q = _shares(a), _shares(b)
    chi2 = float(((math.sqrt(m / n) * a - math.sqrt(n / m) * b) ** 2 / (a + b)).sum()) if free else 0.0
    p_value = float(chdtrc(free, chi2)) if free else 1.0
    middle = (p + q) / 2
    divergence = max(0.0, float(rel_entr(p, middle).sum() + rel_entr(q, middle).sum()) / 2)
    return Drift(psi, scale * free, null_upper, smoothed, chi2, p_value, divergence, math.sqrt(divergence))


@dataclass(frozen=True, slots=True)
class GoodnessOfFit:
    """Chi-square test of counts against known shares."""

    chi2: float
    df: int
    p_value: float


def goodness_of_fit(counts: ArrayLike, shares: ArrayLike) -> GoodnessOfFit | None:
    """Chi-square test of `counts` (K,) against known `shares` (K,), rescaled to sum 1; None without counts.

    A count in a category of share 0 cannot happen: ValueError.
    """
    from scipy.special import chdtrc

    observed, expected = _counts("goodness_of_fit", "counts", counts), _counts("goodness_of_fit", "shares", shares)
    if observed.size != expected.size or expected.sum() <= 0:
        raise bad_parameter("goodness_of_fit", "shares", f"{observed.size} numbers, not all 0", expected.tolist())
    if (observed[expected == 0] > 0).any():
        raise bad_parameter("goodness_of_fit", "shares", "above 0 wherever there are counts", expected.tolist())
    observed, expected = observed[expected > 0], expected[expected > 0]
    n = float(observed.sum())
    if n <= 0:
        return None
    expected = n * _shares(expected)
    chi2 = float(((observed - expected) ** 2 / expected).sum())
    free = observed.size - 1
    return GoodnessOfFit(chi2, free, float(chdtrc(free, chi2)) if free else 1.0)


def _shares(counts: Floats) -> Floats:
    total: Floats = counts / counts.sum()
    return total


def _counts(function: str, name: str, values: ArrayLike) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not (np.isfinite(array) & (array >= 0)).all():
        raise bad_parameter(function, name, "one-dimensional, finite and 0 or more", np.asarray(values).tolist())
    return array
