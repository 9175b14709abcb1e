"""The verdict rule: one decision from gates and stop rules, and its exit code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from evalkit.gates.gate import Gate, Status, StopRule

__all__ = ["Decision", "Verdict", "decide", "exit_code"]


class Decision(StrEnum):
    """The three verdicts."""

    APPROVE = "approve"
    REJECT = "reject"
    INSUFFICIENT_EVIDENCE = "insufficient_evidence"


@dataclass(frozen=True)
class Verdict:
    """reasons: what led to the decision, weightiest first. uncertified: risk classes without a certificate."""

    decision: Decision
    reasons: tuple[str, ...]
    uncertified: tuple[str, ...]
    headline: str
    next_step: str


_REJECTING = {Status.VIOLATED, Status.INFEASIBLE}
_OPEN = {Status.INSUFFICIENT, Status.NOT_STATABLE}


def decide(
    gates: Sequence[Gate], stop_rules: Sequence[StopRule], *, uncertified: Sequence[str], has_selection: bool
) -> Verdict:
    """Reject if a gate is violated or infeasible or a rejecting stop rule is triggered; else insufficient evidence
    if a gate is open, a stop rule could not be worked out or asks for evidence, or nothing could be selected;
    else approve.

    Approval needs every gate certified or, by the study's own policy, inside its limit on the estimate; the
    headline then names what is not certified. An empty list of gates approves nothing.
    """
    rejecting = [g.message for g in gates if g.status in _REJECTING]
    rejecting += [r.detail for r in stop_rules if r.applies and r.triggered and r.on_trigger == "reject"]
    doubts = [r.detail for r in stop_rules if r.applies and r.triggered and r.on_trigger != "reject"]
    opened = doubts + [g.message for g in gates if g.status in _OPEN]
    opened += [r.detail for r in stop_rules if r.applies and r.triggered is None]
    names = tuple(uncertified)
    if rejecting:
        return Verdict(Decision.REJECT, tuple(rejecting + opened), names, "Rejected", _after_reject(gates))
    if not gates:
        opened.append("No limit is set, so there is nothing that could be shown to hold")
    if not opened and not has_selection:
        opened.append("No operating point could be selected")
    if opened:
        return Verdict(
            Decision.INSUFFICIENT_EVIDENCE,
            tuple(opened),
            names,
            "Insufficient evidence",
            _after_open(gates, doubts),
        )
    certified = sum(g.status is Status.CERTIFIED for g in gates)
    every = f"All {len(gates)} gates hold" if len(gates) > 1 else "The one gate holds"
    reasons = [f"{every}: {certified} certified, {len(gates) - certified} on the estimate"]
    reasons += [g.message for g in gates if g.status is not Status.CERTIFIED]
    count = len(names)
    headline = "Approved" if not count else f"Approved with {count} uncertified class{'es' if count > 1 else ''}"
    if count:
        headline += f" ({', '.join(names)})"
    return Verdict(Decision.APPROVE, tuple(reasons), names, headline, "Deploy the selected threshold as printed")


def _after_reject(gates: Sequence[Gate]) -> str:
    broken = [g.label for g in gates if g.status in _REJECTING and not g.by_labels]
    mislabelled = [g.label for g in gates if g.status in _REJECTING and g.by_labels]
    if mislabelled and not broken:
        return f"Put right the labels that miss needs ({'; '.join(mislabelled)}), then judge and audit them afresh"
    if broken:
        return f"Change the router (broken: {'; '.join(broken)}), then judge it on fresh labels"
    return "Keep the arm in production; change the router before judging again on fresh labels"


def _after_open(gates: Sequence[Gate], doubts: Sequence[str]) -> str:
    """What to do first: labels are worth their price only where nothing else stands in the way."""
    if doubts:
        return f"Settle this before labelling more. {doubts[0]}"
    stuck = [g for g in gates if g.status in _OPEN and not g.missing_n and not g.by_labels]
    unaudited = [g.label for g in gates if g.status in _OPEN and g.by_labels]
    missing = [g for g in gates if g.status in _OPEN and g.missing_n]
    parts = "; ".join(f"{g.label}: {g.missing_n:,} more {g.n_is}" for g in missing)
    fresh = "in a fresh sample, or in this one if its looks were declared in advance"
    if stuck:
        step = f"More labels will not settle: {'; '.join(g.label for g in stuck)}"
        return f"{step}. Besides, label at least: {parts}" if missing else step
    if unaudited:
        step = f"Audit more of the labels: {'; '.join(unaudited)}"
        return f"{step}. Besides, label at least: {parts}" if missing else step
    return f"Label at least, {fresh}: {parts}" if missing else "See the reasons: more labels alone settle nothing"


def exit_code(decision: Decision) -> int:
    """0 approve, 1 reject, 3 insufficient evidence."""
    return {Decision.APPROVE: 0, Decision.REJECT: 1, Decision.INSUFFICIENT_EVIDENCE: 3}[decision]
