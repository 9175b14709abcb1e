"""Gates, stop rules and the verdict of a sign-off in the reader's language, from structure, not from sentences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from evalkit.reporting import numbers, text
from evalkit.reporting.gates_view import RULE_LABELS, STATE_WORDS, STATUS_WORDS
from evalkit.reporting.language import N_, Language
from evalkit.reporting.signoff.checked import as_run_gate, risk_of
from evalkit.reporting.signoff.said import KINDS, Said, exact, figure, missing, said, things
from evalkit.reporting.signoff.sentences import arm_name
from evalkit.reporting.verdict import STATES, WORDS, Result, rule_state

__all__ = ["GateLine", "RuleLine", "VerdictBox", "gate_label", "gate_lines", "rule_lines", "verdict_box"]

_LABELS: Final = {
    "under_route": N_("Under-routing, %(risk)s"),
    "risk_failure": N_("Failures, %(risk)s"),
    "pass_rate": N_("Pass rate"),
    "escalation": N_("Escalation rate"),
    "p95_task": N_("p95 task time"),
    "cost_per_request": N_("Cost per request"),
    "cost_known": N_("Costs known"),
    "non_inferiority": N_("Pass rate against production"),
    "answered_share": N_("Answered share"),
    "judge_agreement": N_("Judge agreement with people"),
    "judge_unparseable": N_("Judge replies that could not be read"),
    "label_agreement": N_("Agreement of the labels"),
    "label_age": N_("Age of the labels"),
    "missed_needs": N_("Needs that the labels miss"),
    "price_age": N_("Age of the prices"),
    "attempts": N_("Looks at the labels"),
    "policy_before_run": N_("Policy fixed before the run"),
    "evidence": N_("Evidence can be recomputed"),
    "sign_off_expiry": N_("Sign-off not expired"),
}

TODAY: Final = N_("today's policy")
_FACT_WORDS: Final = {
    "certified": N_("holds"),
    "insufficient": N_("not met"),
    "not_statable": N_("not shown"),
}
"""What the status of a fact means: without chance there is nothing to certify."""


@dataclass(frozen=True, slots=True)
class GateLine:
    """One gate in words. `state` is pass, open or fail; a pass that is not `certified` must look different.

    `why` says how an open gate can be settled, or why a pass is no certificate. `spoken` is the whole gate in one
    sentence, for where there is no table. A `fact` holds or not, without chance: an age, a hash, a count of looks.
    """

    id: str
    label: Said
    run: str
    state: str
    certified: bool
    fact: bool
    word: str
    status: str
    limit: str
    estimate: str
    bound: str
    n: str
    counted: str
    why: list[Said]
    kind: str
    kind_word: str
    spoken: str
    raw: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RuleLine:
    """One stop rule in words."""

    label: str
    run: str
    state: str
    word: str
    detail: Said


@dataclass(frozen=True, slots=True)
class VerdictBox:
    """The verdict in words, with what it stands on counted."""

    decision: str
    state: str
    word: str
    headline: Said
    reasons: list[Said]
    next_step: Said
    uncertified: list[str]
    tally: dict[str, int]
    rules: str


def gate_label(gate: Mapping[str, Any], _: Language) -> Said:
    """What a gate is called."""
    head = str(gate["name"]).partition(":")[0]
    risk = risk_of(gate)
    given = text.line(gate.get("label") or "", 120)
    if _.english and given not in {"", risk}:
        return Said(given)
    against = given.removeprefix("Pass rate against ")
    if head == "non_inferiority" and against not in {"", given}:
        arm = _(TODAY) if against == TODAY else arm_name(against, _)
        return Said(_("Pass rate against %(arm)s", arm=arm))
    if head in _LABELS:
        return Said(_(_LABELS[head], risk=text.line(risk, 40)) if risk else _(_LABELS[head]))
    return said(gate.get("label") or text.words(gate["name"]), _, 120)


def gate_lines(document: Result, _: Language) -> list[GateLine]:
    """All gates: what stops a release first, then what is open, then what passes, each in the given order."""
    rank = {"fail": 0, "open": 1, "pass": 2}
    runs = _studies(document)
    many = len(runs) > 1
    lines = [_gate_line(gate, runs if many else {}, _) for gate in document.get("gates") or []]
    return sorted(lines, key=lambda line: rank[line.state])


def _gate_line(gate: Mapping[str, Any], runs: Mapping[str, str], _: Language) -> GateLine:
    state, unit = STATES[gate["status"]], str(gate.get("unit") or "share")
    limit, seen, bound, n = (gate.get(key) for key in ("limit", "observed", "bound", "n"))
    sign = "≥ " if gate.get("limit_is", "max") == "min" else "≤ "
    label, fact = gate_label(gate, _), gate.get("basis") == "fact"
    idle = "does not apply" if fact else ""
    limit_text = missing(idle or "no limit", _) if limit is None else sign + exact(limit, unit, _)
    estimate = figure(
        seen, unit, _, limit=limit, reason=gate.get("observed_reason"), default=idle or "not measured"
    )
    bound_text = figure(bound, unit, _, limit=limit, reason=gate.get("bound_reason"), default=idle or "no bound")
    bound_text = bound_text if bound is None else sign + bound_text
    why = _why(gate, state, label.text, _)
    unmeasured = seen is None and bound is None and state != "pass"
    kind = gate.get("kind") if gate.get("kind") in KINDS and not unmeasured else ""
    known = (
        (limit, _("limit %(x)s", x=limit_text)),
        (seen, _("estimate %(x)s", x=estimate)),
        (bound, _("bound %(x)s", x=bound_text)),
    )
    figures = ", ".join(words for value, words in known if value is not None)
    said_of_it = "; ".join([*([figures] if figures else []), *(part.text for part in why)])
    return GateLine(
        id=text.line(gate.get("id") or gate["name"], 120),
        label=label,
        run=runs.get(str(gate.get("run")), ""),
        state=state,
        certified=gate["status"] == "certified",
        fact=fact,
        word=_(STATE_WORDS[state]),
        status=_((_FACT_WORDS if fact else {}).get(gate["status"]) or STATUS_WORDS[gate["status"]]),
        limit=limit_text,
        estimate=estimate,
        bound=bound_text,
        n=missing(idle or ("not known" if gate.get("n_is") else "no sample"), _)
        if n is None
        else numbers.count(n),
        counted=things(gate.get("n_is"), _) if n is not None else "",
        why=why,
        kind=kind or "",
        kind_word=_(KINDS[kind]) if kind else "",
        spoken=f"{label.text}: {said_of_it or _(STATE_WORDS[state])}",
        raw=as_run_gate(gate),
    )


def _why(gate: Mapping[str, Any], state: str, label: str, _: Language) -> list[Said]:
    """What is to be said beside the numbers; nothing where a certificate says it all."""
    status, parts = gate["status"], []
    given = text.line(gate.get("message") or "", 400)
    for prefix in (label, text.line(gate.get("label") or "", 120)):
        given = given.removeprefix(f"{prefix}: ")
    if status == "certified":
        return []
    if _.english and given:
        marked = status != "estimate" or given.startswith("NOT CERTIFIED")
        parts.append(Said((given if marked else f"NOT CERTIFIED: {given}").rstrip(".") + "."))
    elif status == "estimate":
        parts.append(Said(_("NOT CERTIFIED: judged on the estimate, outside of the guarantee.")))
    elif status == "violated":
        parts.append(Said(_("The evidence shows that the limit is broken.")))
    elif status == "infeasible":
        parts.append(Said(_("No threshold meets this limit together with the others.")))
    elif status == "not_statable" and given:
        parts.append(said(given, _))
    if state == "open":
        more = gate.get("missing_n")
        if more is not None:
            if not (_.english and numbers.count(more) in given):
                counted = things(gate.get("n_is"), _)
                parts.append(Said(_("About %(n)s more %(things)s at this rate would settle it.",
                                    n=numbers.count(more), things=counted)))  # fmt: skip
        elif gate.get("basis") == "fact":
            parts = parts or [said(given, _) if given else Said(_("The evidence does not decide it."))]
        elif gate.get("observed") is None and parts:
            pass  # nothing was measured, and the message says what to do about it
        elif gate.get("more_helps") is False and not (_.english and "will not help" in given):
            parts.append(Said(_("More of the same will not settle it.")))
        elif not parts:
            parts.append(Said(_("The evidence does not decide it.")))
    return parts


def rule_lines(document: Result, _: Language) -> list[RuleLine]:
    """All stop rules in the given order."""
    runs = _studies(document)
    lines = []
    for rule in document.get("stop_rules") or []:
        state = rule_state(rule)
        word = (
            _("Not triggered") if state == "pass" else _("Triggered") if rule.get("triggered") else _("Not known")
        )
        if rule.get("applies") is False:
            word = _("Does not apply")
        known = RULE_LABELS.get(rule["name"])
        label = _(known) if known else text.words(rule["name"]).capitalize()
        run = runs.get(str(rule.get("run")), "") if len(runs) > 1 else ""
        lines.append(RuleLine(label, run, state, word, said(rule.get("detail") or "", _)))
    return lines


def verdict_box(document: Result, _: Language) -> VerdictBox:
    """The verdict; in another language than English its sentences are made anew from gates and rules."""
    verdict, lines, rules = document["verdict"], gate_lines(document, _), rule_lines(document, _)
    decision = verdict["decision"]
    tally = {state: sum(line.state == state for line in lines) for state in ("fail", "open", "pass")}
    tally["uncertified"] = sum(line.state == "pass" and not line.certified for line in lines)
    hit = sum(rule.state != "pass" for rule in rules)
    shown = _("%(k)s of %(n)s stop rules triggered or not known", k=hit, n=len(rules))
    return VerdictBox(
        decision=decision,
        state={"approve": "pass", "reject": "fail"}.get(decision, "open"),
        word=_(WORDS[decision]),
        headline=_headline(verdict, lines, rules, _),
        reasons=_reasons(document, lines, _),
        next_step=_next_step(verdict, lines, rules, _),
        uncertified=[text.line(name, 60) for name in verdict.get("uncertified") or []],
        tally=tally,
        rules=shown if rules else _("no stop rule could be computed"),
    )


def _headline(verdict: Mapping[str, Any], lines: list[GateLine], rules: list[RuleLine], _: Language) -> Said:
    given = text.line(verdict.get("headline") or "", 400)
    if _.english and given.rstrip(".").casefold() not in {"", "rejected", "approved", "insufficient evidence"}:
        return Said(given)
    decision = verdict["decision"]
    if decision == "approve":
        head = _.ngettext("The one gate passes", "All %(n)s gates pass", len(lines))
        names = [text.line(name, 60) for name in verdict.get("uncertified") or []]
        tail = _("not certified: %(names)s", names=_.together(names)) if names else ""
        return Said(f"{head}; {tail}" if tail else head)
    wanted = "fail" if decision == "reject" else "open"
    stopped = list(dict.fromkeys(line.label.text for line in lines if line.state == wanted))
    stopped += [rule.label for rule in rules if rule.state == wanted]
    if not stopped:
        return Said(_("A run does not support an approval"))
    shown = "; ".join(stopped if len(stopped) < 5 else stopped[:4]) + (  # labels have commas of their own
        _(" and %(n)s more", n=len(stopped) - 4) if len(stopped) > 4 else ""
    )
    if decision == "reject":
        return Said(_("Does not hold: %(names)s", names=shown))
    return Said(_("Not decided by the evidence: %(names)s", names=shown))


def _reasons(document: Result, lines: list[GateLine], _: Language) -> list[Said]:
    """Why, weightiest first: the document's sentences, or in another language the gates and rules behind them.

    An approval's reasons leave out what the rows of the gates say: why a pass is no certificate.
    """
    given = [r if isinstance(r, Mapping) else {"text": r} for r in document["verdict"].get("reasons") or []]
    if document["verdict"]["decision"] == "approve":
        given = [reason for reason in given if not reason.get("gate")]
    if _.english:
        return [Said(text.line(reason["text"], 400)) for reason in given]
    gates = {str(line.raw.get("id")): line for line in lines}
    found: list[Said] = []
    for reason in given:
        gate, code = gates.get(str(reason.get("gate"))), str(reason.get("code") or "")
        if gate is not None:
            found.append(Said(f"{gate.run}: {gate.spoken}" if gate.run else gate.spoken))
        elif code == "stop_rule" and reason.get("rule") in RULE_LABELS:
            head = _(RULE_LABELS[reason["rule"]])
            detail = said(reason["text"], _)
            found.append(Said(head) if detail.lang else Said(f"{head}: {detail.text}"))
        elif code.removeprefix("run_") in WORDS and code.startswith("run_"):
            word = _(WORDS[code.removeprefix("run_")])
            study = _studies(document).get(str(reason.get("run")), text.line(reason.get("run") or "", 60))
            found.append(Said(f"{study}: {word}"))
        elif document["verdict"]["decision"] == "approve":
            sure = sum(line.certified for line in lines)
            found.append(
                Said(
                    _("%(certified)s certified, %(rest)s on the estimate", certified=sure, rest=len(lines) - sure)
                )
            )
        else:
            found.append(said(reason["text"], _))
    return found


def _studies(document: Result) -> dict[str, str]:
    return {str(run["id"]): text.line(run.get("study") or run["id"], 60) for run in document.get("runs") or []}


def _next_step(verdict: Mapping[str, Any], lines: list[GateLine], rules: list[RuleLine], _: Language) -> Said:
    step = verdict.get("next_step")
    given = step.get("text") if isinstance(step, Mapping) else step
    if _.english and given:
        return Said(text.line(given, 400))
    decision = verdict["decision"]
    if decision == "approve":
        return Said(_("Decide, sign, and release under the conditions below."))
    if decision == "reject":
        return Said(_("Change what is broken, then judge it on fresh labels."))
    doubts = [rule.label for rule in rules if rule.state != "pass"]
    if doubts:
        return Said(_("Settle this before labelling more: %(names)s", names=_.together(doubts)))
    missing = [
        _("%(label)s: %(n)s more %(things)s", label=line.label.text, n=numbers.count(line.raw["missing_n"]),
          things=things(line.raw.get("n_is"), _))
        for line in lines
        if line.state == "open" and line.raw.get("missing_n")
    ]  # fmt: skip
    if missing:
        return Said(_("Collect at least: %(what)s", what="; ".join(missing[:4])))
    return Said(_("More of the same evidence will not decide this; see the open gates."))
