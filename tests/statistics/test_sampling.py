"""Draws: enough of them, shared out, and with the chances they are said to have."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evalkit.statistics.sampling import allocate, draws_for, inclusion_chances, systematic_sample


@given(st.integers(1, 80), st.floats(0.01, 0.99), st.floats(0.5, 0.99))
def test_draws_are_the_fewest_that_do(wanted: int, share: float, chance: float) -> None:
    m = draws_for(wanted, share, chance)
    assert m is not None
    assert stats.binom.sf(wanted - 1, m, share) >= chance - 1e-9
    assert stats.binom.sf(wanted - 1, m - 1, share) < chance + 1e-9


def test_draws_at_the_ends() -> None:
    assert draws_for(0, 0.0) == 0
    assert draws_for(5, 0.0) is None
    assert draws_for(5, 1.0) == 5
    with pytest.raises(ValueError, match="The `wanted` parameter of `draws_for`"):
        draws_for(-1, 0.5)


@given(st.integers(0, 500), st.lists(st.tuples(st.integers(0, 200), st.floats(0, 10)), min_size=1, max_size=6))
def test_allocation_adds_up_and_fits(total: int, strata: list[tuple[int, float]]) -> None:
    sizes, parts = [s for s, _ in strata], [p for _, p in strata]
    got = allocate(total, sizes, parts)
    able = sum(s for s, p in strata if p > 0)
    assert sum(got) == min(total, able)
    assert all(0 <= g <= s for g, s in zip(got, sizes, strict=True))
    assert all(g == 0 for g, p in zip(got, parts, strict=True) if p == 0)


def test_allocation_by_hand() -> None:
    assert allocate(300, [10000, 800, 40], [1, 1, 1]) == [130, 130, 40]
    assert allocate(10, [100, 100], [3, 1]) == [8, 2]  # 7.5 and 2.5: the earlier one gets the rest
    assert allocate(100, [1000, 1000], [1e9, 1]) == [99, 1]  # a stratum without an item would say nothing


@given(st.lists(st.floats(0, 50), min_size=1, max_size=40), st.integers(0, 40))
def test_chances_sum_to_the_draws(sizes: list[float], n: int) -> None:
    chance = inclusion_chances(sizes, n)
    assert ((chance >= 0) & (chance <= 1)).all()
    assert chance.sum() == pytest.approx(min(n, sum(s > 0 for s in sizes)))


def test_chances_by_hand() -> None:
    # 3 of sizes 8, 1, 1, 1, 1: the first is certain, 2 are shared by four alike.
    assert inclusion_chances([8, 1, 1, 1, 1], 3).tolist() == [1.0, 0.5, 0.5, 0.5, 0.5]


def test_sample_has_its_size_and_its_chances() -> None:
    chance = inclusion_chances([5, 3, 1, 1, 1, 1], 3)
    rng = np.random.default_rng(1)
    hits = np.zeros(6)
    for _ in range(4000):
        at = systematic_sample(chance, rng)
        assert len(at) == 3
        hits[at] += 1
    assert hits / 4000 == pytest.approx(chance, abs=4 * np.sqrt(0.25 / 4000))
