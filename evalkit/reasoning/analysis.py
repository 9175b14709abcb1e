"""One ladder of arms, judged: figures, steps, gates, the least costly arm that meets every limit, the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from evalkit.gates import Decision, Gate, Status, StopRule, Verdict, decide
from evalkit.reasoning.arms import ArmFigures, arm_figures
from evalkit.reasoning.data import LadderData, Settings
from evalkit.reasoning.gating import gates_of_arm, holds_as_observed
from evalkit.reasoning.steps import (
    Acceptability,
    Marginal,
    Step,
    acceptability_of,
    best_at,
    marginals_of,
    plateau_of,
    steps_of,
)
from evalkit.reasoning.stop_rules import nothing_certified, risk_failures_fall
from evalkit.reasoning.tasks import TaskFigures, task_figures

__all__ = ["LadderResult", "analyse"]

_PASSING = {Status.CERTIFIED, Status.ESTIMATE}
_BROKEN = {Status.VIOLATED, Status.INFEASIBLE}


@dataclass(frozen=True)
class LadderResult:
    """Everything a report needs about one ladder. Arms are positions in declared order.

    gates: of each arm; `shown` is the arm whose gates decide the verdict. selected: the recommendation, None
    unless the verdict approves. certified: the arms that meet every limit. candidate: the least costly arm under
    the limits as observed, shown but never recommended. plateau_at, best_at_value: advice beside it.
    """

    data: LadderData
    settings: Settings
    tasks: TaskFigures
    arms: tuple[ArmFigures, ...]
    gates: tuple[tuple[Gate, ...], ...]
    steps: tuple[Step, ...]
    marginals: tuple[Marginal, ...]
    certified: tuple[int, ...]
    selected: int | None
    candidate: int | None
    shown: int
    plateau_at: int | None
    best_at_value: int | None
    minimum_detectable_gain: float | None
    acceptability: Acceptability | None
    stop_rules: tuple[StopRule, ...]
    verdict: Verdict


def analyse(data: LadderData, settings: Settings) -> LadderResult:
    """Judge the ladder. Raises ValueError without arms or tasks.

    Every arm is tested on every limit at delta / arms, and the least costly of those that meet all is selected:
    whichever it is, it breaks a certified limit in at most delta of studies.
    """
    if not data.a or not data.n:
        raise ValueError("The `data` parameter of `analyse` must hold an arm and a task. Got none instead.")
    tasks = task_figures(data)
    arms = tuple(arm_figures(data, tasks, settings, a) for a in range(data.a))
    gates = tuple(tuple(gates_of_arm(data, tasks, settings, a, arms[a])) for a in range(data.a))
    steps = tuple(steps_of(data, tasks, settings))
    certified = tuple(a for a in range(data.a) if _meets_all(gates[a]))
    chosen = _cheapest(arms, certified)
    candidate = _cheapest(arms, [a for a in range(data.a) if gates[a] and holds_as_observed(gates[a])])
    shown = _shown(gates, arms, chosen, candidate)
    judged = chosen if chosen is not None else candidate
    rules = (risk_failures_fall(data, settings, arms, judged), nothing_certified(gates[shown]))
    uncertified = _uncertified(data, gates[shown])
    verdict = decide(gates[shown], rules, uncertified=uncertified, has_selection=chosen is not None)
    approved = verdict.decision is Decision.APPROVE
    detectable = [step.detectable for step in steps]
    return LadderResult(
        data=data,
        settings=settings,
        tasks=tasks,
        arms=arms,
        gates=gates,
        steps=steps,
        marginals=tuple(marginals_of(data, tasks, settings)),
        certified=certified,
        selected=chosen if approved else None,
        candidate=candidate,
        shown=shown,
        plateau_at=plateau_of(steps, settings),
        best_at_value=None if settings.value_usd is None else best_at(data, tasks, settings.value_usd),
        minimum_detectable_gain=None
        if not detectable or any(d is None for d in detectable)
        else max(d for d in detectable if d is not None),
        acceptability=acceptability_of(data, tasks, settings),
        stop_rules=rules,
        verdict=_in_words(verdict, data.arms[shown], gates, data.arms, chosen),
    )


def _meets_all(gates: Sequence[Gate]) -> bool:
    """Every gate passes, and an exact bound stands behind one of them at least."""
    return all(g.status in _PASSING for g in gates) and any(g.status is Status.CERTIFIED for g in gates)


def _cheapest(arms: Sequence[ArmFigures], among: Sequence[int]) -> int | None:
    """The least costly of these arms; of equal ones the first declared. None where none has a known cost."""
    priced = [(cost, a) for a in among if (cost := arms[a].cost_usd) is not None]
    return min(priced)[1] if priced else None


def _shown(
    gates: Sequence[Sequence[Gate]], arms: Sequence[ArmFigures], chosen: int | None, candidate: int | None
) -> int:
    """The arm whose gates decide: the chosen one, the candidate, else the one with the fewest broken gates, then
    the fewest open ones, then the least cost. So only where every arm breaks a gate do gates reject the ladder."""
    if chosen is not None:
        return chosen
    if candidate is not None:
        return candidate

    def rank(a: int) -> tuple[int, int, float, int]:
        broken = sum(g.status in _BROKEN for g in gates[a])
        open_ = sum(g.status not in _BROKEN | _PASSING for g in gates[a])
        cost = arms[a].cost_usd
        return broken, open_, float("inf") if cost is None else cost, a

    return min(range(len(gates)), key=rank)


def _uncertified(data: LadderData, gates: Sequence[Gate]) -> tuple[str, ...]:
    certified = {g.name for g in gates if g.status is Status.CERTIFIED}
    return tuple(name for name in data.risk_classes if f"risk_failure:{name}" not in certified)


def _in_words(
    verdict: Verdict, shown: str, gates: Sequence[Sequence[Gate]], names: Sequence[str], chosen: int | None
) -> Verdict:
    """The verdict in words of a ladder: what to do next is about arms and tasks, not about thresholds."""
    if verdict.decision is Decision.APPROVE:
        return replace(verdict, next_step=f"Deploy {shown} with the requests of this study")
    if verdict.decision is Decision.REJECT:
        broken = [name for name, rows in zip(names, gates, strict=True) if any(g.status in _BROKEN for g in rows)]
        reasons = verdict.reasons
        if chosen is None and len(broken) == len(names):
            every = "Every arm breaks a limit" if len(names) > 1 else f"{shown}, the only arm, breaks a limit"
            return replace(
                verdict,
                reasons=(f"{every} (gates shown: {shown})", *reasons),
                next_step="Change the model, the prompt or the limit; then judge on fresh tasks",
            )
        return replace(verdict, next_step=f"Keep {names[0]} until more thinking is shown to lower the failures")
    open_ = [
        (g.missing_n, g) for g in gates[names.index(shown)] if g.status not in _BROKEN | _PASSING and g.missing_n
    ]
    if open_:
        more = "; ".join(f"{g.label}: {count:,} more {g.n_is}" for count, g in open_ if count)
        return replace(verdict, next_step=f"Collect more tasks for {shown}: {more}")
    return replace(verdict, next_step="See the open gates and stop rules: more tasks alone will not settle them")
