"""The recorded runs of each arm: what was run, what should have been and is not there, what it cost and took."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from evalkit.errors import Fault, InputError
from evalkit.outcomes.status import Status
from evalkit.outcomes.table import Outcomes
from evalkit.reasoning.data import Bools, Floats
from evalkit.reasoning.runs import ArmRuns
from evalkit.study.reasoning_models import Arm, ReasoningStudy

__all__ = ["absent_note", "owed_runs", "recorded_runs", "refuse_unmet_samples", "time_notes"]


def refuse_unmet_samples(study: ReasoningStudy, reported: Outcomes) -> None:
    """A study whose outcomes nowhere have the runs that it declares was not run as it says."""
    most = int(reported.present.sum(axis=2).max(initial=0))
    if study.samples is not None and 0 < most < study.samples:
        what = f"is {study.samples}, and no task has more than {most} run{'s' if most > 1 else ''} of an arm"
        fix = f"record the runs that are missing, or write samples: {most} where no more were made"
        raise InputError(Fault(what, fix, file=str(study.path), field="samples"))


def owed_runs(present: Bools, samples: int | None) -> tuple[Bools, int]:
    """((T, S) runs of an arm with those that should be there and are not, how many of these).

    Each task owes the runs that the study declares, else as many as the task of this arm with the most. A log
    that drops failed runs looks just like that, so that a run that is not there counts as unanswered, at a cost
    that is not known. Tasks without any run stay as they are: they count as unanswered anyway.
    """
    count = present.sum(axis=1)
    owed = int(count.max(initial=0)) if samples is None else min(samples, present.shape[1])
    short = np.where(count > 0, np.maximum(owed - count, 0), 0)
    free = ~present
    return np.asarray(present | (free & (np.cumsum(free, axis=1) <= short[:, None]))), int(short.sum())


def absent_note(name: str, absent: int, samples: int | None) -> str:
    """What to say of the runs of an arm that should be there and are not."""
    some = f"arm {name}: {absent:,} run{' is' if absent == 1 else 's are'} missing"
    if samples is not None:
        return (
            f"{some} of samples: {samples}, and count as unanswered, at an unknown cost: a log may have dropped "
            "what failed. Record them, or lower samples where no more were made"
        )
    return (
        f"{some} against its tasks with the most runs, and count as unanswered, at an unknown cost: a log may "
        "have dropped what failed. Record them, or write samples: with the runs that every task was to have"
    )


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
