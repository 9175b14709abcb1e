"""Columns as checked values, and which column holds which field."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.tabular.faults import Faults
from evalkit.tabular.fields import Fields, parse_number
from evalkit.tabular.ids import SimilarIds, read_ids, repeated
from evalkit.tabular.names import nearest
from evalkit.tabular.read import read_table
from evalkit.tabular.resolve import Schema, resolve


def fields_of(tmp_path: Path, text: str, name: str = "t.csv", **columns: str) -> Fields:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    table = read_table(path)
    return Fields(table, columns or {c: c for c in table.columns}, Faults("t"))


def says(fields: Fields) -> list[str]:
    return [f"{f.row}: {f.what}" for f in fields.faults]


@pytest.mark.parametrize(
    ("text", "number"),
    [("1", 1), (" 1e-3 ", 0.001), (".5", 0.5), ("5.", 5), ("+2", 2), ("007", 7), ("-0.0", 0)],
)
def test_numbers_that_are_read(text: str, number: float) -> None:
    assert parse_number(text) == number


@pytest.mark.parametrize("text", ["", "1_000", "1,5", "0x10", "١", "1e", "--1", "ten", "1 2", "½", "1.2.3"])
def test_numbers_that_are_not_read(text: str) -> None:
    assert parse_number(text) is None


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_any_float_python_writes_is_read_back(value: float) -> None:
    assert parse_number(repr(value)) == value


def test_the_quick_and_the_careful_way_read_the_same_numbers(tmp_path: Path) -> None:
    body = ["0.1", "+2", ".5", "5.", "1e-3", "-7", "1E5", "0.30000000000000004", "123456789012345678"]
    quick = fields_of(tmp_path, "x\n" + "\n".join(body) + "\n").numbers("x")
    careful = fields_of(tmp_path, "x\n" + "\n".join([*body, " 1"]) + "\n").numbers("x")[:-1]
    assert quick.tolist() == careful.tolist() == [float(b) for b in body]


def test_bad_numbers_of_every_kind_in_one_run(tmp_path: Path) -> None:
    fields = fields_of(tmp_path, 'x,y\n1,\nten,\n"0,7",\nNaN,\n-inf,\n-3,\n9,\n1e999,\n,\n')
    values = fields.numbers("x", minimum=0, maximum=5, blank="write it", says="so it is")
    assert sorted(says(fields)) == [
        '2: "ten" is not a number',
        '3: "0,7" is not a number, it reads as a decimal comma',
        '4: "NaN" is not a finite number',
        '5: "-inf" is not a finite number',
        '6: "-3" is below 0: so it is',
        '7: "9" is above 5: so it is',
        '8: "1e999" is not a finite number',
        "9: is blank",
    ]
    assert values[0] == 1
    assert np.isnan(values[1:]).all()


def test_numbers_from_json_values(tmp_path: Path) -> None:
    fields = fields_of(tmp_path, '{"x": 1}\n{"x": "2.5"}\n{"x": true}\n{"x": [1]}\n{}\n{"x": ""}\n', "t.jsonl")
    values = fields.numbers("x")
    assert values[:2].tolist() == [1, 2.5]
    assert np.isnan(values[2:]).all()
    assert says(fields) == ["3: true is not a number", '4: "[1]" is not a number']


def test_an_integer_too_large_for_a_float(tmp_path: Path) -> None:
    fields = fields_of(tmp_path, '{"x": 1' + "0" * 400 + "}\n", "t.jsonl")
    assert math.isnan(fields.numbers("x")[0])
    assert len(says(fields)) == 1


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl"])
def test_truth_values(tmp_path: Path, name: str) -> None:
    words = ["true", "False", "TRUE", "1", "0", " true", "", "yes", "2", "None"]
    text = (
        "x,y\n" + "".join(f"{w},\n" for w in words)
        if name == "t.csv"
        else "".join(f'{{"x": "{w}"}}\n' for w in words)
    )
    fields = fields_of(tmp_path, text, name)
    assert fields.truths("x").tolist() == [1, 0, 1, 1, 0, 1, -1, -1, -1, -1]
    assert says(fields) == [
        f'{row}: "{w}" is neither true nor false' for row, w in ((8, "yes"), (9, "2"), (10, "None"))
    ]


def test_truth_values_of_json(tmp_path: Path) -> None:
    fields = fields_of(tmp_path, '{"x": true}\n{"x": 0}\n{"x": 1.0}\n{"x": null}\n{"x": 2}\n', "t.jsonl")
    assert fields.truths("x").tolist() == [1, 0, 1, -1, -1]
    assert says(fields) == ["5: 2 is neither true nor false"]


def test_false_in_text_is_not_true(tmp_path: Path) -> None:
    assert fields_of(tmp_path, "x\nFALSE\nFalse\nfalse\n0\n").truths("x").tolist() == [0, 0, 0, 0]


def test_classes_suggest_and_list_the_allowed_once(tmp_path: Path) -> None:
    fields = fields_of(tmp_path, "x,y\nlow,\nHigh ,\nhihg,\n,\nzzz,\n")
    assert fields.codes("x", ["low", "high"], "risk class", blank_fix="write it").tolist() == [0, -1, -1, -1, -1]
    found = list(fields.faults)
    assert ['"High "' in found[0].what, found[0].fix] == [True, "write high"]
    assert found[1].fix == "write high"
    assert found[2].what.startswith("is blank")
    assert sum("allowed: low, high" in f.what for f in found) == 1


def test_class_names_are_compared_in_normal_form(tmp_path: Path) -> None:
    fields = fields_of(tmp_path, "x\ncafe\u0301\ncaf\u00e9\n")
    assert fields.codes("x", ["caf\u00e9"], "tier").tolist() == [0, 0]
    assert fields_of(tmp_path, "x\ncaf\u00e9\n").codes("x", ["cafe\u0301"], "tier").tolist() == [0]


def test_ids_in_json_are_text_whole_numbers_their_digits_and_nothing_else(tmp_path: Path) -> None:
    body = '{"id": "007"}\n{"id": 12345678901234567890}\n{"id": 1.0}\n{"id": true}\n{"id": " "}\n{}\n'
    fields = fields_of(tmp_path, body, "t.jsonl", id="id")
    assert read_ids(fields).to_pylist()[:2] == ["007", "12345678901234567890"]
    assert sorted(says(fields)) == [
        "3: 1.0 is a number with a decimal point or exponent, not text",
        "4: true is true or false, not text",
        "5: is blank",
        "6: is blank",
    ]


@pytest.mark.parametrize("value", ["4.892E+09", "4,9E+15", "1E+10"])
def test_ids_a_spreadsheet_rounded(tmp_path: Path, value: str) -> None:
    fields = fields_of(tmp_path, f'id,x\n"{value}",1\nb,2\n"{value}",3\n', id="id")
    read_ids(fields)
    assert len(says(fields)) == 1
    assert "lines 2, 4 carry it" in says(fields)[0]


@pytest.mark.parametrize("value", ["73928e05", "00042", "1E10", "E+05", "v1.2E+03x"])
def test_ids_that_only_look_odd_are_kept(tmp_path: Path, value: str) -> None:
    fields = fields_of(tmp_path, f"id,x\n{value},1\n", id="id")
    assert read_ids(fields).to_pylist() == [value]
    assert not says(fields)


def test_repeated_gives_groups_in_order() -> None:
    groups = repeated(np.array([5, 1, -1, 1, 5, -1, 2, 5]))
    assert [g.tolist() for g in groups] == [[0, 4, 7], [1, 3]]


SCHEMA = Schema(required=("id", "risk"), optional=("weight", "prompt"), aliases={"risk": "class"})


def resolved(
    tmp_path: Path, header: str, mapping: dict[str, str] | None = None
) -> tuple[dict[str, str], list[str], list[str]]:
    path = tmp_path / "t.csv"
    path.write_text(header + "\n" + ",".join("x" for _ in header.split(",")) + "\n", encoding="utf-8")
    table = read_table(path)
    faults = Faults("t")
    names = resolve(table, SCHEMA, mapping, faults)
    return names, [f"{f.what} | {f.fix}" for f in faults], table.notices


def test_columns_by_their_own_name_by_alias_and_by_mapping(tmp_path: Path) -> None:
    assert resolved(tmp_path, "id,class")[0] == {"id": "id", "risk": "class"}
    assert resolved(tmp_path, "q,rk,id", {"id": "q", "risk": "rk"})[0] == {"id": "q", "risk": "rk"}


def test_missing_columns_name_the_nearest(tmp_path: Path) -> None:
    _, faults, _ = resolved(tmp_path, "id,riks")
    assert len(faults) == 1
    assert 'no column "risk" (did you mean "riks"?)' in faults[0]


def test_a_mapped_column_that_is_not_there(tmp_path: Path) -> None:
    _, faults, _ = resolved(tmp_path, "query_id,risk", {"id": "queryid"})
    assert len(faults) == 1
    assert 'no column "queryid" (did you mean "query_id"?)' in faults[0]


def test_a_mapped_field_that_is_none(tmp_path: Path) -> None:
    _, faults, _ = resolved(tmp_path, "id,risk", {"wieght": "id"})
    assert 'maps "wieght", which is no field here (did you mean "weight"?)' in faults[0]


@pytest.mark.parametrize("column", ["Weight", "weights", " weight", "WEIGHT"])
def test_a_misspelt_optional_column_is_not_left_out_silently(tmp_path: Path, column: str) -> None:
    _, faults, _ = resolved(tmp_path, f"id,risk,{column}")
    assert len(faults) == 1
    assert 'looks like "weight"' in faults[0]


def test_other_columns_are_named_in_a_notice(tmp_path: Path) -> None:
    _, faults, notices = resolved(tmp_path, "id,risk,weigth,colour")
    assert not faults
    assert len(notices) == 1
    assert '"weigth" (did you mean weight?), "colour" are not used' in notices[0]


def test_nearest_prefers_names_that_differ_only_in_case() -> None:
    assert nearest("HIGH ", ["thigh", "high"], 1) == ["high"]
    assert nearest("zzz", ["low", "high"]) == []


def test_a_value_that_is_no_text_has_one_fault(tmp_path: Path) -> None:
    fields = fields_of(tmp_path, '{"id": "a", "x": true}\n{"id": "b", "x": ""}\n', "t.jsonl")
    fields.codes("x", ["low"], "risk class", blank_fix="write it")
    fields.codes("x", ["low"], "risk class")
    assert says(fields)[0] == "1: true is true or false, not text"
    assert [f.row for f in fields.faults] == [1, 2]


def test_hints_for_ids() -> None:
    few = SimilarIds(["00042", "item-1", "Item-2"])
    assert few.hint("42") == ' (did you mean "00042"?)'
    assert few.hint("item-2 ") == ' (did you mean "Item-2"?)'
    assert few.hint("itm-1") == ' (did you mean "item-1"?)'
    assert few.hint("xyz") == ""
    assert SimilarIds([f"{i:05d}" for i in range(2000)]).hint("42") == ' (did you mean "00042"?)'


def test_ids_that_are_all_whole_numbers(tmp_path: Path) -> None:
    fields = fields_of(tmp_path, '{"id": 7}\n{"id": 8}\n', "t.jsonl", id="id")
    assert read_ids(fields).to_pylist() == ["7", "8"]
    assert not says(fields)
