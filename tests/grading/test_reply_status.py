"""Case B02: a budget that thinking used up is neither a wrong answer nor a broken contract."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalkit.grading import reply_status


def of_case(path: Path) -> Any:
    document = json.loads(path.read_text(encoding="utf-8"))
    response = document.get("response", document)
    choice, usage = response["choices"][0], response["usage"]
    return reply_status(
        choice["message"]["content"],
        choice["finish_reason"],
        reasoning_tokens=usage["completion_tokens_details"]["reasoning_tokens"],
        output_tokens=usage["completion_tokens"],
        max_tokens=document.get("request", {}).get("max_completion_tokens"),
    )


def test_the_case(shared: Path) -> None:
    case = shared / "cases" / "B02-budget-exhausted"
    expect = json.loads((case / "expect.json").read_text(encoding="utf-8"))["values"]
    seen = {path.name: of_case(path) for path in case.glob("*.json") if path.name != "expect.json"}
    by_status = {
        status: {name for name, reply in seen.items() if reply.status == status}
        for status in ("budget_exhausted", "truncated", None)
    }
    assert by_status["budget_exhausted"] == set(expect["budget_exhausted"])
    assert by_status["truncated"] == set(expect["truncated"])
    assert by_status[None] == set(expect["graded"])
    assert "max_tokens" in seen["empty.json"].notice
    assert "459" in seen["cap_ignored.json"].notice
    assert "16" in seen["cap_ignored.json"].notice
    assert seen["cap_ignored.json"].answer == "ANSWER: C"


@pytest.mark.parametrize(
    ("content", "finish", "more", "status"),
    [
        ("<think>still at it", "stop", {}, "no_final_answer"),
        ("<think>still at it", "length", {}, "budget_exhausted"),
        ("<think>done</think>", "stop", {}, "no_final_answer"),
        ("<think>done</think> low", "stop", {}, None),
        ("<think>done</think> lo", "length", {}, "truncated"),
        ("", "stop", {}, None),  # an empty reply without thinking is for the check to judge
        (None, "stop", {"reasoning": "ANSWER: low"}, "no_final_answer"),
        (None, "stop", {"reasoning": "ANSWER: low", "reasoning_tokens": 9}, "budget_exhausted"),
        ("lo", "MAX_TOKENS", {}, "truncated"),
        ("low", "Error", {}, "error"),
        ("low", "refusal", {}, "provider_refusal"),
        ("", "SAFETY", {}, "provider_refusal"),
        ("", "content_filter", {}, "provider_refusal"),
        ("low", "max_tokens", {}, "truncated"),
        ("low", None, {}, None),
        ("[THINK]a[/THINK]low", "stop", {"tags": [("[THINK]", "[/THINK]")]}, None),
    ],
)
def test_by_text_and_end(content: str | None, finish: str | None, more: Any, status: str | None) -> None:
    assert reply_status(content, finish, **more).status == status


def test_only_the_answer_is_left_for_a_check() -> None:
    assert reply_status("<think>high</think> low", "stop").answer == "low"
    assert reply_status("<think>high", "length").answer is None
