"""Text in columns: what a terminal takes for it, not how many characters it has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.errors import cell, padded, width_of


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("low", 6, "low   "),
        ("123456", 6, "1234…" + " "),
        ("위험", 6, "위험  "),
        ("매우위험", 6, "매우…" + " "),
        ("a\x1b[31m", 12, "a\\u001b[31m "),
    ],
)
def test_a_cell_takes_its_columns_and_leaves_a_blank(text: str, width: int, shown: str) -> None:
    assert cell(text, width) == shown


@given(st.text(max_size=60), st.integers(4, 30))
def test_a_cell_is_as_wide_as_its_column_whatever_it_holds(text: str, width: int) -> None:
    shown = cell(text, width)
    assert width_of(shown) == width
    assert shown.endswith(" ")


def test_blanks_go_behind_or_in_front() -> None:
    assert padded("고위험", 8) == "고위험  "
    assert padded("고위험", 8, right=True) == "  고위험"
    assert padded("longer", 3) == "longer"
