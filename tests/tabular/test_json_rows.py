"""Strict JSON records."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalkit.errors import InputError
from evalkit.tabular.json_rows import StrictJSONError, parse_json
from evalkit.tabular.read import read_table


def write(tmp_path: Path, data: bytes | str, name: str = "t.jsonl") -> Path:
    path = tmp_path / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def fault_of(path: Path, **kw: object) -> str:
    with pytest.raises(InputError) as caught:
        read_table(path, **kw)  # type: ignore[arg-type]
    return str(caught.value)


def test_records_with_other_keys_and_blank_lines(tmp_path: Path) -> None:
    table = read_table(
        write(tmp_path, '\ufeff{"id": "a", "x": 1}\n\n{"y": [1], "id": "b"}\r\n{"id": "c", "x": null}')
    )
    assert table.columns == {"id": ["a", "b", "c"], "x": [1, None, None], "y": [None, [1], None]}
    assert [table.line(i) for i in range(3)] == [1, 3, 4]
    assert [table.row(i) for i in range(3)] == [1, 2, 3]


def test_raw_unicode_line_separators_do_not_split_a_record(tmp_path: Path) -> None:
    table = read_table(write(tmp_path, '{"id": "a\u2028b"}\n{"id": "c"}\n'))
    assert table.columns["id"] == ["a\u2028b", "c"]
    assert table.line(1) == 2


def test_a_torn_last_line_is_named(tmp_path: Path) -> None:
    text = fault_of(write(tmp_path, '{"id": "q1"}\n{"id": "q2"}\n{"id": "q3", "tier": "mi'))
    assert "t.jsonl:3: row 3: the last line is cut off" in text
    assert "t.jsonl:1" not in text


def test_a_whole_last_line_without_an_end_is_fine(tmp_path: Path) -> None:
    assert read_table(write(tmp_path, '{"id": "q1"}\n{"id": "q2"}')).n_rows == 2


def test_the_torn_and_glued_files_of_practice(shared: Path) -> None:
    folder = shared / "cases" / "R01-torn-last-line"
    assert "results_torn.jsonl:3: " in fault_of(folder / "results_torn.jsonl")
    glued = fault_of(folder / "results_glued.jsonl")
    assert "results_glued.jsonl:2: " in glued
    assert ":3:" not in glued
    assert read_table(folder / "results_noeol.jsonl").values("query_id") == ["q1", "q2"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"id": "a", "id": "b"}', 'the key "id" stands more than once'),
        ('{"id": {"k": 1, "k": 2}}', 'the key "k" stands more than once'),
        ('{"id": NaN}', "NaN is not a JSON number"),
        ('{"id": -Infinity}', "-Infinity is not a JSON number"),
        ('{"id": 1e999}', "too large"),
        ('{"id": "\\ud800"}', "surrogate"),
        ("[1]", "is a list, not an object"),
        ("null", "is null, not an object"),
        ('{"id": "a"} {"id": "b"}', "Extra data"),
        ("{'id': 'a'}", "is not valid JSON"),
        ("[" * 100_000, "nested too deep"),
        ('{"id": ' + "9" * 5000 + "}", "digits"),
    ],
)
def test_lines_that_are_not_strict_json(tmp_path: Path, line: str, words: str) -> None:
    text = fault_of(write(tmp_path, '{"id": "ok"}\n' + line + '\n{"id": "ok2"}\n'))
    assert "t.jsonl:2: row 2" in text
    assert words in text
    assert text.count("\n") == 0


def test_all_bad_lines_in_one_run(tmp_path: Path) -> None:
    text = fault_of(write(tmp_path, "x\n{}\ny\n"))
    assert "t.jsonl:1:" in text
    assert "t.jsonl:3:" in text


def test_escaped_letters_beside_the_surrogates_are_text() -> None:
    assert parse_json('"\\ud7a3\\ue000\\u00e9"') == "힣\ue000é"
    with pytest.raises(StrictJSONError, match="surrogate"):
        parse_json('"é\\uDBFF"')


def test_surrogate_pairs_are_text() -> None:
    assert parse_json('"\\ud83d\\ude00"') == "😀"


def test_literals_keep_how_a_number_was_written() -> None:
    assert parse_json("[1.50, 2]", literals=True)[0].literal == "1.50"
    with pytest.raises(StrictJSONError):
        parse_json("1e400", literals=True)


def test_a_json_document_of_records(tmp_path: Path) -> None:
    assert read_table(write(tmp_path, '[{"id": 1}, {"id": 2}]', "t.json")).columns == {"id": [1, 2]}
    nested = write(tmp_path, '{"meta": 1, "items": [{"id": 1}]}', "u.json")
    assert read_table(nested, records="items").columns == {"id": [1]}
    assert "--records items" in fault_of(nested)
    assert 'did you mean "items"' in fault_of(nested, records="item")
    assert "row 2: is a number, not an object" in fault_of(write(tmp_path, '[{"id": 1}, 2]', "v.json"))
    assert "holds no records" in fault_of(write(tmp_path, "[]", "w.json"))


def test_keys_equal_only_in_normal_form_are_a_fault(tmp_path: Path) -> None:
    assert "normal form" in fault_of(write(tmp_path, '{"caf\u00e9": 1}\n{"cafe\u0301": 2}\n'))


def test_an_empty_file_of_blank_lines(tmp_path: Path) -> None:
    assert "holds no records" in fault_of(write(tmp_path, "\n \n"))


@pytest.mark.parametrize("literal", ["NaN", "-Infinity", "1e999"])
def test_what_is_no_number_is_named_with_its_id_and_field(tmp_path: Path, literal: str) -> None:
    path = write(tmp_path, f'{{"id": "q1", "score": 0.1}}\n{{"id": "q2", "score": {literal}}}\n')
    text = fault_of(path, id_column="id")
    assert "t.jsonl:2: row 2 (id q2), field score: " in text
    assert literal in text
    assert "write null" in text
