"""The recorded runs of each arm: what was run, what should have been and is not there, what it cost and took."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from evalkit.outcomes.status import Status
from evalkit.outcomes.table import Outcomes
from evalkit.reasoning.data import Bools, Floats
from evalkit.reasoning.runs import ArmRuns
from evalkit.study.reasoning_models import Arm, ReasoningStudy

__all__ = ["recorded_runs", "time_notes"]


def _seconds(arm: Arm, j: int, reported: Outcomes) -> Floats:
    """(T, S) times of the tasks. One request's time stands in where the task was one request and one attempt: of
    several steps or attempts it is only the last."""
    task, request = reported.task_s[:, j], reported.request_s[:, j]
    whole = ~(reported.attempts[:, j] > 1) & (len(arm.steps) <= 1)
    return np.where(np.isnan(task) & whole, request, task)


def time_notes(study: ReasoningStudy, reported: Outcomes, at: Mapping[str, int]) -> list[str]:
    """What to say where the time of a request stood in for the time of its task, or could not."""
    taken = left = False
    for arm in study.tiers:
        j = at[arm.name]
        stands_in = np.isnan(reported.task_s[:, j]) & ~np.isnan(reported.request_s[:, j])
        known = ~np.isnan(_seconds(arm, j, reported))
        taken |= bool((stands_in & known).any())
        left |= bool((stands_in & ~known).any())
    out = ["Where task_s is missing, request_s is taken for the task's time."] if taken else []
    if left:
        out.append(
            "Where task_s is missing, the time of a task of several steps or attempts is unknown: request_s is "
            "that of its last request alone."
        )
    return out


def recorded_runs(
    arm: Arm, j: int, sampled: Bools, reported: Outcomes, settled: Outcomes, cost_usd: Floats
) -> tuple[ArmRuns, int]:
    """(the runs of an arm, costs assumed for it)."""
    cost = cost_usd[:, j].copy()
    unknown = sampled & np.isnan(cost)
    filled = 0
    if arm.cost_usd is not None:
        cost[unknown] = float(arm.cost_usd)
        filled = int(unknown.sum())
    nothing = np.zeros(sampled.shape, dtype=bool)
    return ArmRuns(
        sampled=sampled,
        passed=reported.passed[:, j] & sampled,
        answered=reported.answered[:, j] & sampled,
        exhausted=reported.having(Status.BUDGET_EXHAUSTED)[:, j],
        contract_failed=reported.having(Status.CONTRACT_FAIL)[:, j],
        abstained=nothing,
        cost_usd=cost,
        input_tokens=np.array(settled.input_tokens[:, j]),
        output_tokens=np.array(reported.output_tokens[:, j]),
        billed_output_tokens=np.array(settled.output_tokens[:, j]),
        reasoning_tokens=np.array(reported.reasoning_tokens[:, j]),
        task_s=_seconds(arm, j, reported),
        attempts=np.array(reported.attempts[:, j]),
    ), filled
