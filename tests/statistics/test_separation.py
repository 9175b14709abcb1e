"""AUC and its interval against printed values, scikit-learn and DeLong's own sums."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import roc_auc_score

from evalkit.statistics import separation as module
from evalkit.statistics.separation import separation

SCORES = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=25)


def by_pairs(high: np.ndarray, low: np.ndarray) -> tuple[float, float]:
    """AUC and DeLong's variance by comparing every positive with every negative."""
    wins = (high[:, None] > low) + 0.5 * (high[:, None] == low)
    return wins.mean(), wins.mean(1).var(ddof=1) / high.size + wins.mean(0).var(ddof=1) / low.size


class TestGolden:
    # Twelve positives and ten negatives with ties, made to have the printed area and variance.
    high = np.array([4, 5, 6, 6, 8, 8, 10, 10, 11, 11, 13, 13], dtype=float)
    low = np.array([0, 3, 3, 4, 4, 5, 7, 7, 8, 9], dtype=float)

    def test_printed_values(self) -> None:
        scores, positive = np.concatenate([self.high, self.low]), np.repeat([True, False], [12, 10])
        got = separation(scores, positive)
        assert got.auc == pytest.approx(0.82083333, abs=6e-9)
        assert got.variance == pytest.approx(0.0079296437, abs=6e-11)
        assert (got.lower, got.upper) == pytest.approx((0.58303, 0.93754), abs=6e-6)
        assert (got.n_positive, got.n_negative) == (12, 10)

    def test_golden_values(self, shared: Path) -> None:
        golden = json.loads((shared / "golden" / "statistics.json").read_text(encoding="utf-8"))
        expected = golden["10_stop_drift"]["auc"]
        got = separation(np.concatenate([self.high, self.low]), np.repeat([1, 0], [12, 10]))
        assert [got.auc, got.variance] == pytest.approx([expected["auc"], expected["delong_var"]], rel=1e-10)
        assert [got.lower, got.upper] == pytest.approx(expected["logit95"], rel=1e-8)


class TestAgainstOthers:
    @given(SCORES, SCORES)
    def test_equals_pairs_and_scikit_learn(self, high: list[float], low: list[float]) -> None:
        scores, positive = np.array(high + low), np.repeat([True, False], [len(high), len(low)])
        got = separation(scores, positive)
        assert got.auc == pytest.approx(roc_auc_score(positive, scores), abs=1e-12)
        if len(high) > 1 and len(low) > 1 and 0 < got.auc < 1:
            assert (got.auc, got.variance) == pytest.approx(by_pairs(np.array(high), np.array(low)), abs=1e-12)

    @given(SCORES, SCORES)
    def test_reversed_scores_reverse_the_interval(self, high: list[float], low: list[float]) -> None:
        scores, positive = np.array(high + low), np.repeat([True, False], [len(high), len(low)])
        one, other = separation(scores, positive), separation(-scores, positive)
        assert one.auc == pytest.approx(1 - other.auc, abs=1e-15)
        if one.lower is None:
            assert other.lower is None
        else:
            assert (one.lower, one.upper) == pytest.approx((1 - other.upper, 1 - other.lower), abs=1e-9)
            assert 0 <= one.lower <= one.auc + 1e-12
            assert one.auc - 1e-12 <= one.upper <= 1

    def test_large_with_many_ties(self) -> None:
        rng = np.random.default_rng(3)
        positive = rng.random(3000) < 0.1
        scores = np.round(rng.normal(size=3000) + positive, 1)
        got = separation(scores, positive)
        assert (got.auc, got.variance) == pytest.approx(by_pairs(scores[positive], scores[~positive]), rel=1e-12)

    def test_interval_covers(self) -> None:
        # Normal scores one standard deviation apart: the true area is Phi(1 / sqrt 2).
        rng = np.random.default_rng(11)
        true, hits, studies = stats.norm.cdf(1 / math.sqrt(2)), 0, 1500
        positive = np.repeat([True, False], [20, 60])
        for _ in range(studies):
            got = separation(rng.normal(size=80) + positive, positive)
            hits += got.lower <= true <= got.upper
        assert 0.92 <= hits / studies <= 0.98


class TestEnds:
    def test_complete_separation_has_no_interval_around_it(self) -> None:
        up = separation([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1])
        assert (up.auc, up.lower, up.upper) == (1.0, 1.0, 1.0)
        down = separation([0.1, 0.2, 0.8, 0.9], [1, 1, 0, 0])
        assert (down.auc, down.lower, down.upper) == (0.0, 0.0, 0.0)

    def test_constant_scores_do_not_separate(self) -> None:
        got = separation([0.5] * 9, [1] * 4 + [0] * 5)
        assert (got.auc, got.variance, got.lower, got.upper) == (0.5, 0.0, 0.5, 0.5)

    def test_a_class_of_one_item_has_no_variance(self) -> None:
        got = separation([1.0, 2.0, 3.0], [0, 1, 0])
        assert (got.auc, got.variance, got.lower, got.upper) == (0.5, None, None, None)

    def test_an_empty_class_has_no_area(self) -> None:
        assert separation([1.0, 2.0], [True, True]) is None
        assert separation([1.0, 2.0], [False, False]) is None
        assert separation([], np.array([], dtype=bool)) is None

    def test_infinite_scores_rank_last(self) -> None:
        assert separation([math.inf, 1.0, -math.inf], [True, False, False]).auc == 1.0

    def test_refused(self) -> None:
        with pytest.raises(ValueError, match=r"The `scores` parameter of `separation` must be free of NaN"):
            separation([1.0, math.nan], [True, False])
        with pytest.raises(ValueError, match=r"The `positive` parameter of `separation` must be true or false"):
            separation([1.0, 2.0], [1, 2])
        with pytest.raises(ValueError, match=r"The `positive` parameter of `separation` must be one-dimensional"):
            separation([1.0, 2.0], [True])


def test_documented_examples() -> None:
    import doctest

    assert doctest.testmod(module).failed == 0
