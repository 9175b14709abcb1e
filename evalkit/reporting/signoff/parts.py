"""The tables of a sign-off: runs, what changes, risk slices, ladder, worst items, release, provenance."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from evalkit.errors import redact
from evalkit.reporting import numbers, text
from evalkit.reporting.language import N_, Language
from evalkit.reporting.signoff.checked import risk_of
from evalkit.reporting.signoff.said import KINDS, Said, change, figure, mapping, missing, of, said
from evalkit.reporting.verdict import STATES, WORDS, Result

__all__ = [
    "ITEMS_SHOWN",
    "ChangeRow",
    "ItemRow",
    "RunRow",
    "RungRow",
    "SliceRow",
    "changes",
    "evidence_limits",
    "items",
    "ladder_rows",
    "release_rows",
    "risk_ranks",
    "run_rows",
    "signers",
    "slices",
]

ITEMS_SHOWN: Final = 40
_TEXT_SHOWN: Final = 320
_LIMITS_SHOWN: Final = 60
_SAFE_FOLDER: Final = re.compile(r"runs/[A-Za-z0-9][A-Za-z0-9._-]*\Z")

_KIND_OF_RUN: Final = {
    "routing": N_("routing"),
    "route-sweep": N_("routing"),
    "reasoning-budget": N_("reasoning budget"),
}
_FLAGS: Final = {
    name: name
    for name in (
        N_("under routed"),
        N_("unnecessary escalation"),
        N_("contract failure"),
        N_("unanswered"),
        N_("wrong"),
        N_("unsolvable"),
        N_("budget exhausted"),
        N_("declined"),
    )
}
_CHANGES: Final = {
    "threshold": N_("Threshold"),
    "thresholds": N_("Threshold"),
    "arm": N_("Arm"),
    "policy": N_("Routing policy"),
    "cost_per_request": N_("Cost per 1,000 requests"),
    "cost": N_("Cost per 1,000 requests"),
    "pass_rate": N_("Pass rate"),
    "pass_rate_lower": N_("Pass rate"),
    "escalation": N_("Escalation rate"),
    "escalation_rate": N_("Escalation rate"),
    "p95_task": N_("p95 task time"),
    "p95_task_s": N_("p95 task time"),
    "under_route": N_("Under-routing, %(risk)s"),
    "risk_failure": N_("Failures, %(risk)s"),
}


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run that the sign-off stands on. `link` is its folder where the name is one a page may link to."""

    id: str
    study: str
    kind: str
    word: str
    state: str
    selected: str
    look: str
    folder: str
    link: str


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """One figure before and after."""

    label: Said
    run: str
    before: str
    after: str
    change: str
    kind: str
    kind_word: str


@dataclass(frozen=True, slots=True)
class SliceRow:
    """One risk class of one run."""

    run: str
    risk: str
    rank: int
    counts: str
    rate: str
    bound: str
    limit: str
    state: str
    certified: bool
    word: str
    raw: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ItemRow:
    """One of the worst items."""

    id: str
    run: str
    risk: str
    rank: int
    required: str
    routed: str
    why: list[Said]
    loss: str
    text: text.Block | None


@dataclass(frozen=True, slots=True)
class RungRow:
    """One arm of the ladder."""

    arm: str
    run: str
    budget: str
    passed: str
    interval: str
    cost: str
    price: str
    chosen: bool
    notes: list[str]


def _studies(document: Result) -> dict[Any, str]:
    return {run["id"]: text.line(run.get("study") or run["id"], 60) for run in document.get("runs") or []}


def run_rows(document: Result, _: Language) -> list[RunRow]:
    """The runs, in the given order."""
    rows = []
    for run in document.get("runs") or []:
        verdict = run.get("verdict")
        decision = str(verdict.get("decision") if isinstance(verdict, Mapping) else verdict)
        kind = _KIND_OF_RUN.get(str(run.get("kind")))
        folder = text.line(run.get("folder") or "", 200)
        rows.append(
            RunRow(
                id=text.line(run["id"], 60),
                study=text.line(run.get("study") or run["id"], 80),
                kind=_(kind) if kind else text.line(run.get("kind") or "", 40),
                word=_(WORDS[decision]) if decision in WORDS else text.line(decision, 40),
                state={"approve": "pass", "reject": "fail"}.get(decision, "open"),
                selected=_chosen(run.get("selected"), _) + _router(run.get("router"), _),
                look=_looks(run.get("looks"), _),
                folder=folder,
                link=f"{folder}/report.html" if _SAFE_FOLDER.match(folder) and ".." not in folder else "",
            )
        )
    return rows


def _chosen(selected: Any, _: Language) -> str:
    """The operating point or arm that a run selected."""
    if isinstance(selected, Mapping):
        name = selected.get("arm") or (None if "thresholds" in selected else selected.get("name"))
        cuts, rule = selected.get("thresholds", selected.get("threshold")), selected.get("rule")
        if cuts not in (None, []):
            return _value(cuts, "threshold", _) + (f" ({said(rule, _, 120).text})" if rule else "")
        return text.line(name, 80) if name else missing("not known", _)
    if selected in (None, "", []):
        return _("none")
    return _value(selected, "threshold", _)


def _router(router: Any, _: Language) -> str:
    """Behind what was selected: the router that it belongs to, where several were judged."""
    found = mapping(router)
    if not found.get("name"):
        return ""
    name, of_all = text.line(found["name"], 60), numbers.count(found.get("of"))
    return "; " + _("router %(name)s, the best of %(n)s", name=name, n=of_all)


def _looks(looks: Any, _: Language) -> str:
    if isinstance(looks, Mapping) and looks.get("this") and looks.get("declared"):
        return _("%(k)s of %(n)s declared", k=numbers.count(looks["this"]), n=numbers.count(looks["declared"]))
    if isinstance(looks, (int, float)) and not isinstance(looks, bool):
        return numbers.count(looks)
    return missing("not known", _)


def _value(value: Any, unit: str, _: Language, reason: object = None) -> str:
    """A setting or a figure: thresholds at full precision, names as they are."""
    if value is None:
        return missing(reason, _)
    if isinstance(value, (list, tuple)):
        return ", ".join(_value(part, unit, _) for part in value) or _("none")
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(value, (int, float)):
        return numbers.threshold(value) if unit in {"threshold", "setting"} else figure(value, unit, _)
    return text.line(value, 120)


def changes(document: Result, _: Language) -> list[ChangeRow]:
    """Production against the candidate; a cost per request is told for 1,000."""
    studies, rows = _studies(document), []
    for row in document.get("changes") or []:
        head, _sep, risk = str(row["what"]).partition(":")
        risk = str(row.get("risk") or risk)
        unit = str(row.get("unit") or "")
        known = _CHANGES.get(head)
        before, after = row.get("before"), row.get("after")
        if known and unit == "usd" and head in {"cost", "cost_per_request"}:
            before, after = _thousand(before), _thousand(after)
        if known and ("%(risk)s" in known) is bool(risk):
            label = Said(_(known, risk=text.line(risk, 40)) if risk else _(known))
        else:
            label = said(row.get("label") or text.words(row["what"]), _, 120)
        unit = "threshold" if head in {"threshold", "thresholds"} else unit
        kind = row.get("kind") if row.get("kind") in KINDS else ""
        rows.append(
            ChangeRow(
                label=label,
                run=studies.get(row.get("run"), "") if len(studies) > 1 else "",
                before=_value(before, unit, _, row.get("before_reason")),
                after=_value(after, unit, _, row.get("after_reason")),
                change=change(before, after, unit, _),
                kind=kind or "",
                kind_word=_(KINDS[kind]) if kind else "",
            )
        )
    return rows


def _thousand(value: Any) -> Any:
    return 1000 * value if isinstance(value, (int, float)) and not isinstance(value, bool) else value


def risk_ranks(document: Result) -> dict[str, int]:
    """A mark from 0 to 3 for each risk class: the strictest limit first."""
    limits: dict[str, float] = {}
    for row in document.get("risk_slices") or []:
        limit = row.get("limit")
        limits[row["risk"]] = min(limits.get(row["risk"], 2.0), 2.0 if limit is None else limit)
    order = sorted(set(limits.values()))
    return {risk: min(order.index(limit), 3) for risk, limit in limits.items()}


def slices(document: Result, _: Language) -> list[SliceRow]:
    """What was missed in each risk class, of what needed a stronger tier."""
    studies, ranks, rows = _studies(document), risk_ranks(document), []
    gates = {
        (gate.get("run"), risk_of(gate)): STATES[gate["status"]]
        for gate in reversed(document.get("gates") or [])
        if gate.get("limit") is not None and gate.get("observed") is not None
    }
    for row in document.get("risk_slices") or []:
        limit, bound, certified = row.get("limit"), row.get("bound"), row.get("certified")
        # A class has the state of its gate: one that is judged on the estimate passes, and is not certified.
        state = "pass" if certified else gates.get((row.get("run"), row["risk"]), "open")
        word = _("certified") if certified else _("not certified") if limit is not None else _("no limit")
        rows.append(
            SliceRow(
                run=studies.get(row.get("run"), text.line(row.get("run") or "", 60)),
                risk=text.line(row["risk"], 40),
                rank=ranks[row["risk"]],
                counts=of(row.get("missed"), row.get("needs"), _),
                rate=figure(row.get("rate"), "share", _, limit=limit, default="not measured"),
                bound=("≤ " if bound is not None else "")
                + figure(bound, "share", _, limit=limit, default="no bound"),
                limit="≤ " + numbers.exact(limit, "share") if limit is not None else missing("no limit", _),
                state=state,
                certified=bool(certified),
                word=word,
                raw={"limit": limit, "observed": row.get("rate"), "upper_bound": bound, "unit": "share"},
            )
        )
    return rows


def items(document: Result, _: Language) -> list[ItemRow]:
    """The worst items, cut to what somebody will read."""
    studies, ranks, rows = _studies(document), risk_ranks(document), []
    many = len(studies) > 1
    for item in (document.get("worst_items") or [])[:ITEMS_SHOWN]:
        why = item.get("why") or []
        risk = item.get("risk") or ""
        rows.append(
            ItemRow(
                id=text.line(item["id"], 80),
                run=studies.get(item.get("run"), "") if many else "",
                risk=text.line(risk, 40),
                rank=ranks.get(risk, 3),
                required=text.line(item.get("required") or "", 40),
                routed=text.line(item.get("routed") or "", 40),
                why=[_flag(w, _) for w in ([why] if isinstance(why, str) else why)][:6],
                loss=figure(item.get("loss_usd"), "usd", _, reason=item.get("loss_usd_reason")),
                text=_block(item, _),
            )
        )
    return rows


def _flag(name: object, _: Language) -> Said:
    head, found, arm = str(name).partition("broken by ")
    if not head and found:
        return Said(_("broken by %(arm)s", arm=text.line(arm, 60)))
    words = text.words(name)
    return Said(_(_FLAGS[words])) if words in _FLAGS else said(words, _, 120)


def _block(item: Mapping[str, Any], _: Language) -> text.Block | None:
    value = item.get("text")
    if not value:
        return None
    full = item.get("text_characters")
    part = text.block(value, _TEXT_SHOWN, full=full)
    if part.cut:
        count = numbers.count(full or len(redact(str(value)).replace("\r\n", "\n")))
        part = part._replace(cut=_("… cut here; %(n)s characters in all", n=count))
    return part


def ladder_rows(document: Result, _: Language) -> list[RungRow]:
    """The arms in the order of their budgets."""
    studies, rows = _studies(document), []
    for rung in document.get("ladder") or []:
        span = rung.get("interval")
        lower, upper = span if span else (None, None)
        notes = [_("chosen")] if rung.get("chosen") else []
        notes += [_("flat from here")] if rung.get("plateau") else []
        rows.append(
            RungRow(
                arm=text.line(rung["arm"], 60),
                run=studies.get(rung.get("run"), "") if len(studies) > 2 else "",
                budget=_value(rung.get("budget"), "count", _, rung.get("budget_reason") or "not stated"),
                passed=figure(rung.get("pass_rate"), "share", _, default="not measured"),
                interval=missing("no bound", _)
                if lower is None or upper is None
                else _("%(a)s to %(b)s", a=numbers.percent(lower), b=numbers.percent(upper)),
                cost=figure(_thousand(rung.get("cost_usd")), "usd", _),
                price=figure(
                    _thousand(rung.get("marginal_usd_per_point")),
                    "usd",
                    _,
                    reason=rung.get("marginal_usd_per_point_reason") or _("no measurable gain"),
                ),
                chosen=bool(rung.get("chosen")),
                notes=notes,
            )
        )
    return rows


def evidence_limits(document: Result, _: Language) -> list[Said]:
    """What the evidence does not cover; what does not fit is counted."""
    given = document.get("evidence_limits") or []
    found = [said(one.get("text") if isinstance(one, Mapping) else one, _, 500) for one in given[:_LIMITS_SHOWN]]
    if len(given) > _LIMITS_SHOWN:
        found.append(Said(_("%(n)s more stand in signoff.json.", n=len(given) - _LIMITS_SHOWN)))
    return found


def release_rows(document: Result, _: Language) -> list[tuple[str, list[str]]]:
    """Rollout, rollback, owner, expiry; one that the policy does not state is said to be missing."""
    release = mapping(document.get("release"))
    titles = (
        ("rollout", _("Rollout")),
        ("watch", _("Watch")),
        ("rollback_when", _("Roll back when")),
        ("rollback_how", _("Roll back by")),
        ("owner", _("Owner")),
        ("expires", _("Expires")),
    )
    rows = []
    for key, title in titles:
        lines = list(_lines(release.get(key)))
        if lines or key != "watch":
            rows.append((title, lines or [_("n/a (the policy does not state it)")]))
    known = {key for key, _title in titles}
    rows += [(text.words(k).capitalize(), list(_lines(v))) for k, v in release.items() if k not in known and v]
    return rows


def _lines(value: Any) -> Sequence[str]:
    if value in (None, "", []):
        return []
    if isinstance(value, Mapping):
        return ["; ".join(f"{text.words(k)}: {', '.join(_lines(v))}" for k, v in value.items())]
    if isinstance(value, (list, tuple)):
        return [line for part in value for line in _lines(part)]
    return [text.line(value, 400)]


def signers(document: Result, _: Language) -> list[tuple[str, str, str]]:
    """(role, name, what is ticked) of those who sign; empty lines where the policy names nobody."""
    roles = {"preparer": _("Prepared by"), "reviewer": _("Reviewed by"), "approver": _("Approved by")}
    named = [(str(one.get("role") or ""), str(one.get("name") or "")) for one in document.get("signers") or []]
    rows = []
    for role, name in named or [("preparer", ""), ("reviewer", ""), ("approver", "")]:
        yes, no = _("approve"), _("reject")
        if role in {"preparer", "prepared_by"}:
            yes, no = "", ""
        elif role == "reviewer":
            yes, no = _("agree"), _("disagree")
        ticks = f"☐ {yes}\u2002☐ {no}" if yes else ""
        rows.append((roles.get(role) or text.words(text.line(role, 60)).capitalize(), text.line(name, 80), ticks))
    return rows
