"""Files are written whole or not at all, come back as they were, and run nothing in a spreadsheet."""

from __future__ import annotations

import csv
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.errors import InputError
from evalkit.tabular.escape import ESCAPES
from evalkit.tabular.read import read_table
from evalkit.tabular.write import atomic_path, csv_text, write_atomic, write_table

SUFFIXES = [".csv", ".csv.gz", ".jsonl", ".jsonl.gz", ".parquet"]


def left_over(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def test_bytes_and_text_arrive_as_they_are(tmp_path: Path) -> None:
    write_atomic(tmp_path / "a", b"\r\n\xff")
    write_atomic(tmp_path / "b", "é\r\n")
    assert (tmp_path / "a").read_bytes() == b"\r\n\xff"
    assert (tmp_path / "b").read_bytes() == "é\r\n".encode()
    assert left_over(tmp_path) == ["a", "b"]


def test_a_failure_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old", encoding="utf-8")

    def half() -> None:
        with atomic_path(path) as temporary:
            temporary.write_text("half", encoding="utf-8")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        half()
    assert path.read_text(encoding="utf-8") == "old"
    assert left_over(tmp_path) == ["a.txt"]


def test_nothing_stands_under_the_name_before_the_end(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    with atomic_path(path) as temporary:
        temporary.write_text("whole", encoding="utf-8")
        assert not path.exists()
        assert temporary.parent == tmp_path
    assert path.read_text(encoding="utf-8") == "whole"


def test_folders_are_made_links_followed_and_the_umask_kept(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "er" / "a.txt"
    write_atomic(target, "1")
    link = tmp_path / "link.txt"
    link.symlink_to(target)
    write_atomic(link, "2")
    assert link.is_symlink()
    assert target.read_text(encoding="utf-8") == "2"
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(target.stat().st_mode) == 0o666 & ~mask


def test_a_device_is_written_to_and_not_replaced() -> None:
    write_atomic("/dev/null", "x")
    assert Path("/dev/null").is_char_device()


def test_refusals_of_the_system_are_faults(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match=r"cannot be written: .*Fix: "):
        write_atomic(tmp_path / "file" / "a.txt", "x")
    with pytest.raises(InputError, match="is a folder"):
        write_atomic(tmp_path, "x")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_table_comes_back(tmp_path: Path, suffix: str) -> None:
    columns: dict[str, list[Any]] = {
        "id": ["007", "=1+1", "'=x", "a\r\nb"],
        "n": [1, -2, None, 3],
        "f": [0.1, None, -1e-9, 5.0],
        "t": [True, False, None, True],
        "meta": [{"k": [1]}, None, None, {"é": "\u2028"}],
    }
    path = tmp_path / f"t{suffix}"
    write_table(path, columns)
    first = path.read_bytes()
    write_table(path, columns)
    assert path.read_bytes() == first
    table = read_table(path)
    assert list(table.columns) == list(columns)
    assert table.values("id") == columns["id"]
    from evalkit.tabular.faults import Faults
    from evalkit.tabular.fields import Fields

    fields = Fields(table, {name: name for name in columns}, Faults("t"))
    assert [None if v != v else v for v in fields.numbers("f").tolist()] == columns["f"]
    assert fields.truths("t").tolist() == [1, 0, -1, 1]
    assert fields.json_values("meta") == columns["meta"]
    assert not fields.faults


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_nan_is_never_written(tmp_path: Path, suffix: str, value: float) -> None:
    path = tmp_path / f"t{suffix}"
    with pytest.raises(ValueError, match=r"finite|JSON compliant"):
        write_table(path, {"id": ["a"], "x": [value]})
    assert left_over(tmp_path) == []


def test_suffixes_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no format that can be written"):
        write_table(tmp_path / "t.xlsx", {"id": ["a"]})


risky = st.text(st.sampled_from("=+-@\t\r'ab\n,\" "), min_size=1, max_size=6)


@given(st.lists(st.tuples(risky, risky), min_size=1, max_size=6))
def test_no_cell_of_a_csv_begins_a_formula_and_all_come_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]
) -> None:
    path = tmp_path_factory.mktemp("w") / "t.csv"
    columns = {"id": [r[0] for r in rows], "x": [r[1] for r in rows]}
    write_table(path, columns)
    with path.open(encoding="utf-8", newline="") as stream:
        for cells in csv.reader(stream, strict=True):
            assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for cell in cells)
    table = read_table(path)
    assert {name: table.values(name) for name in table.columns} == columns


def test_other_peoples_apostrophes_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id,x\na,'=1+1\nb,''\n", encoding="utf-8")
    assert read_table(path).values("x") == ["'=1+1", "''"]


def test_the_marking_column_names_columns_by_number_and_only_where_needed() -> None:
    assert ESCAPES not in csv_text({"id": ["a"], "x": [-1]})
    assert csv_text({"id": ["a", "b"], "x": ["=1", "c"]}) == f"id,x,{ESCAPES}\na,'=1,2\nb,c,\n"


def test_a_single_empty_cell_is_not_a_blank_line(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    write_table(path, {"id": ["", "a"]})
    assert read_table(path).values("id") == ["", "a"]


def test_a_reader_of_the_old_file_keeps_it_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_atomic(path, "old" * 1000)
    with path.open(encoding="utf-8") as reader:
        assert reader.read(3) == "old"
        write_atomic(path, "new")
        assert reader.read() == "old" * 999
    assert path.read_text(encoding="utf-8") == "new"
