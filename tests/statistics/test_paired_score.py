"""The score bound of a paired difference, against a likelihood maximised by search and against simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.statistics.paired_score import score_lower


def likeliest_broken(gained: float, broken: float, n: float, lam: float) -> float:
    """The rate of broken pairs that maximises the multinomial likelihood where gained - broken is lam."""
    from scipy.optimize import minimize_scalar

    def loss(q: float) -> float:
        rates = (q + lam, q, 1 - 2 * q - lam)
        counts = (gained, broken, n - gained - broken)
        return -sum(k * math.log(max(p, 1e-300)) for k, p in zip(counts, rates, strict=True) if k)

    span = max(0.0, -lam), (1 - lam) / 2
    return float(minimize_scalar(loss, bounds=span, method="bounded", options={"xatol": 1e-13}).x)


@pytest.mark.parametrize(
    ("gained", "broken", "n", "delta"), [(6, 10, 400, 0.05), (1, 14, 90, 0.025), (40, 22, 150, 0.01)]
)
def test_at_the_bound_the_score_of_the_likeliest_rates_is_the_quantile(
    gained: int, broken: int, n: int, delta: float
) -> None:
    from scipy.stats import norm

    lam = score_lower(gained, broken, n, delta)
    q = likeliest_broken(gained, broken, n, lam)
    variance = (2 * q + lam - lam**2) / n  # of a difference of two indicators with these rates
    assert ((gained - broken) / n - lam) / math.sqrt(variance) == pytest.approx(norm.isf(delta), abs=1e-5)


def test_without_a_pair_that_differs_only_their_number_counts() -> None:
    z = 1.6448536269514722
    assert score_lower(0, 0, 250, 0.05) == pytest.approx(-(z**2) / (250 + z**2), abs=1e-12)


@given(
    st.integers(1, 500).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(0, n))),
    st.sampled_from([0.2, 0.05, 0.01]),
)
def test_a_bound_is_below_what_was_seen_and_falls_with_every_loss(
    counts: tuple[int, int, int], delta: float
) -> None:
    n, gained, broken = counts[0], min(counts[1:]) // 2, max(counts[1:]) // 2
    found = score_lower(gained, broken, n, delta)
    assert -1 <= found <= (gained - broken) / n
    assert score_lower(gained, broken, n, delta / 2) <= found
    if gained + broken < n:
        assert score_lower(gained, broken + 1, n, delta) <= found + 1e-12


def test_counts_that_are_no_part_of_the_pairs_are_refused() -> None:
    for wrong in ((3, 3, 5, 0.05), (-1, 0, 5, 0.05), (0, 0, 0, 0.05), (0, 0, 5, 0.5), (math.nan, 0, 5, 0.05)):
        with pytest.raises(ValueError, match="score_lower"):
            score_lower(*wrong)


def test_a_true_difference_at_the_limit_passes_no_more_often_than_delta() -> None:
    """3 % newly fail and 1 % newly pass: at -2 points a t interval lets 6 % of 800 items pass, this 5 %."""
    rng = np.random.default_rng(20261201)
    seen = rng.multinomial(800, [0.01, 0.03, 0.96], size=4000)
    passed = np.mean([score_lower(float(g), float(b), 800, 0.05) >= -0.02 for g, b, _ in seen])
    assert passed <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 4000)
    assert passed > 0.03  # and it is no bound that lets nothing pass
