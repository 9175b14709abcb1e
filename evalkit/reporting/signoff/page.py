"""signoff.html: one file that needs nothing else, reads without its script, and trusts no text."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from evalkit.reporting import figures, numbers, text
from evalkit.reporting.environment import asset, environment, page_policy
from evalkit.reporting.language import LANGUAGES, Language, language
from evalkit.reporting.reasoning.figure import budget_curve
from evalkit.reporting.signoff import origin, parts
from evalkit.reporting.signoff.checked import signoff_checked
from evalkit.reporting.signoff.gates import GateLine, gate_lines, rule_lines, verdict_box
from evalkit.reporting.signoff.said import mapping
from evalkit.reporting.verdict import Result

__all__ = ["render_signoff_html"]


def render_signoff_html(document: Result, lang: str = "en") -> str:
    """The whole sign-off as one HTML document in `lang` ("en" or "ko"). The same document gives the same text.

    Raises ValueError where the document contradicts itself, or for another language.
    """
    signoff_checked(document)
    _ = language(lang)
    box = verdict_box(document, _)
    digest = origin.digest_of(document)
    heading = _("evalkit sign-off")
    print_style = asset("print.css").replace("VERDICT-WORD", box.word).replace("evalkit routing report", heading)
    style = asset("report.css") + print_style + asset("signoff/signoff.css").replace("DIGEST", _css(digest))
    script = asset("report.js")
    context = _context(document, _) | {
        "_": _,
        "lang": _.code,
        "verdict": box,
        "digest": digest,
        "policy": page_policy(style, script),
        # These two are files of this package and words of its catalogues, not data.
        "style": Markup(style),
        "script": Markup(script),
    }
    return environment().get_template("signoff/signoff.html").render(context)


def _css(digest: str) -> str:
    """The digest as content of the page's foot: only what a digest is made of can stand in a style sheet."""
    kept = "".join(ch for ch in digest if ch.isascii() and (ch.isalnum() or ch == ":"))
    return kept[:80]


def _context(document: Result, _: Language) -> dict[str, Any]:
    lines = gate_lines(document, _)
    ladder = _ladder(document)
    shown_files, more_files = origin.files(document)
    runs = parts.run_rows(document, _)
    changes = parts.changes(document, _)
    slices = parts.slices(document, _)
    levels = {float(line.raw["confidence"]) for line in lines if line.raw.get("confidence") is not None}
    level = f"{100 * max(levels, default=0.0):.4g} %"
    rungs = parts.ladder_rows(document, _)
    return {
        "name": text.line(document["name"], 120),
        "about": _about(document, _),
        # A fact that holds has no figures to weigh: it stands below the table, and page 1 has room for the rest.
        "gates": [(line, _bar(line.raw, line.state)) for line in lines if not _held(line)],
        "held": [line for line in lines if _held(line)],
        "has_runs": any(line.run for line in lines),
        "bound_name": _("%(level)s bound", level=level) if len(levels) == 1 else _("Bound"),
        "rules": rule_lines(document, _),
        "runs": runs,
        "decided": _decided(document, runs, _),
        "changes": changes,
        "changes_runs": any(row.run for row in changes),
        "slices": [(row, _bar(row.raw, row.state)) for row in slices],
        "slices_runs": len({row.run for row in slices}) > 1,
        "ladder": rungs,
        "ladder_chosen": any(row.chosen for row in rungs),
        "curve_wide": (budget_curve(ladder, _=_) or "") if ladder else "",
        "curve_narrow": (budget_curve(ladder, width=340, height=320, _=_) or "") if ladder else "",
        "items": parts.items(document, _),
        "item_risks": sorted(
            {text.line(i.get("risk") or "", 40) for i in document.get("worst_items") or []} - {""}
        ),
        "items_total": numbers.count(document.get("worst_total") or len(document.get("worst_items") or [])),
        "limits": parts.evidence_limits(document, _),
        "release": parts.release_rows(document, _),
        "origin": origin.origin_rows(document, _),
        "files": shown_files,
        "more_files": more_files,
        "signers": parts.signers(document, _),
        "languages": [code for code in LANGUAGES if code != _.code],
    }


def _held(line: GateLine) -> bool:
    return line.fact and line.state == "pass"


def _bar(gate: Any, state: str) -> Markup | str:
    """The picture of a gate, where its figures lie on one axis."""
    known = [gate.get(key) for key in ("limit", "observed", "upper_bound", "lower_bound")]
    if any(v is not None and (isinstance(v, bool) or not isinstance(v, (int, float))) for v in known):
        return ""
    # The range of a limit from above begins at 0, so nothing below it (a difference) can be drawn truly.
    if gate.get("limit_is", "max") != "min" and any(v is not None and v < 0 for v in known):
        return ""
    if gate.get("limit_is", "max") == "min" and any(v is not None and v < 0 for v in known):
        return ""
    return figures.gate_bar(gate, state) or ""


def _about(document: Result, _: Language) -> str:
    """The line under the title."""
    runs = document.get("runs") or []
    bits = [_.ngettext("%(n)s run", "%(n)s runs", len(runs))]
    policy = mapping(document.get("policy"))
    if policy.get("file"):
        bits.append(_("policy %(file)s", file=text.line(policy["file"], 80)))
    if document.get("created_at"):
        bits.append(text.moment(document["created_at"]))
    return " · ".join(bits)


def _decided(document: Result, runs: list[parts.RunRow], _: Language) -> str:
    """What a signature decides about, in a sentence."""
    if document["verdict"]["decision"] != "approve":
        return _("Nothing is selected for release; the figures below are those of the candidate.")
    return "; ".join(_("%(study)s: release %(what)s", study=run.study, what=run.selected) for run in runs)


def _ladder(document: Result) -> dict[str, Any] | None:
    """The rungs as arms of a ladder, as its figure reads them; only where they are those of one run."""
    rungs = document.get("ladder") or []
    if len(rungs) < 2 or len({rung.get("run") for rung in rungs}) > 1:
        return None
    if any(rung.get("pass_rate") is None or rung.get("cost_usd") is None for rung in rungs):
        return None
    chosen = next((rung["arm"] for rung in rungs if rung.get("chosen")), None)
    flat = next((rung["arm"] for rung in rungs if rung.get("plateau")), None)
    arms = [
        {
            "name": rung["arm"],
            "cost_usd_per_request": rung["cost_usd"],
            "pass_rate_lower": rung["pass_rate"],
            "pass_rate_interval": rung.get("interval"),
            "status": rung.get("status") or "frontier",
        }
        for rung in rungs
    ]
    return {"arms": arms, "gates": [], "selected": chosen, "plateau_at": flat}
