"""Templates are filled once; data is never rendered."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.errors import InputError
from evalkit.providers.prompt import load_prompt, parse_prompt


def test_queries_of_the_braces_case_arrive_byte_for_byte(shared: Path) -> None:
    case = shared / "cases" / "L13-braces-in-query"
    values = json.loads((case / "expect.json").read_text(encoding="utf-8"))["values"]
    template = load_prompt(case / "prompt.txt", allowed=("query", "query_id"), required=("query",))
    with (case / "labels_braces.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    sent = {row["query_id"]: template.render({"query": row["query"], "query_id": row["query_id"]}) for row in rows}
    assert len(sent) == 5
    for row in rows:
        assert sent[row["query_id"]] == "Answer briefly.\n\nQuestion: " + row["query"]
    for name, tail in values.items():
        assert sent[name.removesuffix("_tail")].encode().endswith(tail.encode())


def test_a_model_output_is_not_rendered_in_a_judge_prompt() -> None:
    template = parse_prompt("Q: {query}\nReply: {reply}", allowed=("query", "reply"))
    shown = template.render({"query": "{reply}", "reply": "{query} {{ 7*7 }} %s"})
    assert shown == "Q: {reply}\nReply: {query} {{ 7*7 }} %s"


def test_unknown_placeholders_are_all_named(tmp_path: Path) -> None:
    path = tmp_path / "prompt.txt"
    path.write_text("Hello {name}.\n\n{query} {qurey}", encoding="utf-8")
    with pytest.raises(InputError) as raised:
        load_prompt(path, allowed=("query",))
    messages = [str(fault) for fault in raised.value.faults]
    assert len(messages) == 2
    assert f"{path}:1:" in messages[0]
    assert "{name}" in messages[0]
    assert f"{path}:3:" in messages[1]
    assert "{qurey}" in messages[1]


@pytest.mark.parametrize("text", ["{{query}}", "{{ query }}", "{ query }", "x {{query }}"])
def test_a_placeholder_of_another_template_language_is_a_fault(text: str) -> None:
    with pytest.raises(InputError, match="would stay text"):
        parse_prompt(text, allowed=("query",))
    with pytest.raises(InputError) as raised:
        parse_prompt(text, allowed=("query",), required=("query",))
    assert len(raised.value.faults) == 1


def test_a_required_placeholder_is_missed() -> None:
    with pytest.raises(InputError, match=r"has no placeholder \{query\}"):
        parse_prompt("Answer briefly.", allowed=("query",), required=("query",))


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("{{name}}", "{name}"),
        ('Answer {"a": {"b": 1}} like this', 'Answer {"a": {"b": 1}} like this'),
        ("{} {0} }{ %s $HOME {# #}", "{} {0} }{ %s $HOME {# #}"),
        ("{query}{query}", "QQ"),
        ("{{name}}{query}", "{name}Q"),
        ("{질문}", "{질문}"),
    ],
)
def test_other_braces_are_text(text: str, rendered: str) -> None:
    assert parse_prompt(text, allowed=("query",)).render({"query": "Q"}) == rendered


@given(query=st.text(), before=st.text("ab\n é%$", max_size=9), after=st.text("ab\n é%$", max_size=9))
def test_any_query_is_inserted_as_it_is(query: str, before: str, after: str) -> None:
    template = parse_prompt(before + "{query}" + after, allowed=("query",))
    assert template.render({"query": query}) == before + query + after


@pytest.mark.parametrize(
    ("data", "rendered"),
    [(b"a {query}\n", "a Q"), (b"a {query}\r\n", "a Q"), (b"\xef\xbb\xbfa\r\n{query}\n\n", "a\r\nQ\n")],
)
def test_only_the_line_end_that_closes_the_file_is_dropped(tmp_path: Path, data: bytes, rendered: str) -> None:
    path = tmp_path / "prompt.txt"
    path.write_bytes(data)
    assert load_prompt(path, allowed=("query",)).render({"query": "Q"}) == rendered


def test_a_file_that_is_not_utf8_stops_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "prompt.txt"
    path.write_bytes(b"a\n" + "질문 {query}".encode("cp949"))
    with pytest.raises(InputError) as raised:
        load_prompt(path, allowed=("query",))
    assert f"{path}:2:" in str(raised.value)
    assert "offset 2" in str(raised.value)
    with pytest.raises(InputError, match="cannot be read"):
        load_prompt(tmp_path / "none.txt", allowed=())
