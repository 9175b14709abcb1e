"""Runs a plan through provider batches: what the ledger lacks is submitted, asked for, and collected.

A batch is in the ledger before it is sent, and leaves it together with all its replies. A run that ends before its
batches do loses nothing: the next one asks for them, and sends nothing a second time.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_UP, Decimal, localcontext
from typing import Any, TypeVar

from evalkit.errors import visible
from evalkit.providers.batch import BatchError, BatchJob, BatchProvider, split_requests
from evalkit.providers.call import Billed, Failure, FailureKind, Reply, Request
from evalkit.providers.key import request_key
from evalkit.replay.batch_ledger import Answer, OpenBatch, drop_batch, keep_answers, keep_batch, open_batches
from evalkit.replay.cells import cells_of
from evalkit.replay.charges import charged_so_far, check_cap
from evalkit.replay.ledger import Ledger
from evalkit.replay.plan import Cell, Plan, next_step
from evalkit.replay.pricing import Pricing, Unpriced
from evalkit.replay.progress import Progress, Silent
from evalkit.replay.records import request_from
from evalkit.replay.retry import FINAL_KINDS
from evalkit.replay.settings import RunSettings
from evalkit.replay.signals import on_signals
from evalkit.replay.summary import CellFailure, RunSummary, Tally

__all__ = ["POLL_S", "BatchProviderOf", "run_in_batches"]

BatchProviderOf = Callable[[str], BatchProvider]
"""What makes the batches of a candidate."""

POLL_S = 30.0
"""Seconds between two questions whether a batch has ended."""

_CALL_S = 600.0
_DIGITS = 60
_T = TypeVar("_T")


async def run_in_batches(
    plan: Plan,
    provider_of: BatchProviderOf,
    ledger: Ledger,
    settings: RunSettings | None = None,
    progress: Progress | None = None,
    *,
    pricing: Pricing | None = None,
    about: Mapping[str, Any] | None = None,
    poll_s: float = POLL_S,
) -> RunSummary:
    """Get a reply for every cell through batches, or say why there is none; like `run` in all else.

    `pricing` has to price batches. Each step of an arm of several is a batch of its own, as is each repetition of
    what failed; a request goes out at most `settings.max_attempts` times in one run. Raises `InputError` where a
    cap cannot be kept, and `Incomplete` where the ledger can no longer be written.
    """
    work = _BatchRun(plan, provider_of, ledger, settings or RunSettings(), pricing or Unpriced())
    return await work.go(dict(about or {}), progress or Silent(), poll_s)


@dataclass(frozen=True, slots=True)
class _Pending:
    """A request that has no reply and is under way in no batch."""

    candidate: str
    key: str
    request: Request
    bound_usd: Decimal | None


class _BatchRun:
    def __init__(
        self, plan: Plan, provider_of: BatchProviderOf, ledger: Ledger, settings: RunSettings, pricing: Pricing
    ) -> None:
        self.plan, self.ledger, self.settings, self.pricing = plan, ledger, settings, pricing
        self.providers = {name: provider_of(name) for name in plan.candidates}
        self.tally = Tally(cells=plan.count)
        self.open = open_batches(ledger)
        self.stop = asyncio.Event()
        self.ended: str | None = None
        self.tried: Counter[str] = Counter()
        self.replies: set[str] = set()
        self.trouble = 0
        charged = charged_so_far(ledger, pricing)
        if settings.max_spend_usd is not None:
            check_cap(plan, pricing, charged, lambda cell: False)
        self.unbounded_before = charged.unbounded
        self.progress: Progress = Silent()
        self.id = ""

    async def go(self, about: Mapping[str, Any], progress: Progress, poll_s: float) -> RunSummary:
        began = time.monotonic()
        self.progress = progress
        self.id = self.ledger.start_run({**about, "batch": True})
        progress.start(self.tally)
        try:
            with on_signals(lambda: self.end("interrupted"), self.settings.handle_signals):
                await self.work(began, poll_s)
            if self.ended is not None:
                said = "; batches go on at the provider" if self.open else ""
                progress.notice(
                    f"ended: {self.ended}. Nothing is lost{said}: run the same command again to resume."
                )
            self.ended = self.ended or "done"
        finally:
            progress.close(self.tally)
            self.ledger.end_run(self.id, self.ended or "error")
        self.count(keep=True)
        return self.summary(time.monotonic() - began)

    def end(self, why: str) -> None:
        """Send nothing more; `why` is how the run ended."""
        self.ended = self.ended or why
        self.stop.set()

    async def work(self, began: float, poll_s: float) -> None:
        limit = self.settings.run_timeout_s
        changed = True
        while not self.stop.is_set():
            if changed:
                await self.submit_pending()
                if not self.open:
                    return
            changed = await self.ask()
            self.progress.update(self.tally)
            if changed or self.stop.is_set():
                continue
            left = None if limit is None else began + limit - time.monotonic()
            if left is not None and left <= 0:
                self.end("time limit")
                return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.stop.wait(), poll_s if left is None else min(poll_s, left))

    # Sending

    async def submit_pending(self) -> None:
        """Send what has no reply and is under way nowhere, as far as the cap has room for it."""
        by_candidate: dict[str, list[_Pending]] = {}
        room = self.room()
        left_out = 0
        for pending in self.pending():
            if room is not None:
                if pending.bound_usd is None or pending.bound_usd > room:
                    left_out += 1
                    continue
                room -= pending.bound_usd
            by_candidate.setdefault(pending.candidate, []).append(pending)
        for name, asked in by_candidate.items():
            found = {one.key: one for one in asked}
            for requests in split_requests([one.request for one in asked]):
                if self.stop.is_set():
                    return
                await self.submit(name, [found[request_key(request)] for request in requests])
        if left_out and not self.open:
            self.end("spend cap")

    def room(self) -> Decimal | None:
        """What the cap leaves, with the reservations of all that is under way taken off; None without a cap."""
        cap = self.settings.max_spend_usd
        if cap is None:
            return None
        with localcontext() as context:
            context.prec = _DIGITS
            return cap - charged_so_far(self.ledger, self.pricing).usd

    def pending(self) -> Iterator[_Pending]:
        """The next request of every cell that is not settled, each once."""
        seen = {key for batch in self.open for key in batch.job.keys}
        for cell in self.plan:
            step, key, request = self.next_of(cell)
            if request is None:
                continue
            if not self.ledger.has_step(cell, step, key):
                self.ledger.note_step(cell, step, key)
            if key in seen or self.tried[key] >= self.settings.max_attempts:
                continue
            seen.add(key)
            yield _Pending(cell.candidate, key, request, self.pricing.most(request).usd)

    def next_of(self, cell: Cell) -> tuple[int, str, Request | None]:
        """The step of a cell that has no reply yet; None where the cell is settled."""
        request: Request | None = cell.first
        step, key = 0, ""
        while request is not None:
            key = request_key(request)
            known = self.ledger.latest(key)
            result = None if known is None else known.result
            if isinstance(result, Failure):
                final = result.kind in FINAL_KINDS and (not self.settings.retry_failed or self.tried[key] > 0)
                return step, key, None if final else request
            if not isinstance(result, Reply):
                return step, key, request
            if not self.ledger.has_step(cell, step, key):
                self.ledger.note_step(cell, step, key)
            request, step = next_step(cell, step, request, result), step + 1
        return step, key, None

    async def submit(self, candidate: str, asked: list[_Pending]) -> None:
        """Keep a batch, and only then send it."""
        requests = [one.request for one in asked]
        job = BatchJob.prepare(requests[0].model, requests, run=self.id)
        if any(self.tried[one.key] for one in asked):  # the same requests once more are another batch
            job = replace(job, token=f"{job.token}-{1 + max(self.tried[one.key] for one in asked)}")
        batch = OpenBatch(self.id, candidate, job, _sum(one.bound_usd for one in asked))
        keep_batch(self.ledger, batch, {one.key: one.request for one in asked})
        for one in asked:
            if self.ledger.abandoned(one.key):
                self.tally.possibly_paid_twice += 1
            self.tally.calls += self.tried[one.key] == 0
        self.open.append(batch)
        try:
            sent = await self.calling(self.providers[candidate].submit(job, requests))
        except BatchError as error:
            await self.not_sent(batch, error)
            return
        self.keep(batch, sent)
        self.progress.notice(f"{visible(candidate)}: a batch of {len(asked):,} calls was sent: {visible(sent.id)}")

    async def not_sent(self, batch: OpenBatch, error: BatchError) -> None:
        """Whether a batch that could not be sent exists at the provider all the same; the run ends."""
        with contextlib.suppress(BatchError):
            found = await self.calling(self.providers[batch.candidate].recover(batch.job))
            if found is not None:
                self.keep(batch, found)
                return
            self.let_go(batch)
            drop_batch(self.ledger, batch.job.token)
        if batch in self.open and error.failure.billed is Billed.NO and not error.failure.retryable:
            self.let_go(batch)  # refused before anything was made
            drop_batch(self.ledger, batch.job.token)
        self.end(f"{visible(batch.candidate)}: {visible(error.failure.message, 400)}")

    # Asking and collecting

    async def ask(self) -> bool:
        """Ask for every batch that is under way, and collect what has ended; whether any has."""
        ended = False
        for batch in list(self.open):
            if self.stop.is_set():
                break
            provider = self.providers.get(batch.candidate)
            if provider is None:
                self.end(
                    f"a batch of {visible(batch.candidate)} is under way, and the study has no such candidate"
                )
                break
            try:
                if batch.job.id is None:
                    found = await self.calling(provider.recover(batch.job))
                    if found is None:  # its process died before it was sent
                        self.let_go(batch)
                        drop_batch(self.ledger, batch.job.token)
                        ended = True
                        continue
                    batch = self.keep(batch, found)
                if not batch.job.ended:
                    batch = self.keep(batch, await self.calling(provider.poll(batch.job)))
                if batch.job.ended:
                    self.collected(batch, *await self.calling(provider.collect(batch.job)))
                    ended = True
                self.trouble = 0
            except BatchError as error:
                self.not_heard(batch, error)
        self.tally.in_flight = sum(len(batch.job.keys) for batch in self.open)
        return ended

    def not_heard(self, batch: OpenBatch, error: BatchError) -> None:
        """A question that failed is asked again later, a few times."""
        if self.stop.is_set():
            return
        self.trouble += 1
        message = f"{visible(batch.candidate)}: {visible(error.failure.message, 400)}"
        if error.failure.retryable and self.trouble < self.settings.max_attempts:
            self.progress.notice(message)
        else:
            self.end(message)

    async def calling(self, call: Coroutine[Any, Any, _T]) -> _T:
        """What a call to the provider gives. It is given up where the run stops: what was sent is found again."""
        task, stop = asyncio.ensure_future(call), asyncio.ensure_future(self.stop.wait())
        done, _ = await asyncio.wait({task, stop}, timeout=_CALL_S, return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if task in done:
            return task.result()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        why = "the run was stopped" if self.stop.is_set() else f"no answer within {_CALL_S:g} s"
        raise BatchError(Failure(FailureKind.TIMEOUT, why, billed=Billed.UNKNOWN))

    def keep(self, batch: OpenBatch, job: BatchJob) -> OpenBatch:
        """The batch as the provider has it now, on disk."""
        now = replace(batch, job=job)
        if now != batch:
            keep_batch(self.ledger, now)
            self.open[self.open.index(batch)] = now
        return now

    def let_go(self, batch: OpenBatch) -> None:
        self.open.remove(batch)

    def collected(self, batch: OpenBatch, found: Mapping[str, Reply | Failure], notices: Iterable[str]) -> None:
        """Everything that came of a batch, on disk and counted."""
        answers = []
        for key, result in found.items():
            request = request_from(self.ledger.request(key) or {})
            latest = self.ledger.latest(key)
            number = 1 if latest is None else latest.number + 1
            bound = self.pricing.most(request).usd
            answers.append(Answer(key, number, result, self.pricing.cost(request, result), bound))
        keep_answers(self.ledger, batch, answers, self.id)
        self.let_go(batch)
        for one in answers:
            self.tried[one.key] += 1
            self.count_attempt(one)
        for notice in notices:
            self.progress.notice(notice)
        self.count()

    # Counting

    def count_attempt(self, one: Answer) -> None:
        tally, result = self.tally, one.result
        tally.attempts += 1
        if isinstance(result, Reply):
            self.replies.add(one.key)
        else:
            tally.attempts_failed[result.kind] += 1
            if result.billed is Billed.NO:
                return
        if one.cost.usd is not None:
            tally.spent_low_usd += one.cost.usd
            tally.over_bound += one.reserved_usd is not None and one.cost.usd > one.reserved_usd
            return
        tally.unpriced[one.cost.reason or "unknown"] += 1
        tally.possibly_billed += 1
        if one.reserved_usd is None:
            tally.unbounded += 1
        else:
            tally.possible_usd += one.reserved_usd

    def count(self, *, keep: bool = False) -> None:
        """Where every cell of the plan is now; `keep`: with the failures one by one."""
        tally = self.tally
        tally.replied = tally.from_ledger = 0
        tally.failed.clear()
        for record in cells_of(self.ledger, self.plan):
            result = record.result
            if isinstance(result, Reply):
                tally.replied += 1
                tally.from_ledger += not any(step.key in self.replies for step in record.steps)
            elif isinstance(result, Failure):
                last = record.steps[-1]
                if keep:
                    cell, message = record.cell, visible(result.message, 300)
                    tries = self.tried[last.key]
                    tally.fail(CellFailure(cell.item, cell.candidate, cell.sample, result.kind, message, tries))
                elif self.tried[last.key]:
                    tally.failed[result.kind] += 1

    def summary(self, elapsed_s: float) -> RunSummary:
        charged = charged_so_far(self.ledger, self.pricing)
        return self.tally.summary(
            run=self.id,
            ended=self.ended,
            charged_usd=None if charged.unbounded else charged.usd,
            elapsed_s=elapsed_s,
        )


def _sum(amounts: Iterable[Decimal | None]) -> Decimal | None:
    """The sum; None where one of them is not known."""
    total = Decimal(0)
    with localcontext() as context:
        context.prec, context.rounding = _DIGITS, ROUND_UP
        for amount in amounts:
            if amount is None:
                return None
            total += amount
    return total
