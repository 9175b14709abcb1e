"""Runs through provider batches at a real server: nothing sent twice, nothing lost, whenever the process dies."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from evalkit.costs import PriceCard, PricePeriod, Rates
from evalkit.errors import InputError
from evalkit.providers.batch import BatchJob, BatchProvider
from evalkit.providers.call import Connection, FailureKind, Reply, Request
from evalkit.replay import CardPricing, Ledger, PlanCandidate, RunSettings, RunSummary, cells_of
from evalkit.replay.batch_ledger import open_batches
from evalkit.replay.batch_run import run_in_batches
from tests.providers.mock_openai import MockServer, running_mock
from tests.replay.support import plan_for

HALF = PricePeriod(Rates(Decimal(2), Decimal(8)), batch_factor=Decimal("0.5"))
PRICING = CardPricing(PriceCard({"openai/mid": (HALF,)}), batch=True)
PRICES = {"mid": {"input": "2", "output": "8"}}
NAMES = [f"q{n}" for n in range(8)]
MID = PlanCandidate("mid", "openai/mid", {"max_tokens": 20})


class Death(BaseException):
    """The process dies here."""


class DiesBefore(BatchProvider):
    async def submit(self, job: BatchJob, requests: Sequence[Request]) -> BatchJob:
        raise Death


class DiesAfter(BatchProvider):
    async def submit(self, job: BatchJob, requests: Sequence[Request]) -> BatchJob:
        await super().submit(job, requests)
        raise Death


class DiesAtEnd(BatchProvider):
    async def collect(self, job: BatchJob) -> Any:
        await super().collect(job)
        raise Death


def go(
    folder: Path,
    mock: MockServer,
    names: Sequence[str] = NAMES,
    make: Callable[..., BatchProvider] = BatchProvider,
    candidates: Sequence[PlanCandidate] = (MID,),
    **settings: Any,
) -> RunSummary:
    async def main() -> RunSummary:
        made: list[BatchProvider] = []

        def provider_of(name: str) -> BatchProvider:
            made.append(make("openai/mid", Connection(api_base=mock.url, api_key="a key of this test")))
            return made[-1]

        try:
            with Ledger.open(folder / "ledger.sqlite") as ledger:
                return await run_in_batches(
                    plan_for(names, candidates=candidates),
                    provider_of,
                    ledger,
                    RunSettings(handle_signals=False, **settings),
                    pricing=PRICING,
                    poll_s=0.01,
                )
        finally:
            for provider in made:
                await provider.aclose()

    return asyncio.run(main())


def replies(folder: Path, names: Sequence[str] = NAMES, candidates: Sequence[PlanCandidate] = (MID,)) -> int:
    with Ledger.read(folder / "ledger.sqlite") as ledger:
        found = cells_of(ledger, plan_for(names, candidates=candidates))
        return sum(isinstance(record.result, Reply) for record in found)


def test_every_request_is_answered_once_at_the_factor_of_batches(tmp_path: Path) -> None:
    with running_mock(batch={"polls": 3}, prices=PRICES) as mock:
        first = go(tmp_path, mock)
        counts = mock.counts()
        second = go(tmp_path, mock)
        assert mock.counts()["batch"] == counts["batch"] == {"batches": 1, "lines": 8}
    assert counts["requests"] == 0
    assert (first.ended, first.exit_code, first.replied, first.from_ledger) == ("done", 0, 8, 0)
    assert first.spent_low_usd == first.spent_high_usd == Decimal(counts["reported"]["usd"]) / 2
    assert (second.exit_code, second.from_ledger, second.attempts) == (0, 8, 0)
    with Ledger.read(tmp_path / "ledger.sqlite") as ledger:
        assert all(run.about["batch"] is True for run in ledger.runs())
        assert all(record.task_s is None for record in cells_of(ledger, plan_for(NAMES, candidates=[MID])))


@pytest.mark.parametrize(
    ("dies", "made"), [(DiesBefore, 0), (DiesAfter, 1), (DiesAtEnd, 1)], ids=lambda value: str(value)[-20:]
)
def test_a_run_that_dies_is_gone_on_with_and_sends_nothing_twice(
    tmp_path: Path, dies: type[BatchProvider], made: int
) -> None:
    with running_mock(batch={"polls": 1}, prices=PRICES) as mock:
        with pytest.raises(Death):
            go(tmp_path, mock, make=dies)
        assert mock.counts()["batch"]["batches"] == made
        with Ledger.read(tmp_path / "ledger.sqlite") as ledger:
            (kept,) = open_batches(ledger)
        assert len(kept.job.keys) == 8
        summary = go(tmp_path, mock)
        counts = mock.counts()
    assert counts["batch"]["batches"] == 1
    assert all(requests == 1 for requests, _ in counts["contents"].values())
    assert (summary.exit_code, summary.replied, summary.possibly_paid_twice) == (0, 8, 0)
    assert summary.charged_usd == Decimal(counts["reported"]["usd"]) / 2


def test_what_a_batch_left_out_goes_into_the_next_one(tmp_path: Path) -> None:
    with running_mock(batch={"polls": 1, "lose": 3}, prices=PRICES) as mock:
        summary = go(tmp_path, mock, max_attempts=3)
        counts = mock.counts()
    # The server loses three lines of each batch: 8 asked, 3 left, all of them lost again, and again.
    assert counts["batch"]["batches"] == 3
    assert (summary.replied, summary.failed, summary.exit_code) == (5, {FailureKind.BATCH: 3}, 4)
    # Of a line that is lost nobody knows whether it was paid.
    assert summary.possibly_billed == 9
    assert summary.spent_high_usd is not None
    assert summary.spent_high_usd > summary.spent_low_usd


@pytest.mark.parametrize("end", ["expired", "cancelled", "failed"])
def test_a_batch_that_ends_early_keeps_what_it_answered(tmp_path: Path, end: str) -> None:
    with running_mock(batch={"polls": 1, "end": end, "done": 0.5}, prices=PRICES) as mock:
        summary = go(tmp_path, mock, max_attempts=1)
        counts = mock.counts()
    assert counts["batch"]["batches"] == 1
    done = counts["batch"]["lines"]
    assert summary.replied == done == replies(tmp_path)
    assert summary.failed == {FailureKind.BATCH: 8 - done}
    assert summary.exit_code == 4
    assert summary.possibly_billed == 0
    assert summary.spent_high_usd == Decimal(counts["reported"]["usd"]) / 2


def test_statuses_inside_a_batch_are_final_or_tried_again_as_ever(tmp_path: Path) -> None:
    rules = [
        {"contains": "q1", "fault": "status", "status": 400},
        {"contains": "q2", "attempts": 1, "fault": "status", "status": 429},
    ]
    with running_mock(batch={"polls": 1}, rules=rules) as mock:
        summary = go(tmp_path, mock)
        counts = mock.counts()
    assert counts["batch"] == {"batches": 2, "lines": 9}
    assert (summary.replied, summary.failed, summary.exit_code) == (7, {FailureKind.BAD_REQUEST: 1}, 0)


def test_the_steps_of_an_arm_are_batches_one_after_the_other(tmp_path: Path) -> None:
    steps = [PlanCandidate("mid", "openai/mid", {"max_tokens": 20}, follow_ups=("And now?", "Sure?"))]
    with running_mock(batch={"polls": 1}) as mock:
        summary = go(tmp_path, mock, candidates=steps)
        counts = mock.counts()
    assert counts["batch"]["batches"] == 3
    assert (summary.replied, summary.attempts, summary.exit_code) == (8, 24, 0)


def test_a_cap_counts_what_is_under_way(tmp_path: Path) -> None:
    with running_mock(batch={"polls": 1}, prices=PRICES) as mock:
        asked = PRICING.most(next(iter(plan_for(NAMES, candidates=[MID]))).first)
        assert asked.usd is not None
        cap = asked.usd * Decimal("1.05")  # room for one at a time
        with pytest.raises(Death):
            go(tmp_path, mock, make=DiesAfter, max_spend_usd=cap)
        with Ledger.read(tmp_path / "ledger.sqlite") as ledger:
            (kept,) = open_batches(ledger)
        assert len(kept.job.keys) == 1
        summary = go(tmp_path, mock, max_spend_usd=cap)
        spent = Decimal(mock.counts()["reported"]["usd"]) / 2
        more = go(tmp_path, mock)
    # Once one is collected its reservation is gone, so that another fits; the cap is never passed.
    assert summary.ended == "spend cap"
    assert 1 < summary.replied < 8
    assert spent == summary.charged_usd
    assert spent <= cap
    assert (more.ended, more.replied) == ("done", 8)


def test_a_cap_that_cannot_be_kept_is_refused(tmp_path: Path) -> None:
    with running_mock() as mock:
        with pytest.raises(InputError, match="mid cannot run under a spend cap: it has no max_tokens"):
            go(tmp_path, mock, candidates=[PlanCandidate("mid", "openai/mid")], max_spend_usd=Decimal(1))
        assert mock.counts()["batch"]["batches"] == 0


def test_a_server_that_makes_no_batch_ends_the_run_with_its_reason(tmp_path: Path) -> None:
    with running_mock(batch={"error_at": 400}) as mock:
        summary = go(tmp_path, mock)
        with Ledger.read(tmp_path / "ledger.sqlite") as ledger:
            assert open_batches(ledger) == []
    assert summary.exit_code == 4
    assert summary.ended.startswith("mid: could not create the batch: 400: no batch now")


def test_a_time_limit_leaves_the_batch_to_the_next_run(tmp_path: Path) -> None:
    with running_mock(batch={"polls": 10**6}) as mock:
        summary = go(tmp_path, mock, run_timeout_s=0.5)
        assert mock.counts()["batch"]["batches"] == 1
        with Ledger.read(tmp_path / "ledger.sqlite") as ledger:
            (kept,) = open_batches(ledger)
    assert (summary.ended, summary.exit_code, summary.replied) == ("time limit", 4, 0)
    assert kept.job.status == "in_progress"
