"""Folds by group, stratified by risk class and need."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evalkit.routing.data import RoutingData

__all__ = ["group_folds"]


def group_folds(data: RoutingData, seed: int, folds: int = 10) -> NDArray[np.int64]:
    """(N,) fold 0..folds-1 of every item; a group is never split.

    Groups are shuffled with the seed, sorted by the riskiest need they hold (stable), and dealt in turn, so that
    each fold has its share of every risk class with and without a need.
    """
    group = np.arange(data.n) if data.group is None else data.group
    codes, unit = np.unique(group, return_inverse=True)
    stratum_of_item = data.risk.astype(np.int64) * 2 + data.needs
    stratum = np.zeros(len(codes), dtype=np.int64)
    np.maximum.at(stratum, unit, stratum_of_item)
    shuffled = np.random.default_rng(seed).permutation(len(codes))
    dealt = shuffled[np.argsort(stratum[shuffled], kind="stable")]
    fold_of_group = np.empty(len(codes), dtype=np.int64)
    fold_of_group[dealt] = np.arange(len(codes)) % folds
    return np.asarray(fold_of_group[unit])
