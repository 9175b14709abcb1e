"""Importers: what is mapped, and what is counted instead of guessed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalkit.errors import InputError
from evalkit.outcomes.importers.build import Imported, MarkKind, Measure, mark_kind, read_mark
from evalkit.outcomes.importers.long import LongColumns, import_long
from evalkit.outcomes.importers.matrix import MatrixKeys, import_matrix
from evalkit.outcomes.importers.wide import Exclude, WideColumns, import_wide
from evalkit.outcomes.read import read_outcomes
from evalkit.tabular.write import write_table


def write(tmp_path: Path, text: str, name: str = "wide.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(text.encode())
    return path


def rows(imported: Imported) -> list[dict[str, Any]]:
    return [
        {k: v for k, v in zip(imported.columns, row, strict=True) if v is not None}
        for row in zip(*imported.columns.values(), strict=True)
    ]


def messages(call: Any) -> list[str]:
    with pytest.raises(InputError) as caught:
        call()
    return [str(f) for f in caught.value.faults]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["True", "False"], MarkKind.PASSED),
        (["1", "0", ""], MarkKind.PASSED),
        (["1", "0.5"], MarkKind.SCORE),
        ([1, 0, 0.25], MarkKind.SCORE),
        (["7", "9.5"], MarkKind.PASSED),
        ([], MarkKind.PASSED),
    ],
)
def test_a_mark_is_a_score_where_any_value_lies_between(values: list[Any], kind: str) -> None:
    assert mark_kind(values) == kind


@pytest.mark.parametrize("value", ["TRUE", "true", True, 1, "1", "1.0", 1.0])
def test_marks_that_pass(value: Any) -> None:
    assert read_mark(value, MarkKind.PASSED) is True


@pytest.mark.parametrize("value", ["False", "FALSE", False, 0, "0", 0.0])
def test_marks_that_fail(value: Any) -> None:
    assert read_mark(value, MarkKind.PASSED) is False


@pytest.mark.parametrize("value", ["yes", "", None, 2, "7", "0.5", [], {"a": 1}, "nan"])
def test_marks_that_are_not_guessed(value: Any) -> None:
    assert read_mark(value, MarkKind.PASSED) is None


@pytest.mark.parametrize("value", ["True", "-0.1", 1.5, "nan", "inf", None, True])
def test_scores_that_are_not_guessed(value: Any) -> None:
    assert read_mark(value, MarkKind.SCORE) is None


def test_wide_makes_a_row_per_item_and_tier(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "qid,m1,m2,c1,c2,ms1,t1,r2,e2\n"
        "007,True,0.5,0.001,0.2,1500,12,yes,\n8,False,1,,n/a,,x,,timeout\n9,,0,0.1,-1,2,3,,timeout\n",
    )
    imported = import_wide(
        [path],
        WideColumns(
            id="qid",
            tiers={"cheap": "m1", "top": "m2"},
            measures={
                "cheap": [
                    Measure("cost_usd", "c1"),
                    Measure("task_s", "ms1", 1000),
                    Measure("output_tokens", "t1"),
                ],
                "top": [Measure("cost_usd", "c2")],
            },
            texts={"top": {"reply": "r2", "error": "e2"}},
            model={"top": "big"},
        ),
    )
    assert rows(imported) == [
        {"id": "007", "tier": "cheap", "passed": True, "cost_usd": 0.001, "task_s": 1.5, "output_tokens": 12},
        {"id": "007", "tier": "top", "model": "big", "score": 0.5, "cost_usd": 0.2, "reply": "yes"},
        {"id": "8", "tier": "cheap", "passed": False},
        {"id": "9", "tier": "top", "model": "big", "status": "error", "error": "timeout"},
    ]
    assert imported.unmapped == {
        "output_tokens that is no number of 0 or more": 1,
        "cost_usd that is no number of 0 or more": 1,
        "no mark of right or wrong": 1,
        "both an error and a pass": 1,
    }
    assert imported.examples["no mark of right or wrong"] == [f'{path}, line 4 (row 3), m1: ""']
    assert imported.notices == ("items without a row: cheap 1 of 3, top 1 of 3",)


def test_the_marks_of_one_tier_are_read_one_way_over_all_files(tmp_path: Path) -> None:
    a = write(tmp_path, "id,m\na,1\n", "a.csv")
    b = write(tmp_path, "id,m\nb,0.5\nc,True\n", "b.csv")
    imported = import_wide([a, b], WideColumns(id="id", tiers={"t": "m"}))
    assert rows(imported) == [{"id": "a", "tier": "t", "score": 1.0}, {"id": "b", "tier": "t", "score": 0.5}]
    assert imported.unmapped == {"a mark that is no number from 0 to 1": 1}


def test_ids_of_file_name_and_row_and_kept_columns(tmp_path: Path) -> None:
    a = write(tmp_path, "p,m\nx,1\ny,0\nx,1\n", "a.csv")
    b = write(tmp_path, "p,m\nz,0\n", "b.csv")
    drop = write(tmp_path, '{"gone": "y"}\n{"gone": "nowhere"}\n', "drop.jsonl")
    imported = import_wide(
        [b, a],
        WideColumns(
            id=None,
            tiers={"t": "m"},
            keep={"prompt": "p", "category": "@file"},
            exclude=Exclude(drop, "gone", "p"),
        ),
    )
    assert imported.columns["id"] == ["b:1", "a:1", "a:3"]
    assert imported.labels == {"id": ["b:1", "a:1", "a:3"], "prompt": ["z", "x", "x"], "category": ["b", "a", "a"]}
    assert '1 of 4 rows left out: their "p" is in' in imported.notices[0]
    assert "1 of 2 values" in imported.notices[1]
    assert "nowhere" in imported.notices[1]


def test_a_repeated_id_names_both_places(tmp_path: Path) -> None:
    a = write(tmp_path, "id,m\na,1\n", "a.csv")
    b = write(tmp_path, "id,m\nx,1\na,0\n", "b.csv")
    said = messages(lambda: import_wide([a, b], WideColumns(id="id", tiers={"t": "m"})))
    assert len(said) == 1
    assert "a.csv, line 2 (row 1)" in said[0]
    assert "b.csv, line 3 (row 2)" in said[0]


def test_columns_that_are_not_there(tmp_path: Path) -> None:
    path = write(tmp_path, "id,model_a\na,1\n")
    said = messages(lambda: import_wide([path], WideColumns(id="idd", tiers={"t": "model-a"})))
    assert len(said) == 2
    assert any('"model-a" (did you mean "model_a"?)' in m for m in said)


def test_nothing_mapped_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path, "id,m\na,good\nb,bad\n")
    said = messages(lambda: import_wide([path], WideColumns(id="id", tiers={"t": "m"})))
    assert "no row could be mapped: 2 with a mark that is no true, false, 1 or 0" in said[0]


def test_statuses_of_other_tools_are_not_guessed(tmp_path: Path) -> None:
    path = write(tmp_path, "id,m,s\na,0,timeout\nb,1,ok\nc,,truncated\nd,1,wrong\n")
    imported = import_wide([path], WideColumns(id="id", tiers={"t": "m"}, texts={"t": {"status": "s"}}))
    assert [r.get("status") for r in rows(imported)] == ["ok", "truncated"]
    assert imported.unmapped == {"a status that is not known": 1, "a pass beside a status that is no pass": 1}


def test_an_error_beside_a_pass_is_not_guessed(tmp_path: Path) -> None:
    path = write(tmp_path, "id,m,e\na,1,boom\nb,1,\n")
    imported = import_wide([path], WideColumns(id="id", tiers={"t": "m"}, texts={"t": {"error": "e"}}))
    assert imported.columns["id"] == ["b"]
    assert imported.unmapped == {"both an error and a pass": 1}


MATRIX = {
    "small": {"q1": {"ok": 1, "usd": 0.001, "lat": 250}, "q2": {"ok": 0, "usd": 0.002, "lat": 500}},
    "big": {"q2": {"ok": 1, "usd": None}, "q1": {"ok": 1}, "q3": {"ok": "?"}},
    "other": {"q1": {"ok": 1}},
}
KEYS = MatrixKeys(
    "ok", [Measure("cost_usd", "usd"), Measure("task_s", "lat", 1000)], tiers={"cheap": "small", "top": "big"}
)


def test_a_matrix_item_by_item(tmp_path: Path) -> None:
    imported = import_matrix(write(tmp_path, json.dumps(MATRIX), "m.json"), KEYS)
    assert rows(imported) == [
        {"id": "q1", "tier": "cheap", "model": "small", "passed": True, "cost_usd": 0.001, "task_s": 0.25},
        {"id": "q1", "tier": "top", "model": "big", "passed": True},
        {"id": "q2", "tier": "cheap", "model": "small", "passed": False, "cost_usd": 0.002, "task_s": 0.5},
        {"id": "q2", "tier": "top", "model": "big", "passed": True},
    ]
    assert imported.unmapped == {"no entry for an item": 1, "a mark that is no true, false, 1 or 0": 1}


def test_a_matrix_the_other_way_round(tmp_path: Path) -> None:
    turned: dict[str, dict[str, Any]] = {}
    for model, items in MATRIX.items():
        for item, cell in items.items():
            turned.setdefault(item, {})[model] = cell
    from dataclasses import replace

    path = write(tmp_path, json.dumps(turned), "t.json")
    imported = import_matrix(path, replace(KEYS, items_outer=True))
    assert sorted(map(str, rows(imported))) == sorted(
        map(str, rows(import_matrix(write(tmp_path, json.dumps(MATRIX), "m.json"), KEYS)))
    )
    assert any("--items-outer" in m for m in messages(lambda: import_matrix(path, KEYS)))


def test_all_models_are_tiers_by_default(tmp_path: Path) -> None:
    imported = import_matrix(write(tmp_path, json.dumps(MATRIX), "m.json"), MatrixKeys("ok"))
    assert imported.tiers == ("small", "big", "other")


@pytest.mark.parametrize("text", ["[]", "{}", '{"a": 1}', '{"a": {}}', '{"a": {"b": 1}, "a": {}}', "{"])
def test_what_is_no_matrix(tmp_path: Path, text: str) -> None:
    assert len(messages(lambda: import_matrix(write(tmp_path, text, "m.json"), KEYS))) == 1


def test_long_rows_with_other_names_and_units(tmp_path: Path) -> None:
    records = [
        {"item": 1, "policy": "a", "ok": True, "ms": 20, "run": "0"},
        {"item": 1, "policy": "b", "ok": False, "run": "0"},
        {"item": 1, "policy": "z", "ok": False, "run": "0"},
        {"item": 1.5, "policy": "a", "ok": True, "run": "0"},
        {"item": 1, "policy": "a", "ok": True, "run": "1"},
    ]
    path = write(tmp_path, json.dumps({"n": 5, "rows": records}), "l.json")
    columns = LongColumns(
        "item", "policy", "ok", [Measure("task_s", "ms", 1000)], tiers={"cheap": "a", "top": "b"}, sample="run"
    )
    imported = import_long(path, columns, records="rows")
    assert rows(imported) == [
        {"id": "1", "tier": "cheap", "sample": 0, "passed": True, "task_s": 0.02},
        {"id": "1", "tier": "top", "sample": 0, "passed": False},
        {"id": "1", "tier": "cheap", "sample": 1, "passed": True},
    ]
    assert imported.unmapped == {"no id that is text or a whole number": 1}
    assert "1 of 5 rows left out: their policy is z" in imported.notices[0]


def test_long_tiers_that_are_not_there(tmp_path: Path) -> None:
    path = write(tmp_path, "item,policy,ok\n1,always_cheap,1\n", "l.csv")
    said = messages(lambda: import_long(path, LongColumns("item", "policy", "ok", tiers={"c": "alway_cheap"})))
    assert 'did you mean "always_cheap"' in said[0]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_what_is_imported_can_be_read(tmp_path: Path, suffix: str) -> None:
    imported = import_matrix(write(tmp_path, json.dumps(MATRIX), "m.json"), KEYS)
    out = tmp_path / f"o{suffix}"
    write_table(out, imported.columns)
    outcomes = read_outcomes(out, ids=["q1", "q2"], tiers=["cheap", "top"])
    assert outcomes.passed[:, :, 0].tolist() == [[True, True], [False, True]]
    assert outcomes.cost_usd[0, 0, 0] == 0.001
