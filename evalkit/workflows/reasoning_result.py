"""The result of a reasoning-budget study as one strict-JSON document: every view is made from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evalkit import __version__
from evalkit.reasoning.analysis import LadderResult
from evalkit.reasoning.arms import ArmFigures, Tokens
from evalkit.reasoning.steps import Marginal, Step
from evalkit.statistics.rounding import clean
from evalkit.study.reasoning_models import Arm, ReasoningStudy
from evalkit.study.wire import MAP_SOURCE, expected_wire
from evalkit.workflows.looks import Look
from evalkit.workflows.reasoning_assemble import AssembledLadder
from evalkit.workflows.result import gate_document, stop_rule_document, with_reasons

__all__ = ["REASONING_SCHEMA", "ladder_guarantee", "reasoning_document"]

REASONING_SCHEMA = "evalkit.reasoning-budget/1"

Document = dict[str, Any]


def reasoning_document(
    study: ReasoningStudy,
    assembled: AssembledLadder,
    result: LadderResult,
    *,
    look: Look,
    worst_items: Sequence[Document],
    worst_total: int,
    provenance: Document,
    notices: Sequence[str],
    evidence_limits: Sequence[str],
) -> Document:
    """result.json of a run."""
    names = result.data.arms
    detectable = result.minimum_detectable_gain

    def name(arm: int | None) -> str | None:
        return None if arm is None else names[arm]

    document = {
        "schema": REASONING_SCHEMA,
        "evalkit_version": __version__,
        "study": study.name,
        "description": study.description,
        "verdict": {
            "decision": result.verdict.decision.value,
            "headline": result.verdict.headline,
            "reasons": list(result.verdict.reasons),
            "uncertified": list(result.verdict.uncertified),
            "next_step": result.verdict.next_step,
        },
        "counts": _counts(result),
        "risk_classes": [
            {"name": risk, "max_failure": rule.max_failure, "gate_on": rule.gate_on}
            for risk, rule in study.risk.items()
        ],
        "value_per_point_usd": study.value_per_point_usd,
        "smallest_worthwhile_gain_points": study.smallest_worthwhile_gain,
        "arms": [_arm_document(study, assembled, result, arm, a, look) for a, arm in enumerate(assembled.arms)],
        "selected": name(result.selected),
        "candidate": name(result.candidate),
        "shown": names[result.shown],
        **_or_reason("plateau_at", name(result.plateau_at), _no_plateau(study, result, look)),
        **_or_reason(
            "best_at_value",
            name(result.best_at_value),
            "no value per point is stated" if study.value_per_point_usd is None else "no arm has a known cost",
        ),
        **_or_reason(
            "minimum_detectable_gain_points",
            None if detectable is None else clean(100.0 * detectable),
            "there is one arm" if len(names) == 1 else "there are too few tasks",
        ),
        "gates": [gate_document(g) for g in result.gates[result.shown]],
        "stop_rules": [stop_rule_document(rule) for rule in result.stop_rules],
        "acceptability": None
        if result.acceptability is None
        else {
            "usd_per_point": list(result.acceptability.usd_per_point),
            "arms": [names[a] for a in result.acceptability.arms],
            "shares": [list(row) for row in result.acceptability.shares],
        },
        "step_level": clean(result.settings.level_per_step(len(names))),
        "arm_level": clean(result.settings.delta_per_arm(len(names))),
        "confidence": study.confidence,
        "guarantee": ladder_guarantee(result, look),
        "looks": {"declared": look.declared, "this": look.number, "delta": look.delta, "recorded": look.recorded},
        "notices": list(notices),
        "evidence_limits": list(evidence_limits),
        "percentile_convention": "nearest rank over answered runs, weighted by traffic",
        "worst_items": list(worst_items),
        "worst_items_total": worst_total,
        "items_file": "items.jsonl.gz",
        "provenance": provenance,
    }
    explained: Document = with_reasons(document)
    return explained


def ladder_guarantee(result: LadderResult, look: Look) -> str | None:
    """The sentence that may be said of a recommendation, and no more; None where none may."""
    if look.delta is None or result.settings.delta is None:
        return None
    share = f"{100 * result.settings.delta:.4g} %"
    return (
        "If these tasks are a random sample of the traffic and their grades are right, a study run this way "
        f"recommends an arm that breaks any certified limit in at most {share} of studies, all limits and all "
        'arms together. A mean cost is judged on its estimate. Of the steps, a wrong "worth it", a wrong "not '
        f'worth it" and a wrong plateau each come in at most {share} of studies.'
    )


def _no_plateau(study: ReasoningStudy, result: LadderResult, look: Look) -> str:
    if study.smallest_worthwhile_gain is None:
        return "no smallest worthwhile gain is stated"
    if look.delta is None:
        return "this look certifies nothing"
    if len(result.arms) == 1:
        return "there is one arm"
    return (
        f"no arm is shown to be followed only by steps that gain less than {study.smallest_worthwhile_gain:g} "
        f"point{'' if study.smallest_worthwhile_gain == 1 else 's'}"
    )


def _counts(result: LadderResult) -> Document:
    data = result.data
    answered = (data.answered & data.sampled).any(axis=(1, 2))
    return {
        "items": data.n,
        "answered": int(answered.sum()),
        "unanswered": int((~answered).sum()),
        "runs": int(data.sampled.sum()),
        "samples": int(data.sampled.sum(axis=2).max(initial=0)),
        "groups": None if data.group is None else int(data.group.max()) + 1,
        "weight_zero": int((data.weight == 0).sum()),
    }


def _arm_document(
    study: ReasoningStudy, assembled: AssembledLadder, result: LadderResult, arm: Arm, a: int, look: Look
) -> Document:
    seen, names = result.arms[a], result.data.arms
    step = result.steps[a - 1] if a else None
    return {
        "name": arm.name,
        "model": arm.model,
        **_or_reason("requested_budget", arm.requested, "the study states none"),
        **_sent(study, arm),
        "merged": list(assembled.merged.get(arm.name, ())),
        "tasks": seen.tasks,
        "runs": seen.runs,
        "answered": seen.answered,
        "abstained": seen.abstained,
        "budget_exhausted": seen.exhausted,
        "contract_failures": seen.contract_failed,
        **_or_reason("attempts", seen.attempts, "not recorded for every run"),
        **_or_reason("pass_rate", seen.pass_rate, "0 answered"),
        "pass_rate_lower": seen.pass_rate_lower,
        "pass_rate_upper": seen.pass_rate_upper,
        **_or_reason("pass_rate_interval", _ends(seen.interval), "too few tasks"),
        "pass_rate_interval_method": seen.interval_method,
        "risk_failure": _risk(result, seen),
        **_tokens("input_tokens_per_request", seen.input),
        **_tokens("output_tokens_per_request", seen.output),
        **_tokens("billed_tokens_per_request", seen.billed),
        **_tokens("reasoning_tokens_per_request", seen.reasoning),
        "usage_missing": seen.billed.missing,
        **_or_reason("cost_usd_per_request", seen.cost_usd, _cost_reason(seen)),
        **_or_reason("cost_interval", _ends(seen.cost_interval), _cost_reason(seen, "too few tasks")),
        **_p95(seen),
        **_price(result.marginals[a], names, seen),
        "flips": None
        if step is None
        else {
            "gained": step.flips.gained,
            "broken": step.flips.broken,
            "gained_tasks": step.flips.gained_tasks,
            "broken_tasks": step.flips.broken_tasks,
        },
        **_step(study, step, names, look),
        "meets_all_limits": a in result.certified,
        "gates": [gate_document(g) for g in result.gates[a]],
    }


def _sent(study: ReasoningStudy, arm: Arm) -> Document:
    """What is known to have reached the provider; where it was not recorded, what the named client makes of it."""
    out: Document = {}
    out |= _or_reason("sent", None if arm.sent is None else _plain(arm.sent), "the study records no body")
    if arm.sent is None and arm.recorded and study.client == "litellm":
        wire, remark = expected_wire(arm)
        out["expected_on_the_wire"] = _plain(wire)
        out["expected_by"] = MAP_SOURCE + (f"; {remark}" if remark else "")
    return out


def _risk(result: LadderResult, seen: ArmFigures) -> Document:
    out: Document = {}
    for name, found in zip(result.data.risk_classes, seen.risk, strict=True):
        out[name] = {
            "tasks": found.tasks,
            "failed": found.failed,
            **_or_reason("rate", found.rate, "0 tasks"),
            **_or_reason("upper_bound", found.upper_bound, "0 tasks: not statable"),
            "n": found.n,
            "n_is": found.units,
        }
    return out


def _tokens(key: str, tokens: Tokens) -> Document:
    return _or_reason(key, tokens.per_request, "no run has usage")


def _cost_reason(seen: ArmFigures, otherwise: str = "cost unknown") -> str:
    return f"{seen.cost_unknown:,} costs unknown" if seen.cost_unknown else otherwise


def _p95(seen: ArmFigures) -> Document:
    p95 = seen.p95
    reason = f"{p95.unknown:,} times unknown" if p95.unknown else "0 values"
    note = None
    if p95.value is not None and p95.n < 20:
        note = "equals maximum, n too small"
    elif p95.value is not None and p95.upper is None and seen.tasks < 59:
        note = "no upper bound is statable below 59 tasks"
    return {
        **_or_reason("p95_task_s", p95.value, reason),
        "p95_task_n": p95.n,
        "p95_task_censored": p95.unanswered,
        "p95_task_note": note,
        **_or_reason("p95_task_upper_s", p95.upper, "not statable"),
    }


def _price(marginal: Marginal, names: Sequence[str], seen: ArmFigures) -> Document:
    """Where the arm stands to the frontier, and the price of a quality point from the arm before it there."""
    key = "marginal_cost_per_quality_point"
    status = None if marginal.status is None else marginal.status.value
    out = _or_reason("status", status, _cost_reason(seen))
    price = marginal.price
    if price is None or price.ratio is None:
        if price is not None:
            reason = price.reason or "no measurable gain"
        elif marginal.status is None:
            reason = _cost_reason(seen)
        else:
            reason = "least costly arm" if status == "frontier" else f"{status}".replace("_", " ")
        out |= {**_or_reason(key, None, reason), "marginal_cost_interval": None}
    else:
        ends = None if price.lower is None or price.upper is None else [clean(price.lower), clean(price.upper)]
        out |= {key: clean(price.ratio), "marginal_cost_interval": ends}
    out["marginal_cost_against"] = None if marginal.against is None else names[marginal.against]
    return out


def _step(study: ReasoningStudy, step: Step | None, names: Sequence[str], look: Look) -> Document:
    """The step from the arm declared before: gain in points and net benefit in USD per request."""
    if step is None:
        first = "the first arm"
        return {
            **_or_reason("gain_vs_previous", None, first),
            **_or_reason("net_benefit_vs_previous", None, first),
            **_or_reason("detectable_gain_points", None, first),
        }
    gain, bounds = step.gain, step.gain_bounds
    out: Document = {
        "gain_vs_previous": {
            "against": names[step.before],
            "points": _points(gain.mean),
            "lower": _points(gain.lower),
            "upper": _points(gain.upper),
            "lower_at_step_level": _points(bounds.lower),
            "upper_at_step_level": _points(bounds.upper),
            "n": gain.n,
        }
    }
    benefit = step.benefit
    if benefit is None or look.delta is None:
        why = "no value per point is stated" if study.value_per_point_usd is None else "some costs are unknown"
        if benefit is not None:
            why = "this look certifies nothing"
        out |= _or_reason("net_benefit_vs_previous", None, why)
    else:
        out["net_benefit_vs_previous"] = {
            "against": names[step.before],
            "value": clean(benefit.value),
            "lower": clean(benefit.lower),
            "upper": clean(benefit.upper),
            "decision": benefit.decision.value,
        }
    return out | _or_reason("detectable_gain_points", _points(step.detectable), "too few tasks")


def _points(share: float | None) -> float | None:
    return None if share is None else clean(100.0 * share)


def _ends(ends: tuple[float, float] | None) -> list[float] | None:
    return None if ends is None else [ends[0], ends[1]]


def _or_reason(key: str, value: Any, reason: str) -> Document:
    return {key: value} if value is not None else {key: None, f"{key}_reason": reason}


def _plain(value: object) -> Any:
    """A value of a study as JSON: decimals become floats, everything that is no JSON its text."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if value is None or isinstance(value, str | bool | int):
        return value
    number = float(str(value)) if not isinstance(value, float) else value
    return number if np.isfinite(number) else str(value)
