"""The result of a routing study as one strict-JSON document: every view is made from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from evalkit import __version__
from evalkit.gates import Gate, StopRule
from evalkit.outcomes.table import Outcomes
from evalkit.routing.analysis import RoutingResult
from evalkit.routing.data import RoutingData
from evalkit.routing.points import OperatingPoint, clean
from evalkit.routing.units import rule_text
from evalkit.statistics.bounds import upper_bound
from evalkit.study.models import RoutingStudy
from evalkit.workflows.label_audit_result import audit_part, audited_bound, needs_audited
from evalkit.workflows.looks import Look
from evalkit.workflows.tiers import by_tier, cost_matrix

__all__ = [
    "SCHEMA",
    "gate_document",
    "guarantee",
    "point_document",
    "policy_row",
    "result_document",
    "stop_rule_document",
    "with_reasons",
]

SCHEMA = "evalkit.route-sweep/1"

Document = dict[str, Any]


def result_document(
    study: RoutingStudy,
    result: RoutingResult,
    *,
    others: Sequence[RoutingResult],
    outcomes: Outcomes | None,
    look: Look,
    intervals: Mapping[str, Mapping[str, tuple[float, float]]],
    worst_items: Sequence[Document],
    worst_total: int,
    provenance: Document,
    notices: Sequence[str],
    evidence_limits: Sequence[str],
    headline: str | None = None,
    next_step: str | None = None,
    routers: Mapping[str, Any] = MappingProxyType({}),
) -> Document:
    """result.json of a run. `intervals` by point name; `others` are the router's policies that were not chosen.

    headline, next_step: in place of the verdict's, where the router has to be named. routers: what is said of
    several.
    """
    data = result.measures.data
    per_tier = data.demand is not None and data.demand.ndim == 2
    rule = (
        "as the decisions say"
        if result.policy == "decisions"
        else rule_text(study.router.higher_means != "cheap_is_enough", result.policy, data.k, per_tier)
    )

    def point(p: OperatingPoint | None) -> Document | None:
        if p is None:
            return None
        known = "shown" if p.thresholds == result.shown.thresholds or p.name in {"selected", "judged"} else p.name
        return point_document(p, data, result, intervals.get(known, {}))

    cross = result.cross_fitted
    document = {
        "schema": SCHEMA,
        "evalkit_version": __version__,
        "study": study.name,
        "description": study.description,
        "verdict": {
            "decision": result.verdict.decision.value,
            "headline": headline or result.verdict.headline,
            "reasons": list(result.verdict.reasons),
            "uncertified": list(result.verdict.uncertified),
            "next_step": result.verdict.next_step if next_step is None else next_step,
        },
        "policy": result.policy,
        "policies_compared": [policy_row(r) for r in (result, *others)] if others else [],
        **routers,
        "rule": rule,
        "tiers": [
            {"name": t.name, "model": t.model, "params": {str(k): _plain(v) for k, v in t.params.items()}}
            for t in study.tiers
        ],
        "risk_classes": [
            {
                "name": name,
                "under_route_loss_usd": r.under_route_loss,
                "max_under_route": r.max_under_route,
                "gate_on": r.gate_on,
                "weight": r.weight,
            }
            for name, r in study.risk.items()
        ],
        "counts": _counts(data, outcomes, result),
        "selected": point(result.selected),
        "candidate": point(result.candidate),
        "judged": point(result.judged),
        "shown": point(result.shown),
        "t_hi": _thresholds(result.highest),
        "t_lo": _thresholds(result.lowest),
        "thresholds_evaluated": result.thresholds_evaluated,
        "points": [point(p) for p in result.points],
        "baselines": {name: point(b.point) for name, b in result.baselines.items()},
        "by_tier": by_tier(result, outcomes),
        "cost_matrix_usd": cost_matrix(result),
        "gates": [gate_document(g) for g in result.gates],
        "stop_rules": [stop_rule_document(rule) for rule in result.stop_rules],
        "comparisons": [
            {
                "against": c.against,
                "what": c.what,
                "difference": clean(c.difference.mean),
                "lower": clean(c.difference.lower),
                "upper": clean(c.difference.upper),
                "n": c.difference.n,
                "better": _better(c.what, c.difference.lower, c.difference.upper),
            }
            for c in result.comparisons
        ],
        "separation": None
        if result.separation is None
        else {
            "auc": clean(result.separation.auc),
            "lower": clean(result.separation.lower),
            "upper": clean(result.separation.upper),
            "n_needs": result.separation.n_positive,
            "n_other": result.separation.n_negative,
            "detail": "area under the ROC curve of the score for needs against other solvable items, logit-DeLong",
        },
        **audit_part(result),
        "cross_fitted": None
        if cross is None
        else {
            "routing_loss_usd": cross.routing_loss_usd,
            "lower": cross.lower,
            "upper": cross.upper,
            "folds": 10,
            "n": cross.n,
            "detail": "approximate: total over the certifying items at thresholds chosen without them",
        },
        "routing_loss_upper_usd": result.routing_loss_upper_usd,
        **_or_reason("guarantee", guarantee(study, result, look), "nothing is approved, so nothing is promised"),
        "looks": {"declared": look.declared, "this": look.number, "delta": look.delta, "recorded": look.recorded},
        "diagnostics": _diagnostics(result),
        "notices": list(notices),
        "evidence_limits": list(evidence_limits),
        "percentile_convention": "nearest rank over answered samples, weighted by traffic",
        "worst_items": list(worst_items),
        "worst_items_total": worst_total,
        "items_file": "items.jsonl.gz",
        "provenance": provenance,
    }
    explained: Document = with_reasons(document)
    return explained


_REASONS = {
    "description": "the study has none",
    "model": "none is named",
    "requested": "the study names no model",
    "max_under_route": "the class has no limit",
    "selected": "nothing is approved",
    "candidate": "no threshold that was searched for keeps every limit as observed",
    "judged": "no point was fixed in advance",
    "t_hi": "the range has no end here, or nothing is certified",
    "t_lo": "the range has no end here, or nothing is certified",
    "separation": "no scores, or the items do not hold both kinds",
    "cross_fitted": "given for a selected threshold only",
    "routing_loss_upper_usd": "some costs are unknown",
    "answered": "no outcomes",
    "unanswered": "no outcomes",
    "samples": "no outcomes",
    "groups": "no two items share a group",
    "missing_n": "settled, or more would not settle it",
    "upper_bound": "not statable",
    "lower_bound": "not statable",
    "observed": "not measured",
    "limit": "the gate asks for completeness",
    "confidence": "not a statistical gate",
    "triggered": "could not be worked out",
    "delta": "this look spends nothing",
    "outcomes": "none were given",
    "scores": "none were given",
    "decisions": "none were given",
    "prices": "no card was used",
    "better": "the interval holds 0, or there is none",
    "trained_on": "the study does not say",
    "calibration": "no item has both a score and weight",
}


def with_reasons(value: Any) -> Any:
    """The document with a `<key>_reason` beside every null that has none."""
    if isinstance(value, list):
        return [with_reasons(v) for v in value]
    if not isinstance(value, dict):
        return value
    out: Document = {}
    for key, inner in value.items():
        out[key] = with_reasons(inner)
        if inner is None and not key.endswith(("_reason", "_note")) and f"{key}_reason" not in value:
            out[f"{key}_reason"] = _REASONS.get(key, "not known")
    return out


def guarantee(study: RoutingStudy, result: RoutingResult, look: Look) -> str | None:
    """The sentence that may be said of an approved point, and no more; None where none may.

    Of M routers and policies each spent delta / M. Which of them is chosen depends on the items, so that of the
    chosen one delta holds (the union of M errors), not its part.
    """
    if result.selected is None:
        return None
    if look.delta is None or result.measures.settings.delta is None or not result.measures.settings.certifiable:
        return None
    delta = look.delta
    one, both = _share(delta), _share(2 * delta)
    several = (
        "" if study.shared == 1 else f", whichever of the {study.shared} routers and policies tried is chosen"
    )
    audited = result.measures.data.audit is not None
    opening = "If these labels are a random sample of the traffic and are right, "
    if audited:
        opening = (
            "If these labels are a random sample of the traffic, those above the cheapest tier are right, and so "
            "are the judgements of the audit, "
        )
        if needs_audited(result):
            opening = (
                "If these labels are a random sample of the traffic, those that say unsolvable are right, and so "
                "are the judgements of the audit, "
            )
    limit = "limit on the true under-route rate" if audited else "under-route limit"
    halves = (
        f" ({_share(delta / 2)} for the rate among the labelled needs, as much for the audit)" if audited else ""
    )
    if result.judged is not None:
        return (
            opening
            + "a threshold fixed in advance that truly breaks one of these limits is shown as keeping all of "
            f"them in at most {one} of studies{halves}{several}."
        )
    return (
        opening + f"a study run this way selects a threshold that breaks any certified {limit} in at most "
        f"{one} of studies, all risk classes together{halves}{several}; the certified escalation and latency "
        f"limits, separately, in at most {one}; all together in at most {both}."
    )


def point_document(
    p: OperatingPoint, data: RoutingData, result: RoutingResult, intervals: Mapping[str, tuple[float, float]]
) -> Document:
    """An operating point; a figure that is null has its reason beside it."""
    delta = result.measures.settings.delta
    confidence = result.measures.settings.confidence if delta is None else 1.0 - delta
    no_cost = "no outcomes" if data.tier_cost_usd is None else "some costs are unknown"
    no_outcomes = "no outcomes"
    out: Document = {
        "name": p.name,
        "thresholds": list(p.thresholds),
        "escalation_rate": p.escalation_rate,
        "under_route_count": p.under_route_count,
        **_or_reason("under_route_rate", p.under_route_rate, "0 needs"),
        **_or_reason("risk_weighted_under_route", p.risk_weighted_under_route, "no solvable item has risk weight"),
        "unnecessary_escalation_count": p.unnecessary_escalation_count,
        **_or_reason("contract_failure_count", p.contract_failure_count, no_outcomes),
        "under_route_loss_usd": p.under_route_loss_usd,
        **_or_reason("unnecessary_escalation_usd", p.unnecessary_escalation_usd, no_cost),
        **_or_reason("contract_loss_usd", p.contract_loss_usd, no_outcomes),
        **_or_reason("routing_loss_usd", p.routing_loss_usd, no_cost),
        **_or_reason(
            "routing_loss_corrected_usd",
            result.cross_fitted.routing_loss_usd if result.cross_fitted and p.name == "selected" else None,
            "given for a selected threshold only" if p.name != "selected" else "the folds are too small",
        ),
        **_or_reason("expected_total_usd", p.expected_total_usd, no_cost),
        **_or_reason("cost_usd_total", p.cost_usd_total, no_cost),
        **_or_reason("cost_usd_per_request", p.cost_usd_per_request, no_cost),
        **_or_reason("saving_usd_vs_strongest", p.saving_usd_vs_strongest, no_cost),
        **_or_reason("saving_on_unsolvable_usd", p.saving_on_unsolvable_usd, no_cost),
        **_pass_counts(p, data),
        **_or_reason("pass_rate", p.pass_rate, no_outcomes if data.passed is None else "0 answered"),
        **_or_reason("pass_rate_lower", p.pass_rate_lower, no_outcomes),
        **_or_reason("pass_rate_upper", p.pass_rate_upper, no_outcomes),
        **_p95(p),
        "by_risk": {},
        "confusion": [list(row) for row in p.confusion],
        "confusion_weighted": [list(row) for row in p.confusion_weighted],
        "confusion_loss_usd": [list(row) for row in p.confusion_loss_usd],
        **_or_reason("accuracy", p.accuracy, "0 solvable items"),
        "intervals": {name: [clean(low), clean(high)] for name, (low, high) in intervals.items()},
    }
    for r, (name, figures) in enumerate(zip(data.risk_classes, p.by_risk, strict=True)):
        bound = upper_bound(figures.under_route_count, figures.needs, confidence)
        why = "0 needs: not statable"
        if data.audit is not None:
            bound, why = audited_bound(result, p, r)
        out["by_risk"][name] = {
            "needs": figures.needs,
            "under_route_count": figures.under_route_count,
            **_or_reason("under_route_rate", figures.under_route_rate, "0 needs"),
            **_or_reason("under_route_upper_bound", clean(bound), why),
            "confusion": [list(row) for row in figures.confusion],
        }
    return out


def stop_rule_document(rule: StopRule) -> Document:
    """A stop rule as result.json has it; one that does not apply is not triggered."""
    return {
        "name": rule.name,
        "triggered": rule.triggered if rule.applies else False,
        "applies": rule.applies,
        "on_trigger": rule.on_trigger,
        "detail": rule.detail,
    }


def gate_document(gate: Gate) -> Document:
    """One gate; the bound is named by the side it is on."""
    side = "upper_bound" if gate.limit_is == "max" else "lower_bound"
    return {
        "name": gate.name,
        "label": gate.label,
        "limit": gate.limit,
        "limit_is": gate.limit_is,
        "unit": gate.unit,
        "observed": gate.observed,
        side: gate.bound,
        "k": gate.k,
        "n": gate.n,
        "n_is": gate.n_is,
        "status": gate.status.value,
        "missing_n": gate.missing_n,
        "message": gate.message,
        "basis": gate.basis,
        "confidence": gate.confidence,
    }


def _pass_counts(p: OperatingPoint, data: RoutingData) -> Document:
    """How many items passed and were answered, where each counts once: one sample, equal weights."""
    single = data.sampled is None and data.replied is not None and data.replied.shape[2] == 1
    if not single or np.ptp(data.weight) > 0 or p.pass_rate_lower is None or p.pass_rate_upper is None:
        return {}
    unanswered = round((p.pass_rate_upper - p.pass_rate_lower) * data.n)
    return {"passed_count": round(p.pass_rate_lower * data.n), "answered_count": data.n - unanswered}


def _p95(p: OperatingPoint) -> Document:
    if p.p95_task is None:
        return {
            **_or_reason("p95_task_s", None, "no task times"),
            "p95_task_n": 0,
            "p95_task_censored": 0,
            "p95_task_note": None,
        }
    seen = p.p95_task
    reason = f"{seen.unknown} times unknown" if seen.unknown else "0 values"
    note = None
    if seen.value is not None and seen.n < 20:
        note = "equals maximum, n too small"
    elif seen.value is not None and seen.n < 59:
        note = "no upper bound is statable below 59 values"
    return {
        **_or_reason("p95_task_s", clean(seen.value), reason),
        "p95_task_n": seen.n,
        "p95_task_censored": seen.unanswered,
        "p95_task_note": note,
    }


def _or_reason(key: str, value: Any, reason: str) -> Document:
    return {key: value} if value is not None else {key: None, f"{key}_reason": reason}


def _counts(data: RoutingData, outcomes: Outcomes | None, result: RoutingResult) -> Document:
    answered = unanswered = samples = None
    if outcomes is not None:
        shown = result.tier.astype(np.int64)[:, None, None]
        at = np.take_along_axis(outcomes.answered & outcomes.present, shown, axis=1)[:, 0]
        any_answer = at.any(axis=1)
        answered, unanswered = int(any_answer.sum()), int((~any_answer).sum())
        samples = int(outcomes.present.shape[2])
    return {
        "items": data.n,
        "answered": answered,
        "unanswered": unanswered,
        "unsolvable": int((~data.solvable).sum()),
        "needs": int(data.needs.sum()),
        "samples": samples,
        "groups": None if data.group is None else int(data.group.max()) + 1,
        "weight_zero": int((data.weight == 0).sum()),
        "certifying": result.certifying,
    }


def policy_row(result: RoutingResult) -> Document:
    """One policy beside others of the same router."""
    return {
        "policy": result.policy,
        "decision": result.verdict.decision.value,
        "headline": result.verdict.headline,
        "thresholds": list(result.shown.thresholds),
        "cost_usd_per_request": result.shown.cost_usd_per_request,
        "expected_total_usd": result.shown.expected_total_usd,
        "pass_rate_lower": result.shown.pass_rate_lower,
        "escalation_rate": result.shown.escalation_rate,
    }


def _better(what: str, lower: float | None, upper: float | None) -> bool | None:
    if lower is None or upper is None or lower <= 0 <= upper:
        return None
    return lower > 0 if what == "pass_rate" else upper < 0


def _diagnostics(result: RoutingResult) -> list[str]:
    out = []
    if result.judged is None and result.selected is None:
        out.append(
            "No threshold is recommended. A gate that passes here is shown at the threshold where its own limit "
            "is kept; the rows need not hold at one threshold together."
        )
    for name, threshold in result.without:
        if threshold is None:
            out.append(f"Without class {name} no threshold would be selected either.")
        else:
            out.append(
                f"Without class {name} the threshold would be {threshold!r}; it is shown to size the gap only."
            )
    if result.certifying < result.measures.data.n:
        out.append(
            "Counts of missing labels are of certifying items, which are three in five of those drawn. "
            f"Three or more tiers: {result.measures.data.n - result.certifying:,} items found the direction "
            f"of the path, the other {result.certifying:,} certify along it."
        )
    return out


def _thresholds(values: tuple[float, ...] | None) -> list[float] | None:
    return None if values is None else list(values)


def _share(value: float) -> str:
    return f"{100 * value:.4g} %"


def _plain(value: object) -> object:
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
