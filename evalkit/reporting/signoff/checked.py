"""A last check that a sign-off document does not contradict itself, before anybody reads it in any form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from evalkit.reporting.verdict import EXIT_CODES, STATES, Result, on_wrong_side, rule_state

__all__ = ["as_run_gate", "risk_of", "signoff_checked", "signoff_contradictions", "signoff_exit_code"]

_SCHEMA: Final = "evalkit.signoff/1"


def signoff_exit_code(document: Result) -> int:
    """0 approved, 1 rejected, 3 insufficient evidence."""
    return EXIT_CODES[signoff_checked(document)["verdict"]["decision"]]


def signoff_checked(document: Result) -> Result:
    """The same document; raises ValueError when its parts contradict each other."""
    found = signoff_contradictions(document)
    if found:
        raise ValueError("the sign-off document contradicts itself: " + "; ".join(found))
    return document


def signoff_contradictions(document: Result) -> list[str]:
    """What in a sign-off document does not go together with its verdict.

    A gate that failed means reject. An approval needs gates, each of them passed and on its own side of its limit,
    no stop rule that is triggered or unknown, every run approved, and every class without a certificate named.
    """
    if document.get("schema") != _SCHEMA:
        return [f"the schema is {document.get('schema')!r}, not {_SCHEMA!r}"]
    decision = document["verdict"]["decision"]
    if decision not in EXIT_CODES:
        return [f"the decision {decision!r} is not one of {', '.join(EXIT_CODES)}"]
    gates = document.get("gates") or []
    found = [
        f"gate {_name(g)} has the unknown status {g.get('status')!r}"
        for g in gates
        if g.get("status") not in STATES
    ]
    found += [
        f"gate {_name(g)} is {g['status']} but shown as {g['state']!r}"
        for g in gates
        if g.get("status") in STATES and "state" in g and g["state"] != STATES[g["status"]]
    ]
    if found:
        return found
    failed = [_name(g) for g in gates if STATES[g["status"]] == "fail"]
    if failed and decision != "reject":
        found.append(f"{decision} although {', '.join(failed)} failed")
    triggered = [str(rule["name"]) for rule in document.get("stop_rules") or [] if rule_state(rule) == "fail"]
    if triggered and decision != "reject":
        found.append(f"{decision} although the stop rule {', '.join(triggered)} is triggered")
    return found + (_not_approvable(document, gates) if decision == "approve" else [])


def _not_approvable(document: Result, gates: list[Mapping[str, Any]]) -> list[str]:
    found = [] if gates else ["approve without a gate"]
    found += [f"approve although {_name(g)} is open" for g in gates if STATES[g["status"]] == "open"]
    found += [
        f"approve although the stop rule {rule['name']} is triggered or was not computed"
        for rule in document.get("stop_rules") or []
        if rule_state(rule) != "pass"
    ]
    found += [
        f"approve although the run {run.get('id')} is {_decision(run)}"
        for run in document.get("runs") or []
        if _decision(run) != "approve"
    ]
    named = set(document["verdict"].get("uncertified") or [])
    for gate in gates:
        risk = risk_of(gate)
        if gate["status"] == "estimate" and risk and risk not in named:
            found.append(f"approve without naming {risk} as uncertified")
        found += on_wrong_side(as_run_gate(gate)) or _beyond(gate)
    return found


def _beyond(gate: Mapping[str, Any]) -> list[str]:
    """What a run's gates do not have: a fact beside its limit, and a difference whose bound is in points."""
    least, limit = gate.get("limit_is") == "min", gate.get("limit")
    if gate.get("basis") == "fact":
        key = "observed"
    elif gate["status"] == "certified" and gate.get("unit") == "points":
        key = "bound"
    else:
        return []
    value = gate.get(key)
    if limit is None:
        return []
    if value is None:
        return [f"approve although {_name(gate)} has no {key}"]
    beyond = value < limit - 1e-9 if least else value > limit + 1e-9
    return [f"approve although {_name(gate)} has its {key} {value!r} beyond {limit!r}"] if beyond else []


def _decision(run: Mapping[str, Any]) -> Any:
    verdict = run.get("verdict")
    return verdict.get("decision") if isinstance(verdict, Mapping) else verdict


def _name(gate: Mapping[str, Any]) -> str:
    return str(gate.get("id") or gate.get("name"))


def risk_of(gate: Mapping[str, Any]) -> str:
    """The risk class that a gate is about, or ""."""
    risk = gate.get("risk")
    if risk:
        return str(risk)
    head, _, tail = str(gate["name"]).partition(":")
    return tail if head in {"under_route", "risk_failure"} else ""


def as_run_gate(gate: Mapping[str, Any]) -> dict[str, Any]:
    """A gate of the document as a gate of a run, whose bound is called by its side."""
    side = "lower_bound" if gate.get("limit_is") == "min" else "upper_bound"
    return dict(gate) | {side: gate.get("bound")}
