"""What to choose and why, in a sentence each: the choice, where the curve is flat, what the next point costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evalkit.reporting import numbers, text
from evalkit.reporting.reasoning.checked import arm_of
from evalkit.reporting.verdict import Result

__all__ = ["Advice", "advice", "focus", "next_on_frontier"]

Arm = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Advice:
    """Three sentences of plain text: `choice` is the recommendation; `flat` and `next_point` advise beside it;
    `worth` says which steps are worth their price at the stated value of a point ("" without one)."""

    choice: str
    flat: str
    next_point: str
    worth: str


def focus(result: Result) -> tuple[Arm, str]:
    """(the arm that the report is about, what it is called): selected, candidate, or shown for orientation."""
    for key, word in (("selected", "selected"), ("candidate", "candidate"), ("shown", "shown")):
        arm = arm_of(result, result.get(key))
        if arm is not None:
            return arm, word
    return result["arms"][0], "shown"


def advice(result: Result) -> Advice:
    """The sentences of a result."""
    arm, word = focus(result)
    return Advice(_choice(result, arm, word), _flat(result), _next(result, arm), _worth(result))


def next_on_frontier(result: Result, arm: Arm) -> Arm | None:
    """The arm of the frontier whose price of a point is stated against `arm`, or None."""
    return next((a for a in result["arms"] if a.get("marginal_cost_against") == arm["name"]), None)


def _choice(result: Result, arm: Arm, word: str) -> str:
    name, decision = text.line(arm["name"], 60), result["verdict"]["decision"]
    many = len(result["arms"])
    if decision == "approve":
        meeting = sum(a["meets_all_limits"] for a in result["arms"])
        why = f"the least costly of the {meeting} arms that meet" if meeting > 1 else "the only arm that meets"
        if many == 1:
            why = "the only arm, and it meets"
        names = [text.line(risk, 40) for risk in result["verdict"].get("uncertified") or []]
        classes = f" Not certified: {text.join(names)}." if names else ""
        head = f"Choose {name}: {why} every limit"
        return f"{head}, at {_money(arm)} per 1,000 requests with {_passed(arm)} passed.{classes}"
    if decision == "insufficient_evidence":
        if word == "candidate":
            return (
                f"Choose nothing yet: {name} is the least costly arm inside the limits as observed "
                f"({_passed(arm)} passed, {_money(arm)} per 1,000 requests), and the evidence does not certify it."
            )
        if not result["gates"]:
            reasons = result["verdict"]["reasons"]
            return f"Choose nothing yet: {text.line(reasons[0], 300)}." if reasons else "Choose nothing yet."
        return (
            "Choose nothing yet: no arm is inside every limit as observed, and the evidence does not rule out all."
        )
    broken = [a for a in result["arms"] if any(g["status"] in {"violated", "infeasible"} for g in a["gates"])]
    if len(broken) == many:
        each = "each of them breaks" if many > 1 else "it breaks"
        return f"Choose {'none of these arms' if many > 1 else f'not {name}'}: {each} a limit that it has to meet."
    first = text.line(result["arms"][0]["name"], 60)
    return f"Keep {first}: {name} costs more or takes longer, and its failures do not fall."


def _flat(result: Result) -> str:
    gain = result.get("smallest_worthwhile_gain_points")
    at = result.get("plateau_at")
    if at is not None:
        name = text.line(at, 60)
        return f"The curve is flat from {name} on: no single step after it gains {_points(gain)}."
    reason = text.line(result.get("plateau_at_reason") or "not known", 300)
    detectable = result.get("minimum_detectable_gain_points")
    tail = (
        ""
        if detectable is None
        else f" A step has to gain about {detectable:.1f} points for this study to find it."
    )
    return f"Where the curve goes flat is not shown: {reason}.{tail}"


def _next(result: Result, arm: Arm) -> str:
    name = text.line(arm["name"], 60)
    after = next_on_frontier(result, arm)
    if after is None:
        known = [a for a in result["arms"] if a["cost_usd_per_request"] is not None]
        if len(known) < len(result["arms"]):
            return f"What the next point beyond {name} costs is not known: some costs are unknown."
        if len(known) < 2:
            return "What the next point costs is not known: there is one arm."
        return (
            f"No arm here is better than {name} at a higher price."
            if arm["status"] == "frontier"
            else (
                f"{name} is not on the frontier ({text.words(arm['status'])}): another arm or a mix of two is as "
                "good for less."
            )
        )
    other = text.line(after["name"], 60)
    price = after.get("marginal_cost_per_quality_point")
    if price is None:
        extra = after["cost_usd_per_request"] - arm["cost_usd_per_request"]
        reason = text.line(after.get("marginal_cost_per_quality_point_reason") or "no measurable gain", 60)
        return f"Beyond {name}, {other} costs {numbers.per_thousand(extra, 1)} more per 1,000 requests: {reason}."
    ends = after.get("marginal_cost_interval")
    spread = f" ({numbers.per_thousand(ends[0], 1)} to {numbers.per_thousand(ends[1], 1)})" if ends else ""
    shown = numbers.per_thousand(price, 1)
    return f"The next point beyond {name} costs {shown}{spread} per 1,000 requests, with {other}."


def _worth(result: Result) -> str:
    value = result.get("value_per_point_usd")
    if value is None:
        return ""
    said: dict[str, list[str]] = {}
    for arm in result["arms"]:
        step = arm.get("net_benefit_vs_previous")
        if step:
            said.setdefault(step["decision"], []).append(text.line(arm["name"], 60))
    best = result.get("best_at_value")
    parts = [f"{text.join(names)} {decision}" for decision, names in said.items()]
    head = f"At {numbers.per_thousand(value, 1)} per point and 1,000 requests"
    if not parts:
        return f"{head}, no step can be decided."
    tail = f"; as observed, {text.line(best, 60)} is best" if best else ""
    return f"{head}, each step against the arm before it: {'; '.join(parts)}{tail}."


def _points(gain: float | None) -> str:
    return "as much as is worthwhile" if gain is None else f"{gain:g} point{'' if gain == 1 else 's'}"


def _passed(arm: Arm) -> str:
    return numbers.percent(arm["pass_rate_lower"])


def _money(arm: Arm) -> str:
    return numbers.per_thousand(arm["cost_usd_per_request"], 1, reason="cost unknown")
