"""Percentiles by nearest rank: always a value that occurred, never one between or beyond the values.

`q` is a fraction (0.95), taken as the decimal it is written as: the rank of p95 among 20 values is 19,
although 0.95 * 20 is more than 19 in floating point.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalkit.statistics._parameters import bad_parameter, check_open_share, weight_array
from evalkit.statistics.bounds import effective_n, max_failures, max_failures_real

__all__ = ["Percentile", "describe_percentile", "percentile", "percentile_rank", "upper_bound_rank"]


@dataclass(frozen=True, slots=True)
class Percentile:
    """A percentile with what has to stand beside it.

    value           the sample percentile; None without values
    n               values it was taken from (those with weight)
    rank            its place among the sorted values, counted from 1; None without values
    equals_maximum  there are too few values for any to lie above this rank ("equals maximum, n too small")
    upper           upper confidence bound, itself one of the values; None: not statable at this n
    """

    value: float | None
    n: int
    rank: int | None
    equals_maximum: bool
    upper: float | None


def percentile_rank(n: int, q: float) -> int | None:
    """The nearest rank `ceil(q n)` among n sorted values, counted from 1; None for n = 0.

    >>> [percentile_rank(n, 0.95) for n in (1, 19, 20, 100, 101)]
    [1, 19, 19, 95, 96]
    """
    share = _decimal("percentile_rank", q)
    if n < 0:
        raise bad_parameter("percentile_rank", "n", "0 or more", n)
    return max(1, -(-share.numerator * n // share.denominator)) if n else None


def percentile(x: ArrayLike, q: float, weights: ArrayLike | None = None) -> float | None:
    """The least value with at least the share `q` (fraction) of all weight at or below it; None without values.

    Without `weights`: nearest rank, `x_(ceil(q n))`. The same as `numpy.percentile(...,
    method="inverted_cdf")` except where rounding would move the rank. Values of weight 0 do not count. +inf
    may stand for a value known to be beyond all others (a request that timed out). ValueError for NaN.

    >>> percentile(range(10, 210, 10), 0.95)
    190.0
    """
    values, w = _with_weight("percentile", x, weights)
    rank = _rank(values.size, w, _decimal("percentile", q))
    return None if rank is None else float(values[rank - 1])


def upper_bound_rank(n: int, q: float, confidence: float = 0.95) -> int | None:
    """The rank (from 1) whose value is an upper bound on the true percentile; None: not statable at this n.

    The least r with `P(Binomial(n, q) <= r - 1) >= confidence`, distribution-free. With confidence .95
    there is none below n = 59 for p95 and below n = 299 for p99. Equivalent to certifying that at most 1 -
    q of all values lie above it.

    >>> [upper_bound_rank(n, 0.95) for n in (58, 59, 93, 300)]
    [None, 59, 92, 292]
    """
    check_open_share("upper_bound_rank", "confidence", confidence)
    beyond = max_failures(n, float(1 - _decimal("upper_bound_rank", q)), 1.0 - confidence)
    return None if beyond < 0 else n - beyond


def describe_percentile(
    x: ArrayLike, q: float, weights: ArrayLike | None = None, confidence: float = 0.95
) -> Percentile:
    """The percentile `q` (fraction) of `x` with its n, its upper bound and whether n is too small for it.

    Where weights vary the bound is the least value above which the weight share certifiably stays within 1
    - q, on the effective number of values. ValueError for NaN.
    """
    check_open_share("describe_percentile", "confidence", confidence)
    values, w = _with_weight("describe_percentile", x, weights)
    share = _decimal("describe_percentile", q)
    n = values.size
    rank = _rank(n, w, share)
    if rank is None:
        return Percentile(None, 0, None, False, None)
    upper = _upper_rank(n, w, share, confidence)
    bound = None if upper is None else float(values[upper - 1])
    return Percentile(float(values[rank - 1]), n, rank, rank == n, bound)


def _decimal(function: str, q: float) -> Fraction:
    """`q` as the decimal fraction it is written as, between 0 and 1."""
    if not 0.0 <= q <= 1.0:
        raise bad_parameter(function, "q", "a fraction between 0 and 1", q)
    return Fraction(repr(float(q)))


def _with_weight(
    function: str, x: ArrayLike, weights: ArrayLike | None
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """The values that have weight, sorted, with their weights; None for these where all are equal."""
    values = np.asarray(x, dtype=np.float64)
    if values.ndim != 1:
        raise bad_parameter(function, "x", "one-dimensional", f"shape {values.shape}")
    missing = int(np.count_nonzero(np.isnan(values)))
    if missing:
        raise bad_parameter(function, "x", "free of NaN", f"{missing} of {values.size} NaN")
    w = weight_array(function, weights, values.size)
    if w is None:
        return np.sort(values), None
    values, w = values[w > 0], w[w > 0]
    order = np.lexsort((w, values))
    values, w = values[order], w[order]
    equal = not w.size or float(np.ptp(w)) <= 1e-12 * float(w.max())
    return values, None if equal else w


def _rank(n: int, w: NDArray[np.float64] | None, q: Fraction) -> int | None:
    if n == 0 or w is None:
        return percentile_rank(n, float(q))
    below = np.cumsum(w)
    # Sums of weights are off by rounding: what is within 1e-12 of the share has reached it.
    return int(np.searchsorted(below, float(q) * below[-1] * (1 - 1e-12))) + 1


def _upper_rank(n: int, w: NDArray[np.float64] | None, q: Fraction, confidence: float) -> int | None:
    if w is None:
        return upper_bound_rank(n, float(q), confidence)
    size = effective_n(w)
    beyond = max_failures_real(size, float(1 - q), 1.0 - confidence)
    if beyond < 0:
        return None
    above = np.concatenate([np.cumsum(w[::-1])[::-1][1:], [0.0]]) * (size / w.sum())  # effective values above
    return int(np.flatnonzero(above <= beyond)[0]) + 1
