"""Figures of each task at each arm. Runs of one task are not independent: they meet here and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalkit.reasoning.data import Bools, Floats, LadderData
from evalkit.statistics.bounds import effective_n

__all__ = ["TaskFigures", "failed_in", "independent_tasks", "known_mean", "task_figures", "units_of_class"]


@dataclass(frozen=True)
class TaskFigures:
    """(T, A) means over the runs of a task: passed and answered (a missing run is neither); cost_usd, NaN where
    any run's cost is unknown; failed, whether any run did not pass; seen_failed, whether any run was answered and
    did not pass."""

    passed: Floats
    answered: Floats
    cost_usd: Floats
    failed: Bools
    seen_failed: Bools


def task_figures(data: LadderData) -> TaskFigures:
    """The figures of every task at every arm."""
    runs = data.runs
    passed = (data.passed & data.sampled).sum(axis=2)
    unknown = (np.isnan(data.cost_usd) & data.sampled).any(axis=2) | ~data.sampled.any(axis=2)
    cost = np.where(data.sampled, np.nan_to_num(data.cost_usd), 0.0).sum(axis=2) / runs
    return TaskFigures(
        passed=passed / runs,
        answered=(data.answered & data.sampled).sum(axis=2) / runs,
        cost_usd=np.where(unknown, np.nan, cost),
        failed=np.asarray(passed < runs),
        seen_failed=np.asarray((data.sampled & data.answered & ~data.passed).any(axis=2)),
    )


def failed_in(data: LadderData, arm: int, runs: NDArray[np.int64], *, seen_only: bool = False) -> Bools:
    """(T,) whether any of the first `runs` (T,) runs of each task at `arm` did not pass; with `seen_only`, was
    answered and did not.

    To compare arms with different numbers of runs: the more runs, the more often one of them fails.
    """
    sampled = data.sampled[:, arm]
    among = sampled & (np.cumsum(sampled, axis=1) <= runs[:, None])
    if seen_only:
        return np.asarray((among & data.answered[:, arm] & ~data.passed[:, arm]).any(axis=1))
    return np.asarray((among & ~data.passed[:, arm]).any(axis=1) | ~sampled.any(axis=1))


def known_mean(values: Floats, sampled: Bools, weight: Floats) -> tuple[float | None, int]:
    """(mean over tasks of the mean over runs, runs without a value) of `values` (T, S).

    Runs without a value count nowhere, and a task none of whose runs has one counts nowhere: never as zero.
    """
    known = sampled & ~np.isnan(values)
    missing = int((sampled & ~known).sum())
    count = known.sum(axis=1)
    has = (count > 0) & (weight > 0)
    if not has.any():
        return None, missing
    means = np.where(known, np.nan_to_num(values), 0.0).sum(axis=1)[has] / count[has]
    return float(weight[has] @ means / weight[has].sum()), missing


def independent_tasks(data: LadderData) -> float:
    """How many independent tasks a rate over all tasks rests on: sum(w) / max(w), divided by the size of the
    largest group, whose tasks may all fail together."""
    if data.n == 0:
        return 0.0
    largest = 1 if data.group is None else int(np.bincount(data.group).max())
    return effective_n(data.weight) / largest


def units_of_class(data: LadderData, failed: Bools, risk: int) -> tuple[Bools, Floats]:
    """(failed, weight) of the units of one risk class, for `failed` (T,).

    A unit is a task; with groups it is a group with tasks of the class, which fails where any of them does and
    weighs as they do on average. Units that stand for no traffic are no evidence and are left out.
    """
    chosen = np.flatnonzero(data.risk == risk)
    weight = data.weight[chosen]
    if data.group is None or len(chosen) == 0:
        return failed[chosen][weight > 0], weight[weight > 0]
    used = weight > 0
    chosen, weight = chosen[used], weight[used]
    codes, unit = np.unique(data.group[chosen], return_inverse=True)
    if not len(codes):
        return np.zeros(0, dtype=bool), weight
    worst = np.bincount(unit, weights=failed[chosen]) > 0
    return worst, np.bincount(unit, weights=weight) / np.bincount(unit)
