"""What an audit of the labels adds to the certificate: the rate that is bounded is the true one.

A need that is labelled with the cheapest tier is in no denominator and in no error of a study. An audit looks
again at a random sample of those labels, so that the share of the true needs hidden among them is bounded:

    R_true <= eta + (1 - eta) min(1, R_label)        eta = M / (M + n), M missed needs, n labelled ones
    R_true <= R_label + M / n                        where conversations are counted

Half of what a class may spend goes to `R_label`, half to eta. The audit is of one point: it says nothing about
items that go up there and would stay below the strongest tier elsewhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evalkit.routing.data import AuditCounts, Floats, RoutingData
from evalkit.statistics.bounds import lower_bound, upper_bound
from evalkit.statistics.labels_audit import label_rate_limit, true_rate_bound

__all__ = ["AuditedClass", "audit_level", "audited_class", "seen_limit", "seen_share"]


@dataclass(frozen=True, slots=True)
class AuditedClass:
    """The audit of one risk class beside its `n` labelled needs (or conversations with one).

    share, share_lower, share_seen: missed needs as a share of the true needs (of n, where conversations are
    counted), its upper and lower bound at delta / 2 each and the estimate. delta: what the class may spend in all.
    """

    counts: AuditCounts
    n: float
    delta: float
    share: float
    share_lower: float
    share_seen: float
    grouped: bool

    @property
    def half(self) -> float:
        """What the rate among the labelled needs may spend; the audit spends the other half."""
        return self.delta / 2.0

    def label_limit(self, limit: float) -> float | None:
        """The rate among labelled units up to which the true rate keeps `limit`; None where none does."""
        return _label_limit(limit, self.share, self.grouped)

    def bound(self, k: float) -> float | None:
        """Upper bound on the true rate, at confidence 1 - delta, with `k` of `n` labelled units under-routed."""
        rate = upper_bound(min(k, self.n), self.n, 1.0 - self.half)
        if rate is None:
            return None
        return min(1.0, rate + self.share) if self.grouped else true_rate_bound(rate, min(1.0, self.share))


def audited_class(data: RoutingData, risk: int, n: float, delta: float) -> AuditedClass | None:
    """The audit of class `risk` with `n` labelled units; None without an audit or without units.

    Where weights vary, a missed need counts as many times as the heaviest audited item weighs in needs.
    """
    if data.audit is None or n <= 0:
        return None
    counts, grouped = data.audit.classes[risk], data.group is not None
    cheap = math.ceil(counts.cheap_labels * counts.scale - 1e-9)

    def share(rate: float | None) -> float:
        missed = cheap * (0.0 if rate is None else rate)
        return missed / n if grouped else missed / (missed + n)

    if counts.cheap_labels == 0:  # nothing is labelled cheap and stays, so nothing is missed there
        return AuditedClass(counts, n, delta, 0.0, 0.0, 0.0, grouped)
    confidence = 1.0 - delta / 2.0
    upper = upper_bound(counts.missed, counts.audited, confidence)
    return AuditedClass(
        counts,
        n,
        delta,
        share(1.0 if upper is None else upper),
        share(lower_bound(counts.missed, counts.audited, confidence)),
        seen_share(data, risk, n),
        grouped,
    )


def audit_level(data: RoutingData, levels: Floats) -> float:
    """The largest level of a path at which no item labelled with the cheapest tier is sent lower than where it was
    audited; +inf without an audit, and where nothing labelled cheap went up there.

    levels (N, K - 1): non-increasing along a row, as in `evalkit.routing.path.Path`.
    """
    if data.audit is None:
        return np.inf
    tier = data.audit.tier.astype(np.int64)
    held = np.flatnonzero((data.required == 0) & (data.weight > 0) & (tier > 0))
    return float(levels[held, tier[held] - 1].min(initial=np.inf))


def seen_share(data: RoutingData, risk: int, n: float) -> float:
    """Missed needs as a share of the true needs (of conversations with one) as the audit saw them; no bound."""
    if data.audit is None or n <= 0:
        return 0.0
    counts = data.audit.classes[risk]
    if counts.audited == 0:
        return 0.0
    missed = counts.cheap_labels * counts.scale * counts.missed / counts.audited
    return missed / n if data.group is not None else missed / (missed + n)


def seen_limit(data: RoutingData, risk: int, n: float, limit: float) -> float:
    """The observed rate among labelled units at which the estimate of the true rate is `limit`; below 0 where the
    missed needs alone are seen to break it."""
    share = seen_share(data, risk, n)
    found = _label_limit(limit, share, data.group is not None)
    if found is not None:
        return found
    return limit if share == 0 else -1.0


def _label_limit(limit: float, share: float, grouped: bool) -> float | None:
    if not grouped:
        return label_rate_limit(limit, min(1.0, share))
    if limit >= 1.0:
        return 1.0
    return limit - share if limit > share else None
