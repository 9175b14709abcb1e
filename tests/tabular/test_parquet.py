"""Parquet is read column by column and keeps its types."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evalkit.errors import InputError
from evalkit.tabular.faults import Faults
from evalkit.tabular.fields import Fields
from evalkit.tabular.ids import read_ids
from evalkit.tabular.read import read_table


def save(tmp_path: Path, **columns: pa.Array) -> Path:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table(columns), path)
    return path


def ids_of(path: Path) -> list[str | None]:
    faults = Faults(str(path))
    table = read_table(path, faults=faults)
    ids = read_ids(Fields(table, {"id": "id"}, faults))
    faults.raise_if_any()
    found: list[str | None] = ids.to_pylist()
    return found


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["007", "1e5"]),
        pa.array(["007", "1e5"], pa.large_string()),
        pa.array(["007", "1e5"], pa.string_view()),
        pa.array(["007", "1e5"]).dictionary_encode(),
    ],
)
def test_text_of_every_layout_is_text(tmp_path: Path, column: pa.Array) -> None:
    assert ids_of(save(tmp_path, id=column)) == ["007", "1e5"]


def test_whole_number_ids_become_their_decimal_text(tmp_path: Path) -> None:
    assert ids_of(save(tmp_path, id=pa.array([7, 2**62]))) == ["7", str(2**62)]


@pytest.mark.parametrize("column", [pa.array([7.0, 8.0]), pa.array([True, False]), pa.array([b"a", b"b"])])
def test_other_ids_are_refused(tmp_path: Path, column: pa.Array) -> None:
    with pytest.raises(InputError) as caught:
        ids_of(save(tmp_path, id=column))
    assert len(caught.value.faults) == 1
    assert "not as text" in str(caught.value)


def test_null_ids_are_named_by_row(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"t\.parquet: row 2, field id: is blank"):
        ids_of(save(tmp_path, id=pa.array(["a", None])))


def test_numbers_of_every_type(tmp_path: Path) -> None:
    from decimal import Decimal

    path = save(
        tmp_path,
        a=pa.array([1, None]),
        b=pa.array([Decimal("0.25"), None]),
        c=pa.array(["0.5", ""]),
        d=pa.array([None, None], pa.null()),
    )
    faults = Faults("t")
    fields = Fields(read_table(path), {n: n for n in "abcd"}, faults)
    for name, first in (("a", 1.0), ("b", 0.25), ("c", 0.5)):
        values = fields.numbers(name)
        assert values[0] == first
        assert values[1] != values[1]
    assert (fields.numbers("d") != fields.numbers("d")).all()
    assert not faults


def test_nan_stored_in_parquet_is_named(tmp_path: Path) -> None:
    faults = Faults("t")
    Fields(read_table(save(tmp_path, a=pa.array([float("nan"), 1.0]))), {"a": "a"}, faults).numbers("a")
    assert [str(f.what) for f in faults] == ["NaN is not a finite number"]


def test_text_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    broken = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe")]
    )
    table = read_table(save(tmp_path, id=broken))
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        table.values("id")


def test_files_that_are_no_parquet(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(b"id,x\na,1\n")
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        read_table(path)
    with pytest.raises(InputError, match="holds no rows"):
        read_table(save(tmp_path, id=pa.array([], pa.string())))
