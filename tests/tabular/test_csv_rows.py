"""Strict CSV: what is read, with which line and row, and what stops."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.errors import InputError
from evalkit.tabular.faults import Faults
from evalkit.tabular.read import read_table
from evalkit.tabular.table import Table


def write(tmp_path: Path, data: bytes | str, name: str = "t.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def fault_of(path: Path, **kw: object) -> str:
    with pytest.raises(InputError) as caught:
        read_table(path, **kw)  # type: ignore[arg-type]
    return str(caught.value)


def test_cells_stay_text_and_lines_are_physical(tmp_path: Path) -> None:
    table = read_table(write(tmp_path, 'id,x\na,"1\n2\n\n3"\n007,1.0\n\nc,TRUE\n'))
    assert table.values("id") == ["a", "007", "c"]
    assert table.values("x") == ["1\n2\n\n3", "1.0", "TRUE"]
    assert [table.line(i) for i in range(3)] == [2, 6, 8]
    assert [table.row(i) for i in range(3)] == [1, 2, 3]
    assert table.notices == [f"{tmp_path / 't.csv'}: 1 blank line skipped (line 7)"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_of_every_kind(tmp_path: Path, end: str) -> None:
    table = read_table(write(tmp_path, end.join(["id,x", 'a,"p' + end + 'q"', "b,2", ""])))
    assert table.values("x") == [f"p{end}q", "2"]
    assert [table.line(i) for i in range(2)] == [2, 4]


def test_line_breaks_that_only_unicode_knows_are_text(tmp_path: Path) -> None:
    table = read_table(write(tmp_path, "id,x\na,one\u2028two\u0085three\x0bfour\nb,2\n"))
    assert table.values("x") == ["one\u2028two\u0085three\x0bfour", "2"]
    assert [table.line(i) for i in range(2)] == [2, 3]


def test_trailing_blank_lines_are_no_notice(tmp_path: Path) -> None:
    assert read_table(write(tmp_path, "id\na\n\n\n")).notices == []


def test_a_bom_is_dropped_once(tmp_path: Path) -> None:
    assert list(read_table(write(tmp_path, b"\xef\xbb\xbfid,x\na,1\n")).columns) == ["id", "x"]


def test_a_quoted_header_after_a_bom(tmp_path: Path) -> None:
    assert list(read_table(write(tmp_path, b'\xef\xbb\xbf"id","x"\na,1\n')).columns) == ["id", "x"]


def test_fields_longer_than_the_csv_modules_limit(tmp_path: Path) -> None:
    before = csv.field_size_limit()
    long = "a, b\n" * 400_000
    table = read_table(write(tmp_path, f'id,x\nq,"{long}"\nr,2\n'))
    assert table.values("x") == [long, "2"]
    assert table.line(1) == 400_003
    assert csv.field_size_limit() == before


def test_every_misfit_row_is_named_with_its_id(tmp_path: Path) -> None:
    path = write(tmp_path, "x,id\n1,a\n2\n3,c,4\n5,d\n")
    with pytest.raises(InputError) as caught:
        read_table(path, id_column="id")
    assert [(f.line, f.row, f.id) for f in caught.value.faults] == [(3, 2, None), (4, 3, "c")]
    faults = Faults(str(path))
    table = read_table(path, faults=faults, id_column="id")
    assert table.values("id") == ["a", "d"]
    assert [table.row(i) for i in range(2)] == [1, 4]
    assert [d.cells for d in table.damaged] == [("2",), ("3", "c", "4")]


def test_a_decimal_comma_is_recognised(tmp_path: Path) -> None:
    text = fault_of(write(tmp_path, "id,score\nq6,0,7\n"), id_column="id")
    assert "t.csv:2: row 1 (id q6)" in text
    assert "0,7 reads as a decimal comma" in text
    assert "write 0.7" in text


@pytest.mark.parametrize(
    ("body", "line", "words"),
    [
        ('a,"never closed,1\nb,2,3\n', 2, "the quote opened on line 2 is never closed"),
        ('a,"x\ny",1\nb,"z,2\nc,"w",3\n', 4, "closed on line 5"),
        ('a,"x"y,1\n', 2, "text follows the closing quote"),
        ('ok,1,2\n"first\nopen', 3, "the quote opened on line 3 is never closed"),
    ],
)
def test_lost_quotes_are_placed(tmp_path: Path, body: str, line: int, words: str) -> None:
    text = fault_of(write(tmp_path, "id,query,z\n" + body), id_column="id")
    assert f"t.csv:{line}: " in text
    assert words in text


def test_a_lost_quote_names_its_column(tmp_path: Path) -> None:
    text = fault_of(write(tmp_path, 'id,query,z\na,"he said ""no"", and,1\nb,2,3\n'), id_column="id")
    assert "(id a), field query" in text


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty (0 bytes)"),
        (b"\xef\xbb\xbf", "no header"),
        (b"\n\n", "no header"),
        (b"id,x\n", "no rows"),
        (b"id,x,id\na,1,2\n", '"id" more than once (columns 1, 3)'),
        (b"id,,x\na,1,2\n", "column 2 of 3 has no name"),
        (b"id;x\na;1\n", "semicolons"),
        (b"id\tx\na\t1\n", "tabs"),
        (b"id,x\na,1\x00\n", "NUL"),
        (b"PK\x03\x04rest", "spreadsheet"),
        ("id,x\na,1\n".encode("utf-16"), "UTF-16"),
    ],
)
def test_files_that_are_no_table(tmp_path: Path, data: bytes, words: str) -> None:
    text = fault_of(write(tmp_path, data))
    assert words in text
    assert "Fix: " in text


def test_headers_equal_only_in_normal_form_are_one_name(tmp_path: Path) -> None:
    assert "more than once" in fault_of(write(tmp_path, "caf\u00e9,cafe\u0301\n1,2\n"))


def test_the_first_byte_that_is_not_utf8_is_placed(tmp_path: Path) -> None:
    good = "id,x\n" + "".join(f"r{i},가나다\n" for i in range(100_000))
    bad = good.encode() + "끝,나쁨\n".encode("cp949")
    text = fault_of(write(tmp_path, bad))
    assert "t.csv:100002: " in text
    assert f"offset {len(good.encode()):,} is not UTF-8" in text
    assert "--encoding" in text


@pytest.mark.parametrize("encoding", ["cp949", "utf-16", "utf-8-sig", "UTF8"])
def test_a_named_encoding_gives_the_same_text(tmp_path: Path, encoding: str) -> None:
    body = 'id,x\nq1,"배송\n언제"\nq2,b\n'
    table = read_table(write(tmp_path, body.encode(encoding)), encoding=encoding)
    assert table.values("x") == ["배송\n언제", "b"]
    assert [table.line(i) for i in range(2)] == [2, 4]


def test_the_wrong_named_encoding_stops_with_line_and_offset(tmp_path: Path) -> None:
    data = "id,x\nq1,ok\n".encode("cp949") + b"q2,\xff\n"
    text = fault_of(write(tmp_path, data), encoding="cp949")
    assert "t.csv:3: byte 0xff at offset 14 is not cp949" in text


@pytest.mark.parametrize("name", ["base64", "no-such", "rot13"])
def test_no_text_encoding(tmp_path: Path, name: str) -> None:
    assert "is not a text encoding" in fault_of(write(tmp_path, "id\na\n"), encoding=name)


def test_gzip_and_damaged_gzip(tmp_path: Path) -> None:
    data = gzip.compress(b"id,x\na,1\n")
    assert read_table(write(tmp_path, data, "t.csv.gz")).values("x") == ["1"]
    assert "gzip data is damaged" in fault_of(write(tmp_path, data[:-9], "u.csv.gz"))


def test_paths_that_cannot_be_read(tmp_path: Path) -> None:
    assert "no such file" in fault_of(tmp_path / "none.csv")
    assert "is a folder" in fault_of(tmp_path)
    assert "says no format" in fault_of(write(tmp_path, "id\na\n", "t.xlsx"))


def test_one_fault_of_a_kind_too_many_is_counted(tmp_path: Path) -> None:
    path = write(tmp_path, "id,x\n" + "a\n" * 350)
    with pytest.raises(InputError) as caught:
        read_table(path)
    assert len(caught.value.faults) == 101
    assert "250 more rows have a fault of the same kind" in str(caught.value.faults[-1])


cells = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=12)


@given(st.lists(st.tuples(cells.filter(bool), cells, cells), min_size=1, max_size=8))
def test_what_the_csv_module_writes_is_read_back(tmp_path_factory: pytest.TempPathFactory, rows: list) -> None:
    out = io.StringIO(newline="")
    csv.writer(out, quoting=csv.QUOTE_ALL).writerows([("id", "x", "y"), *rows])
    path = write(tmp_path_factory.mktemp("csv"), out.getvalue())
    table: Table = read_table(path)
    assert list(zip(table.values("id"), table.values("x"), table.values("y"), strict=True)) == rows
