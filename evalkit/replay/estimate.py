"""What a run will take, before it is started: calls, tokens, USD and time. Calls nobody."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal, localcontext

from evalkit.costs.decimals import plain_decimal
from evalkit.errors import visible
from evalkit.providers.call import Failure, Reply, Request
from evalkit.providers.key import request_key
from evalkit.replay.ledger import Attempt, Ledger
from evalkit.replay.plan import Cell, Plan, endpoint_of, next_step
from evalkit.replay.pricing import BYTES_A_TOKEN, Bound, Pricing, prompt_bytes
from evalkit.replay.retry import FINAL_KINDS
from evalkit.replay.settings import RunSettings

__all__ = ["CandidateEstimate", "Estimate", "estimate_run"]

_DIGITS = 60


@dataclass(frozen=True, slots=True)
class CandidateEstimate:
    """What one candidate will take. `calls` are still to be made, if none fails; `in_ledger` are answered already.

    `prompt_tokens_low` counts four bytes a token, `prompt_tokens_high` each byte; `output_tokens_high` is what is
    allowed (None: no bound). USD likewise; None with its `reason` where it is not known. `call_s` is the median
    duration of the candidate's calls in the ledger (None: there are none).
    """

    candidate: str
    endpoint: str
    calls: int
    in_ledger: int
    prompt_tokens_low: int
    prompt_tokens_high: int | None
    output_tokens_high: int | None
    usd_low: Decimal | None
    usd_high: Decimal | None
    reason: str | None
    call_s: float | None


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a run will take. `seconds` is the least that limits and known durations allow; None: not known."""

    candidates: tuple[CandidateEstimate, ...]
    seconds: float | None

    @property
    def calls(self) -> int:
        """Calls that are still to be made, if none fails."""
        return sum(one.calls for one in self.candidates)

    @property
    def in_ledger(self) -> int:
        """Requests that are answered already."""
        return sum(one.in_ledger for one in self.candidates)

    @property
    def usd_low(self) -> Decimal | None:
        """Prompts alone, at four bytes a token; None where a price is not known."""
        return _sum(one.usd_low for one in self.candidates)

    @property
    def usd_high(self) -> Decimal | None:
        """The most that the calls can cost if none has to be repeated; None where one of them has no bound."""
        return _sum(one.usd_high for one in self.candidates)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why USD are not known, each candidate once."""
        return tuple(
            f"{visible(one.candidate)}: {one.reason}" for one in self.candidates if one.reason is not None
        )

    def __str__(self) -> str:
        """`2,970 calls (30 in the ledger), 0.0021 to 0.92 USD, at least 4 min`."""
        said = f"{self.calls:,} call{'s' if self.calls != 1 else ''} ({self.in_ledger:,} in the ledger)"
        low, high = self.usd_low, self.usd_high
        if low is not None and high is not None:
            said += f", {_usd(low)} to {_usd(high)} USD"
        else:
            said += f", USD not known ({'; '.join(self.reasons)})" if self.reasons else ", USD not known"
        if self.seconds is not None and self.calls:
            minutes = self.seconds / 60
            said += f", at least {minutes:.0f} min" if minutes >= 2 else f", at least {self.seconds:.0f} s"
        return said


def estimate_run(plan: Plan, ledger: Ledger | None, pricing: Pricing, settings: RunSettings) -> Estimate:
    """What `plan` will take beyond what `ledger` (None: a new run) has.

    Steps that follow a reply nobody has yet count as one call each, with all the output that may come before them
    in their prompts' upper bound.
    """
    found = []
    seen: set[str] = set()
    for name in plan.candidates:
        endpoint = next((endpoint_of(cell.first) for cell in plan.of(name)), "")
        tally = _Tally(pricing, ledger, settings, seen)
        for cell in plan.of(name):
            tally.add(cell)
        found.append(tally.done(name, endpoint))
    return Estimate(tuple(found), _seconds(found, settings))


class _Tally:
    def __init__(self, pricing: Pricing, ledger: Ledger | None, settings: RunSettings, seen: set[str]) -> None:
        self.pricing, self.ledger, self.settings, self.seen = pricing, ledger, settings, seen
        self.calls = self.in_ledger = self.low = 0
        self.high: int | None = 0
        self.output: int | None = 0
        self.usd_low: Decimal | None = Decimal(0)
        self.usd_high: Decimal | None = Decimal(0)
        self.reason: str | None = None
        self.durations: list[float] = []

    def add(self, cell: Cell) -> None:
        """One cell: what the ledger answers of it, and every step after that."""
        request: Request | None = cell.first
        step = 0
        while request is not None:
            key = request_key(request)
            known = None if self.ledger is None else self.ledger.latest(key)
            if known is None or not self._settled(known):
                self._ask(cell, step, request, shared=key in self.seen)
                self.seen.add(key)
                return
            self.in_ledger += 1
            if known.state == "reply" and known.duration_s is not None:
                self.durations.append(known.duration_s)
            if step >= len(cell.follow_ups):
                return
            reply = known.result
            request = next_step(cell, step, request, reply) if isinstance(reply, Reply) else None
            step += 1

    def _settled(self, known: Attempt) -> bool:
        if known.state == "reply":
            return True
        final = isinstance(known.result, Failure) and known.result.kind in FINAL_KINDS
        return final and not self.settings.retry_failed

    def _ask(self, cell: Cell, step: int, request: Request, shared: bool) -> None:
        """`request`, unless it is `shared` with a cell before, and the steps behind it."""
        before = 0
        for place in range(step, len(cell.follow_ups) + 1):
            bound = self.pricing.most(request, before)
            if place > step or not shared:
                self._count(request, bound)
            before += bound.output_tokens or 0
            following = next_step(cell, place, request, Reply("?"))
            if following is not None:
                request = following

    def _count(self, request: Request, bound: Bound) -> None:
        """One call."""
        self.calls += 1
        self.low += prompt_bytes(request) // BYTES_A_TOKEN
        self.high = _plus(self.high, bound.prompt_tokens)
        self.output = _plus(self.output, bound.output_tokens)
        self.usd_high = _sum((self.usd_high, bound.usd))
        self.usd_low = _sum((self.usd_low, self.pricing.least(request)))
        self.reason = self.reason or bound.reason

    def done(self, name: str, endpoint: str) -> CandidateEstimate:
        """The sums as a value."""
        return CandidateEstimate(
            name,
            endpoint,
            self.calls,
            self.in_ledger,
            self.low,
            self.high,
            self.output,
            self.usd_low,
            self.usd_high,
            self.reason,
            statistics.median(self.durations) if self.durations else None,
        )


def _seconds(candidates: Iterable[CandidateEstimate], settings: RunSettings) -> float | None:
    """The slowest endpoint's time: by its limits per minute, and by known durations at full concurrency."""
    by_endpoint: dict[str, list[CandidateEstimate]] = {}
    for one in candidates:
        by_endpoint.setdefault(one.endpoint, []).append(one)
    least: list[float] = []
    for together in by_endpoint.values():
        calls = sum(one.calls for one in together)
        if settings.requests_per_minute is not None:
            least.append(60 * calls / settings.requests_per_minute)
        if settings.tokens_per_minute is not None:
            least.append(60 * sum(one.prompt_tokens_low for one in together) / settings.tokens_per_minute)
        if all(one.call_s is not None for one in together if one.calls):
            least.append(sum(one.calls * (one.call_s or 0.0) for one in together) / settings.concurrency)
    return max(least) if least else None


def _plus(total: int | None, more: int | None) -> int | None:
    return None if total is None or more is None else total + more


def _sum(amounts: Iterable[Decimal | None]) -> Decimal | None:
    total = Decimal(0)
    with localcontext() as context:
        context.prec = _DIGITS
        for amount in amounts:
            if amount is None:
                return None
            total += amount
    return total


def _usd(amount: Decimal) -> str:
    return plain_decimal(round(amount, 4 if amount < 100 else 2))
