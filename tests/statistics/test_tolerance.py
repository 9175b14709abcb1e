"""The certified threshold against its direct definition, and how often it breaks its limit."""

from __future__ import annotations

import json
import math
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from evalkit.statistics import tolerance
from evalkit.statistics.bounds import effective_n, upper_bound
from evalkit.statistics.tolerance import Tolerance, certified_threshold, walk

LIMITS = st.sampled_from([0.02, 0.05, 0.1, 0.2, 0.5])
DELTAS = st.sampled_from([0.025, 0.05, 0.1, 0.3])
# Few distinct values, so that ties are common; +inf for items that always go up.
DEMANDS = st.lists(st.sampled_from([-1.5, 0.0, 0.25, 0.5, 0.75, 3.0, math.inf]), max_size=120)
WEIGHTED = st.lists(
    st.tuples(st.sampled_from([0.0, 0.25, 0.5, 0.75, math.inf]), st.sampled_from([0.0, 0.5, 1.0, 3.0])),
    max_size=150,
)


def by_definition(demands: list[float], limit: float, delta: float) -> float:
    """Walk all thresholds upwards, test each by the binomial tail, stop at the first failure."""
    n = len(demands)
    reached = -math.inf
    for t in sorted(set(demands)):
        k = sum(d < t for d in demands)
        if stats.binom.cdf(k, n, limit) > delta:
            break
        reached = t
    return reached


class TestWorkedExample:
    # critical: the first need at .07, the second above .18; low: .05, .12, then more from .15 on.
    critical = np.array([0.07, 0.21, 0.33, *np.linspace(0.36, 0.99, 157)])
    low = np.array([0.05, 0.12, 0.17, 0.30, *np.linspace(0.40, 0.97, 56)])

    def test_thresholds(self) -> None:
        assert certified_threshold(self.critical, 0.02, 0.05) == Tolerance(0.07, 0, 160, 0)
        assert certified_threshold(self.low, 0.10, 0.05) == Tolerance(0.12, 1, 60, 1)

    def test_bounds_at_both(self, shared: Path) -> None:
        printed = [0.018549134, 0.076639995, 0.047744667, 0.14609721]
        golden = json.loads((shared / "golden" / "statistics.json").read_text(encoding="utf-8"))["2_worked"]
        assert [golden["crit_kmax"], golden["low_kmax"], golden["t_hat"]] == [0, 1, 0.07]
        names = ["crit_ucb_at_t_hat", "low_ucb_at_t_hat", "crit_ucb_at_naive", "low_ucb_at_naive"]
        for t, count in ((golden["t_hat"], printed[:2]), (golden["naive_t"], printed[2:])):
            got = [upper_bound(int((s < t).sum()), s.size) for s in (self.critical, self.low)]
            assert got == pytest.approx(count, abs=6e-9)
        assert [golden[name] for name in names] == pytest.approx(printed, abs=6e-9)

    def test_bounds_without_the_folder(self) -> None:
        for t, printed in ((0.07, [0.018549134, 0.076639995]), (0.35407643, [0.047744667, 0.14609721])):
            got = [upper_bound(int((s < t).sum()), s.size) for s in (self.critical, self.low)]
            assert got == pytest.approx(printed, abs=6e-9)


class TestEqualWeights:
    @given(DEMANDS, LIMITS, DELTAS)
    def test_is_its_definition(self, demands: list[float], limit: float, delta: float) -> None:
        got = certified_threshold(demands, limit, delta)
        assert got.threshold == by_definition(demands, limit, delta)
        assert got.k_at_threshold == sum(d < got.threshold for d in demands)
        assert got.n == len(demands)

    @given(DEMANDS, LIMITS, DELTAS)
    def test_the_bound_at_the_threshold_is_within_the_limit(
        self, demands: list[float], limit: float, delta: float
    ) -> None:
        got = certified_threshold(demands, limit, delta)
        if got.threshold > -math.inf:
            assert got.k_at_threshold <= got.failures_allowed
            assert upper_bound(got.k_at_threshold, got.n, 1 - delta) <= limit

    @given(DEMANDS, LIMITS, DELTAS, st.randoms())
    def test_order_and_equal_weights_do_not_matter(
        self, demands: list[float], limit: float, delta: float, random: Random
    ) -> None:
        expected = certified_threshold(demands, limit, delta)
        shuffled = random.sample(demands, len(demands))
        assert certified_threshold(shuffled, limit, delta) == expected
        for weight in (0.1, 1.0, 7.0, 0.1 + 0.2):
            assert certified_threshold(shuffled, limit, delta, [weight] * len(demands)) == expected

    def test_ties_at_the_order_statistic(self) -> None:
        # n = 93 and 5 % allow one failure. s[1] = .3 is shared by 40 items, none of which is below .3.
        got = certified_threshold([0.1] + [0.3] * 40 + [0.8] * 52, 0.05, 0.05)
        assert got == Tolerance(0.3, 1, 93, 1)
        # s[0] = s[1]: nobody is below, although one would be allowed.
        assert certified_threshold([0.3] * 93, 0.05, 0.05) == Tolerance(0.3, 1, 93, 0)

    def test_too_few(self) -> None:
        assert certified_threshold([0.5] * 58, 0.05, 0.05) == Tolerance(-math.inf, -1, 58, 0)
        assert certified_threshold([], 0.05, 0.05) == Tolerance(-math.inf, -1, 0, 0)
        assert certified_threshold([0.5] * 1000, 0.0, 0.05).threshold == -math.inf

    def test_always_escalated_items_are_never_below(self) -> None:
        got = certified_threshold([math.inf] * 59, 0.05, 0.05)
        assert got == Tolerance(math.inf, 0, 59, 0)

    def test_limit_one(self) -> None:
        assert certified_threshold([0.1, 0.2], 1.0, 0.05) == Tolerance(math.inf, 2, 2, 2)
        assert certified_threshold([0.1, math.inf], 1.0, 0.05, [1, 2]).k_at_threshold == pytest.approx(0.5)

    def test_refused(self) -> None:
        with pytest.raises(ValueError, match=r"The `demands` parameter of .* must be free of NaN"):
            certified_threshold([0.1, math.nan], 0.05, 0.05)
        with pytest.raises(ValueError, match="The `limit` parameter of `certified_threshold`"):
            certified_threshold([0.1], 1.5, 0.05)
        with pytest.raises(ValueError, match="The `delta` parameter of `certified_threshold`"):
            certified_threshold([0.1], 0.5, 0.0)
        with pytest.raises(ValueError, match="The `demands` parameter"):
            certified_threshold([[0.1]], 0.5, 0.05)
        with pytest.raises(ValueError, match="The `weights` parameter of `certified_threshold`"):
            certified_threshold([0.1], 0.5, 0.05, [1, 2])

    def test_breaks_the_limit_as_often_as_the_binomial_says(self) -> None:
        # Continuous demands: the true rate at s[k] is Beta(k + 1, n - k), so the limit is broken with
        # probability P(Binomial(n, limit) <= k), at most delta. Uniform demands make the true rate t itself.
        n, limit, delta, studies = 300, 0.02, 0.05, 4000
        exact = stats.binom.cdf(1, n, limit)
        assert exact <= delta
        draws = np.random.default_rng(1).uniform(size=(studies, n))
        broken = np.mean([certified_threshold(d, limit, delta).threshold > limit for d in draws])
        assert broken == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / studies))


class TestUnequalWeights:
    @given(WEIGHTED, LIMITS, DELTAS)
    def test_is_its_definition(self, items: list[tuple[float, float]], limit: float, delta: float) -> None:
        d, w = (np.array(column, dtype=float) for column in (zip(*items, strict=True) if items else ([], [])))
        got = certified_threshold(d, limit, delta, w)
        n = effective_n(w)
        expected = -math.inf
        for t in sorted(set(d[w > 0])):
            if upper_bound(min(n, n * w[d < t].sum() / w.sum()), n, 1 - delta) <= limit:
                expected = t
        assert got.threshold == expected
        assert got.n == pytest.approx(n)
        if expected > -math.inf:
            assert got.k_at_threshold == pytest.approx(n * w[d < expected].sum() / w.sum())
            assert upper_bound(got.k_at_threshold, got.n, 1 - delta) <= limit

    @given(DEMANDS, LIMITS, DELTAS)
    def test_no_weight_is_no_evidence(self, demands: list[float], limit: float, delta: float) -> None:
        padded = demands + [0.1] * 30
        weights = [1.0] * len(demands) + [0.0] * 30
        expected = certified_threshold(demands, limit, delta)
        assert certified_threshold(padded, limit, delta, weights) == expected

    def test_only_items_without_weight(self) -> None:
        assert certified_threshold([0.1, 0.2], 0.5, 0.05, [0, 0]) == Tolerance(-math.inf, -1, 0, 0)

    def test_oversampling_four_to_one(self) -> None:
        # Traffic .8 / .2, sampled half and half, so weights 4 : 1. The common kind breaks the limit at
        # uniform demands d; the rare kind never goes below 1. The true rate at t is .8 t: the limit of 5 %
        # is t = .0625.
        rng = np.random.default_rng(7)
        n, studies, limit = 200, 2000, 0.05
        weights = np.repeat([4.0, 1.0], n // 2)
        broken_weighted = broken_unweighted = 0
        for _ in range(studies):
            d = np.concatenate([rng.uniform(size=n // 2), rng.uniform(1, 2, size=n // 2)])
            broken_weighted += certified_threshold(d, limit, 0.05, weights).threshold * 0.8 > limit
            broken_unweighted += certified_threshold(d, limit, 0.05).threshold * 0.8 > limit
        assert broken_weighted / studies <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / studies)
        assert broken_unweighted / studies > 0.2


class TestWalk:
    @given(st.lists(st.integers(0, 200), max_size=30), LIMITS, DELTAS)
    def test_is_its_definition(self, failures: list[int], limit: float, delta: float) -> None:
        expected = -1
        for index, k in enumerate(failures):
            if stats.binom.cdf(k, 200, limit) > delta:
                break
            expected = index
        assert walk(np.array(failures) / 200, 200, limit, delta) == expected

    def test_never_looks_behind_the_first_failure(self) -> None:
        assert walk([0.0, 0.01, 0.5, 0.0, 0.0], 300, 0.05, 0.05) == 1
        assert walk([0.5, 0.0], 300, 0.05, 0.05) == -1
        assert walk([0.0, 0.0], 300, 0.05, 0.05) == 1

    def test_nothing_to_walk_or_no_items(self) -> None:
        assert walk([], 300, 0.05, 0.05) == -1
        assert walk([0.0], 0, 0.05, 0.05) == -1
        assert walk([0.0], 300, 0.0, 0.05) == -1

    @pytest.mark.parametrize("bad", [math.nan, -0.1, 1.1])
    def test_refused(self, bad: float) -> None:
        with pytest.raises(ValueError, match="The `failure_share` parameter of `walk` must be"):
            walk([0.0, bad], 300, 0.05, 0.05)

    @given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.floats(0.5, 5000), LIMITS, DELTAS)
    def test_every_step_taken_has_its_bound_within_the_limit(
        self, shares: list[float], n: float, limit: float, delta: float
    ) -> None:
        for share in shares[: walk(shares, n, limit, delta) + 1]:
            assert upper_bound(min(n, share * n), n, 1 - delta) <= limit


@settings(max_examples=25)
@given(st.integers(1000, 200_000), st.integers(1, 10**6))
def test_large_classes(n: int, seed: int) -> None:
    d = np.random.default_rng(seed).normal(size=n)
    got = certified_threshold(d, 0.02, 0.05)
    assert got.threshold == np.sort(d)[int(got.failures_allowed)]


def test_documented_examples() -> None:
    import doctest

    assert doctest.testmod(tolerance).failed == 0
