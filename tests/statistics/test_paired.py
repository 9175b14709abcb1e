"""Paired comparisons against printed values, statsmodels and SciPy."""

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
from statsmodels.api import OLS, WLS
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.power import TTestPower

from evalkit.statistics import paired
from evalkit.statistics.paired import (
    Difference,
    mcnemar_exact,
    minimum_detectable_effect,
    minimum_detectable_from_se,
    paired_difference,
    task_means,
)

VALUES = st.floats(-100, 100).map(lambda x: round(x, 3))
ITEMS = st.lists(
    st.tuples(VALUES, st.sampled_from([0.5, 1.0, 2.5]), st.sampled_from("abcd")), min_size=2, max_size=40
)


@pytest.fixture(scope="module")
def golden(shared: Path) -> dict[str, Any]:
    return json.loads((shared / "golden" / "statistics.json").read_text(encoding="utf-8"))["4_paired"]


class TestMcNemar:
    def test_printed_value(self) -> None:
        assert mcnemar_exact(5, 15) == pytest.approx(0.041389465, abs=6e-10)

    def test_golden_values(self, golden: dict[str, Any]) -> None:
        for name, values in golden.items():
            if match := re.fullmatch(r"mcnemar b=(\d+) c=(\d+) N=300", name):
                assert mcnemar_exact(int(match[1]), int(match[2])) == pytest.approx(values["exact"], rel=1e-12)

    @given(st.integers(0, 300), st.integers(0, 300))
    def test_equals_statsmodels(self, b: int, c: int) -> None:
        if b + c:
            expected = mcnemar([[7, b], [c, 9]], exact=True).pvalue
            assert mcnemar_exact(b, c) == pytest.approx(expected, rel=1e-9)
        assert mcnemar_exact(b, c) == mcnemar_exact(c, b)

    def test_ends(self) -> None:
        assert mcnemar_exact(0, 0) == 1.0
        assert mcnemar_exact(1, 0) == 1.0
        assert mcnemar_exact(7, 7) == 1.0
        with pytest.raises(ValueError, match=r"The `b` parameter of `mcnemar_exact` must be .* Got -1 instead\."):
            mcnemar_exact(-1, 3)
        with pytest.raises(
            ValueError, match=r"The `c` parameter of `mcnemar_exact` must be a whole number. Got 0.5"
        ):
            mcnemar_exact(1, 0.5)  # type: ignore[arg-type]


class TestPairedDifference:
    # 12 items in four groups; 7 pass.
    groups = np.repeat(["a", "b", "c", "d"], [2, 3, 3, 4])
    passed = np.array([1, 0, 1, 1, 0, 1, 1, 1, 1, 0, 0, 0], dtype=float)

    def test_golden_clusters(self) -> None:
        got = paired_difference(self.passed, groups=self.groups)
        assert got.mean == pytest.approx(7 / 12)
        assert got.se == pytest.approx(0.17822570884185332, rel=1e-12)  # 0.15434799 sqrt(4 / 3)
        assert (got.df, got.n) == (3, 12)
        half = stats.t.ppf(0.975, 3) * got.se
        assert (got.lower, got.upper) == pytest.approx((got.mean - half, got.mean + half))

    def test_golden_clusters_in_the_folder(self, golden: dict[str, Any]) -> None:
        got = paired_difference(self.passed, groups=self.groups)
        assert got.mean == pytest.approx(golden["clustered_se"]["mean"])
        assert got.se == pytest.approx(golden["clustered_se"]["se_clustered_G_over_Gm1"])

    @given(ITEMS)
    def test_equals_statsmodels_with_clusters(self, items: list[tuple[float, float, str]]) -> None:
        d, w, g = (np.array(column) for column in zip(*items, strict=True))
        codes = np.unique(g, return_inverse=True)[1]
        count = codes.max() + 1
        got = paired_difference(d, w, g)
        if count < 2:
            assert (got.lower, got.upper, got.se) == (None, None, None)
            return
        fit = WLS(d, np.ones(d.size), weights=w).fit(
            cov_type="cluster", cov_kwds={"groups": codes, "use_correction": False}, use_t=True
        )
        assert got.mean == pytest.approx(fit.params[0], abs=1e-9)
        assert got.se == pytest.approx(fit.bse[0] * math.sqrt(count / (count - 1)), rel=1e-6, abs=1e-9)
        assert got.df == count - 1

    @given(st.lists(VALUES, min_size=2, max_size=50), st.sampled_from([0.9, 0.95, 0.99]))
    def test_without_groups_is_the_paired_t_interval(self, d: list[float], confidence: float) -> None:
        got = paired_difference(d, confidence=confidence)
        if np.ptp(d) > 0:
            expected = stats.ttest_1samp(d, 0).confidence_interval(confidence)
            assert (got.lower, got.upper) == pytest.approx(tuple(expected), rel=1e-8, abs=1e-8)
            assert got.se == pytest.approx(stats.sem(d), rel=1e-8)
        else:
            assert got == Difference(d[0], d[0], d[0], 0.0, len(d) - 1, len(d))

    def test_group_of_equal_turns_is_one_observation(self) -> None:
        # Three conversations, each turn repeated: the interval is that of the three.
        d = np.array([0.1, 0.5, 0.9])
        repeated = paired_difference(np.repeat(d, 4), groups=np.repeat([1, 2, 3], 4))
        alone = paired_difference(d)
        assert (repeated.mean, repeated.se, repeated.df) == pytest.approx((alone.mean, alone.se, alone.df))

    @given(ITEMS)
    def test_items_without_weight_count_nowhere(self, items: list[tuple[float, float, str]]) -> None:
        d, w, g = (list(column) for column in zip(*items, strict=True))
        padded = paired_difference([*d, 1e3, -5.0], [*w, 0.0, 0.0], [*g, "a", "only here"])
        assert padded == paired_difference(d, w, g)

    def test_nothing_to_say(self) -> None:
        assert paired_difference([]) == Difference(None, None, None, None, 0, 0)
        assert paired_difference([1.0, 2.0], [0.0, 0.0]) == Difference(None, None, None, None, 0, 0)
        assert paired_difference([0.25]) == Difference(0.25, None, None, None, 0, 1)
        assert paired_difference([0.0, 1.0], groups=["x", "x"]) == Difference(0.5, None, None, None, 0, 2)

    @pytest.mark.parametrize(
        ("arguments", "name"),
        [
            (([1.0, math.nan],), "differences"),
            (([[1.0]],), "differences"),
            (([1.0, 2.0], [1.0]), "weights"),
            (([1.0, 2.0], [1.0, -1.0]), "weights"),
            (([1.0, 2.0], None, ["a"]), "groups"),
        ],
    )
    def test_refused(self, arguments: tuple[Any, ...], name: str) -> None:
        with pytest.raises(ValueError, match=f"The `{name}` parameter of `paired_difference` must be"):
            paired_difference(*arguments)


class TestTaskMeans:
    # 8 tasks of 5 runs; passes by task.
    passes = (5, 5, 5, 4, 3, 1, 1, 1)
    values = np.concatenate([[1.0] * k + [0.0] * (5 - k) for k in passes])
    tasks = np.repeat(np.arange(8), 5)

    def test_printed_values(self) -> None:
        got = task_means(self.values, self.tasks)
        assert got.between == pytest.approx(0.11464286, abs=6e-9)
        assert got.within == pytest.approx(0.1375)
        assert got.se == pytest.approx(0.13329613, abs=6e-9)
        pooled = math.sqrt(0.625 * 0.375 / 40)
        assert pooled == pytest.approx(0.07654655, abs=6e-9)  # what it must not be
        assert (got.df, got.tasks, got.runs) == (7, 8, 40)

    def test_golden_values(self, golden: dict[str, Any]) -> None:
        expected = golden["anova_8x5"]
        got = task_means(self.values, self.tasks)
        assert got.mean == pytest.approx(expected["mean"])
        assert [got.lower, got.upper] == pytest.approx(expected["t95"])
        assert [got.between, got.within, got.se] == pytest.approx(
            [expected["sigma_b2"], expected["sigma_w2"], expected["se_correct"]]
        )

    @given(st.lists(st.tuples(st.integers(0, 4), VALUES), min_size=2, max_size=30))
    def test_components_equal_the_analysis_of_variance(self, runs: list[tuple[int, float]]) -> None:
        task, x = (np.array(column) for column in zip(*runs, strict=True))
        got = task_means(x, task)
        codes = np.unique(task, return_inverse=True)[1]
        design = np.eye(codes.max() + 1)[codes]
        within = OLS(x, design).fit()
        means = np.array([x[task == t].mean() for t in np.unique(task)])
        assert got.mean == pytest.approx(means.mean(), abs=1e-9)
        if within.df_resid > 0:
            assert got.within == pytest.approx(within.ssr / within.df_resid, abs=1e-6)
            if means.size > 1:
                around_mean = ((x - x.mean()) ** 2).sum() - within.ssr
                count = np.bincount(codes)
                size = (x.size - (count**2).sum() / x.size) / (means.size - 1)
                expected = (around_mean / (means.size - 1) - got.within) / size
                assert got.between == pytest.approx(expected, abs=1e-6)
        else:
            assert (got.between, got.within) == (None, None)

    def test_nothing_to_say(self) -> None:
        assert task_means([], []).mean is None
        one = task_means([1.0, 0.0], ["t", "t"])
        assert (one.mean, one.se, one.lower, one.upper, one.between, one.within) == (
            0.5,
            None,
            None,
            None,
            None,
            0.5,
        )
        with pytest.raises(ValueError, match="The `tasks` parameter of `task_means` must be one label per value"):
            task_means([1.0, 0.0], ["t"])


class TestMinimumDetectableEffect:
    def test_printed_value(self) -> None:
        assert 100 * minimum_detectable_effect(30, 1 / 9, 1 / 6, 5) == pytest.approx(22.3, abs=0.05)

    def test_a_little_above_the_normal_formula(self, golden: dict[str, Any]) -> None:
        for name, by_z in golden["mde_at_n"].items():
            n, runs = map(int, re.fullmatch(r"n=(\d+),K=(\d+)", name).groups())  # type: ignore[union-attr]
            got = minimum_detectable_effect(n, 1 / 9, 1 / 6, runs)
            assert by_z < got < by_z * (1 + 1.2 / n)

    @given(st.integers(20, 400), st.sampled_from([0.9, 0.95, 0.99]), st.sampled_from([0.5, 0.8, 0.95]))
    def test_equals_the_power_of_statsmodels(self, n: int, confidence: float, power: float) -> None:
        # From 20 tasks on: with fewer the power function there can be NaN. See the integration below.
        se = 0.37 / math.sqrt(n)
        effect = minimum_detectable_from_se(se, n - 1, confidence=confidence, power=power)
        got = TTestPower().power(effect / 0.37, n, 1 - confidence, alternative="two-sided")
        assert got == pytest.approx(power, abs=1e-6)

    @pytest.mark.parametrize("df", [1, 2, 3, 8])
    def test_power_by_integration(self, df: int) -> None:
        # |Z + shift| > t sqrt(chi2 / df), averaged over the distribution of chi2 on its quantiles.
        shift = minimum_detectable_from_se(1.0, df)
        spread = np.sqrt(stats.chi2.ppf((np.arange(200_000) + 0.5) / 200_000, df) / df) * stats.t.ppf(0.975, df)
        power = stats.norm.cdf(shift - spread) + stats.norm.cdf(-shift - spread)
        assert power.mean() == pytest.approx(0.8, abs=1e-4)

    def test_too_few_tasks(self) -> None:
        assert minimum_detectable_effect(1, 0.1, 0.1) is None
        assert minimum_detectable_effect(0, 0.1, 0.1) is None
        assert minimum_detectable_effect(5, 0.0, 0.0) == 0.0
        with pytest.raises(ValueError, match="The `runs` parameter of `minimum_detectable_effect`"):
            minimum_detectable_effect(5, 0.1, 0.1, 0)
        with pytest.raises(ValueError, match="The `power` parameter of `minimum_detectable_from_se`"):
            minimum_detectable_from_se(0.1, 5, power=0.01)


def test_documented_examples() -> None:
    import doctest

    assert doctest.testmod(paired).failed == 0
