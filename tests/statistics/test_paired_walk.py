"""The walk along a path against a baseline: its bound, and that no more than delta of studies are wrong."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evalkit.statistics.paired_walk import paired_loss_upper, steps_within

DELTA, MARGIN, ITEMS = 0.05, 0.02, 600


def exact(broken: int, gained: int, n: int, delta: float) -> float:
    """The bound from scipy's own exact intervals."""
    most = stats.binomtest(broken, n, alternative="less").proportion_ci(1 - delta / 2, "exact").high
    least = stats.binomtest(gained, n, alternative="greater").proportion_ci(1 - delta / 2, "exact").low
    return float(most - least)


@pytest.mark.parametrize(
    ("broken", "gained", "n"), [(0, 0, 300), (7, 0, 400), (5, 40, 400), (0, 400, 400), (9, 9, 9)]
)
def test_the_bound_is_clopper_pearson_on_both_sides(broken: int, gained: int, n: int) -> None:
    found = paired_loss_upper([broken / n], [gained / n], n, DELTA)[0]
    assert found == pytest.approx(exact(broken, gained, n, DELTA), abs=1e-12)


def test_the_least_number_of_items_for_a_point() -> None:
    """Nothing lost of n is at most 1 - (delta / 2) ** (1 / n): 368 items for a margin of one point, by hand."""
    assert 1 - (DELTA / 2) ** (1 / 368) <= 0.01 < 1 - (DELTA / 2) ** (1 / 366)
    assert steps_within([0.0], [0.0], 368, 0.01, DELTA) == 1
    assert steps_within([0.0], [0.0], 366, 0.01, DELTA) == 0


def test_parts_of_items_are_rounded_against_the_policy_and_rounding_errors_are_none() -> None:
    assert paired_loss_upper([2.5 / 100], [1.5 / 100], 100, DELTA)[0] == pytest.approx(exact(3, 1, 100, DELTA))
    third = 3 * (1 / 3 / 100 + 1e-17)
    assert paired_loss_upper([third], [third], 100, DELTA)[0] == pytest.approx(exact(1, 1, 100, DELTA))


def test_the_walk_ends_at_the_first_point_that_fails_whatever_comes_behind() -> None:
    broken = np.array([0.0, 0.001, 0.2, 0.0, 0.0])
    assert steps_within(broken, np.zeros(5), 1000, 0.01, DELTA) == 2
    assert steps_within(broken[:2], np.zeros(2), 1000, 0.01, DELTA) == 2
    assert steps_within(broken, np.zeros(5), 100, 0.01, DELTA) == 0


@given(st.integers(1, 400), st.floats(0, 1), st.floats(0, 1), st.floats(0.001, 0.4), st.floats(0.001, 0.4))
def test_a_smaller_error_rate_and_more_that_is_broken_never_help(
    n: int, broken: float, gained: float, delta: float, more: float
) -> None:
    base = paired_loss_upper(broken, gained, n, delta)
    assert base >= broken - gained - 1e-6 - 2 / n  # never far inside of what was seen
    assert paired_loss_upper(broken, gained, n, delta / 2) >= base - 1e-12
    assert paired_loss_upper(min(1.0, broken + more), gained, n, delta) >= base - 1e-12
    assert paired_loss_upper(broken, min(1.0, gained + more), n, delta) <= base + 1e-12


@pytest.mark.parametrize(
    ("broken", "gained", "n", "delta"),
    [
        ([1.5], [0], 10, 0.05),
        ([0], [-1], 10, 0.05),
        ([0], [0], 0, 0.05),
        ([0], [0], 10, 0.0),
        ([np.nan], [0], 9, 0.1),
    ],
)
def test_what_makes_no_sense_is_refused(broken: list[float], gained: list[float], n: float, delta: float) -> None:
    with pytest.raises(ValueError, match="parameter of `paired_loss_upper`"):
        paired_loss_upper(broken, gained, n, delta)


def loss_above(t: np.ndarray) -> np.ndarray:
    """True loss of sending everything below demand t to the cheap tier: demand is uniform, and an item of demand x
    is broken with chance .16 x and gained with .04, so the loss is the integral of .16 x - .04 from 0 to t."""
    return np.asarray(0.08 * t**2 - 0.04 * t)


def test_a_study_selects_a_point_beyond_the_margin_in_at_most_delta_of_studies() -> None:
    """Whoever wants the cheapest certified point takes the end of the walk. Taking the cheapest point that passes
    by itself, at the same level, is wrong far more often: that is why a pointwise bound is an estimate only."""
    rng = np.random.default_rng(20)
    studies, wrong, wrong_pointwise, reached = 1500, 0, 0, []
    for _ in range(studies):
        demand = np.sort(rng.random(ITEMS))
        draw = rng.random(ITEMS)
        broken, gained = draw < 0.16 * demand, draw > 0.96
        # From all-strongest (nobody below the threshold) to all-cheapest.
        lost = np.concatenate(([0], np.cumsum(broken))) / ITEMS
        won = np.concatenate(([0], np.cumsum(gained))) / ITEMS
        points = np.concatenate(([0.0], demand))
        steps = steps_within(lost, won, ITEMS, MARGIN, DELTA)
        if steps:
            reached.append(points[steps - 1])
            wrong += bool(loss_above(points[steps - 1]) > MARGIN)
        alone = np.flatnonzero(pointwise(lost, won) <= MARGIN)
        wrong_pointwise += bool(len(alone) and loss_above(points[alone[-1]]) > MARGIN)
    assert wrong / studies <= DELTA
    assert np.median(reached) > 0.3  # and it is not by certifying nothing
    assert wrong_pointwise / studies > DELTA


def pointwise(lost: np.ndarray, won: np.ndarray) -> np.ndarray:
    """The usual normal bound on a paired difference, at each point by itself."""
    loss = lost - won
    return np.asarray(loss + stats.norm.ppf(1 - DELTA) * np.sqrt((lost + won - loss**2) / ITEMS))
