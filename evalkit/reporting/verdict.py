"""The verdict in people's words and as an exit code, and a last check that a result does not contradict itself.

Every output goes through `checked` first: a report that says "approve" over an open gate must not come into being,
whatever went wrong before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from evalkit.gates.verdict import Decision
from evalkit.gates.verdict import exit_code as decision_exit_code

from .language import N_

__all__ = [
    "EXIT_CODES",
    "STATES",
    "WORDS",
    "Result",
    "checked",
    "contradictions",
    "exit_code",
    "on_wrong_side",
    "rule_state",
]

Result: TypeAlias = Mapping[str, Any]
"""The content of result.json."""

EXIT_CODES: Final = {decision.value: decision_exit_code(decision) for decision in Decision}
WORDS: Final = {
    "approve": N_("APPROVE"),
    "reject": N_("REJECT"),
    "insufficient_evidence": N_("INSUFFICIENT EVIDENCE"),
}

STATES: Final = {
    "certified": "pass",
    "estimate": "pass",
    "insufficient": "open",
    "not_statable": "open",
    "violated": "fail",
    "infeasible": "fail",
}
"""What a gate's status means to a reader. Only a pass lets a release through."""

_TOLERANCE: Final = 1e-9


def exit_code(result: Result) -> int:
    """0 approved, 1 rejected, 3 insufficient evidence."""
    return EXIT_CODES[checked(result)["verdict"]["decision"]]


def rule_state(rule: Mapping[str, Any]) -> str:
    """`fail` or `open` for a stop rule that is triggered, as the rule itself says, else `pass`.

    One that could not be worked out is open; one that does not apply, such as separation without scores, passes.
    """
    if rule.get("applies") is False:
        return "pass"
    if rule.get("triggered") is None:
        return "open"
    if not rule["triggered"]:
        return "pass"
    return "open" if rule.get("on_trigger") == "insufficient_evidence" else "fail"


def checked(result: Result) -> Result:
    """The same result; raises ValueError when its parts contradict each other."""
    found = contradictions(result)
    if found:
        raise ValueError("the result contradicts itself: " + "; ".join(found))
    return result


def contradictions(result: Result) -> list[str]:
    """What in a result does not go together with its verdict."""
    verdict = result["verdict"]
    decision = verdict["decision"]
    if decision not in EXIT_CODES:
        return [f"the decision {decision!r} is not one of {', '.join(EXIT_CODES)}"]
    gates = result.get("gates") or []
    unknown = [
        f"gate {g['name']} has the unknown status {g['status']!r}" for g in gates if g["status"] not in STATES
    ]
    if unknown:
        return unknown
    found = []
    failed = [g["name"] for g in gates if STATES[g["status"]] == "fail"]
    if failed and decision != "reject":
        found.append(f"{decision} although {', '.join(failed)} failed")
    if decision != "approve" and result.get("selected") is not None:
        found.append(f"{decision} with a selected operating point")
    found += _of_routers(result, decision)
    if decision == "approve":
        found += _not_approvable(result, gates)
    return found


def _of_routers(result: Result, decision: str) -> list[str]:
    """One of several routers is the chosen one, the verdict is about it, and none that is approved stands back."""
    rows = result.get("routers") or []
    if not rows:
        return []
    decisions = {row["name"]: row["verdict"]["decision"] for row in rows}
    chosen = [row["name"] for row in rows if row.get("chosen")]
    if chosen != [result.get("chosen_router")]:
        return [f"the chosen router is {result.get('chosen_router')!r}, and marked as chosen are {chosen}"]
    if decisions[chosen[0]] != decision:
        return [f"{decision} although the chosen router {chosen[0]} has {decisions[chosen[0]]}"]
    if decision != "approve" and "approve" in decisions.values():
        return [f"{decision} although another router than {chosen[0]} is approved"]
    return []


def _not_approvable(result: Result, gates: list[Any]) -> list[str]:
    found = [f"approve although {g['name']} is open" for g in gates if STATES[g["status"]] == "open"]
    found += [
        f"approve although the stop rule {rule['name']} is triggered or was not computed"
        for rule in result.get("stop_rules") or []
        if rule_state(rule) != "pass"
    ]
    if not any(g["status"] == "certified" for g in gates):
        found.append("approve without one certified gate")
    if result.get("selected") is None and result.get("judged") is None:
        found.append("approve without an operating point")
    if result["counts"].get("answered") == 0:
        found.append("approve although nothing was answered")
    named = set(result["verdict"].get("uncertified") or [])
    for gate in gates:
        risk = gate["name"].partition(":")[2]
        if gate["status"] == "estimate" and gate["name"].startswith("under_route:") and risk not in named:
            found.append(f"approve without naming {risk} as uncertified")
        found += on_wrong_side(gate)
    return found


def on_wrong_side(gate: Mapping[str, Any]) -> list[str]:
    """A gate that passes must have its judged figure inside its limit; the figure must exist."""
    least = gate.get("limit_is", "max") == "min"
    certified = gate["status"] == "certified"
    if certified and gate.get("unit", "share") != "share":
        return []  # certified through the share of slow requests; the time itself has no such bound
    key = "observed" if not certified else "lower_bound" if least else "upper_bound"
    value, limit = gate.get(key), gate["limit"]
    if limit is None:
        return []
    if value is None:
        return [f"approve although {gate['name']} has no {key.replace('_', ' ')}"]
    slack = _TOLERANCE * max(1.0, abs(limit))
    outside = value < limit - slack if least else value > limit + slack
    return (
        [f"approve although {gate['name']} has its {key.replace('_', ' ')} {value!r} beyond {limit!r}"]
        if outside
        else []
    )
