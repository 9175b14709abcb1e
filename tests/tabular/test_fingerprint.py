"""The fingerprint follows the content, and nothing else."""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.tabular.fingerprint import Fingerprint, canonical_json, order_of


def of_texts(*columns: list[str | None]) -> str:
    mark = Fingerprint("t")
    for i, column in enumerate(columns):
        mark.texts(f"c{i}", pa.array(column, pa.large_string()))
    return mark.hexdigest()


def test_the_layout_is_the_documented_one() -> None:
    mark = Fingerprint("t")
    mark.texts("c", ["é", None, ""])
    mark.numbers("n", np.array([1.5, -0.0]))
    h = hashlib.sha256(b"evalkit.t/1\n")
    h.update(b"c\n3\n" + np.array([2, -1, 0], "<i8").tobytes() + "é".encode())
    h.update(b"n\n2\n" + np.array([1.5, 0.0], "<f8").tobytes())
    assert mark.hexdigest() == h.hexdigest()


@given(st.lists(st.text(st.characters(exclude_categories=("Cs",))), min_size=2, max_size=6))
def test_moving_text_over_a_border_changes_it(values: list[str]) -> None:
    moved = [values[0] + values[1], "", *values[2:]]
    assert (of_texts(values) == of_texts(moved)) == (values == moved)


def test_null_is_not_empty_and_a_null_column_is_none() -> None:
    assert of_texts(["", "a"]) != of_texts([None, "a"])
    assert of_texts(["a"], [None]) == of_texts(["a"])


def test_slices_and_chunks_of_one_content_are_one() -> None:
    texts = [f"text {i} é" if i % 7 else None for i in range(200_000)]
    whole = pa.array(["x", *texts, "y"], pa.large_string()).slice(1, len(texts))
    assert of_texts(texts) == of_texts(whole)


@given(st.permutations(list(range(7))))
def test_row_order_does_not_matter(order: list[int]) -> None:
    def mark(rows: list[int]) -> str:
        ids = pa.array([f"id{i}" for i in rows], pa.large_string())
        m = Fingerprint("t", order_of(ids))
        m.texts("id", ids)
        m.numbers("w", np.array([i / 3 for i in rows]))
        m.classes("r", np.array([i % 2 for i in rows]), ["low", "high"])
        m.values("v", [{"n": i} for i in rows])
        return m.hexdigest()

    assert mark(list(order)) == mark(list(range(7)))


def test_unused_classes_and_their_order_do_not_matter() -> None:
    def mark(codes: list[int], names: list[str]) -> str:
        m = Fingerprint("t")
        m.classes("r", np.array(codes), names)
        return m.hexdigest()

    assert mark([0, 1, -1], ["low", "high"]) == mark([2, 0, -1], ["high", "mid", "low"])
    assert mark([0, 1, -1], ["low", "high"]) != mark([1, 0, -1], ["low", "high"])


def test_every_bit_of_a_number_counts() -> None:
    def mark(value: float) -> str:
        m = Fingerprint("t")
        m.numbers("n", np.array([value]))
        return m.hexdigest()

    assert mark(0.1) != mark(np.nextafter(0.1, 1))
    assert mark(-0.0) == mark(0.0)


def test_canonical_json_sorts_keys_and_refuses_nan() -> None:
    assert canonical_json({"b": 1, "a": [1.5, "é"]}) == '{"a":[1.5,"é"],"b":1}'
    with pytest.raises(ValueError, match="JSON compliant"):
        canonical_json({"a": float("nan")})
