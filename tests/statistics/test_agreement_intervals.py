"""Intervals of agreement against the coefficients themselves, and who leans low."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evalkit.statistics.agreement import Level, gwet_ac1, krippendorff_alpha
from evalkit.statistics.agreement_intervals import _ac1s, _alphas, _sums, agreement_with_intervals
from evalkit.statistics.direction import leanings

TIERS = [[30, 5, 1, 0], [4, 25, 4, 0], [1, 3, 15, 2], [0, 0, 2, 8]]


def ratings(table: list[list[int]]) -> np.ndarray:
    return np.array([(i, j) for i, row in enumerate(table) for j, n in enumerate(row) for _ in range(n)], float)


def test_golden_values_are_the_estimates(shared: Path) -> None:
    golden = json.loads((shared / "golden" / "statistics.json").read_text(encoding="utf-8"))["8_labels"]
    got = agreement_with_intervals(ratings(TIERS), 4, replicates=200)
    assert got.raw.value == pytest.approx(golden["agree_K4_tiers"]["po"])
    assert got.alpha.value == pytest.approx(golden["agree_K4_tiers"]["alpha_ordinal"])
    assert got.ac1.value == pytest.approx(golden["agree_K4_tiers"]["ac1"])
    paradox = agreement_with_intervals(ratings([[90, 5], [5, 0]]), 2, level=Level.NOMINAL, replicates=200)
    assert paradox.ac1.value == pytest.approx(0.88950276, abs=6e-9)


@given(
    st.lists(st.lists(st.sampled_from([0.0, 1.0, 2.0, np.nan]), min_size=3, max_size=3), min_size=2, max_size=25)
)
def test_the_resampled_sums_are_the_coefficients(rows: list[list[float]]) -> None:
    table = np.array(rows)
    counts = np.stack([(table == c).sum(axis=1) for c in range(3)], axis=1).astype(float)
    total = _sums(counts).sum(axis=0, keepdims=True)
    for level in Level:
        expected = krippendorff_alpha(table, level)
        got = _alphas(total, 3, level)[0]
        assert np.isnan(got) if expected is None else got == pytest.approx(expected, abs=1e-9)
    expected = gwet_ac1(table, 3)
    got = _ac1s(total, 3)[0]
    assert np.isnan(got) if expected is None else got == pytest.approx(expected, abs=1e-9)


def test_intervals_cover_and_are_seeded() -> None:
    """Two raters who each keep the true tier with chance .9: AC1 of the population from its formula."""
    k, keep = 3, 0.9
    flip = np.full((k, k), (1 - keep) / (k - 1)) + np.eye(k) * (keep - (1 - keep) / (k - 1))
    share = np.array([0.6, 0.3, 0.1])
    joint = np.einsum("t,ta,tb->ab", share, flip, flip)
    margin = joint.sum(axis=0)
    chance = (margin * (1 - margin)).sum() / (k - 1)
    true = (np.trace(joint) - chance) / (1 - chance)
    rng = np.random.default_rng(5)
    hits = 0
    for _ in range(200):
        cells = rng.choice(k * k, size=150, p=joint.ravel())
        got = agreement_with_intervals(np.stack([cells // k, cells % k], axis=1), k, replicates=300)
        assert got.ac1.lower is not None
        hits += got.ac1.lower <= true <= got.ac1.upper
    assert hits / 200 >= 0.9
    again = agreement_with_intervals(ratings(TIERS), 4, seed=3, replicates=300)
    assert again == agreement_with_intervals(ratings(TIERS), 4, seed=3, replicates=300)


def test_no_disagreement_has_no_interval_by_resampling() -> None:
    got = agreement_with_intervals(np.zeros((30, 2)), 2)
    assert (got.raw.value, got.ac1.value, got.alpha.value) == (1.0, 1.0, None)
    assert (got.ac1.lower, got.alpha.lower) == (None, None)
    assert got.raw.lower is not None
    assert got.raw.lower < 0.9


def test_conversations_widen_the_interval() -> None:
    rng = np.random.default_rng(2)
    per = np.repeat(rng.random(20) < 0.5, 20)
    table = np.stack([np.repeat(rng.integers(0, 2, 20), 20).astype(float)] * 2, axis=1)
    table[per, 1] = 1 - table[per, 1]
    items = agreement_with_intervals(table, 2, replicates=500)
    groups = agreement_with_intervals(table, 2, groups=np.repeat(np.arange(20), 20), replicates=500)
    assert groups.units == 20
    assert groups.ac1.upper - groups.ac1.lower > 2 * (items.ac1.upper - items.ac1.lower)


class TestLeanings:
    def test_planted_annotator_is_the_only_one_found(self) -> None:
        """Three annotators; the third calls 20 % of the strong needs cheap, all err both ways in 3 %."""
        rng = np.random.default_rng(4)
        true = rng.choice(3, size=400, p=[0.6, 0.15, 0.25]).astype(float)
        table = np.stack([true] * 3, axis=1)
        for j in range(3):
            noisy = rng.random(400) < 0.03
            table[noisy, j] = rng.integers(0, 3, noisy.sum())
        strong = np.flatnonzero(true == 2)
        missed = rng.choice(strong, size=len(strong) // 5, replace=False)
        table[missed, 2] = 0
        got = leanings(table)
        assert [row.leans_low for row in got] == [False, False, True]
        assert got[2].missed is not None
        assert got[2].below >= 0.9 * len(missed)
        assert got[2].p_below == pytest.approx(
            stats.binomtest(got[2].below, got[2].below + got[2].above, 0.5, "greater").pvalue
        )

    def test_counts_by_hand(self) -> None:
        table = [[0, 1, 1], [1, 1, 1], [0, 0, 1], [np.nan, 1, 1], [2, 1, 1], [0, 1, 2]]
        first = leanings(table)[0]
        # the others agree on rows 1, 2, 5 (and 4, which the first did not rate); rows 3 and 6 have no majority
        assert (first.compared, first.higher, first.below, first.above) == (3, 3, 1, 1)
        assert first.missed == pytest.approx(1 / 3)

    def test_honest_annotators_are_rarely_accused(self) -> None:
        rng = np.random.default_rng(9)
        accused = 0
        for _ in range(200):
            true = rng.choice(3, size=200, p=[0.6, 0.2, 0.2]).astype(float)
            table = np.stack([true] * 3, axis=1)
            for j in range(3):
                up = rng.random(200) < 0.05
                table[up, j] = np.clip(true[up] + rng.choice([-1, 1], up.sum()), 0, 2)
            accused += any(row.leans_low for row in leanings(table))
        assert accused / 200 <= 0.15
