"""The one verdict of a sign-off: `gates.decide` on every gate and stop rule of all runs and of the policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from evalkit.gates import Decision, Gate, Status, StopRule, decide
from evalkit.signoff.model import RunFacts, SignoffGate

__all__ = ["signoff_verdict"]

_SEVERITY = {Decision.APPROVE: 0, Decision.INSUFFICIENT_EVIDENCE: 1, Decision.REJECT: 2}


def signoff_verdict(gates: Sequence[SignoffGate], runs: Sequence[RunFacts]) -> dict[str, Any]:
    """The verdict as signoff.json has it: decision, headline, reasons, next_step, uncertified.

    A run's own verdict can make the whole worse, never better. Without a run or a gate nothing is approved.
    """
    many = len(runs) > 1
    names = {run.id: run.study for run in runs}
    told = [_told(gate, names if many else {}) for gate in gates]
    rules = [rule for run in runs for rule in _rules(run)]
    uncertified = _uncertified(gates, runs)
    selects = bool(runs) and all(run.selects for run in runs)
    found = decide(told, rules, uncertified=uncertified, has_selection=selects)
    decision = found.decision
    for run in runs:
        own = Decision(run.result["verdict"]["decision"])
        if _SEVERITY[own] > _SEVERITY[decision]:
            decision = own
    headline = found.headline if decision is found.decision else _plain(decision)
    return {
        "decision": decision.value,
        "headline": headline,
        "reasons": _reasons(decision, gates, told, runs, found.reasons),
        "next_step": _next_step(decision, found.decision, gates, runs, found.next_step),
        "uncertified": list(uncertified),
    }


def _plain(decision: Decision) -> str:
    return {Decision.REJECT: "Rejected", Decision.INSUFFICIENT_EVIDENCE: "Insufficient evidence"}[decision]


def _told(gate: SignoffGate, names: Mapping[str, str]) -> Gate:
    """The gate with its study in front of what is said of it, where there are several."""
    study = names.get(gate.run or "")
    if study is None:
        return gate.gate
    return replace(gate.gate, label=f"{study}, {gate.gate.label}", message=f"{study}: {gate.gate.message}")


def _rules(run: RunFacts) -> list[StopRule]:
    return [
        StopRule(
            str(row["name"]),
            row["triggered"] if row.get("applies", True) else False,
            str(row["detail"]),
            str(row.get("on_trigger", "reject")),
            bool(row.get("applies", True)),
        )
        for row in run.result["stop_rules"]
    ]


def _uncertified(gates: Sequence[SignoffGate], runs: Sequence[RunFacts]) -> tuple[str, ...]:
    """Classes that pass without a certificate, each once, in the order of the runs."""
    said = [str(name) for run in runs for name in run.result["verdict"]["uncertified"]]
    said += [g.risk for g in gates if g.risk is not None and g.gate.status is Status.ESTIMATE]
    return tuple(dict.fromkeys(said))


def _reasons(
    decision: Decision,
    gates: Sequence[SignoffGate],
    told: Sequence[Gate],
    runs: Sequence[RunFacts],
    summary: Sequence[str],
) -> list[dict[str, Any]]:
    """What led to the decision, weightiest first, with the gate or run that each is about."""
    if decision is Decision.APPROVE:
        out: list[dict[str, Any]] = [{"code": "all_hold", "text": summary[0]}]
        out += [_of_gate(g, t) for g, t in zip(gates, told, strict=True) if g.gate.status is Status.ESTIMATE]
        return out
    pairs = list(zip(gates, told, strict=True))
    failed = [_of_gate(g, t) for g, t in pairs if g.state == "fail"]
    opened = [_of_gate(g, t) for g, t in pairs if g.state == "open"]
    hit: list[dict[str, Any]] = []
    doubts: list[dict[str, Any]] = []
    for run in runs:
        for rule in _rules(run):
            if rule.applies and rule.triggered is not False:
                rejects = rule.triggered and rule.on_trigger == "reject"
                row = {"code": "stop_rule", "rule": rule.name, "run": run.id, "text": rule.detail}
                (hit if rejects else doubts).append(row)
    own = [
        {"code": f"run_{verdict['decision']}", "run": run.id, "text": f"{run.study}: {verdict['headline']}"}
        for run in runs
        if (verdict := run.result["verdict"])["decision"] != "approve"
    ]
    found = failed + hit + doubts + opened
    if not runs:
        found.append({"code": "no_run", "text": "No run was given, so there is nothing to decide on"})
    said = {row["text"] for row in found}
    if not found:
        found += [{"code": "undecided", "text": text} for text in summary if text not in said]
    return found + own


def _of_gate(gate: SignoffGate, told: Gate) -> dict[str, Any]:
    text = told.message
    if gate.gate.status is Status.ESTIMATE and "NOT CERTIFIED" not in text:
        text = f"NOT CERTIFIED: {text}"
    return {"code": gate.gate.status.value, "gate": gate.id, "text": text}


def _next_step(
    decision: Decision,
    of_gates: Decision,
    gates: Sequence[SignoffGate],
    runs: Sequence[RunFacts],
    step: str,
) -> dict[str, Any]:
    """What to do first. `missing_n`: the most items that one open gate still needs; None where none helps."""
    if decision is Decision.APPROVE:
        return {
            "code": "sign",
            "text": "Decide and sign, then release under the conditions below",
            "missing_n": None,
        }
    change = _change(gates, runs) if decision is of_gates is Decision.REJECT else None
    if change:
        step = change
    if decision is not of_gates:  # a run alone stands in the way
        run = next(r for r in runs if r.result["verdict"]["decision"] == decision.value)
        step = str(run.result["verdict"]["next_step"])
    missing = [g.gate.missing_n for g in gates if g.state == "open" and g.gate.missing_n]
    if decision is Decision.REJECT:
        return {"code": "change", "text": step, "missing_n": None}
    stuck = any(g.state == "open" and not g.gate.missing_n for g in gates)
    code = "collect" if missing and not stuck else "settle"
    return {"code": code, "text": step, "missing_n": max(missing, default=None)}


def _change(gates: Sequence[SignoffGate], runs: Sequence[RunFacts]) -> str | None:
    """What to do first after gates of a ladder failed, which has no router to change; None where none did."""
    ladders = {run.id: run for run in runs if not run.is_routing}
    failed = [gate for gate in gates if gate.state == "fail"]
    if not any(gate.run in ladders for gate in failed):
        return None
    names = {run.id: run.study for run in runs if len(runs) > 1}
    named = [", ".join(filter(None, (names.get(gate.run or ""), gate.gate.label))) for gate in failed]
    what = (
        "what is broken"
        if any(gate.run not in ladders for gate in failed)
        else "the model, the prompt or the limit"
    )
    return f"Change {what} (broken: {'; '.join(named)}), then judge on fresh tasks or labels"
