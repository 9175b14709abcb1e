"""Bounds on a rate against printed values, SciPy, statsmodels and their own definitions."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from evalkit.statistics import bounds
from evalkit.statistics.bounds import (
    certification_power,
    effective_n,
    korn_graubard,
    lower_bound,
    max_failures,
    max_failures_real,
    missing_n,
    required_n,
    upper_bound,
    upper_bounds,
    wilson_interval,
)

LIMITS = st.sampled_from([0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.3, 0.5, 0.9])
SMALL = st.integers(0, 50)
DELTAS = st.sampled_from([0.01, 0.025, 0.05, 0.1, 0.2])


@pytest.fixture(scope="module")
def golden(shared: Path) -> dict[str, Any]:
    return json.loads((shared / "golden" / "statistics.json").read_text(encoding="utf-8"))


class TestUpperAndLower:
    @pytest.mark.parametrize(
        ("k", "n", "expected"),
        [
            (0, 60, 0.048702913),
            (0, 149, 0.019904816),
            (1, 150, 0.031233817),
            (2, 150, 0.041374970),
            (3, 300, 0.025641393),
            (0, 160, 0.018549134),
            (1, 60, 0.076639995),
        ],
    )
    def test_printed_values(self, k: int, n: int, expected: float) -> None:
        assert upper_bound(k, n) == pytest.approx(expected, abs=6e-10)

    def test_golden_values(self, golden: dict[str, Any]) -> None:
        for name, values in golden["1_intervals"].items():
            if match := re.fullmatch(r"k=(\d+),n=(\d+)", name):
                k, n = int(match[1]), int(match[2])
                assert upper_bound(k, n) == pytest.approx(values["cp_up1"], rel=1e-9)
                both = [lower_bound(k, n, 0.975), upper_bound(k, n, 0.975)]
                assert both == pytest.approx(values["cp2"], rel=1e-9)
                assert wilson_interval(k, n) == pytest.approx(tuple(values["wilson2"]), rel=1e-9, abs=1e-15)
                # One-sided 95 % is one end of the two-sided 90 %.
                assert wilson_interval(k, n, 0.9)[1] == pytest.approx(values["wilson_up1"], rel=1e-9)
        for n, (_, exact) in golden["1_intervals"]["rule_of_three_vs_exact"].items():
            assert upper_bound(0, int(n)) == pytest.approx(exact, rel=1e-9)
        for name, expected in golden["10_stop_drift"]["escalation"].items():
            k, n = map(int, name.split("/"))
            assert lower_bound(k, n) == pytest.approx(expected, rel=1e-9)

    def test_escalation_stop_rule(self) -> None:
        assert lower_bound(297, 300) == pytest.approx(0.97435861, abs=6e-9)

    @given(st.integers(1, 3000), st.data(), st.sampled_from([0.8, 0.95, 0.975, 0.99]))
    def test_equals_the_exact_interval_of_scipy(self, n: int, data: st.DataObject, confidence: float) -> None:
        k = data.draw(st.integers(0, n))
        test = stats.binomtest(k, n, alternative="less")
        assert upper_bound(k, n, confidence) == pytest.approx(
            test.proportion_ci(confidence, "exact").high, rel=1e-7
        )
        test = stats.binomtest(k, n, alternative="greater")
        assert lower_bound(k, n, confidence) == pytest.approx(
            test.proportion_ci(confidence, "exact").low, rel=1e-7, abs=1e-12
        )

    @given(st.floats(0.5, 5000), st.floats(0, 1), st.floats(0, 1))
    def test_real_counts_lie_between_and_grow(self, n: float, one: float, other: float) -> None:
        low, high = sorted((one * n, other * n))
        assert lower_bound(low, n) <= low / n
        assert upper_bound(high, n) >= high / n - 1e-12
        assert upper_bound(low, n) <= upper_bound(high, n) + 1e-12
        assert 0 <= lower_bound(low, n) <= upper_bound(high, n) <= 1

    def test_ends(self) -> None:
        assert upper_bound(60, 60) == 1.0
        assert lower_bound(0, 60) == 0.0
        assert upper_bound(0, 0) is None
        assert lower_bound(0, 0) is None
        assert wilson_interval(0, 0) is None

    @pytest.mark.parametrize("function", [upper_bound, lower_bound, wilson_interval])
    @pytest.mark.parametrize(
        ("k", "n", "name"),
        [(-1, 5, "k"), (6, 5, "k"), (math.nan, 5, "k"), (0, -1, "n"), (0, math.nan, "n"), (0, math.inf, "n")],
    )
    def test_impossible_counts(self, function: Any, k: float, n: float, name: str) -> None:
        got = k if name == "k" else n
        message = rf"The `{name}` parameter of `{function.__name__}` must be .*\. Got {got} instead\."
        with pytest.raises(ValueError, match=message):
            function(k, n)

    @pytest.mark.parametrize("confidence", [0, 1, -0.1, 95, math.nan])
    def test_impossible_confidence(self, confidence: float) -> None:
        with pytest.raises(ValueError, match="The `confidence` parameter of `upper_bound` must be"):
            upper_bound(0, 5, confidence)

    def test_covers_at_every_rate(self) -> None:
        # Exact coverage for n = 150: the sum over k whose bound is at or above the true rate.
        all_bounds = upper_bounds(np.arange(151), 150)
        for rate in np.linspace(0.0005, 0.5, 400):
            assert stats.binom.pmf(np.arange(151), 150, rate)[all_bounds >= rate].sum() >= 0.95

    @given(st.lists(st.tuples(SMALL, SMALL), min_size=1), st.sampled_from([0.9, 0.95]))
    def test_vectorised(self, pairs: list[tuple[int, int]], confidence: float) -> None:
        n = np.array([a + b for a, b in pairs])
        k = np.array([a for a, _ in pairs])
        expected = [upper_bound(a, b, confidence) for a, b in zip(k, n, strict=True)]
        got = upper_bounds(k, n, confidence)
        assert [None if math.isnan(x) else x for x in got] == expected

    def test_vectorised_refuses(self) -> None:
        with pytest.raises(ValueError, match=r"The `k` parameter of `upper_bounds` .* Got 6.0 instead"):
            upper_bounds([1, 6], 5)
        with pytest.raises(ValueError, match="The `n` parameter of `upper_bounds`"):
            upper_bounds([0, 0], [5, math.nan])
        with pytest.raises(ValueError, match="The `k` parameter of `upper_bounds`"):
            upper_bounds([0, math.nan], 5)


@given(st.integers(1, 2000), st.data(), st.sampled_from([0.8, 0.9, 0.95, 0.99]))
def test_wilson_equals_statsmodels(n: int, data: st.DataObject, confidence: float) -> None:
    k = data.draw(st.integers(0, n))
    expected = proportion_confint(k, n, 1 - confidence, "wilson")
    assert wilson_interval(k, n, confidence) == pytest.approx(expected, rel=1e-9, abs=1e-12)


class TestNumbersOfItems:
    @pytest.mark.parametrize(
        ("limit", "expected"),
        [
            (0.01, [299, 473, 628, 773]),
            (0.02, [149, 236, 313, 386]),
            (0.05, [59, 93, 124, 153]),
            (0.10, [29, 46, 61, 76]),
        ],
    )
    def test_printed_table(self, limit: float, expected: list[int]) -> None:
        assert [required_n(limit, failures, 0.05) for failures in range(4)] == expected

    def test_golden_tables(self, golden: dict[str, Any]) -> None:
        for percent, delta in ((95, 0.05), (90, 0.10), (99, 0.01)):
            for limit, expected in golden["1_intervals"][f"n_required_{percent}"].items():
                got = [required_n(float(limit), failures, delta) for failures in range(len(expected))]
                assert got == expected
        for name, limit in (("kmax_2pct_95", 0.02), ("kmax_5pct_95", 0.05)):
            for n, expected in golden["2d"][name].items():
                assert max_failures(int(n), limit, 0.05) == expected
        for name, expected in golden["1_intervals"]["power_certify_2pct"].items():
            match = re.fullmatch(r"n=(\d+),true=([\d.]+)", name)
            assert certification_power(int(match[1]), 0.02, float(match[2]), 0.05) == pytest.approx(expected)

    def test_printed_largest_counts(self) -> None:
        assert [max_failures(n, 0.02, 0.05) for n in (149, 235, 236, 312, 313, 385, 386, 400, 1000)] == [
            0, 0, 1, 1, 2, 2, 3, 3, 12]  # fmt: skip
        assert [max_failures(n, 0.05, 0.05) for n in (58, 59, 92, 93, 123, 124)] == [-1, 0, 0, 1, 1, 2]
        assert certification_power(313, 0.02, 0.005, 0.05) == pytest.approx(0.7926427287809931)

    @given(st.integers(0, 800), LIMITS, DELTAS)
    def test_max_failures_is_its_definition(self, n: int, limit: float, delta: float) -> None:
        passing = np.flatnonzero(stats.binom.cdf(np.arange(n + 1), n, limit) <= delta)
        assert max_failures(n, limit, delta) == (passing[-1] if passing.size else -1)

    @given(st.integers(0, 6), LIMITS, DELTAS)
    def test_required_n_is_its_definition(self, failures: int, limit: float, delta: float) -> None:
        n = required_n(limit, failures, delta)
        assert stats.binom.cdf(failures, n, limit) <= delta
        assert stats.binom.cdf(failures, n - 1, limit) > delta

    def test_nothing_certifies_zero(self) -> None:
        assert required_n(0.0, 0, 0.05) is None
        assert required_n(1e-300, 0, 0.05) is None
        assert max_failures(10**9, 0.0, 0.05) == -1
        assert max_failures_real(1e9, 0.0, 0.05) == -1.0
        assert missing_n(0, 100, 0.0, 0.05) is None
        assert certification_power(10**6, 0.0, 0.0, 0.05) == 0.0

    def test_no_items_certify_nothing(self) -> None:
        for limit in (0.02, 0.5, 1.0):
            assert max_failures(0, limit, 0.05) == -1
            assert max_failures_real(0, limit, 0.05) == -1.0

    def test_limit_one_cannot_be_broken(self) -> None:
        assert max_failures(7, 1.0, 0.05) == 7
        assert max_failures_real(7.5, 1.0, 0.05) == 7.5
        assert required_n(1.0, 3, 0.05) == 3

    @pytest.mark.parametrize(
        ("k", "n", "limit", "expected"),
        [
            (0, 60, 0.02, 89),
            (1, 60, 0.02, 176),
            (2, 60, 0.02, None),  # 3.3 % seen
            (2, 100, 0.02, None),  # 2 % seen: more labels will not help at this rate
            (0, 0, 0.02, 149),
            (0, 149, 0.02, 0),
            (0, 500, 0.02, 0),
            (0.5, 124.5, 0.02, 70),
        ],
    )
    def test_missing_n(self, k: float, n: float, limit: float, expected: int | None) -> None:
        assert missing_n(k, n, limit, 0.05) == expected

    @given(st.integers(0, 5), st.integers(0, 1500), LIMITS, DELTAS)
    def test_missing_n_is_just_enough(self, k: int, n: int, limit: float, delta: float) -> None:
        more = missing_n(k, n, limit, delta) if k <= n else None
        if more is None:
            assert k > n or (n > 0 and k / n >= limit)
        else:
            assert max_failures(n + more, limit, delta) >= k
            if more > 0:
                assert max_failures(n + more - 1, limit, delta) < k


class TestRealFailures:
    @given(st.integers(0, 3000), LIMITS, DELTAS)
    def test_floor_is_max_failures(self, n: int, limit: float, delta: float) -> None:
        assert math.floor(max_failures_real(n, limit, delta)) == max_failures(n, limit, delta)

    @given(st.floats(0.01, 1e5), LIMITS, DELTAS)
    def test_largest_that_passes(self, n: float, limit: float, delta: float) -> None:
        k = max_failures_real(n, limit, delta)
        if k < 0:
            assert upper_bound(0, n, 1 - delta) > limit
        else:
            assert upper_bound(k, n, 1 - delta) <= limit
            if k + 1e-6 <= n:
                assert upper_bound(k + 1e-6, n, 1 - delta) > limit

    def test_between_whole_numbers(self) -> None:
        # At n = 300 and 2 %: 1 passes, 2 does not; the bound is .02 where the root says.
        k = max_failures_real(300, 0.02, 0.05)
        assert 1 < k < 2
        assert stats.beta.ppf(0.95, k + 1, 300 - k) == pytest.approx(0.02, rel=1e-10)


class TestWeights:
    def test_equal_allocation(self) -> None:
        # W = .8 / .15 / .05 with 100 items each: one item of the first stratum weighs .008, so 1 / .008 =
        # 125.
        weights = np.repeat([0.8 / 100, 0.15 / 100, 0.05 / 100], 100)
        assert effective_n(weights) == pytest.approx(125.0)

    def test_golden_floors(self, golden: dict[str, Any]) -> None:
        for name in ("equal_alloc", "mild", "prop"):
            study = golden["1c_strat"][name]
            weights = np.repeat(np.array(study["W"]) / study["n"], study["n"])
            assert effective_n(weights) == pytest.approx(study["n_floor"])

    @given(st.lists(st.floats(0, 1e6), max_size=50), st.floats(0.1, 1e3))
    def test_between_one_and_the_items_with_weight(self, weights: list[float], scale: float) -> None:
        n = effective_n(weights)
        with_weight = sum(w > 0 for w in weights)
        assert n == 0 if with_weight == 0 else 1 <= n <= with_weight
        assert effective_n([w * scale for w in weights]) == pytest.approx(n, rel=1e-6)

    def test_equal_weights_count_as_items(self) -> None:
        assert effective_n([0.1] * 300) == 300
        assert effective_n([0.0] * 5) == 0
        assert effective_n([]) == 0

    @pytest.mark.parametrize("weights", [[1, -1], [1, math.nan], [math.inf, 1]])
    def test_refused(self, weights: list[float]) -> None:
        with pytest.raises(ValueError, match="The `weights` parameter of `effective_n` must be"):
            effective_n(weights)

    def test_bound_on_effective_items_covers(self) -> None:
        # Two strata, traffic .8 / .2, sampled 100 : 100 (4:1). Exact coverage of CP(n_f p_w, n_f) by
        # enumeration.
        share, n = np.array([0.8, 0.2]), 100
        n_f = effective_n(np.repeat(share / n, n))
        assert n_f == pytest.approx(125)
        weighted = (share[0] * np.arange(n + 1)[:, None] + share[1] * np.arange(n + 1)[None, :]) / n
        bound = upper_bounds(np.minimum(n_f, n_f * weighted), n_f)
        naive = upper_bounds(np.add.outer(np.arange(n + 1), np.arange(n + 1)), 2 * n)
        for rates in ([0.02, 0.0], [0.0, 0.1], [0.02, 0.02], [0.05, 0.01], [0.01, 0.1], [0.03, 0.0]):
            chance = np.outer(*(stats.binom.pmf(np.arange(n + 1), n, rate) for rate in rates))
            assert chance[bound >= share @ rates].sum() >= 0.95, rates
        chance = np.outer(stats.binom.pmf(np.arange(n + 1), n, 0.03), np.eye(1, n + 1)[0])
        assert chance[naive >= 0.8 * 0.03].sum() < 0.95  # taking the items as they come does not cover


class TestKornGraubard:
    def test_printed_values(self) -> None:
        result = korn_graubard([1, 2, 4], [100, 100, 100], [0.8, 0.15, 0.05])
        assert result.rate == pytest.approx(0.013)
        assert result.variance == pytest.approx(6.9424242e-5, rel=1e-7)
        assert result.effective_n == pytest.approx(184.81243, abs=6e-6)
        assert result.upper == pytest.approx(0.036837715, abs=6e-10)

    def test_golden_values(self, golden: dict[str, Any]) -> None:
        study = golden["1_intervals"]["KG_strata"]
        result = korn_graubard(study["k"], study["n"], study["W"])
        assert result.rate == pytest.approx(study["phat"])
        assert result.variance == pytest.approx(study["var"])
        assert result.effective_n == pytest.approx(study["neff1"], rel=1e-9)
        assert result.upper == pytest.approx(study["hi1"], rel=1e-9)
        both = korn_graubard(study["k"], study["n"], study["W"], 0.975)
        assert [both.effective_n, both.lower, both.upper] == pytest.approx(
            [study["neff2"], study["lo2"], study["hi2"]], rel=1e-9
        )

    def test_without_failures_falls_back_to_the_heaviest_item(self) -> None:
        result = korn_graubard([0, 0], [100, 100], [0.8, 0.2])
        assert result.effective_n == pytest.approx(125)
        assert result.upper == pytest.approx(1 - 0.05 ** (1 / 125))
        assert result.lower == 0

    def test_one_stratum_is_clopper_pearson(self) -> None:
        # p (1 - p) / [p (1 - p) / (n - 1)] = n - 1 items.
        result = korn_graubard([3], [300], [1.0])
        assert result.effective_n == pytest.approx(299)
        assert result.upper == pytest.approx(upper_bound(299 * 0.01, 299))

    def test_a_stratum_of_one_item_has_no_variance(self) -> None:
        assert korn_graubard([0, 0], [100, 1], [0.8, 0.2]) is None
        assert korn_graubard([0, 0], [100, 1], [1.0, 0.0]) is not None

    def test_refused(self) -> None:
        with pytest.raises(ValueError, match="The `failures` parameter of `korn_graubard`"):
            korn_graubard([5], [4], [1.0])
        with pytest.raises(ValueError, match="The `shares` parameter of `korn_graubard`"):
            korn_graubard([1], [4], [0.0])
        with pytest.raises(ValueError, match="The `shares` parameter of `korn_graubard`"):
            korn_graubard([1], [4], [0.5, 0.5])


def test_documented_examples() -> None:
    import doctest

    assert doctest.testmod(bounds).failed == 0
