"""Thresholds with a guarantee: fixed-sequence testing, started at "everything to the strongest tier".

Under-routing is monotone in the threshold, so the walk over the thresholds of one risk class ends at an order
statistic of the demands of its needs: a one-sided tolerance bound. Other limits are walked candidate by
candidate. An item goes up when its demand d is at or above the threshold t.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalkit.statistics._parameters import bad_parameter, check_open_share, check_share, weight_array
from evalkit.statistics.bounds import effective_n, max_failures, max_failures_real, upper_bound

__all__ = ["Tolerance", "certified_threshold", "walk"]


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The largest threshold that keeps the under-route rate of one class certified below its limit.

    threshold         an item goes up when d >= threshold; -inf (all go up) when nothing can be certified
    failures_allowed  the most under-routed items that certify the limit; below 0 when not even none would
    n                 items the bound rests on; the effective number where weights vary
    k_at_threshold    items below the threshold, in the units of `n`; at most `failures_allowed`

    The three numbers are whole where all weights are equal.
    """

    threshold: float
    failures_allowed: float
    n: float
    k_at_threshold: float


def certified_threshold(
    demands: ArrayLike, limit: float, delta: float, weights: ArrayLike | None = None
) -> Tolerance:
    """The tolerance bound: with chance 1 - delta, at most `limit` of all needs are below the threshold.

    `demands` (n,) are those of the needs of one risk class, higher = needs a stronger tier; +inf for items
    that always go up. With sorted demands s: threshold = s[k] (0-based), k = max_failures(n, limit, delta).
    Where the `weights` (n,) vary: the largest t among the demands with `upper_bound(n_f p_w(t), n_f) <=
    limit`, p_w(t) = the weight share of demands below t and n_f = effective_n(weights). +inf for limit 1,
    which nothing can break. ValueError for NaN demands; those are an input error or, by the study, +inf.

    Guttman 1970 (tolerance bounds); Angelopoulos et al. 2021 (Learn Then Test, fixed sequence).

    >>> certified_threshold([0.05, 0.12] + 58 * [0.5], limit=0.10, delta=0.05)
    Tolerance(threshold=0.12, failures_allowed=1, n=60, k_at_threshold=1)
    """
    check_share("certified_threshold", "limit", limit)
    check_open_share("certified_threshold", "delta", delta)
    d = np.asarray(demands, dtype=np.float64)
    if d.ndim != 1:
        raise bad_parameter("certified_threshold", "demands", "one-dimensional", f"shape {d.shape}")
    missing = int(np.count_nonzero(np.isnan(d)))
    if missing:
        raise bad_parameter("certified_threshold", "demands", "free of NaN", f"{missing} of {d.size} NaN")
    w = weight_array("certified_threshold", weights, d.size)
    if w is not None:
        d, w = d[w > 0], w[w > 0]  # an item that stands for no traffic is no evidence
        if w.size and float(np.ptp(w)) <= 1e-12 * float(w.max()):
            w = None
    return _by_count(d, limit, delta) if w is None or not w.size else _by_weight(d, w, limit, delta)


def _by_count(d: NDArray[np.float64], limit: float, delta: float) -> Tolerance:
    n = d.size
    k = max_failures(n, limit, delta)
    if k < 0:
        return Tolerance(-np.inf, k, n, 0)
    if k >= n:
        return Tolerance(np.inf, k, n, int(np.count_nonzero(d < np.inf)))
    threshold = float(np.partition(d, k)[k])
    return Tolerance(threshold, k, n, int(np.count_nonzero(d < threshold)))


def _by_weight(d: NDArray[np.float64], w: NDArray[np.float64], limit: float, delta: float) -> Tolerance:
    n = effective_n(w)
    allowed = max_failures_real(n, limit, delta)
    if allowed < 0:
        return Tolerance(-np.inf, allowed, n, 0.0)
    candidates, group = np.unique(d, return_inverse=True)
    share = np.bincount(group, weights=w)
    below = np.minimum(n, n * (np.concatenate([[0.0], np.cumsum(share)]) / share.sum()))
    if limit >= 1.0:
        return Tolerance(np.inf, allowed, n, float(below[-1] if candidates[-1] < np.inf else below[-2]))
    # below[0] = 0 passes because `allowed` >= 0. The bound itself has the last word.
    last = int(np.searchsorted(below[:-1], allowed, side="right")) - 1
    while last > 0 and not _within(float(below[last]), n, limit, delta):
        last -= 1
    return Tolerance(float(candidates[last]), allowed, n, float(below[last]))


def _within(k: float, n: float, limit: float, delta: float) -> bool:
    bound = upper_bound(k, n, 1.0 - delta)
    return bound is not None and bound <= limit


def walk(failure_share: ArrayLike, n: float, limit: float, delta: float) -> int:
    """How far a fixed sequence stays certified: the index of the last candidate before the first failure.

    `failure_share` (m,) holds the observed share of failures of each candidate, in the order of the walk,
    each out of `n` items (an effective number where weights vary). A candidate passes when the exact upper
    bound on its share is at most `limit`; what comes after the first that does not is never looked at. -1
    when the first fails. ValueError for shares that are NaN or outside 0 to 1.

    >>> walk([0.0, 0.01, 0.5, 0.0], n=300, limit=0.05, delta=0.05)
    1
    """
    shares = np.asarray(failure_share, dtype=np.float64)
    if shares.ndim != 1:
        raise bad_parameter("walk", "failure_share", "one-dimensional", f"shape {shares.shape}")
    wrong = ~((shares >= -1e-9) & (shares <= 1 + 1e-9))  # leaves room for rounding; refuses NaN
    if wrong.any():
        raise bad_parameter("walk", "failure_share", "between 0 and 1 throughout", float(shares[wrong][0]))
    allowed = max_failures_real(n, limit, delta)
    failing = np.clip(shares, 0.0, 1.0) * n > allowed
    return int(np.argmax(failing)) - 1 if failing.any() else shares.size - 1
