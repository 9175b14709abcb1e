"""What the evidence of a routing run does not cover, in sentences for the approver."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evalkit.outcomes.table import Outcomes
from evalkit.routing.analysis import RoutingResult
from evalkit.statistics.paired import paired_difference
from evalkit.workflows.label_audit_result import audit_sentences
from evalkit.workflows.looks import Look
from evalkit.workflows.router_evidence import router_sentences

if TYPE_CHECKING:
    from evalkit.workflows.route_sweep import Inputs

__all__ = ["common_sentences", "evidence_limits", "unanswered_sentences"]

_LABELS = {
    "human": "Required tiers were set by people.",
    "author_rule": "Required tiers are author labels: a written rule set them, not independent annotators.",
    "derived": "Required tiers are derived from the outcomes (the least tier that passed), not judged by people.",
    "model": "Required tiers were set by a model, not by people.",
}


def evidence_limits(inputs: Inputs, result: RoutingResult, look: Look) -> list[str]:
    """Sentences, weightiest first."""
    study, data = inputs.study, inputs.assembled.data
    out = [
        _LABELS[inputs.labels_kind],
        *audit_sentences(result, None if inputs.audit is None else inputs.audit.facts),
    ]
    if look.audit_left_out:
        out.append(
            "These labels were audited, and this run leaves the audit out: nothing is certified without it. Name "
            "it in the study (audit: ...)."
        )
    elif look.delta is None:
        out.append(
            f"This is look {look.number} at these labels and {look.declared} declared: nothing is certified any "
            "more. Label a fresh sample, or declare the number of looks before the first."
        )
    elif look.declared > 1:
        out.append(f"Look {look.number} of {look.declared} declared: each spends its part of the error rate.")
    if not look.recorded:
        out.append(
            "The record of looks beside the labels could not be written, so later looks will not be counted."
        )
    if inputs.outcomes is not None:
        out += unanswered_sentences(inputs.outcomes)
        out += common_sentences(inputs, result)
    if study.limits.min_pass_rate is None:
        out.append("No limit on the pass rate is set: no gate judges what the tiers got right, only the labels.")
    out += router_sentences(inputs)
    if inputs.assembled.assumed_costs:
        out.append(f"{inputs.assembled.assumed_costs:,} outcome costs are the tier's assumed cost per request.")
    if inputs.priced is not None and inputs.priced.note is not None:
        out.append(inputs.priced.note)
    if study.router.seconds is None:
        out.append("router.seconds is not stated: times leave the router out.")
    if inputs.scores is not None and len(inputs.scores.missing_ids):
        count = len(inputs.scores.missing_ids)
        treated = "going up" if study.router.missing_scores == "escalate" else "staying at the cheapest tier"
        out.append(f"{count:,} {'query' if count == 1 else 'queries'} without score, treated as {treated}.")
    zero = int((data.weight == 0).sum())
    if zero:
        out.append(f"{zero:,} {'query has' if zero == 1 else 'queries have'} weight 0: not in weighted figures.")
    if np.ptp(data.weight) > 0:
        out.append(
            "Rates of requests, USD and times are weighted to traffic shares; counts and class rates are not."
        )
    if data.group is not None:
        out.append(
            "Items share groups: a class's bound counts conversations, each by its worst turn; a bound on a rate "
            "of requests divides their number by the turns of the longest conversation."
        )
    out.append(
        "The bound printed at a searched threshold is pointwise; the guarantee is the sentence under the gates."
    )
    if result.policy != "decisions" and result.judged is None:
        out.append(
            "Production must apply the printed threshold at full precision and round scores as the study did."
        )
    return out


def unanswered_sentences(outcomes: Outcomes) -> list[str]:
    """What became of the requests that were not answered, a sentence a status."""
    out = []
    for seen in outcomes.errors:
        name = seen.status.value.replace("_", " ")
        text = f"{seen.count:,} outcome{'s' if seen.count != 1 else ''} unanswered ({name})"
        if seen.first is not None:
            text += f"; first: {seen.first} ({seen.same:,} time{'s' if seen.same != 1 else ''})"
        out.append(text + ".")
    return out


def common_sentences(inputs: Inputs, result: RoutingResult) -> list[str]:
    """Where the judged policy and a fixed arm have different numbers of answers: their difference in passes on the
    items that both answered, beside the comparison over all items."""
    data = result.measures.data
    if data.passed is None or data.answered is None:
        return []
    at = result.tier[:, None].astype(np.int64)
    ours = np.take_along_axis(data.passed, at, axis=1)[:, 0]
    answered = np.take_along_axis(data.answered, at, axis=1)[:, 0]
    out = []
    for j, name in enumerate(data.tiers):
        both = (answered == 1) & (data.answered[:, j] == 1)
        if both.all() or not both.any() or float(answered.sum()) == float(data.answered[:, j].sum()):
            continue
        group = None if data.group is None else data.group[both]
        gain = paired_difference(
            ours[both] - data.passed[both, j], data.weight[both], group, result.measures.settings.confidence
        )
        if gain.mean is None:
            continue
        span = "" if gain.lower is None else f" [{100 * gain.lower:+.1f}, {100 * (gain.upper or 0.0):+.1f}]"
        out.append(
            f"On the {int(both.sum()):,} of {data.n:,} items that both answered, the judged policy passes "
            f"{100 * gain.mean:+.1f} points{span} against always {name}."
        )
    return out
