from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.replay.limits import TokenBucket

steps = st.lists(st.tuples(st.floats(0, 20), st.floats(0.1, 30)), min_size=1, max_size=60)


@given(per_minute=st.floats(1, 6000), burst_s=st.floats(0.5, 60), steps=steps)
def test_no_window_lets_more_pass_than_the_rate(
    per_minute: float, burst_s: float, steps: list[tuple[float, float]]
) -> None:
    bucket = TokenBucket(per_minute, burst_s=burst_s)
    now, passed = 0.0, []
    for gap, amount in steps:
        now += gap
        amount = min(amount, bucket.burst)
        passed.append((now + bucket.take(amount, now), amount))
    assert [at for at, _ in passed] == sorted(at for at, _ in passed)  # nobody overtakes
    for first in range(len(passed)):
        for last in range(first, len(passed)):
            window = passed[last][0] - passed[first][0]
            total = sum(amount for _, amount in passed[first : last + 1])
            assert total <= bucket.burst + per_minute / 60 * window + 1e-6 * (1 + total)


def test_sixty_a_minute_are_one_a_second() -> None:
    bucket = TokenBucket(60)
    assert [bucket.take(1, 0.0) for _ in range(4)] == [0.0, 1.0, 2.0, 3.0]
    assert bucket.take(1, 10.0) == 0.0


def test_more_than_a_burst_waits_for_a_full_bucket_and_delays_those_behind() -> None:
    bucket = TokenBucket(600, burst_s=1.0)  # 10 a second, 10 at once
    assert bucket.take(35, 0.0) == 0.0
    assert bucket.take(1, 0.0) == pytest.approx(2.6)  # 25 in debt, and one more


def test_what_was_not_used_is_given_back() -> None:
    bucket = TokenBucket(600, burst_s=1.0)
    bucket.take(10, 0.0)
    bucket.give_back(8, 0.0)
    assert bucket.take(8, 0.0) == 0.0
    bucket.give_back(-5, 0.0)  # more was used than was expected
    assert bucket.take(1, 0.0) == pytest.approx(0.6)


def test_no_pause_lets_a_hoard_pass() -> None:
    bucket = TokenBucket(60)
    assert bucket.take(1, 10_000.0) == 0.0
    assert bucket.take(1, 10_000.0) == 1.0


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf")])
def test_a_rate_that_is_none_is_refused(rate: float) -> None:
    with pytest.raises(ValueError, match="per_minute"):
        TokenBucket(rate)
