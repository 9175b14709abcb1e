"""Runs a plan: one pool of workers for each endpoint, and every reply on disk before it is counted.

The plan is pulled from as workers become free, so that the size of a run does not matter to memory. A request that
has a reply in the ledger is never sent again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from evalkit.costs.decimals import plain_decimal
from evalkit.errors import visible
from evalkit.providers.call import Failure, Provider, Reply, Request
from evalkit.providers.key import request_key
from evalkit.replay.attempts import SPEND_CAP, Caller, Job, is_recorded
from evalkit.replay.charges import charged_so_far, check_cap
from evalkit.replay.lanes import Lane
from evalkit.replay.ledger import Attempt, Ledger
from evalkit.replay.plan import Cell, Plan, endpoint_of, next_step, plan_of
from evalkit.replay.pricing import Pricing, Unpriced
from evalkit.replay.progress import Progress, Silent
from evalkit.replay.retry import FINAL_KINDS
from evalkit.replay.seen import Seen
from evalkit.replay.settings import RunSettings
from evalkit.replay.signals import on_signals
from evalkit.replay.spend import Budget
from evalkit.replay.summary import CellFailure, RunSummary, Tally

__all__ = ["ProviderOf", "run"]

ProviderOf = Callable[[str], Provider]
"""The provider that answers for a candidate."""

_MOST_SAID = 20
_Found = Reply | Failure | Attempt


async def run(
    cells: Plan | Iterable[Cell],
    provider_of: ProviderOf,
    ledger: Ledger,
    settings: RunSettings | None = None,
    progress: Progress | None = None,
    *,
    pricing: Pricing | None = None,
    about: Mapping[str, Any] | None = None,
) -> RunSummary:
    """Get a reply for every cell, or say why there is none.

    Providers stay open: who made them closes them. `about` is noted of the run in the ledger. A run that is
    stopped (a signal, a time limit, a cap) returns like one that ends by itself: `ended` and `exit_code` tell.
    Raises `InputError` where a cap is asked for that cannot be kept, before any call, and `Incomplete` where the
    ledger can no longer be written.
    """
    plan = cells if isinstance(cells, Plan) else plan_of(cells)
    work = _Run(plan, provider_of, ledger, settings or RunSettings(), progress or Silent(), pricing or Unpriced())
    return await work.go(dict(about or {}))


class _Run:
    def __init__(
        self,
        plan: Plan,
        provider_of: ProviderOf,
        ledger: Ledger,
        settings: RunSettings,
        progress: Progress,
        pricing: Pricing,
    ) -> None:
        self.plan, self.ledger, self.settings, self.progress = plan, ledger, settings, progress
        self.pricing = pricing
        self.providers = {name: provider_of(name) for name in plan.candidates}
        self.tally = Tally(cells=plan.count)
        self.stop, self.hurry = asyncio.Event(), asyncio.Event()
        self.ended: str | None = None
        charged = charged_so_far(ledger, pricing)
        if settings.max_spend_usd is not None:
            check_cap(plan, pricing, charged, lambda cell: is_recorded(self.providers[cell.candidate], cell.first))
        self.budget = Budget(settings.max_spend_usd, charged.usd)
        self.unbounded_before = charged.unbounded
        self.id = ""
        self.caller: Caller
        self.seen = Seen()
        self.pending: dict[str, asyncio.Future[Reply | Failure]] = {}
        self.said = 0

    async def go(self, about: Mapping[str, Any]) -> RunSummary:
        began = time.monotonic()
        self.id = self.ledger.start_run(about)
        self.seen = Seen(self.ledger.keys())
        self.caller = Caller(
            self.ledger, self.settings, self.pricing, self.budget, self.tally, self.id, self.stop, self.end
        )
        lanes = self.lanes()
        self.progress.start(self.tally)
        if self.ledger.abandoned_at_open:
            self.progress.notice(_abandoned(self.ledger.abandoned_at_open))
            self.ledger.abandoned_at_open = 0  # said once
        try:
            with on_signals(self.interrupt, self.settings.handle_signals):
                await self.work(lanes)
            if self.ended is not None:
                self.progress.notice(self.how_it_ended(self.ended))
            self.ended = self.ended or "done"
        finally:
            self.progress.close(self.tally)
            self.ledger.end_run(self.id, self.ended or "error")
        return self.summary(lanes, time.monotonic() - began)

    def how_it_ended(self, ended: str) -> str:
        """Why the run stopped, and how to go on."""
        if ended == SPEND_CAP and self.budget.cap_usd is not None:
            cap, charged = plain_decimal(self.budget.cap_usd), plain_decimal(self.budget.charged_usd)
            what = f"the spend cap of {cap} USD leaves no room for another call: {charged} USD are charged to it"
            return f"{what}. Nothing is lost: raise the cap to resume."
        return f"{ended}. Nothing is lost: run the same command again to resume."

    def lanes(self) -> list[Lane]:
        """The candidates by endpoint, each endpoint with the cells of its candidates in turn."""
        by_endpoint: dict[str, list[str]] = {}
        for name in self.plan.candidates:
            cell = next(self.plan.of(name), None)
            if cell is not None:
                by_endpoint.setdefault(endpoint_of(cell.first), []).append(name)
        return [
            Lane(endpoint, self.plan.of(*names), self.settings_for(names))
            for endpoint, names in by_endpoint.items()
        ]

    def settings_for(self, names: list[str]) -> RunSettings:
        """The settings of a lane: a provider with a number of `slots` is never asked for more at a time."""
        servers = {id(self.providers[name]): getattr(self.providers[name], "slots", None) for name in names}
        slots = [number for number in servers.values() if isinstance(number, int)]
        if len(slots) < len(servers):
            return self.settings
        return replace(self.settings, concurrency=min(self.settings.concurrency, sum(slots)))

    async def work(self, lanes: list[Lane]) -> None:
        """Run all workers to their end, or stop them: those that wait at once, those in a call after a grace."""
        workers = [asyncio.create_task(self.worker(lane)) for lane in lanes for _ in range(lane.workers)]
        stop, hurry = asyncio.create_task(self.stop.wait()), asyncio.create_task(self.hurry.wait())
        try:
            left = self.settings.run_timeout_s
            deadline = None if left is None else time.monotonic() + left
            waiting: set[asyncio.Task[Any]] = {*workers}
            while waiting and not self.stop.is_set():
                left = None if deadline is None else max(0.0, deadline - time.monotonic())
                done, _ = await asyncio.wait({*waiting, stop}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
                waiting -= done
                if any(task.exception() is not None for task in done):
                    return
                if not done:
                    self.end("time limit")
            for worker in waiting - self.caller.calling:
                worker.cancel()
            calling = waiting & self.caller.calling
            if calling:
                ends = asyncio.create_task(asyncio.wait(calling))
                # Nothing is urgent about a cap: whatever is in flight under it may come to its end.
                grace = None if self.ended == SPEND_CAP else self.settings.grace_s
                await asyncio.wait({ends, hurry}, timeout=grace, return_when=asyncio.FIRST_COMPLETED)
                ends.cancel()
        finally:
            for task in (stop, hurry, *workers):
                task.cancel()
            results = await asyncio.gather(*workers, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                raise result

    def end(self, why: str) -> None:
        """Take no more cells; `why` is how the run ended."""
        self.ended = self.ended or why
        self.stop.set()

    def interrupt(self) -> None:
        """The first signal stops the run in good order; a second one does not wait for calls in flight."""
        if self.stop.is_set():
            self.hurry.set()
        self.end("interrupted")

    # Cells

    async def worker(self, lane: Lane) -> None:
        turn = 0
        while not self.stop.is_set():
            cell = lane.next_cell()
            if cell is None:
                return
            await self.cell(cell, lane)
            turn += 1
            if turn % 16 == 0:  # what the ledger answers lets nobody else have a turn
                await asyncio.sleep(0)

    async def cell(self, cell: Cell, lane: Lane) -> None:
        """All steps of one cell, and its place in the counts."""
        request: Request | None = cell.first
        step, fresh = 0, False
        while request is not None:
            key = request_key(request)
            found, new = await self.result(cell, step, key, request, lane)
            if found is None:
                return
            fresh = fresh or new
            if isinstance(found, Failure):
                self.failed(cell, key, found, lane, new)
                return
            request, step = self.following(cell, step, request, found), step + 1
        self.tally.replied += 1
        self.tally.from_ledger += not fresh
        if fresh:
            lane.cell_ended(cell.candidate, None)
        self.progress.update(self.tally)

    def following(self, cell: Cell, step: int, request: Request, found: Reply | Attempt) -> Request | None:
        if step >= len(cell.follow_ups):
            return None
        reply = found.result if isinstance(found, Attempt) else found
        return next_step(cell, step, request, reply) if isinstance(reply, Reply) else None

    def failed(self, cell: Cell, key: str, failure: Failure, lane: Lane, new: bool) -> None:
        attempts = sum(attempt.run == self.id for attempt in self.ledger.attempts(key))
        message = visible(failure.message, 300)
        self.tally.fail(CellFailure(cell.item, cell.candidate, cell.sample, failure.kind, message, attempts))
        if self.said < _MOST_SAID:
            self.said += 1
            tries = f"after {attempts} attempt{'s' if attempts > 1 else ''}" if attempts else "in an earlier run"
            who = f"id {visible(cell.item)}, {visible(cell.candidate)}"
            self.progress.notice(f"{who}: {failure.kind.value} {tries}: {message}")
        if new:
            lane.cell_ended(cell.candidate, failure)
        why = lane.newly_stopped(cell.candidate)
        if why is not None:
            self.progress.notice(why)
        self.progress.update(self.tally)

    async def result(
        self, cell: Cell, step: int, key: str, request: Request, lane: Lane
    ) -> tuple[_Found | None, bool]:
        """The reply (an attempt of the ledger, where it has one) or the failure, and whether this run made it."""
        while (pending := self.pending.get(key)) is not None:
            # Another cell asks the same, and one call serves both.
            await asyncio.wait({pending})
            if not pending.cancelled():
                self.note(cell, step, key)
                return pending.result(), False
            if self.stop.is_set():
                return None, False
        known = self.ledger.latest(key) if key in self.seen else None
        kept = None if known is None else self.kept(known)
        if kept is not None:
            self.note(cell, step, key)
            return kept, False
        future: asyncio.Future[Reply | Failure] = asyncio.get_running_loop().create_future()
        self.pending[key] = future
        self.seen.add(key)
        try:
            provider = self.providers[cell.candidate]
            bound, paid = self.pricing.most(request), not is_recorded(provider, request)
            job = Job(cell, step, key, request, lane, provider, bound, paid)
            outcome = await self.caller.get(job, 0 if known is None else known.number)
            if outcome is not None:
                future.set_result(outcome)
            return outcome, True
        finally:
            del self.pending[key]
            if not future.done():
                future.cancel()

    def kept(self, known: Attempt) -> _Found | None:
        """What an earlier attempt settles: a reply, a failure for good, or any failure that this run has seen."""
        if known.state == "reply":
            return known
        if known.state != "failure":
            return None
        for_good = known.kind in FINAL_KINDS and not self.settings.retry_failed
        failure = known.result
        return failure if (for_good or known.run == self.id) and isinstance(failure, Failure) else None

    def note(self, cell: Cell, step: int, key: str) -> None:
        if not self.ledger.has_step(cell, step, key):
            self.ledger.note_step(cell, step, key)

    def summary(self, lanes: list[Lane], elapsed_s: float) -> RunSummary:
        unknown = self.unbounded_before or self.tally.unbounded
        return self.tally.summary(
            run=self.id,
            ended=self.ended,
            charged_usd=None if unknown else self.budget.charged_usd,
            elapsed_s=elapsed_s,
            endpoints={lane.endpoint: lane.summary() for lane in lanes},
            stopped={name: why for lane in lanes for name, why in lane.stopped.items()},
        )


def _abandoned(count: int) -> str:
    calls = "1 call was" if count == 1 else f"{count:,} calls were"
    return f"{calls} in flight when an earlier run was killed: sent once more, each is possibly paid twice"
