"""From the check of a label to grades, and labels that look like booleans."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from evalkit.errors import InputError
from evalkit.grading import Check, CheckKind, Exact, Label, parse_check, reference_faults

SPECS: dict[str, dict[str, object]] = {
    "exact": {"kind": "exact"},
    "choice": {"kind": "choice", "options": ["yes", "no"]},
    "number": {"kind": "number", "tolerance": 0},
    "contains": {"kind": "contains"},
    "json": {"kind": "json", "fields": {"a": "string"}},
    "boolean": {"kind": "boolean", "true_values": ["yes"], "false_values": ["no"]},
    "regex": {"kind": "regex", "pattern": "[A-D]"},
}


def test_every_kind_can_be_asked_for() -> None:
    assert set(SPECS) == set(CheckKind)
    for kind, spec in SPECS.items():
        assert parse_check(spec).kind == kind


@pytest.mark.parametrize(
    ("spec", "field", "value"),
    [
        (None, "check", "None"),
        ("exact", "check", "exact"),
        ({}, "check.kind", "None"),
        ({"kind": "fuzzy"}, "check.kind", "fuzzy"),
        ({"kind": "exact", "case": False}, "check", "case"),
        ({"kind": "choice"}, "check.options", "None"),
        ({"kind": "choice", "options": ["yes"]}, "check.options", "yes"),
        ({"kind": "choice", "options": ["yes", "Yes."]}, "check.options", "Yes."),
        ({"kind": "choice", "options": ["yes", "!"]}, "check.options", "!"),
        ({"kind": "choice", "options": ["yes", True]}, "check.options", "True"),
        ({"kind": "number", "tolerance": -1}, "check.tolerance", "-1"),
        ({"kind": "number", "tolerance": "NaN"}, "check.tolerance", "NaN"),
        ({"kind": "number", "tolerance": True}, "check.tolerance", "True"),
        ({"kind": "json"}, "check.fields", "None"),
        ({"kind": "json", "fields": {"a": "text"}}, "check.fields", "text"),
        ({"kind": "boolean", "true_values": ["yes"]}, "check.false_values", "None"),
        ({"kind": "boolean", "true_values": [True], "false_values": ["no"]}, "check.true_values", "True"),
        ({"kind": "boolean", "true_values": ["1", "x"], "false_values": ["x"]}, "check.true_values", "x"),
    ],
)
def test_a_check_that_cannot_be_used_is_refused(spec: object, field: str, value: str) -> None:
    with pytest.raises(InputError) as raised:
        parse_check(spec)
    fault = raised.value.faults[0]
    assert fault.field == field
    assert value in fault.what


def boolean_case(shared: Path) -> tuple[list[Label], dict[str, str]]:
    """Labels and outputs of the case; in this file each record is one line."""
    case = shared / "cases" / "L09-bool-number-labels"
    with (case / "labels_bool.csv").open(encoding="utf-8", newline="") as file:
        labels = [
            Label(line=row + 1, row=row, id=record["query_id"], value=record["expected"])
            for row, record in enumerate(csv.DictReader(file), start=1)
        ]
    outputs = (case / "outputs.jsonl").read_text(encoding="utf-8").splitlines()
    return labels, {row["query_id"]: row["output"] for row in map(json.loads, outputs)}


def right(check: Check, labels: list[Label], outputs: dict[str, str]) -> list[str]:
    return [label.id for label in labels if check.grade(outputs[label.id], label.value).passed]


def test_labels_that_look_like_booleans(shared: Path) -> None:
    labels, outputs = boolean_case(shared)
    expect = json.loads((shared / "cases" / "L09-bool-number-labels" / "expect.json").read_text(encoding="utf-8"))
    assert right(Exact(), labels, outputs) == expect["values"]["exact_match_right"]

    declared = parse_check({"kind": "boolean", "true_values": ["TRUE", "true", "1"], "false_values": ["FALSE"]})
    faults = reference_faults(declared, labels, file="labels_bool.csv", field="expected")
    assert len(faults) == 1
    for token in expect["message_must_contain"][1]:
        assert token in str(faults[0])
    assert str(faults[0]).startswith("labels_bool.csv:6: row 5 (id q5), field expected: '007'")
    rest = [label for label in labels if label.id != "q5"]
    assert right(declared, rest, outputs) == expect["values"]["declared_bool_right"]


def test_all_faulty_labels_are_named_at_once() -> None:
    check = parse_check(SPECS["choice"])
    labels = [Label(2, 1, "a", "maybe"), Label(3, 2, "b", "yes"), Label(5, 3, "c", "\x1b[31m")]
    faults = reference_faults(check, labels, file="f.csv", field="reference")
    assert [(fault.line, fault.id) for fault in faults] == [(2, "a"), (5, "c")]
    assert "\x1b" not in str(faults[1])
