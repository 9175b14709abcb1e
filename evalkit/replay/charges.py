"""What all runs of a folder were charged so far, and whether a cap can be kept at all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, localcontext

from evalkit.errors import Fault, InputError, visible
from evalkit.providers.call import Failure, Reply
from evalkit.replay.batch_ledger import open_batches
from evalkit.replay.ledger import Ledger
from evalkit.replay.plan import Cell, Plan
from evalkit.replay.pricing import Pricing
from evalkit.replay.records import request_from

__all__ = ["Charged", "charged_so_far", "check_cap"]

_DIGITS = 60


@dataclass(frozen=True, slots=True)
class Charged:
    """What attempts count for under a cap: what they cost, and for an unknown cost the most it can have been.

    `unbounded` attempts have neither: then `usd` is only a part.
    """

    usd: Decimal
    unbounded: int


def charged_so_far(ledger: Ledger, pricing: Pricing) -> Charged:
    """The charge of all attempts in the ledger, and of batches that are under way. What had no price when it was
    made is priced now."""
    total, unbounded = Decimal(0), 0
    with localcontext() as context:
        context.prec = _DIGITS
        for usd, key, number in ledger.charges():
            if usd is None:
                usd = _priced_now(ledger, key, number, pricing)
            if usd is None:
                unbounded += 1
            else:
                total += usd
        for batch in open_batches(ledger):
            if batch.reserved_usd is None:
                unbounded += len(batch.job.keys)
            else:
                total += batch.reserved_usd
    return Charged(total, unbounded)


def _priced_now(ledger: Ledger, key: str, number: int, pricing: Pricing) -> Decimal | None:
    record = ledger.request(key)
    attempt = next((attempt for attempt in ledger.attempts(key) if attempt.number == number), None)
    if record is None or attempt is None:
        return None
    request = request_from(record)
    if isinstance(attempt.result, Reply | Failure):
        usd = pricing.cost(request, attempt.result).usd
        if usd is not None:
            return usd
    return pricing.most(request).usd


def check_cap(plan: Plan, pricing: Pricing, charged: Charged, is_free: Callable[[Cell], bool]) -> None:
    """Raises `InputError` where a cap could not be kept: a candidate whose calls have no bound, each named once,
    or earlier attempts whose charge has none. `is_free` cells cost nothing."""
    faults = []
    for name in plan.candidates:
        for cell in plan.of(name):
            if is_free(cell):
                continue
            bound = pricing.most(cell.first)
            if bound.usd is None:
                what = f"{visible(name)} cannot run under a spend cap: {bound.reason} (id {visible(cell.item)})"
                fix = "give it max_tokens and a price, or run without the cap"
                faults.append(Fault(what, fix))
                break
    if charged.unbounded:
        n = charged.unbounded
        what = f"{n:,} earlier attempt{'s' if n > 1 else ''} of this run folder may have cost any amount"
        faults.append(Fault(what, "give their models a price and max_tokens, or use a new run folder"))
    if faults:
        raise InputError(faults)
