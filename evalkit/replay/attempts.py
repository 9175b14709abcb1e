"""One request until it has a reply or is given up: queue, cap, limits, ledger, call, ledger."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import ROUND_UP, Decimal, localcontext

from evalkit.costs import Cost, normal_usage
from evalkit.errors import redact, visible
from evalkit.providers.call import Billed, Failure, FailureKind, Provider, Reply, Request
from evalkit.replay.lanes import Lane
from evalkit.replay.ledger import Ledger
from evalkit.replay.plan import Cell
from evalkit.replay.pricing import Bound, Pricing
from evalkit.replay.settings import RunSettings
from evalkit.replay.spend import Budget
from evalkit.replay.summary import Tally

__all__ = ["SPEND_CAP", "Caller", "Job", "is_recorded"]

SPEND_CAP = "spend cap"
"""How a run ends that a cap leaves no room for another call."""


def is_recorded(provider: Provider, request: Request) -> bool:
    """A recording answers this request: the provider has a method `holds` which says so."""
    holds = getattr(provider, "holds", None)
    return holds is not None and bool(holds(request))


@dataclass(frozen=True, slots=True)
class Job:
    """A request to be sent: for which step of which cell, by whom, and the most that it can take.

    `paid` is False where a recording answers, which costs nothing now.
    """

    cell: Cell
    step: int
    key: str
    request: Request
    lane: Lane
    provider: Provider
    bound: Bound
    paid: bool

    @property
    def tokens(self) -> int:
        """About what a limit of tokens counts for it: four bytes a token, and all output it may have."""
        return (self.bound.prompt_tokens or 0) // 4 + (self.bound.output_tokens or 0)


@dataclass(slots=True)
class _Charge:
    """What is held for an attempt, and what it will have cost: 0 until it is sent, unknown until it has ended."""

    held_usd: Decimal
    usd: Decimal | None = Decimal(0)


class Caller:
    """Makes the calls of one run. `calling` are the tasks that have a call in flight, or its result in hand."""

    def __init__(
        self,
        ledger: Ledger,
        settings: RunSettings,
        pricing: Pricing,
        budget: Budget,
        tally: Tally,
        run: str,
        stop: asyncio.Event,
        end: Callable[[str], None],
    ) -> None:
        self._ledger, self._settings, self._pricing, self._budget = ledger, settings, pricing, budget
        self._tally, self._run, self._stop, self._end = tally, run, stop, end
        self._retry = settings.retry
        self._excess: dict[str, Decimal] = {}
        self.calling: set[asyncio.Task[object]] = set()
        self._opening: dict[int, asyncio.Future[None]] = {}

    async def get(self, job: Job, earlier: int) -> Reply | Failure | None:
        """A reply, or the failure of the last attempt; None where the run stops before there is either.

        `earlier` is the number of attempts that former runs made.
        """
        if earlier and job.paid and self._ledger.abandoned(job.key):
            self._tally.possibly_paid_twice += 1
        self._tally.calls += 1
        waited, tries = 0.0, 0
        while True:
            tries += 1
            outcome = await self._attempt(job, earlier + tries, waited)
            if not isinstance(outcome, Failure) or not job.paid:  # a recording says the same again
                return outcome
            wait = self._retry.wait_s(outcome, tries, job.key)
            if wait is None or job.cell.candidate in job.lane.stopped:
                return outcome
            waited = wait
            await asyncio.sleep(wait)
            if self._stop.is_set():
                return None

    async def _attempt(self, job: Job, number: int, waited_s: float) -> Reply | Failure | None:
        await job.lane.quiet(job.cell.candidate)
        await job.lane.acquire()
        try:
            charge = _Charge(self._to_hold(job))
            with job.lane.held_up():
                room = await self._budget.reserve(charge.held_usd)
            if not room:
                self._end(SPEND_CAP)
                return None
            try:
                await job.lane.pass_limits(job.tokens)
                if job.paid:
                    await self._opened(job.provider)
                with self._in_call():
                    return await self._send(job, number, waited_s, charge)
            finally:
                self._budget.settle(charge.held_usd, charge.usd)
        finally:
            job.lane.release()

    async def _opened(self, provider: Provider) -> None:
        """Let a provider that has to load or start something do so once, in the time of no call.

        What goes wrong there is what its calls will say.
        """
        opens = getattr(provider, "open", None)
        if opens is None:
            return
        if id(provider) not in self._opening:
            self._opening[id(provider)] = asyncio.ensure_future(opens())
        await asyncio.wait({self._opening[id(provider)]})
        with contextlib.suppress(asyncio.CancelledError):
            self._opening[id(provider)].exception()

    def _to_hold(self, job: Job) -> Decimal:
        """The bound of a call; more where the candidate went beyond it before: another model may have served."""
        if job.bound.usd is None or not job.paid:
            return Decimal(0)
        with localcontext() as context:
            context.rounding = ROUND_UP
            return job.bound.usd * self._excess.get(job.cell.candidate, Decimal(1))

    @contextlib.contextmanager
    def _in_call(self) -> Iterator[None]:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("calls are made in tasks")
        self.calling.add(task)
        try:
            yield
        finally:
            self.calling.discard(task)

    async def _send(self, job: Job, number: int, waited_s: float, charge: _Charge) -> Reply | Failure | None:
        mark = job.lane.begin()
        result: Reply | Failure | None = None
        try:
            if not await self._noted(job, number, waited_s, charge):
                return None
            charge.usd = None
            result, duration_s = await self._call(job, number, charge)
        finally:
            job.lane.end(mark, job.cell.candidate, result)
        cost = self._pricing.cost(job.request, result)
        charge.usd = cost.usd if job.paid else Decimal(0)
        if isinstance(result, Failure) and result.billed is Billed.NO:
            charge.usd = Decimal(0)
        if job.lane.counts_tokens and result.usage is not None:
            used = normal_usage(result.usage)
            if used.input_tokens is not None and used.output_tokens is not None:
                job.lane.used_tokens(job.tokens, used.input_tokens + used.output_tokens)
        await self._ledger.finish(job.key, number, result, cost, duration_s=duration_s)
        self._count(job, result, cost, charge)
        return result

    async def _noted(self, job: Job, number: int, waited_s: float, charge: _Charge) -> bool:
        """The attempt stands in the ledger and may be sent. Where the run stops meanwhile, it is taken back."""
        try:
            await self._ledger.begin(
                job.cell,
                job.step,
                job.key,
                job.request,
                number=number,
                run=self._run,
                waited_s=waited_s,
                reserved_usd=None if job.bound.usd is None else charge.held_usd,
                paid=job.paid,
            )
        except asyncio.CancelledError:
            self._ledger.withdraw(job.key, number)
            raise
        if self._stop.is_set():
            self._ledger.withdraw(job.key, number)
            return False
        return True

    async def _call(self, job: Job, number: int, charge: _Charge) -> tuple[Reply | Failure, float | None]:
        """What the provider gave, and how long it took: as the provider says, where it does. How long a recorded
        call took, nobody but the recording knows."""
        limit = self._settings.request_timeout_s
        self._tally.in_flight += 1
        began = time.monotonic()
        try:
            async with asyncio.timeout(limit):
                result = await job.provider.call(job.request)
        except TimeoutError:
            message = f"no whole reply within {limit:g} s"
            result = Failure(FailureKind.TIMEOUT, message, billed=Billed.UNKNOWN)
        except asyncio.CancelledError:
            self._ledger.abandon(job.key, number)
            self._tally.attempts += 1
            self._possibly_billed(job, charge)
            raise
        except Exception as error:  # noqa: BLE001 - whatever a provider does wrong costs one item, not the run
            message = f"the provider raised {type(error).__name__}: {error}"
            result = Failure(FailureKind.OTHER, message, billed=Billed.UNKNOWN)
        finally:
            self._tally.in_flight -= 1
        took = time.monotonic() - began
        if isinstance(result, Failure):
            result = replace(result, message=visible(redact(result.message), 1000))
        if result.request_s is not None:
            return result, result.request_s
        return result, took if job.paid else None

    def _count(self, job: Job, result: Reply | Failure, cost: Cost, charge: _Charge) -> None:
        tally = self._tally
        tally.attempts += 1
        if isinstance(result, Failure):
            tally.attempts_failed[result.kind] += 1
        if isinstance(result, Failure) and result.billed is Billed.NO:
            return
        if cost.usd is None:
            tally.unpriced[cost.reason or "unknown"] += 1
            self._possibly_billed(job, charge)
        elif job.paid:
            tally.spent_low_usd += cost.usd
            if job.bound.usd is not None and cost.usd > charge.held_usd:
                tally.over_bound += 1
                seen = cost.usd / job.bound.usd if job.bound.usd else Decimal(1)
                self._excess[job.cell.candidate] = max(seen, self._excess.get(job.cell.candidate, Decimal(1)))

    def _possibly_billed(self, job: Job, charge: _Charge) -> None:
        """Nobody knows what this attempt cost; the most is what was held for it."""
        if not job.paid:
            return
        self._tally.possibly_billed += 1
        if job.bound.usd is None:
            self._tally.unbounded += 1
        else:
            self._tally.possible_usd += charge.held_usd
