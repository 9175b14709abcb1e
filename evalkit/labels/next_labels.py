"""Where the next labels help most: how many a risk class, by the bound that decides.

Within a class the items are drawn at random and never by their score. A bound counts how many of a class's needs
are under-routed, so its needs must be a random sample of the class's needs: labelling the items with the highest
scores first would add needs that go up anyway, and make the bound small without a reason. What can be chosen
freely is how many items each class gets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evalkit.statistics.bounds import upper_bound

__all__ = ["ClassBound", "ClassQuota", "quotas"]

_STEPS = 500


@dataclass(frozen=True, slots=True)
class ClassBound:
    """One class: the limit on its under-route rate; needs that certify (as many as they are worth); of these
    under-routed at the point looked at; pool of unlabelled items; yield_: needs that one more labelled item adds,
    on average."""

    name: str
    limit: float
    needs: float
    under_routed: float
    pool: int
    yield_: float | None


@dataclass(frozen=True, slots=True)
class ClassQuota:
    """label: items of the pool to label. upper_now, upper_then: the bound before and, where the observed rate
    stays as it is, after. None where nothing is known of the needs an item adds."""

    bound: ClassBound
    label: int
    upper_now: float
    upper_then: float | None

    def as_json(self) -> dict[str, Any]:
        """The quota as a JSON object; rates are fractions."""
        bound = self.bound
        return {
            "risk": bound.name,
            "limit": bound.limit,
            "needs": bound.needs,
            "under_routed": bound.under_routed,
            "pool": bound.pool,
            "needs_per_item": bound.yield_,
            "label": self.label,
            "upper_now": self.upper_now,
            "upper_then": self.upper_then,
        }


def quotas(classes: Sequence[ClassBound], count: int, delta: float) -> list[ClassQuota]:
    """Share `count` labels out: each next one to the class that is furthest from its limit.

    Furthest: the largest `U / limit`, U the exact upper bound at `1 - delta` for the needs expected so far and
    their observed rate of under-routing; this is the class that decides, because all limits must be kept at once.
    A class without a pool gets none, one whose yield is not known or 0 goes first until it has a tenth of the
    labels: nothing is known of it before some are labelled. Classes whose limit is kept already get what the
    others cannot take.
    """
    got = [0] * len(classes)
    left = min(count, sum(c.pool for c in classes))
    step = max(1, count // _STEPS)
    while left > 0:
        open_ = [i for i, c in enumerate(classes) if got[i] < c.pool]
        blind = [i for i in open_ if not classes[i].yield_ and 10 * got[i] < count]
        seen = [i for i in open_ if classes[i].yield_]
        best = blind[0] if blind else max(seen or open_, key=lambda i: (_distance(classes[i], got[i], delta), -i))
        take = min(step, left, classes[best].pool - got[best])
        got[best] += take
        left -= take
    out = []
    for bound, n in zip(classes, got, strict=True):
        now = _upper(bound, 0, delta)
        out.append(ClassQuota(bound, n, now, _upper(bound, n, delta) if bound.yield_ is not None else None))
    return out


def _upper(bound: ClassBound, more: int, delta: float) -> float:
    needs = bound.needs + more * (bound.yield_ or 0.0)
    rate = bound.under_routed / bound.needs if bound.needs > 0 else 0.0
    upper = upper_bound(min(needs, rate * needs), needs, 1.0 - delta)
    return 1.0 if upper is None else upper


def _distance(bound: ClassBound, more: int, delta: float) -> float:
    upper = _upper(bound, more, delta)
    return upper / bound.limit if bound.limit > 0 else float("inf")
