"""The two ledgers of a run, apart: what was spent now, and what the decision costs. Pure.

A reply that a recording gave costs nothing now, and its list price as evidence. A call that gave no reply and may
have been charged is spent perhaps, so that what was spent is a range.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import Literal

from evalkit.costs.cost import Cost, CostTotal, total_usd
from evalkit.costs.decimals import plain_decimal

__all__ = ["CallCost", "RunCosts", "run_costs"]

_DIGITS = 60


@dataclass(frozen=True, slots=True)
class CallCost:
    """One attempt as both ledgers see it.

    `cost` is its list price. `billed`: it was charged (`yes`: a reply, or a failure that reports usage), was not
    (`no`: refused before anything was generated), or may have been (`unknown`). `reserved_usd` is the most it can
    have cost, None where that has no bound. `fresh` is False where a recording answered; `recorded_in` then names
    the run that was recorded. `latency_s` is the time of the attempt, None where it is not known.
    """

    cost: Cost
    billed: Literal["yes", "no", "unknown"] = "yes"
    reserved_usd: Decimal | None = None
    fresh: bool = True
    recorded_in: str | None = None
    latency_s: float | None = None


@dataclass(frozen=True, slots=True)
class RunCosts:
    """What attempts come to.

    `spent_low_usd` to `spent_high_usd` was spent in this run; high is None where an attempt has no bound.
    `possibly_billed` attempts gave no reply and may have been charged; `unpriced` ones were charged at a price
    that is not known. `decision` is the total of what the answers cost at list prices, from a recording or not.
    `replayed` attempts were answered from recordings, those of `recorded_in`. `fixes` holds, by reason of an
    unknown cost, how often it occurs and what to do.
    """

    spent_low_usd: Decimal
    spent_high_usd: Decimal | None
    possibly_billed: int
    unpriced: int
    decision: CostTotal
    attempts: int
    replayed: int
    recorded_in: tuple[str, ...]
    measured_latencies: int
    replayed_latencies: int
    fixes: tuple[tuple[str, str | None, int], ...]

    @property
    def decision_usd(self) -> Decimal | None:
        """The cost of the decision; None where any call that it needs has an unknown cost."""
        return self.decision.usd

    def lines(self) -> list[str]:
        """The figures as lines for people, labelled, each unknown with its reason and what to do."""
        calls = self.decision.calls
        said = [
            f"cost of the decision in USD: {self.decision}" + (f" ({_n(calls, 'call')})" if self.whole else "")
        ]
        said.append(f"spent in this run in USD: {self._spent()}")
        if self.replayed:
            where = f", recorded in {', '.join(self.recorded_in)}" if self.recorded_in else ""
            said.append(f"answered from recordings: {self.replayed:,} of {_n(self.attempts, 'attempt')}{where}")
        fresh = f"{self.measured_latencies:,} measured now" if self.measured_latencies else "no fresh figures"
        said.append(f"latencies: {fresh}, {self.replayed_latencies:,} replayed")
        for reason, fix, count in self.fixes:
            priced = f"{self.decision.priced:,} of {calls:,} calls priced"
            told = "" if fix is None or "Fix: " in reason else f". Fix: {fix}."
            said.append(f"{priced}; {_n(count, 'call')} without a cost: {reason.rstrip('.')}{told}")
        return said

    @property
    def whole(self) -> bool:
        """Every call that the decision needs has a price."""
        return self.decision.priced == self.decision.calls

    def _spent(self) -> str:
        low = plain_decimal(self.spent_low_usd)
        why = []
        if self.possibly_billed:
            why.append(f"{_n(self.possibly_billed, 'attempt')} possibly billed")
        if self.unpriced:
            why.append(f"{_n(self.unpriced, 'attempt')} without a price")
        beside = f" ({', '.join(why)})" if why else ""
        if self.spent_high_usd is None:
            return f">= {low}{beside}"
        if self.spent_high_usd == self.spent_low_usd:
            return f"{low}{beside}"
        return f"{low} to {plain_decimal(self.spent_high_usd)}{beside}"


def run_costs(attempts: Iterable[CallCost]) -> RunCosts:
    """Both ledgers of `attempts`.

    Spent: the cost of every fresh attempt that was charged; where that is not known, or where it may have been
    charged, from 0 to its reservation. Decision: the list price of every attempt that was charged, fresh or not;
    one that only may have been is no part of it.
    """
    low, possible, unbounded = Decimal(0), Decimal(0), False
    possibly = unpriced = replayed = measured = remembered = seen = 0
    runs: dict[str, None] = {}
    fixes: dict[str, str | None] = {}
    counts: Counter[str] = Counter()
    needed: list[Cost] = []
    with localcontext() as context:
        context.prec = _DIGITS
        for one in attempts:
            seen += 1
            if one.billed == "yes":
                needed.append(one.cost)
                if one.cost.usd is None:
                    reason = one.cost.reason or "unknown"
                    counts[reason] += 1
                    fixes.setdefault(reason, one.cost.fix)
            if not one.fresh:
                replayed += 1
                remembered += one.latency_s is not None
                if one.recorded_in is not None:
                    runs[one.recorded_in] = None
                continue
            measured += one.latency_s is not None
            if one.billed == "no":
                continue
            if one.billed == "yes" and one.cost.usd is not None:
                low += one.cost.usd
                continue
            possibly += one.billed == "unknown"
            unpriced += one.billed == "yes"
            unbounded |= one.reserved_usd is None
            possible += one.reserved_usd or Decimal(0)
        return RunCosts(
            spent_low_usd=low,
            spent_high_usd=None if unbounded else low + possible,
            possibly_billed=possibly,
            unpriced=unpriced,
            decision=total_usd(needed),
            attempts=seen,
            replayed=replayed,
            recorded_in=tuple(runs),
            measured_latencies=measured,
            replayed_latencies=remembered,
            fixes=tuple((reason, fixes[reason], counts[reason]) for reason in fixes),
        )


def _n(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
