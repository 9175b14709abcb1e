"""A second look at items that stay below the strongest tier because their label says that cheap is enough."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evalkit.statistics.bounds import upper_bound
from evalkit.statistics.labels_audit import audited_rate

__all__ = ["ClassAudit", "ClassCounts", "audit_class", "draw_ids"]


@dataclass(frozen=True, slots=True)
class ClassCounts:
    """What the labels say of one risk class at the audited point.

    under_routed of needs: as the gate counts them (effective numbers where weights vary, conversations where
    items share them). cheap_labels: items labelled with the cheapest tier that stay below the strongest, in which
    a missed need would be under-routed. scale: the largest weight among them over the largest among the needs, at
    least 1. on_estimate: the gate judges the observed rate, and no bound.
    """

    name: str
    limit: float | None
    under_routed: float
    needs: float
    cheap_labels: int
    scale: float = 1.0
    grouped: bool = False
    on_estimate: bool = False


@dataclass(frozen=True, slots=True)
class ClassAudit:
    """The bounds of one class, as in `evalkit.statistics.labels_audit.AuditedRate`; None where none can be had."""

    counts: ClassCounts
    audited: int
    missed: int
    missed_rate_upper: float | None
    missed_items_upper: float | None
    missed_share_upper: float | None
    upper: float | None
    upper_unaudited: float | None

    @property
    def within_limit(self) -> bool | None:
        """Whether the bound with the audit keeps the limit; None without limit or bound, or on the estimate."""
        if self.counts.limit is None or self.upper is None or self.counts.on_estimate:
            return None
        return self.upper <= self.counts.limit

    def as_json(self) -> dict[str, Any]:
        """The audit as a JSON object; rates are fractions."""
        counts = self.counts
        return {
            "risk": counts.name,
            "limit": counts.limit,
            "under_routed": counts.under_routed,
            "needs": counts.needs,
            "unit": "conversations with a need" if counts.grouped else "needs",
            "cheap_labels": counts.cheap_labels,
            "audited": self.audited,
            "missed": self.missed,
            "missed_rate_upper": self.missed_rate_upper,
            "missed_items_upper": self.missed_items_upper,
            "missed_share_upper": self.missed_share_upper,
            "upper_with_audit": self.upper,
            "upper_without_audit": self.upper_unaudited,
            "within_limit": self.within_limit,
        }


def audit_class(counts: ClassCounts, audited: int, missed: int, delta: float) -> ClassAudit:
    """The bound on the true under-route rate at the audited point: delta / 2 each for the rate and the audit.

    With M missed needs at most, each of them under-routed, `R_true <= (R n + M) / (n + M)`, that is
    `eta + (1 - eta) R` with `eta = M / (M + n)`. Where weights vary, M counts in units of the heaviest need.
    For conversations a missed need may turn one that is counted already: `R_true <= R + M / n`.
    """
    cheap = max(audited, math.ceil(counts.cheap_labels * counts.scale - 1e-9))
    found = None
    if counts.cheap_labels == 0:  # nothing is labelled cheap and stays: no need can be missed there
        some = counts.needs > 0
        rate = upper_bound(counts.under_routed, counts.needs, 1.0 - delta / 2) if some else None
        plain = upper_bound(counts.under_routed, counts.needs, 1.0 - delta) if some else None
        return ClassAudit(counts, 0, 0, None, 0.0, 0.0, rate, plain)
    if audited > 0 and counts.needs > 0:
        found = audited_rate(counts.under_routed, counts.needs, cheap, audited, missed, delta)
    if found is None:
        return ClassAudit(counts, audited, missed, None, None, None, None, None)
    upper = found.upper
    if counts.grouped:
        rate = upper_bound(counts.under_routed, counts.needs, 1.0 - delta / 2)
        assert rate is not None
        upper = min(1.0, rate + found.missed_items / counts.needs)
    return ClassAudit(
        counts, audited, missed, found.missed_rate, found.missed_items, found.missed_share, upper,
        found.upper_unaudited,
    )  # fmt: skip


def draw_ids(ids: Sequence[str], count: int, seed: int, stratum: str) -> list[str]:
    """A simple random sample of `count` ids without replacement, in random order: those of the least hash of seed,
    stratum and id. The same whatever the order of `ids`; a larger count adds to a smaller one."""

    def key(name: str) -> bytes:
        return hashlib.blake2b(f"{seed}\x00{stratum}\x00{name}".encode(), digest_size=16).digest()

    return sorted(ids, key=lambda name: (key(name), name))[:count]
