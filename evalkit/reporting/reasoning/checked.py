"""A last check that the result of a ladder does not contradict itself."""

from __future__ import annotations

from typing import Any

from evalkit.reporting.verdict import STATES, Result, contradictions

__all__ = ["arm_of", "ladder_checked", "ladder_contradictions"]


def arm_of(result: Result, name: str | None) -> dict[str, Any] | None:
    """The arm called `name`, or None."""
    return next((arm for arm in result["arms"] if arm["name"] == name), None)


def ladder_checked(result: Result) -> Result:
    """The same result; raises ValueError when its parts contradict each other."""
    found = ladder_contradictions(result)
    if found:
        raise ValueError("the result contradicts itself: " + "; ".join(found))
    return result


def ladder_contradictions(result: Result) -> list[str]:
    """What in a result does not go together with its verdict, beyond what holds for every kind of study."""
    found = contradictions(result)
    if result["verdict"]["decision"] != "approve":
        return found
    arm = arm_of(result, result.get("selected"))
    if arm is None:
        return [*found, f"approve with the selected arm {result.get('selected')!r}, which is not in the ladder"]
    if arm["gates"] != result["gates"]:
        found.append("approve on gates that are not those of the selected arm")
    if not arm["meets_all_limits"]:
        found.append(f"approve although {arm['name']} does not meet all limits")
    if arm["cost_usd_per_request"] is None:
        found.append(f"approve although the cost of {arm['name']} is unknown")
    cheaper = [
        other["name"]
        for other in result["arms"]
        if other["meets_all_limits"]
        and other["cost_usd_per_request"] is not None
        and arm["cost_usd_per_request"] is not None
        and other["cost_usd_per_request"] < arm["cost_usd_per_request"]
    ]
    if cheaper:
        found.append(f"approve {arm['name']} although {', '.join(cheaper)} meets every limit at less cost")
    named = set(result["verdict"].get("uncertified") or [])
    for gate in result["gates"]:
        risk = gate["name"].removeprefix("risk_failure:")
        if gate["name"] != risk and gate["status"] == "estimate" and risk not in named:
            found.append(f"approve without naming {risk} as uncertified")
        if STATES.get(gate["status"]) != "pass":
            found.append(f"approve although {gate['name']} does not pass")
    return found
