"""The gate of one risk class: its under-route rate, or the true one by an audit of the labels, and its limit."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from evalkit.gates import Gate, Status
from evalkit.routing.audited import AuditedClass, audited_class, seen_limit
from evalkit.routing.certify import class_units
from evalkit.routing.gate_parts import (
    SPENT,
    Builder,
    Evidence,
    Figures,
    Tally,
    confidence_of,
    count_text,
    fixed_gate,
    more_text,
    percent,
    place_at_most,
)
from evalkit.routing.points import clean
from evalkit.statistics.bounds import effective_n, lower_bound, missing_n, required_n, upper_bound

__all__ = ["class_gate"]


@dataclass(frozen=True)
class _Seen:
    """One class at the place where it is shown: its units, its bound, and the audit of its labels."""

    gate: Builder
    limit: float
    n: float
    tally: Tally
    bound: float | None
    figures: Figures
    audited: AuditedClass | None
    cheapest: str

    @property
    def text(self) -> str:
        held = f"at most {percent(self.bound)} with {percent(self.gate.confidence)} confidence"
        if self.audited is None:
            return f"{self.tally.text} under-routed; {held}"
        found = _audit_text(self.audited, self.cheapest)
        return f"{self.tally.text} of the labelled {self.gate.n_is} under-routed; {found}; the true rate is {held}"


def class_gate(evidence: Evidence, r: int) -> Gate:
    """The gate of risk class `r`, which has a limit."""
    data, rule = evidence.measures.data, evidence.measures.settings.classes[r]
    limit = rule.limit if rule.limit is not None else 0.0
    name = data.risk_classes[r]
    unit_level, weight = class_units(data, evidence.levels, r)
    single = data.group is None or len(unit_level) == int((data.needs & (data.risk == r)).sum())
    n_is = "needs" if single else "conversations with a need"
    label, confidence = f"Under-routing, {name}", confidence_of(evidence)
    gate = Builder(f"under_route:{name}", label, limit, "max", "share", n_is, confidence)
    if len(unit_level) == 0:
        weightless = (data.needs & (data.risk == r)).any()
        idle = "no item of this class that stands for traffic" if weightless else "no item of this class"
        return gate.of(
            Status.NOT_STATABLE,
            f"{label}: {idle} needs more than {data.tiers[0]}, so nothing can be said about it",
        )
    varied = float(np.ptp(weight)) > 1e-12 * float(weight.max())
    n = effective_n(weight) if varied else float(len(unit_level))
    audited = audited_class(data, r, n, 1.0 - confidence)
    held = next((c.tolerance.threshold for c in evidence.certificate.classes if c.risk == r), np.inf)
    place = place_at_most(evidence, min(held, evidence.certificate.audit_level))
    tally = Tally(min(float(evidence.shares.under[r][place]) * n, n), n)
    if not varied:
        tally = Tally(float(round(tally.k)), n)
    bound = upper_bound(tally.k, tally.n, confidence) if audited is None else audited.bound(tally.k)
    figures = Figures(observed=clean(tally.rate), bound=bound, k=clean(tally.k), n=clean(tally.n))
    seen = _Seen(gate, limit, n, tally, bound, figures, audited, data.tiers[0])
    if audited is not None and evidence.fixed and evidence.certificate.audit_level < 1.0:
        text = f"{label}: {seen.text}; the audit was made where more goes up, so it says nothing here"
        return gate.of(Status.INSUFFICIENT, f"{text}; audit the labels at this point", figures=figures)
    if rule.on_estimate:
        return _on_estimate(evidence, r, seen)
    if evidence.measures.settings.delta is None:
        return gate.of(Status.INSUFFICIENT, f"{label}: {seen.text}; {SPENT}", figures=figures)
    if audited is not None and audited.label_limit(limit) is None:
        return _no_room(seen, audited)
    if evidence.fixed:
        return _at_fixed_point(evidence, r, seen)
    if held == -np.inf:
        return _too_few(seen, 1.0 - confidence)
    certifiable = evidence.measures.settings.certifiable
    status = Status.CERTIFIED if certifiable else _uncertifiable(evidence, r)
    text = f"{label}: {seen.text} (limit {percent(limit)})"
    if not certifiable:
        text = f"NOT CERTIFIED (approximate: cross-fitted). {text}"
        if status is Status.INSUFFICIENT:
            text += "; the costliest class needs the frozen scores of a router trained on other items"
    return gate.of(status, text, basis="bound", figures=figures)


def _on_estimate(evidence: Evidence, r: int, seen: _Seen) -> Gate:
    data, gate, tally, limit = evidence.measures.data, seen.gate, seen.tally, seen.limit
    found = "" if seen.audited is None else f"{_audit_text(seen.audited, seen.cheapest)}; "
    text = (
        f"NOT CERTIFIED (policy). {data.risk_classes[r]}: {count_text(tally.k)} of {count_text(tally.n)} "
        f"under-routed, {percent(tally.rate)}; {found}could be {percent(seen.bound)}. Limit {percent(limit)}. A "
        "threshold set on the estimate breaks the limit in more than half of studies"
    )
    if tally.rate <= seen_limit(data, r, seen.n, limit) + 1e-12:
        return gate.of(Status.ESTIMATE, text, basis="estimate", figures=seen.figures)
    text = f"{gate.label}: {seen.text} (limit {percent(limit)}, judged on the estimate)"
    broken = Status.VIOLATED if evidence.fixed or evidence.feasible else Status.INFEASIBLE
    lower = lower_bound(tally.k, tally.n, confidence_of(evidence)) or 0.0
    if evidence.fixed and lower <= limit:
        broken = Status.INSUFFICIENT
    return gate.of(broken, text, basis="estimate", figures=seen.figures)


def _at_fixed_point(evidence: Evidence, r: int, seen: _Seen) -> Gate:
    """Tested from both sides; an audit lowers what the labelled rate may be, and shows no limit broken."""
    settings, audited = evidence.measures.settings, seen.audited
    assert settings.delta is not None
    text = f"{seen.gate.label}: {seen.text} (limit {percent(seen.limit)})"
    otherwise = None if settings.certifiable else _uncertifiable(evidence, r)
    lower = lower_bound(seen.tally.k, seen.n, 1.0 - settings.delta) or 0.0
    if audited is None or lower > seen.limit:
        return fixed_gate(
            seen.gate, text, seen.tally, seen.limit, settings.delta, seen.figures, otherwise=otherwise
        )
    room = audited.label_limit(seen.limit)
    assert room is not None
    alone = upper_bound(seen.tally.k, seen.n, 1.0 - audited.half)
    if alone is not None and alone <= room:
        return seen.gate.of(otherwise or Status.CERTIFIED, text, figures=seen.figures)
    more = missing_n(seen.tally.k, seen.n, room, audited.half)
    text = f"{text}; {more_text(more, seen.gate.n_is)}"
    return seen.gate.of(Status.INSUFFICIENT, text, missing_n=more, figures=seen.figures)


def _too_few(seen: _Seen, delta: float) -> Gate:
    limit, spend, with_audit = seen.limit, delta, ""
    if seen.audited is not None:
        limit, spend = seen.audited.label_limit(seen.limit) or 0.0, seen.audited.half
        with_audit = f" with this audit, which leaves {percent(limit)} to the labelled rate,"
    more = missing_n(0, seen.n, limit, spend) if limit > 0 else None
    need = required_n(limit, 0, spend) if limit > 0 else None
    text = (
        f"{seen.gate.label}: {count_text(seen.n)} {seen.gate.n_is}{with_audit} cannot certify "
        f"{percent(seen.limit)} even without an error"
    ) + (f"; {need:,} without an error would ({more:,} more)" if more and need else "; no n certifies 0")
    return seen.gate.of(Status.INSUFFICIENT, text, missing_n=more, figures=seen.figures)


def _no_room(seen: _Seen, audited: AuditedClass) -> Gate:
    """The missed needs alone may reach the limit, or do."""
    label, limit, counts = seen.gate.label, seen.limit, audited.counts
    found = _audit_text(audited, seen.cheapest)
    figures = Figures(bound=audited.bound(0), n=seen.figures.n)  # of the audited point, at its best
    if audited.share_lower > limit:
        text = (
            f"{label}: the audit leaves no room: {found}, and at least {percent(audited.share_lower)} (limit "
            f"{percent(limit)}); put the labels right, or audit them where more goes up"
        )
        return replace(seen.gate.of(Status.INFEASIBLE, text, figures=figures), by_labels=True)
    text = f"{label}: the audit leaves no room: {found} (limit {percent(limit)})"
    need = None if counts.needs_audited else _audit_needed(audited, limit)
    if counts.needs_audited:
        text += "; audit more of both, or put the labels right"
    elif need is not None and counts.audited < need <= counts.cheap_labels:
        text += f"; {need - counts.audited:,} more audited without another missed need would leave some"
    else:
        text += "; label more needs, or audit them where more goes up"
    return replace(seen.gate.of(Status.INSUFFICIENT, text, figures=figures), by_labels=True)


def _audit_needed(audited: AuditedClass, limit: float) -> int | None:
    """How many cheap labels must be audited, without another missed need, for eta to be below the limit."""
    counts = audited.counts
    if counts.audited == 0:
        return None
    most = limit * audited.n / (1.0 if audited.grouped else 1.0 - limit)
    rate = min(1.0, most / (counts.cheap_labels * counts.scale))
    return required_n(rate, counts.missed, audited.half) if rate > counts.missed / counts.audited else None


def _audit_text(audited: AuditedClass, cheapest: str) -> str:
    counts, wrong = audited.counts, ""
    if counts.needs_audited:
        wrong = (
            f"; {counts.needs_wrong:,} of {counts.needs_audited:,} drawn needs are labelled wrongly, at most "
            f"{percent(min(1.0, audited.wrong))}"
        )
    if counts.cheap_labels == 0:
        return f"nothing labelled {cheapest} stays below the strongest tier, so no need is missed there{wrong}"
    most = (
        f"missed needs are at most {percent(audited.share)} of the labelled ones"
        if audited.grouped
        else f"at most {percent(audited.share)} of the needs are labelled so"
    )
    seen = f"{counts.missed:,} of {counts.audited:,} drawn items labelled {cheapest}"
    return f"{seen} turned out to need more, {most}{wrong}"


def _uncertifiable(evidence: Evidence, r: int) -> Status:
    """What a bound on cross-fitted scores is worth: approximate, which the costliest class may not rest on."""
    losses = [rule.under_route_loss_usd for rule in evidence.measures.settings.classes]
    return Status.INSUFFICIENT if losses[r] == max(losses) else Status.ESTIMATE
