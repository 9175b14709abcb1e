"""How far along a path each limit is kept, with a guarantee: the certificate of a study.

Under-routing and quality are walked from "everything to the strongest tier" and bound the level from above;
escalation and slow answers are walked from "everything to the cheapest" and bound it from below. Each side is an
intersection-union test, so neither the number of risk classes nor of thresholds needs a correction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalkit.routing.audited import AuditedClass, audit_level, audited_class
from evalkit.routing.data import Floats, RoutingData
from evalkit.routing.points import ItemMeasures
from evalkit.routing.sweep import Sweep, tier_steps
from evalkit.statistics.bounds import effective_n
from evalkit.statistics.tolerance import Tolerance, certified_threshold, walk

__all__ = [
    "Certificate",
    "ClassCertificate",
    "Shares",
    "certify",
    "class_units",
    "request_n",
    "shares_along",
    "slow_share",
    "within",
]

P95_SLOW_SHARE = 0.05


@dataclass(frozen=True)
class ClassCertificate:
    """How far one risk class lets the level go. units: needs, or conversations with a need. audited: the audit of
    its labels; None where they are taken to miss no need."""

    risk: int
    units: int
    tolerance: Tolerance
    audited: AuditedClass | None = None


@dataclass(frozen=True)
class Shares:
    """Observed shares at every candidate of a sweep (candidate order), None where the data are missing.

    failing: requests whose final reply does not pass; escalated; slow: later than the p95 limit, or unanswered.
    failed and late leave out what was not answered or has no time: a missing answer can withhold a certificate,
    but it proves no broken limit.
    under (classes, m + 1): share of each class's units that are under-routed.
    """

    failing: Floats | None
    escalated: Floats
    slow: Floats | None
    under: Floats
    failed: Floats | None
    late: Floats | None


@dataclass(frozen=True)
class Certificate:
    """The levels that keep every certified limit: `lowest` <= level <= `highest`, candidates of the sweep.

    `classes` holds the certified classes only; `audit_level` is how far an audit of the labels reaches.
    highest -inf: some class or the pass rate is not certified even with everything at the strongest tier; lowest
    +inf likewise for escalation and slow answers.
    """

    classes: tuple[ClassCertificate, ...]
    pass_level: float
    escalation_level: float
    slow_level: float
    n_requests: float
    audit_level: float = np.inf

    @property
    def highest(self) -> float:
        """The largest level that keeps under-routing and quality."""
        return min([self.pass_level, self.audit_level, *(c.tolerance.threshold for c in self.classes)])

    @property
    def lowest(self) -> float:
        """The smallest level that keeps escalation and slow answers."""
        return max(self.escalation_level, self.slow_level)


def class_units(data: RoutingData, levels: Floats, risk: int) -> tuple[Floats, Floats]:
    """(level, weight) of the units of one risk class: a unit is under-routed at levels above its own.

    An item's level is that of the boundary below its required tier. With groups, a unit is a conversation with at
    least one need of the class; its level is that of its worst turn, its weight the mean of its needs' weights.
    Units that stand for no traffic are no evidence and are left out.
    """
    chosen = np.flatnonzero(data.needs & (data.risk == risk))
    level = levels[chosen, data.required[chosen].astype(np.int64) - 1]
    weight = data.weight[chosen]
    if data.group is None or len(chosen) == 0:
        return level[weight > 0], weight[weight > 0]
    codes, unit = np.unique(data.group[chosen], return_inverse=True)
    worst = np.full(len(codes), np.inf)
    np.minimum.at(worst, unit, level)
    mean = np.bincount(unit, weights=weight) / np.bincount(unit)
    return worst[mean > 0], mean[mean > 0]


def request_n(data: RoutingData) -> float:
    """The number of independent requests a rate of requests rests on: sum(w) / max(w), divided by the size of
    the longest conversation, whose turns may all fail together."""
    if data.n == 0:
        return 0.0
    longest = 1 if data.group is None else int(np.bincount(data.group).max())
    return effective_n(data.weight) / longest


def slow_share(measures: ItemMeasures, limit_s: float, *, seen_only: bool = False) -> Floats | None:
    """(N, K) share of an item's samples that are slower than `limit_s`, unanswered, or of unknown time; 1 where
    there is no sample. With `seen_only`, the share that was answered and seen to be slower.

    None where no time at all is known."""
    task, data = measures.costs.task_s, measures.data
    if task is None or data.replied is None or np.isnan(task).all():
        return None
    sampled = np.ones(task.shape, dtype=bool) if data.sampled is None else data.sampled
    count = sampled.sum(axis=2)
    if seen_only:
        late = (task > limit_s) & data.replied & sampled
        return np.asarray(late.sum(axis=2) / np.maximum(count, 1), dtype=np.float64)
    slow = (~(task <= limit_s) | ~data.replied) & sampled
    return np.where(count > 0, slow.sum(axis=2) / np.maximum(count, 1), 1.0)


def shares_along(measures: ItemMeasures, levels: Floats, sweep: Sweep) -> Shares:
    """The observed shares at every candidate; item failure means over samples, weighted by traffic."""
    data, settings = measures.data, measures.settings
    n = float(data.n)
    equal = bool(np.ptp(data.weight) == 0)

    def share(values: Floats) -> Floats:
        base = np.array([values[:, 0] @ data.weight])
        total: Floats = sweep.sums(tier_steps([values], None if equal else data.weight), base)[0]
        if equal:  # item failure means of several samples, rounded against the router; sums are off by rounding
            total = np.ceil(total - 1e-9 - 1e-12 * n)
        return np.clip(total / n, 0.0, 1.0) + 0.0  # no -0.0

    failing = None if data.passed is None else share(1.0 - data.passed)
    failed = failing
    if data.passed is not None and data.answered is not None and bool((data.answered < 1).any()):
        failed = share(data.answered - data.passed)
    slow = seen_late = None
    if settings.limits.p95_task_s is not None:
        late = slow_share(measures, settings.limits.p95_task_s)
        slow = None if late is None else share(late)
        known = slow_share(measures, settings.limits.p95_task_s, seen_only=True)
        seen_late = None if known is None else share(known)
    if equal and data.k == 2:
        escalated = sweep.up() / n
    else:
        up = np.zeros((data.n, data.k))
        up[:, 1:] = 1.0
        escalated = share(up)
    return Shares(
        failing, escalated, slow, _under_shares(measures, levels, sweep, equal), failed=failed, late=seen_late
    )


def _under_shares(measures: ItemMeasures, levels: Floats, sweep: Sweep, equal: bool) -> Floats:
    """(classes, m + 1) share of each class's units that are under-routed; NaN without units."""
    data, classes = measures.data, len(measures.settings.classes)
    under = np.full((classes, len(sweep)), np.nan)
    if equal and data.group is None and classes < 255:
        # A need is under-routed until the event of the boundary below its required tier is up.
        codes = np.full((data.k - 1, data.n), 255, dtype=np.uint8)
        needs = np.flatnonzero(data.needs)
        codes[data.required[needs].astype(np.int64) - 1, needs] = data.risk[needs]
        units = np.bincount(data.risk[needs], minlength=classes)
        kept = sweep.counts(codes.ravel(), classes)
        for r in np.flatnonzero(units).tolist():
            under[r] = (units[r] - kept[r]) / units[r]
        return under
    for r in range(classes):
        level, weight = class_units(data, levels, r)
        if len(level):
            order = np.argsort(level, kind="stable")
            running = np.concatenate(([0.0], np.cumsum(weight[order])))
            # under-routed at candidate x: units whose level is below x
            below = np.searchsorted(level[order], sweep.levels, side="left")
            under[r] = np.clip(running[below] / running[-1], 0.0, 1.0)
    return under


def certify(measures: ItemMeasures, levels: Floats, sweep: Sweep, shares: Shares) -> Certificate:
    """The certificate at `settings.delta`; with delta None nothing is certified."""
    settings, data = measures.settings, measures.data
    n = request_n(data)
    delta = settings.delta
    if delta is None:
        return Certificate((), -np.inf, np.inf, np.inf, n)
    classes = []
    for r, limit in enumerate(settings.classes):
        if limit.limit is None or limit.on_estimate:
            continue
        level, weight = class_units(data, levels, r)
        audited = audited_class(data, r, effective_n(weight), delta)
        if audited is None:
            bound = certified_threshold(level, limit.limit, delta, weight)
        else:
            room = audited.label_limit(limit.limit)
            bound = Tolerance(-np.inf, -1.0, audited.n, 0.0)
            if room is not None:
                bound = certified_threshold(level, room, audited.half, weight)
        classes.append(ClassCertificate(r, len(level), bound, audited))
    limits = settings.limits
    last = len(sweep) - 1
    pass_level = np.inf
    if limits.min_pass_rate is not None:
        pass_level = -np.inf
        if shares.failing is not None:
            reached = walk(shares.failing[::-1], n, 1.0 - limits.min_pass_rate, delta)
            pass_level = np.inf if reached == last else (-np.inf if reached < 0 else sweep.levels[last - reached])
    return Certificate(
        tuple(classes),
        float(pass_level),
        _from_cheapest(shares.escalated, limits.max_escalation, n, delta, sweep),
        _from_cheapest(shares.slow, None if limits.p95_task_s is None else P95_SLOW_SHARE, n, delta, sweep),
        n,
        audit_level(data, levels),
    )


def _from_cheapest(share: Floats | None, limit: float | None, n: float, delta: float, sweep: Sweep) -> float:
    """The smallest level reached from all-cheapest; -inf without a limit, +inf where even the start fails."""
    if limit is None:
        return -np.inf
    if share is None:
        return np.inf
    reached = walk(share, n, limit, delta)
    if reached < 0:
        return np.inf
    return -np.inf if reached == len(sweep) - 1 else float(sweep.levels[reached])


def within(sweep: Sweep, certificate: Certificate) -> NDArray[np.bool_]:
    """(m + 1,) which candidates the certificate allows."""
    allowed = sweep.levels <= certificate.highest
    if certificate.highest == np.inf:
        allowed[:] = True
    return np.asarray(allowed & (sweep.levels >= certificate.lowest))
