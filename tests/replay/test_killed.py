"""kill -9 at random moments, then the same command again: nothing is lost, nothing that arrived is paid again."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

from evalkit.providers.call import Reply
from evalkit.providers.key import request_key
from evalkit.replay import Ledger, cells_of
from tests.providers.mock_openai import running_mock
from tests.replay.child import plan_of_config
from tests.replay.children import Child

KILLS = int(os.environ.get("EVALKIT_KILLS", "8"))
"""EVALKIT_KILLS=50 for the whole proof."""

PRICES = {name: {"input": "1", "output": "4"} for name in ("mid", "top")}


def outcomes(folder: Path, config: dict[str, Any]) -> dict[tuple[str, str], tuple[Any, ...]]:
    """What each cell has come to, but for times: reply, usage and cost of the decision."""
    with Ledger.read(folder / "ledger.sqlite") as ledger:
        found = {}
        for record in cells_of(ledger, plan_of_config(config)):
            if isinstance(record.result, Reply):
                reply = record.result
                name = (record.cell.item, record.cell.candidate)
                found[name] = (reply.text, reply.usage, reply.served_model, reply.finish_reason, record.cost.usd)
        return found


def replies(folder: Path) -> dict[str, int]:
    """The key of every reply on disk, and the number of the attempt that got it."""
    if not (folder / "ledger.sqlite").exists():
        return {}
    with Ledger.read(folder / "ledger.sqlite") as ledger:
        return {attempt.key: attempt.number for attempt in ledger.every_attempt() if attempt.state == "reply"}


@pytest.fixture
def config() -> dict[str, Any]:
    items = [f"item {n} of many" for n in range(35 * KILLS)]
    settings = {"concurrency": 8, "backoff_s": 0.01}
    return {"items": items, "models": ["mid", "top"], "prices": PRICES, "settings": settings}


def test_killed_at_random_moments_and_resumed(tmp_path: Path, config: dict[str, Any]) -> None:
    seed = 20_260_131
    draw = random.Random(seed)
    print(f"seed {seed}, {KILLS} kills")
    folder, calm = tmp_path / "killed", tmp_path / "calm"
    # A 429 now and then, so that some kills fall into a backoff.
    rules = [{"share": 0.1, "attempts": 1, "fault": "status", "status": 429, "retry_after": 0.02}]
    with running_mock(rules=rules, latency_s=0.04, prices=PRICES) as mock:
        config["url"] = mock.url
        kept: dict[str, int] = {}
        killed = 0
        while killed < KILLS:
            child = Child(folder, config)
            # One in five is killed while it starts.
            alive = child.kill_after(draw.uniform(0.0, 0.5), started=draw.random() > 0.2)
            now = replies(folder)
            assert kept.items() <= now.items()  # nothing that was received is lost, and nothing is asked again
            kept = now
            killed += alive
            if not alive:
                break
        assert killed == KILLS, "the plan is too small for so many kills"
        summary, said = Child(folder, config).end()
        counts = mock.counts()
        assert summary["exit_code"] == 0
        assert summary["replied"] == len(config["items"]) * 2
        assert summary["from_ledger"] == len(kept)
        _everything_is_accounted_for(folder, config, counts, summary)
        if summary["possibly_paid_twice"]:
            assert "possibly paid twice" in said
        mock.reset()
        Child(calm, config).end()
        assert outcomes(folder, config) == outcomes(calm, config)


def _everything_is_accounted_for(
    folder: Path, config: dict[str, Any], counts: dict[str, Any], summary: dict[str, Any]
) -> None:
    with Ledger.read(folder / "ledger.sqlite") as ledger:
        attempts = list(ledger.every_attempt())
    states = [attempt.state for attempt in attempts]
    abandoned = states.count("abandoned")
    assert "in_flight" not in states
    assert abandoned > 0
    # The server never saw a request that the ledger does not know; an abandoned one may not have reached it.
    assert len(attempts) - abandoned <= counts["requests"] <= len(attempts)
    by_key: dict[str, list[Any]] = {}
    for attempt in attempts:
        by_key.setdefault(attempt.key, []).append(attempt)
    for tries in by_key.values():
        kinds = [attempt.state for attempt in tries]
        assert kinds.count("reply") == 1
        assert kinds[-1] == "reply"
        # One attempt for the reply, one for each kill while it was in flight, one for the 429 it may have met.
        assert len(kinds) <= 2 + kinds.count("abandoned")
        runs = [attempt.run for attempt in tries if attempt.state == "abandoned"]
        assert len(set(runs)) == len(runs)  # each run sent it once more
    for cell in plan_of_config(config):
        tries = by_key[request_key(cell.first)]
        _, whole = counts["contents"][f"{cell.candidate}|{cell.item}"]
        # What the server counts as answered and paid: once, and once more at most for each kill in mid-call.
        assert 1 <= whole <= 1 + sum(attempt.state == "abandoned" for attempt in tries)
    again = [
        tries
        for tries in by_key.values()
        if any(a.state == "abandoned" for a in tries) and tries[-1].run == summary["run"]
    ]
    assert summary["possibly_paid_twice"] == len(again)
