"""1,577 usages that providers returned, and the counts that genai-prices reads from each.

It gives one set of counts for every API that knows the payload's names. Where the sets differ, the total of the
payload decides, and then which set is the most complete.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalkit.costs import Usage, normal_usage

Form = tuple[int, int, int, int, int]

KEYS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "output_reasoning_tokens")
TOTALS = ("total_tokens", "totalTokens", "totalTokenCount")

UNCLEAR = {
    # Answers of embedding models: they have no output, and a reply without its count is nothing to price.
    "output_tokens is unknown": 18,
    # The tokens that were processed and those that are billed, 2,935 and 2,406 say, and cached ones in neither.
    "cached_tokens # beside billed_units: it is not said how they are billed": 9,
    # A gateway and a failed response: 180 tokens of output without any input, and nothing at all.
    "input_tokens is #, and every request has a prompt": 2,
    # 35 + 12 = 109: thinking tokens that the payload does not name.
    "total_tokens # fits no reading of prompt_tokens #, completion_tokens #": 2,
}
"""What evalkit does not read, with how many, beside counts that the data gives."""

FEES = {
    # Passes that are billed and left out of the totals: an advisor's are another model's, a compaction's are not.
    "a pass of type advisor_message by claude-opus-#-#": 2,
    "a pass of type advisor_message by claude-fable-#": 1,
    "a pass of type compaction": 2,
    "web_search_requests #": 7,
    "tool_calls_executed #": 1,
}


@pytest.fixture(scope="module")
def payloads(shared: Path) -> list[dict[str, Any]]:
    path = shared / "data" / "traces" / "genai-prices-usages" / "usages.json.gz"
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        rows: list[dict[str, Any]] = json.load(stream)
    assert len(rows) == 1577
    return rows


def extracted(row: dict[str, Any]) -> set[Form]:
    """The sets of counts, without those of tokens that are processed and not billed."""
    billed = [one for one in row["extracted"] if any(api["api_flavor"] != "tokens" for api in one["extractors"])]
    return {tuple(one["usage"].get(key, 0) for key in KEYS) for one in billed}  # type: ignore[misc]


def form(usage: Usage) -> Form:
    return (
        usage.input_tokens or 0,
        usage.output_tokens or 0,
        usage.cache_read_tokens or 0,
        usage.cache_write_tokens or 0,
        usage.reasoning_tokens or 0,
    )


def total_of(body: dict[str, Any]) -> int | None:
    """The payload's own total, of prompt and output."""
    inner = body.get("usage") or body.get("usageMetadata") or {}
    return next((inner[name] for name in TOTALS if name in inner), None)


def expected(row: dict[str, Any]) -> Form:
    """The counts that the data gives, where the sets agree or one of them is the whole of the others."""
    forms = extracted(row)
    if len(forms) > 1:
        total = total_of(row["body"])
        forms = {one for one in forms if total is None or one[0] + one[1] == total}
        most = max(sum(map(bool, one)) for one in forms)
        forms = {one for one in forms if sum(map(bool, one)) == most}
    (only,) = forms
    return only


def read(rows: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], Usage]]:
    return ((row, normal_usage(row["body"])) for row in rows)


def test_every_count_is_the_one_that_the_data_gives_or_is_said_to_be_unclear(
    payloads: list[dict[str, Any]],
) -> None:
    unclear: Counter[str] = Counter()
    agreed = 0
    for row, usage in read(payloads):
        if usage.problem is not None:
            unclear[re.sub(r"\d+", "#", usage.problem)] += 1
            assert usage.input_tokens is None
            continue
        assert form(usage) == expected(row), row["body"]
        agreed += 1
    assert dict(unclear) == UNCLEAR
    assert agreed == 1577 - sum(UNCLEAR.values())


def test_input_and_output_are_the_total_that_the_payload_gives(payloads: list[dict[str, Any]]) -> None:
    checked = 0
    for row, usage in read(payloads):
        total = total_of(row["body"])
        if usage.problem is None and total is not None:
            assert (usage.input_tokens or 0) + (usage.output_tokens or 0) == total, row["body"]
            checked += 1
    assert checked > 1250


def test_what_is_billed_beside_the_counts_is_seen(payloads: list[dict[str, Any]]) -> None:
    fees: Counter[str] = Counter()
    other: Counter[str] = Counter()
    for row, usage in read(payloads):
        for fee in (usage.fees or "").split(", ") if usage.fees else ():
            fees[re.sub(r"\d+", "#", fee)] += 1
        other.update({f"processing: {usage.processing}": 1} if usage.processing else {})
        said = {key for one in row["extracted"] for key, count in one["usage"].items() if count}
        foreign = {key for key in said if re.search("audio|image|video", key)}
        assert bool(usage.media) >= bool(foreign), row["body"]
    assert dict(fees) == FEES
    assert dict(other) == {"processing: trafficType ON_DEMAND_FLEX": 1}
