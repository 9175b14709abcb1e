"""Steps of the ladder: goldens of cost-effectiveness analysis, flips, plateau, what a study can detect."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.reasoning.data import LadderData, Settings
from evalkit.reasoning.steps import acceptability_of, best_at, marginals_of, plateau_of, steps_of
from evalkit.reasoning.tasks import task_figures
from evalkit.statistics.bounds import upper_bound
from evalkit.statistics.cost_effectiveness import net_benefit
from tests.reasoning.ladders import ladder_of, random_ladder


def golden(*, extra: bool = False) -> LadderData:
    """100 tasks; arms pass the first 78, 86, 89 and 90 of them, at .002, .004, .012 and .036 USD."""
    arms = [(78, 0.002), (86, 0.004), (89, 0.012), (90, 0.036)]
    if extra:
        arms += [(85, 0.005), (87, 0.010), (89, 0.020)]
    passed = np.stack([np.arange(100) < q for q, _ in arms], axis=1)
    return ladder_of(passed, cost=[c for _, c in arms])


def marginals(data: LadderData) -> list[Any]:
    return marginals_of(data, task_figures(data), Settings())


def test_prices_of_a_point_along_the_frontier() -> None:
    seen = marginals(golden())
    assert [m.status.value for m in seen] == ["frontier"] * 4
    assert [m.against for m in seen] == [None, 0, 1, 2]
    # 3 and 1 of 100 tasks are no measurable gain at this n, so only the first step has a price
    assert seen[1].price.ratio == pytest.approx(0.00025)
    assert [m.price.reason for m in seen[2:]] == ["no measurable gain"] * 2


def test_prices_of_every_step_where_the_gain_is_measurable() -> None:
    passed = np.repeat(np.stack([np.arange(100) < q for q in (78, 86, 89, 90)], axis=1), 30, axis=0)
    seen = marginals(ladder_of(passed, cost=[0.002, 0.004, 0.012, 0.036]))
    assert [m.price.ratio for m in seen[1:]] == pytest.approx([0.00025, 0.0026666667, 0.024])
    assert all(m.price.lower < m.price.ratio < m.price.upper for m in seen[1:])


def test_dominated_arms_change_no_price() -> None:
    seen = marginals(golden(extra=True))
    assert [m.status.value for m in seen[4:]] == ["dominated", "extended_dominated", "dominated"]
    assert [m.price for m in seen[:4]] == [m.price for m in marginals(golden())]


@pytest.mark.parametrize(("value", "best"), [(0.0001, 0), (0.001, 1), (0.01, 2), (0.05, 3)])
def test_the_best_arm_depends_on_what_a_point_is_worth(value: float, best: int) -> None:
    data = golden()
    assert best_at(data, task_figures(data), 100 * value) == best


def test_an_arm_of_unknown_cost_is_on_no_frontier() -> None:
    data = golden()
    data.cost_usd[3, 1, 0] = np.nan
    seen = marginals(data)
    assert (seen[1].status, seen[1].price) == (None, None)
    assert seen[2].against == 0
    data.cost_usd[:] = np.nan
    assert [m.status for m in marginals(data)] == [None] * 4
    assert acceptability_of(data, task_figures(data), Settings()) is None


def test_flips_are_counted_both_ways() -> None:
    before = [[True, True], [False, False], [True, False], [True, True]]
    after = [[True, False], [True, True], [False, True], [True, True]]
    data = ladder_of(np.stack([before, after], axis=1))
    (step,) = steps_of(data, task_figures(data), Settings())
    assert (step.flips.gained, step.flips.broken) == (1, 1)
    assert (step.flips.gained_tasks, step.flips.broken_tasks) == (1.0, 0.5)
    assert step.gain.mean == pytest.approx(0.5 / 4)


def test_a_step_is_decided_at_its_share_of_the_error() -> None:
    data = golden()
    tasks = task_figures(data)
    steps = steps_of(data, tasks, Settings(value_usd=0.2))
    for step in steps:
        gains = tasks.passed[:, step.arm] - tasks.passed[:, step.before]
        costs = tasks.cost_usd[:, step.arm] - tasks.cost_usd[:, step.before]
        assert step.benefit == net_benefit(gains, costs, 0.2, 0.05 / 3, weights=np.ones(100))
    # by hand: .2 x (.08 - .0401) - .002 > 0; .2 x .03 - .008 < 0 but not surely; .2 x .0559 - .024 < 0
    assert [s.benefit.decision.value for s in steps if s.benefit] == [
        "worth it",
        "undecided at this n",
        "not worth it",
    ]


def test_without_a_value_or_a_cost_nothing_is_decided() -> None:
    data = golden()
    assert all(s.benefit is None for s in steps_of(data, task_figures(data), Settings()))
    data.cost_usd[0, 1, 0] = np.nan
    steps = steps_of(data, task_figures(data), Settings(value_usd=1.0))
    assert [s.benefit is None for s in steps] == [True, True, False]


@pytest.mark.parametrize(("tasks", "at"), [(299, 0), (298, None)])
def test_a_plateau_of_a_point_takes_about_three_hundred_tasks(tasks: int, at: int | None) -> None:
    data = ladder_of(np.ones((tasks, 2)))
    settings = Settings(smallest_gain=0.01)
    assert plateau_of(steps_of(data, task_figures(data), settings), settings) == at


def test_the_plateau_starts_behind_the_last_step_that_may_gain() -> None:
    passed = np.stack([np.arange(2000) < q for q in (1000, 1500, 1500, 1502)], axis=1)
    data = ladder_of(passed)
    settings = Settings(smallest_gain=0.01)
    steps = steps_of(data, task_figures(data), settings)
    assert plateau_of(steps, settings) == 1
    assert plateau_of(steps, Settings()) is None
    assert plateau_of(steps, Settings(smallest_gain=0.01, delta=None)) is None
    assert plateau_of([], settings) is None


def test_what_can_be_detected_is_printed_and_never_zero() -> None:
    data = ladder_of(np.ones((30, 2)))  # no differences at all: the t formula would say 0
    (step,) = steps_of(data, task_figures(data), Settings())
    assert step.detectable == pytest.approx(1 - 0.05 ** (1 / 30))
    rng = np.random.default_rng(4)
    data = ladder_of(rng.random((400, 2)) < 0.5)
    (step,) = steps_of(data, task_figures(data), Settings())
    # sd of a difference of two independent coins is .707: (1.65 + .84) x .707 / 20
    assert step.detectable == pytest.approx(2.49 * math.sqrt(0.5) / 20, rel=0.05)
    one = ladder_of(np.ones((1, 2)))
    assert steps_of(one, task_figures(one), Settings())[0].detectable is None


def test_the_curve_goes_from_the_cheapest_to_the_best() -> None:
    data = golden()
    curve = acceptability_of(data, task_figures(data), Settings(value_usd=0.2, seed=3))
    assert curve is not None
    assert curve.usd_per_point[0] == 0.0
    assert curve.shares[0] == (1.0, 0.0, 0.0, 0.0)
    assert curve.shares[-1][3] > 0.6
    assert all(sum(row) == pytest.approx(1) for row in curve.shares)
    again = acceptability_of(data, task_figures(data), Settings(value_usd=0.2, seed=3))
    assert again == curve


def test_equal_arms_give_a_curve_and_no_price() -> None:
    data = ladder_of(np.ones((9, 3)), cost=[0.0, 0.0, 0.0])
    assert acceptability_of(data, task_figures(data), Settings()) is not None
    assert [m.status.value for m in marginals(data)] == ["frontier", "dominated", "dominated"]


@given(st.integers(0, 300))
def test_no_price_is_negative_or_not_a_number(seed: int) -> None:
    data = random_ladder(seed, tasks=15, arms=4, sampled=np.ones((15, 4, 3), dtype=bool))
    tasks = task_figures(data)
    for m in marginals_of(data, tasks, Settings()):
        if m.price is not None and m.price.ratio is not None:
            assert m.price.reason is None
            assert 0 <= m.price.lower <= m.price.ratio <= m.price.upper < math.inf
    for step in steps_of(data, tasks, Settings(value_usd=0.1)):
        assert step.benefit is not None
        assert step.benefit.lower < step.benefit.value < step.benefit.upper
        assert 0 < step.detectable <= 1


def test_groups_reach_every_step() -> None:
    group = np.repeat(np.arange(10), 6)
    data = ladder_of(np.ones((60, 2)), group=group)
    (step,) = steps_of(data, task_figures(data), Settings())
    assert step.gain_bounds.upper == pytest.approx(upper_bound(0, 10))
    assert step.gain.df == 9
