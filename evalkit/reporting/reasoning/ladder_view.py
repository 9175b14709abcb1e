"""The ladder as rows of text: one wording for page, terminal and Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evalkit.reporting import numbers, text
from evalkit.reporting.reasoning.advice import focus
from evalkit.reporting.verdict import STATES, Result

__all__ = [
    "ArmRow",
    "LimitRow",
    "RiskRow",
    "StepRow",
    "arm_rows",
    "limit_rows",
    "risk_rows",
    "step_rows",
    "worst_rows",
]

_SHOWN = 40
_STATUS = {
    "frontier": "on the frontier",
    "dominated": "dominated",
    "extended_dominated": "dominated by a mix",
}


_GATE = {
    "certified": "certified",
    "estimate": "estimate",
    "insufficient": "open",
    "not_statable": "not statable",
    "violated": "broken",
    "infeasible": "broken",
}


@dataclass(frozen=True, slots=True)
class ArmRow:
    """One arm in words; money is per 1,000 requests. `here`: the report is about it, called `word`."""

    name: str
    here: bool
    word: str
    budget: str
    model: str
    passed: str
    interval: str
    range: str
    billed: str
    reasoning: str
    output: str
    cost: str
    cost_interval: str
    p95: str
    price: str
    status: str
    limits: str
    limits_state: str
    unanswered: str


@dataclass(frozen=True, slots=True)
class RiskRow:
    """One risk class at every arm: failed tasks and the bound."""

    name: str
    limit: str
    cells: list[str]
    bounds: list[str]


@dataclass(frozen=True, slots=True)
class StepRow:
    """One step to the next declared arm."""

    name: str
    gain: str
    ends: str
    better: str
    worse: str
    benefit: str
    benefit_ends: str
    decision: str
    detectable: str


@dataclass(frozen=True, slots=True)
class LimitRow:
    """One limit at every arm: (state, word) each."""

    label: str
    limit: str
    cells: list[tuple[str, str]]


def arm_rows(result: Result) -> list[ArmRow]:
    """Every arm in declared order."""
    here, word = focus(result)
    return [_arm(arm, arm["name"] == here["name"], word) for arm in result["arms"]]


def _arm(arm: Mapping[str, Any], here: bool, word: str) -> ArmRow:
    states = [STATES[g["status"]] for g in arm["gates"]]
    state = "fail" if "fail" in states else "open" if "open" in states else "pass"
    said = {"pass": "meets all", "open": "not certified", "fail": f"breaks {states.count('fail')}"}[state]
    if not states or (state == "pass" and not arm["meets_all_limits"]):
        state, said = "open", "no limit certified"
    ends, cost_ends = arm.get("pass_rate_interval"), arm.get("cost_interval")
    merged = [text.line(name, 40) for name in arm.get("merged") or []]
    budget = text.line(arm["requested_budget"], 80) if arm.get("requested_budget") else "no budget stated"
    return ArmRow(
        name=text.line(arm["name"], 60) + (f" (= {', '.join(merged)})" if merged else ""),
        here=here,
        word=word if here else "",
        budget=budget,
        model=text.line(arm["model"], 60) if arm.get("model") else "",
        passed=numbers.percent(arm["pass_rate_lower"]),
        interval=numbers.interval(ends[0], ends[1], "share") if ends else numbers.na("too few tasks"),
        range=numbers.interval(arm["pass_rate_lower"], arm["pass_rate_upper"], "share"),
        billed=_tokens(arm, "billed_tokens_per_request"),
        reasoning=_tokens(arm, "reasoning_tokens_per_request"),
        output=_tokens(arm, "output_tokens_per_request"),
        cost=_thousand(arm, "cost_usd_per_request"),
        cost_interval=""
        if not cost_ends
        else f"{numbers.per_thousand(cost_ends[0], 1)} to {numbers.per_thousand(cost_ends[1], 1)}",
        p95=numbers.percentile(
            arm.get("p95_task_s"),
            95,
            arm.get("p95_task_n"),
            censored=arm.get("p95_task_censored"),
            reason=_reason(arm, "p95_task_s"),
        ),
        price=_thousand(arm, "marginal_cost_per_quality_point"),
        status=_STATUS.get(arm.get("status") or "", numbers.na("cost unknown")),
        limits=said,
        limits_state=state,
        unanswered=_unanswered(arm),
    )


def _unanswered(arm: Mapping[str, Any]) -> str:
    parts = [f"{numbers.count(arm['runs'] - arm['answered'])} of {numbers.count(arm['runs'])} runs"]
    for key, word in (("budget_exhausted", "used up the budget"), ("abstained", "declined")):
        if arm.get(key):
            parts.append(f"{numbers.count(arm[key])} {word}")
    return parts[0] if len(parts) == 1 else f"{parts[0]} ({', '.join(parts[1:])})"


def _tokens(arm: Mapping[str, Any], key: str) -> str:
    value = arm.get(key)
    shown = numbers.na(_reason(arm, key)) if value is None else numbers.count(round(value))
    missing = arm.get("usage_missing") or 0
    if value is not None and missing and key == "billed_tokens_per_request":
        shown += f" ({numbers.count(missing)} runs without usage)"
    return shown


def _thousand(arm: Mapping[str, Any], key: str) -> str:
    return numbers.per_thousand(arm.get(key), 1, reason=_reason(arm, key))


def _reason(source: Mapping[str, Any], key: str) -> str | None:
    found = source.get(f"{key}_reason")
    return text.line(found, 120) if found else None


def risk_rows(result: Result) -> list[RiskRow]:
    """Every risk class with what each arm fails of it."""
    rows = []
    for risk in result["risk_classes"]:
        cells, bounds = [], []
        for arm in result["arms"]:
            seen = (arm.get("risk_failure") or {}).get(risk["name"]) or {}
            cells.append(numbers.of(seen.get("failed"), seen.get("tasks"), seen.get("rate")))
            limit = risk.get("max_failure")
            bounds.append(
                numbers.percent(seen.get("upper_bound"), limit=limit, reason=_reason(seen, "upper_bound"))
            )
        limit = risk.get("max_failure")
        shown = "no limit" if limit is None else f"≤ {numbers.exact(limit, 'share')}"
        if limit is not None and risk.get("gate_on") == "estimate":
            shown += " (estimate)"
        rows.append(RiskRow(text.line(risk["name"], 60), shown, cells, bounds))
    return rows


def step_rows(result: Result) -> list[StepRow]:
    """Every step of the ladder, each against the arm declared before it."""
    rows = []
    for arm in result["arms"][1:]:
        gain, benefit, flips = arm.get("gain_vs_previous"), arm.get("net_benefit_vs_previous"), arm.get("flips")
        if not gain or not flips:
            continue
        detectable = arm.get("detectable_gain_points")
        rows.append(
            StepRow(
                name=f"{text.line(gain['against'], 40)} → {text.line(arm['name'], 40)}",
                gain=_points(gain["points"]),
                ends=numbers.na("too few tasks")
                if gain["lower"] is None
                else f"{_points(gain['lower']).partition(' ')[0]} to {_points(gain['upper'])}",
                better=numbers.count(flips["gained"]),
                worse=numbers.count(flips["broken"]),
                benefit=numbers.na(_reason(arm, "net_benefit_vs_previous"))
                if not benefit
                else _signed_thousand(benefit["value"]),
                benefit_ends=""
                if not benefit or benefit["lower"] is None
                else f"{_signed_thousand(benefit['lower'])} to {_signed_thousand(benefit['upper'])}",
                decision="n/a" if not benefit else text.line(benefit["decision"], 40),
                detectable=numbers.na(_reason(arm, "detectable_gain_points"))
                if detectable is None
                else f"{detectable:.1f} points",
            )
        )
    return rows


def _points(value: float | None) -> str:
    return numbers.na() if value is None else numbers.signed(value / 100.0, "share")


def _signed_thousand(value: float | None) -> str:
    return numbers.na() if value is None else numbers.signed(1000.0 * value, "usd")


def limit_rows(result: Result) -> list[LimitRow]:
    """Every limit with its status at each arm, so that it is seen why an arm was not taken."""
    labels: dict[str, Mapping[str, Any]] = {}
    for arm in result["arms"]:
        for gate in arm["gates"]:
            labels.setdefault(gate["name"], gate)
    rows = []
    for name, gate in labels.items():
        unit: numbers.Unit = gate.get("unit") or "share"
        limit = gate.get("limit")
        sign = "≥ " if gate.get("limit_is") == "min" else "≤ "
        cells = []
        for arm in result["arms"]:
            found = next((g for g in arm["gates"] if g["name"] == name), None)
            cells.append(("pass", "known") if found is None else (STATES[found["status"]], _GATE[found["status"]]))
        shown = "" if limit is None else sign + numbers.exact(limit, unit)
        rows.append(LimitRow(text.line(gate["label"], 60), shown, cells))
    return rows


def worst_rows(result: Result) -> list[dict[str, Any]]:
    """Tasks that the arm in focus fails, cut to what somebody will read."""
    here, _ = focus(result)
    names = [arm["name"] for arm in result["arms"]]
    rows = []
    for item in (result.get("worst_items") or [])[:_SHOWN]:
        arms = item.get("arms") or {}
        rates = [
            f"{text.line(name, 30)} {numbers.percent(arms[name]['passed'])}" for name in names if name in arms
        ]
        mine = arms.get(here["name"]) or {}
        rows.append(
            {
                "id": text.line(item["id"], 80),
                "risk": text.line(item.get("risk") or "", 40),
                "category": text.line(item.get("category") or "", 60),
                "rates": rates,
                "flags": [text.words(flag) for flag in item.get("flags") or []],
                "status": text.words(mine.get("status") or ""),
                "prompt": _block(item.get("prompt"), 320),
                "reply": _block(item.get("reply"), 240),
                "reference": _block(item.get("reference"), 120),
            }
        )
    return rows


def _block(value: Any, limit: int) -> text.Block | None:
    return None if value is None or value == "" else text.block(value, limit)
