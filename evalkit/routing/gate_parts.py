"""What the gates of a routing study are made of: their evidence, the builder, and the words they share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evalkit.gates import Gate, Status
from evalkit.routing.certify import Certificate, Shares
from evalkit.routing.data import Floats
from evalkit.routing.points import ItemMeasures, clean
from evalkit.routing.select import Objective
from evalkit.routing.sweep import Sweep
from evalkit.statistics.bounds import lower_bound, missing_n, upper_bound

__all__ = [
    "SPENT",
    "Builder",
    "Evidence",
    "Figures",
    "Tally",
    "confidence_of",
    "count_text",
    "fixed_gate",
    "more_text",
    "percent",
    "place_at_least",
    "place_at_most",
    "requests_text",
]

SPENT = "this look was not declared in advance, so it certifies nothing"


@dataclass(frozen=True)
class Evidence:
    """What the gates are judged on: the certifying items along one path.

    fixed: the point was set in advance, so it is tested by itself. place: the candidate that is judged (fixed),
    selected, or, where nothing was selected, shown. feasible: some candidate keeps every limit as observed.
    """

    measures: ItemMeasures
    levels: Floats
    sweep: Sweep
    shares: Shares
    certificate: Certificate
    goal: Objective | None
    fixed: bool
    place: int
    selected: bool
    feasible: bool


@dataclass(frozen=True)
class Tally:
    """k of n units failed; both may be real."""

    k: float
    n: float

    @property
    def rate(self) -> float:
        """The share that failed."""
        return self.k / self.n

    @property
    def text(self) -> str:
        """`k of n, p %`."""
        return f"{count_text(self.k)} of {count_text(self.n)}, {percent(self.rate)}"


def place_at_most(evidence: Evidence, level: float) -> int:
    """The candidate at which a limit of the safety side is shown: the judged one, or the last that keeps it."""
    if evidence.fixed or evidence.selected or level == -np.inf:
        return evidence.place
    return max(evidence.place, _first_at_most(evidence.sweep, level))


def _first_at_most(sweep: Sweep, level: float) -> int:
    return min(int(np.searchsorted(-sweep.levels, -level, side="left")), len(sweep) - 1)


def place_at_least(evidence: Evidence, level: float) -> int:
    """The same for the cost side, walked from all-cheapest."""
    if evidence.fixed or evidence.selected or level == np.inf:
        return evidence.place
    if level == -np.inf:
        return evidence.place
    return min(evidence.place, _first_at_most(evidence.sweep, level))


def fixed_gate(
    gate: Builder,
    text: str,
    tally: Tally,
    limit: float,
    delta: float,
    figures: Figures,
    *,
    otherwise: Status | None = None,
    certain: float | None = None,
    broken: str = "at least {}",
) -> Gate:
    """A point fixed in advance: tested from both sides at delta.

    `tally` counts all that may count against the limit; `certain` (default: the same) what surely does. `broken`
    says the bound that breaks the limit.
    """
    bound = upper_bound(tally.k, tally.n, 1.0 - delta)
    lower = lower_bound(tally.k if certain is None else certain, tally.n, 1.0 - delta)
    if bound is None or lower is None:
        return gate.of(Status.NOT_STATABLE, f"{gate.label}: no evidence", figures=figures)
    if bound <= limit:
        return gate.of(otherwise or Status.CERTIFIED, text, figures=figures)
    if lower > limit:
        return gate.of(
            Status.VIOLATED, f"{text}; {broken.format(percent(lower))}, so it is broken", figures=figures
        )
    more = missing_n(tally.k, tally.n, limit, delta) if limit > 0 else None
    return gate.of(Status.INSUFFICIENT, f"{text}; {more_text(more, gate.n_is)}", missing_n=more, figures=figures)


@dataclass(frozen=True)
class Figures:
    """The numbers of a gate; None where there are none."""

    observed: float | None = None
    bound: float | None = None
    k: float | None = None
    n: float | None = None


@dataclass(frozen=True)
class Builder:
    """What every outcome of one gate has in common; see `Gate`."""

    name: str
    label: str
    limit: float | None
    limit_is: str
    unit: str
    n_is: str
    confidence: float | None

    def of(
        self,
        status: Status,
        message: str,
        *,
        figures: Figures | None = None,
        basis: str = "bound",
        missing_n: int | None = None,
    ) -> Gate:
        """The gate with this outcome."""
        seen = figures or Figures()
        return Gate(
            name=self.name,
            label=self.label,
            limit=self.limit,
            limit_is=self.limit_is,
            unit=self.unit,
            observed=seen.observed,
            bound=clean(seen.bound),
            k=seen.k,
            n=seen.n,
            n_is=self.n_is,
            status=status,
            missing_n=missing_n,
            message=message,
            basis=basis,
            confidence=self.confidence,
        )


def requests_text(evidence: Evidence) -> str:
    """What the n of a rate of requests counts: uneven weights and long conversations leave fewer."""
    whole = abs(evidence.certificate.n_requests - evidence.measures.data.n) < 1e-9
    return "requests" if whole else "effective requests"


def confidence_of(evidence: Evidence) -> float:
    """The confidence of the bounds: what this look may spend or, where that is nothing, the study's."""
    settings = evidence.measures.settings
    return settings.confidence if settings.delta is None else 1.0 - settings.delta


def more_text(missing: int | None, n_is: str) -> str:
    """How many more would settle a gate, in words."""
    if missing is None:
        return "more labels will not help at this rate"
    return f"{missing:,} more {n_is} without a further failure would settle it"


def count_text(value: float) -> str:
    """A count, with a decimal where it is an effective number."""
    return f"{value:,.0f}" if abs(value - round(value)) < 1e-9 else f"{value:,.1f}"


def percent(rate: float | None) -> str:
    """A share as per cent."""
    return (
        "n/a" if rate is None else f"{100 * rate:.1f} %" if rate < 0.9995 or rate == 1 else f"{100 * rate:.2f} %"
    )
