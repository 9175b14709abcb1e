"""How many labels a risk class needs before its limit can be certified, and how many items that means to draw."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evalkit.errors import cell
from evalkit.statistics.bounds import certification_power, max_failures, required_n
from evalkit.statistics.sampling import draws_for

__all__ = ["CHANCE", "ClassPlan", "ClassState", "PlanRow", "plan_class", "plan_lines"]

CHANCE = 0.9
"""The chance with which the drawn items hold as many needs as are missing."""
ERRORS = (0, 1, 2)
LIKELY = 0.8
"""The last row of a class allows as many errors as give this chance at half the limit."""


@dataclass(frozen=True, slots=True)
class ClassState:
    """What is known of one risk class before more is drawn.

    limit: None without one. on_estimate: judged on the observed rate, so nothing is certified. have: needs (or
    conversations with one) that certify, as many as they are worth where weights vary. needs_share: of the class's
    items (conversations), those that need more than the cheapest tier; None where it is not known, which 0 of
    the labels does not say either. class_share: of the traffic, this class; None where not known. certifying: the
    share of new items that certify, below 1 where the others find the direction over three or more tiers. worth: a
    need's part in `have`, below 1 where weights vary.
    """

    name: str
    limit: float | None
    on_estimate: bool
    have: float
    needs_share: float | None
    class_share: float | None
    certifying: float = 1.0
    worth: float = 1.0


@dataclass(frozen=True, slots=True)
class PlanRow:
    """errors: under-routed needs that are to be allowed. needs: that certify the limit with them. missing: of
    these. draw_of_class, draw_of_all: items to draw at random from the class, from all traffic, so that with
    chance `CHANCE` none is missing. chance: that `needs` certify the limit when the true rate is half of it. None:
    not known, or no number is enough."""

    errors: int
    needs: int | None
    missing: int | None
    draw_of_class: int | None
    draw_of_all: int | None
    chance: float | None


@dataclass(frozen=True, slots=True)
class ClassPlan:
    """rows: for 0, 1, 2 errors and for a chance of `LIKELY`. allowed: errors that the needs at hand allow (-1: not
    even none). chance_now: that they certify when the true rate is half the limit. None without a limit on a
    bound."""

    state: ClassState
    rows: tuple[PlanRow, ...]
    allowed: int | None
    chance_now: float | None

    def as_json(self) -> dict[str, Any]:
        """The plan as a JSON object; rates are fractions."""
        state = self.state
        return {
            "risk": state.name,
            "limit": state.limit,
            "judged_on": None if state.limit is None else "estimate" if state.on_estimate else "bound",
            "have": state.have,
            "needs_share": state.needs_share,
            "class_share": state.class_share,
            "certifying_share": state.certifying,
            "worth": state.worth,
            "errors_allowed_now": self.allowed,
            "chance_now": self.chance_now,
            "rows": [
                {
                    "errors": row.errors,
                    "needs": row.needs,
                    "missing": row.missing,
                    "draw_of_class": row.draw_of_class,
                    "draw_of_all": row.draw_of_all,
                    "chance_at_half_the_limit": row.chance,
                }
                for row in self.rows
            ],
        }


def plan_class(state: ClassState, delta: float) -> ClassPlan:
    """What one class needs at error rate `delta`: `required_n` needs, `draws_for` them, `certification_power`.

    A class that is judged on the estimate needs 1 / limit items, whatever their errors; it gets one row without a
    chance. A limit of 0 is certified by no number.
    """
    limit = state.limit
    if limit is None:
        return ClassPlan(state, (), None, None)
    if state.on_estimate:
        least = None if limit == 0 else math.ceil(1 / limit - 1e-9)
        return ClassPlan(state, (_row(state, 0, least, None),), None, None)
    rows = []
    for errors in ERRORS:
        needs = required_n(limit, errors, delta)
        chance = None if needs is None else certification_power(needs, limit, limit / 2, delta)
        rows.append(_row(state, errors, needs, chance))
    if limit > 0:
        rows.append(_likely(state, limit, delta))
    now = math.floor(state.have + 1e-9)
    return ClassPlan(
        state,
        tuple(rows),
        max_failures(state.have, limit, delta),
        certification_power(now, limit, limit / 2, delta),
    )


def _likely(state: ClassState, limit: float, delta: float) -> PlanRow:
    """The fewest errors with which a study of a router that is twice as good as its limit likely succeeds."""
    errors = ERRORS[-1] + 1
    while True:
        needs = required_n(limit, errors, delta)
        chance = 1.0 if needs is None else certification_power(needs, limit, limit / 2, delta)
        if needs is None or chance >= LIKELY:
            return _row(state, errors, needs, None if needs is None else chance)
        errors += 1


def _row(state: ClassState, errors: int, needs: int | None, chance: float | None) -> PlanRow:
    if needs is None:
        return PlanRow(errors, None, None, None, None, None)
    missing = max(0, math.ceil((needs - state.have) / state.worth - 1e-9))
    of_class = of_all = None
    if missing == 0:
        of_class = of_all = 0
    elif state.needs_share is not None and state.needs_share > 0:
        useful = state.needs_share * state.certifying
        of_class = draws_for(missing, useful, CHANCE)
        if state.class_share is not None:
            of_all = draws_for(missing, useful * state.class_share, CHANCE)
    return PlanRow(errors, needs, missing, of_class, of_all, chance)


def plan_lines(plans: Sequence[ClassPlan], unit: str = "needs") -> list[str]:
    """The plans as a table of at most 80 columns."""
    head = ("risk", "limit", "errors", unit, "have", "missing", "draw class", "draw all", "chance")
    widths = (7, 7, 7, 8, 9, 11, 10, 8)
    lines = [f"{head[0]:<12}" + "".join(f"{h:>{w}}" for h, w in zip(head[1:], widths, strict=True))]
    for plan in plans:
        state = plan.state
        name = cell(state.name, 12)
        if state.limit is None:
            lines.append(f"{name}{'none':>7}  no limit, so no labels are needed for a gate")
            continue
        for i, row in enumerate(plan.rows):
            first = name if i == 0 else " " * 12
            errors = "any" if state.on_estimate else str(row.errors)
            lines.append(
                f"{first}{_percent(state.limit) if i == 0 else '':>7}{errors:>7}{_count(row.needs):>7}"
                f"{_have(state.have):>8}{_count(row.missing):>9}{_count(row.draw_of_class):>11}"
                f"{_count(row.draw_of_all):>10}{_percent(row.chance):>8}"
            )
    return lines


def _count(value: int | None) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if value < 1_000_000 else f"{value:.1e}"


def _have(value: float) -> str:
    return f"{value:,.0f}" if abs(value - round(value)) < 1e-9 else f"{value:,.1f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.3g} %"
