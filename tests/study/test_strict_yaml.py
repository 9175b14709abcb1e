"""YAML is read strictly: nothing is guessed, and every refusal says where and how to write it."""

from __future__ import annotations

import warnings
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from evalkit.errors import InputError
from evalkit.study.nodes import Mapping, Refused, Scalar, Sequence, join_path, plain, walk
from evalkit.study.scalars import plain_scalar
from evalkit.study.strict_yaml import load_yaml, parse_yaml, read_yaml


def messages(text: str) -> list[str]:
    return [str(fault) for fault in parse_yaml(text, "s.yaml").faults]


def test_plain_values_are_taken_as_they_stand() -> None:
    text = """\
# a comment
whole: -12
zero: 0
decimal: 0.050
truth: true
untruth: false
nothing: null
text: support-routing
path: rubrics/support.yaml
model: openai/gpt-5-nano
version: 1.2.3
quoted: "no"
single: '007'
list: [0.3, 0.6]
block: |
  two
  lines
nested: {a: {b: [1, {c: x}]}}
한국어: 값
"""
    document = parse_yaml(text, "s.yaml")
    assert document.faults == ()
    assert plain(document.require()) == {
        "whole": -12,
        "zero": 0,
        "decimal": Decimal("0.050"),
        "truth": True,
        "untruth": False,
        "nothing": None,
        "text": "support-routing",
        "path": "rubrics/support.yaml",
        "model": "openai/gpt-5-nano",
        "version": "1.2.3",
        "quoted": "no",
        "single": "007",
        "list": [Decimal("0.3"), Decimal("0.6")],
        "block": "two\nlines\n",
        "nested": {"a": {"b": [1, {"c": "x"}]}},
        "한국어": "값",
    }


def test_every_node_knows_its_line_and_column() -> None:
    root = parse_yaml("a: 1\nb:\n  - x\n  - {c: 2}\n", "s.yaml").require()
    assert isinstance(root, Mapping)
    entry = root.entries["b"]
    assert (entry.line, entry.column) == (2, 1)
    assert isinstance(entry.node, Sequence)
    assert [(item.line, item.column) for item in entry.node.items] == [(3, 5), (4, 5)]
    assert [(path, key, scalar.line) for path, key, scalar in walk(root)] == [
        ("a", "a", 1),
        ("b[0]", "b", 3),
        ("b[1].c", "c", 4),
    ]


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_lines_are_counted_with_every_line_ending(ending: str) -> None:
    assert messages(ending.join(["a: 1", "# note", "b: no", ""])) == [
        's.yaml:3: field b: without quotes some YAML readers take no for false. Fix: write false, or "no" in '
        "quotes where text is meant."
    ]


@pytest.mark.parametrize(
    ("written", "fix"),
    [
        ("no", "write false"),
        ("Yes", "write true"),
        ("on", "write true"),
        ("OFF", "write false"),
        ("y", "write true"),
        ("TRUE", "write true"),
        ("False", "write false"),
        ("~", "write null"),
        ("NULL", "write null"),
        ("1e-3", "write 0.001,"),
        ("1E3", "write 1000,"),
        ("12:30", 'write "12:30", in quotes'),
        ("190:20:30.15", "in quotes"),
        ("007", "write 7,"),
        ("00.5", "write 0.5,"),
        ("1_000", "write 1000,"),
        ("0x1F", "write 31,"),
        ("0o17", "write 15,"),
        ("0b11", "write 3,"),
        ("+5", "write 5,"),
        (".5", "write 0.5,"),
        ("5.", "write 5,"),
        (".inf", "write a finite number"),
        ("-.INF", "write a finite number"),
        (".NaN", "write a finite number"),
        ("2026-01-15", 'write "2026-01-15", in quotes'),
        ("2001-12-14t21:59:43.10-05:00", "in quotes"),
        ("1e999999999", "write a plain decimal number"),
        ("=", "in quotes"),
        ("1" * 31, "write fewer digits"),
    ],
)
def test_values_that_readers_disagree_on_are_named(written: str, fix: str) -> None:
    (message,) = messages(f"a: 1\nb: [x, {written}]\n")
    assert message.startswith("s.yaml:2: field b[1]: ")
    assert fix in message
    quoted = parse_yaml(f'b: "{written}"\n', "s.yaml")
    assert plain(quoted.require()) == {"b": written}


def loaded(text: str, version: tuple[int, int]) -> object:
    yaml = YAML(typ="safe", pure=True)
    yaml.version = version
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return yaml.load(f"k: {text}\n")["k"]


plain_text = st.text(alphabet="0123456789_.:eExobnaiftyruslNOYT+-~=<", min_size=1, max_size=9).filter(
    lambda text: (
        isinstance(parse_yaml(f"k: {text}\n", "s.yaml").root, Mapping)
        and text[0] not in "-:"
        and ": " not in text
        and not text.endswith(":")
    )
)


@given(plain_text)
def test_no_yaml_reader_sees_another_value_than_the_one_taken(text: str) -> None:
    value, problem = plain_scalar(text)
    if problem is not None:
        assert isinstance(value, Refused)
        return
    assert not isinstance(value, Refused)
    for version in ((1, 1), (1, 2)):
        other = loaded(text, version)
        if isinstance(value, Decimal):
            assert isinstance(other, float)
            assert other == float(value)
        else:
            assert type(other) is type(value)
            assert other == value


def test_structure_that_hides_meaning_is_refused() -> None:
    assert messages("a: &x 1\nb: *x\n<<: *x\n") == [
        "s.yaml:1: field a: the anchor &x is not read. Fix: delete it.",
        "s.yaml:2: field b: the alias *x copies another place. Fix: write the value out.",
        's.yaml:3: the key << is not text for YAML. Fix: write "<<", in quotes.',
        "s.yaml:3: the alias *x copies another place. Fix: write the value out.",
    ]
    assert messages("a: !!python/object:os.system x\n") == [
        "s.yaml:1: field a: the tag tag:yaml.org,2002:python/object:os.system is not read. Fix: delete it "
        "and quote "
        "text."
    ]
    assert messages("a: 1\n---\nb: 2\n") == [
        "s.yaml:2: a second document starts here. Fix: keep one document in a file; delete the ---."
    ]
    assert messages("%YAML 1.1\n---\na: 1\n")[0].startswith("s.yaml:1: has a % directive")
    assert messages("? [a]\n: b\n") == [
        "s.yaml:1: a key is a list, a mapping or an alias. Fix: use plain text as the key."
    ]
    assert "levels deep" in messages("[" * 5000)[-1]


def test_a_billion_laughs_is_refused_at_once() -> None:
    lines = ['a0: &a0 ["lol", "lol"]']
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 30)]
    found = messages("\n".join(lines))
    assert len(found) == 30 + 29 * 9


def test_keys_have_to_be_text_and_unique() -> None:
    assert messages("no: 1\n1: 2\n: 3\na: 4\nb: 5\na: 6\n") == [
        's.yaml:1: the key no is not text for YAML. Fix: write "no", in quotes.',
        's.yaml:2: the key 1 is not text for YAML. Fix: write "1", in quotes.',
        "s.yaml:3: a key is empty. Fix: write the key before the colon.",
        "s.yaml:6: field a: the key stands on line 4 already. Fix: keep one of the two.",
    ]
    composed, decomposed = "\uac00", "\u1100\u1161"
    assert "stands on line 1 already" in messages(f"{composed}: 1\n{decomposed}: 2\n")[0]


def test_tabs_are_named() -> None:
    for text, line in [("a:\n\tb: 1\n", 2), ("a: 1\nb:\tc\n", 2), ("a:\n  - x\n\t- y\n", 3)]:
        assert messages(text) == [
            f"s.yaml:{line}: a tab stands where YAML wants spaces. Fix: put spaces in place of the tab."
        ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: b: c\n", 1),
        ("a: 1\nb: [1, 2\n", 3),
        ("a: 1\n b: 2\n", 2),
        ('a: "x\n', 2),
        ("a: @x\n", 1),
        ("a: 1\nb\n", 3),
    ],
)
def test_text_that_is_no_yaml_names_its_line(text: str, line: int) -> None:
    (message,) = messages(text)
    assert message.startswith(f"s.yaml:{line}: is not YAML: ")


def test_faults_before_a_syntax_error_are_reported_too() -> None:
    found = messages("a: no\nb: 1e-3\nc: [1\n")
    assert [message.split(":")[1] for message in found] == ["1", "2", "4"]


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n", "null\n"])
def test_an_empty_file_says_so(text: str) -> None:
    assert messages(text) == ["s.yaml:1: is empty. Fix: write the keys that this kind of file needs."]


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        ("a: 1\nb: \x1b[2J\n", "U+001B"),
        ("a: 1\nb: x\x00y\n", "U+0000"),
        ("a: 1\nb: x\u2028c: 2\n", "U+2028"),
        ("a: 1\nb: x\x85c: 2\n", "U+0085"),
        ('a: 1\nb: "\\x1b"\n', "U+001B"),
        ('a: 1\nb: "\\ud800"\n', "U+D800"),
    ],
)
def test_hidden_characters_are_named(text: str, sign: str) -> None:
    (message,) = messages(text)
    assert message.startswith("s.yaml:2: ")
    assert sign in message


def test_an_escape_the_parser_cannot_take_is_no_traceback() -> None:
    (message,) = messages('a: "\\UFFFFFFFF"\n')
    assert "is not YAML" in message


def test_files_are_utf8_and_a_mark_in_front_is_fine(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_bytes("\ufeffa: 값\n".encode())
    assert plain(read_yaml(path)) == {"a": "값"}
    path.write_bytes("a: 1\nb: 값\n".encode("cp949"))
    with pytest.raises(InputError, match=r"s\.yaml:2: byte offset 8 \(value 0xb0\) is not UTF-8"):
        load_yaml(path)
    path.write_bytes("a: 1\n".encode("utf-16"))
    with pytest.raises(InputError, match="is UTF-16, and only UTF-8 is read"):
        load_yaml(path)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file"):
        read_yaml(tmp_path / "missing.yaml")
    with pytest.raises(InputError, match="this is a folder"):
        read_yaml(tmp_path)
    large = tmp_path / "large.yaml"
    large.write_bytes(b"#" * 4_000_001)
    with pytest.raises(InputError, match="has 4,000,001 bytes"):
        read_yaml(large)


def test_an_empty_value_stands_on_the_line_of_its_key() -> None:
    root = parse_yaml("a:\n\n# note\n\nb: 1\n", "s.yaml").require()
    assert isinstance(root, Mapping)
    node = root.entries["a"].node
    assert isinstance(node, Scalar)
    assert (node.value, node.text, node.line) == (None, "", 1)


@given(st.text(max_size=60))
def test_no_text_makes_the_reader_fail_in_another_way(text: str) -> None:
    document = parse_yaml(text, "s.yaml")
    assert document.root is not None or document.faults


structures = st.text(alphabet="ab:-[]{}&*!|>'\"#%@`,? \n\t~0.\\u", max_size=40)


@given(structures)
def test_no_structure_makes_the_reader_fail_in_another_way(text: str) -> None:
    document = parse_yaml(text, "s.yaml")
    assert document.root is not None or document.faults
    assert all(fault.line is None or 1 <= fault.line <= text.count("\n") + 1 for fault in document.faults)


def test_paths_quote_keys_that_are_no_plain_words() -> None:
    assert join_path("models", "demo/mid") == 'models."demo/mid"'
    assert join_path("router.thresholds", 0) == "router.thresholds[0]"
    assert join_path("", "위험") == "위험"
