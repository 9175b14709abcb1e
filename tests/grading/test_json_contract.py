"""The JSON check."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.grading import FieldType, GradeStatus, JsonObject

CHECK = JsonObject({"label": FieldType.STRING, "confidence": FieldType.NUMBER})
RIGHT = '{"label": "low", "confidence": 0.9}'
MIXED = JsonObject({"n": FieldType.INTEGER, "x": FieldType.NUMBER, "b": FieldType.BOOLEAN, "s": FieldType.STRING})


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("", "empty"),
        (" \n ", "empty"),
        (f"```json\n{RIGHT}\n```", "fenced"),
        (f"~~~\n{RIGHT}\n~~~", "fenced"),
        (f"Sure! {RIGHT}", "text_before"),
        (f"{RIGHT}\nHope that helps.", "text_after"),
        (f"{RIGHT} {RIGHT}", "several_values"),
        ("{'label': 'low'}", "not_json"),
        ('{"label": "low", "confidence": 0.9', "not_json"),
        ('{"label": "low", "confidence": 0.9,}', "not_json"),
        ("The label is low.", "not_json"),
        ('{"label": "low", "label": "high", "confidence": 0.9}', "duplicate_key"),
        ('{"label": "low", "label": "low", "confidence": 0.9}', "duplicate_key"),
        ('{"label": "low", "confidence": NaN}', "not_finite"),
        ('{"label": "low", "confidence": -Infinity}', "not_finite"),
        ('{"label": "low", "confidence": 1e99999999999999999999}', "not_finite"),
        (f"[{RIGHT}]", "wrong_shape"),
        ('"low"', "wrong_shape"),
        ("null", "wrong_shape"),
        ('{"label": "low"}', "missing_field"),
        ('{"label": "low", "confidence": 0.9, "note": "x"}', "extra_field"),
        ('{"label": "low", "confidence": "0.9"}', "wrong_type"),
        ('{"label": "low", "confidence": true}', "wrong_type"),
        ('{"label": null, "confidence": 0.9}', "wrong_type"),
        ('{"label": {"a": 1}, "confidence": 0.9}', "wrong_type"),
        ("[" * 100_000, "not_json"),
    ],
)
def test_a_broken_contract_has_one_reason(answer: str, reason: str) -> None:
    grade = CHECK.grade(answer, RIGHT)
    assert (grade.status, grade.reason, grade.passed) == (GradeStatus.CONTRACT_FAIL, reason, False)


@pytest.mark.parametrize(
    ("answer", "passed"),
    [
        (f"\n {RIGHT} \n", True),
        ('{"confidence": 0.90, "label": "low"}', True),
        ('{"label": "l\\u006fw", "confidence": 9e-1}', True),
        ('{"label": "Low", "confidence": 0.9}', False),
        ('{"label": "low", "confidence": 0.90000000000000000001}', False),
    ],
)
def test_values_are_compared_exactly(answer: str, passed: bool) -> None:
    grade = CHECK.grade(answer, RIGHT)
    assert grade.status is (GradeStatus.OK if passed else GradeStatus.WRONG)


@pytest.mark.parametrize(
    ("field", "literal", "kept"),
    [
        ("n", "2", True),
        ("n", "2.0", False),
        ("n", "true", False),
        ("n", '"2"', False),
        ("x", "2", True),
        ("x", "2.0", True),
        ("x", "false", False),
        ("b", "true", True),
        ("b", "1", False),
        ("b", '"true"', False),
        ("s", '"true"', True),
        ("s", "true", False),
    ],
)
def test_types_are_strict(field: str, literal: str, kept: bool) -> None:
    values = {"n": "2", "x": "2", "b": "true", "s": '"true"'} | {field: literal}
    answer = "{" + ", ".join(f'"{name}": {value}' for name, value in values.items()) + "}"
    grade = MIXED.grade(answer, '{"n": 2, "x": 2, "b": true, "s": "true"}')
    assert grade.passed is kept
    assert grade.reason == ("equal" if kept else "wrong_type")


def test_a_wrong_value_names_its_field() -> None:
    grade = CHECK.grade('{"label": "high", "confidence": 0.9}', RIGHT)
    assert (grade.reason, grade.detail) == ("wrong_value", "label")


def test_extra_text_is_placed() -> None:
    answer = '{"label":"low","confidence":0.9}\nHope that helps.'
    assert "character 33" in CHECK.grade(answer, RIGHT).detail
    assert "character 35" in CHECK.grade("  " + answer, RIGHT).detail


def test_replies_of_the_contract_case(shared: Path) -> None:
    """The strict column of the case; its schema's value limits become values to compare with."""
    case = shared / "cases" / "G01-json-contract"
    replies = [json.loads(line) for line in (case / "outputs.jsonl").read_text(encoding="utf-8").splitlines()]
    expected = json.loads((case / "expected.json").read_text(encoding="utf-8"))
    kept = {
        reply["query_id"]
        for reply in replies
        if CHECK.grade(reply["output"], RIGHT).status is not GradeStatus.CONTRACT_FAIL
    }
    assert kept == {name for name, modes in expected.items() if modes["strict"] == "pass"}
    reasons = {reply["query_id"]: CHECK.grade(reply["output"], RIGHT).reason for reply in replies}
    assert reasons["c02"] == "fenced"
    assert reasons["c04"] == "text_before"
    assert reasons["c06"] == "several_values"
    assert reasons["c08"] == "empty"
    assert reasons["c09"] == "wrong_type"
    assert reasons["c10"] == "extra_field"
    assert reasons["c13"] == "not_json"
    assert reasons["c14"] == "wrong_shape"


def test_the_reference_keeps_its_own_contract() -> None:
    assert CHECK.reference_fault(RIGHT) is None
    fault = CHECK.reference_fault('{"label": "low"}')
    assert fault is not None
    assert "missing_field" in fault.what


scalars = st.fixed_dictionaries(
    {"n": st.integers(), "x": st.floats(allow_nan=False, allow_infinity=False), "b": st.booleans(), "s": st.text()}
)


@given(given_=scalars, wanted=scalars)
def test_passes_exactly_when_the_values_are_equal(given_: dict[str, object], wanted: dict[str, object]) -> None:
    assert MIXED.grade(json.dumps(wanted, indent=1), json.dumps(wanted, ensure_ascii=False)).passed
    same = all(given_[name] == wanted[name] for name in ("n", "x", "b")) and (
        str(given_["s"]).strip() == str(wanted["s"]).strip()
    )
    if not same:
        grade = MIXED.grade(json.dumps(given_), json.dumps(wanted))
        # Texts that differ only in their normal form are one text.
        assert not grade.passed or given_["s"] != wanted["s"]


@given(st.text())
def test_any_reply_gets_a_grade(reply: str) -> None:
    assert CHECK.grade(reply, RIGHT).reason.isidentifier()
