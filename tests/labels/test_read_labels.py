"""`read_labels` on files of every format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evalkit.errors import InputError
from evalkit.labels.labelset import LabelSet
from evalkit.labels.read import read_labels
from evalkit.labels.summary import summarise, summary_lines
from evalkit.tabular.write import write_table

TIERS, RISKS = ("cheap", "frontier"), ("low", "high")


def load(path: Path, **kw: Any) -> LabelSet:
    return read_labels(path, **{"tiers": TIERS, "risk_classes": RISKS, **kw})


def write(tmp_path: Path, text: str, name: str = "labels.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(text.encode())
    return path


def messages(path: Path, **kw: Any) -> list[str]:
    with pytest.raises(InputError) as caught:
        load(path, **kw)
    return [str(f) for f in caught.value.faults]


WHOLE: dict[str, list[Any]] = {
    "id": ["007", "b", "c", "d"],
    "prompt": ["p1", "p,2\n", "한국어", None],
    "required_tier": ["cheap", "frontier", "unsolvable", "cheap"],
    "risk": ["low", "high", "high", "low"],
    "weight": [0.5, 1.0, 0.0, 2.25],
    "group": ["g1", None, "g1", None],
    "category": ["x", "y", None, "x"],
    "reference": ["1", "007", None, "TRUE"],
    "metadata": [{"k": 1}, None, {"z": [None, 2.5]}, None],
    "messages": [None, [{"role": "user", "content": "hi"}], None, None],
    "labels": [["cheap", "cheap"], None, None, None],
}


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".csv.gz", ".json"])
def test_every_format_gives_the_same_labels(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"l{suffix}"
    if suffix == ".json":
        rows = [dict(zip(WHOLE, row, strict=True)) for row in zip(*WHOLE.values(), strict=True)]
        path.write_text(json.dumps(rows), encoding="utf-8")
    else:
        write_table(path, WHOLE)
    labels = load(path)
    assert labels.ids == ("007", "b", "c", "d")
    assert list(labels.prompts) == WHOLE["prompt"]
    assert labels.required.tolist() == [0, 1, 2, 0]
    assert labels.required.dtype == np.int8
    assert labels.risk.tolist() == [0, 1, 1, 0]
    assert labels.risk.dtype == np.int16
    assert labels.weight.tolist() == WHOLE["weight"]
    assert labels.group == ("g1", None, "g1", None)
    assert labels.category == ("x", "y", None, "x")
    assert labels.reference == ("1", "007", None, "TRUE")
    assert labels.metadata == WHOLE["metadata"]
    assert labels.messages == WHOLE["messages"]
    assert labels.annotations == WHOLE["labels"]
    assert labels.risk_names == ("low", "high", "high", "low")
    assert [labels.required_name(i) for i in range(4)] == WHOLE["required_tier"]
    reference = tmp_path / "reference.jsonl"
    write_table(reference, {name: values[::-1] for name, values in reversed(WHOLE.items())})
    assert labels.fingerprint == load(reference).fingerprint


def test_each_field_changes_the_fingerprint(tmp_path: Path) -> None:
    def mark(columns: dict[str, list[Any]]) -> str:
        write_table(tmp_path / "l.jsonl", columns)
        return load(tmp_path / "l.jsonl").fingerprint

    seen = {mark(WHOLE)}
    for name, value in [
        ("id", "e"),
        ("prompt", "p"),
        ("required_tier", "frontier"),
        ("risk", "high"),
        ("weight", 3.0),
        ("group", "g1"),
        ("category", "q"),
        ("reference", "true"),
        ("metadata", {}),
        ("messages", [{"role": "user", "content": "x"}]),
        ("labels", ["cheap"]),
    ]:
        seen.add(mark({**WHOLE, name: [*WHOLE[name][:-1], value]}))
    assert len(seen) == 12


def test_defaults_where_the_file_has_no_such_column(tmp_path: Path) -> None:
    labels = load(write(tmp_path, "id,required_tier,risk\na,cheap,low\n"))
    assert labels.weight.tolist() == [1.0]
    assert list(labels.prompts) == [None]
    assert labels.group is labels.category is labels.reference is labels.metadata is None
    assert labels.lines == [2]
    assert labels.notices == ()


def test_all_faults_of_all_kinds_in_one_run_in_file_order(tmp_path: Path) -> None:
    said = messages(
        write(
            tmp_path,
            "id,required_tier,risk,weight\n"
            ",cheap,low,1\nb,chaep,low,1\nc,cheap,lwo,1\nd,cheap,low,x\nb,cheap,low,1\ne,cheap\n",
        )
    )
    assert [m.split(": ")[0].rsplit(":", 1)[1] for m in said] == ["2", "3", "4", "5", "6", "7"]


def test_missing_columns_are_all_named(tmp_path: Path) -> None:
    said = messages(write(tmp_path, "query_id,tier\na,cheap\n"))
    assert len(said) == 3
    assert any('no column "id" (did you mean' in m or 'no column "id"' in m for m in said)
    assert any("required_tier" in m for m in said)
    assert any("risk" in m for m in said)


def test_required_tiers_may_be_left_out_where_nobody_needs_them(tmp_path: Path) -> None:
    path = write(tmp_path, "id,risk\na,low\nb,high\n")
    assert load(path, require_required_tier=False).required.tolist() == [-1, -1]
    some = write(tmp_path, "id,risk,required_tier\na,low,\nb,high,cheap\n")
    assert load(some, require_required_tier=False).required.tolist() == [-1, 0]
    assert "is blank" in messages(some)[0]
    assert (
        "is not a tier"
        in messages(write(tmp_path, "id,risk,required_tier\na,low,x\n"), require_required_tier=False)[0]
    )


def test_identical_rows_are_dropped_only_when_asked(tmp_path: Path) -> None:
    path = write(tmp_path, "id,required_tier,risk,prompt\na,cheap,low,p\nb,cheap,low,\ufffd\na,cheap,low,p\n")
    said = messages(path)
    assert len(said) == 1
    assert "labels.csv:4: row 3 (id a)" in said[0]
    assert "line 2 (row 1)" in said[0]
    assert "equal in every field" in said[0]
    assert "--drop-identical" in said[0]
    labels = load(path, drop_identical=True)
    assert labels.ids == ("a", "b")
    assert labels.lines == [2, 3]
    assert any("1 row equal to an earlier row in every field dropped" in n for n in labels.notices)
    assert any("1 prompt (first: line 3 (row 2)) holds U+FFFD" in n for n in labels.notices)


def test_rows_that_differ_only_in_a_column_nobody_uses_are_not_identical(tmp_path: Path) -> None:
    path = write(tmp_path, "id,required_tier,risk,note\na,cheap,low,1\na,cheap,low,2\n")
    assert "note differs" in messages(path, drop_identical=True)[0]


def test_ids_equal_only_in_normal_form_are_a_fault(tmp_path: Path) -> None:
    path = write(tmp_path, "id,required_tier,risk\ncaf\u00e9,cheap,low\ncafe\u0301,cheap,low\n")
    said = messages(path, drop_identical=True)
    assert len(said) == 1
    assert "normal form C" in said[0]
    one = load(write(tmp_path, "id,required_tier,risk\ncafe\u0301,cheap,low\n"))
    assert one.ids == ("caf\u00e9",)


def test_integer_and_text_ids_of_one_spelling_collide(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "".join(f'{{"id": {i}, "required_tier": "cheap", "risk": "low"}}\n' for i in ("1", '"1"')),
        "l.jsonl",
    )
    assert '"1" also stands on line 1' in messages(path, drop_identical=True)[0]


def test_json_references_keep_what_was_typed(tmp_path: Path) -> None:
    values = ['"TRUE"', "true", "1.50", "12", '{"a": 1}', "null", '""']
    lines = [
        f'{{"id": "{i}", "required_tier": "cheap", "risk": "low", "reference": {v}}}' for i, v in enumerate(values)
    ]
    labels = load(write(tmp_path, "\n".join(lines), "l.jsonl"))
    assert labels.reference == ("TRUE", "true", "1.50", "12", {"a": 1}, None, None)


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("messages", "hi", "is not valid JSON"),
        ("messages", "[]", "is not a list of messages"),
        ("messages", '[{"role": "user"}, {"content": "x"}]', "is not a list of messages"),
        ("metadata", "[1]", "is not a JSON object"),
        ("metadata", '{"a": NaN}', "NaN is not a JSON number"),
        ("metadata", '{"a": 1, "a": 2}', 'the key "a"'),
    ],
)
def test_nested_columns_are_checked(tmp_path: Path, column: str, value: str, words: str) -> None:
    path = tmp_path / "l.csv"
    write_table(path, {"id": ["a"], "required_tier": ["cheap"], "risk": ["low"], column: [value]})
    said = messages(path)
    assert len(said) == 1
    assert words in said[0]


def test_nan_inside_parquet_metadata_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "l.parquet"
    pq.write_table(
        pa.table({"id": ["a"], "required_tier": ["cheap"], "risk": ["low"], "metadata": [{"a": float("nan")}]}),
        path,
    )
    assert "holds NaN" in messages(path)[0]


def test_weights_whose_sum_overflows_stop(tmp_path: Path) -> None:
    path = write(tmp_path, "id,required_tier,risk,weight\na,cheap,low,1e308\nb,cheap,low,1e308\n")
    assert "more than a number can hold" in messages(path)[0]


def test_messages_hide_keys_and_control_characters(tmp_path: Path) -> None:
    key = "sk-FAKE-demo-0000-not-a-key"
    path = write(tmp_path, f'id,required_tier,risk\n"a\x1b[31m","{"x" * 65} {key}",low\n')
    said = messages(path)
    assert "\x1b" not in said[0]
    assert "sk-FAKE" not in said[0]


def test_a_summary_counts_by_tier_and_risk(tmp_path: Path) -> None:
    path = tmp_path / "l.jsonl"
    write_table(path, WHOLE)
    summary = summarise(load(path))
    assert summary.table == ((2, 0), (0, 1), (0, 1))
    assert summary.needs == {"low": 0, "high": 1}
    assert (summary.groups, summary.categories, summary.weight_zero, summary.weighted) == (3, 2, 1, True)
    text = "\n".join(summary_lines(summary))
    assert "4 items" in text
    assert summary.fingerprint in text
    assert json.loads(json.dumps(summary.as_json()))["by_required_tier"]["unsolvable"] == {"low": 0, "high": 1}


def test_many_rows_without_a_tier_are_one_fault_that_says_what_settles_them(tmp_path: Path) -> None:
    rows = [{"id": f"q{i}", "risk": "low", "required_tier": None if i % 2 else "cheap"} for i in range(100)]
    rows[1]["required_tier"] = "chaep"  # 49 are blank, q3 the first of them
    said = messages(write(tmp_path, "".join(json.dumps(r) + "\n" for r in rows), name="labels.jsonl"))
    assert len(said) == 2
    assert '"chaep" is not a tier' in said[0]
    assert (
        "labels.jsonl:4: row 4 (id q3), field required_tier: is blank, and so it is in 48 more of 100" in said[1]
    )
    assert "--adjudicate" not in said[1]
    for row in rows:
        row["labels"] = {"ann": "cheap", "bo": "strong"}
    said = messages(write(tmp_path, "".join(json.dumps(r) + "\n" for r in rows), name="labels.jsonl"))
    assert "evalkit label --adjudicate" in said[1]
    few = [row if i < 6 else {**row, "required_tier": "cheap"} for i, row in enumerate(rows)]
    said = messages(write(tmp_path, "".join(json.dumps(r) + "\n" for r in few), name="labels.jsonl"))
    assert [m.split(":")[1] for m in said] == ["2", "4", "6"]
