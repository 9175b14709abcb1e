"""Case R09 and interruptions through the command, in processes of their own against a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from evalkit.providers.litellm_client import load_litellm
from tests.providers.mock_openai import MockServer, running_mock
from tests.workflows.replays import KEY, Child, items, replay, replied, until, write_study

RULES = [
    {"contains": "prompt q2", "fault": "hang"},
    {"contains": "prompt q4", "fault": "drip", "every_s": 0.5},
]


@pytest.fixture(scope="module")
def mock() -> Iterator[MockServer]:
    with running_mock(rules=RULES, latency_s=0.1) as server:
        yield server


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEMO_KEY", KEY)


def study(folder: Path, mock: MockServer, **options: float) -> Path:
    wanted = {"request_timeout_s": 2, "max_attempts": 2, "concurrency": 8} | options
    return write_study(folder, mock, items(["q1", "q2", "q3", "q4"]), options=wanted)


def statuses(folder: Path) -> dict[str, tuple[str, str]]:
    lines = (folder / "outcomes.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return {f"{row['id']} {row['tier']}": (row["status"], row.get("error", "")) for row in rows}


def test_calls_that_never_end_cost_their_items_and_no_others(
    mock: MockServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study(tmp_path, mock, request_timeout_s=1)
    ran = replay(capsys, tmp_path)
    assert ran.code == 4, ran.err
    found = statuses(tmp_path / "run")
    assert {name for name, (status, _) in found.items() if status == "error"} == {
        f"{item} {tier}" for item in ("q2", "q4") for tier in ("cheap", "top")
    }
    assert all(error.startswith("timeout: ") for status, error in found.values() if status == "error")
    assert "id q2, cheap: timeout after 2 attempts" in ran.err
    assert "id q4, top: timeout after 2 attempts" in ran.err
    assert "4 calls failed that may work later" in ran.err
    assert "run the same command again" in ran.err
    # Nobody knows whether these attempts are billed, and the range says so.
    assert ran.summary["costs"]["possibly_billed"] == 8
    assert Decimal(ran.summary["costs"]["spent_high_usd"]) > Decimal(ran.summary["costs"]["spent_low_usd"])


def test_a_time_limit_ends_the_run_in_good_order(
    mock: MockServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    load_litellm()  # which takes seconds, and the limit is on the whole run
    path = study(tmp_path, mock, request_timeout_s=60)
    ran = replay(capsys, tmp_path, "--run-timeout", "3")
    assert ran.code == 4
    assert "time limit" in ran.err
    assert sorted(replied(path, tmp_path / "run")) == ["q1", "q1", "q3", "q3"]
    assert "4 not collected yet" in ran.out
    assert len(ran.rows) == 4


def test_an_interrupted_run_keeps_what_it_has_and_says_how_to_go_on(mock: MockServer, tmp_path: Path) -> None:
    path, out = study(tmp_path, mock, request_timeout_s=600), tmp_path / "run"
    child = Child("replay", path, "--out", out)
    until(lambda: sorted(replied(path, out)) == ["q1", "q1", "q3", "q3"])  # on disk while the others hang
    child.signal()
    code, _, err = child.end(timeout_s=60)
    assert code == 4
    assert "interrupted" in err
    assert "run the same command again" in err
    assert "Traceback" not in err
    assert len(statuses(out)) == 4
