"""Folds that split no group, each with its share of every class."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["dealt"]


def dealt(unit: ArrayLike, stratum: ArrayLike, *, seed: int, folds: int) -> NDArray[np.int16]:
    """(N,) the fold 0 .. folds - 1 of every item; items of one unit are in one fold.

    `unit` (N,) integers: the group of each item. `stratum` (N,) integers >= 0, the higher the scarcer. Units are
    shuffled with the seed, sorted by their highest stratum (stable) and dealt in turn, so that each fold has its
    share of each.
    """
    codes, place = np.unique(np.asarray(unit), return_inverse=True)
    highest = np.zeros(len(codes), dtype=np.int64)
    np.maximum.at(highest, place, np.asarray(stratum, dtype=np.int64))
    shuffled = np.random.default_rng(seed).permutation(len(codes))
    order = shuffled[np.argsort(highest[shuffled], kind="stable")]
    fold = np.empty(len(codes), dtype=np.int16)
    fold[order] = np.arange(len(codes)) % folds
    return np.asarray(fold[place])
