"""Probabilities held against what came true."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.routing.calibration import calibration
from evalkit.statistics.bounds import wilson_interval


def test_bins_and_the_brier_score_by_hand() -> None:
    p = np.array([0.1, 0.2, 0.3, 0.4, 0.8, 0.9])
    y = np.array([False, False, True, False, True, True])
    found = calibration(p, y, np.ones(6), bins=3)
    assert found is not None
    assert [(one.n, one.predicted, one.observed) for one in found.bins] == [
        (2, pytest.approx(0.15), 0.0),
        (2, pytest.approx(0.35), 0.5),
        (2, pytest.approx(0.85), 1.0),
    ]
    assert found.brier == pytest.approx((0.01 + 0.04 + 0.49 + 0.16 + 0.04 + 0.01) / 6)
    assert (found.bins[1].lower, found.bins[1].upper) == wilson_interval(1, 2)


def test_equal_probabilities_stay_in_one_bin_and_weights_count() -> None:
    p = np.array([0.5, 0.5, 0.5, 0.5, 0.9, np.nan])
    y = np.array([True, False, False, False, True, True])
    found = calibration(p, y, np.array([3.0, 1.0, 1.0, 0.0, 1.0, 9.0]), bins=4)
    assert found is not None
    assert [one.n for one in found.bins] == [3, 1]
    assert found.bins[0].observed == pytest.approx(0.6)
    assert found.bins[0].upper == pytest.approx(wilson_interval(0.6 * 5 / 3, 5 / 3)[1])  # type: ignore[index]
    assert found.n == 4


def test_many_equal_probabilities_are_not_mixed_with_others() -> None:
    p = np.concatenate((np.linspace(0.1, 0.2, 50), np.full(50, 0.9)))
    found = calibration(p, p > 0.5, np.ones(100), bins=6)
    assert found is not None
    assert (found.bins[-1].predicted, found.bins[-1].observed, found.bins[-1].n) == (pytest.approx(0.9), 1.0, 50)
    assert [one.observed for one in found.bins[:-1]] == [0.0] * 3
    assert [one.n for one in found.bins[:-1]] == [17, 17, 16]


def test_nothing_to_hold_against_gives_nothing() -> None:
    assert calibration(np.array([]), np.array([], dtype=bool), np.array([])) is None
    assert calibration(np.array([0.5, np.nan]), np.array([True, True]), np.array([0.0, 1.0])) is None


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 8).map(lambda k: k / 8), st.booleans(), st.sampled_from([0.0, 0.5, 1.0, 4.0])),
        min_size=1,
        max_size=60,
    ),
    st.integers(1, 12),
)
def test_bins_are_a_partition_in_order(rows: list[tuple[float, bool, float]], bins: int) -> None:
    p, y, w = (np.array(column) for column in zip(*rows, strict=True))
    found = calibration(p.astype(float), y.astype(bool), w.astype(float), bins=bins)
    if not (w > 0).any():
        assert found is None
        return
    assert found is not None
    assert sum(one.n for one in found.bins) == found.n == int((w > 0).sum())
    assert len(found.bins) < 2 * bins
    predicted = [one.predicted for one in found.bins]
    assert predicted == sorted(predicted)
    assert all(
        0 <= one.observed <= 1 and one.lower <= one.observed + 1e-9 <= one.upper + 2e-9 for one in found.bins
    )  # type: ignore[operator]
    order = np.random.default_rng(0).permutation(len(p))
    again = calibration(p[order].astype(float), y[order].astype(bool), w[order].astype(float), bins=bins)
    assert again is not None
    assert [one.n for one in again.bins] == [one.n for one in found.bins]
    assert [one.observed for one in again.bins] == pytest.approx([one.observed for one in found.bins])
