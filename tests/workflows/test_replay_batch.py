"""`evalkit replay --batch` through the command: half the price, no times, and a kill that sends nothing twice."""

from __future__ import annotations

import signal
from decimal import Decimal
from pathlib import Path

import pytest

from evalkit.errors import InputError
from evalkit.replay import Ledger
from evalkit.replay.batch_ledger import open_batches
from tests.providers.mock_openai import running_mock
from tests.workflows.replays import KEY, PRICES, Child, evalkit, items, replay, until, write_study

NAMES = [f"q{n}" for n in range(6)]


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEMO_KEY", KEY)


def test_a_study_through_batches(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with running_mock(batch={"polls": 2}, prices=PRICES, api_key=KEY) as mock:
        write_study(tmp_path, mock, items(NAMES))
        dry = replay(capsys, tmp_path, "--batch", "--dry-run")
        ran = replay(capsys, tmp_path, "--batch", "--poll-every", "0.02")
        again = replay(capsys, tmp_path)  # nothing is left, in either way
        counts = mock.counts()
        card = tmp_path / "prices.yaml"
        repriced = evalkit(capsys, "reprice", tmp_path / "run", "--prices", card, out=tmp_path / "run")
    assert dry.code == ran.code == again.code == 0, ran.err
    assert counts["batch"] == {"batches": 2, "lines": 12}
    assert counts["requests"] == 0
    half = Decimal(counts["reported"]["usd"]) / 2
    assert Decimal(ran.summary["costs"]["decision_usd"]) == half
    assert Decimal(ran.summary["costs"]["spent_low_usd"]) == half
    assert ran.summary["batch"] is True
    assert ran.summary["candidates"]["top"]["latencies_measured_now"] == 0
    assert all("task_s" not in row and row["cost_usd"] > 0 for row in ran.rows)
    assert again.rows == ran.rows
    # What went through a batch is priced so again.
    assert repriced.code == 0, repriced.err
    new = (tmp_path / "run" / "outcomes.repriced.jsonl").read_text(encoding="utf-8")
    assert new == (tmp_path / "run" / "outcomes.jsonl").read_text(encoding="utf-8")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_was_ended_is_collected_by_the_next_and_by_no_live_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], how: signal.Signals
) -> None:
    with running_mock(batch={"polls": 2}, prices=PRICES) as mock:
        study, out = write_study(tmp_path, mock, items(NAMES)), tmp_path / "run"
        child = Child("replay", study, "--out", out, "--batch")
        until(lambda: (out / "ledger.sqlite").exists() and sent(out) == 2)
        child.signal(how)
        code, _, err = child.end()
        assert code == (4 if how is signal.SIGINT else -how)
        assert how is signal.SIGKILL or "batches go on at the provider" in err
        live = replay(capsys, tmp_path)
        assert mock.counts()["requests"] == 0
        ran = replay(capsys, tmp_path, "--batch", "--poll-every", "0.02")
        counts = mock.counts()
    assert live.code == 2
    assert "12 calls of this run folder are under way in provider batches" in live.err
    assert "with --batch" in live.err
    assert ran.code == 0, ran.err
    assert counts["batch"] == {"batches": 2, "lines": 12}
    assert ran.summary["all_runs"]["possibly_paid_twice"] == 0


def sent(folder: Path) -> int:
    """Batches that are at the provider; 0 while the ledger is being made."""
    try:
        with Ledger.read(folder / "ledger.sqlite") as ledger:
            return sum(batch.job.id is not None for batch in open_batches(ledger))
    except InputError:
        return 0


def test_what_cannot_go_into_a_batch_is_named_before_anything_is_sent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tiers = [{"name": "cheap", "model": "local/x"}, {"name": "top", "model": "anthropic/claude-x"}]
    write_study(tmp_path, None, items(NAMES), changes={"tiers": tiers})
    ran = replay(capsys, tmp_path, "--batch", "--offline")
    assert ran.code == 2
    assert "cheap: local/x cannot be called in batches" in ran.err
    assert "top: anthropic/claude-x cannot be called in batches" in ran.err
    assert "--batch: stands beside --recorded or --offline" in ran.err
