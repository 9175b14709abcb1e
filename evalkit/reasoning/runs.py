"""The runs of one arm, and arms that are made of runs: a majority of several, a loop until a check passes, an arm
that may decline, several arms that were one on the wire."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from evalkit.reasoning.data import Bools, Floats, LadderData

__all__ = ["ArmRuns", "ladder", "loop_runs", "pooled", "vote_runs", "with_fallback"]

_FLAGS = ("sampled", "passed", "answered", "exhausted", "contract_failed", "abstained")
_SUMS = ("cost_usd", "input_tokens", "output_tokens", "billed_output_tokens", "reasoning_tokens", "attempts")


@dataclass(frozen=True)
class ArmRuns:
    """(T, S) arrays of one arm, as `LadderData` has them for all; runs stand in sample order."""

    sampled: Bools
    passed: Bools
    answered: Bools
    exhausted: Bools
    contract_failed: Bools
    abstained: Bools
    cost_usd: Floats
    input_tokens: Floats
    output_tokens: Floats
    billed_output_tokens: Floats
    reasoning_tokens: Floats
    task_s: Floats
    attempts: Floats

    @property
    def shape(self) -> tuple[int, int]:
        """(tasks, runs at most)."""
        return self.sampled.shape[0], self.sampled.shape[1]


def ladder(
    arms: Sequence[tuple[str, ArmRuns]],
    *,
    risk_classes: tuple[str, ...],
    risk: NDArray[np.int16],
    weight: Floats,
    group: NDArray[np.int64] | None,
) -> LadderData:
    """The arms side by side, padded to the largest number of runs."""
    most = max(runs.shape[1] for _, runs in arms)
    arrays = {
        name: np.stack([_padded(getattr(runs, name), most) for _, runs in arms], axis=1)
        for name in (f.name for f in fields(ArmRuns))
    }
    return LadderData(
        arms=tuple(name for name, _ in arms),
        risk_classes=risk_classes,
        risk=risk,
        weight=weight,
        group=group,
        **arrays,
    )


def pooled(arms: Sequence[ArmRuns]) -> ArmRuns:
    """The runs of arms that sent the same requests, as one arm with all their runs."""
    return ArmRuns(**{f.name: np.concatenate([getattr(a, f.name) for a in arms], axis=1) for f in fields(ArmRuns)})


def vote_runs(runs: ArmRuns, answers: NDArray[np.int64], votes: int, *, at_once: bool) -> tuple[ArmRuns, int]:
    """(an arm that asks `votes` times and gives the most frequent answer, runs left over).

    `answers` (T, S): equal codes are equal answers; below 0, or unanswered, is no vote. Of equally frequent
    answers the one given first wins. It passes where every run that gave it does: of equal answers that were
    graded differently, which grade is right is not known. Each full block of `votes` runs of a task is one run
    here. Costs and tokens of a block add up; its time is the longest where the requests go out at once, else their
    sum. A block without any answer is unanswered.
    """
    blocks, left = _blocks(runs, votes)
    out = _empty(runs.shape[0], blocks.shape[1])
    for task, block in zip(*np.nonzero((blocks >= 0).all(axis=2)), strict=True):
        at = blocks[task, block]
        _add_up(out, runs, task, block, at, at_once=at_once)
        given = [int(s) for s in at if runs.answered[task, s] and answers[task, s] >= 0]
        if not given:
            out.exhausted[task, block] = bool(runs.exhausted[task, at].all())
            continue
        codes = answers[task, given]
        counts = {int(c): int((codes == c).sum()) for c in codes}
        winner = given[next(i for i, c in enumerate(codes) if counts[int(c)] == max(counts.values()))]
        out.answered[task, block] = True
        out.passed[task, block] = bool(runs.passed[task, given][codes == answers[task, winner]].all())
        out.contract_failed[task, block] = runs.contract_failed[task, winner]
    return out, left


def loop_runs(
    runs: ArmRuns, kept: Bools, cap: int, *, check_usd: float = 0.0, check_s: float = 0.0
) -> tuple[ArmRuns, int]:
    """(an arm that tries again until its reply passes a check, at most `cap` times, runs left over).

    `kept` (T, S): the check passes. The check has to be one that production can make: that the reply keeps its
    contract, never that it is right. Every try and every check costs and takes its time; the last reply stands
    where none passes. Each full block of `cap` runs of a task is one run here, whatever it uses of it.
    """
    blocks, left = _blocks(runs, cap)
    out = _empty(runs.shape[0], blocks.shape[1])
    for task, block in zip(*np.nonzero((blocks >= 0).all(axis=2)), strict=True):
        at = blocks[task, block]
        good = np.flatnonzero(kept[task, at])
        used = at[: int(good[0]) + 1] if len(good) else at
        last = int(used[-1])
        _add_up(out, runs, task, block, used, at_once=False)
        out.cost_usd[task, block] += len(used) * check_usd
        out.task_s[task, block] += len(used) * check_s
        for name in ("passed", "answered", "exhausted", "contract_failed", "abstained"):
            getattr(out, name)[task, block] = getattr(runs, name)[task, last]
    return out, left


def with_fallback(
    runs: ArmRuns, declined: Bools, fallback: ArmRuns | None, *, usd: float = 0.0, seconds: float = 0.0
) -> ArmRuns:
    """The arm with every declined run (T, S) sent on to `fallback`, whose cost and time come on top.

    Runs pair up in order; where the fallback has fewer runs of a task they are used in turn. Without a measured
    fallback (None: a person, say) the run stays unanswered, since nobody graded what came back, and costs `usd`
    and `seconds` more.
    """
    out = ArmRuns(**{f.name: getattr(runs, f.name).copy() for f in fields(ArmRuns)})
    went = declined & runs.sampled
    out.abstained[went] = True
    out.passed[went] = False
    out.answered[went] = False
    if fallback is None:
        out.cost_usd[went] += usd
        out.task_s[went] += seconds
        return out
    for task, s in zip(*np.nonzero(went), strict=True):
        there = np.flatnonzero(fallback.sampled[task])
        if not len(there):
            out.cost_usd[task, s] = np.nan
            continue
        rank = int(runs.sampled[task, :s].sum()) % len(there)
        f = int(there[rank])
        for name in ("passed", "answered", "exhausted", "contract_failed"):
            getattr(out, name)[task, s] = getattr(fallback, name)[task, f]
        for name in (*_SUMS, "task_s"):
            getattr(out, name)[task, s] += getattr(fallback, name)[task, f]
    return out


def _padded(values: NDArray[np.generic], most: int) -> NDArray[np.generic]:
    blank: object = False if values.dtype == np.bool_ else np.nan
    short = most - values.shape[1]
    return np.pad(values, ((0, 0), (0, short)), constant_values=blank) if short else values  # type: ignore[call-overload]


def _blocks(runs: ArmRuns, size: int) -> tuple[NDArray[np.int64], int]:
    """((T, B, size) positions of the runs of each full block, -1 where there is none; runs left over)."""
    tasks, _ = runs.shape
    count = runs.sampled.sum(axis=1)
    most = int(count.max(initial=0)) // size
    out = np.full((tasks, max(most, 1), size), -1, dtype=np.int64)
    for task in range(tasks):
        at = np.flatnonzero(runs.sampled[task])
        whole = len(at) // size
        if whole:
            out[task, :whole] = at[: whole * size].reshape(whole, size)
    return out, int((count % size).sum())


def _empty(tasks: int, runs: int) -> ArmRuns:
    flags = {name: np.zeros((tasks, runs), dtype=bool) for name in _FLAGS}
    return ArmRuns(**flags, **{name: np.full((tasks, runs), np.nan) for name in (*_SUMS, "task_s")})


def _add_up(out: ArmRuns, runs: ArmRuns, task: int, block: int, at: NDArray[np.int64], *, at_once: bool) -> None:
    out.sampled[task, block] = True
    for name in _SUMS:
        getattr(out, name)[task, block] = getattr(runs, name)[task, at].sum()
    seconds = runs.task_s[task, at]
    out.task_s[task, block] = seconds.max() if at_once else seconds.sum()
