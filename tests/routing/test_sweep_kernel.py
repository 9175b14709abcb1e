"""One sort and cumulative sums against brute force."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from evalkit.routing.sweep import descending_order, sweep_of, tier_steps

ANY = st.floats(allow_nan=False)
# Neighbours that agree in all but their last bits, both zeros, denormals, both infinities.
CLOSE = st.builds(
    lambda base, steps: _step(base, steps),
    st.sampled_from([1.0, -1.0, 0.1, -0.1, 5e-324, 1e300, -1e-310]),
    st.integers(0, 40),
)
SPECIAL = st.sampled_from(
    [0.0, -0.0, math.inf, -math.inf, 5e-324, -5e-324, sys.float_info.max, -sys.float_info.max]
)
VALUES = st.one_of(
    st.lists(ANY, max_size=60),
    st.lists(st.one_of(CLOSE, SPECIAL), max_size=200),
    st.lists(st.floats(width=32, allow_nan=False), max_size=60),
    st.lists(st.sampled_from([0.1, 0.5, 0.9, -0.0, 0.0]), max_size=60),
)


def _step(base: float, steps: int) -> float:
    for _ in range(steps):
        base = math.nextafter(base, math.inf)
    return base


class TestDescendingOrder:
    @given(VALUES)
    def test_is_a_stable_argsort(self, values: list[float]) -> None:
        array = np.array(values, dtype=np.float64)
        before = array.copy()
        order, ranked = descending_order(array)
        expected = np.argsort(-(array + 0.0), kind="stable")
        assert order.tolist() == expected.tolist()
        assert ranked.tobytes() == array[expected].tobytes()  # to the bit: -0.0 stays -0.0
        assert array.tobytes() == before.tobytes()

    @pytest.mark.parametrize("n", [0, 1, 2, 3, 2**10, 2**10 + 1, 50_000])
    @pytest.mark.parametrize("seed", range(4))
    def test_many(self, n: int, seed: int) -> None:
        rng = np.random.default_rng([n, seed])
        draws = (
            rng.random(n),
            1.0 + rng.integers(0, 2**12, n) * sys.float_info.epsilon,  # leading bits all alike
            np.where(rng.random(n) < 0.5, rng.random(n), -rng.random(n)) * 10.0 ** rng.integers(-320, 300, n),
            rng.random(n).astype(np.float32).astype(np.float64),
        )
        values = draws[seed]
        order, ranked = descending_order(values)
        expected = np.argsort(-values, kind="stable")
        assert np.array_equal(order, expected)
        assert np.array_equal(ranked, values[expected])


LEVELS = st.one_of(
    arrays(
        np.float64, st.integers(0, 40), elements=st.sampled_from([-1.5, -0.0, 0.0, 0.2, 7.0, math.inf, -math.inf])
    ),
    arrays(np.float64, st.integers(0, 40), elements=st.floats(-1e9, 1e9)),
    arrays(
        np.float64,
        st.tuples(st.integers(0, 12), st.integers(1, 3)),
        elements=st.sampled_from([0.0, 1.0, 2.0, 3.0, math.inf, -math.inf]),
    ),
)


class TestSweep:
    @given(LEVELS, st.integers(0, 2**32))
    def test_against_brute_force(self, levels: np.ndarray, seed: int) -> None:
        sweep = sweep_of(levels)
        events = levels.T.ravel() if levels.ndim == 2 else levels
        distinct = sorted({float(x) for x in events[np.isfinite(events)]}, reverse=True)
        assert sweep.levels[1:].tolist() == distinct
        assert sweep.levels[0] == (np.nextafter(distinct[0], np.inf) if distinct else 0.0)
        rng = np.random.default_rng(seed)
        increments = rng.integers(-8, 8, len(events)) / 4.0
        codes = rng.choice(np.array([0, 1, 2, 255], dtype=np.uint8), len(events))
        running, counts = sweep.cumulative(increments, 2.5), sweep.counts(codes, 3)
        assert running.shape == (len(sweep),)
        assert counts.shape == (3, len(sweep))
        for p, level in enumerate(sweep.levels):
            up = events >= level
            assert running[p] == 2.5 + increments[up].sum()
            assert counts[:, p].tolist() == [int((codes[up] == c).sum()) for c in range(3)]

    @given(arrays(np.float64, st.integers(1, 200), elements=st.floats(-10, 10)), st.integers(0, 2**32))
    @settings(max_examples=50)
    def test_nothing_depends_on_the_order_of_the_items(self, levels: np.ndarray, seed: int) -> None:
        rng = np.random.default_rng(seed)
        shuffle = rng.permutation(len(levels))
        increments = rng.integers(-100, 100, len(levels)) / 8.0  # sums are exact
        one, other = sweep_of(levels), sweep_of(levels[shuffle])
        assert one.levels.tolist() == other.levels.tolist()
        assert one.cumulative(increments).tolist() == other.cumulative(increments[shuffle]).tolist()

    def test_refuses_nan(self) -> None:
        with pytest.raises(ValueError, match="The `levels` parameter of `sweep_of` must not hold NaN"):
            sweep_of(np.array([0.1, np.nan]))

    def test_all_go_up_always_or_never(self) -> None:
        for level, up in ((math.inf, 3), (-math.inf, 0)):
            sweep = sweep_of(np.full(3, level))
            assert len(sweep) == 1
            assert sweep.cumulative(np.ones(3)).tolist() == [up]
            assert sweep.counts(np.zeros(3, dtype=np.uint8), 1).tolist() == [[up]]

    @pytest.mark.parametrize("tied", [False, True])
    def test_over_many_blocks(self, tied: bool) -> None:
        # More events than three blocks hold, more codes than share one integer, and all but one with one code.
        rng = np.random.default_rng(5)
        n = 200_000
        levels = rng.integers(0, 900, n) / 8.0 if tied else rng.permutation(n) / 8.0
        if tied:
            levels[:70_000], levels[70_000:80_000] = math.inf, -math.inf
        codes = np.where(rng.random(n) < 0.9, 4, rng.integers(0, 10, n)).astype(np.uint8)
        increments = rng.integers(-8, 8, (n, 3)) / 4.0
        sweep = sweep_of(levels)
        assert len(sweep) == (901 if tied else n + 1)
        base = np.array([0.0, 1.5, -2.0])
        running, counts, up = sweep.sums(increments, base), sweep.counts(codes, 9), sweep.up()
        order = np.argsort(-levels, kind="stable")
        total = np.concatenate([np.zeros((1, 3)), np.cumsum(increments[order], axis=0)])
        for p in [0, 1, 2, len(sweep) // 2, len(sweep) - 2, len(sweep) - 1]:
            above = int((levels >= sweep.levels[p]).sum())
            assert up[p] == above
            assert running[:, p].tolist() == (base + total[above]).tolist()
            assert counts[:, p].tolist() == np.bincount(codes[order[:above]], minlength=10)[:9].tolist()
        assert up.tolist() == [int(x) for x in np.searchsorted(-levels[order], -sweep.levels, side="right")]
        assert sweep.sums(lambda events: increments.take(events, axis=0).T, base).tolist() == running.tolist()
        assert sweep.cumulative(increments[:, 1], 1.5).tolist() == running[1].tolist()

    @pytest.mark.parametrize("tiers", [2, 3, 4])
    def test_steps_between_tiers(self, tiers: int) -> None:
        rng = np.random.default_rng(tiers)
        figures = [rng.integers(0, 50, (40, tiers)) / 4.0 for _ in range(2)]
        weight = rng.integers(0, 3, 40) / 2.0
        events = rng.permutation(40 * (tiers - 1))
        for w in (None, weight):
            got = tier_steps(figures, w)(events)
            for q, figure in enumerate(figures):
                for place, event in enumerate(events):
                    j, i = divmod(int(event), 40)
                    step = (figure[i, j + 1] - figure[i, j]) * (1.0 if w is None else w[i])
                    assert got[q, place] == step
