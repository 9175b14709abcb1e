"""Which threshold sends a wanted share of the traffic up, and which shares can be had at all."""

from __future__ import annotations

import numpy as np

from evalkit.errors import Fault, InputError
from evalkit.routing.sweep import sweep_of
from evalkit.routing.units import rule_text, user_threshold
from evalkit.workflows.route_sweep import Inputs

__all__ = ["target_escalation_lines", "target_escalation_text"]


def target_escalation_lines(inputs: Inputs, target: float) -> list[str]:
    """One line a router, with its name where there are several; nothing is chosen by it."""
    if len(inputs.given) == 1:
        return [target_escalation_text(inputs, target)]
    lines = []
    for place, one in enumerate(inputs.given):
        said = "judges decisions, which have no threshold to set"
        if one.decisions is None:
            said = target_escalation_text(inputs.of(place), target)
        lines.append(f"{one.router.name}: {said}")
    return lines


def target_escalation_text(inputs: Inputs, target: float) -> str:
    """The threshold for the escalation rate `target` with the rate it gives; where ties put the target out of
    reach, the two nearest rates that can be had. Ties are never broken at random."""
    study, data = inputs.study, inputs.assembled.data
    if data.demand is None:
        what = "the study judges decisions, which have no threshold to set"
        raise InputError(Fault(what, "give scores", field="--target-escalation"))
    up_means = study.router.higher_means != "cheap_is_enough"
    demand = data.demand if data.demand.ndim == 1 else data.demand[:, 0]
    sweep = sweep_of(demand)
    rates = sweep.cumulative(data.weight) / data.n
    rule = rule_text(up_means, "direct", 2, per_tier=False)
    where = "" if data.k == 2 else f" above {data.tiers[0]}"

    def at(place: int) -> str:
        return f"{_percent(float(rates[place]))} at {user_threshold(float(sweep.levels[place]), up_means)!r}"

    exact = np.flatnonzero(np.abs(rates - target) <= 1e-12)
    if len(exact):
        return f"{at(int(exact[0]))} ({rule}{where})"
    higher = np.flatnonzero(rates > target)
    lower = np.flatnonzero(rates < target)
    near = [at(int(lower[-1]))] if len(lower) else []
    near += [at(int(higher[0]))] if len(higher) else []
    return f"{_percent(target)} is not reachable: {', '.join(near)} ({rule}{where})"


def _percent(rate: float) -> str:
    return f"{100 * rate:.4g}%"
