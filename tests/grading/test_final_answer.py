"""Reasoning never reaches a check."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.grading import Choice, GradeStatus, final_text, grade_reply


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("low", "low"),
        (" low\n", " low\n"),
        ("<think>high</think>low", "low"),
        ("\n<think>high</think>\n\nlow\n", "low"),
        ("<think>a</think><think>b</think> low", "low"),
        ("<think>a <think> b</think> low", "low"),
        ("a</think>low", "low"),
        ("<think>still", None),
        ("<think>a</think><think>still", None),
        ("<think>a</think>  ", None),
        ("</think> </think>", None),
        ("Models print <think>.</think> low", "Models print <think>.</think> low"),
        ("", ""),
    ],
)
def test_final_text(reply: str, answer: str | None) -> None:
    assert final_text(reply) == answer


def test_an_empty_reply_beside_reasoning_is_no_answer() -> None:
    assert final_text("", reasoning="the answer is low") is None
    assert final_text("low", reasoning="or high?") == "low"


def test_a_reply_that_never_left_its_reasoning_is_not_graded() -> None:
    check = Choice(("low", "high"))
    grade = grade_reply(check, "<think>high", "high")
    assert (grade.status, grade.passed, grade.score) == (GradeStatus.NO_FINAL_ANSWER, None, None)
    assert grade_reply(check, "<think>high</think>low", "high").status is GradeStatus.WRONG


def test_replies_of_the_think_tags_case(shared: Path) -> None:
    case = shared / "cases" / "G03-think-tags"
    values = json.loads((case / "expect.json").read_text(encoding="utf-8"))["values"]
    tags = [("<think>", "</think>"), ("[THINK]", "[/THINK]")]
    graded: dict[str, str | None] = {}
    for line in (case / "outputs.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        answer = final_text(row["output"], tags=tags, reasoning=row.get("reasoning_content"))
        found = re.search("ANSWER: (low|high)", answer or "")
        graded[row["query_id"]] = found.group(1) if found else None
    assert graded == {name: values[name] for name in graded}
    assert len(graded) == 7


@given(
    thought=st.text().filter(lambda text: "</think>" not in text),
    answer=st.from_regex(r"[a-z]{1,9}", fullmatch=True),
)
def test_only_what_follows_the_block_is_left(thought: str, answer: str) -> None:
    assert final_text(f"<think>{thought}</think>{answer}") == answer
    assert final_text(f"<think>{thought}") is None


def test_many_tags_are_read_in_linear_time() -> None:
    assert final_text("</think>" * 200_000 + "low") == "low"
