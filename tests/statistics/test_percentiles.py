"""Nearest rank against written values, NumPy, SciPy and its own definition."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evalkit.statistics import percentiles
from evalkit.statistics.percentiles import (
    Percentile,
    describe_percentile,
    percentile,
    percentile_rank,
    upper_bound_rank,
)

VALUES = st.lists(st.integers(-50, 50).map(float), min_size=1, max_size=80)
SHARES = st.sampled_from([0.05, 0.1, 0.25, 0.5, 0.9, 0.95, 0.99, 1.0])


def test_printed_values() -> None:
    x = np.arange(10, 210, 10)
    assert [percentile(x, 0.95), percentile(x, 0.99), percentile(x, 0.5)] == [190, 200, 100]


class TestFewValues:
    INPUTS = {  # noqa: RUF012
        "n1": [1.0],
        "n2": [1.0, 2.0],
        "n5": [1, 2, 3, 4, 50],
        "n20": list(range(20)),
        "n100": list(range(1, 101)),
        "n0": [],
    }
    P95 = {"n1": 1.0, "n2": 2.0, "n5": 50, "n20": 18, "n100": 95, "n0": None}  # noqa: RUF012
    P50 = {"n1": 1.0, "n2": 1.0, "n5": 3, "n20": 9, "n100": 50, "n0": None}  # noqa: RUF012

    def test_values(self) -> None:
        assert {name: percentile(x, 0.95) for name, x in self.INPUTS.items()} == self.P95
        assert {name: percentile(x, 0.5) for name, x in self.INPUTS.items()} == self.P50

    def test_the_case_itself(self, shared: Path) -> None:
        case = shared / "cases" / "M09-percentiles"
        inputs = json.loads((case / "latencies.json").read_text(encoding="utf-8"))
        expected = json.loads((case / "expect.json").read_text(encoding="utf-8"))["values"]
        for name, q in (("p95", 0.95), ("p50", 0.5)):
            assert {key: percentile(x, q) for key, x in inputs.items()} == expected[name]
        for x in inputs.values():
            got = describe_percentile(x, 0.95)
            assert got.n == len(x)
            assert got.equals_maximum == (0 < len(x) < 20)
            if x:
                assert min(x) <= got.value <= max(x)

    def test_marked_below_twenty(self) -> None:
        assert [n for n in range(1, 40) if describe_percentile(range(n), 0.95).equals_maximum] == list(
            range(1, 20)
        )
        assert [n for n in range(1, 120) if describe_percentile(range(n), 0.99).equals_maximum] == list(
            range(1, 100)
        )

    def test_none(self) -> None:
        assert describe_percentile([], 0.95) == Percentile(None, 0, None, False, None)
        assert describe_percentile([3.0], 0.95, [0.0]) == Percentile(None, 0, None, False, None)
        assert percentile_rank(0, 0.95) is None


class TestRank:
    def test_exact_where_floating_point_is_not(self) -> None:
        assert 0.07 * 100 > 7  # so that a float ceiling would say 8
        assert percentile_rank(100, 0.07) == 7
        assert [percentile_rank(20, 0.95), percentile_rank(1000, 0.999), percentile_rank(10**15, 0.95)] == [
            19, 999, 950_000_000_000_000]  # fmt: skip

    def test_all_percents_of_all_small_n(self) -> None:
        for percent in range(1, 101):
            got = [percentile_rank(n, percent / 100) for n in range(1, 301)]
            assert got == [-(-percent * n // 100) for n in range(1, 301)]

    def test_ends(self) -> None:
        assert percentile_rank(5, 0.0) == 1
        assert percentile_rank(5, 1.0) == 5

    @given(VALUES, SHARES)
    def test_is_the_inverted_distribution_function(self, x: list[float], q: float) -> None:
        reached = [value for value in sorted(x) if 100 * sum(v <= value for v in x) >= round(100 * q) * len(x)]
        assert percentile(x, q) == reached[0]


class TestUpperBound:
    RANKS = {  # noqa: RUF012
        20: (None, None), 50: (None, None), 59: (59, None), 93: (92, None), 100: (99, None), 200: (196, None),
        300: (292, 300), 500: (484, 499), 1000: (962, 996), 5000: (4776, 4962),
    }  # fmt: skip

    def test_ranks(self) -> None:
        got = {n: (upper_bound_rank(n, 0.95), upper_bound_rank(n, 0.99)) for n in self.RANKS}
        assert got == self.RANKS

    def test_golden(self, shared: Path) -> None:
        golden = json.loads((shared / "golden" / "statistics.json").read_text(encoding="utf-8"))["7_percentile"]
        for name, ranks in golden["order_stat"].items():
            n = int(name.removeprefix("n="))
            assert upper_bound_rank(n, 0.95) == ranks["p95_up1"]
            assert upper_bound_rank(n, 0.99) == ranks["p99_up1"]
        for name, least in golden["n_min"].items():
            q = float(name.removeprefix("p")) / 100
            assert upper_bound_rank(least["one_sided95"], q) == least["one_sided95"]
            assert upper_bound_rank(least["one_sided95"] - 1, q) is None
        x = np.arange(10, 210, 10)
        for name, q in (("p95", 0.95), ("p99", 0.99), ("p50", 0.5)):
            assert percentile(x, q) == golden["x=10..200 step10"][f"{name}_nearest"]

    def test_not_statable_below(self) -> None:
        assert upper_bound_rank(58, 0.95) is None
        assert upper_bound_rank(59, 0.95) == 59
        assert upper_bound_rank(298, 0.99) is None
        assert upper_bound_rank(299, 0.99) == 299
        assert upper_bound_rank(0, 0.5) is None
        got = describe_percentile(range(58), 0.95)
        assert (got.value, got.upper) == (55, None)  # the sample value is still shown

    @given(st.integers(1, 800), st.sampled_from([0.5, 0.9, 0.95, 0.99]), st.sampled_from([0.9, 0.95, 0.975]))
    def test_is_its_definition(self, n: int, q: float, confidence: float) -> None:
        reached = np.flatnonzero(stats.binom.cdf(np.arange(n), n, q) >= confidence)
        assert upper_bound_rank(n, q, confidence) == (reached[0] + 1 if reached.size else None)

    @given(st.integers(60, 400), st.integers(0, 2**32 - 1))
    def test_equals_the_quantile_test_of_scipy(self, n: int, seed: int) -> None:
        x = np.random.default_rng(seed).lognormal(size=n)
        interval = stats.quantile_test(x, p=0.95, alternative="less").confidence_interval(0.95)
        assert describe_percentile(x, 0.95).upper == interval.high

    def test_weights_that_vary(self) -> None:
        # 100 values of weight 1 and 100 of weight 4: n_f = 500 / 4 = 125; at 5 % two of 125 may lie above
        # (124 is the least n for two). The heavy ones are the slow ones: 2 x 4 of weight are 2 of 125.
        x = np.arange(200.0)
        w = np.repeat([1.0, 4.0], 100)
        assert describe_percentile(x, 0.95, w).upper == 197
        assert describe_percentile(x, 0.95).upper == 195  # 200 equal values: rank 196

    @given(VALUES, st.integers(1, 3), SHARES)
    def test_equal_weights_change_nothing(self, x: list[float], weight: int, q: float) -> None:
        assert describe_percentile(x, q, [float(weight)] * len(x)) == describe_percentile(x, q)


class TestWeights:
    def test_written_values(self) -> None:
        x, w = [400.0, 100.0, 300.0, 200.0], [0.07, 0.6, 0.08, 0.25]  # .60, .85, .93, 1.0
        assert [percentile(x, q, w) for q in (0.5, 0.9, 0.95)] == [100, 300, 400]

    @given(st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 4)), min_size=1, max_size=40), SHARES)
    def test_weight_is_repetition(self, items: list[tuple[int, int]], q: float) -> None:
        x, w = zip(*items, strict=True)
        assert percentile(x, q, w) == percentile(np.repeat(x, w), q)

    @given(st.lists(st.tuples(st.integers(-9, 9), st.floats(0.1, 10)), min_size=1, max_size=40), SHARES)
    def test_equals_numpy(self, items: list[tuple[int, float]], q: float) -> None:
        x, w = map(np.array, zip(*items, strict=True))
        reached = np.cumsum(w[np.argsort(x, kind="stable")]) / w.sum()
        if np.abs(reached - q).min() > 1e-9:  # not where rounding decides
            expected = np.percentile(x, 100 * q, method="inverted_cdf", weights=w)
            assert percentile(x, q, w) == expected

    def test_sums_that_rounding_would_move(self) -> None:
        w = [0.1] * 9 + [0.05, 0.05]
        assert sum(w[:8]) < 0.8  # so that a plain comparison would go one value too far
        assert percentile(range(11), 0.8, w) == 7.0
        assert [percentile(range(11), i / 10, w) for i in range(1, 10)] == list(range(9))


class TestBeyondAllOthers:
    def test_timed_out_values_rank_last(self) -> None:
        assert percentile([1.0, 2.0, math.inf], 0.5) == 2.0
        assert percentile([1.0, 2.0, math.inf], 0.95) == math.inf


@pytest.mark.parametrize("function", [percentile, describe_percentile])
def test_refused(function) -> None:  # type: ignore[no-untyped-def]
    name = function.__name__
    with pytest.raises(ValueError, match=f"The `x` parameter of `{name}` must be free of NaN. Got '1 of 2 NaN'"):
        function([1.0, math.nan], 0.5)
    with pytest.raises(
        ValueError, match=f"The `q` parameter of `{name}` must be a fraction between 0 and 1. Got 95"
    ):
        function([1.0], 95)
    with pytest.raises(ValueError, match=f"The `weights` parameter of `{name}`"):
        function([1.0], 0.5, [-1.0])
    with pytest.raises(ValueError, match=f"The `x` parameter of `{name}` must be one-dimensional"):
        function([[1.0]], 0.5)


def test_documented_examples() -> None:
    import doctest

    assert doctest.testmod(percentiles).failed == 0
