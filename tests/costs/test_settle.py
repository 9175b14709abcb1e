"""Whether reasoning stands inside the output is settled for a model before anything is averaged."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.costs.settle import settle

NAN = np.nan


def test_a_provider_that_counts_inside_stays_as_it_is() -> None:
    seen = settle(np.array([1200.0, 300]), np.array([900.0, 0]), "openai/gpt-5")
    assert (seen.whole.tolist(), seen.beside, seen.added) == ([1200, 300], False, 0)


def test_one_that_counts_beside_is_found_out_and_added_throughout() -> None:
    # the second request alone could be either; the first cannot be inside
    seen = settle(np.array([200.0, 900]), np.array([700.0, 700]), "google/gemini-2.5-pro")
    assert (seen.whole.tolist(), seen.beside, seen.added, seen.odd) == ([900, 1600], True, 2, 0)


@pytest.mark.parametrize(
    "model", ["grok/grok-4-0709", "google/gemma-4-31b-it", "vertex_ai/gemini-3", "xai/grok-4"]
)
def test_known_habits_need_one_request_to_show(model: str) -> None:
    whole, part = np.full(100, 1000.0), np.full(100, 500.0)
    assert settle(whole, part, model).beside is False  # recorded through a client that puts it inside
    part[0] = 1001
    assert settle(whole, part, model).beside is True


def test_a_few_odd_requests_of_a_provider_that_counts_inside() -> None:
    whole, part = np.full(100, 1000.0), np.full(100, 500.0)
    part[:7] = 5000
    seen = settle(whole, part, "openai/gpt-5.2")
    assert (seen.beside, seen.added, seen.odd) == (False, 7, 7)
    assert seen.whole[:7].tolist() == [6000] * 7
    assert seen.whole[7:].tolist() == [1000] * 93


def test_an_unknown_provider_is_judged_by_its_counts() -> None:
    whole, part = np.full(100, 1000.0), np.full(100, 500.0)
    part[:5] = 5000
    assert settle(whole, part, "acme/thinker").beside is False
    part[5] = 5000
    assert settle(whole, part, "acme/thinker").beside is True
    assert settle(whole, part, None).beside is True


def test_unknown_counts_stay_unknown() -> None:
    seen = settle(np.array([NAN, 100.0, 200.0]), np.array([50.0, NAN, 700.0]), "grok/grok-4")
    assert np.isnan(seen.whole[0])
    assert seen.whole[1:].tolist() == [100, 900]
    assert settle(np.array([1.0]), np.array([NAN]), None).beside is None
    assert settle(np.array([1.0]), np.array([0.0]), None).beside is None


def test_cache_beside_the_input() -> None:
    seen = settle(np.array([10.0, 20.0]), np.array([5000.0, 0.0]), "anthropic/claude-opus-4-5", part_is="cache")
    assert (seen.whole.tolist(), seen.beside) == ([5010, 20], True)


@given(
    st.lists(st.tuples(st.integers(0, 999), st.integers(0, 999)), min_size=1, max_size=40),
    st.sampled_from(["openai/x", "google/x", "acme/x", None]),
)
def test_after_it_no_part_is_above_its_whole(rows: list[tuple[int, int]], model: str | None) -> None:
    whole, part = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    seen = settle(whole, part, model)
    assert (seen.whole >= part).all()
    assert (seen.whole >= whole).all()
    assert set((seen.whole - whole).tolist()) <= {0.0, *part.tolist()}
