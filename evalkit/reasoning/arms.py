"""What is known of each arm by itself: rates with their intervals, tokens, cost, time, risk failures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evalkit.reasoning.data import Floats, LadderData, Settings
from evalkit.reasoning.tasks import TaskFigures, independent_tasks, known_mean, units_of_class
from evalkit.statistics.bounds import effective_n, upper_bound, wilson_interval
from evalkit.statistics.paired import paired_difference
from evalkit.statistics.percentiles import percentile, upper_bound_rank
from evalkit.statistics.rounding import clean

__all__ = ["P95", "ArmFigures", "RiskFailure", "Tokens", "arm_figures", "p95_upper", "rate_interval"]


@dataclass(frozen=True)
class RiskFailure:
    """Failed tasks of one risk class at one arm (`units`: tasks, or groups that count by their worst task), and
    the one-sided exact bound on the rate. k and n are what the bound stands on; with weights n is effective.
    k_seen: of k, what was answered and failed; silence withholds a certificate, but breaks no limit."""

    tasks: int
    failed: int
    rate: float | None
    upper_bound: float | None
    k: float
    n: float
    units: str
    k_seen: float


@dataclass(frozen=True)
class P95:
    """Nearest-rank 95th percentile of the answered runs' task time. upper: exact bound, None below 59 tasks and
    where tasks have several runs, weights or groups. unknown: answered runs without a time (then no value)."""

    value: float | None
    n: int
    unanswered: int
    unknown: int
    upper: float | None


@dataclass(frozen=True)
class Tokens:
    """Mean tokens per request over the runs whose usage is known, and how many runs have none."""

    per_request: float | None
    missing: int


@dataclass(frozen=True)
class ArmFigures:
    """One arm. pass_rate = passed / answered; lower = passed / all (its interval is `interval`); upper counts the
    unanswered as passed. None is unknown, never zero."""

    name: str
    tasks: int
    runs: int
    answered: int
    abstained: int
    exhausted: int
    contract_failed: int
    attempts: int | None
    pass_rate: float | None
    pass_rate_lower: float
    pass_rate_upper: float
    interval: tuple[float, float] | None
    interval_method: str
    risk: tuple[RiskFailure, ...]
    input: Tokens
    output: Tokens
    billed: Tokens
    reasoning: Tokens
    cost_usd: float | None
    cost_interval: tuple[float, float] | None
    cost_unknown: int
    p95: P95


def arm_figures(data: LadderData, tasks: TaskFigures, settings: Settings, arm: int) -> ArmFigures:
    """Every figure of arm `arm`; USD, tokens, times and rates are weighted by traffic, counts are not."""
    sampled, weight = data.sampled[:, arm], data.weight
    passed, answered = tasks.passed[:, arm], tasks.answered[:, arm]
    total = float(weight.sum())
    got, replied = float(weight @ passed), float(weight @ answered)
    interval, method = rate_interval(
        data, passed, settings.confidence, single=bool((data.runs[:, arm] == 1).all())
    )
    billed = data.input_tokens[:, arm] + data.billed_output_tokens[:, arm]
    cost = tasks.cost_usd[:, arm]
    unknown = int((np.isnan(data.cost_usd[:, arm]) & sampled).sum() + (~sampled.any(axis=1)).sum())
    spread = None if unknown else paired_difference(cost, weight, data.group, settings.confidence)
    attempts = data.attempts[:, arm][sampled]
    return ArmFigures(
        name=data.arms[arm],
        tasks=data.n,
        runs=int(sampled.sum()),
        answered=int((data.answered[:, arm] & sampled).sum()),
        abstained=int((data.abstained[:, arm] & sampled).sum()),
        exhausted=int((data.exhausted[:, arm] & sampled).sum()),
        contract_failed=int((data.contract_failed[:, arm] & sampled).sum()),
        attempts=None if not len(attempts) or np.isnan(attempts).any() else int(attempts.sum()),
        pass_rate=clean(min(1.0, got / replied)) if replied > 0 else None,
        pass_rate_lower=clean(got / total),
        pass_rate_upper=clean(min(1.0, (got + total - replied) / total)),
        interval=interval,
        interval_method=method,
        risk=tuple(_risk_failure(data, tasks, settings, arm, r) for r in range(len(data.risk_classes))),
        input=_tokens(data.input_tokens[:, arm], data, arm),
        output=_tokens(data.output_tokens[:, arm], data, arm),
        billed=_tokens(billed, data, arm),
        reasoning=_tokens(data.reasoning_tokens[:, arm], data, arm),
        cost_usd=None if spread is None else clean(spread.mean),
        cost_interval=None
        if spread is None or spread.lower is None or spread.upper is None
        else (clean(max(0.0, spread.lower)), clean(spread.upper)),
        cost_unknown=unknown,
        p95=_p95(data, settings, arm),
    )


def rate_interval(
    data: LadderData, means: Floats, confidence: float, *, single: bool
) -> tuple[tuple[float, float] | None, str]:
    """(interval, method) of a rate whose task means are `means` (T,).

    Wilson for single runs of equal weight without groups; else t over task means, clustered by group, within
    [0, 1]. Where all task means are equal the t interval has no width, and Wilson over the tasks stands in.
    """
    n = independent_tasks(data)
    if n <= 0:
        return None, "none"
    seen = paired_difference(means, data.weight, data.group, confidence)
    plain = single and data.group is None and float(np.ptp(data.weight)) == 0
    if seen.mean is not None and (plain or not seen.se):
        ends = wilson_interval(min(seen.mean * n, n), n, confidence)
        return (None, "none") if ends is None else ((clean(ends[0]), clean(ends[1])), "wilson")
    if seen.lower is None or seen.upper is None:
        return None, "none"
    return (clean(max(0.0, seen.lower)), clean(min(1.0, seen.upper))), "t over task means"


def _tokens(values: Floats, data: LadderData, arm: int) -> Tokens:
    mean, missing = known_mean(values, data.sampled[:, arm], data.weight)
    return Tokens(clean(mean), missing)


def _risk_failure(data: LadderData, tasks: TaskFigures, settings: Settings, arm: int, risk: int) -> RiskFailure:
    failed, weight = units_of_class(data, tasks.failed[:, arm], risk)
    here = data.risk == risk
    grouped = data.group is not None and len(failed) != int((here & (data.weight > 0)).sum())
    units = "groups" if grouped else "tasks"
    count, missed = int(here.sum()), int(tasks.failed[here, arm].sum())
    if not len(failed):
        return RiskFailure(count, missed, None, None, 0.0, 0.0, units, 0.0)
    varied = float(np.ptp(weight)) > 1e-12 * float(weight.max())
    n = effective_n(weight) if varied else float(len(failed))
    seen, _ = units_of_class(data, tasks.seen_failed[:, arm], risk)
    k, k_seen = (
        min(n, n * float(weight @ which) / float(weight.sum())) if varied else float(which.sum())
        for which in (failed, seen)
    )
    bound = upper_bound(k, n, settings.confidence)
    return RiskFailure(count, missed, clean(k / n), clean(bound), clean(k), clean(n), units, clean(k_seen))


def _p95(data: LadderData, settings: Settings, arm: int) -> P95:
    sampled, answered, seconds = data.sampled[:, arm], data.answered[:, arm], data.task_s[:, arm]
    replied = sampled & answered
    known = replied & ~np.isnan(seconds)
    unknown = int((replied & ~known).sum())
    unanswered = int((sampled & ~answered).sum() + (~sampled.any(axis=1)).sum())
    share = np.broadcast_to((data.weight / data.runs[:, arm])[:, None], known.shape)
    n = int((known & (share > 0)).sum())
    value = None if unknown else percentile(seconds[known], 0.95, share[known])
    upper = None if value is None else p95_upper(data, arm, settings.confidence)
    return P95(clean(value), n, unanswered, unknown, clean(upper))


def p95_upper(data: LadderData, arm: int, confidence: float) -> float | None:
    """The exact upper bound on the 95th percentile of task time, itself one of the times; an unanswered run never
    ends. None below the least n (59 at 95 %), and for several runs a task, weights that vary or groups, which an
    order statistic does not cover."""
    sampled, seconds = data.sampled[:, arm], data.task_s[:, arm]
    if (data.runs[:, arm] > 1).any() or data.group is not None or float(np.ptp(data.weight)) > 0:
        return None
    rank = upper_bound_rank(data.n, 0.95, confidence)
    if rank is None:
        return None
    known = sampled & data.answered[:, arm] & ~np.isnan(seconds)
    one = np.sort(np.where(known, seconds, np.inf).min(axis=1))
    return float(one[rank - 1]) if np.isfinite(one[rank - 1]) else None
