"""Random small studies for hypothesis, the same study as the arrays that the code under test takes, and a study of
any size with a router that is worth its money."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import numpy as np
from hypothesis import strategies as st
from routing_oracle import UNANSWERED, Item, Row, Study

from evalkit.routing.data import ClassLimit, Limits, RoutingData, Settings, rescaled

STATUSES = ("ok", "ok", "wrong", "contract_fail", "truncated", "error")
# Few distinct values, so that ties are common; 0.1 and friends, so that sums round.
COSTS = (0.0, 0.001, 0.0021, 0.013, 0.02, 0.1)
SECONDS = (0.1, 0.25, 0.7, 1.3, 8.0, 8.1)
DEMANDS = (-2.5, -0.0, 0.0, 0.1, 0.3, 0.30000000000000004, 1.0, 5e-324)


@st.composite
def studies(
    draw: st.DrawFn,
    *,
    tiers: tuple[int, ...] = (2, 3, 4),
    most: int = 9,
    infinite: bool = True,
    unknown: bool = True,
    groups: bool = False,
    equal_weights: bool | None = None,
    per_tier: bool | None = None,
    policy: str | None = None,
) -> Study:
    """A small study. Hypothesis chooses its shape; one seed fills it, which is far quicker than a draw a cell."""
    k = draw(st.sampled_from(tiers))
    n = draw(st.integers(1, most))
    risks = draw(st.integers(1, 3))
    samples = draw(st.integers(1, 3))
    width = k - 1 if (draw(st.booleans()) if per_tier is None else per_tier) else 1
    equal = draw(st.booleans()) if equal_weights is None else equal_weights
    policy = policy or draw(st.sampled_from(("direct", "cascade")))
    gaps = unknown and draw(st.sampled_from((False, False, True)))
    costs_known = not unknown or draw(st.sampled_from((True, True, True, False)))
    verified = draw(st.booleans())
    random = Random(draw(st.integers(0, 2**32)))
    pick = random.choice
    # Unknown cells are rare when they occur, so that some figures need them and some do not.
    costs = (*COSTS * 4, None) if gaps else COSTS
    seconds = (*SECONDS * 4, None) if gaps else SECONDS
    demands = (*DEMANDS, math.inf, -math.inf) if infinite else DEMANDS
    weights = (1,) if equal else (0, 1, 2, 7)

    def item() -> Item:
        return Item(
            required=random.randint(0, k),
            risk=random.randrange(risks),
            weight=pick(weights),
            demand=tuple(pick(demands) for _ in range(width)),
            rows=tuple(
                tuple(Row(pick(STATUSES), pick(costs), pick(seconds)) for _ in range(samples)) for _ in range(k)
            ),
            verifier_usd=tuple(pick((0.0, 0.0003)) for _ in range(k - 1)) if verified else None,
            group=random.randrange(4) if groups else None,
            category=random.randint(-1, 2),
        )

    items = tuple(item() for _ in range(n))
    if all(i.weight == 0 for i in items):
        items = (replace(items[0], weight=1), *items[1:])
    return Study(
        tiers=k,
        items=items,
        loss_usd=tuple(pick((0.0, 0.05, 1.0, 40.0)) for _ in range(risks)),
        risk_weight=tuple(pick((0.0, 0.5, 1.0, 25.0)) for _ in range(risks)),
        policy=policy,
        router_usd=pick((0.0, 0.001)),
        router_s=pick((0.0, 0.02)),
        contract_usd=pick((0.0, 0.02)),
        slow_over_s=8.0,
        costs_known=costs_known,
    )


def arrays(study: Study) -> RoutingData:
    """The arrays of a study."""
    items, k = study.items, study.tiers
    samples = len(items[0].rows[0])

    def mean(statuses: set[str]) -> np.ndarray:
        return np.array([[sum(r.status in statuses for r in rows) / samples for rows in i.rows] for i in items])

    def number(value: float | None) -> float:
        return math.nan if value is None else value

    cost = np.array([[np.mean([number(r.cost_usd) for r in rows]) for rows in i.rows] for i in items])
    groups = [i.group for i in items]
    demand = np.array([i.demand for i in items])
    return RoutingData(
        tiers=tuple(f"tier{j}" for j in range(k)),
        risk_classes=tuple(f"risk{r}" for r in range(len(study.loss_usd))),
        required=np.array([i.required for i in items], dtype=np.int8),
        risk=np.array([i.risk for i in items], dtype=np.int16),
        weight=rescaled(np.array([float(i.weight) for i in items])),
        demand=demand[:, 0] if demand.shape[1] == 1 else demand,
        tier_cost_usd=cost if study.costs_known else None,
        passed=mean({"ok"}),
        answered=1.0 - mean(UNANSWERED),
        contract_failed=mean({"contract_fail"}),
        task_s=np.array([[[number(r.task_s) for r in rows] for rows in i.rows] for i in items]),
        replied=np.array([[[r.status not in UNANSWERED for r in rows] for rows in i.rows] for i in items]),
        verifier_usd=None if items[0].verifier_usd is None else np.array([i.verifier_usd for i in items]),
        group=None if groups[0] is None else np.array(groups, dtype=np.int64),
        category=np.array([i.category for i in items], dtype=np.int32),
    )


def settings_of(study: Study, **other: object) -> Settings:
    limits = Limits(p95_task_s=study.slow_over_s)
    values: dict[str, object] = {
        "classes": tuple(
            ClassLimit(loss, None, weight=weight)
            for loss, weight in zip(study.loss_usd, study.risk_weight, strict=True)
        ),
        "limits": limits,
        "policy": study.policy,
        "router_cost_usd": study.router_usd,
        "router_s": study.router_s,
        "contract_failure_cost_usd": study.contract_usd,
    }
    return Settings(**(values | other))  # type: ignore[arg-type]


def helpful(n: int = 2000, seed: int = 1, tiers: int = 2, **other: object) -> tuple[RoutingData, Settings]:
    """A router that is worth its money: demands of needs lie high, cheap passes what is not a need, and every
    limit has room. Two classes; approved as it stands."""
    rng = np.random.default_rng(seed)
    need = np.where(rng.random(n) < 0.4, rng.integers(1, tiers, n) if tiers > 2 else 1, 0)
    demand = rng.normal(1.3 * need, 0.5)
    tier = np.arange(tiers)
    passed = np.where(tier[None, :] >= need[:, None], rng.random((n, tiers)) < 0.97, rng.random((n, tiers)) < 0.2)
    names = ("cheap", "strong") if tiers == 2 else ("cheap", "mid", "strong")
    data = RoutingData(
        tiers=names,
        risk_classes=("low", "critical"),
        required=need.astype(np.int8),
        risk=(rng.random(n) < 0.5).astype(np.int16),
        weight=np.ones(n),
        demand=demand,
        tier_cost_usd=np.array([0.001, 0.006, 0.02][:: 2 if tiers == 2 else 1])
        * rng.uniform(0.5, 1.5, (n, tiers)),
        passed=passed.astype(np.float64),
        answered=np.ones((n, tiers)),
        contract_failed=np.zeros((n, tiers)),
        task_s=rng.uniform(0.5, 2.0, (n, tiers, 1)),
        replied=np.ones((n, tiers, 1), dtype=bool),
        category=rng.integers(0, 4, n).astype(np.int32),
        direction=rng.random(n) < 0.4 if tiers > 2 else None,
    )
    classes = (ClassLimit(0.05, 0.15, weight=0.05), ClassLimit(0.5, 0.08, weight=0.5))
    limits = Limits(min_pass_rate=0.8, max_cost_per_request_usd=0.018, p95_task_s=8.0, max_escalation=0.9)
    chosen = Settings(classes=classes, limits=limits, router_cost_usd=1e-4, router_s=0.02)
    return replace(data, **other), chosen  # type: ignore[arg-type]
