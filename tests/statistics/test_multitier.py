"""Ordered thresholds against trying every combination."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from itertools import combinations_with_replacement, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.statistics import multitier
from evalkit.statistics.multitier import constrained_minimum, ordered_minimum


def every_combination(gains, constraints=(), limits=()):  # type: ignore[no-untyped-def]
    """All ordered positions, plainly."""
    gains = np.asarray(gains)
    best = math.inf
    for positions in combinations_with_replacement(range(gains.shape[1]), gains.shape[0]):
        kept = all(
            sum(rows[j][i] for j, i in enumerate(positions)) <= limit
            for rows, limit in zip(constraints, limits, strict=True)
        )
        if kept:
            best = min(best, sum(gains[j][i] for j, i in enumerate(positions)))
    return best


def value_at(gains: np.ndarray, positions: tuple[int, ...]) -> float:
    assert all(a <= b for a, b in pairwise(positions))
    return float(sum(np.asarray(gains)[j][i] for j, i in enumerate(positions)))


# Whole numbers, so that sums are exact and ties are common.
TABLES = st.tuples(st.integers(1, 3), st.integers(1, 7)).flatmap(
    lambda shape: st.lists(
        st.lists(st.integers(-4, 4).map(float), min_size=shape[1], max_size=shape[1]),
        min_size=shape[0], max_size=shape[0],
    )
)  # fmt: skip


class TestUnconstrained:
    @given(TABLES)
    def test_equals_every_combination(self, gains: list[list[float]]) -> None:
        value, positions = ordered_minimum(gains)
        assert value == every_combination(gains) == value_at(gains, positions)

    @given(TABLES, st.data())
    def test_forbidden_positions(self, gains: list[list[float]], data: st.DataObject) -> None:
        table = np.array(gains)
        forbidden = data.draw(st.lists(st.booleans(), min_size=table.size, max_size=table.size))
        table[np.reshape(forbidden, table.shape)] = np.inf
        found, expected = ordered_minimum(table), every_combination(table)
        assert (found is None) == math.isinf(expected)
        if found is not None:
            assert found[0] == expected == value_at(table, found[1])

    def test_ties_escalate_more(self) -> None:
        assert ordered_minimum([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]) == (0.0, (0, 0))
        assert ordered_minimum([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]]) == (0.0, (1, 2))

    def test_refused(self) -> None:
        for bad in ([[1.0, math.nan]], [[-math.inf]], [1.0], [[]]):
            with pytest.raises(ValueError, match="The `gains` parameter of `ordered_minimum` must be"):
                ordered_minimum(bad)


class TestConstrained:
    @given(TABLES, st.integers(0, 2), st.data())
    def test_equals_every_combination(self, gains: list[list[float]], count: int, data: st.DataObject) -> None:
        shape = np.shape(gains)
        rows = st.lists(st.integers(-2, 5).map(float), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1])
        extra = np.array([data.draw(rows) for _ in range(count)]).reshape(count, *shape)
        limits = [data.draw(st.integers(-3, 12)) for _ in range(count)]
        found, expected = constrained_minimum(gains, extra, limits), every_combination(gains, extra, limits)
        assert (found is None) == math.isinf(expected)
        if found is not None:
            assert found[0] == expected == value_at(np.array(gains), found[1])
            for part, limit in zip(extra, limits, strict=True):
                assert value_at(part, found[1]) <= limit

    @settings(max_examples=30)
    @given(st.integers(0, 2**32 - 1))
    def test_real_numbers_and_four_tiers(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        gains, extra = rng.normal(size=(3, 14)).cumsum(1), rng.normal(0.5, 1, size=(2, 3, 14))
        limits = [0.8, 1.2]
        found, expected = constrained_minimum(gains, extra, limits), every_combination(gains, extra, limits)
        assert (found is None) == math.isinf(expected)
        if found is not None:
            assert found[0] == pytest.approx(expected, rel=1e-12, abs=1e-12)

    def test_without_constraints_is_the_unconstrained(self) -> None:
        gains = np.random.default_rng(1).normal(size=(3, 50)).cumsum(1)
        assert constrained_minimum(gains, np.empty((0, 3, 50)), [])[0] == pytest.approx(ordered_minimum(gains)[0])

    def test_large_grid(self) -> None:
        # Three thresholds over 257 positions: 2.9 million combinations. Counts must stay whole-number exact.
        rng = np.random.default_rng(5)
        gains = rng.normal(size=(3, 257)).cumsum(1)
        count = np.stack([np.arange(257.0) * k for k in (3, 2, 1)])[None]
        value, positions = constrained_minimum(gains, count, [600])
        assert value_at(count[0], positions) <= 600
        i, j, k = np.ogrid[:257, :257, :257]
        allowed = (i <= j) & (j <= k) & (3 * i + 2 * j + k <= 600)
        assert value == pytest.approx((gains[0][i] + gains[1][j] + gains[2][k])[allowed].min(), rel=1e-12)

    def test_refused(self) -> None:
        with pytest.raises(ValueError, match="The `constraints` parameter of `constrained_minimum`"):
            constrained_minimum([[1.0]], [[1.0]], [1.0])
        with pytest.raises(ValueError, match="The `constraints` parameter of `constrained_minimum`"):
            constrained_minimum([[1.0]], [[[math.nan]]], [1.0])
        with pytest.raises(ValueError, match="The `limits` parameter of `constrained_minimum`"):
            constrained_minimum([[1.0]], [[[1.0]]], [math.nan])


class TestGolden:
    """Eight items in order of demand and four tiers, made to have the printed optima.

    The top tier costs 1 an item, an unnecessary step up 1, an under-routed item 10. Four items need the top tier;
    with at most three sent there one is under-routed: 4 - 1 + 10 = 13.
    """

    required = (0, 1, 1, 2, 3, 3, 3, 3)

    def tables(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        def table(value: Callable[[int, int], float]) -> np.ndarray:
            return np.array([[float(value(tier, r)) for tier in range(4)] for r in self.required])

        loss = table(lambda tier, r: (10 if tier < r else tier - r) + (tier == 3))
        return loss, table(lambda tier, r: tier < r), table(lambda tier, r: tier == 3)

    @staticmethod
    def telescoped(per_tier: np.ndarray) -> tuple[np.ndarray, float]:
        """terms[j, i] = sum over items from i on of f(j + 1) - f(j), and the constant sum of f(0)."""
        steps = np.diff(per_tier, axis=1)
        tails = np.vstack([np.cumsum(steps[::-1], axis=0)[::-1], np.zeros(steps.shape[1])])
        return tails.T, float(per_tier[:, 0].sum())

    def test_golden_values(self) -> None:
        loss, under, top = self.tables()
        gains, constant = self.telescoped(loss)
        value, positions = ordered_minimum(gains)
        assert (value + constant, positions) == (4.0, (1, 3, 4))
        for table, limit, expected in ((under, 0, (4.0, (1, 3, 4))), (top, 3, (13.0, (1, 3, 5)))):
            terms, at_zero = self.telescoped(table)
            value, positions = constrained_minimum(gains, terms[None], [limit - at_zero])
            assert (value + constant, positions) == expected

    def test_every_assignment_in_order(self) -> None:
        # Not through terms at all: every non-decreasing assignment of tiers to the eight items.
        loss, under, top = self.tables()
        found = {}
        for tiers in combinations_with_replacement(range(4), 8):
            total, low, high = (
                sum(table[i][tier] for i, tier in enumerate(tiers)) for table in (loss, under, top)
            )
            for name, kept in (("any", True), ("none under", low == 0), ("three at the top", high <= 3)):
                if kept:
                    found[name] = min(found.get(name, math.inf), total)
        assert found == {"any": 4.0, "none under": 4.0, "three at the top": 13.0}

    def test_positions_in_the_folder(self, shared: Path) -> None:
        golden = json.loads((shared / "golden" / "statistics.json").read_text(encoding="utf-8"))["9_multitier"]
        assert golden["golden_unconstrained"] == [4.0, [1, 3, 4]]
        assert golden["golden_zero_under"] == [4.0, [1, 3, 4]]
        assert golden["golden_top_tier_cap3"] == [13.0, [1, 3, 5]]


def test_documented_examples() -> None:
    import doctest

    assert doctest.testmod(multitier).failed == 0
