"""A searched threshold against a baseline: what each point of its path breaks and gains, from all-strongest on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evalkit.routing.certify import request_n
from evalkit.routing.data import Floats
from evalkit.routing.search import Search
from evalkit.routing.sweep import tier_steps

__all__ = ["PairedWalk", "paired_walk"]


@dataclass(frozen=True)
class PairedWalk:
    """The points of a path from everything at the strongest tier to the one that is judged, which is the last.

    broken, gained (L,): shares of traffic that only the baseline passes, and that only the policy passes, on the
    items that certify, of several samples by their means. n: independent requests that these rest on.
    """

    broken: Floats
    gained: Floats
    n: float


def paired_walk(search: Search, place: int, baseline: Floats) -> PairedWalk | None:
    """The walk to candidate `place` of a search. baseline (N,): its share of passes of each certifying item, fixed
    without these items. None without outcomes or traffic."""
    data = search.measures.data
    if data.passed is None or data.n == 0 or not data.weight.any():
        return None
    difference = data.passed - np.asarray(baseline, dtype=np.float64)[:, None]
    parts = [np.maximum(-difference, 0.0), np.maximum(difference, 0.0)]
    base = np.array([values[:, 0] @ data.weight for values in parts])
    total = search.sweep.sums(tier_steps(parts, data.weight), base) / float(data.weight.sum())
    broken, gained = np.clip(total[:, place:][:, ::-1], 0.0, 1.0)
    return PairedWalk(broken, gained, request_n(data))
