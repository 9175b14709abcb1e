from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.replay.adaptive import Concurrency


@given(
    most=st.integers(1, 300),
    events=st.lists(st.sampled_from(["ok", "busy", "late busy", "idle ok"]), max_size=300),
)
def test_it_stays_between_one_and_the_most(most: int, events: list[str]) -> None:
    found = Concurrency(most)
    for event in events:
        before = found.limit
        if event == "ok":
            found.succeeded(found.allowed)
            assert before <= found.limit <= before + 1
        elif event == "idle ok":
            found.succeeded(found.allowed - 1)
            assert found.limit == before
        elif event == "busy":
            found.rate_limited(found.mark)
            assert found.limit == max(1.0, before / 2)
        elif found.cuts:
            found.rate_limited(found.mark - 1)
            assert found.limit == before
        assert 1 <= found.allowed <= most
        assert found.allowed <= found.highest
        assert (found.lowest is None) == (found.cuts == 0)
        assert found.lowest is None or found.lowest <= found.highest


def test_it_doubles_in_each_round_until_it_is_told_to_slow_down() -> None:
    found = Concurrency(100)
    for expected in (8, 16, 32):
        for _ in range(found.allowed):
            found.succeeded(found.allowed)
        assert found.allowed == expected


def test_one_storm_of_refusals_halves_once() -> None:
    found = Concurrency(64, limit=64.0)
    marks = [found.mark for _ in range(64)]
    for mark in marks:
        found.rate_limited(mark)
    assert (found.allowed, found.cuts) == (32, 1)
    found.rate_limited(found.mark)
    assert (found.allowed, found.cuts) == (16, 2)


def test_after_a_refusal_a_round_of_successes_adds_one() -> None:
    found = Concurrency(64, limit=20.0)
    found.rate_limited(found.mark)
    for _ in range(10):
        found.succeeded(found.allowed)
    assert found.limit == pytest.approx(11.0, abs=0.05)


def test_a_most_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="most"):
        Concurrency(0)
