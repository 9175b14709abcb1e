"""Bounds on a rate, and how many items they need.

Gates use the exact one-sided Clopper-Pearson bound; Wilson and Korn-Graubard are for display only. Counts
may be real numbers, so that weighted and repeated observations go through the same formulas: `P(Binomial(n,
p) <= k)` is continued as the regularised incomplete beta function `I_{1-p}(n - k, k + 1)`.

Every question of the form "is k out of n good enough for this limit" is answered by one predicate
(`_passes`), so that a bound, a largest number of failures and a least number of items never disagree, not
by a rounding error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalkit.statistics._parameters import (
    bad_parameter,
    check_count,
    check_open_share,
    check_share,
    finite_array,
    weight_array,
)

__all__ = [
    "KornGraubard",
    "certification_power",
    "effective_n",
    "korn_graubard",
    "lower_bound",
    "max_failures",
    "max_failures_real",
    "missing_n",
    "required_n",
    "upper_bound",
    "upper_bounds",
    "wilson_interval",
]

_MOST_ITEMS = 10**15


def upper_bound(k: float, n: float, confidence: float = 0.95) -> float | None:
    """Exact one-sided upper bound on a rate seen `k` times out of `n` (Clopper and Pearson 1934).

    The `confidence` quantile of Beta(k + 1, n - k). 1.0 for k = n; None for n = 0, which states nothing.
    `k` and `n` may be real. Raises ValueError unless 0 <= k <= n.

    >>> round(upper_bound(1, 150), 9)
    0.031233817
    """
    _check_k_of_n("upper_bound", k, n)
    check_open_share("upper_bound", "confidence", confidence)
    return _upper(k, n, confidence) if n > 0 else None


def lower_bound(k: float, n: float, confidence: float = 0.95) -> float | None:
    """Exact one-sided lower bound on a rate seen `k` times out of `n` (Clopper and Pearson 1934).

    The `1 - confidence` quantile of Beta(k, n - k + 1). 0.0 for k = 0; None for n = 0.
    `k` and `n` may be real. Raises ValueError unless 0 <= k <= n.

    >>> round(lower_bound(297, 300), 8)
    0.97435861
    """
    _check_k_of_n("lower_bound", k, n)
    check_open_share("lower_bound", "confidence", confidence)
    return _lower(k, n, confidence) if n > 0 else None


def upper_bounds(k: ArrayLike, n: ArrayLike, confidence: float = 0.95) -> NDArray[np.float64]:
    """`upper_bound` for arrays; `k` and `n` are broadcast against each other. NaN where n = 0.

    Raises ValueError unless 0 <= k <= n throughout.
    """
    from scipy.special import betaincinv

    check_open_share("upper_bounds", "confidence", confidence)
    failures, items = np.broadcast_arrays(np.asarray(k, dtype=np.float64), np.asarray(n, dtype=np.float64))
    wrong = ~(np.isfinite(items) & (items >= 0))
    if wrong.any():
        raise bad_parameter("upper_bounds", "n", "finite numbers, 0 or more", float(items[wrong][0]))
    wrong = ~((failures >= 0) & (failures <= items))
    if wrong.any():
        raise bad_parameter("upper_bounds", "k", "between 0 and `n` throughout", float(failures[wrong][0]))
    bounds = np.ones(failures.shape)
    inside = failures < items
    bounds[inside] = betaincinv(failures[inside] + 1.0, items[inside] - failures[inside], confidence)
    bounds[items == 0] = np.nan
    return bounds


def wilson_interval(k: float, n: float, confidence: float = 0.95) -> tuple[float, float] | None:
    """Two-sided interval on a rate, for display only: it can miss more often than it says (Wilson 1927).

    `(p + z^2/2n -+ z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n)`. None for n = 0. ValueError unless 0 <= k <=
    n.
    """
    from scipy.special import ndtri

    _check_k_of_n("wilson_interval", k, n)
    check_open_share("wilson_interval", "confidence", confidence)
    if n <= 0:
        return None
    z2 = float(ndtri(0.5 + confidence / 2.0)) ** 2
    rate = k / n
    centre = (rate + z2 / (2 * n)) / (1 + z2 / n)
    half = math.sqrt(z2 * (rate * (1 - rate) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    lower = 0.0 if k <= 0 else max(0.0, centre - half)
    upper = 1.0 if k >= n else min(1.0, centre + half)
    return lower, upper


def max_failures(n: float, limit: float, delta: float) -> int:
    """The most failures out of `n` that still certify `limit`: max{k : P(Binomial(n, limit) <= k) <= delta}.

    -1 when not even 0 failures do, always so for limit 0 or n = 0; n for limit 1, which nothing can break.
    `n` may be real (an effective number of items).

    >>> [max_failures(n, 0.02, 0.05) for n in (148, 149, 235, 236, 1000)]
    [-1, 0, 0, 1, 12]
    """
    check_count("max_failures", "n", n)
    check_share("max_failures", "limit", limit)
    check_open_share("max_failures", "delta", delta)
    return _max_failures(n, limit, delta)


def max_failures_real(n: float, limit: float, delta: float) -> float:
    """The largest real k for which `upper_bound(k, n, 1 - delta)` is at most `limit`; -1.0 when k = 0 fails.

    The root in k of `I_{1-limit}(n - k, k + 1) = delta`, moved down until the bound, as computed, is within
    the limit. Its floor is `max_failures(n, limit, delta)`.
    """
    from scipy.optimize import brentq

    check_count("max_failures_real", "n", n)
    check_share("max_failures_real", "limit", limit)
    check_open_share("max_failures_real", "delta", delta)
    whole = _max_failures(n, limit, delta)
    if whole < 0:
        return -1.0
    low, high = float(whole), min(whole + 1.0, float(n))
    if limit >= 1.0:
        return float(n)
    if high <= low or _at_most(low, n, limit) >= delta:
        return low
    root = float(brentq(lambda k: _at_most(k, n, limit) - delta, low, high, xtol=1e-13, rtol=1e-14))
    if root >= whole + 1.0:  # whole + 1 is known to fail
        root = math.nextafter(whole + 1.0, 0.0)
    step = math.ulp(root)
    while root > low and not _passes(root, n, limit, delta):
        root, step = root - step, 2 * step
    return max(root, low)


def required_n(limit: float, failures: int, delta: float) -> int | None:
    """The fewest items that certify `limit` when `failures` of them fail.

    None for limit 0, which no n certifies, and where it would take more than 10^15 items.

    >>> [required_n(0.02, failures, 0.05) for failures in range(4)]
    [149, 236, 313, 386]
    """
    check_share("required_n", "limit", limit)
    check_count("required_n", "failures", failures)
    check_open_share("required_n", "delta", delta)
    return _required_n(limit, failures, delta)


def missing_n(k: float, n: float, limit: float, delta: float) -> int | None:
    """How many more items, without a further failure, would certify `limit` after `k` failures out of `n`.

    `min{m : P(Binomial(m, limit) <= k) <= delta} - n`, rounded up; 0 when `limit` is certified already.
    None where the observed rate is at or above the limit (more items will not help at this rate) and for
    limit 0.
    """
    _check_k_of_n("missing_n", k, n)
    check_share("missing_n", "limit", limit)
    check_open_share("missing_n", "delta", delta)
    if limit == 0 or (n > 0 and k / n >= limit):
        return None
    required = _required_n(limit, k, delta)
    return None if required is None else max(0, math.ceil(required - n))


def certification_power(n: int, limit: float, true_rate: float, delta: float) -> float:
    """The chance that `n` items certify `limit` when the true rate is `true_rate`.

    `P(Binomial(n, true_rate) <= max_failures(n, limit, delta))`.
    """
    check_count("certification_power", "n", n)
    check_share("certification_power", "limit", limit)
    check_share("certification_power", "true_rate", true_rate)
    check_open_share("certification_power", "delta", delta)
    return _at_most(_max_failures(n, limit, delta), n, true_rate)


def effective_n(weights: ArrayLike) -> float:
    """The number of items of equal weight that carry no more than these: sum(w) / max(w); 0.0 without weight.

    With it, `upper_bound(n_f * p_w, n_f)` stays a bound for the weighted rate p_w. At most the number of
    items that have weight. ValueError for negative weights or weights that are not finite.
    """
    array = finite_array("effective_n", "weights", weights)
    weight_array("effective_n", array, array.size)
    top = float(array.max(initial=0.0))
    if top <= 0:
        return 0.0
    return min(float((array / top).sum()), float(np.count_nonzero(array)))


@dataclass(frozen=True, slots=True)
class KornGraubard:
    """A stratified rate with its interval, for display; the bounds are one-sided at the given confidence."""

    rate: float
    variance: float
    effective_n: float
    lower: float
    upper: float


def korn_graubard(
    failures: ArrayLike, items: ArrayLike, shares: ArrayLike, confidence: float = 0.95
) -> KornGraubard | None:
    """One-sided Clopper-Pearson bounds at the effective sample size of a stratified rate, for display only.

    `failures`, `items` and `shares` have one number per stratum: k_h, n_h and the traffic share W_h
    (rescaled to sum 1). Rate sum(W p), variance `sum W^2 p (1 - p) / (n_h - 1)`, effective n `p (1 - p) /
    variance` times `(t_{n-1} / t_{n-L})^2`, at most n (Korn and Graubard 1998). It misses far more often
    than it says when a small stratum holds no failure, so no gate uses it. Without any variance (no
    failures, or nothing else) the effective n is that of the most heavily weighted item. None where a
    stratum with traffic has fewer than 2 items.
    """
    from scipy.special import stdtrit

    check_open_share("korn_graubard", "confidence", confidence)
    k = finite_array("korn_graubard", "failures", failures)
    n = finite_array("korn_graubard", "items", items)
    share = finite_array("korn_graubard", "shares", shares)
    if not k.size == n.size == share.size:
        raise bad_parameter("korn_graubard", "shares", "one number per stratum", f"{share.size} for {n.size}")
    if (k < 0).any() or (k > n).any():
        raise bad_parameter("korn_graubard", "failures", "between 0 and `items` in every stratum", k.tolist())
    if (share < 0).any() or share.sum() <= 0:
        raise bad_parameter("korn_graubard", "shares", "0 or more and not all 0", share.tolist())
    used = share > 0
    k, n, share = k[used], n[used], share[used] / share[used].sum()
    if (n < 2).any():
        return None
    rates = k / n
    rate = float(share @ rates)
    variance = float((share**2 * rates * (1 - rates) / (n - 1)).sum())
    total = float(n.sum())
    if variance > 0:
        ratio = float(stdtrit(total - 1, confidence) / stdtrit(total - n.size, confidence))
        size = min(total, rate * (1 - rate) / variance * ratio**2)
    else:
        size = min(total, 1.0 / float((share / n).max()))
    failing = min(size, size * rate)
    lower, upper = _lower(failing, size, confidence), _upper(failing, size, confidence)
    return KornGraubard(rate, variance, size, lower, upper)


def _check_k_of_n(function: str, k: float, n: float) -> None:
    check_count(function, "n", n)
    if not 0 <= k <= n:
        raise bad_parameter(function, "k", f"between 0 and `n` = {n}", k)


def _upper(k: float, n: float, confidence: float) -> float:
    """The upper bound for checked parameters and n > 0."""
    from scipy.special import betaincinv

    return float(betaincinv(k + 1.0, n - k, confidence)) if k < n else 1.0


def _lower(k: float, n: float, confidence: float) -> float:
    """The lower bound for checked parameters and n > 0."""
    from scipy.special import betaincinv

    if k <= 0:
        return 0.0
    # The solver is off by 1e-12 for k far below 1; no lower bound exceeds what was seen.
    return min(float(betaincinv(k, n - k + 1.0, 1.0 - confidence)), k / n)


def _at_most(k: float, n: float, rate: float) -> float:
    """P(Binomial(n, rate) <= k), continued to real k and n."""
    from scipy.special import betaincc

    if k < 0:
        return 0.0
    return float(betaincc(k + 1.0, n - k, rate)) if k < n else 1.0


def _passes(k: float, n: float, limit: float, delta: float) -> bool:
    """Whether k failures out of n certify the limit, both by the binomial tail and by the printed bound."""
    if k < 0 or k > n or n <= 0:
        return False
    if limit >= 1.0:
        return True
    return _at_most(k, n, limit) <= delta and _upper(k, n, 1.0 - delta) <= limit


def _max_failures(n: float, limit: float, delta: float) -> int:
    if limit <= 0 or not _passes(0, n, limit, delta):
        return -1
    low, high = 0, math.floor(n) + 1  # low passes, high does not: it is more than n
    while high - low > 1:
        middle = (low + high) // 2
        if _passes(middle, n, limit, delta):
            low = middle
        else:
            high = middle
    return low


def _required_n(limit: float, failures: float, delta: float) -> int | None:
    low, high = 0, max(1, math.ceil(failures))  # low never passes
    while not _passes(failures, high, limit, delta):
        if high > _MOST_ITEMS:
            return None
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if _passes(failures, middle, limit, delta):
            high = middle
        else:
            low = middle
    return high
