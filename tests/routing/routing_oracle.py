"""One operating point worked out by hand: plain loops over rows of outcomes, exact fractions, no numpy.

Written from the formulas of the design alone, so that it shares no thought with the code under test. All money is
per item first: an item costs the mean of its samples.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

UNANSWERED = {"truncated", "error"}


@dataclass(frozen=True)
class Row:
    """What one sample of one item did at one tier."""

    status: str  # ok | wrong | contract_fail | truncated | error
    cost_usd: float | None
    task_s: float | None


@dataclass(frozen=True)
class Item:
    required: int  # index of a tier; the number of tiers: unsolvable
    risk: int
    weight: int
    demand: tuple[float, ...]  # one for all boundaries, or one a boundary
    rows: tuple[tuple[Row, ...], ...]  # [tier][sample]
    verifier_usd: tuple[float, ...] | None = None
    group: int | None = None
    category: int = -1


@dataclass(frozen=True)
class Study:
    tiers: int
    items: tuple[Item, ...]
    loss_usd: tuple[float, ...]  # by risk class
    risk_weight: tuple[float, ...]
    policy: str = "direct"
    router_usd: float = 0.0
    router_s: float = 0.0
    contract_usd: float = 0.0
    slow_over_s: float | None = None
    costs_known: bool = True  # False: no costs at all
    limits: dict[str, float] = field(default_factory=dict)


def ends_at(item: Item, thresholds: Sequence[float], tiers: int) -> int:
    """Up one tier for each threshold in turn that the item's demand reaches; the first it misses ends it."""
    tier = 0
    for j in range(tiers - 1):
        demand = item.demand[0] if len(item.demand) == 1 else item.demand[j]
        # Production escalates what has no score always, or never, whatever the threshold.
        goes_up = demand > 0 if math.isinf(demand) else demand >= thresholds[j]
        if not goes_up:
            break
        tier += 1
    return tier


def path_cost(study: Study, item: Item, tier: int) -> Fraction | None:
    """Direct: the router and the tier. Cascade: every tier tried and every reply verified."""

    def of(at: int) -> Fraction | None:
        costs = [row.cost_usd for row in item.rows[at]]
        if any(c is None for c in costs):
            return None
        return sum((Fraction(c) for c in costs if c is not None), Fraction()) / len(costs)

    if study.policy == "direct":
        own = of(tier)
        return None if own is None else own + Fraction(study.router_usd)
    total = Fraction()
    for at in range(tier + 1):
        own = of(at)
        if own is None:
            return None
        total += own
        if at < study.tiers - 1:  # the top tier is not verified
            total += Fraction(study.router_usd if item.verifier_usd is None else item.verifier_usd[at])
    return total


def path_seconds(study: Study, item: Item, tier: int, sample: int) -> Fraction | None:
    if study.policy == "direct":
        own = item.rows[tier][sample].task_s
        return None if own is None else Fraction(own) + Fraction(study.router_s)
    total = Fraction()
    for at in range(tier + 1):
        own = item.rows[at][sample].task_s
        if own is None:
            return None
        total += Fraction(own)
        if at < study.tiers - 1:
            total += Fraction(study.router_s)
    return total


def weights(study: Study) -> list[Fraction]:
    total = sum(item.weight for item in study.items)
    return [Fraction(item.weight * len(study.items), total) for item in study.items]


def share(item: Item, tier: int, statuses: set[str]) -> Fraction:
    rows = item.rows[tier]
    return Fraction(sum(row.status in statuses for row in rows), len(rows))


def added(values: list[Fraction | None]) -> Fraction | None:
    """The sum; unknown as soon as one part is."""
    if any(v is None for v in values):
        return None
    return sum((v for v in values if v is not None), Fraction())


def p95(study: Study, tiers: Sequence[int]) -> dict[str, object]:
    entries: list[tuple[Fraction, Fraction]] = []
    unanswered = unknown = 0
    for item, tier, weight in zip(study.items, tiers, weights(study), strict=True):
        for sample, row in enumerate(item.rows[tier]):
            if row.status in UNANSWERED:
                unanswered += 1
                continue
            seconds = path_seconds(study, item, tier, sample)
            if seconds is None:
                unknown += 1
            else:
                entries.append((seconds, weight / len(item.rows[tier])))
    value = None
    total = sum((w for _, w in entries), Fraction())
    if entries and total > 0 and not unknown:
        running = Fraction()
        for seconds, weight in sorted(entries):
            running += weight
            if running >= Fraction(19, 20) * total:
                value = float(seconds)
                break
    return {"value": value, "n": len(entries), "unanswered": unanswered, "unknown": unknown}


def operating_point(study: Study, tiers: Sequence[int]) -> dict[str, object]:
    """Every figure of sending item i to `tiers[i]`."""
    k, items, w = study.tiers, study.items, weights(study)
    n = len(items)
    risks = len(study.loss_usd)
    confusion = [[0] * k for _ in range(k + 1)]
    confusion_weighted = [[Fraction()] * k for _ in range(k + 1)]
    by_risk = [[[0] * k for _ in range(k + 1)] for _ in range(risks)]
    cells: list[list[list[Fraction | None]]] = [[[] for _ in range(k)] for _ in range(k + 1)]
    under_loss = Fraction()
    cost: list[Fraction | None] = []
    excess: list[Fraction | None] = []
    saving: list[Fraction | None] = []
    saving_unsolvable: list[Fraction | None] = []
    contract = contract_count = Fraction()
    escalated = passed = answered = Fraction()
    over_count = 0
    for item, tier, weight in zip(items, tiers, w, strict=True):
        unsolvable = item.required == k
        needed = 0 if unsolvable else item.required
        confusion[item.required][tier] += 1
        confusion_weighted[item.required][tier] += weight
        by_risk[item.risk][item.required][tier] += 1
        under = not unsolvable and tier < item.required
        over = tier > needed
        over_count += over
        escalated += weight * (tier > 0)
        passed += weight * share(item, tier, {"ok"})
        answered += weight * (1 - share(item, tier, UNANSWERED))
        failing = share(item, tier, {"contract_fail"})
        contract_count += failing
        contract += weight * failing * Fraction(study.contract_usd)
        lost = weight * Fraction(study.loss_usd[item.risk]) if under else Fraction()
        under_loss += lost
        here = path_cost(study, item, tier) if study.costs_known else None
        cost.append(None if here is None else weight * here)
        wasted: Fraction | None = Fraction()
        if over:
            floor = path_cost(study, item, needed) if study.costs_known else None
            wasted = None if here is None or floor is None else weight * (here - floor)
        excess.append(wasted)
        cells[item.required][tier].append(None if wasted is None else lost + wasted)
        strongest = path_cost_alone(item, k - 1) if study.costs_known else None
        saved = None if strongest is None or here is None else weight * (strongest - here)
        saving.append(saved)
        if unsolvable:
            saving_unsolvable.append(saved)
    total_cost, total_excess = added(cost), added(excess)
    needs = [sum(1 for i in items if i.risk == r and 0 < i.required < k) for r in range(risks)]
    under_by_risk = [
        sum(1 for i, t in zip(items, tiers, strict=True) if i.risk == r and t < i.required < k)
        for r in range(risks)
    ]
    all_risk = sum(Fraction(study.risk_weight[i.risk]) for i in items if i.required < k)
    under_risk = sum(
        Fraction(study.risk_weight[i.risk]) for i, t in zip(items, tiers, strict=True) if t < i.required < k
    )
    solvable = sum(1 for i in items if i.required < k)
    right = sum(1 for i, t in zip(items, tiers, strict=True) if i.required == t)
    known = study.costs_known
    return {
        "escalation_rate": escalated / n,
        "under_route_count": sum(under_by_risk),
        "under_route_rate": ratio(sum(under_by_risk), sum(needs)),
        "risk_weighted_under_route": ratio(under_risk, all_risk),
        "unnecessary_escalation_count": over_count,
        "contract_failure_count": contract_count,
        "under_route_loss_usd": under_loss,
        "unnecessary_escalation_usd": total_excess if known else None,
        "contract_loss_usd": contract,
        "routing_loss_usd": None if total_excess is None or not known else under_loss + total_excess + contract,
        "expected_total_usd": None if total_cost is None else total_cost + under_loss + contract,
        "cost_usd_total": total_cost,
        "cost_usd_per_request": None if total_cost is None else total_cost / n,
        "saving_usd_vs_strongest": added(saving),
        "saving_on_unsolvable_usd": added(saving_unsolvable) if known else None,
        "pass_rate": ratio(passed, answered),
        "pass_rate_lower": passed / n,
        "pass_rate_upper": (passed + n - answered) / n,
        "p95_task": p95(study, tiers),
        "by_risk": [
            {
                "needs": needs[r],
                "under_route_count": under_by_risk[r],
                "under_route_rate": ratio(under_by_risk[r], needs[r]),
                "confusion": by_risk[r],
            }
            for r in range(risks)
        ],
        "confusion": confusion,
        "confusion_weighted": confusion_weighted,
        "confusion_loss_usd": [
            [None if not known and above(row, tier, k) else added(cells[row][tier]) for tier in range(k)]
            for row in range(k + 1)
        ],
        "accuracy": ratio(right, solvable),
    }


def above(required: int, tier: int, k: int) -> bool:
    return tier > (0 if required == k else required)


def path_cost_alone(item: Item, tier: int) -> Fraction | None:
    """A fixed arm: no router and no verifier."""
    costs = [row.cost_usd for row in item.rows[tier]]
    if any(c is None for c in costs):
        return None
    return sum((Fraction(c) for c in costs if c is not None), Fraction()) / len(costs)


def ratio(part: Fraction | int, whole: Fraction | int) -> Fraction | None:
    return None if whole == 0 else Fraction(part) / Fraction(whole)


def expected_total(study: Study, tiers: Sequence[int]) -> Fraction | None:
    value = operating_point(study, tiers)["expected_total_usd"]
    assert value is None or isinstance(value, Fraction)
    return value


def failing_share(study: Study, tiers: Sequence[int]) -> Fraction:
    """Requests whose final reply does not pass; failures of several samples round up where weights are equal."""
    w = weights(study)
    failing = sum(
        (weight * (1 - share(i, t, {"ok"})) for i, t, weight in zip(study.items, tiers, w, strict=True)),
        Fraction(),
    )
    return (Fraction(math.ceil(failing)) if len(set(w)) == 1 else failing) / len(w)


def slow_share(study: Study, tiers: Sequence[int]) -> Fraction:
    """Requests later than the limit, unanswered, or of unknown time."""
    assert study.slow_over_s is not None
    w = weights(study)
    total = Fraction()
    for item, tier, weight in zip(study.items, tiers, w, strict=True):
        late = 0
        for sample, row in enumerate(item.rows[tier]):
            seconds = path_seconds(study, item, tier, sample)
            late += row.status in UNANSWERED or seconds is None or float(seconds) > study.slow_over_s
        total += weight * Fraction(late, len(item.rows[tier]))
    return (Fraction(math.ceil(total)) if len(set(w)) == 1 else total) / len(w)


def under_share(study: Study, tiers: Sequence[int], risk: int) -> tuple[Fraction | None, list[Fraction]]:
    """(share of a class's units that are under-routed, weights of the units): items, or conversations by their
    worst turn."""
    units: dict[int, list[tuple[Fraction, bool]]] = {}
    w = weights(study)
    for place, (item, tier) in enumerate(zip(study.items, tiers, strict=True)):
        if item.risk == risk and 0 < item.required < study.tiers:
            key = place if item.group is None else item.group
            units.setdefault(key, []).append((w[place], tier < item.required))
    each = [(sum((x for x, _ in turns), Fraction()) / len(turns), any(u for _, u in turns))
            for turns in units.values()]  # fmt: skip
    whole = sum((x for x, _ in each), Fraction())
    if whole == 0:
        return None, [x for x, _ in each]
    return sum((x for x, u in each if u), Fraction()) / whole, [x for x, _ in each]
