"""Frontier, net benefit and ratios against printed values and their definitions."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from evalkit.statistics import cost_effectiveness as module
from evalkit.statistics.bounds import upper_bound
from evalkit.statistics.cost_effectiveness import (
    ArmStatus,
    CostPerGain,
    Decision,
    acceptability,
    best_arm,
    cost_per_gain,
    fieller,
    frontier,
    net_benefit,
    plateau,
)
from evalkit.statistics.routing_indices import aiq, apgr, call_share_for, gap_recovered

QUALITY, COST = [78, 86, 89, 90], [0.002, 0.004, 0.012, 0.036]
RATIOS = [None, 0.00025, 0.0026666667, 0.024]


@pytest.fixture(scope="module")
def golden(shared: Path) -> dict[str, Any]:
    return json.loads((shared / "golden" / "statistics.json").read_text(encoding="utf-8"))["5_icer"]


class TestFrontier:
    def test_printed_values(self) -> None:
        arms = frontier(QUALITY, COST)
        assert [arm.status for arm in arms] == [ArmStatus.FRONTIER] * 4
        assert arms[0].ratio is None
        assert [arm.ratio for arm in arms[1:]] == pytest.approx(RATIOS[1:], rel=1e-7)
        assert arms[3].ratio / arms[1].ratio == pytest.approx(96)

    def test_printed_dominated_arms(self) -> None:
        q, c = [78, 85, 86, 87, 89, 89, 90], [0.002, 0.005, 0.004, 0.010, 0.012, 0.020, 0.036]
        arms = frontier(q, c)
        off = {1: "dominated", 3: "extended_dominated", 5: "dominated"}
        assert [arm.status.value for arm in arms] == [off.get(i, "frontier") for i in range(7)]
        assert [arm.ratio for arm in arms if arm.ratio] == pytest.approx(RATIOS[1:], rel=1e-7)

    def test_golden_values(self, golden: dict[str, Any]) -> None:
        for name in ("example", "example_with_dominated"):
            q, c = golden[name].get("q", QUALITY), golden[name].get("c", COST)
            arms = frontier(q, c)
            assert [arm.status.value for arm in arms] == golden[name]["status"]
            assert [arm.ratio for arm in arms if arm.ratio is not None] == pytest.approx(golden[name]["icer"])

    ARMS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=9)

    @given(ARMS)
    def test_is_its_definition(self, arms: list[tuple[int, int]]) -> None:
        q, c = zip(*arms, strict=True)
        got = frontier(q, c)
        for i, arm in enumerate(got):
            beaten = any(
                q[j] >= q[i] and c[j] <= c[i] and ((q[j], c[j]) != (q[i], c[i]) or j < i)
                for j in range(len(arms)) if j != i
            )  # fmt: skip
            # Extended: below a mix of two others that are not dominated themselves.
            mixed = any(
                c[j] < c[i] < c[k] and q[j] < q[i] < q[k]
                and (q[i] - q[j]) * (c[k] - c[j]) < (q[k] - q[j]) * (c[i] - c[j])
                for j in range(len(arms)) for k in range(len(arms))
            )  # fmt: skip
            expected = "dominated" if beaten else "extended_dominated" if mixed else "frontier"
            assert arm.status.value == expected

    @given(ARMS)
    def test_ratios_rise_and_are_positive(self, arms: list[tuple[int, int]]) -> None:
        q, c = zip(*arms, strict=True)
        by_cost = sorted((c[i], arm.ratio) for i, arm in enumerate(frontier(q, c)) if arm.ratio is not None)
        ratios = [ratio for _, ratio in by_cost]
        assert all(ratio > 0 and math.isfinite(ratio) for ratio in ratios)
        assert ratios == sorted(ratios)

    def test_one_arm_and_none(self) -> None:
        assert frontier([], []) == ()
        assert [arm.status for arm in frontier([1], [2])] == [ArmStatus.FRONTIER]
        assert [arm.status.value for arm in frontier([1, 1], [2, 2])] == ["frontier", "dominated"]
        assert [arm.status.value for arm in frontier([0.3, 0.1 + 0.2], [1, 2])] == ["frontier", "dominated"]

    def test_refused(self) -> None:
        with pytest.raises(ValueError, match="The `cost` parameter of `frontier` must be one number per arm"):
            frontier([1, 2], [1])
        with pytest.raises(ValueError, match="The `quality` parameter of `frontier` must be finite"):
            frontier([math.nan], [1])


class TestBestArm:
    def test_printed_values(self) -> None:
        assert [QUALITY[best_arm(QUALITY, COST, value)] for value in (0.0001, 0.001, 0.01, 0.05)] == [
            78,
            86,
            89,
            90,
        ]

    def test_ties_go_to_the_cheaper(self) -> None:
        assert best_arm([2, 1], [0.2, 0.1], 0.1) == 1
        assert best_arm([1, 1], [0.1, 0.1], 5) == 0
        with pytest.raises(ValueError, match="The `value` parameter of `best_arm`"):
            best_arm([1], [1], -1)
        with pytest.raises(ValueError, match="The `quality` parameter of `best_arm`"):
            best_arm([], [], 1)


class TestNetBenefit:
    def test_by_hand(self) -> None:
        # 20 tasks: 6 gained, 2 broken, 12 unchanged; a step costs .001.
        gains = np.array([1.0] * 6 + [-1.0] * 2 + [0.0] * 12)
        costs = np.full(20, 0.001)
        got = net_benefit(gains, costs, value=0.1, level=0.05)
        assert got.value == pytest.approx(0.1 * 0.2 - 0.001)
        t_low = 0.019 - stats.t.ppf(0.95, 19) * (0.1 * gains).std(ddof=1) / math.sqrt(20)
        exact_low = 0.1 * (0.3 - stats.beta.ppf(0.95, 3, 18)) - 0.001
        exact_high = 0.1 * (stats.beta.ppf(0.95, 7, 14) - 0.1) - 0.001
        assert got.lower == pytest.approx(min(t_low, exact_low))
        assert got.upper >= exact_high - 1e-12
        assert got.decision is Decision.UNDECIDED

    def test_decisions(self) -> None:
        assert net_benefit([1.0] * 20, [0.001] * 20, 1.0, 0.05).decision is Decision.WORTH_IT
        assert net_benefit([0.0] * 20, [0.5] * 20, 1.0, 0.05).decision is Decision.NOT_WORTH_IT
        # No task changed: t says exactly 0 +- 0; twenty tasks do not show that.
        unchanged = net_benefit([0.0] * 20, [0.01] * 20, 1.0, 0.05)
        assert unchanged.decision is Decision.UNDECIDED
        assert unchanged.upper == pytest.approx(upper_bound(0, 20) - 0.01)

    def test_halves_do_not_round_up(self) -> None:
        # Ten gains of .1 are one, whatever their floating-point sum.
        got = net_benefit([0.1] * 10 + [0.0] * 40, [0.0] * 50, 1.0, 0.05)
        assert got.upper == pytest.approx(upper_bound(1, 50))

    def test_too_few_tasks(self) -> None:
        assert net_benefit([1.0], [0.0], 1.0, 0.05).decision is Decision.UNDECIDED
        assert net_benefit([1.0], [0.0], 1.0, 0.05).lower is None
        assert net_benefit([], [], 1.0, 0.05).value is None

    @given(st.lists(st.tuples(st.floats(-1, 1), st.floats(0, 0.1)), min_size=2, max_size=60), st.floats(0, 2))
    def test_bounds_hold_the_mean_and_the_t_interval(self, tasks: list[tuple[float, float]], value: float) -> None:
        gains, costs = (np.array(column) for column in zip(*tasks, strict=True))
        got = net_benefit(gains, costs, value, 0.05)
        benefit = value * gains - costs
        half = stats.t.ppf(0.95, gains.size - 1) * stats.sem(benefit)
        assert got.lower <= benefit.mean() - half + 1e-9
        assert got.upper >= benefit.mean() + half - 1e-9

    @pytest.mark.parametrize(("n", "printed"), [(20, 0.36), (30, 0.21), (50, 0.08)])
    def test_plateau_is_rarely_wrong_with_few_tasks(self, n: int, printed: float) -> None:
        # A true gain of 5 points: one task in twenty is gained. Calling it a plateau (below 1 point) is wrong.
        rng = np.random.default_rng(n)
        wrong = collapsed = 0
        for _ in range(1000):
            gains = (rng.random(n) < 0.05).astype(float)
            wrong += plateau([net_benefit(gains, np.zeros(n), 1.0, 0.05).upper], 0.01) == 0
            half = stats.t.ppf(0.95, n - 1) * gains.std(ddof=1) / math.sqrt(n)
            collapsed += gains.mean() + half < 0.01
        assert wrong == 0  # at least 299 tasks would be needed
        assert collapsed / 1000 == pytest.approx(printed, abs=0.05)  # what t alone does

    def test_a_step_worth_nothing_is_rarely_decided(self) -> None:
        # A gain of 10 points costs just what it is worth: either decision is wrong.
        rng = np.random.default_rng(4)
        decisions = [
            net_benefit((rng.random(40) < 0.10).astype(float), np.full(40, 0.1), 1.0, 0.05).decision
            for _ in range(2000)
        ]
        for decision in (Decision.WORTH_IT, Decision.NOT_WORTH_IT):
            assert decisions.count(decision) / 2000 <= 0.036 + 3 * math.sqrt(0.036 * 0.964 / 2000)

    def test_refused(self) -> None:
        with pytest.raises(
            ValueError, match=r"The `gains` parameter of `net_benefit` must be fractions .* Got 5.0"
        ):
            net_benefit([5.0, 0.0], [0, 0], 1, 0.05)
        with pytest.raises(ValueError, match="The `costs` parameter of `net_benefit`"):
            net_benefit([0.5], [0, 0], 1, 0.05)
        with pytest.raises(ValueError, match="The `level` parameter of `net_benefit`"):
            net_benefit([0.5], [0], 1, 0)


class TestPlateau:
    def test_first_arm_with_no_later_gain(self) -> None:
        assert plateau([0.2, 0.005, 0.008], 0.01) == 1
        assert plateau([0.001, 0.005, 0.008], 0.01) == 0
        assert plateau([0.001, 0.2, 0.008], 0.01) == 2

    def test_none(self) -> None:
        assert plateau([0.2, 0.3], 0.01) is None
        assert plateau([0.001, None], 0.01) is None
        assert plateau([0.01], 0.01) is None
        assert plateau([], 0.01) is None

    def test_one_point_needs_about_300_tasks(self) -> None:
        # 299 unchanged tasks bound the gain below 1 point; 298 do not.
        assert plateau([net_benefit([0.0] * 299, [0.0] * 299, 1.0, 0.05).upper], 0.01) == 0
        assert plateau([net_benefit([0.0] * 298, [0.0] * 298, 1.0, 0.05).upper], 0.01) is None


def twelve_tasks(entry: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Twelve tasks with the means, standard errors and correlation of a golden entry."""
    t = stats.t.ppf(0.975, 11)
    mean_q, mean_c = entry["dQ"][0], entry["dC"][0]
    var_q, var_c = ((entry[name][2] - entry[name][1]) / 2 / t for name in ("dQ", "dC"))
    benefit = (entry["INB(lam=0.001)"]["ci"][2] - entry["INB(lam=0.001)"]["ci"][1]) / 2 / t
    covariance = (1e-6 * var_q**2 + var_c**2 - benefit**2) / 2e-3
    target = np.array([[var_q**2, covariance], [covariance, var_c**2]]) * 12
    raw = np.random.default_rng(1).normal(size=(12, 2))
    raw -= raw.mean(0)
    raw = raw @ np.linalg.inv(np.linalg.cholesky(np.cov(raw.T))).T @ np.linalg.cholesky(target).T
    return raw[:, 0] + mean_q, raw[:, 1] + mean_c


class TestRatio:
    CLEAR = {  # noqa: RUF012
        "dC": [0.0017583333, 0.0014183732150208986, 0.002098293451645768],
        "dQ": [7.0833333333, 3.143684164345202, 11.022982502321465],
        "INB(lam=0.001)": {"ci": [0.005325, 0.0017105312595347955, 0.008939468740465204]},
    }

    def test_printed_fieller_set(self) -> None:
        got = cost_per_gain(*twelve_tasks(self.CLEAR))
        assert got.ratio == pytest.approx(0.00024823529, rel=1e-7)
        assert (got.lower, got.upper) == pytest.approx((0.00018815519, 0.00045645979), rel=1e-7)
        assert got.reason is None

    def test_golden_values(self, golden: dict[str, Any]) -> None:
        clear = golden["fieller_clear_gain"]
        got = cost_per_gain(*twelve_tasks(clear))
        assert [got.ratio, got.lower, got.upper] == pytest.approx(
            [clear["ratio"], *clear["fieller"][1:]], rel=1e-8
        )
        unclear = golden["fieller_no_measurable_gain"]
        gains, costs = twelve_tasks(unclear)
        assert cost_per_gain(gains, costs) == CostPerGain(None, None, None, "no measurable gain")
        matrix = np.cov(gains, costs) / 12
        got = fieller(gains.mean(), costs.mean(), matrix[0, 0], matrix[1, 1], matrix[0, 1], stats.t.ppf(0.975, 11))
        assert [got.kind, got.lower, got.upper] == ["outside", *map(pytest.approx, unclear["fieller"][1:])]

    @given(st.floats(-3, 3), st.floats(-3, 3), st.floats(0.01, 2), st.floats(0.01, 2), st.floats(-0.99, 0.99),
           st.floats(-5, 5))  # fmt: skip
    def test_fieller_is_the_set_where_the_test_does_not_reject(
        self, gain: float, cost: float, sd_gain: float, sd_cost: float, correlation: float, ratio: float
    ) -> None:
        covariance = correlation * sd_gain * sd_cost
        got = fieller(gain, cost, sd_gain**2, sd_cost**2, covariance, 1.96)
        distance = (cost - ratio * gain) ** 2 - 1.96**2 * (
            sd_cost**2 - 2 * ratio * covariance + ratio**2 * sd_gain**2
        )
        assume(abs(distance) > 1e-6)
        member = {
            "everything": True,
            "interval": got.lower is not None and got.lower <= ratio <= got.upper,
            "outside": got.lower is not None and not got.lower < ratio < got.upper,
        }[got.kind]
        assert member == (distance < 0)
        assert (got.kind == "interval") == (abs(gain) > 1.96 * sd_gain)

    def test_reasons(self) -> None:
        rng = np.random.default_rng(1)
        noise = 0.01 * rng.normal(size=10)
        assert cost_per_gain(noise - 0.5, noise + 1).reason == "measurable loss"
        assert cost_per_gain(noise + 0.5, noise - 1).reason == "better and cheaper"
        assert cost_per_gain([0.0] * 10, [1.0] * 10).reason == "no measurable gain"
        assert cost_per_gain([1.0], [1.0]).reason == "no measurable gain"
        assert cost_per_gain([0.5] * 10, [0.25] * 10) == CostPerGain(0.5, 0.5, 0.5, None)
        assert cost_per_gain([0.0, 7e-210], [0.0, 0.0]).reason == "no measurable gain"

    @pytest.mark.parametrize(("gain_unit", "cost_unit"), [(100.0, 1.0), (1e-9, 1e-9), (1.0, 1e-12)])
    def test_units_only_change_the_unit(self, gain_unit: float, cost_unit: float) -> None:
        gains, costs = twelve_tasks(self.CLEAR)
        one, other = cost_per_gain(gains, costs), cost_per_gain(gains * gain_unit, costs * cost_unit)
        factor = cost_unit / gain_unit
        assert (other.ratio, other.lower, other.upper) == pytest.approx(
            (one.ratio * factor, one.lower * factor, one.upper * factor)
        )

    @given(st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1)), min_size=0, max_size=12))
    def test_never_negative_or_not_a_number(self, tasks: list[tuple[float, float]]) -> None:
        got = cost_per_gain([d for d, _ in tasks], [c for _, c in tasks])
        if got.reason is None:
            assert got.ratio >= 0
            assert all(math.isfinite(x) for x in (got.ratio, got.lower, got.upper))
        else:
            assert (got.ratio, got.lower, got.upper) == (None, None, None)


class TestAcceptability:
    def test_rows_are_shares(self) -> None:
        rng = np.random.default_rng(1)
        quality, cost = rng.random((40, 3)), rng.random((40, 3)) * [0.1, 0.2, 0.4]
        got = acceptability(quality, cost, [0.0, 0.1, 1.0, 10.0], seed=1, replicates=500)
        assert got.shape == (4, 3)
        assert got.sum(1) == pytest.approx(np.ones(4))
        assert got[0] == pytest.approx([1, 0, 0])  # quality is worth nothing: the cheapest
        assert (got == acceptability(quality, cost, [0.0, 0.1, 1.0, 10.0], seed=1, replicates=500)).all()

    def test_two_arms_near_the_t_probability(self, golden: dict[str, Any]) -> None:
        gains, costs = twelve_tasks(golden["fieller_clear_gain"])
        zero = np.zeros(12)
        curve = acceptability(
            np.stack([zero, gains], 1), np.stack([zero, costs], 1), [0.0003, 0.001], seed=1, replicates=4000
        )
        for row, name in enumerate(("INB(lam=0.0003)", "INB(lam=0.001)")):
            assert curve[row, 1] == pytest.approx(golden["fieller_clear_gain"][name]["ceac_t"], abs=0.04)

    def test_ties_go_to_the_cheaper_arm(self) -> None:
        got = acceptability(np.ones((9, 2)), np.full((9, 2), [0.2, 0.1]), [0.0, 5.0], seed=1, replicates=50)
        assert got.tolist() == [[0, 1], [0, 1]]
        with pytest.raises(ValueError, match="The `quality` parameter of `acceptability`"):
            acceptability(np.ones((9, 2)), np.ones((9, 3)), [1.0], seed=1)


class TestIndices:
    SHARE = np.linspace(0, 1, 5)
    # Weak .6, strong .9; the gap recovered is 0, .4667, .7333, .9, 1.
    ROUTED = 0.6 + 0.3 * np.array([0, 14 / 30, 22 / 30, 0.9, 1])

    def test_aiq(self, golden: dict[str, Any]) -> None:
        assert aiq(QUALITY, COST) == pytest.approx(88.588235, abs=6e-7)
        assert aiq(QUALITY, COST) == pytest.approx(golden["aiq"]["paper_div_range"])
        assert aiq(QUALITY, COST) * 0.034 / 0.036 == pytest.approx(83.666667, abs=6e-7)
        # An arm that is dominated, and dearer than all, only widens the range: the hull goes on flat.
        assert aiq([78, 90, 80], [0.0, 1.0, 2.0]) == pytest.approx((84 + 90) / 2)
        assert aiq([78, 90], [1.0, 1.0]) is None
        assert aiq([], []) is None

    def test_apgr_and_cpt(self, golden: dict[str, Any]) -> None:
        assert apgr(self.SHARE, self.ROUTED, 0.6, 0.9) == pytest.approx(0.65)
        gap = gap_recovered(self.ROUTED, 0.6, 0.9)
        assert gap == pytest.approx(np.array(golden["routellm"]["pgr"]))
        assert call_share_for(self.SHARE, gap, 0.5) == pytest.approx(0.28125)
        assert call_share_for(self.SHARE, gap, 0.8) == pytest.approx(0.6)
        assert call_share_for(self.SHARE, gap, 0.0) == 0.0
        assert call_share_for(self.SHARE, gap, 1.01) is None

    def test_first_crossing(self) -> None:
        curve = [0.6, 0.62, 0.70, 0.73, 0.89, 0.77, 0.68, 0.67, 0.9]
        x = np.linspace(0, 1, 9)
        assert call_share_for(x, curve, 0.75) == pytest.approx(0.390625)
        assert np.interp(0.75, curve, x) == pytest.approx(0.918478, abs=6e-7)  # what it must not be

    def test_random_router(self) -> None:
        assert apgr([0, 1], [0.6, 0.9], 0.6, 0.9) == pytest.approx(0.5)

    def test_not_defined(self) -> None:
        assert gap_recovered([0.5], 0.6, 0.6) is None
        assert apgr([0, 1], [0.6, 0.6], 0.6, 0.6) is None
        assert apgr([0.5], [0.6], 0.5, 0.6) is None
        for call in (lambda: apgr([1, 0], [1, 2], 0, 1), lambda: call_share_for([1, 0], [1, 2], 1)):
            with pytest.raises(ValueError, match=r"The `share` parameter of .* must be in rising order"):
                call()


def test_documented_examples() -> None:
    import doctest

    assert doctest.testmod(module).failed == 0
