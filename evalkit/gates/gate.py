"""One limit held against the evidence."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Gate", "Status", "StopRule"]


class Status(StrEnum):
    """What the evidence says about a limit.

    certified: an exact bound is inside the limit. estimate: only the observed figure is inside, by policy.
    insufficient: more evidence is needed. violated: the evidence says the limit is broken. infeasible: no
    threshold meets this limit together with the others. not_statable: the evidence cannot speak of it at all.
    """

    CERTIFIED = "certified"
    ESTIMATE = "estimate"
    INSUFFICIENT = "insufficient"
    VIOLATED = "violated"
    INFEASIBLE = "infeasible"
    NOT_STATABLE = "not_statable"


@dataclass(frozen=True)
class Gate:
    """A limit, what was seen, its bound, and the status.

    name: "under_route:<risk>", "pass_rate", "cost_per_request", "p95_task", "escalation", "cost_known".
    limit_is: "max" or "min"; unit: "share", "usd", "s" or "items". observed and bound (upper for max, lower for
    min) are None where not statable. k of n `n_is` (items, conversations, ...) fail. missing_n: how many more
    of them would settle it; None where none would, or where it is settled. basis: "bound" or "estimate".
    by_labels: what stands in the way was found by an audit of the labels, and it is they that have to change.
    """

    name: str
    label: str
    limit: float | None
    limit_is: str
    unit: str
    observed: float | None
    bound: float | None
    k: float | None
    n: float | None
    n_is: str
    status: Status
    missing_n: int | None
    message: str
    basis: str
    confidence: float | None
    by_labels: bool = False


@dataclass(frozen=True)
class StopRule:
    """A reason not to release whatever the gates say. triggered None: it could not be worked out.

    on_trigger: the decision that follows ("reject" or "insufficient_evidence").
    """

    name: str
    triggered: bool | None
    detail: str
    on_trigger: str = "reject"
    applies: bool = True
