from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evalkit.replay.seen import Seen


@given(keys=st.sets(st.text(max_size=20), max_size=100))
def test_what_was_added_is_always_found(keys: set[str]) -> None:
    seen = Seen(keys)
    assert all(key in seen for key in keys)


def test_what_was_not_added_is_seldom_found() -> None:
    seen = Seen(f"v1-{n}" for n in range(50_000))
    assert sum(f"v1-other-{n}" in seen for n in range(50_000)) <= 5


def test_nothing_is_found_in_an_empty_one() -> None:
    assert "v1-0" not in Seen()
