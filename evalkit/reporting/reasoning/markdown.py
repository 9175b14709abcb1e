"""A ladder as Markdown, short enough for the step summary of a CI run."""

from __future__ import annotations

from evalkit.reporting.gates_view import gate_rows, rule_rows, verdict_view
from evalkit.reporting.reasoning.advice import advice, focus
from evalkit.reporting.reasoning.checked import ladder_checked
from evalkit.reporting.reasoning.ladder_view import arm_rows, step_rows
from evalkit.reporting.text import join, markdown
from evalkit.reporting.verdict import Result

__all__ = ["render_ladder_markdown"]

_SIGNS = {"pass": "✅", "open": "❓", "fail": "❌"}


def render_ladder_markdown(result: Result) -> str:
    """Verdict, recommendation, ladder, steps and gates as GitHub-flavoured Markdown; text of data is escaped."""
    ladder_checked(result)
    verdict, said = verdict_view(result), advice(result)
    here, word = focus(result)
    sign = _SIGNS[{"approve": "pass", "reject": "fail"}.get(verdict.decision, "open")]
    out = [f"## {sign} {verdict.word}: {markdown(result['study'], 120)}", "", markdown(said.choice, 600)]
    out += ["", " ".join(markdown(part, 600) for part in (said.flat, said.next_point, said.worth) if part)]
    if verdict.reasons:
        out += ["", "Why: " + "; ".join(markdown(reason, 400) for reason in verdict.reasons)]
    if verdict.uncertified:
        out += ["", "**Not certified:** " + join([markdown(name) for name in verdict.uncertified])]
    if verdict.next_step:
        out += ["", f"**Next step:** {markdown(verdict.next_step, 400)}"]
    out += [
        "",
        f"### Ladder on {result['counts']['items']:,} tasks, USD per 1,000 requests",
        "",
        "| Arm | Passed, of all | Interval | Cost | Billed tokens | p95 task | Price of a point | Limits |",
        "|:--|--:|--:|--:|--:|--:|--:|:--|",
    ]
    for row in arm_rows(result):
        name = f"**{markdown(row.name)}** ({row.word})" if row.here else markdown(row.name)
        cells = (row.passed, row.interval, row.cost, row.billed, row.p95, row.price)
        limits = f"{_SIGNS[row.limits_state]} {row.limits}"
        out.append(f"| {name} | " + " | ".join(markdown(cell, 300) for cell in cells) + f" | {limits} |")
    steps = step_rows(result)
    if steps:
        out += ["", "| Step | Gain | Interval | Tasks better | Tasks worse | Net benefit | Worth it |"]
        out.append("|:--|--:|--:|--:|--:|--:|:--|")
        for step in steps:
            parts = (step.name, step.gain, step.ends, step.better, step.worse, step.benefit, step.decision)
            out.append("| " + " | ".join(markdown(cell, 300) for cell in parts) + " |")
    rows = gate_rows(result)
    if rows:
        out += ["", f"### Gates of {markdown(here['name'])} ({word})", ""]
        out += ["| Result | Gate | Limit | Estimate | Bound | n | |", "|:--|:--|--:|--:|--:|--:|:--|"]
        for gate in rows:
            estimate = gate.estimate + (f" ({gate.counts})" if gate.counts else "")
            parts = (
                f"{gate.word}, {gate.status}",
                gate.label,
                gate.limit,
                estimate,
                gate.bound,
                gate.n,
                gate.message,
            )
            out.append(f"| {_SIGNS[gate.state]} " + " | ".join(markdown(cell, 600) for cell in parts) + " |")
    hit = [rule for rule in rule_rows(result) if rule.state != "pass"]
    if hit:
        out += ["", "### Stop rules", ""]
        out += [f"- {_SIGNS[r.state]} {r.word}: {markdown(r.label)}. {markdown(r.detail, 400)}" for r in hit]
    out += ["", markdown(result["guarantee"], 1000)] if result.get("guarantee") else []
    out += ["", f"evalkit {markdown(result.get('evalkit_version') or 'of unknown version')}", ""]
    return "\n".join(out)
