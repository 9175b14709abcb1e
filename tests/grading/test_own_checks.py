"""The bundled rubric `own_checks` grades the helpdesk recordings as the study's own script does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from evalkit.grading import Item, grade_cell, read_rubric, rubric_faults
from evalkit.providers.call import Failure, FailureKind, Reply


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def recorded(row: dict[str, Any]) -> Reply | Failure:
    if "error" in row:
        return Failure(FailureKind.OTHER, row["error"]["message"])
    if row["finish_reason"] not in {"stop", "length"}:
        return Failure(FailureKind.CUT, "the stream ended early", text=row["reply"])
    return Reply(row["reply"], row["finish_reason"], usage=row["usage"])


def test_the_same_statuses_and_scores_for_all_rows(repo: Path) -> None:
    study = repo / "labelsets" / "helpdesk"
    rubric = read_rubric(repo / "rubrics" / "own_checks.yaml")
    items = {
        row["id"]: Item(row["id"], row["prompt"], row["reference"], row["category"], row["risk"], row["metadata"])
        for row in lines(study / "labels.jsonl")
    }
    assert rubric_faults(rubric, items.values()) == []
    outcomes = lines(study / "outcomes.jsonl")
    replies = {
        (tier, row["id"]): row
        for tier in ("cheap", "mid", "top")
        for row in lines(study / "recordings" / f"{tier}.jsonl")
        if row["kind"] == "reply"
    }
    assert len(outcomes) == 3 * len(items)
    differing = []
    for row in outcomes:
        reply = replies[row["tier"], row["id"]]
        graded = grade_cell(rubric, items[row["id"]], row["tier"], recorded(reply))
        wanted = (row["status"], row["score"], row["passed"])
        if (graded.status, graded.score, graded.passed) != wanted:
            differing.append((row["tier"], row["id"], wanted, graded))
    assert differing == []
