"""Does a score that is said to be a probability come true? Bins of predicted against observed shares of needs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalkit.routing.data import Floats
from evalkit.statistics.bounds import effective_n, wilson_interval

__all__ = ["BINS", "Bin", "Calibration", "calibration"]

BINS = 10


@dataclass(frozen=True, slots=True)
class Bin:
    """Items of neighbouring probabilities: the mean that was predicted, the share that came true, n items.

    lower, upper: Wilson interval of the observed share on the effective number of items; None without weight.
    """

    predicted: float
    observed: float
    lower: float | None
    upper: float | None
    n: int


@dataclass(frozen=True, slots=True)
class Calibration:
    """`bins` by rising probability. brier: mean squared error of the probabilities; n items of positive weight."""

    bins: tuple[Bin, ...]
    brier: float
    n: int


def calibration(
    probability: Floats,
    happened: NDArray[np.bool_] | Floats,
    weight: Floats,
    confidence: float = 0.95,
    bins: int = BINS,
) -> Calibration | None:
    """Probabilities (N,) in [0, 1] held against what happened (N,), weighted by traffic; None without items.

    happened: whether it did, or the share of it in [0, 1] where a share was predicted.

    Bins hold equal numbers of items, in order of probability; equal probabilities stay in one bin, and as many of
    them as a bin holds are one by themselves. Items without probability (NaN) or of weight 0 are left out. Brier
    score: `sum w (p - y)^2 / sum w` (Brier 1950).

    >>> calibration(np.array([0.0, 1.0]), np.array([False, True]), np.ones(2)).brier
    0.0
    """
    counted = ~np.isnan(probability) & (weight > 0)
    p, y, w = probability[counted], happened[counted].astype(np.float64), weight[counted]
    if not p.size:
        return None
    order = np.argsort(p, kind="stable")
    p, y, w = p[order], y[order], w[order]
    edges = p[np.ceil(np.arange(1, bins + 1) * p.size / bins).astype(int) - 1]
    left, right = np.searchsorted(p, edges, "left"), np.searchsorted(p, edges, "right")
    alone = left[(right - left >= p.size / bins) & (left > 0)]  # so many equal ones are a bin by themselves
    ends = np.unique(np.concatenate((alone, right)))
    found = []
    for start, end in zip(np.concatenate(([0], ends[:-1])).tolist(), ends.tolist(), strict=True):
        inside = slice(int(start), int(end))
        total = float(w[inside].sum())
        predicted, observed = (float(v[inside] @ w[inside]) / total for v in (p, y))
        predicted, observed = min(max(predicted, 0.0), 1.0), min(max(observed, 0.0), 1.0)
        n = effective_n(w[inside])
        span = wilson_interval(observed * n, n, confidence)
        lower, upper = (None, None) if span is None else span
        found.append(Bin(predicted, observed, lower, upper, int(end - start)))
    return Calibration(tuple(found), float((p - y) ** 2 @ w / w.sum()), int(p.size))
