"""Gates and stop rules as every output shows them: one wording for page, terminal, Markdown and JUnit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from . import numbers, text
from .language import N_
from .verdict import STATES, WORDS, Result, rule_state

__all__ = [
    "AUDITED",
    "RULE_LABELS",
    "STATE_WORDS",
    "STATUS_WORDS",
    "GateRow",
    "RuleRow",
    "Verdict",
    "gate_rows",
    "rule_rows",
    "verdict_view",
]

AUDITED: Final = (
    "Bounds on under-routing are on the true rate: they count the needs that the labels may miss, by the audit. "
    "Estimates are those of the labels."
)
"""Said under the gates where the labels were audited."""

STATE_WORDS: Final = {"pass": N_("Pass"), "open": N_("Open"), "fail": N_("Fail")}
STATUS_WORDS: Final = {
    "certified": N_("certified"),
    "estimate": N_("not certified"),
    "insufficient": N_("too little evidence"),
    "not_statable": N_("cannot be stated"),
    "violated": N_("limit broken"),
    "infeasible": N_("no threshold meets it"),
}
RULE_LABELS: Final = {
    "router_not_shown_to_separate": N_("The score is not shown to separate"),
    "quality_overlaps": N_("The strongest tier is not shown to be better than the cheapest"),
    "escalates_nearly_everything": N_("Nearly everything is escalated"),
    "no_gain_over_best_fixed_arm": N_("No gain over the best fixed arm"),
    "risk_failures_do_not_fall": N_("Risk failures do not fall while cost or time rises"),
    "no_certifiable_limit": N_("No limit is set that could be certified"),
}


@dataclass(frozen=True, slots=True)
class GateRow:
    """One gate in words. `state` is pass, open or fail; a pass that is not `certified` must look different.

    `message` is what a table row adds to its numbers; `spoken` is the whole message, for where there is no table.
    """

    name: str
    label: str
    state: str
    certified: bool
    word: str
    status: str
    limit: str
    estimate: str
    counts: str
    bound: str
    n: str
    message: str
    spoken: str
    raw: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RuleRow:
    """One stop rule in words."""

    name: str
    label: str
    state: str
    word: str
    detail: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict in words, with what it stands on counted."""

    decision: str
    word: str
    headline: str
    reasons: list[str]
    next_step: str
    uncertified: list[str]
    tally: dict[str, int]
    rules: str


def gate_rows(result: Result) -> list[GateRow]:
    """All gates: what stops a release first, then what is open, then what passes, each in the given order."""
    rank = {"fail": 0, "open": 1, "pass": 2}
    rows = [_gate_row(gate) for gate in result.get("gates") or []]
    return sorted(rows, key=lambda row: rank[row.state])


def rule_rows(result: Result) -> list[RuleRow]:
    """All stop rules in the given order."""
    rows = []
    for rule in result.get("stop_rules") or []:
        state = rule_state(rule)
        word = "Not triggered" if state == "pass" else "Triggered" if rule.get("triggered") else "Not known"
        if rule.get("applies") is False:
            word = "Does not apply"
        label = RULE_LABELS.get(rule["name"]) or text.words(rule["name"]).capitalize()
        rows.append(RuleRow(text.line(rule["name"]), label, state, word, text.line(rule.get("detail") or "", 400)))
    return rows


def verdict_view(result: Result) -> Verdict:
    """The verdict; a headline or next step that is missing is filled from what is known.

    An approval's reasons leave out what the rows of the gates say: why a pass is no certificate.
    """
    verdict = result["verdict"]
    rows = gate_rows(result)
    rules = rule_rows(result)
    tally = {state: sum(row.state == state for row in rows) for state in ("fail", "open", "pass")}
    tally["uncertified"] = sum(row.state == "pass" and not row.certified for row in rows)
    hit = sum(rule.state != "pass" for rule in rules)
    headline, reasons = _headline(verdict)
    if verdict["decision"] == "approve":
        in_rows = {text.line(row.raw.get("message") or "", 400) for row in rows if not row.certified}
        reasons = [reason for reason in reasons if reason not in in_rows]
    return Verdict(
        decision=verdict["decision"],
        word=WORDS[verdict["decision"]],
        headline=headline,
        reasons=reasons,
        next_step=text.line(verdict.get("next_step") or "", 400),
        uncertified=[text.line(name) for name in verdict.get("uncertified") or []],
        tally=tally,
        rules=f"{hit} of {len(rules)} stop rules triggered or not known"
        if rules
        else "no stop rule could be computed",
    )


def _headline(verdict: Mapping[str, Any]) -> tuple[str, list[str]]:
    """The headline and the reasons below it; a headline that only repeats the verdict gives way to a reason."""
    headline = text.line(verdict.get("headline") or "", 400)
    reasons = [text.line(reason, 400) for reason in verdict.get("reasons") or []]
    if headline.rstrip(".").casefold() not in {"", "rejected", "approved", "insufficient evidence"}:
        return headline, reasons
    if reasons and verdict["decision"] != "approve":
        return reasons[0], reasons[1:]
    plain = {"approve": "Every gate passes", "reject": "Rejected"}
    return plain.get(verdict["decision"], "The evidence does not decide every gate"), reasons


def _gate_row(gate: Mapping[str, Any]) -> GateRow:
    state = STATES[gate["status"]]
    unit: numbers.Unit = gate.get("unit") or "share"
    limit = gate.get("limit")
    least = gate.get("limit_is", "max") == "min"
    bound_key = "lower_bound" if least else "upper_bound"
    bound = gate.get(bound_key)
    bound_text = numbers.quantity(bound, unit, limit=limit, reason=_reason(gate, bound_key, "no bound"))
    k, n = gate.get("k"), gate.get("n")
    label = text.line(gate.get("label") or text.words(gate["name"]))
    spoken = _message(gate, state, label)
    return GateRow(
        name=text.line(gate["name"]),
        label=label,
        state=state,
        certified=gate["status"] == "certified",
        word=STATE_WORDS[state],
        status=STATUS_WORDS[gate["status"]],
        limit=numbers.na("no limit") if limit is None else ("≥ " if least else "≤ ") + numbers.exact(limit, unit),
        estimate=numbers.quantity(
            gate.get("observed"), unit, limit=limit, reason=_reason(gate, "observed", "not measured")
        ),
        counts="" if k is None or not n else numbers.of(k, n) + _counted(gate, least),
        bound=bound_text if bound is None else ("≥ " if least else "≤ ") + bound_text,
        n=numbers.na("unknown") if n is None else f"{numbers.count(n)} ({_things(gate)})",
        message="" if gate["status"] == "certified" and unit == "share" else spoken,
        spoken=spoken,
        raw=gate,
    )


def _counted(gate: Mapping[str, Any], least: bool) -> str:
    """What k counts, where it is not what the estimate is a share of."""
    return " failed" if least else " slower or unanswered" if gate.get("unit") == "s" else ""


def _things(gate: Mapping[str, Any]) -> str:
    """What n counts; under weights that vary it is an effective number and has a fraction."""
    name = text.line(gate.get("n_is") or "items")
    plain = name.startswith("effective") or float(gate["n"]).is_integer()
    return name if plain else f"{name}, effective"


def _message(gate: Mapping[str, Any], state: str, label: str) -> str:
    """What is to be said beside the numbers: how a gate can be settled, or why its pass is no certificate."""
    given = text.line(gate.get("message") or "", 400).removeprefix(f"{label}: ")
    if gate["status"] == "estimate":
        return given if given.startswith("NOT CERTIFIED") else _not_certified(gate, given)
    parts = [given] if given else []
    if state == "open":
        missing = gate.get("missing_n")
        if missing is not None:
            if numbers.count(missing) not in given:
                things = text.line(gate.get("n_is") or "items")
                parts.append(f"about {numbers.count(missing)} more {things} at this rate would certify it")
        elif not given:
            parts.append(_reason(gate, "missing_n", "how many more would settle it is not known"))
    return "; ".join(parts)


def _not_certified(gate: Mapping[str, Any], given: str) -> str:
    """The row of a gate that is judged on its estimate, never a certificate."""
    tail = f" {given}" if given else ""
    if gate.get("unit", "share") != "share":
        return f"NOT CERTIFIED: {given or 'judged on the estimate, as no exact bound on a mean can be relied on'}"
    limit, k, n = gate["limit"], gate.get("k"), gate.get("n")
    head, _, risk = gate["name"].partition(":")
    under = head == "under_route" and risk != ""
    counted = ""
    if k is not None and n is not None:
        things = "" if gate.get("n_is", "items") == "items" else f" {text.line(gate['n_is'])}"
        counted = f"{numbers.count(k)} of {numbers.count(n)}{things}{' under-routed' if under else ''}, "
    bound = gate.get("lower_bound" if gate.get("limit_is") == "min" else "upper_bound")
    name = text.line(risk if under else gate.get("label") or gate["name"])
    row = (
        f"NOT CERTIFIED (policy). {name}: {counted}{numbers.percent(gate.get('observed'), limit=limit)}; "
        f"could be {numbers.percent(bound, limit=limit, reason='no bound')}. "
        f"Limit {numbers.exact(limit, 'share')}."
    )
    if under:
        row += " A threshold set on the estimate breaks the limit in more than half of studies."
    return row + tail


def _reason(source: Mapping[str, Any], key: str, default: str) -> str:
    return text.line(source.get(f"{key}_reason") or default)
