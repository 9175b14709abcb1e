"""Whole runs against a server that fails in every way it can, compared with what the server itself counted.

EVALKIT_ITEMS=1000 for the whole proof.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

from evalkit.providers.call import Connection, Failure, FailureKind, Reply
from evalkit.providers.litellm_provider import LiteLLMProvider
from evalkit.replay import Attempt, Ledger, RunSettings, RunSummary, cells_of, run
from tests.providers.mock_openai import running_mock
from tests.replay.child import plan_of_config, pricing_of_config
from tests.replay.http_provider import HttpProvider

ITEMS = int(os.environ.get("EVALKIT_ITEMS", "150"))
PRICES = {
    "cheap": {"input": "0.05", "output": "0.4"},
    "mid": {"input": "0.25", "output": "2"},
    "top": {"input": "1.25", "output": "10"},
}
RULES = [
    {"contains": "poison", "fault": "status", "status": 400, "message": "no such parameter"},
    {"contains": "endless", "fault": "hang"},
    {"share": 0.03, "attempts": 2, "fault": "status", "status": 429, "retry_after": 0.02},
    {"share": 0.06, "attempts": 1, "fault": "status", "status": 500},
    {"share": 0.06, "attempts": 1, "fault": "status", "status": 503},
    {"share": 0.06, "attempts": 1, "fault": "status", "status": 529},
    {"share": 0.01, "attempts": 1, "fault": "hang"},
    {"share": 0.01, "attempts": 1, "fault": "drip"},
    {"share": 0.05, "attempts": 1, "fault": "cut"},
    {"share": 0.05, "attempts": 1, "fault": "reset"},
    {"share": 0.05, "attempts": 1, "fault": "not_json"},
    {"share": 0.06, "fault": "content_filter"},
    {"share": 0.06, "fault": "no_usage"},
    {"share": 0.06, "served_model": "top"},
    {"share": 0.06, "latency_s": 0.3},
]


def go(folder: Path, config: dict[str, Any], settings: RunSettings) -> RunSummary:
    async def main() -> RunSummary:
        with Ledger.open(folder / "ledger.sqlite") as ledger:
            provider = HttpProvider(config["url"])
            pricing = pricing_of_config(config)
            return await run(plan_of_config(config), lambda _: provider, ledger, settings, pricing=pricing)

    return asyncio.run(main())


def test_streams_through_litellm_are_accounted_for_likewise(tmp_path: Path) -> None:
    """The provider that users have, against the same server: usage on a chunk without choices, cut and endless
    streams, slow first tokens."""
    rules = [
        {"share": 0.1, "attempts": 1, "fault": "cut", "pieces": 2},
        {"share": 0.1, "attempts": 1, "fault": "no_finish"},
        {"share": 0.1, "attempts": 1, "fault": "status", "status": 429, "retry_after": 0.05},
        {"share": 0.1, "fault": "no_usage"},
        {"share": 0.05, "attempts": 1, "fault": "drip"},
        {"share": 0.2, "latency_s": 0.3, "tokens": 5},
    ]
    settings = RunSettings(concurrency=16, max_attempts=4, request_timeout_s=3.0, backoff_s=0.02)
    names = [f"question {n}" for n in range(max(60, ITEMS // 3))]

    async def main(config: dict[str, Any]) -> RunSummary:
        provider = LiteLLMProvider(Connection(api_base=config["url"], api_key="none"))
        await provider.open()
        try:
            with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
                pricing = pricing_of_config(config)
                return await run(plan_of_config(config), lambda _: provider, ledger, settings, pricing=pricing)
        finally:
            await provider.aclose()

    with running_mock(rules=rules, latency_s=0.01, pause_s=0.002, prices=PRICES) as mock:
        config = {"url": mock.url, "items": names, "models": ["mid"], "prices": PRICES, "stream": True}
        found = asyncio.run(main(config))
        counts = mock.counts()
    assert (found.replied, found.exit_code, found.attempts) == (len(names), 0, counts["requests"])
    assert found.spent_low_usd == Decimal(counts["reported"]["usd"])
    assert {FailureKind.CUT, FailureKind.RATE_LIMIT} <= set(found.attempts_failed)
    with Ledger.read(tmp_path / "ledger.sqlite") as ledger:
        records = list(cells_of(ledger, plan_of_config(config)))
    unknown = [r for r in records if r.cost.usd is None]
    assert 0 < len(unknown) <= counts["unreported"]["replies"]
    slow = [r for r in records if r.ttft_s is not None and r.ttft_s >= 0.3]
    assert slow
    for record in records:
        assert record.ttft_s is not None
        assert record.request_s is not None
        assert record.task_s is not None
        assert 0 < record.ttft_s <= record.request_s <= record.task_s


def served_other(attempt: Attempt) -> bool:
    result = attempt.result
    return isinstance(result, Reply) and result.served_model == "top" != attempt.candidate


def test_every_item_is_accounted_for_once_and_every_cent_is_the_servers(tmp_path: Path) -> None:
    names = [f"question {n}" for n in range(ITEMS - 2)] + ["a poison question", "an endless question"]
    settings = RunSettings(
        concurrency=32, max_attempts=5, request_timeout_s=0.8, backoff_s=0.02, most_backoff_s=0.1
    )
    with running_mock(rules=RULES, latency_s=0.01, capacity=20, prices=PRICES) as mock:
        config = {"url": mock.url, "items": names, "models": list(PRICES), "prices": PRICES}
        found = go(tmp_path, config, settings)
        counts = mock.counts()

    # Each cell once: a reply, or a failure that says why.
    assert found.cells == 3 * ITEMS
    assert found.failed == {FailureKind.BAD_REQUEST: 3, FailureKind.TIMEOUT: 3}
    assert found.replied == 3 * ITEMS - 6
    assert (found.unreached, found.ended, found.exit_code) == (0, "done", 4)
    assert found.attempts == counts["requests"]

    with Ledger.read(tmp_path / "ledger.sqlite") as ledger:
        records = list(cells_of(ledger, plan_of_config(config)))
        attempts = list(ledger.every_attempt())
    assert len(records) == len({(r.cell.item, r.cell.candidate) for r in records}) == 3 * ITEMS
    for record in records:
        requests, whole = counts["contents"][f"{record.cell.candidate}|{record.cell.item}"]
        assert record.attempts == requests
        if isinstance(record.result, Reply):
            assert whole >= 1
        else:
            assert isinstance(record.result, Failure)

    # What the server reported, to the last digit; what it did not report, nobody has made up.
    reported = [a for a in attempts if a.state == "reply" and a.cost_usd is not None]
    assert sum(a.cost_usd or 0 for a in reported) == Decimal(counts["reported"]["usd"]) == found.spent_low_usd
    assert len(reported) == counts["reported"]["replies"]
    unknown = [a for a in attempts if a.state == "reply" and a.cost_usd is None]
    assert 0 < len(unknown) <= counts["unreported"]["replies"]
    assert all(isinstance(a.result, Reply) and a.result.usage is None for a in unknown)
    # What may have been charged lies inside the range.
    charged = sum(Decimal(counts[how]["usd"]) for how in ("reported", "unreported", "aborted"))
    assert found.spent_high_usd is not None
    assert found.spent_low_usd <= charged <= found.spent_high_usd
    # Only another model that serves can pass the bound of the one that was asked.
    assert found.over_bound <= sum(served_other(a) for a in attempts)

    # A reply by another model is priced as what it is.
    others = [attempt for attempt in reported if served_other(attempt)]
    assert others
    for attempt in others:
        usage = attempt.result.usage or {} if attempt.result is not None else {}
        into, out = Decimal(usage["prompt_tokens"]), Decimal(usage["completion_tokens"])
        assert attempt.cost_usd == (into * Decimal("1.25") + out * 10) / 10**6

    kinds = Counter(a.kind for a in attempts if a.state == "failure")
    assert set(kinds) == {"rate_limit", "server_error", "timeout", "cut_stream", "bad_request"}
    [lane] = found.endpoints.values()
    assert lane.peak > 4  # it grew,
    assert lane.slowed >= 1  # and shrank
    assert lane.lowest is not None
    assert lane.lowest < lane.highest
    assert counts["max_in_flight"] <= 32

    # And nothing is left to do but what never answers.
    with running_mock(rules=RULES[:1], prices=PRICES) as mock:
        again = go(tmp_path, config | {"url": mock.url}, settings)
        assert mock.counts()["requests"] == again.calls == 3
    assert (again.replied, again.exit_code) == (3 * ITEMS - 3, 0)


def test_the_cap_is_never_passed_with_two_hundred_in_flight(tmp_path: Path) -> None:
    # Every reply has as many tokens as it may, so that what is reserved and what is charged are close.
    prices = {"mid": {"input": "0", "output": "10"}}
    rules = [
        {"share": 0.1, "attempts": 1, "fault": "cut", "tokens": 50},
        {"share": 0.1, "fault": "no_usage", "tokens": 50},
        {"tokens": 50},
    ]
    cap = Decimal("0.4")  # 800 replies of 0.0005
    settings = RunSettings(concurrency=200, backoff_s=0.01, most_backoff_s=0.05, max_spend_usd=cap)
    with running_mock(rules=rules, latency_s=0.5, prices=prices) as mock:
        names = [f"question {n}" for n in range(1200)]
        config = {"url": mock.url, "items": names, "models": ["mid"], "prices": prices, "max_tokens": 50}
        found = go(tmp_path, config, settings)
        counts = mock.counts(contents=False)
        charged = sum(Decimal(counts[how]["usd"]) for how in ("reported", "unreported", "aborted"))
        assert found.ended == "spend cap"
        assert counts["max_in_flight"] >= 190
        assert charged <= cap
        assert charged == cap  # and it is used to the last reply
        assert found.charged_usd == cap
        # A second run has nothing left to spend, and a third with a higher cap goes on.
        requests = counts["requests"]
        assert go(tmp_path, config, settings).attempts == 0
        assert mock.counts(contents=False)["requests"] == requests
