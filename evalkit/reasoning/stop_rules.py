"""Reasons not to spend more on thinking, whatever the gates say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evalkit.gates import Gate, StopRule
from evalkit.reasoning.arms import ArmFigures
from evalkit.reasoning.data import LadderData, Settings
from evalkit.reasoning.tasks import failed_in
from evalkit.statistics.cost_effectiveness import net_benefit

__all__ = ["nothing_certified", "risk_failures_fall"]


def risk_failures_fall(
    data: LadderData, settings: Settings, arms: Sequence[ArmFigures], chosen: int | None
) -> StopRule:
    """The arm at `chosen` (position) must fail less often than the first declared arm where it costs more or takes
    longer; over the tasks of the classes that have a limit, or all tasks where none has.

    Rejects where the failures, as observed, do not fall (where they would without what was not answered, it asks
    for evidence: silence proves nothing); asks for more evidence where their fall is not shown (its
    lower bound, guarded as in `net_benefit`, at the study's confidence). Where arms have different numbers of runs
    of a task, as many of each are compared.
    """
    name = "risk_failures_do_not_fall"
    if chosen is None or chosen == 0:
        why = "there is no arm to judge" if chosen is None else "the first arm spends nothing more than itself"
        return StopRule(name, False, f"Risk failures: {why}", applies=False)
    first, now = arms[0], arms[chosen]
    rises = ["cost"] if _rose(first.cost_usd, now.cost_usd) else []
    rises += ["p95 task time"] if _rose(first.p95.value, now.p95.value) else []
    if not rises:
        detail = f"Risk failures: {now.name} neither costs more nor takes longer than {first.name}"
        return StopRule(name, False, detail, applies=False)
    with_limit = [r for r, rule in enumerate(settings.classes) if rule.limit is not None]
    mask = np.isin(data.risk, with_limit) if with_limit else np.ones(data.n, dtype=bool)
    mask &= data.weight > 0
    if not mask.any():
        return StopRule(name, None, "Risk failures: no task is in a class with a limit")
    runs = np.minimum(data.runs[:, 0], data.runs[:, chosen])
    before, after = failed_in(data, 0, runs)[mask], failed_in(data, chosen, runs)[mask]
    fall = before.astype(float) - after.astype(float)
    seen = net_benefit(
        fall,
        np.zeros(len(fall)),
        1.0,
        1.0 - settings.confidence,
        weights=data.weight[mask],
        groups=None if data.group is None else data.group[mask],
    )
    mean = seen.value or 0.0
    counted = (
        f"{int(before.sum()):,} of {len(fall):,} tasks fail at {first.name}, {int(after.sum()):,} at {now.name}, "
        f"whose {' and '.join(rises)} {'are' if len(rises) > 1 else 'is'} higher"
    )
    if mean <= 1e-12:
        seen_after = failed_in(data, chosen, runs, seen_only=True)[mask].astype(float)
        if float(data.weight[mask] @ (before - seen_after)) > 1e-12:
            detail = f"Risk failures do not fall, but only by what was not answered: {counted}"
            return StopRule(name, True, detail, "insufficient_evidence")
        return StopRule(name, True, f"Risk failures do not fall: {counted}")
    if seen.lower is None or seen.lower <= 0:
        detail = f"Risk failures are not shown to fall: {counted}; more tasks may show it"
        return StopRule(name, True, detail, "insufficient_evidence")
    return StopRule(name, False, f"Risk failures fall: {counted}")


def nothing_certified(gates: Sequence[Gate]) -> StopRule:
    """An approval needs a limit with an exact bound behind it: a mean cost alone certifies nothing."""
    name = "no_certifiable_limit"
    if not gates or any(g.basis == "bound" and g.limit is not None for g in gates):
        return StopRule(name, False, "Some limit can be certified", "insufficient_evidence", applies=bool(gates))
    detail = "No limit on failures, pass rate or time is set that could be certified"
    return StopRule(name, True, detail, "insufficient_evidence")


def _rose(before: float | None, now: float | None) -> bool:
    """Whether a figure is higher; where either is unknown it may be."""
    return before is None or now is None or now > before * (1 + 1e-12)
