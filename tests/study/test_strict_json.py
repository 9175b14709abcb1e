"""JSON that a person wrote is read as strictly as YAML, with the place of every value."""

from __future__ import annotations

import json
import unicodedata
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.study.nodes import Mapping, plain
from evalkit.study.strict_json import parse_json


def messages(text: str) -> list[str]:
    return [str(fault) for fault in parse_json(text, "p.json").faults]


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(values, st.sampled_from([None, 0, 2, "\t"]), st.booleans())
def test_what_json_writes_is_read_back(value: object, indent: int | str | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    document = parse_json(text, "p.json")
    if document.faults:  # keys that are the same text only after normalisation
        keys = [key for part in json_keys(value) for key in part]
        assert len({unicodedata.normalize("NFC", key) for key in keys}) < len(keys) or not text.strip()
    else:
        assert plain(document.require()) == value


def json_keys(value: object) -> list[list[str]]:
    found: list[list[str]] = []
    if isinstance(value, dict):
        found.append(list(value))
        found += [part for item in value.values() for part in json_keys(item)]
    if isinstance(value, list):
        found += [part for item in value for part in json_keys(item)]
    return found


def test_numbers_are_exact_and_exponents_are_fine() -> None:
    root = parse_json('{"a": 2.50, "b": 5e-7, "c": 3, "d": -0.1E2}', "p.json").require()
    assert plain(root) == {"a": Decimal("2.50"), "b": Decimal("5E-7"), "c": 3, "d": Decimal("-10")}


def test_every_value_knows_its_place() -> None:
    root = parse_json('{\r\n  "a": 1,\r\n  "b": {"c": [true]}\r\n}', "p.json").require()
    assert isinstance(root, Mapping)
    assert (root.entries["b"].line, root.entries["b"].column, root.entries["b"].node.column) == (3, 3, 8)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1,\n "a": 2}', "p.json:2: field a: the key stands on line 1 already. Fix: keep one of the two."),
        ('{"a": NaN}', "p.json:1: field a: NaN is not a finite number. Fix: write a finite number."),
        ('{"a": -Infinity}', "p.json:1: field a: -Infinity is not a finite number. Fix: write a finite number."),
        ('{"a": 1e99}', "p.json:1: field a: the number 1e99 is too long. Fix: write fewer digits."),
        ('{"a": 1e999999999}', "p.json:1: field a: the number 1e999999999 is too long. Fix: write fewer digits."),
        (
            '{"a": 007}',
            "p.json:1: field a: 007 is not a JSON value. Fix: put text in quotes, write plain numbers.",
        ),
        (
            '{"a": True}',
            "p.json:1: field a: True is not a JSON value. Fix: put text in quotes, write plain numbers.",
        ),
        ('{"a": 1}\n{"b": 2}', 'p.json:2: goes on after its end: "{"b": 2}". Fix: keep one JSON value in a file.'),
        ("", "p.json:1: is empty. Fix: write the keys that this kind of file needs."),
    ],
)
def test_faults_name_line_field_and_fix(text: str, expected: str) -> None:
    assert messages(text) == [expected]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"a": 1,\n}', 2),
        ('{"a": 1\n "b": 2}', 2),
        ('{"a": "x\n"}', 1),
        ("{'a': 1}", 1),
        ('{"a": 1', 1),
        ('["\\ud800"]', 1),
        ('["\\x"]', 1),
        ("[" * 40, 1),
        ('{"a": }', 1),
    ],
)
def test_text_that_is_no_json_names_its_line(text: str, line: int) -> None:
    found = messages(text)
    assert len(found) == 1
    assert found[0].startswith(f"p.json:{line}: ")


def test_all_faults_come_in_one_run() -> None:
    assert len(messages('{"a": NaN, "b": 01, "a": 2, "c": [1e99]}')) == 4


@given(st.text(alphabet='{}[]":,0123456789.eE+-\\untrfals \n', max_size=40))
def test_nothing_makes_the_reader_fail_in_another_way(text: str) -> None:
    document = parse_json(text, "p.json")
    assert document.root is not None or document.faults
    try:
        json.loads(text)
    except json.JSONDecodeError:
        assert document.faults
