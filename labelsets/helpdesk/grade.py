"""Grades the recordings into `outcomes.jsonl` (certifying items) and `outcomes_train.jsonl`; calls no model.

The same recordings, labels and prices give the same bytes. Run: `python labelsets/helpdesk/grade.py`.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from build import as_jsonl
from record import HERE, MODELS, call_key, latest_replies, read_items, read_recording, system_prompt

from evalkit.errors import Fault, InputError
from evalkit.grading import grade_reply, parse_check

Row = dict[str, Any]
Prices = Mapping[str, tuple[Decimal, Decimal]]  # model -> USD per 1M input and output tokens


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


def read_prices(path: Path) -> Prices:
    """The prices of the study's card."""
    from ruamel.yaml import YAML

    card = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    return {
        name: (Decimal(str(price["input"])), Decimal(str(price["output"])))
        for name, price in card["models"].items()
    }


def outcome(item: Row, tier: str, reply: Row, prices: Prices) -> Row:
    """One row of the outcome table, with the reply beside it."""
    usage = reply.get("usage") or {}
    n_in, n_out = usage.get("prompt_tokens"), usage.get("completion_tokens")
    price_in, price_out = prices[MODELS[tier].name]
    cost = None if n_in is None or n_out is None else (n_in * price_in + n_out * price_out) / 10**6
    return {
        "id": item["id"],
        "tier": tier,
        "model": MODELS[tier].name,
        "sample": 0,
        **status_and_score(item, reply),
        # A float of this few digits prints as the same decimal number.
        "cost_usd": None if cost is None else float(cost),
        "input_tokens": n_in,
        "cache_read_tokens": usage.get("prompt_tokens_details", {}).get("cached_tokens"),
        "cache_write_tokens": None,
        "output_tokens": n_out,
        "reasoning_tokens": usage.get("completion_tokens_details", {}).get("reasoning_tokens"),
        "ttft_s": reply["ttft_s"],
        "request_s": reply["request_s"],
        "task_s": reply["request_s"],
        "attempts": 1,
        "error": error_of(reply),
        "reply": reply.get("reply"),
    }


def outcomes(folder: Path = HERE) -> dict[str, list[Row]]:
    """Outcome rows by file name; raises `InputError` for each tier with the items that were not recorded."""
    items, system, prices = read_items(folder), system_prompt(folder), read_prices(folder / "prices.yaml")
    rows: dict[str, list[Row]] = {"outcomes.jsonl": [], "outcomes_train.jsonl": []}
    replies, faults = {}, []
    for tier, model in MODELS.items():
        path = folder / "recordings" / f"{tier}.jsonl"
        found = latest_replies(read_recording(path))
        replies[tier] = {item["id"]: found.get(call_key(model, item, system)) for item in items}
        if missing := [name for name, reply in replies[tier].items() if reply is None]:
            what = f"has no reply for {len(missing)} items: {', '.join(missing[:20])}"
            what += ", …" if len(missing) > 20 else ""
            faults.append(Fault(what, "run record.py, which makes the missing calls", file=path.name))
    if faults:
        raise InputError(faults)
    for item in items:
        name = "outcomes.jsonl" if item["metadata"]["split"] == "certify" else "outcomes_train.jsonl"
        rows[name] += [outcome(item, tier, replies[tier][item["id"]], prices) for tier in MODELS]
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
