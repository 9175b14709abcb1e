"""Single figures of the routing literature, for comparison with it. No decision rests on them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalkit.statistics._parameters import bad_parameter, finite_array
from evalkit.statistics.cost_effectiveness import ArmStatus, frontier

__all__ = ["aiq", "apgr", "call_share_for", "gap_recovered"]


def aiq(quality: ArrayLike, cost: ArrayLike) -> float | None:
    """Average improvement in quality: mean height of the cost-quality hull over the range of costs.

    `quality`, `cost` (A,). Area under the upper hull that never falls, from the least to the greatest cost,
    divided by that range (RouterBench, Hu et al. 2024; one public implementation divides by the greatest cost
    instead). None where all arms cost the same.
    """
    q, c = finite_array("aiq", "quality", quality), finite_array("aiq", "cost", cost)
    arms = frontier(q, c)
    span = float(np.ptp(c)) if c.size else 0.0
    if span <= 0:
        return None
    on = [index for index, arm in enumerate(arms) if arm.status is ArmStatus.FRONTIER]
    on.sort(key=lambda index: c[index])
    x = np.append(c[on], c.max())
    y = np.append(q[on], q[on[-1]])
    return float(np.trapezoid(y, x)) / span


def gap_recovered(quality: ArrayLike, weak: float, strong: float) -> NDArray[np.float64] | None:
    """Performance gap recovered, `(quality - weak) / (strong - weak)`; None where the two do not differ.

    RouteLLM (Ong et al. 2024).
    """
    q = finite_array("gap_recovered", "quality", quality)
    return None if strong == weak else (q - weak) / (strong - weak)


def apgr(share: ArrayLike, quality: ArrayLike, weak: float, strong: float) -> float | None:
    """Average performance gap recovered: the mean height of `gap_recovered` over the share of strong calls.

    `share` (m,): rising shares of calls that go to the strong model; `quality` (m,). Trapezoids, divided by the
    range of shares. None where weak and strong do not differ or the range is empty.
    """
    x = _rising("apgr", share)
    gap = gap_recovered(quality, weak, strong)
    if gap is None or x.size < 2 or x[-1] <= x[0]:
        return None
    if gap.size != x.size:
        raise bad_parameter("apgr", "quality", f"one number per share ({x.size})", f"{gap.size} numbers")
    return float(np.trapezoid(gap, x)) / float(x[-1] - x[0])


def call_share_for(share: ArrayLike, recovered: ArrayLike, target: float) -> float | None:
    """Call-performance threshold: the least share of strong calls at which `recovered` first reaches `target`.

    `share` (m,) rising, `recovered` (m,) not necessarily so; linear between neighbours, at the first crossing.
    None where the target is never reached. CPT50 is `target` = 0.5.
    """
    x = _rising("call_share_for", share)
    y = finite_array("call_share_for", "recovered", recovered)
    if y.size != x.size:
        raise bad_parameter("call_share_for", "recovered", f"one number per share ({x.size})", f"{y.size} numbers")
    reached = np.flatnonzero(y >= target)
    if not reached.size:
        return None
    at = int(reached[0])
    if at == 0:
        return float(x[0])
    before, after = float(y[at - 1]), float(y[at])
    part = (target - before) / (after - before)
    return float(x[at - 1]) + part * float(x[at] - x[at - 1])


def _rising(function: str, share: ArrayLike) -> NDArray[np.float64]:
    x = finite_array(function, "share", share)
    if (np.diff(x) < 0).any():
        raise bad_parameter(function, "share", "in rising order", x.tolist())
    return x
