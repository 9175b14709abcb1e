"""Steps of a ladder whose tasks have weights or hang together in groups."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from evalkit.statistics.bounds import upper_bound
from evalkit.statistics.cost_effectiveness import Decision, acceptability, cost_per_gain, net_benefit
from evalkit.statistics.paired import paired_difference

RNG = np.random.default_rng(5)
GAINS = RNG.choice([-1.0, 0.0, 0.0, 0.5, 1.0], 60)
COSTS = RNG.lognormal(-5, 1, 60)
WEIGHTS = RNG.choice([0.5, 1.0, 2.0], 60)
GROUPS = np.repeat(np.arange(20), 3)


def test_equal_weights_and_lone_groups_change_nothing() -> None:
    plain = net_benefit(GAINS, COSTS, 0.01, 0.05)
    same = net_benefit(GAINS, COSTS, 0.01, 0.05, weights=np.full(60, 7.0), groups=np.arange(60)[::-1])
    assert same.value == pytest.approx(plain.value)
    assert same.lower == pytest.approx(plain.lower)
    assert same.upper == pytest.approx(plain.upper)
    ratio, again = cost_per_gain(GAINS + 1, COSTS), cost_per_gain(GAINS + 1, COSTS, weights=np.full(60, 0.1))
    assert (again.ratio, again.lower, again.upper) == pytest.approx((ratio.ratio, ratio.lower, ratio.upper))


def test_the_t_side_is_that_of_the_weighted_clustered_mean() -> None:
    value, level = 0.01, 0.05
    seen = paired_difference(value * GAINS - COSTS, WEIGHTS, GROUPS, 1 - 2 * level)
    got = net_benefit(GAINS, COSTS, value, level, weights=WEIGHTS, groups=GROUPS)
    assert got.value == pytest.approx(seen.mean)
    assert got.lower is not None
    assert got.upper is not None
    assert got.lower <= seen.lower + 1e-12
    assert got.upper >= seen.upper - 1e-12


def test_the_exact_guard_counts_a_group_as_one_task() -> None:
    # 10 groups of 6 tasks, no task changes: 10 independent tasks, not 60, bound the gain.
    got = net_benefit(np.zeros(60), np.zeros(60), 1.0, 0.05, groups=np.repeat(np.arange(10), 6))
    assert got.upper == pytest.approx(1 - 0.05 ** (1 / 10))
    assert got.upper == pytest.approx(upper_bound(0, 10))


def test_the_exact_guard_counts_effective_tasks() -> None:
    weights = np.array([4.0] * 10 + [1.0] * 40)  # sum 80, largest 4: 20 effective tasks
    got = net_benefit(np.zeros(50), np.zeros(50), 1.0, 0.05, weights=weights)
    assert got.upper == pytest.approx(1 - 0.05 ** (1 / 20))


def test_tasks_without_weight_count_nowhere() -> None:
    weights = np.concatenate([WEIGHTS, np.zeros(5)])
    gains, costs = np.concatenate([GAINS, np.ones(5)]), np.concatenate([COSTS, np.ones(5)])
    more = net_benefit(gains, costs, 1, 0.05, weights=weights)
    assert more == net_benefit(GAINS, COSTS, 1, 0.05, weights=WEIGHTS)
    assert net_benefit([0.5], [0.0], 1, 0.05, weights=[0.0]).decision is Decision.UNDECIDED


def test_one_group_decides_nothing() -> None:
    got = net_benefit(np.ones(9), np.zeros(9), 1, 0.05, groups=np.zeros(9))
    assert (got.value, got.lower, got.decision) == (1.0, None, Decision.UNDECIDED)
    assert cost_per_gain(np.ones(9), np.ones(9), groups=np.zeros(9)).reason == "no measurable gain"


def test_groups_widen_the_set_of_the_ratio() -> None:
    rng = np.random.default_rng(1)
    shared = np.repeat(rng.normal(0, 0.2, 20), 3)
    gains, costs = 0.5 + shared, 0.1 + 0.1 * shared
    alone, grouped = cost_per_gain(gains, costs), cost_per_gain(gains, costs, groups=GROUPS)
    assert alone.ratio == pytest.approx(grouped.ratio)
    assert grouped.upper - grouped.lower > 1.5 * (alone.upper - alone.lower)  # type: ignore[operator]


def test_groups_and_weights_reach_the_acceptability_curve() -> None:
    gains = np.repeat([1.0, -1.0, 1.0], 20)  # three groups that move as one
    quality, cost = np.stack([np.zeros(60), gains], axis=1), np.zeros((60, 2))
    losers = (gains < 0).astype(float)
    assert acceptability(quality, cost, [1.0], weights=losers, seed=1).tolist() == [[1.0, 0.0]]
    alone = acceptability(quality, cost, [1.0], seed=1)[0, 1]
    grouped = acceptability(quality, cost, [1.0], groups=np.repeat([0, 1, 2], 20), seed=1)[0, 1]
    assert alone > 0.98  # a mean of 1/3 over sixty tasks is 2.7 standard errors from 0
    assert 0.5 < grouped < 0.9


def test_wrong_decisions_stay_rare_with_groups() -> None:
    rng, wrong, studies, level = np.random.default_rng(3), 0, 400, 0.05
    for _ in range(studies):
        gains = np.repeat(rng.choice([-1.0, 0.0, 1.0], 12, p=[0.3, 0.4, 0.3]), 4)
        got = net_benefit(gains, np.zeros(48), 1.0, level, groups=np.repeat(np.arange(12), 4))
        wrong += got.decision is not Decision.UNDECIDED
    assert wrong / studies <= 2 * level + 3 * math.sqrt(2 * level / studies)
    assert stats.binomtest(wrong, studies, 2 * level, alternative="greater").pvalue > 0.001


def test_bad_groups_and_weights_are_named() -> None:
    with pytest.raises(ValueError, match="The `groups` parameter of `net_benefit`"):
        net_benefit([0.0, 1.0], [0, 0], 1, 0.05, groups=[1])
    with pytest.raises(ValueError, match="The `weights` parameter of `cost_per_gain`"):
        cost_per_gain([0.0, 1.0], [0, 0], weights=[1, -1])
