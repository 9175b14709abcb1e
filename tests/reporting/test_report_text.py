"""Text from data: visible, cut with a mark, and no markup of any kind."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from report_examples import ATTACKS

from evalkit.reporting import text

SECRET = "sk-FAKE-demo-0000-not-a-key"


def test_hidden_characters_are_written_out() -> None:
    shown = text.line("a\u202eb\x1b[31mc\x00d\u200be\u2028f\ng")
    assert shown == "a\\u202eb\\u001b[31mc\\u0000d\\u200be\\u2028f\\ng"


def test_a_block_keeps_its_lines_and_nothing_else() -> None:
    part = text.block("one\r\ntwo\x07\nthree\u202e", 100)
    assert part == text.Block("one\ntwo\\u0007\nthree\\u202e", "", None)


def test_cut_text_says_so_with_its_full_length() -> None:
    part = text.block("word " * 26_320, 320)
    assert part.shown == ("word " * 64)
    assert part.cut == "… cut here; 131,600 characters in all"
    many = text.block("\n".join("x" * 30), 320, lines=12)
    assert len(many.shown.split("\n")) == 12
    assert "characters in all" in many.cut


def test_cutting_splits_neither_a_pair_nor_a_secret() -> None:
    part = text.block("가" * 9 + "😀" + "나" * 9, 10)
    assert part.shown.endswith("😀")
    part.shown.encode("utf-8")
    for limit in range(20, 60):
        shown = text.block("x" * 20 + f" {SECRET} " + "y" * 50, limit).shown
        assert "sk-FAKE" not in shown
        assert "not-a-key" not in shown


@pytest.mark.parametrize(
    ("sample", "lang"),
    [("안녕하세요", "ko"), ("こんにちは", "ja"), ("你好", "zh"), ("hello", None), ("", None)],
)
def test_script_tells_the_language(sample: str, lang: str | None) -> None:
    assert text.language(sample) == lang


def test_moments_are_utc() -> None:
    assert text.moment("2026-11-30T20:01:09+09:00") == "2026-11-30 11:01:09 UTC"
    assert text.moment("2026-11-30T20:01:09Z") == "2026-11-30 20:01:09 UTC"
    assert text.moment("yesterday <b>") == "yesterday <b>"


STARTS = (
    "    code",
    "---",
    "===",
    "1. one",
    "9) nine",
    "- item",
    "+ item",
    "# head",
    "> said",
    "```",
    "~~~",
    "* * *",
    "\t",
)
TEXTS = st.text(max_size=200) | st.sampled_from(ATTACKS + STARTS)


def _plain(tokens: list[object]) -> str:
    """All text of parsed Markdown; fails on anything that is not text in a paragraph."""
    found = []
    for token in tokens:
        kind = token.type  # type: ignore[attr-defined]
        assert kind in {"paragraph_open", "paragraph_close", "inline", "text", "text_special"}, kind
        if kind in {"text", "text_special"}:
            found.append(token.content)  # type: ignore[attr-defined]
        found.append(_plain(token.children or []))  # type: ignore[attr-defined]
    return "".join(found)


@given(TEXTS)
def test_markdown_of_any_text_is_that_text_and_no_markup(value: str) -> None:
    tokens = (
        MarkdownIt("commonmark", {"linkify": False}).enable(["table", "strikethrough"]).parse(text.markdown(value))
    )
    assert _plain(tokens) == text.line(value).strip()


@pytest.mark.parametrize("value", STARTS + ATTACKS)
def test_no_start_of_a_line_is_markup(value: str) -> None:
    assert _plain(MarkdownIt("commonmark").parse(text.markdown(value))) == text.line(value).strip()


@given(TEXTS)
def test_markdown_breaks_no_table_cell_and_starts_no_link(value: str) -> None:
    shown = text.markdown(value)
    assert "\n" not in shown
    assert "|" not in shown.replace("\\|", "").replace("\\\\", "")
    for start in ("http://", "https://", "www.", "javascript:", "@", "<", "\u202e"):
        assert start not in shown.lower()


@given(TEXTS)
def test_json_in_a_script_ends_no_script(value: str) -> None:
    shown = text.script_json({"v": value})
    assert not set(shown) & {"<", ">", "&", "\u2028", "\u2029"}
    assert json.loads(shown) == {"v": value}


@given(TEXTS)
def test_xml_can_hold_any_text(value: str) -> None:
    from xml.sax.saxutils import quoteattr

    shown = text.xml_text(value)
    assert ET.fromstring(f"<a b={quoteattr(shown)}/>").get("b") == shown
