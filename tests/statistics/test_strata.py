"""Reweighting to traffic shares, against printed values and Welch's test."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evalkit.statistics.strata import stratified_mean

SHARES = {"low": 0.8, "medium": 0.15, "high": 0.05}
# 1 of 10, 3 of 10, 14 of 20: the risky stratum is sampled at eight times its share.
STRATA = np.repeat(["low", "medium", "high"], [10, 10, 20])
VALUES = np.concatenate([np.arange(10) < 1, np.arange(10) < 3, np.arange(20) < 14]).astype(float)


def test_printed_values() -> None:
    got = stratified_mean(VALUES, STRATA, SHARES)
    assert got.mean == pytest.approx(0.16)
    assert VALUES.mean() == pytest.approx(0.45)  # what it would be unweighted
    assert got.se == pytest.approx(0.083382442, abs=6e-10)
    assert got.df == pytest.approx(10.550, abs=6e-4)


def test_golden_values(shared: Path) -> None:
    golden = json.loads((shared / "golden" / "statistics.json").read_text(encoding="utf-8"))["6_strata"]
    got = stratified_mean(VALUES, STRATA, SHARES)
    assert [got.mean, got.se, got.df] == pytest.approx(
        [golden["poststrat"], golden["se_strat"], golden["df_satterthwaite"]]
    )
    assert [got.lower, got.upper] == pytest.approx(golden["t95"])
    missing = golden["missing_stratum_2pct"]
    shares = {label: 0.98 * share for label, share in SHARES.items()} | {"unseen": 0.02}
    got = stratified_mean(VALUES, STRATA, shares)
    assert [got.covered_mean, got.least, got.most] == pytest.approx(
        [missing["covered"], missing["lower"], missing["upper"]]
    )


def test_empty_stratum_leaves_no_overall_figure() -> None:
    got = stratified_mean(VALUES, STRATA, {"low": 0.784, "medium": 0.147, "high": 0.049, "unseen": 0.02})
    assert (got.mean, got.se, got.df, got.lower, got.upper) == (None, None, None, None, None)
    assert (got.least, got.most) == pytest.approx((0.1568, 0.1768))
    assert got.covered_share == pytest.approx(0.98)
    assert got.strata["unseen"].n == 0
    unbounded = stratified_mean(VALUES, STRATA, {**SHARES, "unseen": 0.02}, value_range=None)
    assert (unbounded.least, unbounded.most) == (None, None)


def test_stratum_of_one_item_has_a_mean_but_no_variance() -> None:
    got = stratified_mean([1.0, 0.0, 1.0], ["a", "a", "b"], {"a": 0.5, "b": 0.5})
    assert got.mean == pytest.approx(0.75)
    assert (got.se, got.df, got.lower, got.upper) == (None, None, None, None)


def test_two_strata_are_welch() -> None:
    # Y = (mean_a + mean_b) / 2 has half the standard error and the degrees of freedom of Welch's difference.
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=7), rng.normal(3, 4, size=12)
    got = stratified_mean(np.concatenate([a, b]), ["a"] * 7 + ["b"] * 12, {"a": 1, "b": 1}, value_range=None)
    welch = stats.ttest_ind(a, b, equal_var=False)
    assert got.df == pytest.approx(welch.df)
    assert got.se == pytest.approx((a.mean() - b.mean()) / welch.statistic / 2)


@given(st.lists(st.floats(-10, 10), min_size=2, max_size=30))
def test_one_stratum_is_the_t_interval(x: list[float]) -> None:
    got = stratified_mean(x, ["s"] * len(x), {"s": 3.0})
    assert got.mean == pytest.approx(np.mean(x))
    assert got.df == pytest.approx(len(x) - 1)
    if np.ptp(x) > 1e-6:
        assert (got.lower, got.upper) == pytest.approx(
            tuple(stats.ttest_1samp(x, 0).confidence_interval()), abs=1e-9
        )


def test_shares_equal_to_the_sample_change_nothing() -> None:
    got = stratified_mean(VALUES, STRATA, {"low": 10, "medium": 10, "high": 20})
    assert got.mean == pytest.approx(VALUES.mean())


def test_refused() -> None:
    with pytest.raises(ValueError, match=r"The `shares` parameter .* given for every label. Got 'none for low'"):
        stratified_mean(VALUES, STRATA, {"medium": 1, "high": 1})
    with pytest.raises(ValueError, match="The `shares` parameter of `stratified_mean` must be finite, 0 or more"):
        stratified_mean(VALUES, STRATA, {"low": -1, "medium": 1, "high": 1})
    with pytest.raises(ValueError, match="The `shares` parameter of `stratified_mean` must be finite, 0 or more"):
        stratified_mean([], [], {})
    with pytest.raises(
        ValueError, match="The `strata` parameter of `stratified_mean` must be one label per value"
    ):
        stratified_mean([1.0], ["a", "b"], {"a": 1, "b": 1})


def test_no_items_at_all() -> None:
    got = stratified_mean([], [], {"a": 1.0})
    assert (got.mean, got.covered_mean, got.covered_share) == (None, None, 0)
    assert (got.least, got.most) == (0, 1)
