"""A result as Markdown, short enough for the step summary of a CI run."""

from __future__ import annotations

from .gates_view import AUDITED, GateRow, RuleRow, gate_rows, rule_rows, verdict_view
from .points_view import chosen, pass_rate_sentence, policy_rows, thresholds
from .routers_view import router_rows
from .text import join, line, markdown
from .verdict import Result, checked

__all__ = ["line_md", "render_markdown"]

_SIGNS = {"pass": "✅", "open": "❓", "fail": "❌"}


def render_markdown(result: Result) -> str:
    """Verdict, gates, policies and triggered rules as GitHub-flavoured Markdown; every text of data is escaped."""
    checked(result)
    verdict = verdict_view(result)
    sign = _SIGNS[{"approve": "pass", "reject": "fail"}.get(verdict.decision, "open")]
    out = [f"## {sign} {verdict.word}: {markdown(result['study'], 120)}", "", markdown(verdict.headline, 400)]
    if verdict.reasons:
        out += ["", "Why: " + "; ".join(markdown(reason, 400) for reason in verdict.reasons)]
    if verdict.uncertified:
        out += ["", "**Not certified:** " + join([markdown(name) for name in verdict.uncertified])]
    now = chosen(result)
    if now:
        cuts = thresholds(now.point.get("thresholds"), [tier["name"] for tier in result["tiers"]])
        rule = f" ({markdown(result['rule'])})" if result.get("rule") else ""
        head = f"Threshold {markdown(cuts, 400)}{rule}, " if cuts != "none" else ""
        out += ["", head + now.note, "", markdown(pass_rate_sentence(now.point, result["counts"]), 400)]
    if verdict.next_step:
        out += ["", f"**Next step:** {markdown(verdict.next_step, 400)}"]
    tally = verdict.tally
    passed = f"{tally['pass']} passed" + (
        f" ({tally['uncertified']} not certified)" if tally["uncertified"] else ""
    )
    out += ["", f"### Gates: {tally['fail']} failed, {tally['open']} open, {passed}", ""]
    out += _gates(gate_rows(result)) or ["n/a (no gate could be computed)"]
    out += ["", AUDITED] if result.get("label_audit") else []
    out += _rules(rule_rows(result))
    out += _routers(result)
    rows = policy_rows(result)
    if rows:
        out += [
            "",
            f"### Policies on the same {result['counts']['items']:,} items, USD per 1,000 requests",
            "",
            "| Policy | Expected total | Cost | Passed, lower to upper | Escalated | Under-routed, of needs |",
            "|:--|--:|--:|--:|--:|--:|",
        ]
        for row in rows:
            cells = (row.label, row.total, row.cost, row.range, row.escalated, row.under)
            out.append("| " + " | ".join(markdown(cell) for cell in cells) + " |")
    out += ["", markdown(result["guarantee"], 1000)] if result.get("guarantee") else []
    out += ["", f"evalkit {markdown(result.get('evalkit_version') or 'of unknown version')}", ""]
    return "\n".join(out)


def _gates(rows: list[GateRow]) -> list[str]:
    if not rows:
        return []
    out = ["| Result | Gate | Limit | Estimate | Bound | n | |", "|:--|:--|--:|--:|--:|--:|:--|"]
    for row in rows:
        estimate = row.estimate + (f" ({row.counts})" if row.counts else "")
        cells = (f"{row.word}, {row.status}", row.label, row.limit, estimate, row.bound, row.n, row.message)
        out.append(f"| {_SIGNS[row.state]} " + " | ".join(markdown(cell, 600) for cell in cells) + " |")
    return out


def _routers(result: Result) -> list[str]:
    """Every router of several, the chosen one in bold."""
    rows, _ = router_rows(result)
    if len(rows) < 2:
        return []
    out = ["", "### Routers on the same items, USD per 1,000 requests", ""]
    out += [
        "| Router | Verdict | Threshold | Expected total | Cost | Escalated | AUC |",
        "|:--|:--|--:|--:|--:|--:|--:|",
    ]
    for row in rows:
        name = f"**{markdown(row.name)}**" if row.chosen else markdown(row.name)
        cells = (row.threshold, row.total, row.cost, row.escalated, row.auc)
        shown = " | ".join(markdown(cell) for cell in cells)
        out.append(f"| {name} | {_SIGNS[row.state]} {row.word} | {shown} |")
    return out


def _rules(rows: list[RuleRow]) -> list[str]:
    hit = [row for row in rows if row.state != "pass"]
    if not hit:
        return []
    return [
        "",
        "### Stop rules",
        "",
        *(f"- {_SIGNS[r.state]} {r.word}: {markdown(r.label)}. {line_md(r.detail)}" for r in hit),
    ]


def line_md(detail: str) -> str:
    """The evidence of a rule, escaped."""
    return markdown(line(detail, 400), 400)
