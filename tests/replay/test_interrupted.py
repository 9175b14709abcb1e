"""Case R09: calls that never return, limits on time, and Ctrl-C, in a process of its own against a real server."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalkit.providers.call import Failure, Reply
from evalkit.replay import Ledger, cells_of
from tests.providers.mock_openai import MockServer, running_mock
from tests.replay.child import plan_of_config
from tests.replay.children import Child

RULES = [
    {"contains": "q2", "fault": "hang"},
    {"contains": "q4", "fault": "drip", "every_s": 0.5},
]


@pytest.fixture(scope="module")
def mock() -> Iterator[MockServer]:
    with running_mock(rules=RULES, latency_s=0.1) as server:
        yield server


def config(mock: MockServer, **settings: Any) -> dict[str, Any]:
    return {
        "url": mock.url,
        "items": ["q1", "q2", "q3", "q4"],
        "settings": {"request_timeout_s": 2.0, "max_attempts": 2, "concurrency": 4, "backoff_s": 0.05} | settings,
    }


def replied(folder: Path, found: dict[str, Any]) -> list[str]:
    """The items that have a reply on disk at this moment."""
    if not (folder / "ledger.sqlite").exists():
        return []
    with Ledger.read(folder / "ledger.sqlite") as ledger:
        return [r.cell.item for r in cells_of(ledger, plan_of_config(found)) if isinstance(r.result, Reply)]


def until_replied(folder: Path, found: dict[str, Any], count: int) -> None:
    deadline = time.monotonic() + 20
    while len(replied(folder, found)) < count:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_two_calls_that_never_end_cost_two_items(mock: MockServer, tmp_path: Path, shared: Path) -> None:
    case = shared / "cases/R09-hung-request"
    values = json.loads((case / "expect.json").read_text(encoding="utf-8"))["values"]
    found = config(mock)
    child = Child(tmp_path, found)
    child.wait_for_start()
    began = time.monotonic()
    until_replied(tmp_path, found, 2)
    assert child.process.poll() is None  # on disk while the others still hang
    assert replied(tmp_path, found) == values["saved_early"]
    summary, said = child.end()
    assert time.monotonic() - began < values["max_run_s"]
    assert child.process.returncode == summary["exit_code"] == 4
    assert (summary["replied"], summary["attempts"], summary["ended"]) == (2, 6, "done")
    for name in ("q2", "q4"):
        assert any(name in line and "timeout" in line and "2 attempts" in line for line in said.splitlines())
    with Ledger.read(tmp_path / "ledger.sqlite") as ledger:
        results = {record.cell.item: record.result for record in cells_of(ledger, plan_of_config(found))}
    for name in ("q2", "q4"):
        result = results[name]
        assert isinstance(result, Failure)
        assert result.kind == "timeout"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_keeps_what_arrived_and_ends_soon(
    mock: MockServer, tmp_path: Path, number: signal.Signals
) -> None:
    found = config(mock, request_timeout_s=60.0)
    child = Child(tmp_path, found)
    child.wait_for_start()
    until_replied(tmp_path, found, 2)
    took = child.interrupt(number)
    summary, said = child.end()
    assert took < 2
    assert (summary["ended"], summary["exit_code"], summary["replied"]) == ("interrupted", 4, 2)
    assert "Traceback" not in said
    assert "run the same command again to resume" in said
    assert replied(tmp_path, found) == ["q1", "q3"]
    with Ledger.read(tmp_path / "ledger.sqlite") as ledger:
        states = sorted(attempt.state for attempt in ledger.every_attempt())
    assert states == ["abandoned", "abandoned", "reply", "reply"]


def test_the_time_limit_of_a_run_ends_it(mock: MockServer, tmp_path: Path) -> None:
    found = config(mock, request_timeout_s=60.0, run_timeout_s=1.0, grace_s=0.1)
    child = Child(tmp_path, found)
    summary, _ = child.end(timeout=30)
    assert (summary["ended"], summary["exit_code"], summary["replied"]) == ("time limit", 4, 2)
