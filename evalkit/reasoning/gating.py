"""The gates of one arm: every limit held against its evidence, at the share of the error rate one arm may spend.

An arm is certified where every limit passes at delta / arms: wrongly certifying it takes all of its tests, one of
which has at most this chance, so that with all arms tested any limit is broken by a certified arm in at most delta
of studies, whichever of them is then chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from evalkit.gates import Gate, Status
from evalkit.reasoning.arms import ArmFigures, p95_upper
from evalkit.reasoning.data import P95_SLOW_SHARE, Floats, LadderData, Settings
from evalkit.reasoning.tasks import TaskFigures, independent_tasks
from evalkit.statistics.bounds import lower_bound, missing_n, required_n, upper_bound
from evalkit.statistics.rounding import clean

__all__ = ["gates_of_arm", "holds_as_observed"]

_SPENT = "this look was not declared in advance, so it certifies nothing"


@dataclass(frozen=True)
class _Test:
    """One share held against its limit: its gate without words."""

    name: str
    label: str
    limit: float
    limit_is: str
    unit: str
    n_is: str
    share_limit: float
    k: float
    n: float
    certain: float  # the part of k that was answered and seen to fail: only that can break a limit
    delta: float | None
    confidence: float

    @property
    def level(self) -> float:
        return self.confidence if self.delta is None else 1.0 - self.delta

    @property
    def bound(self) -> float | None:
        return upper_bound(self.k, self.n, self.level)

    def gate(
        self,
        status: Status,
        message: str,
        *,
        observed: float | None,
        bound: float | None,
        missing: int | None = None,
        basis: str = "bound",
    ) -> Gate:
        return Gate(
            name=self.name,
            label=self.label,
            limit=self.limit,
            limit_is=self.limit_is,
            unit=self.unit,
            observed=clean(observed),
            bound=clean(bound),
            k=clean(self.k),
            n=clean(self.n),
            n_is=self.n_is,
            status=status,
            missing_n=missing,
            message=message,
            basis=basis,
            confidence=clean(self.level),
        )

    def status(self) -> tuple[Status, int | None, str]:
        """(status, missing n, what to add to the message): tested from both sides."""
        bound = self.bound
        if self.delta is None:
            return Status.INSUFFICIENT, None, _SPENT
        lower = lower_bound(min(self.certain, self.k), self.n, self.level)
        if bound is None or lower is None:
            return Status.NOT_STATABLE, None, "no evidence"
        if bound <= self.share_limit:
            return Status.CERTIFIED, None, ""
        if lower > self.share_limit:
            seen = "fail" if self.certain >= self.k else "were answered and fail"
            return Status.VIOLATED, None, f"at least {_percent(lower)} {seen}, so the limit is broken"
        if self.share_limit <= 0:
            return Status.INSUFFICIENT, None, "no n certifies 0"
        more = missing_n(self.k, self.n, self.share_limit, self.delta)
        if more is None:
            return Status.INSUFFICIENT, None, "more tasks will not help at this rate"
        return Status.INSUFFICIENT, more, f"{more:,} more {self.n_is} without a further failure would settle it"


def gates_of_arm(
    data: LadderData, tasks: TaskFigures, settings: Settings, arm: int, seen: ArmFigures
) -> list[Gate]:
    """All gates of arm `arm` (position): risk classes in declared order, pass rate, p95, cost."""
    limits = settings.limits
    gates = [
        _risk_gate(data, settings, seen, r) for r, rule in enumerate(settings.classes) if rule.limit is not None
    ]
    if limits.min_pass_rate is not None:
        gates.append(_pass_gate(data, tasks, settings, arm, seen, limits.min_pass_rate))
    if limits.p95_task_s is not None:
        gates.append(_p95_gate(data, settings, arm, seen, limits.p95_task_s))
    if limits.max_cost_per_request_usd is not None:
        gates.append(_cost_gate(data, settings, seen, limits.max_cost_per_request_usd))
    if seen.cost_unknown:
        gates.append(_unknown_cost_gate(seen))
    return gates


def holds_as_observed(gates: Sequence[Gate]) -> bool:
    """Whether every figure, as observed, is inside its limit, certified or not; an unknown one is not."""
    return all(_inside(gate) for gate in gates)


def _inside(gate: Gate) -> bool:
    if gate.limit is None or gate.status is Status.VIOLATED:
        return False
    if gate.name == "p95_task":  # judged on the share of slow, unanswered or untimed runs, not on a percentile
        return gate.k is not None and bool(gate.n) and gate.k <= P95_SLOW_SHARE * (gate.n or 0.0) + 1e-9
    if gate.observed is None:
        return False
    if gate.limit_is == "min":
        return gate.observed >= gate.limit - 1e-12
    return gate.observed <= gate.limit + 1e-12


def _risk_gate(data: LadderData, settings: Settings, seen: ArmFigures, r: int) -> Gate:
    rule, found, name = settings.classes[r], seen.risk[r], data.risk_classes[r]
    limit = rule.limit if rule.limit is not None else 0.0
    label = f"Failures, {name}"
    test = _Test(
        f"risk_failure:{name}", label, limit, "max", "share", found.units, limit, found.k, found.n, found.k_seen,
        settings.delta_per_arm(data.a), settings.confidence,
    )  # fmt: skip
    if not found.n:
        text = f"{label}: there is no task of this class that stands for traffic, so nothing can be said about it"
        return test.gate(Status.NOT_STATABLE, text, observed=None, bound=None)
    rate, bound = found.k / found.n, test.bound
    counted = f"{_count(found.k)} of {_count(found.n)} {found.units} fail in some run, {_percent(rate)}"
    if rule.on_estimate:
        text = f"NOT CERTIFIED (policy). {name}: {counted}; could be {_percent(bound)}. Limit {_percent(limit)}"
        inside = rate <= limit + 1e-12
        lower = lower_bound(found.k_seen, found.n, test.level) or 0.0
        status = Status.ESTIMATE if inside else Status.VIOLATED if lower > limit else Status.INSUFFICIENT
        if settings.delta is None and status is Status.ESTIMATE:
            status = Status.INSUFFICIENT
        if status is not Status.ESTIMATE:
            text = f"{label}: {counted} (limit {_percent(limit)}, judged on the estimate)"
        return test.gate(status, text, observed=rate, bound=bound, basis="estimate")
    status, missing, more = test.status()
    text = f"{label}: {counted}; at most {_percent(bound)} with {100 * test.level:.4g} % confidence"
    return test.gate(status, _said(text, limit, more), observed=rate, bound=bound, missing=missing)


def _pass_gate(
    data: LadderData, tasks: TaskFigures, settings: Settings, arm: int, seen: ArmFigures, floor: float
) -> Gate:
    label = "Pass rate"
    k, n, n_is = _failing(data, 1.0 - tasks.passed[:, arm])
    certain = _certainly(data, tasks.answered[:, arm] - tasks.passed[:, arm], n)
    test = _Test(
        "pass_rate", label, floor, "min", "share", n_is, 1.0 - floor, k, n, certain,
        settings.delta_per_arm(data.a), settings.confidence,
    )  # fmt: skip
    bound = test.bound
    least = None if bound is None else 1.0 - bound
    status, missing, more = test.status()
    text = (
        f"{label}: {_percent(seen.pass_rate_lower)} of requests pass, unanswered counted as failed; at least "
        f"{_percent(least)} with {100 * test.level:.4g} % confidence"
    )
    return test.gate(status, _said(text, floor, more), observed=seen.pass_rate_lower, bound=least, missing=missing)


def _p95_gate(data: LadderData, settings: Settings, arm: int, seen: ArmFigures, limit_s: float) -> Gate:
    label = "p95 task time"
    sampled, answered, seconds = data.sampled[:, arm], data.answered[:, arm], data.task_s[:, arm]
    late = sampled & ~(answered & (seconds <= limit_s))  # unanswered or of unknown time: late
    share = np.where(sampled.any(axis=1), late.sum(axis=1) / data.runs[:, arm], 1.0)
    k, n, n_is = _failing(data, share)
    seen_late = (sampled & answered & (seconds > limit_s)).sum(axis=1) / data.runs[:, arm]
    certain = _certainly(data, seen_late, n)
    test = _Test(
        "p95_task", label, limit_s, "max", "s", n_is, P95_SLOW_SHARE, k, n, certain,
        settings.delta_per_arm(data.a), settings.confidence,
    )  # fmt: skip
    if np.isnan(seconds[sampled & answered]).all():
        return test.gate(Status.NOT_STATABLE, f"{label}: no task times are known", observed=None, bound=None)
    bound_s = p95_upper(data, arm, test.level)
    counted = f"{_percent(k / n if n else None)} of requests take longer than {limit_s:g} s or are unanswered"
    if settings.delta is not None:
        least = required_n(P95_SLOW_SHARE, 0, test.delta or 1.0 - settings.confidence) or 0
        lower = lower_bound(certain, n, test.level) or 0.0
        if n < least and lower <= P95_SLOW_SHARE:
            what = n_is.replace("tasks", "task", 1) if n == 1 else n_is
            text = f"{label}: {_count(n)} {what} cannot bound a 95th percentile, {least} are the least; {counted}"
            return test.gate(
                Status.NOT_STATABLE, text, observed=seen.p95.value, bound=None, missing=int(np.ceil(least - n))
            )
    status, missing, more = test.status()
    text = f"{label}: {counted}; at most {_percent(test.bound)} with {100 * test.level:.4g} % confidence"
    text += f" (limit {_percent(P95_SLOW_SHARE)})" + (f"; {more}" if more else "")
    return test.gate(status, text, observed=seen.p95.value, bound=bound_s, missing=missing)


def _cost_gate(data: LadderData, settings: Settings, seen: ArmFigures, limit_usd: float) -> Gate:
    label = "Cost per request"
    test = _Test(
        "cost_per_request", label, limit_usd, "max", "usd", "requests", 1.0, 0.0, float(data.n), 0.0, None,
        settings.confidence,
    )  # fmt: skip
    if seen.cost_usd is None:
        text = f"{label}: {seen.cost_unknown:,} of {seen.runs:,} costs are unknown"
        return test.gate(Status.NOT_STATABLE, text, observed=None, bound=None, basis="estimate")
    text = (
        f"{label}: ${seen.cost_usd:.6g} on average (limit ${limit_usd:.6g}); judged on the estimate, since no "
        "bound on a skewed mean can be relied on"
    )
    status = Status.ESTIMATE if seen.cost_usd <= limit_usd * (1 + 1e-12) else Status.VIOLATED
    gate = test.gate(status, text, observed=seen.cost_usd, bound=None, basis="estimate")
    return replace(gate, k=None, confidence=None)


def _unknown_cost_gate(seen: ArmFigures) -> Gate:
    runs = max(seen.runs, seen.cost_unknown)
    return Gate(
        name="cost_known",
        label="Costs known",
        limit=None,
        limit_is="max",
        unit="items",
        observed=None,
        bound=None,
        k=float(seen.cost_unknown),
        n=float(runs),
        n_is="runs",
        status=Status.NOT_STATABLE,
        missing_n=None,
        message=(
            f"Costs known: the cost of {seen.cost_unknown:,} of {runs:,} runs of {seen.name} is unknown, so "
            "whether it is the least costly cannot be said; give cost_usd, or token counts and a price card"
        ),
        basis="bound",
        confidence=None,
    )


def _failing(data: LadderData, share: Floats) -> tuple[float, float, str]:
    """(k, n, what n counts) of a rate of requests whose per-task failure means are `share` (T,).

    k is rounded up to whole tasks where all weigh the same: runs are never pooled as if they were tasks.
    """
    n = independent_tasks(data)
    total = float(data.weight @ share)
    if float(np.ptp(data.weight)) == 0:
        total = float(np.ceil(total - 1e-9)) + 0.0  # no -0.0
    n_is = "tasks" if data.group is None else "tasks (effective, groups counted whole)"
    return (min(n, n * min(1.0, total / data.n)) if data.n else 0.0), n, n_is


def _certainly(data: LadderData, share: Floats, n: float) -> float:
    """Of the k of `_failing`, what was answered and failed: rounded down, since it has to prove a broken limit."""
    total = float(data.weight @ share)
    if float(np.ptp(data.weight)) == 0:
        total = float(np.floor(total + 1e-9))
    return max(0.0, min(n, n * total / data.n)) if data.n else 0.0


def _said(text: str, limit: float, more: str) -> str:
    return f"{text} (limit {_percent(limit)})" + (f"; {more}" if more else "")


def _count(value: float) -> str:
    return f"{value:,.0f}" if abs(value - round(value)) < 1e-9 else f"{value:,.1f}"


def _percent(rate: float | None) -> str:
    """A rate in words, with as many digits as keep it off 0 and 100 %."""
    if rate is None:
        return "n/a"
    if rate in (0.0, 1.0) or 0.0005 <= rate <= 0.9995:
        return f"{100 * rate:.4g} %" if abs(1000 * rate - round(1000 * rate)) < 1e-9 else f"{100 * rate:.1f} %"
    return f"{100 * rate:.3g} %" if rate < 0.5 else f"{100 * rate:.4f} %"
