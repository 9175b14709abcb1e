"""Tango's score bound of a difference of two paired rates: its variance is that of the limit, not of the data."""

from __future__ import annotations

import math
from statistics import NormalDist

from evalkit.statistics._parameters import bad_parameter

__all__ = ["score_lower"]

_STEPS = 60


def score_lower(gained: float, broken: float, n: float, delta: float) -> float:
    """The lower bound, one-sided at `delta`, of the difference of two paired pass rates in [-1, 1].

    gained, broken: how many of the n pairs pass newly and fail newly; weighted counts may be fractions. The least
    lambda with `(g - b - n lambda) / sqrt(n (2 q + lambda (1 - lambda))) <= z`, where q is the likeliest rate of
    broken pairs among those whose difference is lambda, `q = (sqrt(B^2 - 4 A C) - B) / (2 A)`, `A = 2 n`,
    `B = -g - b + (2 n - g + b) lambda`, `C = -b lambda (1 - lambda)` (Tango 1998, Statistics in Medicine 17). An
    interval on the data's own variance passes too often where few pairs differ: those without a loss have the
    smallest one. ValueError for counts that are no part of n.

    >>> round(score_lower(0, 0, 100, 0.05), 6)  # -z^2 / (n + z^2)
    -0.026343
    """
    if not 0 < delta < 0.5:
        raise bad_parameter("score_lower", "delta", "between 0 and 0.5", delta)
    if not (n > 0 and gained >= 0 and broken >= 0 and gained + broken <= n * (1 + 1e-9)):
        raise bad_parameter("score_lower", "n", "positive, at least gained + broken", n)
    z = NormalDist().inv_cdf(1.0 - delta)

    def beyond(lam: float) -> bool:
        """Whether a true difference of lam is refused: the observed one is too far above."""
        b = -gained - broken + (2 * n - gained + broken) * lam
        c = -broken * lam * (1 - lam)
        q = (math.sqrt(max(b * b - 8 * n * c, 0.0)) - b) / (4 * n)
        spread = n * max(2 * q + lam * (1 - lam), 0.0)
        return gained - broken - n * lam > z * math.sqrt(spread)

    low, high = -1.0, (gained - broken) / n
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if beyond(middle) else (low, middle)
    return low
