"""Grades the recording into `outcomes.jsonl`; calls no model. The same recording gives the same bytes.

    python labelsets/word-problems/grade.py

A run is graded by its last call alone: what was planned, solved or thought before it is never looked at. Its
counts are those of all its calls. A thinking arm is one request to whoever pays: the problem is read once, with
the closing words behind it, and what was thought and answered is output.
"""

from __future__ import annotations

import sys
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

from arms import ARMS, MODEL, SEEDS, forced_text, run_key
from record_arms import HERE, read_tasks

from evalkit.costs import Usage, cost_on_card
from evalkit.errors import Fault, InputError
from evalkit.grading import grade_reply, parse_check
from evalkit.providers.recordings import latest_replies, read_recording
from evalkit.study.prices import read_price_card
from evalkit.tabular.write import write_table

Row = dict[str, Any]


def status_and_score(task: Row, run: Row) -> Row:
    """`status`, `score` and `passed` of one run; a call that gave no answer is never a wrong answer."""
    answer = run["calls"][-1]
    if "error" in answer:
        return {"status": "error", "score": None, "passed": None}
    if answer["stop_type"] == "limit":
        return {"status": "truncated", "score": None, "passed": None}
    grade = grade_reply(parse_check(task["metadata"]["check"]), answer["text"], task["reference"])
    return {"status": grade.status.value, "score": grade.score, "passed": grade.passed}


def usage_of(task: Row, run: Row, forced: dict[str, int]) -> Usage:
    """Tokens of a run in the normal form, unknown where a call failed."""
    calls = run["calls"]
    if any("error" in call for call in calls):
        return Usage(problem="a call of the run failed")
    thought = calls[0]["new_tokens"] if calls[0]["step"] == "think" else 0
    read = sum(call["prompt_tokens"] for call in calls)
    if calls[0]["step"] == "think":
        read = calls[0]["prompt_tokens"] + forced[forced_text(task)]
    return Usage(
        input_tokens=read, output_tokens=sum(call["new_tokens"] for call in calls), reasoning_tokens=thought
    )


def outcomes(folder: Path = HERE) -> list[Row]:
    """Outcome rows by task, arm and seed; raises `InputError` with the runs that were not recorded."""
    tasks, card = read_tasks(folder / "tasks.jsonl"), read_price_card(folder / "prices.yaml")
    lines = read_recording(folder / "recording.jsonl")
    forced: dict[str, int] = {}
    for line in lines:
        forced |= line.get("forced_tokens", {})
    found = latest_replies(lines)
    rows, missing = [], []
    for task in tasks:
        for arm in ARMS:
            for sample, seed in enumerate(SEEDS):
                run = found.get(run_key(MODEL, arm, task, seed))
                if run is None:
                    missing.append(f"{task['id']} {arm.name} {seed}")
                    continue
                usage = usage_of(task, run, forced)
                cost: Decimal | None = cost_on_card(usage, card, MODEL.name).usd
                failed = run["calls"][-1].get("error")
                rows.append(
                    {
                        "id": task["id"],
                        "arm": arm.name,
                        "model": MODEL.name,
                        "sample": sample,
                        **status_and_score(task, run),
                        "cost_usd": None if cost is None else float(cost),
                        "input_tokens": usage.input_tokens,
                        "output_tokens": usage.output_tokens,
                        "reasoning_tokens": usage.reasoning_tokens,
                        "request_s": run["calls"][-1]["request_s"],
                        "task_s": run["task_s"],
                        "attempts": 1,
                        "error": None if failed is None else f"{failed['type']}: {failed['message']}",
                        "reply": run["calls"][-1].get("text"),
                    }
                )
    if missing:
        what = f"{len(missing)} runs are not recorded: {', '.join(missing[:10])}"
        raise InputError(Fault(what, "run record_arms.py, which makes the missing ones", file="recording.jsonl"))
    return rows


def main() -> int:
    """Write the outcomes; print how many runs each arm has of each status."""
    try:
        rows = outcomes()
    except InputError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    write_table(HERE / "outcomes.jsonl", {name: [row[name] for row in rows] for name in rows[0]})
    for arm in ARMS:
        print(arm.name, dict(sorted(Counter(row["status"] for row in rows if row["arm"] == arm.name).items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
