"""Thresholds between the user's score and the demand, where larger always means a stronger tier."""

from __future__ import annotations

import math
import sys

__all__ = ["demand_threshold", "rule_text", "user_threshold"]


def demand_threshold(threshold: float, needs_stronger: bool) -> float:
    """The demand threshold (up when demand >= it) of a user's threshold.

    needs_stronger: up iff score >= t, demand = score. Otherwise up iff score < t, demand = -score, which is
    demand >= the float just above -t: the same set of scores, exactly.
    """
    return threshold if needs_stronger else math.nextafter(-threshold, math.inf)


def user_threshold(demand: float, needs_stronger: bool) -> float:
    """The user's threshold of a demand threshold; the inverse of `demand_threshold`. An infinite one (everything
    up, or nothing) becomes the largest finite float on that side."""
    top = sys.float_info.max
    if demand == -math.inf:
        return -top if needs_stronger else top
    if demand == math.inf:
        return top if needs_stronger else -top
    return (demand if needs_stronger else math.nextafter(-demand, math.inf)) + 0.0  # no -0.0


def rule_text(needs_stronger: bool, policy: str, tiers: int, per_tier: bool) -> str:
    """The rule that goes with printed thresholds, in words."""
    up = "score >= threshold" if needs_stronger else "score < threshold"
    if tiers == 2 and not per_tier:
        return (
            f"{up} goes up"
            if policy == "direct"
            else f"{up}: the cheap reply is not accepted and the request goes up"
        )
    if per_tier:
        return f"each tier's reply has its own score and threshold; {up}: go on to the next tier"
    return f"a request goes up one tier for each threshold with {up}"
