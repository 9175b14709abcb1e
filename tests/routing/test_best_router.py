"""The best of several routers: the limit holds at a shared error rate, and would not at one that is not shared."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from evalkit.routing.analysis import RoutingResult, analyse
from evalkit.routing.data import ClassLimit, RoutingData, Settings
from evalkit.routing.routers import against_others, best_of
from evalkit.statistics.paired import mcnemar_exact


@pytest.fixture(scope="module")
def simulation(repo: Path) -> Iterator[ModuleType]:
    sys.path.insert(0, str(repo / "benchmarks"))
    try:
        import best_router

        yield best_router
    finally:
        sys.path.remove(str(repo / "benchmarks"))
        for name in ("best_router", "populations"):
            sys.modules.pop(name, None)


def test_the_best_of_ten_keeps_the_limit_only_at_a_shared_error_rate(simulation: ModuleType) -> None:
    place = next(i for i, s in enumerate(simulation.SETTINGS) if (s.n, s.routers) == (300, 10))
    (line,) = simulation.run(400, seed=1, places=[place], processes=1)
    assert line.counts.chosen == 400
    assert line.holds, simulation.table([line])
    allowed = 0.05 + 3 * math.sqrt(0.05 * 0.95 / 400)
    assert line.counts.unshared_broken / 400 > allowed, simulation.table([line])


def test_chunks_change_nothing(simulation: ModuleType) -> None:
    whole = simulation.simulate(1, 3, 0, 30)
    assert whole == simulation.simulate(1, 3, 0, 12) + simulation.simulate(1, 3, 12, 18)


def _data(demand: np.ndarray, required: np.ndarray, **more: object) -> RoutingData:
    n = len(required)
    passed = np.stack([required == 0, np.ones(n, dtype=bool)], axis=1).astype(np.float64)
    values: dict[str, object] = {
        "tiers": ("cheap", "strong"),
        "risk_classes": ("critical",),
        "required": required.astype(np.int8),
        "risk": np.zeros(n, dtype=np.int16),
        "weight": np.ones(n),
        "demand": demand,
        "tier_cost_usd": np.tile([0.001, 0.02], (n, 1)),
        "passed": passed,
        "answered": np.ones((n, 2)),
        "contract_failed": np.zeros((n, 2)),
        "replied": np.ones((n, 2, 1), dtype=bool),
    }
    return RoutingData(**(values | more))  # type: ignore[arg-type]


def _judged(demand: np.ndarray, required: np.ndarray, cost: float, chosen_from: int = 1) -> RoutingResult:
    settings = Settings(
        classes=(ClassLimit(1.0, 0.05),), delta=0.05 / 3, router_cost_usd=cost, chosen_from=chosen_from
    )
    return analyse(_data(demand, required), settings)


def test_an_approved_router_comes_before_a_cheaper_one_that_is_not() -> None:
    rng = np.random.default_rng(2)
    required = (np.arange(600) % 2).astype(np.int8)
    good = required + 0.1 * rng.random(600)
    free_noise = _judged(rng.random(600), required, cost=0.0)
    dear, cheap = _judged(good, required, cost=0.002), _judged(good, required, cost=0.001)
    assert free_noise.verdict.decision.value != "approve"
    assert best_of([free_noise, dear, cheap]) == 2
    assert best_of([dear, free_noise]) == 0
    assert best_of([cheap, cheap]) == 0


def test_comparisons_are_paired_and_hold_together() -> None:
    required = (np.arange(600) % 2).astype(np.int8)
    scores = required + 0.1 * np.random.default_rng(2).random(600)
    off = scores.copy()
    off[:30:2] = 2.0  # 15 easy items that the other router sends up
    ours, other = _judged(scores, required, 0.0), _judged(off, required, 0.0)
    rows = {row.what: row for row in against_others([ours, other, other], 0, 0.95) if row.against == 2}
    cost = rows["cost_usd"]
    assert cost.confidence == pytest.approx(0.975)
    assert cost.difference.mean == pytest.approx(-15 * 0.019 / 600)
    assert cost.difference.upper is not None
    assert cost.difference.upper < 0
    passes = rows["pass_rate"]
    assert (passes.gained, passes.lost, passes.p_value) == (0, 0, mcnemar_exact(0, 0))
    assert against_others([ours], 0, 0.95) == []


def test_the_best_of_many_has_to_separate_beyond_chance() -> None:
    """A score that separates at 95 % but not at 1 - .05 / 20 is approved alone, and not as one of twenty."""
    rng = np.random.default_rng(11)
    required = (np.arange(400) % 2).astype(np.int8)
    demand = rng.random(400) + 0.08 * required  # AUC .570 [.513, .624], and [.483, .653] as one of twenty
    alone, of_many = (_judged(demand, required, 0.0, chosen_from=m) for m in (1, 20))
    rules = [
        next(r for r in found.stop_rules if r.name == "router_not_shown_to_separate") for found in (alone, of_many)
    ]
    assert [rule.triggered for rule in rules] == [False, True]
    assert alone.separation == of_many.separation  # what is shown stays at the stated confidence
