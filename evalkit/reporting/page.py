"""report.html: one file that needs nothing else, reads without its script, and treats every text as hostile."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from . import figures, routers_view, tables, text
from .environment import asset, environment, page_policy
from .explorer import explorer
from .gates_view import AUDITED, gate_rows, rule_rows, verdict_view
from .notes import Notes
from .points_view import chosen, pass_rate_sentence, policy_rows, thresholds
from .verdict import WORDS, Result, checked

__all__ = ["render_html"]


def render_html(result: Result) -> str:
    """The whole report as one HTML document. The same result gives the same text.

    Its policy allows this one script and this one style sheet by their hashes and nothing else: no request can
    leave the page and no text of it can run.
    """
    checked(result)
    decision = result["verdict"]["decision"]
    extra = asset("routers.css") if result.get("routers") else ""
    style = asset("report.css") + extra + asset("print.css").replace("VERDICT-WORD", WORDS[decision])
    script = asset("report.js")
    policy = page_policy(style, script)
    context = _context(result) | {
        "policy": policy,
        # These two are files of this package, not data.
        "style": Markup(style),
        "script": Markup(script),
    }
    return environment().get_template("report.html").render(context)


def _context(result: Result) -> dict[str, Any]:
    now = chosen(result)
    tiers = [tier["name"] for tier in result["tiers"]]
    ranks = tables.risk_ranks(result)
    board = explorer(result, ranks)
    counts = result["counts"]
    return {
        "study": text.line(result["study"], 120),
        "description": text.line(result["description"], 400) if result.get("description") else "",
        "about": _about(result),
        "verdict": verdict_view(result),
        "gates": [(row, figures.gate_bar(row.raw, row.state) or "") for row in gate_rows(result)],
        "gate_notes": _gate_notes(result),
        "guarantee": text.line(result["guarantee"], 1000) if result.get("guarantee") else "",
        "guarantee_reason": text.line(
            result.get("guarantee_reason") or "no limit is certified by this study", 300
        ),
        "chosen": now,
        "chosen_reason": text.line(result.get("candidate_reason") or "none could be computed", 300),
        "threshold": thresholds(now.point.get("thresholds"), tiers) if now else "",
        "rule": text.line(result["rule"], 200) if result.get("rule") else "",
        "diagnostics": [text.line(note, 400) for note in result.get("diagnostics") or []],
        "pass_sentence": pass_rate_sentence(now.point, counts) if now else "",
        **_noted("changes", [(name, *cells) for name, cells in tables.changes(result)]),
        **_policies(result),
        **_routers(result),
        "items_n": f"{counts['items']:,}",
        "explorer": board,
        "explorer_json": Markup(text.script_json(board.script)) if board else "",
        "cost_wide": figures.cost_quality(result) or "",
        "cost_narrow": figures.cost_quality(result, width=340, height=300) or "",
        "tier_names": [text.line(tier["tier"], 40) for tier in result.get("by_tier") or []],
        **_noted("tiers", [(name, *cells) for name, cells in tables.tier_rows(result)]),
        "routed_names": [text.line(name, 32) for name in tiers],
        **_noted("cost_matrix", [(name, *cells) for name, cells in tables.cost_matrix(result)]),
        "matrices": tables.matrices(result),
        "same_weight": not now or now.point.get("confusion_weighted") in (None, now.point.get("confusion")),
        "unsolvable": f"{counts['unsolvable']:,} items are" if counts.get("unsolvable") else "No item is",
        "compared": tables.comparisons(result)[0],
        **_noted("comparisons", tables.comparisons(result)[1]),
        **_noted("figures", tables.other_figures(result, now)),
        "rules": rule_rows(result),
        "items": tables.items(result),
        "items_total": f"{result.get('worst_items_total') or 0:,}",
        "items_file": text.line(result.get("items_file") or "items.jsonl.gz", 120),
        "risks": [(text.line(c["name"], 40), ranks[c["name"]]) for c in result["risk_classes"]],
        "limits": _limits(result),
        "notices": [text.line(note, 400) for note in result.get("notices") or []],
        "provenance": tables.provenance(result),
        "kinds": tables.kinds(result),
    }


def _noted(name: str, rows: Iterable[Sequence[str]]) -> dict[str, Any]:
    """A table of texts and the notes below it."""
    notes = Notes()
    return {name: [notes.cells(list(row)) for row in rows], f"{name}_notes": notes.texts}


def _policies(result: Result) -> dict[str, Any]:
    notes = Notes()
    return {"policies": [notes.row(row) for row in policy_rows(result)], "policies_notes": notes.texts}


def _routers(result: Result) -> dict[str, Any]:
    """The section of routers; `routers` is empty where the study has one that was read from a file."""
    rows, notes = routers_view.router_rows(result)
    compared, level, compared_notes = routers_view.router_comparisons(result)
    views, without = routers_view.calibrations(result)
    said, pairs = routers_view.leaks(result)
    return {
        "routers": rows,
        "routers_notes": notes,
        "router_rules": routers_view.router_rules(result),
        "separated_on": routers_view.separated_on(result),
        "chosen_router": text.line(result.get("chosen_router") or "", 60),
        "router_comparisons": compared,
        "router_comparisons_notes": compared_notes,
        "router_level": level,
        "calibrations": views,
        "uncalibrated": without,
        "leaks_said": said,
        "leak_pairs": pairs,
        "router_facts": routers_view.facts(result),
    }


def _about(result: Result) -> str:
    """The line under the title: what was evaluated, on how much."""
    counts = result["counts"]
    policy = {"direct": "direct policy", "cascade": "cascade policy", "decisions": "decisions already made"}
    bits = [f"{counts['items']:,} items", " < ".join(text.line(t["name"], 40) for t in result["tiers"])]
    bits.append(policy.get(result["policy"]) or text.line(result["policy"]))
    if result.get("policies_compared"):
        names = [row["policy"] if isinstance(row, Mapping) else row for row in result["policies_compared"]]
        bits.append("compared: " + text.join([text.line(name) for name in names]))
    if counts.get("groups"):
        bits.append(f"{counts['groups']:,} conversations")
    if (counts.get("samples") or 1) > 1:
        bits.append(f"{counts['samples']:,} samples an item")
    if result.get("thresholds_evaluated"):
        bits.append(f"{result['thresholds_evaluated']:,} thresholds evaluated")
    finished = (result.get("provenance") or {}).get("finished_at")
    if finished:
        bits.append(text.moment(finished))
    return " · ".join(bits)


def _gate_notes(result: Result) -> list[str]:
    """What has to be known to read the bounds."""
    gates = result.get("gates") or []
    confidences = sorted({g["confidence"] for g in gates if g.get("confidence")})
    level = text.join([f"{100 * c:g} %" for c in confidences])
    notes = [f"Bounds are exact one-sided bounds at {level}." if level else "Bounds are exact one-sided bounds."]
    if result.get("judged") is None:
        notes.append(
            "A bound printed here is pointwise and is not adjusted for the choice of the threshold: as a "
            "statement about this one threshold it misses in 6 to 14 % of studies."
            + (" The guarantee below is the statement that holds." if result.get("guarantee") else "")
        )
    certifying = result["counts"].get("certifying")
    if certifying and certifying < result["counts"]["items"]:
        notes.append(
            f"Gates, stop rules and comparisons stand on the {certifying:,} items that certify; the others found "
            "the direction of the path. Tables of policies count all items."
        )
    unsolvable = result["counts"].get("unsolvable") or 0
    if unsolvable:
        notes.append(
            f"{unsolvable:,} unsolvable items are in no under-route rate, neither above nor below the line."
        )
    if result.get("label_audit"):
        notes.append(AUDITED)
    if any(g.get("n_is") == "conversations" for g in gates):
        notes.append("Where n counts conversations, a conversation counts by its worst turn.")
    if any(g.get("n") is not None and not float(g["n"]).is_integer() for g in gates):
        notes.append("An effective n is the sum of the weights over the greatest weight; bounds stand on it.")
    return notes


def _limits(result: Result) -> list[str]:
    found = [text.line(note, 400) for note in result.get("evidence_limits") or []]
    if not result.get("label_audit") and not any("miss no need" in note for note in found):
        found.append("Assumes that labels miss no need: no audit of the labels is part of this run.")
    looks = result.get("looks") or {}
    if looks.get("declared"):
        delta = looks.get("delta")
        spends = f" and spends {100 * delta:g} % of error" if delta is not None and math.isfinite(delta) else ""
        found.append(f"Look {looks.get('this') or 1:,} of {looks['declared']:,} declared at these labels{spends}.")
    found.append(
        "Percentiles are nearest rank: the smallest value that at least that share of the answered requests "
        "does not exceed."
    )
    return found
