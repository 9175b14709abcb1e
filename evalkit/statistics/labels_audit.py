"""What errors in the labels can do to a certified rate.

A need that people labelled "cheap is enough" is invisible to the study. A second look at a random sample of those
labels bounds how many there can be; without one a report says "assumes that labels miss no need".
"""

from __future__ import annotations

from dataclasses import dataclass

from evalkit.statistics._parameters import (
    bad_parameter,
    check_count,
    check_open_share,
    check_share,
)
from evalkit.statistics.bounds import upper_bound

__all__ = ["AuditedRate", "audited_rate", "label_rate_limit", "true_rate_bound"]


def true_rate_bound(label_rate: float, missed_share: float, precision: float = 1.0) -> float:
    """The most the true under-route rate can be: `eta + (1 - eta) min(1, R / ppv)`.

    `label_rate`: upper bound R on the rate among items labelled as needs; `missed_share`: upper bound eta on the
    share of true needs that are labelled cheap (all of them may be under-routed); `precision`: lower bound ppv on
    the share of need labels that are right.

    >>> round(true_rate_bound(0.02, 0.01), 6)
    0.0298
    """
    check_share("true_rate_bound", "label_rate", label_rate)
    check_share("true_rate_bound", "missed_share", missed_share)
    check_share("true_rate_bound", "precision", precision)
    among = 1.0 if label_rate >= precision else label_rate / precision
    return missed_share + (1.0 - missed_share) * among


def label_rate_limit(limit: float, missed_share: float, precision: float = 1.0) -> float | None:
    """The rate among labelled needs up to which the true rate keeps `limit`: `(limit - eta) / (1 - eta) * ppv`.

    The inverse of `true_rate_bound` in its first argument. None where eta alone reaches the limit, so that no rate
    among the labelled needs is low enough; 1.0 for limit 1, which nothing can break.

    >>> round(label_rate_limit(0.0298, 0.01), 6)
    0.02
    """
    check_share("label_rate_limit", "limit", limit)
    check_share("label_rate_limit", "missed_share", missed_share)
    check_share("label_rate_limit", "precision", precision)
    if limit >= 1.0:
        return 1.0
    room = limit - missed_share
    return room / (1.0 - missed_share) * precision if room > 0 else None


@dataclass(frozen=True, slots=True)
class AuditedRate:
    """Bounds on an under-route rate with an audit of the labels.

    upper            on the true rate, at confidence 1 - delta in all
    upper_unaudited  on the rate among labelled needs, all of delta spent on it: what holds if labels miss no need
    missed_rate      upper bound on the share of "cheap" labels that are needs
    missed_items     that many items, at most
    missed_share     upper bound on the share of true needs labelled cheap
    """

    upper: float
    upper_unaudited: float
    missed_rate: float
    missed_items: float
    missed_share: float


def audited_rate(
    failures: float,
    needs: float,
    cheap_labels: int,
    audited: int,
    missed: int,
    delta: float = 0.05,
    precision: float = 1.0,
) -> AuditedRate | None:
    """The bound on the true under-route rate from an audit: delta / 2 for the rate, delta / 2 for the audit.

    `failures` of `needs` labelled needs were under-routed; of `cheap_labels` items labelled cheap a random
    sample of `audited` was looked at again and `missed` were found to be needs. `precision` as in
    `true_rate_bound`: a lower bound that spent its own delta. None without needs or without an audit.
    """
    check_open_share("audited_rate", "delta", delta)
    check_count("audited_rate", "cheap_labels", cheap_labels)
    if not 0 <= audited <= cheap_labels:
        raise bad_parameter("audited_rate", "audited", f"between 0 and `cheap_labels` = {cheap_labels}", audited)
    if not 0 <= missed <= audited:
        raise bad_parameter("audited_rate", "missed", f"between 0 and `audited` = {audited}", missed)
    rate = upper_bound(failures, needs, 1 - delta / 2)
    unaudited = upper_bound(failures, needs, 1 - delta)
    missed_rate = upper_bound(missed, audited, 1 - delta / 2)
    if rate is None or unaudited is None or missed_rate is None:
        return None
    missed_items = cheap_labels * missed_rate
    true_needs = precision * needs  # among the labelled needs, at least
    share = missed_items / (missed_items + true_needs) if missed_items + true_needs > 0 else 0.0
    return AuditedRate(true_rate_bound(rate, share, precision), unaudited, missed_rate, missed_items, share)
