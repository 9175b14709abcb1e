"""Drift of the mix against printed values, SciPy and what chance alone does."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.spatial.distance import jensenshannon

from evalkit.statistics.drift import drift, goodness_of_fit

LABELS, LIVE = [240, 100, 40, 20], [2500, 1350, 750, 400]
COUNTS = st.lists(st.integers(0, 60), min_size=3, max_size=3)


def test_golden_values(shared: Path) -> None:
    golden = json.loads((shared / "golden" / "statistics.json").read_text(encoding="utf-8"))["10_stop_drift"][
        "drift"
    ]
    got = drift(LABELS, LIVE)
    assert got.psi == pytest.approx(golden["psi"])
    assert got.psi_null_mean == pytest.approx(golden["psi_null_mean"])
    assert got.psi_null_upper == pytest.approx(golden["psi_null_95"])
    assert got.js_distance == pytest.approx(golden["js_distance_nat"])
    assert got.js_divergence == pytest.approx(golden["js_divergence_nat"])
    assert got.js_divergence / math.log(2) == pytest.approx(golden["js_divergence_bits"])
    assert got.p_value == pytest.approx(golden["chi2_2sample_p"])
    fit = goodness_of_fit(LABELS, LIVE)
    assert (fit.chi2, fit.p_value) == pytest.approx((golden["chi2_gof"], golden["chi2_gof_p"]))
    for n in (100, 300, 1000, 10_000):
        ten = drift([n / 10] * 10, [1e5] * 10)
        assert ten.psi_null_upper == pytest.approx(golden[f"psi_null95_10bins_n={n},m=1e6"])


def test_values_without_the_folder() -> None:
    got = drift(LABELS, LIVE)
    p, q = np.array([0.6, 0.25, 0.1, 0.05]), np.array([0.5, 0.27, 0.15, 0.08])
    assert got.psi == pytest.approx(float(((p - q) * np.log(p / q)).sum()))
    assert got.psi_null_upper == pytest.approx((1 / 400 + 1 / 5000) * stats.chi2.ppf(0.95, 3))
    assert got.psi_null_mean == pytest.approx(0.0081)


@given(COUNTS, COUNTS)
def test_equals_scipy(a: list[int], b: list[int]) -> None:
    got = drift(a, b)
    if not sum(a) or not sum(b):
        assert got is None
        return
    used = [i for i in range(3) if a[i] + b[i]]
    table = np.array([a, b])[:, used]
    test = stats.chi2_contingency(table, correction=False)
    assert got.chi2 == pytest.approx(test.statistic, abs=1e-9)
    assert got.p_value == pytest.approx(test.pvalue, abs=1e-9)
    assert got.js_distance == pytest.approx(jensenshannon(a, b), abs=1e-7)
    assert got.js_divergence == pytest.approx(got.js_distance**2)
    assert got.smoothed == bool((table == 0).any())
    for value in (got.psi, got.psi_null_mean, got.psi_null_upper):
        assert math.isfinite(value)
        assert value >= -1e-12


@given(COUNTS, COUNTS)
def test_both_sides_are_alike(a: list[int], b: list[int]) -> None:
    one, other = drift(a, b), drift(b, a)
    if one is not None:
        assert (one.psi, one.chi2, one.js_divergence) == pytest.approx(
            (other.psi, other.chi2, other.js_divergence), abs=1e-12
        )


@given(COUNTS)
def test_same_mix_has_no_drift(a: list[int]) -> None:
    got = drift(a, [10 * x for x in a])
    if got is not None:
        assert (got.psi, got.chi2, got.js_divergence) == pytest.approx((0, 0, 0), abs=1e-12)
        assert got.p_value == pytest.approx(1)


def test_null_is_what_chance_does() -> None:
    rng = np.random.default_rng(1)
    p = [0.4, 0.3, 0.2, 0.1]
    results = [drift(rng.multinomial(400, p), rng.multinomial(5000, p)) for _ in range(2000)]
    values = np.array([result.psi for result in results])
    assert values.mean() == pytest.approx(results[0].psi_null_mean, rel=0.08)
    assert np.mean(values > results[0].psi_null_upper) == pytest.approx(0.05, abs=0.02)
    assert np.mean([result.p_value < 0.05 for result in results]) == pytest.approx(0.05, abs=0.02)


def test_empty_cell_is_smoothed() -> None:
    got = drift([10, 0], [5, 5])
    p, q = np.array([10.5, 0.5]) / 11, np.array([0.5, 0.5])
    assert got.smoothed
    assert got.psi == pytest.approx(float(((p - q) * np.log(p / q)).sum()))


def test_one_category() -> None:
    got = drift([7], [9])
    assert (got.psi, got.psi_null_upper, got.chi2, got.p_value, got.js_distance) == (0, 0, 0, 1, 0)
    assert goodness_of_fit([7, 0], [1, 0]).p_value == 1.0
    assert goodness_of_fit([0, 0], [1, 1]) is None


@given(COUNTS)
def test_goodness_of_fit_equals_scipy(a: list[int]) -> None:
    shares = np.array([0.5, 0.3, 0.2])
    got = goodness_of_fit(a, shares)
    if sum(a):
        assert (got.chi2, got.p_value) == pytest.approx(tuple(stats.chisquare(a, shares * sum(a))))


def test_refused() -> None:
    with pytest.raises(ValueError, match="The `live` parameter of `drift` must be one count per category"):
        drift([1, 2], [1])
    with pytest.raises(ValueError, match="The `reference` parameter of `drift` must be"):
        drift([-1, 2], [1, 2])
    with pytest.raises(ValueError, match="The `shares` parameter of `goodness_of_fit` must be above 0 wherever"):
        goodness_of_fit([1, 2], [1, 0])
    with pytest.raises(ValueError, match="The `shares` parameter of `goodness_of_fit` must be 2 numbers"):
        goodness_of_fit([1, 2], [0, 0])
