"""report.html of a ladder: one file that needs nothing else, reads without its script, and trusts no text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from markupsafe import Markup

from evalkit.reporting import figures, numbers, tables, text
from evalkit.reporting.environment import asset, environment, page_policy
from evalkit.reporting.gates_view import gate_rows, rule_rows, verdict_view
from evalkit.reporting.notes import Notes
from evalkit.reporting.reasoning.advice import advice, focus
from evalkit.reporting.reasoning.checked import ladder_checked
from evalkit.reporting.reasoning.figure import budget_curve
from evalkit.reporting.reasoning.ladder_view import (
    arm_rows,
    limit_rows,
    risk_rows,
    step_rows,
    worst_rows,
)
from evalkit.reporting.verdict import WORDS, Result

__all__ = ["render_ladder_html"]

_CURVE_ROWS = 7


def render_ladder_html(result: Result) -> str:
    """The whole report as one HTML document. The same result gives the same text."""
    ladder_checked(result)
    print_style = asset("print.css").replace("VERDICT-WORD", WORDS[result["verdict"]["decision"]])
    style = asset("report.css") + print_style.replace("evalkit routing report", "evalkit reasoning-budget report")
    script = asset("report.js")
    context = _context(result) | {
        "policy": page_policy(style, script),
        # These two are files of this package, not data.
        "style": Markup(style),
        "script": Markup(script),
    }
    return environment().get_template("reasoning/report.html").render(context)


def _context(result: Result) -> dict[str, Any]:
    here, word = focus(result)
    said = advice(result)
    counts = result["counts"]
    notes = Notes()
    ladder = [notes.row(row) for row in arm_rows(result)]
    worst = worst_rows(result)
    return {
        "study": text.line(result["study"], 120),
        "description": text.line(result["description"], 400) if result.get("description") else "",
        "about": _about(result),
        "verdict": verdict_view(result),
        "reasons": [text.line(reason, 400) for reason in result["verdict"]["reasons"]],
        "advice": said,
        "arm": text.line(here["name"], 60),
        "word": word,
        "wide": budget_curve(result) or "",
        "narrow": budget_curve(result, width=340, height=320) or "",
        "has_cost": all(arm["cost_usd_per_request"] is not None for arm in result["arms"]),
        "hatched": result.get("plateau_at") is not None,
        "ladder": ladder,
        "ladder_notes": notes.texts,
        "gates": [(row, figures.gate_bar(row.raw, row.state) or "") for row in gate_rows(result)],
        "gate_notes": _gate_notes(result),
        "limit_table": limit_rows(result),
        "arm_names": [text.line(arm["name"], 40) for arm in result["arms"]],
        "risks": risk_rows(result),
        "guarantee": text.line(result["guarantee"], 1200) if result.get("guarantee") else "",
        **_noted("steps", ((s.name, s.gain, s.ends, s.better, s.worse, s.benefit, s.benefit_ends, s.decision,
                            s.detectable) for s in step_rows(result))),
        "confidence": f"{100 * result['confidence']:.4g} %",
        "step_level": f"{100 * (1 - result['step_level']):.4g} %",
        "detectable": "" if result.get("minimum_detectable_gain_points") is None
        else f"{result['minimum_detectable_gain_points']:.1f} points",
        "acceptability": _acceptability(result),
        "rules": rule_rows(result),
        "items": worst,
        "items_n": f"{counts['items']:,}",
        "items_total": f"{result.get('worst_items_total') or 0:,}",
        "items_file": text.line(result.get("items_file") or "items.jsonl.gz", 120),
        "item_risks": [text.line(risk["name"], 40) for risk in result["risk_classes"]],
        "limits": [text.line(note, 400) for note in result.get("evidence_limits") or []] + [_PERCENTILES],
        "notices": [text.line(note, 600) for note in result.get("notices") or []],
        "provenance": _provenance(result),
        "kinds": tables.kinds(result),
    }  # fmt: skip


_PERCENTILES = (
    "Percentiles are nearest rank: the smallest value that at least that share of the answered runs does not "
    "exceed."
)


def _noted(name: str, rows: Iterable[tuple[str, ...]]) -> dict[str, Any]:
    notes = Notes()
    return {name: [notes.cells(list(row)) for row in rows], f"{name}_notes": notes.texts}


def _provenance(result: Result) -> list[tuple[str, list[str], str]]:
    """As for every study, with arms where a routing study has tiers."""
    return [
        (f"Arm {name.removeprefix('Tier ')}" if name.startswith("Tier ") else name, lines, digest)
        for name, lines, digest in tables.provenance(result)
    ]


def _about(result: Result) -> str:
    """The line under the title: what was evaluated, on how much."""
    counts = result["counts"]
    bits = [f"{counts['items']:,} tasks", f"{len(result['arms']):,} arm{'' if len(result['arms']) == 1 else 's'}"]
    bits.append(f"{counts['runs']:,} runs")
    if counts.get("groups"):
        bits.append(f"{counts['groups']:,} groups")
    finished = (result.get("provenance") or {}).get("finished_at")
    if finished:
        bits.append(text.moment(finished))
    return " · ".join(bits)


def _gate_notes(result: Result) -> list[str]:
    """What has to be known to read the bounds."""
    arms, level = len(result["arms"]), result.get("arm_level")
    notes = []
    if level is not None:
        share = f" ({100 * result['looks']['delta']:g} % of error shared by {arms} arms)" if arms > 1 else ""
        notes.append(f"Bounds are exact one-sided bounds at {100 * (1 - level):.4g} %{share}.")
    notes.append("A pass rate counts what was not answered as failed.")
    if any(g["name"] == "p95_task" for g in result["gates"]):
        notes.append(
            "The time limit is tested on the share of requests that are slower or unanswered, which may be 5 %."
        )
    return notes


def _acceptability(result: Result) -> list[tuple[str, list[str]]]:
    """How often each arm is the best, at a few values of a point."""
    curve = result.get("acceptability")
    if not curve:
        return []
    values = curve["usd_per_point"]
    step = max(1, (len(values) - 1) // (_CURVE_ROWS - 1))
    places = sorted({*range(0, len(values), step), len(values) - 1})
    place = {name: i for i, name in enumerate(curve["arms"])}
    rows = []
    for at in places:
        shares = curve["shares"][at]
        cells = [
            numbers.percent(shares[place[arm["name"]]]) if arm["name"] in place else numbers.na("cost unknown")
            for arm in result["arms"]
        ]
        rows.append((numbers.per_thousand(values[at], 1), cells))
    return rows
