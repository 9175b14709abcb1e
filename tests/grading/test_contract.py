"""Contracts by JSON Schema: exact numbers, linear patterns, nothing fetched, one reason for each breach."""

from __future__ import annotations

import json
import socket
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.grading import Contract, JsonMode
from evalkit.grading.contract import schema_problems, schema_text

STRICT, FENCED = JsonMode.STRICT, JsonMode.FENCED_OK
NUMBERS_ONLY = {"patternProperties": {"^n_": {"type": "number"}}, "additionalProperties": False}
CLOSED = {"additionalProperties": False, "properties": {"a": {"type": "string"}}}
REFERS = {"$defs": {"n": {"type": "number"}}, "properties": {"a": {"$ref": "#/$defs/n"}}}


def contract(schema: Any, mode: JsonMode = STRICT) -> Contract:
    assert schema_problems(schema) == []
    return Contract(mode, schema_text(schema))


def reason(schema: Any, reply: str, mode: JsonMode = STRICT) -> str | None:
    breach = contract(schema, mode).breach(reply)
    if breach is None:
        return None
    assert (breach.status.value, breach.score, breach.passed) == ("contract_fail", 0.0, False)
    return breach.reason


@pytest.mark.parametrize(
    ("schema", "reply", "wanted"),
    [
        ({"type": "integer"}, "1", None),
        ({"type": "integer"}, "1.0", None),
        ({"type": "integer"}, "1.5", "wrong_shape"),
        ({"type": "number"}, "true", "wrong_shape"),
        ({"const": 1}, "true", "bad_value"),
        ({"const": 1}, "1.0", None),
        ({"enum": [0]}, "false", "bad_value"),
        ({"multipleOf": Decimal("0.1")}, "0.3", None),  # in binary it is none
        ({"multipleOf": Decimal("0.1")}, "0.35", "bad_value"),
        ({"maximum": Decimal("0.1")}, "0.1000000000000000000001", "bad_value"),  # in binary it is 0.1
        ({"multipleOf": 7}, "1e999999", "bad_value"),
        ({"minimum": 0}, "1e999999", None),
        ({"uniqueItems": True}, "[1, 1.0]", "bad_value"),
        ({"required": ["a"], "additionalProperties": False, "properties": {"a": {}}}, "{}", "missing_field"),
        ({"required": ["a"], "additionalProperties": False, "properties": {"a": {}}}, '{"b": 1}', "missing_field"),
        (CLOSED, '{"a": 1, "b": 1}', "extra_field"),
        ({"properties": {"a": {"type": "string"}}}, '{"a": 1}', "wrong_type"),
        ({"properties": {"a": {"minimum": 3}}}, '{"a": 1}', "bad_value"),
        ({"pattern": "^a+$"}, '"aaa"', None),
        ({"pattern": "^(a+)+$"}, '"' + "a" * 50_000 + '!"', "bad_value"),  # exponential where it backtracks
        (NUMBERS_ONLY, '{"n_a": 1}', None),
        (NUMBERS_ONLY, '{"n_a": ""}', "wrong_type"),
        (NUMBERS_ONLY, '{"a": 1}', "extra_field"),
        ({"additionalProperties": {"type": "number"}}, '{"a": ""}', "wrong_type"),
        ({"format": "date"}, '"no date"', None),  # formats say nothing
        (REFERS, '{"a": ""}', "wrong_type"),
        ({"type": ["object", "null"], "properties": {"a": {"$ref": "#"}}}, '{"a": {"a": null}}', None),
        ({"type": ["object", "null"], "properties": {"a": {"$ref": "#"}}}, '{"a": {"a": 1}}', "wrong_type"),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "type": "array", "items": [{"type": "null"}]},
         "[1]", "wrong_type"),
    ],
)  # fmt: skip
def test_reasons(schema: Any, reply: str, wanted: str | None) -> None:
    assert reason(schema, reply) == wanted


@pytest.mark.parametrize(
    ("reply", "strict", "fenced"),
    [
        ("{}", None, None),
        ("```\n{}\n```", "fenced", None),
        ("```JSON\r\n{}\r\n```\r\n", "fenced", None),
        ("~~~json\n{}\n~~~", "fenced", None),
        ("  ```json  \n{}\n```  ", "fenced", None),
        ("```json\n{}```", "fenced", "fenced"),
        ("```json {}\n```", "fenced", "fenced"),
        ("```json\n{}\n~~~", "fenced", "fenced"),
        ("````json\n{}\n```", "fenced", "fenced"),
        ("```json\n{}\n````", "fenced", None),  # a closing fence may be longer
        ("```python\n{}\n```", "fenced", "fenced"),
        ("```json\n{}\n```\nDone.", "fenced", "fenced"),
        ("```json\n{}\n```\n```json\n{}\n```", "fenced", "text_after"),
        ("```json\n```json\n{}\n```\n```", "fenced", "fenced"),
        ("```json\n\n```", "fenced", "empty"),
        ("```json", "fenced", "fenced"),
        ("", "empty", "empty"),
        ("\ufeff{}", "text_before", "text_before"),
        ("NaN", "not_finite", "not_finite"),
        ('{"a": 1, "a": 1}', "duplicate_key", "duplicate_key"),
        ("{} {}", "several_values", "several_values"),
        ("[" * 100_000, "not_json", "not_json"),
    ],
)
def test_what_may_stand_around_it(reply: str, strict: str | None, fenced: str | None) -> None:
    schema: dict[str, Any] = {"type": "object"}
    assert reason(schema, reply) == strict
    assert reason(schema, reply, FENCED) == fenced


def test_without_a_schema_any_value_will_do() -> None:
    assert Contract().breach("null") is None
    assert Contract().breach("nul") is not None


@pytest.mark.parametrize(
    "schema",
    [
        [],
        "x",
        {"type": "objekt"},
        {"minimum": "x"},
        {"pattern": "("},
        {"pattern": "(?=a)b"},
        {"properties": {"a": {"patternProperties": {"(a)\\1": {}}}}},
        {"patternProperties": {"a": {}}, "unevaluatedProperties": False},
        {"$ref": "https://example.org/schema.json"},
        {"properties": {"a": {"$ref": "other.json#/x"}}},
        {"$ref": "file://localhost/schema.json"},
        {"$ref": "#/$defs/none"},
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
        {"$dynamicRef": "#x"},
        {"properties": {"a": {"$id": "https://example.org/x"}}},
        {"$schema": "https://example.org/draft"},
    ],
)
def test_schemas_that_are_refused(schema: Any) -> None:
    problems = schema_problems(schema)
    assert problems
    assert all(what and fix for what, fix in problems)


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"$ref": {"type": "string"}, "pattern": {"type": "string"}, "$id": {"type": "number"}}},
        {"enum": [{"$ref": "https://example.org"}, {"pattern": "("}]},
        {"$anchor": "top", "properties": {"a": {"$ref": "#top"}}},
        {"$id": "https://example.org/mine", "type": "object"},
    ],
)
def test_names_of_fields_are_no_keywords(schema: Any) -> None:
    assert schema_problems(schema) == []


def test_nothing_is_ever_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a schema opened a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert schema_problems({"$ref": "http://127.0.0.1:9/schema.json"})
    drafted = {"$schema": "https://json-schema.org/draft/2020-12/schema", "properties": {"a": {"type": "null"}}}
    assert reason(drafted, '{"a": 1}') == "wrong_type"


def test_the_detail_names_the_place() -> None:
    schema = {"properties": {"a": {"properties": {"b": {"maximum": Decimal("0.5")}}}}}
    breach = contract(schema).breach('{"a": {"b": 0.9}}')
    assert breach is not None
    assert breach.detail == "a/b: 0.9 is greater than the maximum of 0.5"
    long = contract({"type": "object"}).breach(json.dumps("x" * 5000))
    assert long is not None
    assert len(long.detail) <= 300


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(value=JSON, text=st.text())
def test_valid_json_always_keeps_the_open_contract_and_other_text_never_raises(value: Any, text: str) -> None:
    written = json.dumps(value)
    for mode in (STRICT, FENCED):
        assert contract({}, mode).breach(written) is None
        assert contract({"not": {}}, mode).breach(written) is not None
        contract({"type": "object"}, mode).breach(text)
    assert contract({}, FENCED).breach(f"```json\n{written}\n```") is None
    assert contract({"const": value}).breach(written) is None


@given(value=JSON)
def test_the_reference_library_agrees(value: Any) -> None:
    """On values whose numbers are exact in binary, with the library's own rules."""
    from jsonschema import Draft202012Validator

    schema = {
        "type": ["object", "array", "string", "integer", "null"],
        "properties": {"a": {"type": "string", "maxLength": 2}},
        "additionalProperties": {"type": ["number", "array", "object"]},
        "items": {"type": ["boolean", "number", "object", "array", "string"]},
    }
    assert (contract(schema).breach(json.dumps(value)) is None) == Draft202012Validator(schema).is_valid(value)
