"""Grades the recordings into `outcomes.jsonl` (certifying items) and `outcomes_train.jsonl`; calls no model.

The same recordings, labels and prices give the same bytes. Run: `python labelsets/helpdesk/grade.py`.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

from build import as_jsonl
from record import HERE, MODELS, call_key, latest_replies, read_items, read_recording, system_prompt

from evalkit.costs import LAYOUTS, PriceCard, cost_on_card, normal_usage
from evalkit.errors import Fault, InputError
from evalkit.grading import grade_reply, parse_check
from evalkit.study.prices import read_price_card

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


def error_of(reply: Row) -> str | None:
    """What went wrong with the call, or None."""
    if "error" in reply:
        return f"{reply['error']['type']}: {reply['error']['message']}"
    if reply["finish_reason"] not in {"stop", "length"}:
        return f"the stream ended with finish reason {reply['finish_reason']!r}"
    return None


def outcome(item: Row, tier: str, reply: Row, card: PriceCard) -> Row:
    """One row of the outcome table, with the reply beside it."""
    model = MODELS[tier].name
    # LiteLLM hands usage on in the layout of OpenAI.
    usage = normal_usage(reply.get("usage"), LAYOUTS["openai"])
    cost = cost_on_card(usage, card, model).usd
    return {
        "id": item["id"],
        "tier": tier,
        "model": model,
        "sample": 0,
        **status_and_score(item, reply),
        # A float of so few digits prints as the same decimal number.
        "cost_usd": None if cost is None else float(cost),
        "input_tokens": usage.input_tokens,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "output_tokens": usage.output_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "ttft_s": reply["ttft_s"],
        "request_s": reply["request_s"],
        "task_s": reply["request_s"],
        "attempts": 1,
        "error": error_of(reply),
        "reply": reply.get("reply"),
    }


def outcomes(folder: Path = HERE) -> dict[str, list[Row]]:
    """Outcome rows by file name; raises `InputError` for each tier with the items that were not recorded."""
    items, system, card = read_items(folder), system_prompt(folder), read_price_card(folder / "prices.yaml")
    rows: dict[str, list[Row]] = {"outcomes.jsonl": [], "outcomes_train.jsonl": []}
    replies, faults = {}, []
    for tier, model in MODELS.items():
        path = folder / "recordings" / f"{tier}.jsonl"
        found = latest_replies(read_recording(path))
        keys = {item["id"]: call_key(model, item, system) for item in items}
        replies[tier] = {name: found[key] for name, key in keys.items() if key in found}
        if missing := [name for name, key in keys.items() if key not in found]:
            what = f"has no reply for {len(missing)} items: {', '.join(missing[:20])}"
            what += ", …" if len(missing) > 20 else ""
            faults.append(Fault(what, "run record.py, which makes the missing calls", file=path.name))
    if faults:
        raise InputError(faults)
    for item in items:
        name = "outcomes.jsonl" if item["metadata"]["split"] == "certify" else "outcomes_train.jsonl"
        rows[name] += [outcome(item, tier, replies[tier][item["id"]], card) for tier in MODELS]
    return rows


def main() -> int:
    """Write both outcome files; print how many replies each tier has of each status."""
    try:
        graded = outcomes()
    except InputError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    for name, rows in graded.items():
        (HERE / name).write_text(as_jsonl(rows), encoding="utf-8", newline="\n")
        for tier in MODELS:
            found = Counter(row["status"] for row in rows if row["tier"] == tier)
            print(name, tier, dict(sorted(found.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
