"""Ordered thresholds for three and more tiers.

Any quantity that depends on the tier an item goes to telescopes into one term per threshold: with items sorted by
demand and threshold j at position i_j (items from i_j on go above tier j), the total is
`sum_j terms[j, i_j]`, i_1 <= i_2 <= ... . Losses, costs and counts alike.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalkit.statistics._parameters import bad_parameter

__all__ = ["constrained_minimum", "ordered_minimum"]

Floats = NDArray[np.float64]


def ordered_minimum(gains: ArrayLike) -> tuple[float, tuple[int, ...]] | None:
    """The least `sum_j gains[j, i_j]` over i_1 <= i_2 <= ..., and the positions that reach it.

    `gains` (K - 1, m + 1): one row per threshold, one column per position; +inf forbids a position. Dynamic
    programme over prefix minima, O(K m). Of equal totals the last position is as small as possible, then the one
    before it, and so on (smaller = more escalation). None where everything is forbidden.

    >>> ordered_minimum([[3.0, 1.0, 2.0], [0.0, 5.0, 4.0]])
    (3.0, (0, 0))
    """
    terms = _terms("ordered_minimum", "gains", gains)
    totals, steps = terms[0], []
    for row in terms[1:]:
        least = np.minimum.accumulate(totals)
        new = np.concatenate([[True], totals[1:] < least[:-1]])
        steps.append(np.maximum.accumulate(np.where(new, np.arange(row.size), 0)))  # where the minimum was reached
        totals = least + row
    last = int(np.argmin(totals))
    value = float(totals[last])
    if not np.isfinite(value):
        return None
    positions = [last]
    for step in reversed(steps):
        positions.append(int(step[positions[-1]]))
    return value, tuple(reversed(positions))


def constrained_minimum(
    gains: ArrayLike, constraints: ArrayLike, limits: ArrayLike
) -> tuple[float, tuple[int, ...]] | None:
    """`ordered_minimum` among the positions for which `sum_j constraints[c, j, i_j] <= limits[c]` for every c.

    `gains` (K - 1, m + 1), `constraints` (C, K - 1, m + 1), `limits` (C,). Exact: the lower thresholds are
    enumerated in order of a bound (suffix minima of what is still to come) and cut off once it cannot beat the
    best found or keep a limit; the last threshold is tried at all positions at once. O(m) memory for each
    threshold; the time grows with m^(K - 2) where the limits cut little. None where nothing keeps all limits.
    """
    terms = _terms("constrained_minimum", "gains", gains)
    extra = np.asarray(constraints, dtype=np.float64)
    most = np.asarray(limits, dtype=np.float64)
    if extra.ndim != 3 or extra.shape[1:] != terms.shape:
        raise bad_parameter("constrained_minimum", "constraints", f"(C, {terms.shape[0]}, {terms.shape[1]})",
                            f"shape {extra.shape}")  # fmt: skip
    if not np.isfinite(extra).all():
        raise bad_parameter(
            "constrained_minimum", "constraints", "finite throughout", "values that are not finite"
        )
    if most.shape != extra.shape[:1] or np.isnan(most).any():
        raise bad_parameter("constrained_minimum", "limits", "one number per constraint", f"shape {most.shape}")
    return _Search(terms, extra, most).run()


class _Search:
    """Depth-first search over the lower thresholds, best bound first."""

    def __init__(self, terms: Floats, extra: Floats, limits: Floats) -> None:
        self.terms, self.extra, self.limits = terms, extra, limits
        self.to_come = _suffix_minima(terms)
        self.extra_to_come = np.stack([_suffix_minima(part) for part in extra]) if len(extra) else extra
        self.best = np.inf
        self.positions: tuple[int, ...] = ()

    def run(self) -> tuple[float, tuple[int, ...]] | None:
        self._go_on((), 0.0, np.zeros(self.limits.size))
        return (self.best, self.positions) if np.isfinite(self.best) else None

    def _go_on(self, chosen: tuple[int, ...], total: float, used: Floats) -> None:
        row, first = len(chosen), chosen[-1] if chosen else 0
        totals = total + self.terms[row, first:]
        uses = used[:, None] + self.extra[:, row, first:]
        if row == self.terms.shape[0] - 1:
            totals = np.where((uses <= self.limits[:, None]).all(axis=0), totals, np.inf)
            at = int(np.argmin(totals))
            if totals[at] < self.best:
                self.best, self.positions = float(totals[at]), (*chosen, first + at)
            return
        for at in self._promising(totals, uses, row, first):
            self._go_on((*chosen, first + at), float(totals[at]), uses[:, at])

    def _promising(self, totals: Floats, uses: Floats, row: int, first: int) -> Iterator[int]:
        """Positions that may still win, best bound first; the bound is compared again as the best improves."""
        bounds = totals + self.to_come[row + 1, first:]
        # These sums add in another order than the test at the end: leave room for rounding, so that no position
        # that keeps its limits is cut off.
        slack = 1e-9 * (1.0 + np.abs(self.limits))
        ahead: Floats = uses + self.extra_to_come[:, row + 1, first:]
        kept: NDArray[np.bool_] = np.all(ahead <= (self.limits + slack)[:, None], axis=0)
        for at in np.argsort(np.where(kept, bounds, np.inf), kind="stable"):
            if not kept[at] or bounds[at] >= self.best:
                return
            yield int(at)


def _suffix_minima(terms: Floats) -> Floats:
    """least[j, i]: the least sum of rows j, j + 1, ... over i <= i_j <= i_{j+1} <= ..."""
    least = np.empty_like(terms)
    below = np.zeros(terms.shape[1])
    for row in range(terms.shape[0] - 1, -1, -1):
        below = np.minimum.accumulate((terms[row] + below)[::-1])[::-1]
        least[row] = below
    return least


def _terms(function: str, name: str, values: ArrayLike) -> Floats:
    terms = np.asarray(values, dtype=np.float64)
    if terms.ndim != 2 or 0 in terms.shape:
        raise bad_parameter(function, name, "two-dimensional and not empty", f"shape {terms.shape}")
    if np.isnan(terms).any() or np.isneginf(terms).any():
        raise bad_parameter(function, name, "finite or +inf throughout", "NaN or -inf")
    return terms
