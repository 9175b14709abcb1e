"""Patterns run in linear time and mean what RE2 says."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.grading import Pattern, Regex


@pytest.mark.parametrize(
    ("pattern", "answer", "status"),
    [
        ("[A-D]", "B", "ok"),
        ("[A-D]", " B \n", "ok"),
        ("[A-D]", "B.", "wrong"),
        ("[A-D]", "AB", "wrong"),
        ("[A-D]", "B\nC", "wrong"),
        ("a|ab", "ab", "ok"),
        ("(?i)yes|no", "YES", "ok"),
        ("(?i)yes|no", "NO way", "wrong"),
        ("[가-힣]+", "한국", "ok"),
        ("[가-힣]+", "\u1112\u1161\u11ab\u1100\u116e\u11a8", "ok"),  # the same in separate letters
        (r"\d+", "٣", "wrong"),
        ("x", "", "contract_fail"),
        ("x", " ", "contract_fail"),
        ("(a+)+", "a" * 50_000 + "!", "wrong"),
        ("x", "\ud800", "wrong"),
    ],
)
def test_the_whole_answer_matches(pattern: str, answer: str, status: str) -> None:
    found = Pattern(pattern)
    assert found.problem() is None
    assert Regex(found).grade(answer, "").status.value == status


@pytest.mark.parametrize(
    "pattern", ["(", "a)|(b", "(?=a)", r"(a)\1", r"\Qa", "a{5000}", "x" * 3000, "(?<n>a", "*"]
)
def test_patterns_that_are_refused(pattern: str) -> None:
    problem = Pattern(pattern).problem()
    assert problem is not None
    assert problem[1]


@given(text=st.text(alphabet="ab\n .", max_size=8))
def test_as_the_standard_library_where_both_can(text: str) -> None:
    for source in ("a+b", "a|ab", "(?:a|b)*", "a.b", "[^a]+", "^a$"):
        assert Pattern(source).fullmatch(text) == bool(re.fullmatch(rf"(?:{source})\Z", text)), source


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ANSWER: low", ("low",)),
        ("first ANSWER: low, then ANSWER: high.", ("low", "high")),
        ("ANSWER: none", ()),
        ("", ()),
        ("\ue000ANSWER: low\ue001", ("low",)),
    ],
)
def test_the_answer_in_a_text(text: str, found: tuple[str, ...]) -> None:
    assert Pattern("ANSWER: (low|high)").groups(text) == found


@pytest.mark.parametrize("pattern", ["low", "(a)(b)", "(a)?", "(x*)"])
def test_a_pattern_that_finds_the_answer_has_one_group_and_never_an_empty_one(pattern: str) -> None:
    assert Pattern(pattern).group_problem() is not None
    assert Pattern("A(?:B|C)(x+)").group_problem() is None


@given(text=st.text(alphabet="xy:\\1\ue000\ue001ab "))
def test_groups_are_pieces_of_the_text(text: str) -> None:
    for piece in Pattern("x:([^ ]+)").groups(text):
        assert piece.replace("\ufffd", "") == "" or piece.replace("\ufffd", ".") in re.sub(
            "[\ue000\ue001]", ".", text
        )
