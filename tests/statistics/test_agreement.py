"""Agreement of raters against printed and published values, scikit-learn and statsmodels."""

from __future__ import annotations

import json
import math
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa

from evalkit.statistics.agreement import Level, cohen_kappa, gwet_ac1, krippendorff_alpha, raw_agreement

PARADOX = [[90, 5], [5, 0]]
BALANCED = [[40, 6], [9, 45]]
TIERS = [[30, 5, 1, 0], [4, 25, 4, 0], [1, 3, 15, 2], [0, 0, 2, 8]]


def ratings(table: list[list[int]]) -> np.ndarray:
    """Two raters whose cross table this is."""
    return np.array(
        [(i, j) for i, row in enumerate(table) for j, count in enumerate(row) for _ in range(count)], float
    )


@pytest.fixture(scope="module")
def golden(shared: Path) -> dict[str, Any]:
    return json.loads((shared / "golden" / "statistics.json").read_text(encoding="utf-8"))["8_labels"]


class TestGolden:
    def test_printed_values(self) -> None:
        r = ratings(PARADOX)
        assert cohen_kappa(r) == pytest.approx(-0.052631579, abs=6e-10)
        assert gwet_ac1(r) == pytest.approx(0.88950276, abs=6e-9)
        assert raw_agreement(r) == pytest.approx(0.9)

    @pytest.mark.parametrize(
        ("name", "table"),
        [("agree_prevalence_paradox", PARADOX), ("agree_balanced", BALANCED), ("agree_K4_tiers", TIERS)],
    )
    def test_values_in_the_folder(self, golden: dict[str, Any], name: str, table: list[list[int]]) -> None:
        r, expected = ratings(table), golden[name]
        got = [raw_agreement(r), cohen_kappa(r), gwet_ac1(r), krippendorff_alpha(r)]
        assert got == pytest.approx([expected[key] for key in ("po", "kappa", "ac1", "alpha")], rel=1e-12)
        for level in (Level.ORDINAL, Level.INTERVAL):
            if f"alpha_{level}" in expected:
                assert krippendorff_alpha(r, level) == pytest.approx(expected[f"alpha_{level}"], rel=1e-12)

    def test_tiers_without_the_folder(self) -> None:
        got = [krippendorff_alpha(ratings(TIERS), level) for level in Level]
        assert got == pytest.approx([0.6911899556, 0.8402175150, 0.8558567881], abs=6e-11)


class TestKrippendorffsExample:
    """Four observers, twelve units, missing values (Krippendorff 2011, "Computing Krippendorff's alpha")."""

    nan = math.nan
    table = np.array([
        [1, 2, 3, 3, 2, 1, 4, 1, 2, nan, nan, nan],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, nan, 3],
        [nan, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, nan],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, nan],
    ]).T  # fmt: skip

    def test_published_values(self) -> None:
        got = [krippendorff_alpha(self.table, level) for level in Level]
        assert got == pytest.approx([0.743, 0.815, 0.849], abs=5e-4)

    def test_an_item_rated_once_counts_for_nothing(self) -> None:
        assert krippendorff_alpha(self.table[:-1]) == krippendorff_alpha(self.table)

    def test_by_hand(self) -> None:
        # Pairs within units: (0, 0), (1, 1), (1, 1), (0, 1), one unit of three equal ratings (0, 0, 0).
        # Coincidences: o00 = 2 + 3 = 5, o11 = 4, o01 = o10 = 1; n = 11, n0 = 6, n1 = 5.
        # alpha = 1 - 10 * (1 + 1) / (2 * 6 * 5) = 1 - 20 / 60 = 2 / 3.
        nan = math.nan
        table = [[0, 0, nan], [1, 1, nan], [1, nan, 1], [nan, 0, 1], [0, 0, 0], [1, nan, nan]]
        assert krippendorff_alpha(table) == pytest.approx(2 / 3)


class TestAgainstOthers:
    TABLES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30)

    @given(TABLES)
    def test_kappa_equals_scikit_learn(self, pairs: list[tuple[int, int]]) -> None:
        r = np.array(pairs, dtype=float)
        got = cohen_kappa(r)
        if got is None:
            assert np.unique(r).size == 1
        else:
            assert got == pytest.approx(cohen_kappa_score(r[:, 0].astype(int), r[:, 1].astype(int)), abs=1e-12)

    @given(st.lists(st.lists(st.integers(0, 2), min_size=4, max_size=4), min_size=2, max_size=15))
    def test_nominal_alpha_and_fleiss(self, items: list[list[int]]) -> None:
        # With every item rated by all, alpha = 1 - (1 - 1 / (N r)) (1 - Fleiss' kappa).
        r = np.array(items, dtype=float)
        if np.unique(r).size > 1:
            kappa = fleiss_kappa(aggregate_raters(r.astype(int))[0])
            expected = 1 - (1 - 1 / r.size) * (1 - kappa)
            assert krippendorff_alpha(r) == pytest.approx(expected, abs=1e-9)

    ROWS = st.lists(
        st.lists(st.sampled_from([0.0, 1.0, 2.0, 5.0, math.nan]), min_size=3, max_size=3), min_size=1, max_size=12
    )

    @given(ROWS, st.sampled_from(list(Level)))
    def test_alpha_is_its_definition(self, items: list[list[float]], level: Level) -> None:
        units = [[v for v in row if v == v] for row in items]
        units = [unit for unit in units if len(unit) > 1]
        values = [v for unit in units for v in unit]
        got = krippendorff_alpha(items, level)
        if len(set(values)) < 2:
            assert got is None
            return

        def distance(a: float, b: float) -> float:
            if level is Level.NOMINAL:
                return float(a != b)
            if level is Level.INTERVAL:
                return (a - b) ** 2
            low, high = sorted((a, b))
            between = sum(low <= v <= high for v in values)
            return 0.0 if a == b else (between - (values.count(a) + values.count(b)) / 2) ** 2

        observed = sum(2 * distance(a, b) / (len(unit) - 1) for unit in units for a, b in combinations(unit, 2))
        expected = sum(2 * distance(a, b) for a, b in combinations(values, 2))
        assert got == pytest.approx(1 - observed / expected * (len(values) - 1), abs=1e-9)

    @given(ROWS)
    def test_order_of_items_and_raters_does_not_matter(self, items: list[list[float]]) -> None:
        table = np.array(items)
        for function in (raw_agreement, gwet_ac1, krippendorff_alpha):
            got, turned = function(table), function(table[::-1, ::-1])
            assert (got is None) == (turned is None)
            assert got is None or got == pytest.approx(turned, abs=1e-12)

    def test_ac1_by_hand_with_three_raters(self) -> None:
        # Items (a a b), (b b b): p_a = (1/3 + 1) / 2; shares of a: 2/3, 0 -> pi = 1/3, p_e = 2 * 1/3 * 2/3 = 4/9.
        assert gwet_ac1([[0, 0, 1], [1, 1, 1]]) == pytest.approx((2 / 3 - 4 / 9) / (5 / 9))
        # Declared as one of four categories: p_e = (1/3 * 2/3 * 2) / 3.
        assert gwet_ac1([[0, 0, 1], [1, 1, 1]], categories=4) == pytest.approx((2 / 3 - 4 / 27) / (23 / 27))


def test_nothing_to_say() -> None:
    nan = math.nan
    for empty in ([[nan, nan]], [[1.0, nan]], np.empty((0, 2))):
        assert raw_agreement(empty) is None
        assert krippendorff_alpha(empty) is None
        assert gwet_ac1(empty) is None
        assert cohen_kappa(empty) is None
    same = [[1.0, 1.0], [1.0, 1.0]]
    assert raw_agreement(same) == 1.0
    assert (krippendorff_alpha(same), gwet_ac1(same), cohen_kappa(same)) == (None, None, None)
    assert gwet_ac1(same, categories=4) == 1.0


def test_refused() -> None:
    with pytest.raises(ValueError, match=r"The `ratings` parameter of `cohen_kappa` must be \(items, 2\)"):
        cohen_kappa([[1, 2, 3]])
    with pytest.raises(
        ValueError, match=r"The `ratings` parameter of `krippendorff_alpha` must be \(items, raters\)"
    ):
        krippendorff_alpha([1, 2, 3])
    with pytest.raises(ValueError, match=r"The `ratings` parameter of `raw_agreement` must be finite or NaN"):
        raw_agreement([[math.inf, 1]])
