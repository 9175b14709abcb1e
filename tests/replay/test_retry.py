from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.providers.call import Failure, FailureKind
from evalkit.replay.retry import FINAL_KINDS, RetryPolicy
from tests.replay.support import BUSY, DOWN

FINAL = sorted({kind for kind in FailureKind if not kind.retryable}, key=str)


@pytest.mark.parametrize("kind", FINAL)
def test_what_stays_the_same_is_not_tried_again(kind: FailureKind) -> None:
    assert RetryPolicy(10).wait_s(Failure(kind, "no"), 1, "k") is None


def test_only_what_the_request_itself_causes_is_final_for_later_runs() -> None:
    assert {FailureKind.BAD_REQUEST, FailureKind.REFUSAL} == FINAL_KINDS
    assert FailureKind.AUTHENTICATION not in FINAL_KINDS


@given(attempt=st.integers(1, 100), seed=st.integers(0, 9), key=st.text(max_size=5))
def test_the_wait_is_in_the_upper_half_of_the_step(attempt: int, seed: int, key: str) -> None:
    policy = RetryPolicy(1000, base_s=0.5, most_s=30.0, seed=seed)
    step = min(30.0, 0.5 * 2 ** (attempt - 1))
    wait = policy.wait_s(DOWN, attempt, key)
    assert wait is not None
    assert step / 2 <= wait <= step
    assert wait == policy.wait_s(DOWN, attempt, key)


def test_seeds_and_keys_spread_the_waits() -> None:
    waits = {RetryPolicy(seed=seed).wait_s(DOWN, 1, key) for seed in range(10) for key in "abcdefghij"}
    assert len(waits) == 100


def test_attempts_end() -> None:
    policy = RetryPolicy(3)
    assert [policy.wait_s(DOWN, n, "k") is None for n in (1, 2, 3, 4)] == [False, False, True, True]


def test_what_the_provider_asks_is_the_least() -> None:
    policy = RetryPolicy(4, longest_s=60.0)
    wait = policy.wait_s(replace(BUSY, retry_after_s=7.0), 1, "k")
    assert wait is not None
    assert 7.0 < wait < 7.1
    assert policy.wait_s(replace(BUSY, retry_after_s=0.0), 1, "k") == pytest.approx(
        policy.wait_s(BUSY, 1, "k"), rel=0.2
    )
    assert policy.wait_s(replace(BUSY, retry_after_s=60.1), 1, "k") is None
