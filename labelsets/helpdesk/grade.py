"""Grades the recordings into `outcomes.jsonl` (certifying items) and `outcomes_train.jsonl`; calls no model.

The same recordings, labels and prices give the same bytes. Run: `python labelsets/helpdesk/grade.py`.
"""

from __future__ import annotations

from typing import Any

from evalkit.grading import grade_reply, parse_check

Row = dict[str, Any]


def status_and_score(item: Row, reply: Row) -> Row:
    """`status`, `score` and `passed` of one recorded reply; a call that gave no answer is never a wrong answer."""
    if "error" in reply:
        return {"status": "error", "score": None, "passed": None}
    if reply["finish_reason"] == "length":
        return {"status": "truncated", "score": None, "passed": None}
    if reply["finish_reason"] != "stop":  # the stream ended without saying that it was whole
        return {"status": "error", "score": None, "passed": None}
    grade = grade_reply(parse_check(item["metadata"]["check"]), reply["reply"], item["reference"])
    return {"status": grade.status.value, "score": grade.score, "passed": grade.passed}
