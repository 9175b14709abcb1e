"""What an audit of the labels adds to the certificate: the rate that is bounded is the true one.

A need that is labelled with the cheapest tier is in no denominator and in no error of a study. An audit looks
again at a random sample of those labels, so that the share of the true needs hidden among them is bounded; it may
also look at items labelled as needs, of which a share w is wrong (ppv = 1 - w). With M missed needs, n labelled
ones and R the rate among these:

    two tiers             R_true <= eta + (1 - eta) min(1, R / ppv)       eta = M / (M + ppv n)
    more                  R_true <= eta + (1 - eta) min(1, R + w)         eta = M / (M + n)
    conversations, two    R_true <= (R + M / n) / (1 - w)
    conversations, more   R_true <= R + M / n + w

With more than two tiers a wrong label may ask for too weak a tier, so that its item is under-routed unseen: that
is the worst of what w can stand for. Half of what a class may spend goes to R, half to M and w. The audit is of
one point: it says nothing about items that go up there and would stay below the strongest tier elsewhere.
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
    counted): upper bound, lower bound, estimate. wrong: upper bound on the need labels that are wrong, as a share
    of n; 0 where none was looked at. above: there are more than two tiers. delta: what the class may spend in all.
    """

    counts: AuditCounts
    n: float
    delta: float
    share: float
    share_lower: float
    share_seen: float
    grouped: bool
    wrong: float = 0.0
    above: bool = False

    @property
    def half(self) -> float:
        """What the rate among the labelled needs may spend; the audit spends the other half."""
        return self.delta / 2.0

    def label_limit(self, limit: float) -> float | None:
        """The rate among labelled units up to which the true rate keeps `limit`; None where none does."""
        return _label_limit(limit, self.share, self.wrong, above=self.above, grouped=self.grouped)

    def bound(self, k: float) -> float | None:
        """Upper bound on the true rate, at confidence 1 - delta, with `k` of `n` labelled units under-routed."""
        rate = upper_bound(min(k, self.n), self.n, 1.0 - self.half)
        if rate is None:
            return None
        if self.wrong >= 1.0:
            return 1.0
        if self.grouped:
            plain = rate + self.share
            return min(1.0, plain + self.wrong if self.above else plain / (1.0 - self.wrong))
        if self.above:
            return true_rate_bound(min(1.0, rate + self.wrong), min(1.0, self.share))
        return true_rate_bound(rate, min(1.0, self.share), 1.0 - self.wrong)


def audited_class(data: RoutingData, risk: int, n: float, delta: float) -> AuditedClass | None:
    """The audit of class `risk` with `n` labelled units; None without an audit or without units.

    Where weights vary, a missed need counts as many times as the heaviest audited item weighs in needs, and a
    wrong label as the heaviest need.
    """
    if data.audit is None or n <= 0:
        return None
    counts, grouped, above = data.audit.classes[risk], data.group is not None, data.k > 2
    spend = delta / 4.0 if counts.needs_audited else delta / 2.0
    wrong = 0.0
    if counts.needs_audited:
        bound = upper_bound(counts.needs_wrong, counts.needs_audited, 1.0 - spend)
        wrong = min(1.0, (1.0 if bound is None else bound) * max(1.0, counts.need_labels / n))
    true_needs = n if above else n * (1.0 - wrong)
    cheap = math.ceil(counts.cheap_labels * counts.scale - 1e-9)

    def share(rate: float | None, needs: float) -> float:
        missed = cheap * (0.0 if rate is None else rate)
        if grouped:
            return missed / n
        return missed / (missed + needs) if missed > 0 else 0.0

    upper = lower = 0.0
    if counts.cheap_labels > 0:  # else nothing is labelled cheap and stays, so nothing is missed there
        found = upper_bound(counts.missed, counts.audited, 1.0 - spend)
        upper = share(1.0 if found is None else found, true_needs)
        lower = share(lower_bound(counts.missed, counts.audited, 1.0 - spend), n)
    seen = seen_share(data, risk, n)
    return AuditedClass(counts, n, delta, upper, lower, seen, grouped, wrong, above)


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
    if data.group is not None:
        return missed / n
    true_needs = n if data.k > 2 else n * (1.0 - _seen_wrong(counts))
    return missed / (missed + true_needs) if missed > 0 else 0.0


def seen_limit(data: RoutingData, risk: int, n: float, limit: float) -> float:
    """The observed rate among labelled units at which the estimate of the true rate is `limit`; below 0 where what
    is wrong with the labels is seen to break it alone."""
    share = seen_share(data, risk, n)
    wrong = 0.0 if data.audit is None else _seen_wrong(data.audit.classes[risk])
    found = _label_limit(limit, share, wrong, above=data.k > 2, grouped=data.group is not None)
    if found is not None:
        return found
    return limit if share == wrong == 0 else -1.0


def _seen_wrong(counts: AuditCounts) -> float:
    return counts.needs_wrong / counts.needs_audited if counts.needs_audited else 0.0


def _label_limit(limit: float, share: float, wrong: float, *, above: bool, grouped: bool) -> float | None:
    if limit >= 1.0:
        return 1.0
    if grouped:
        room = limit - share - wrong if above else limit * (1.0 - wrong) - share
    elif above:
        found = label_rate_limit(limit, min(1.0, share))
        room = -1.0 if found is None else found - wrong
    else:
        room = label_rate_limit(limit, min(1.0, share), max(0.0, 1.0 - wrong)) or -1.0
    return room if room > 0 else None
