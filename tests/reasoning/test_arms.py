"""Every figure of an arm against an oracle in plain loops."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evalkit.reasoning.arms import arm_figures, p95_upper
from evalkit.reasoning.data import LadderData, Settings
from evalkit.reasoning.tasks import failed_in, independent_tasks, task_figures
from tests.reasoning.ladders import ladder_of, random_ladder


def figures(data: LadderData, arm: int = 0, **settings: Any) -> Any:
    return arm_figures(data, task_figures(data), Settings(**settings), arm)


@given(st.integers(0, 500))
def test_rates_tokens_and_risk_are_those_of_plain_loops(seed: int) -> None:
    data = random_ladder(seed, tasks=12)
    for arm in range(data.a):
        seen = figures(data, arm)
        passed = answered = weight = 0.0
        failing = {0: [0, 0], 1: [0, 0]}
        known_sum = known_weight = 0.0
        missing = 0
        for t in range(data.n):
            runs = [s for s in range(3) if data.sampled[t, arm, s]]
            w = float(data.weight[t])
            weight += w
            if runs:
                passed += w * sum(bool(data.passed[t, arm, s]) for s in runs) / len(runs)
                answered += w * sum(bool(data.answered[t, arm, s]) for s in runs) / len(runs)
            failed = not runs or any(not data.passed[t, arm, s] for s in runs)
            failing[int(data.risk[t])][0] += 1
            failing[int(data.risk[t])][1] += failed
            known = [float(data.billed_output_tokens[t, arm, s]) for s in runs]
            missing += sum(math.isnan(v) for v in known)
            known = [100 + v for v in known if not math.isnan(v)]
            if known:
                known_sum += w * sum(known) / len(known)
                known_weight += w
        assert seen.pass_rate_lower == pytest.approx(passed / weight)
        assert seen.pass_rate == pytest.approx(passed / answered)
        assert seen.pass_rate_upper == pytest.approx((passed + weight - answered) / weight)
        assert [(r.tasks, r.failed) for r in seen.risk] == [tuple(failing[0]), tuple(failing[1])]
        assert seen.billed.missing == missing
        assert seen.billed.per_request == pytest.approx(known_sum / known_weight)
        assert seen.pass_rate_lower <= seen.pass_rate <= seen.pass_rate_upper


def test_a_task_fails_its_class_where_any_run_fails() -> None:
    data = ladder_of([[[True, True, False]], [[True, True, True]], [[False, False, False]]])
    seen = figures(data)
    assert (seen.risk[0].tasks, seen.risk[0].failed) == (3, 2)
    assert seen.pass_rate_lower == pytest.approx((2 / 3 + 1 + 0) / 3)
    assert seen.risk[0].upper_bound == pytest.approx(
        stats.binomtest(2, 3, alternative="less").proportion_ci(0.95).high
    )


def test_the_interval_is_that_of_the_task_means() -> None:
    rng = np.random.default_rng(1)
    passed = rng.random((30, 1, 5)) < rng.random((30, 1, 1))
    seen = figures(ladder_of(passed))
    means = passed.mean(axis=2)[:, 0]
    half = stats.t.ppf(0.975, 29) * means.std(ddof=1) / math.sqrt(30)
    assert seen.interval == pytest.approx((means.mean() - half, means.mean() + half))
    assert seen.interval_method == "t over task means"


def test_single_runs_show_the_wilson_interval() -> None:
    seen = figures(ladder_of(np.arange(20)[:, None] < 15))
    ends = stats.binomtest(15, 20).proportion_ci(0.95, "wilson")
    assert seen.interval == pytest.approx((ends.low, ends.high))


def test_a_perfect_arm_is_not_perfectly_known() -> None:
    seen = figures(ladder_of(np.ones((20, 1, 3))))
    assert seen.interval is not None
    assert seen.interval[0] == pytest.approx(stats.binomtest(20, 20).proportion_ci(0.95, "wilson").low)


def test_one_unknown_cost_makes_the_cost_unknown_with_its_count() -> None:
    data = random_ladder(3, sampled=np.ones((40, 3, 3), dtype=bool))
    assert figures(data, 1).cost_unknown == 0
    data.cost_usd[4, 1, 2] = np.nan
    seen = figures(data, 1)
    assert (seen.cost_usd, seen.cost_interval, seen.cost_unknown) == (None, None, 1)
    assert figures(data, 0).cost_usd is not None


def test_rows_without_usage_are_counted_and_never_zero() -> None:
    tokens = np.full((3, 1, 2), np.nan)
    tokens[0, 0] = [100, 300]
    tokens[1, 0, 0] = 500
    seen = figures(ladder_of(np.ones((3, 1, 2)), billed_output_tokens=tokens, reasoning_tokens=tokens * np.nan))
    assert seen.billed.per_request == pytest.approx((100 + 200 + 100 + 500) / 2)
    assert seen.billed.missing == 3
    assert (seen.reasoning.per_request, seen.reasoning.missing) == (None, 6)


def test_p95_is_nearest_rank_over_the_answered() -> None:
    seconds = np.arange(10.0, 210.0, 10.0)[:, None, None]
    answered = np.ones((20, 1, 1), dtype=bool)
    seen = figures(ladder_of(np.ones((20, 1)), task_s=seconds, answered=answered))
    assert (seen.p95.value, seen.p95.n, seen.p95.upper) == (190.0, 20, None)
    answered[19] = False
    seen = figures(ladder_of(np.ones((20, 1)) * answered[:, :, 0], task_s=seconds, answered=answered))
    assert (seen.p95.value, seen.p95.n, seen.p95.unanswered) == (190.0, 19, 1)
    seconds[0] = np.nan
    assert figures(ladder_of(np.ones((20, 1)), task_s=seconds)).p95.value is None


@pytest.mark.parametrize(("n", "rank"), [(58, None), (59, 59), (93, 92)])
def test_the_bound_of_p95_is_an_order_statistic(n: int, rank: int | None) -> None:
    data = ladder_of(np.ones((n, 1)), task_s=np.arange(1.0, n + 1)[:, None, None])
    assert p95_upper(data, 0, 0.95) == (None if rank is None else float(rank))


def test_an_unanswered_run_never_ends() -> None:
    answered = np.ones((59, 1, 1), dtype=bool)
    answered[0] = False
    data = ladder_of(answered[:, :, 0], answered=answered)
    assert p95_upper(data, 0, 0.95) is None


def test_groups_count_by_their_worst_task() -> None:
    passed = np.ones((12, 1), dtype=bool)
    passed[[0, 1, 4]] = False
    data = ladder_of(passed, group=np.repeat(np.arange(4), 3))
    seen = figures(data)
    assert (seen.risk[0].failed, seen.risk[0].k, seen.risk[0].n, seen.risk[0].units) == (3, 2.0, 4.0, "groups")
    assert independent_tasks(data) == 4


def test_weights_that_vary_make_n_effective() -> None:
    weight = np.array([4.0] * 5 + [1.0] * 20) * 25 / 40
    passed = np.ones((25, 1), dtype=bool)
    passed[0] = False
    seen = figures(ladder_of(passed, weight=weight))
    assert seen.risk[0].n == pytest.approx(10)
    assert seen.risk[0].rate == pytest.approx(0.1)


def test_an_arm_that_answers_nothing_has_no_rate_but_bounds() -> None:
    nothing = np.zeros((8, 1, 1), dtype=bool)
    seen = figures(ladder_of(nothing, answered=nothing))
    assert (seen.pass_rate, seen.pass_rate_lower, seen.pass_rate_upper) == (None, 0.0, 1.0)
    assert seen.p95.value is None


def test_failures_are_compared_over_as_many_runs() -> None:
    passed = np.array([[[True, True, True], [True, False, True]], [[True, True, True], [True, True, True]]])
    sampled = np.ones_like(passed)
    data = ladder_of(passed, sampled=sampled)
    assert failed_in(data, 1, np.array([1, 1])).tolist() == [False, False]
    assert failed_in(data, 1, np.array([2, 2])).tolist() == [True, False]
    sampled[0, 1, 0] = False
    assert failed_in(data, 1, np.array([1, 1])).tolist() == [True, False]
