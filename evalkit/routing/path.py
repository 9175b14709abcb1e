"""One path through the thresholds, from "everything to the strongest tier" to "everything to the cheapest".

With two tiers the path is the threshold itself. With more, a guarantee needs one path that the certifying items
did not choose: its direction is found on other items, and each step along it raises no threshold's item set.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalkit.routing.data import Floats

__all__ = ["Path", "direction_mask", "fixed_path", "path_through", "score_path"]

DIRECTION_SHARE = 0.4
STEPS = 2048


@dataclass(frozen=True)
class Path:
    """levels (N, K - 1): an item passes boundary j at `x` when `levels[i, j] >= x`; non-increasing along a row.
    thresholds (L + 1, K - 1) or None: the demand thresholds at the whole-numbered levels 0..L of a path over
    several thresholds; None where the level is the threshold (two tiers)."""

    levels: Floats
    thresholds: Floats | None = None

    def thresholds_at(self, level: float) -> tuple[float, ...]:
        """The demand thresholds (an item goes up when its demand is at least the threshold) at a level."""
        if self.thresholds is None:
            return (float(level),)
        step = min(max(0, int(np.ceil(level))), len(self.thresholds) - 1)
        return tuple(float(t) for t in self.thresholds[step])


def direction_mask(keys: Sequence[str], seed: int, share: float = DIRECTION_SHARE) -> NDArray[np.bool_]:
    """(N,) which items find the direction: by a hash of the seed and the key (the group, or the id)."""
    bound = int(share * 2**32)
    salt = f"{seed}\x00".encode()
    return np.fromiter(
        (
            int.from_bytes(hashlib.blake2b(salt + key.encode("utf-8"), digest_size=4).digest(), "big") < bound
            for key in keys
        ),
        dtype=bool,
        count=len(keys),
    )


def score_path(demand: Floats) -> Path:
    """The path of two tiers: the level is the demand."""
    return Path(demand.reshape(len(demand), 1))


def fixed_path(demand: Floats, thresholds: Sequence[float]) -> Path:
    """A path with one step: level 1 is these demand thresholds, so evaluate at level 1."""
    limits = np.asarray(thresholds, dtype=np.float64)
    columns = demand if demand.ndim == 2 else np.repeat(demand[:, None], len(limits), axis=1)
    passes = np.logical_and.accumulate(columns >= limits, axis=1)
    return Path(passes.astype(np.float64), np.vstack([np.full(len(limits), -np.inf), limits]))


def path_through(demand: Floats, direction: Floats, target: Sequence[float], steps: int = STEPS) -> Path:
    """The path through `target` in the quantiles of `direction`'s demands.

    demand (N,) or (N, K - 1) of all items; direction (D,) or (D, K - 1) of the items that choose the path;
    target (K - 1,) demand thresholds, non-decreasing where one score serves all tiers. Step 0 sends everything
    up (-inf); steps 1..h raise each threshold from the smallest demand to its target, the rest from there to
    beyond the largest. Every threshold is non-decreasing in the step, and with one score the thresholds keep
    their order, so the items below their required tier only grow along the path.
    """
    width = len(target)
    half = max(1, steps // 2)
    grid = np.empty((2 * half + 2, width))
    grid[0] = -np.inf
    for j in range(width):
        column = direction if direction.ndim == 1 else direction[:, j]
        finite = np.sort(column[np.isfinite(column)])
        everyone = demand if demand.ndim == 1 else demand[:, j]
        everyone = everyone[np.isfinite(everyone)]
        beyond = np.nextafter(everyone.max(), np.inf) if len(everyone) else 0.0  # nobody passes there
        if len(finite) == 0:
            grid[1:, j] = beyond
            continue
        last = len(finite) - 1
        place = int(np.searchsorted(finite, target[j], side="left"))  # first demand that goes up at the target
        up = np.floor(np.linspace(0, min(place, last), half)).astype(np.int64)
        down = np.ceil(np.linspace(min(place, last), last, half + 1)).astype(np.int64)[1:]
        grid[1 : half + 1, j] = finite[up]
        grid[half + 1 : 2 * half + 1, j] = finite[down]
        if place <= last:
            grid[half, j] = max(target[j], grid[half - 1, j]) if half > 1 else target[j]
        grid[2 * half + 1, j] = max(beyond, np.nextafter(finite[-1], np.inf))
        if place > last:
            grid[half:, j] = grid[2 * half + 1, j]
    np.maximum.accumulate(grid, axis=0, out=grid)
    if demand.ndim == 1:  # one score: a lower boundary is never harder to pass than a higher one
        np.maximum.accumulate(grid, axis=1, out=grid)
    levels = np.empty((len(demand), width))
    for j in range(width):
        column = demand if demand.ndim == 1 else demand[:, j]
        levels[:, j] = np.searchsorted(grid[:, j], column, side="right") - 1.0
        levels[column == np.inf, j] = np.inf
        levels[column == -np.inf, j] = -np.inf
    np.minimum.accumulate(levels, axis=1, out=levels)
    return Path(levels, grid)
