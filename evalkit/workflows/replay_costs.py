"""What the attempts of a ledger cost and used, as the two ledgers of a run and the outcome table see them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from evalkit.costs import Cost, Usage, normal_usage
from evalkit.costs.run_costs import CallCost, RunCosts, run_costs
from evalkit.providers.call import Reply
from evalkit.replay.cells import CellRecord
from evalkit.replay.ledger import Attempt, Ledger

__all__ = ["FolderFacts", "attempt_cost", "cell_usage", "folder_facts"]


@dataclass(frozen=True, slots=True)
class FolderFacts:
    """A run folder with all its runs. `costs` are of every attempt, those that no plan asks for any more included.

    `possibly_paid_twice` requests were in flight when a process ended, and were sent again. `batch`: some runs
    asked through provider batches.
    """

    runs: int
    costs: RunCosts
    possibly_paid_twice: int
    batch: bool


def folder_facts(ledger: Ledger) -> FolderFacts:
    """What a ledger says of all its runs together."""
    every = ledger.runs()
    runs = {run.run for run in every}
    calls: list[CallCost] = []
    left: set[str] = set()
    twice: set[str] = set()
    for attempt in ledger.every_attempt():
        calls.append(attempt_cost(attempt, runs))
        if attempt.key in left and attempt.paid:
            twice.add(attempt.key)
        if attempt.state == "abandoned" and attempt.paid:
            left.add(attempt.key)
    return FolderFacts(len(runs), run_costs(calls), len(twice), any(run.about.get("batch") for run in every))


def attempt_cost(attempt: Attempt, runs: Collection[str]) -> CallCost:
    """An attempt as both ledgers see it; new where one of `runs` paid it, else recorded."""
    own = attempt.run in runs
    return CallCost(
        cost=Cost(attempt.cost_usd, attempt.cost_reason if attempt.cost_usd is None else None),
        billed="unknown" if attempt.billed is None else attempt.billed.value,
        reserved_usd=attempt.reserved_usd,
        fresh=attempt.paid and own,
        recorded_in=None if attempt.paid and own else _recorded_in(attempt),
        latency_s=attempt.duration_s if attempt.state == "reply" else None,
    )


def _recorded_in(attempt: Attempt) -> str | None:
    """The run that an attempt was made in; of a recorded one as far as the recording tells."""
    if attempt.paid:
        return attempt.run
    result = attempt.result
    return result.recorded_in if isinstance(result, Reply) else None


def cell_usage(record: CellRecord) -> Usage:
    """Tokens of all steps and of failed attempts that report usage; a count that one of them lacks is unknown."""
    usages = []
    for step in record.steps:
        for attempt in step.attempts:
            result = attempt.result
            if isinstance(result, Reply) or (result is not None and result.usage is not None):
                usages.append(normal_usage(result.usage))
    if not usages or any(one.problem is not None for one in usages):
        return Usage()

    def total(name: str) -> int | None:
        values = [getattr(one, name) for one in usages]
        return None if None in values else sum(values)

    return Usage(
        input_tokens=total("input_tokens"),
        cache_read_tokens=total("cache_read_tokens"),
        cache_write_tokens=total("cache_write_tokens"),
        output_tokens=total("output_tokens"),
        reasoning_tokens=total("reasoning_tokens"),
    )
