"""What a request costs and how long it takes under a policy, for every tier it may end at.

Direct: one tier answers; the router is paid once. Cascade: every tier up to the last one is tried, none is
skipped, and each reply but the top tier's is verified and its verification paid.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalkit.routing.data import Floats, RoutingData, Settings

__all__ = ["PathCosts", "path_costs", "routed_tier"]


@dataclass(frozen=True)
class PathCosts:
    """Per item and final tier. usd (N, K): the whole path's cost, NaN unknown, None without outcomes.
    task_s (N, K, S): the whole path's seconds, NaN unknown."""

    policy: str
    usd: Floats | None
    task_s: Floats | None


def path_costs(data: RoutingData, settings: Settings, policy: str, *, overhead: bool = True) -> PathCosts:
    """The cost and time of every path under `policy` ("direct" or "cascade").

    `overhead=False` leaves out router and verifier: what a fixed arm costs. A cost that is unknown anywhere
    along a path makes the path's cost unknown. Raises ValueError for another policy.
    """
    router_usd = settings.router_cost_usd if overhead else 0.0
    router_s = settings.router_s if overhead else 0.0
    if policy == "direct":
        usd = None if data.tier_cost_usd is None else data.tier_cost_usd + router_usd
        task = None if data.task_s is None else data.task_s + router_s
        return PathCosts(policy, usd, task)
    if policy != "cascade":
        raise ValueError(
            f"The `policy` parameter of `path_costs` must be direct or cascade. Got {policy} instead."
        )
    verified = np.minimum(np.arange(data.k) + 1, data.k - 1)  # replies verified on the way to each final tier
    usd = None
    if data.tier_cost_usd is not None:
        usd = np.cumsum(data.tier_cost_usd, axis=1)
        if overhead and data.verifier_usd is not None:
            usd += np.cumsum(data.verifier_usd, axis=1)[:, verified - 1]
        else:
            usd += router_usd * verified
    task = None
    if data.task_s is not None:
        task = np.cumsum(data.task_s, axis=1) + (router_s * verified)[None, :, None]
    return PathCosts(policy, usd, task)


def routed_tier(levels: Floats, level: float) -> NDArray[np.int8]:
    """(N,) the tier each item ends at: it passes the boundaries whose level is at least `level`.

    `levels` (N, K - 1) is non-increasing along a row (an item that passes a boundary passed those below it). A
    level of -inf passes nowhere, whatever `level` is.
    """
    return np.asarray(((levels >= level) & (levels > -np.inf)).sum(axis=1), dtype=np.int8)
