"""Populations of routing studies whose truth is known, so that a wrong certificate can be told from a right one.

An item's demand is its place in the population, uniform between 0 and 1 unless said otherwise, so that every true
rate at a threshold is a formula. The limits lie on the edge: just above the bound of a whole number of failures,
which is where a certificate is used up in full and a bound that is a little too small shows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evalkit.routing.data import AuditCounts, ClassLimit, LabelAudit, Limits, RoutingData, Settings
from evalkit.routing.path import direction_mask
from evalkit.statistics.bounds import upper_bound

__all__ = ["DELTA", "SETTINGS", "Setting"]

DELTA = 0.05
Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator], RoutingData]
Truth = Callable[[tuple[float, ...]], bool]


@dataclass(frozen=True)
class Setting:
    """One kind of study. draw: a random sample; broken: whether user thresholds truly break a limit; allowed: the
    share of studies in which they may."""

    name: str
    n: int
    settings: Settings
    draw: Draw
    broken: Truth
    allowed: float = DELTA


def edge(k: int, n: float) -> float:
    """The least limit that k failures out of n certify."""
    bound = upper_bound(k, n, 1 - DELTA)
    assert bound is not None
    return bound * (1 + 1e-9)


def failures_for(n: float, limit: float) -> int:
    """About how many failures out of n certify `limit`."""
    k = 0
    while edge(k + 1, n) <= limit:
        k += 1
    return k


COST = np.array([0.001, 0.020])
COST3 = np.array([0.001, 0.005, 0.020])


def study(
    rng: np.random.Generator, demand: Floats, required: NDArray[np.int8], cost: Floats = COST, **other: object
) -> RoutingData:
    """Items in random order; costs differ from item to item."""
    n, k = len(required), len(cost)
    values: dict[str, object] = {
        "tiers": ("cheap", "mid", "strong")[:: 2 if k == 2 else 1],
        "risk_classes": ("critical",),
        "required": required,
        "risk": np.zeros(n, dtype=np.int16),
        "weight": np.ones(n),
        "demand": demand,
        "tier_cost_usd": cost * rng.uniform(0.8, 1.2, (n, 1)),
    }
    return RoutingData(**(values | other))  # type: ignore[arg-type]


def rules(*limits: float | None, **other: object) -> Settings:
    """Losses of 0 pull the selection towards the cheap tier, where the limits on safety end it."""
    return Settings(classes=tuple(ClassLimit(0.0, x) for x in limits), **other)  # type: ignore[arg-type]


def one_class(n: int, share: float = 0.6, policy: str = "direct") -> Setting:
    """A fixed number of needs at uniform demands: the true rate at t is t."""
    needs = int(share * n)
    limit = edge(failures_for(needs, 0.03), needs)
    required = np.repeat([1, 0], [needs, n - needs]).astype(np.int8)

    def draw(rng: np.random.Generator) -> RoutingData:
        demand = np.where(required == 1, rng.random(n), rng.random(n) ** 2)
        return study(rng, demand, required)

    name = "one class" if policy == "direct" else f"one class, {policy}"
    return Setting(name, n, rules(limit, policy=policy, router_cost_usd=1e-4), draw, lambda t: t[0] > limit)


def mirrored(n: int) -> Setting:
    """Scores that mean "cheap is enough", up iff score < t; 10 % of the needs have none and go up always."""
    base = one_class(n)

    def draw(rng: np.random.Generator) -> RoutingData:
        data = base.draw(rng)
        assert data.demand is not None
        return replace(data, demand=np.where(rng.random(n) < 0.1, np.inf, data.demand))

    limit = base.settings.classes[0].limit
    assert limit is not None
    # A user's threshold t is on the score -d: needs are below it with probability .9 times that of d < -t.
    return Setting(
        "higher means cheap is enough, missing scores go up",
        n,
        replace(base.settings, direction_is_up=False),
        draw,
        lambda t: 0.9 * min(1.0, -t[0]) > limit,
    )


def three_classes(n: int, alike: bool) -> Setting:
    """Three classes; alike: all reach their limit at the same threshold; else the first long before the others."""
    sizes = [int(n * s) for s in (0.3, 0.2, 0.2)]
    limits = [edge(failures_for(m, x), m) for m, x in zip(sizes, (0.06, 0.08, 0.10), strict=True)]
    power = np.array([math.log(x) / math.log(0.3) for x in limits] if alike else [1.0, 4.0, 4.0])
    classes = np.repeat([0, 1, 2, 2], [*sizes, n - sum(sizes)]).astype(np.int16)
    required = np.repeat([1, 0], [sum(sizes), n - sum(sizes)]).astype(np.int8)

    def draw(rng: np.random.Generator) -> RoutingData:
        demand = rng.random(n) ** (1 / power[classes])  # of class r: P(d < t) = t ** power
        return study(rng, demand, required, risk=classes, risk_classes=("a", "b", "c"))

    def broken(t: tuple[float, ...]) -> bool:
        return any(min(max(t[0], 0.0), 1.0) ** p > x for p, x in zip(power, limits, strict=True))

    return Setting("three classes, " + ("alike" if alike else "one binds"), n, rules(*limits), draw, broken)


def three_tiers(n: int, per_tier: bool = False) -> Setting:
    """Needs of the mid and of the strongest tier, one certificate along one path over two thresholds."""
    mid, top = int(0.4 * n), int(0.3 * n)
    share = mid / (mid + top)
    required = np.repeat([1, 2, 0], [mid, top, n - mid - top]).astype(np.int8)
    certifying = 0.6 * (mid + top)
    limit = edge(failures_for(certifying, 0.05), certifying)

    def draw(rng: np.random.Generator) -> RoutingData:
        demand = rng.random((n, 2)) if per_tier else rng.random(n)
        mask = direction_mask([str(x) for x in rng.integers(0, 2**62, n)], 1)
        return study(rng, demand, required, COST3, direction=mask)

    def broken(t: tuple[float, ...]) -> bool:
        first, second = (min(max(x, 0.0), 1.0) for x in t)
        # Of the items that need the strongest tier: below either threshold.
        below = 1 - (1 - first) * (1 - second) if per_tier else max(first, second)
        return share * first + (1 - share) * below > limit

    policy = "cascade" if per_tier else "direct"
    name = "three tiers, a score a tier, cascade" if per_tier else "three tiers"
    return Setting(name, n, rules(limit, policy=policy), draw, broken)


def ties(n: int) -> Setting:
    """Ten scores. The share of needs at the lowest is 1 % above the limit, so the next threshold breaks it."""
    needs = int(0.6 * n)
    limit = edge(failures_for(needs, 0.04), needs)
    lowest = 1.01 * limit
    required = np.repeat([1, 0], [needs, n - needs]).astype(np.int8)

    def draw(rng: np.random.Generator) -> RoutingData:
        demand = rng.integers(1, 10, n) / 10
        demand[rng.random(n) < np.where(required == 1, lowest, 0.3)] = 0.0
        return study(rng, demand, required)

    return Setting("ten scores only", n, rules(limit), draw, lambda t: t[0] > 0)


def unsolvable(n: int) -> Setting:
    """A quarter of the items pass nowhere, at the lowest demands: they are neither needs nor under-routed."""
    lost, needs = int(0.25 * n), int(0.5 * n)
    limit = edge(failures_for(needs, 0.05), needs)
    required = np.repeat([2, 1, 0], [lost, needs, n - lost - needs]).astype(np.int8)

    def draw(rng: np.random.Generator) -> RoutingData:
        return study(rng, np.where(required == 2, rng.random(n) / 10, rng.random(n)), required)

    return Setting("a quarter unsolvable", n, rules(limit), draw, lambda t: t[0] > limit)


def uneven_weights(n: int) -> Setting:
    """The common kind stands for 80 % of the traffic and half of the needs, and only it is ever below 1."""
    half = n // 2
    n_f = half + half / 4
    limit = edge(failures_for(n_f, 0.05), n_f)
    weight = np.repeat([1.6, 0.4], [half, half])
    required = np.ones(2 * half, dtype=np.int8)

    def draw(rng: np.random.Generator) -> RoutingData:
        demand = np.concatenate([rng.random(half), 1 + rng.random(half)])
        return study(rng, demand, required, weight=weight)

    return Setting("weights of 4 : 1 within the class", n, rules(limit), draw, lambda t: 0.8 * t[0] > limit)


def conversations(n: int) -> Setting:
    """Up to five turns of like demand; the limit is on the share of conversations with an under-routed turn."""
    size = np.resize([1, 2, 3, 4, 5, 5], n)
    size = size[: int(np.searchsorted(np.cumsum(size), n)) + 1]
    count = len(size)
    limit = edge(failures_for(count, 0.06), count)
    group = np.repeat(np.arange(count), size)
    first = np.concatenate([[True], np.diff(group) > 0])

    def draw(rng: np.random.Generator) -> RoutingData:
        # The lowest turn of a conversation is uniform; its others lie a little above it.
        demand = rng.random(count)[group] + np.where(first, 0.0, 0.1 * rng.random(len(group)))
        return study(rng, demand, np.ones(len(group), dtype=np.int8), group=group)

    return Setting("conversations, by their worst turn", len(group), rules(limit), draw, lambda t: t[0] > limit)


def failing(t: float) -> float:
    """The true share of failures: the cheap tier fails at demand u with probability u, the strong one with .02."""
    t = min(max(t, 0.0), 1.0)
    return t * t / 2 + 0.02 * (1 - t)


def quality(n: int, samples: int = 1, turns: int = 1) -> Setting:
    """A limit on the pass rate alone. The samples of an item, and the turns of a conversation, fail together."""
    units = n // turns
    limit = edge(failures_for(units, 0.10), units)
    group = np.repeat(np.arange(units), turns)

    def draw(rng: np.random.Generator) -> RoutingData:
        demand = rng.random(units)
        bad = np.column_stack([rng.random(units) < demand, rng.random(units) < 0.02]).astype(np.float64)
        if samples > 1:  # in three items of ten one sample in `samples` differs
            flip = (rng.random(units) < 0.3)[:, None] & (rng.random((units, 2)) < 0.5)
            fix = (rng.random(units) < 0.3)[:, None] & ~flip & (bad > 0)
            bad = np.where(fix, 1 - 1 / samples, bad)
        required = (rng.random(units) < demand).astype(np.int8)
        passed = 1.0 - bad
        return study(
            rng,
            demand[group],
            required[group],
            passed=passed[group],
            answered=np.ones((len(group), 2)),
            group=group if turns > 1 else None,
        )

    less = 1.0 if samples == 1 else 1 - 0.3 * 0.85 / samples  # what the differing samples take off every failure
    name = "pass rate"
    name += f", {samples} samples an item" if samples > 1 else ""
    name += f", conversations of {turns} turns" if turns > 1 else ""
    chosen = rules(None, limits=Limits(min_pass_rate=1 - limit))
    return Setting(name, n, chosen, draw, lambda t: less * failing(t[0]) > limit)


def all_limits(n: int, towards: str) -> Setting:
    """Three classes, pass rate, escalation and p95 together; the expected total pulls to one side or the other."""
    sizes = [int(n * 0.15)] * 3
    power = np.array([9.0, 10.0, 11.0])
    ends = (0.75, 0.80, 0.85)  # where each class reaches its limit: the first binds
    limits = [edge(failures_for(m, end**p), m) for m, end, p in zip(sizes, ends, power, strict=True)]
    classes = np.repeat([0, 1, 2, 2], [*sizes, n - sum(sizes)]).astype(np.int16)
    needs = np.arange(n) < sum(sizes)
    powers = (*power, 1.0)  # a demand of class r is below t with probability t ** power
    exponent = np.where(needs, power[classes], 1.0)
    share = np.array([*sizes, n - sum(sizes)]) / n
    slow_cheap, slow_strong = 0.01, 0.055

    def kept(t: float) -> float:
        """Share of requests at the cheap tier."""
        return float(sum(s * t**p for s, p in zip(share, powers, strict=True)))

    def failing_at(t: float) -> float:
        """The cheap tier fails at demand u with probability u / 2, the strong one with .02."""
        wrong = sum(s * p / (p + 1) * t ** (p + 1) / 2 for s, p in zip(share, powers, strict=True))
        return float(wrong) + 0.02 * (1 - kept(t))

    fail_limit = edge(failures_for(n, failing_at(0.8)), n)
    up_limit = edge(failures_for(n, 1 - kept(0.6)), n)

    def draw(rng: np.random.Generator) -> RoutingData:
        demand = rng.random(n) ** (1 / exponent)
        passed = np.column_stack([rng.random(n) > demand / 2, rng.random(n) > 0.02]).astype(np.float64)
        slow = np.column_stack([rng.random(n) < slow_cheap, rng.random(n) < slow_strong])
        return study(
            rng,
            demand,
            needs.astype(np.int8),
            COST if towards == "cheap" else COST[::-1],  # what costs least is sought
            risk=classes,
            risk_classes=("a", "b", "c"),
            passed=passed,
            answered=np.ones((n, 2)),
            task_s=np.where(slow, 20.0, 1.0)[:, :, None],
            replied=np.ones((n, 2, 1), dtype=bool),
        )

    def broken(thresholds: tuple[float, ...]) -> bool:
        t = min(max(thresholds[0], 0.0), 1.0)
        cheap = kept(t)
        return (
            any(t**p > x for p, x in zip(power, limits, strict=True))
            or failing_at(t) > fail_limit
            or 1 - cheap > up_limit
            or slow_cheap * cheap + slow_strong * (1 - cheap) > 0.05
        )

    chosen = rules(*limits, limits=Limits(min_pass_rate=1 - fail_limit, max_escalation=up_limit, p95_task_s=8.0))
    return Setting(f"all limits at once, towards the {towards} tier", n, chosen, draw, broken, 2 * DELTA)


def audited(n: int, *, false_needs: bool = False) -> Setting:
    """3 % of the needs have the lowest scores and are labelled cheap; half of the cheap labels are audited. With
    `false_needs` a fifth of the labelled needs are none and go up always; 500 of them are audited too. The limit
    is on the true rate; the naive choice believes what the audit saw."""
    limit, missed_share = 0.08, 0.03

    def draw(rng: np.random.Generator) -> RoutingData:
        need = rng.random(n) < 0.4
        missed = need & (rng.random(n) < missed_share)
        false = ~need & (rng.random(n) < (1 / 6 if false_needs else 0.0))
        labelled = (need & ~missed) | false
        demand = np.where(need, rng.random(n), rng.random(n) ** 2)
        demand[missed] = -rng.random(int(missed.sum()))
        demand[false] = 2.0
        cheap, needs = np.flatnonzero(~labelled), np.flatnonzero(labelled)
        drawn = rng.choice(cheap, len(cheap) // 2, replace=False)
        looked = rng.choice(needs, min(500, len(needs)) if false_needs else 0, replace=False)
        counts = AuditCounts(
            len(cheap),
            len(drawn),
            int(missed[drawn].sum()),
            1.0,
            len(needs),
            len(looked),
            int(false[looked].sum()),
        )
        audit = LabelAudit((counts,), np.zeros(n, dtype=np.int8))
        return study(rng, demand, labelled.astype(np.int8), audit=audit)

    def broken(thresholds: tuple[float, ...]) -> bool:
        t = min(max(thresholds[0], 0.0), 1.0)
        return missed_share * (thresholds[0] > -1.0) + (1 - missed_share) * t > limit

    name = "needs labelled cheap" + (" and cheap as needs" if false_needs else "") + ", audited"
    return Setting(name, n, rules(limit), draw, broken)


SIZES = (300, 1000, 5000)
SETTINGS: tuple[Setting, ...] = (
    *(one_class(n) for n in SIZES),
    one_class(1000, policy="cascade"),
    mirrored(1000),
    *(three_classes(n, alike=False) for n in SIZES),
    three_classes(1000, alike=True),
    *(three_tiers(n) for n in SIZES),
    three_tiers(1000, per_tier=True),
    *(ties(n) for n in SIZES),
    *(conversations(n) for n in SIZES),
    *(unsolvable(n) for n in SIZES),
    *(uneven_weights(n) for n in SIZES),
    *(quality(n) for n in SIZES),
    quality(1000, samples=3),
    quality(3000, turns=3),
    *(all_limits(n, "cheap") for n in (1000, 5000)),
    *(all_limits(n, "strong") for n in (1000, 5000)),
    *(audited(n) for n in (1000, 5000, 20_000)),
    *(audited(n, false_needs=True) for n in (5000, 20_000)),
)
