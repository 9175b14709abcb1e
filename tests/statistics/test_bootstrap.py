"""The bootstrap against analytic variances, against drawing every item, and against parts drawn apart."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from evalkit.statistics import bootstrap
from evalkit.statistics.bootstrap import (
    hashed_poisson,
    percentile_interval,
    poisson_means,
    too_few_groups,
)
from evalkit.statistics.paired import paired_difference


def data(n: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Skewed, correlated columns in three strata with different sizes, weights and levels."""
    rng = np.random.default_rng(seed)
    strata = rng.choice(3, size=n, p=[0.7, 0.25, 0.05])
    score = rng.beta(2, 3, size=n)
    code = (rng.random(n) < score).astype(int)
    values = np.stack([40.0 * (code & (strata == 2)), rng.lognormal(size=n) * (1 + strata), score + 1000], axis=1)
    return {
        "values": values,
        "weights": np.array([3.0, 1.0, 0.2])[strata] * rng.uniform(0.5, 1.5, size=n),
        "strata": strata,
        "order": score,
        "code": code,
    }


def expected(values: np.ndarray, weights: np.ndarray, strata: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The weighted mean, and the covariance `sum_h W_h^2 sum w^2 (v - m)(v - m)' / (sum w)^2`."""
    mean, covariance = 0.0, 0.0
    for h in np.unique(strata):
        w, v = weights[strata == h], values[strata == h]
        share, centre = w.sum() / weights.sum(), np.average(v, axis=0, weights=w)
        mean = mean + share * centre
        deviations = w[:, None] * (v - centre) / w.sum()
        covariance = covariance + share**2 * deviations.T @ deviations
    return mean, covariance


def assert_covariance(replicates: np.ndarray, covariance: np.ndarray) -> None:
    """Within sampling error: 5 standard errors of a variance, 2 / B relative."""
    scale = np.sqrt(np.diag(covariance))
    got = np.cov(replicates.T) / np.outer(scale, scale)
    assert np.abs(got - covariance / np.outer(scale, scale)).max() < 5 * math.sqrt(2 / len(replicates))


class TestVariance:
    def test_items_have_the_analytic_covariance(self) -> None:
        d = data(3000)
        got = poisson_means(d["values"], weights=d["weights"], strata=d["strata"], replicates=4000, seed=1)
        mean, covariance = expected(d["values"], d["weights"], d["strata"])
        assert_covariance(got, covariance)
        assert np.abs((got.mean(0) - mean) / np.sqrt(np.diag(covariance) / 4000)).max() < 6

    @pytest.mark.parametrize("max_cells", [20, 300])
    def test_cells_have_the_analytic_covariance(self, monkeypatch: pytest.MonkeyPatch, max_cells: int) -> None:
        monkeypatch.setattr(bootstrap, "_MOST_DRAWS", 0)
        d = data(20_000)
        got = poisson_means(**d, replicates=4000, seed=2, max_cells=max_cells)
        mean, covariance = expected(d["values"], d["weights"], d["strata"])
        assert_covariance(got, covariance)
        assert np.abs((got.mean(0) - mean) / np.sqrt(np.diag(covariance) / 4000)).max() < 6

    def test_cells_without_order_or_code_too(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(bootstrap, "_MOST_DRAWS", 0)
        d = data(20_000)
        got = poisson_means(
            d["values"], weights=d["weights"], strata=d["strata"], replicates=4000, seed=3, max_cells=5
        )
        assert_covariance(got, expected(d["values"], d["weights"], d["strata"])[1])

    def test_cells_have_the_distribution_of_items(self, monkeypatch: pytest.MonkeyPatch) -> None:
        d = data(3000)
        items = poisson_means(d["values"], weights=d["weights"], strata=d["strata"], replicates=4000, seed=4)
        monkeypatch.setattr(bootstrap, "_MOST_DRAWS", 0)
        cells = poisson_means(**d, replicates=4000, seed=5, max_cells=400)
        for q in range(3):
            assert stats.ks_2samp(items[:, q], cells[:, q]).pvalue > 1e-4

    def test_groups_have_the_robust_variance(self) -> None:
        rng = np.random.default_rng(6)
        groups = np.repeat(np.arange(200), rng.integers(1, 6, size=200))
        v = rng.normal(size=200)[groups] + 0.3 * rng.normal(size=groups.size)
        w = rng.uniform(0.5, 2, size=groups.size)
        got = poisson_means(v, weights=w, groups=groups, replicates=4000, seed=7)
        robust = paired_difference(v, w, groups).se * math.sqrt(199 / 200)
        assert got.std() == pytest.approx(robust, rel=0.08)

    def test_columns_of_one_row_are_paired(self) -> None:
        v = np.random.default_rng(8).normal(size=500)
        got = poisson_means(np.stack([v, v + 0.25], axis=1), replicates=50, seed=9)
        assert got[:, 1] - got[:, 0] == pytest.approx(np.full(50, 0.25))


class TestStrata:
    def test_weight_of_a_stratum_is_held_fixed(self) -> None:
        # Each stratum is constant, so nothing is left to vary.
        strata = np.array(["a"] * 30 + ["b"] * 10)
        v = np.where(strata == "a", 1.0, 5.0)
        got = poisson_means(v, strata=strata, replicates=200, seed=1)
        assert got[:, 0] == pytest.approx(np.full(200, 2.0))

    def test_stratum_that_draws_nothing_keeps_its_mean(self) -> None:
        # One item in the stratum: it draws nothing in 37 % of replicates.
        got = poisson_means([1.0] * 30 + [7.0], strata=[0] * 30 + [1], replicates=300, seed=1)
        assert got[:, 0] == pytest.approx(np.full(300, (30 + 7) / 31))

    def test_small_strata_keep_their_items_apart(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(bootstrap, "_MOST_DRAWS", 0)
        strata = np.repeat([0, 1], [5000, 10])
        v = np.zeros(5010)
        v[-10:] = np.arange(10)
        got = poisson_means(v, strata=strata, order=np.zeros(5010), replicates=4000, seed=1, max_cells=50)
        # Ten items drawn one by one give few distinct means; a normal term would give 4000.
        assert np.unique(np.round(got, 12)).size < 3000
        assert got.min() >= 0

    def test_items_without_weight_count_nowhere(self) -> None:
        v = np.array([1.0, 2.0, 5.0])
        got = poisson_means(np.append(v, 99.0), weights=[1, 1, 1, 0], strata=[0, 0, 0, 1], replicates=50, seed=3)
        assert (got == poisson_means(v, replicates=50, seed=3)).all()


class TestGroups:
    def test_weights_are_poisson(self) -> None:
        w = hashed_poisson(np.arange(4000), range(500), seed=1)
        count = np.bincount(w.ravel(), minlength=8)[:8]
        chances = stats.poisson.pmf(np.arange(7), 1) / stats.poisson.cdf(6, 1)
        assert stats.chisquare(count[:7], chances * count[:7].sum()).pvalue > 1e-4
        rows, columns = np.corrcoef(w[:50]), np.corrcoef(w[:, :50].T)
        for matrix, size in ((rows, 4000), (columns, 500)):
            off = matrix[np.triu_indices(50, 1)]
            assert abs(off.mean()) < 5 / math.sqrt(size * off.size)
            assert off.std() == pytest.approx(1 / math.sqrt(size), rel=0.15)

    def test_steps_are_the_distribution_function(self) -> None:
        got = bootstrap._STEPS.astype(float) / 2.0**64
        assert got == pytest.approx(stats.poisson.cdf(np.arange(got.size), 1), abs=1e-15)

    @given(st.lists(st.text(), min_size=1, max_size=20, unique=True), st.integers(0, 2**64), st.integers(0, 99))
    def test_a_weight_depends_on_label_replicate_and_seed_alone(self, labels, seed, row) -> None:  # type: ignore[no-untyped-def]
        whole = hashed_poisson(np.array(labels, dtype=object), range(row + 1), seed)[row]
        alone = [
            int(hashed_poisson(np.array([label], dtype=object), range(row, row + 1), seed)[0, 0])
            for label in labels
        ]
        assert whole.tolist() == alone
        assert (
            hashed_poisson(np.array([7]), range(5), seed) == hashed_poisson(np.array(["7"]), range(5), seed)
        ).all()

    def test_parts_drawn_apart_merge_exactly(self) -> None:
        # Whole numbers, so that sums are exact. Groups are split over both parts.
        rng = np.random.default_rng(2)
        groups, v = rng.integers(0, 50, size=400), rng.integers(0, 9, size=400).astype(float)
        labels = np.arange(50)
        totals = []
        for part in (slice(0, 150), slice(150, 400)):
            weights = hashed_poisson(labels, range(30), seed=4).astype(float)[:, groups[part]]
            totals.append(np.stack([weights @ v[part], weights.sum(1)]))
        numerator, denominator = totals[0] + totals[1]
        whole = poisson_means(v, groups=groups, replicates=30, seed=4)[:, 0]
        assert whole == pytest.approx(numerator / denominator, rel=1e-12)

    def test_groups_across_strata_share_their_weight(self) -> None:
        # Two items a group, one in each stratum, mirrored: with shared draws the sum never varies.
        groups, strata = np.tile(np.arange(40), 2), np.repeat([0, 1], 40)
        v = np.concatenate([np.arange(40.0), -np.arange(40.0)])
        assert poisson_means(v, groups=groups, strata=strata, replicates=40, seed=1) == pytest.approx(
            np.zeros((40, 1))
        )

    def test_too_few(self) -> None:
        assert too_few_groups(["a", "b"] * 30)
        assert too_few_groups(range(19))
        assert not too_few_groups(range(20))


class TestSize:
    def test_memory_is_flat(self) -> None:
        n = 200_000
        rng = np.random.default_rng(1)
        values = rng.normal(size=(n, 4))
        strata, order = rng.integers(0, 4, size=n), rng.random(n)
        tracemalloc.start()
        got = poisson_means(values, strata=strata, order=order, replicates=1000, seed=1, max_cells=1024)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 60e6  # n * B draws would be 1.6 GB
        assert got.std(0) == pytest.approx(np.full(4, 1 / math.sqrt(n)), rel=0.12)

    def test_more_replicates_only_add_rows(self) -> None:
        d = data(5000)
        few = poisson_means(**d, replicates=300, seed=1)
        assert poisson_means(**d, replicates=700, seed=1)[:300] == pytest.approx(few, rel=1e-12)
        assert np.abs(poisson_means(**d, replicates=300, seed=2) - few).max() > 1e-3


class TestPercentileInterval:
    def test_ranks(self) -> None:
        x = np.random.default_rng(1).permutation(2000).astype(float)  # 0 .. 1999
        assert percentile_interval(x) == (49.0, 1950.0)
        assert percentile_interval(x, 0.9) == (99.0, 1900.0)
        assert percentile_interval([3.0]) == (3.0, 3.0)

    @settings(max_examples=30)
    @given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=200), st.sampled_from([0.5, 0.9, 0.95]))
    def test_mirrors(self, x: list[float], confidence: float) -> None:
        lower, upper = percentile_interval(x, confidence)
        mirrored = percentile_interval([-v for v in x], confidence)
        assert (lower, upper) == (-mirrored[1], -mirrored[0])
        assert lower <= upper

    def test_by_column(self) -> None:
        x = np.random.default_rng(2).normal(size=(100, 3))
        lower, upper = percentile_interval(x)
        assert [(lower[q], upper[q]) for q in range(3)] == [percentile_interval(x[:, q]) for q in range(3)]

    def test_refused(self) -> None:
        with pytest.raises(ValueError, match="The `replicates` parameter of `percentile_interval`"):
            percentile_interval([])
        with pytest.raises(ValueError, match="The `replicates` parameter of `percentile_interval`"):
            percentile_interval([1.0, math.nan])


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"values": [1.0, math.nan]}, "values"),
        ({"values": np.zeros((2, 2, 2))}, "values"),
        ({"values": [1.0, 2.0], "weights": [0.0, 0.0]}, "weights"),
        ({"values": [1.0, 2.0], "weights": [1.0, -1.0]}, "weights"),
        ({"values": [1.0, 2.0], "strata": [0]}, "strata"),
        ({"values": [1.0, 2.0], "groups": [0]}, "groups"),
        ({"values": [1.0, 2.0], "replicates": 0}, "replicates"),
        ({"values": [1.0, 2.0], "max_cells": 0}, "max_cells"),
        ({"values": [1.0, 2.0], "seed": -1}, "seed"),
        ({"values": []}, "weights"),
    ],
)
def test_refused(arguments: dict[str, object], name: str) -> None:
    with pytest.raises(ValueError, match=f"The `{name}` parameter of `"):
        poisson_means(**({"replicates": 10, "seed": 1} | arguments))  # type: ignore[arg-type]


def test_coverage_of_the_interval_of_a_mean() -> None:
    rng = np.random.default_rng(12)
    hits = 0
    for study in range(300):
        x = rng.exponential(size=80)
        lower, upper = percentile_interval(poisson_means(x, replicates=400, seed=study)[:, 0])
        hits += lower <= 1 <= upper
    assert 0.88 <= hits / 300 <= 0.98
