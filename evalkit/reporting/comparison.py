"""A comparison of two runs for people: tables on the terminal, and Markdown for a merge request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from . import numbers
from .terminal import plain_words, simple_table
from .text import line, markdown
from .verdict import STATES, WORDS

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["render_comparison_markdown", "render_comparison_terminal"]

MOST_SHOWN = 10
_STATE_WORDS = {"pass": "pass", "open": "open", "fail": "fail"}
_WAYS = {"under_routed": "under-routed", "not_passed": "reply fails"}


def render_comparison_terminal(document: Mapping[str, Any], console: Console) -> None:
    """Print what differs, in 80 columns, plain when piped."""
    words = plain_words(console)
    for row in _head(document):
        console.print(words(row))
    console.print()
    table = simple_table(("Paired items", "Base", "Candidate", "Difference", "Interval"), right={1, 2, 3, 4})
    for row in document["differences"]:
        cells = _difference(row)
        style = {"candidate": "green", "base": "bold red"}.get(row["better"] or "", "")
        table.add_row(words(cells[0]), words(cells[1]), words(cells[2]), words(cells[3], style), words(cells[4]))
    console.print(table)
    for row in _below(document):
        console.print(words(row))
    for name, title in (("newly_failing", "Newly failing"), ("newly_working", "Newly working")):
        console.print()
        console.print(words(f"{title}: {_count(document[name], document)}", "bold"))
        for row in _risks(document, name):
            console.print(words(f"  {row}"))
        for row in _items(document[name]):
            console.print(words(f"  {row}"))
    for title, rows in (("Gates", _gates(document)), ("Inputs that differ", _inputs(document))):
        console.print()
        console.print(words(title, "bold"))
        for row in rows:
            console.print(words(f"  {row}"))
    for row in document.get("fail_on") or []:
        console.print(words(_condition(row), {True: "bold red", None: "yellow"}.get(row["met"], "green")))


def render_comparison_markdown(document: Mapping[str, Any]) -> str:
    """GitHub-flavoured Markdown; every text of data is escaped."""
    out = [f"## Comparison of two runs: {markdown(document['candidate']['study'], 120)}", ""]
    out += [f"- {markdown(row, 600)}" for row in _head(document)]
    out += [
        "",
        "| Paired items | Base | Candidate | Difference | Interval | Better |",
        "|:--|--:|--:|--:|--:|:--|",
    ]
    for row in document["differences"]:
        cells = [*_difference(row), row["better"] or ("" if row["difference"] is None else "not shown")]
        out.append("| " + " | ".join(markdown(cell, 300) for cell in cells) + " |")
    out += ["", *(f"- {markdown(row, 800)}" for row in _below(document))]
    for name, title in (("newly_failing", "Newly failing"), ("newly_working", "Newly working")):
        out += ["", f"### {title}: {markdown(_count(document[name], document), 400)}", ""]
        out += [f"- {markdown(row, 400)}" for row in _risks(document, name)]
        out += [f"- {markdown(row, 400)}" for row in _items(document[name])]
    for title, rows in (("Gates", _gates(document)), ("Inputs that differ", _inputs(document))):
        out += ["", f"### {title}", "", *(f"- {markdown(row, 400)}" for row in rows)]
    judged = document.get("fail_on") or []
    if judged:
        out += ["", "### Conditions", "", *(f"- {markdown(_condition(row), 400)}" for row in judged)]
    return "\n".join([*out, "", f"evalkit {markdown(document['evalkit_version'])}", ""])


# One wording for both


def _head(document: Mapping[str, Any]) -> Iterator[str]:
    for side in ("base", "candidate"):
        run = document[side]
        word = WORDS.get(run["decision"], "no verdict")
        at = run["thresholds"]
        if document["kind"] == "reasoning-budget":
            where = f"arm {line(run['looked_at'])}"
        else:
            where = f"threshold {', '.join(line(value) for value in at)}" if at else "routed as decided"
            where = f"router {line(run['router'], 60)}, {where}" if run.get("router") else where
        yield f"{side}: {line(run['study'])} ({line(run['folder'])}), {word}, {where}, {run['items']:,} items"
    pairs = document["pairs"]
    said = f"{pairs['items']:,} items are in both"
    if pairs["groups"] is not None:
        said += f", in {pairs['groups']:,} groups"
    apart = [
        f"{pairs[key]:,} {what}"
        for key, what in (
            ("only_in_base", "in base only"),
            ("only_in_candidate", "in candidate only"),
            ("relabelled", "with another label"),
        )
        if pairs[key]
    ]
    yield said + (f"; {', '.join(apart)}" if apart else "")


def _difference(row: Mapping[str, Any]) -> tuple[str, str, str, str, str]:
    unit = row["unit"]
    label = f"{line(row['label'])} (n {row['n']:,})"
    if row["difference"] is None:
        return label, "n/a", "n/a", "n/a", "n/a"
    ends = "n/a"
    if row["lower"] is not None:
        ends = f"{numbers.signed(row['lower'], unit)} to {numbers.signed(row['upper'], unit)}"
    return (
        label,
        numbers.quantity(row["base"], unit),
        numbers.quantity(row["candidate"], unit),
        numbers.signed(row["difference"], unit),
        ends,
    )


def _below(document: Mapping[str, Any]) -> Iterator[str]:
    """What is to be known of the table above."""
    level = numbers.exact(document["confidence"], "share")
    yield f"Paired differences, candidate less base; {level} intervals, each for itself. They certify nothing."
    for row in document["differences"]:
        if row["reason"] and not (row["figure"] == "cost_per_request" and document["costs"]["reason"]):
            yield f"{line(row['label'])}: {line(row['reason'], 400)}"
    if document["costs"]["reason"]:
        yield f"Costs are not compared: {line(document['costs']['reason'], 600)}"
    for note in document["notes"]:
        yield f"Note: {line(note, 400)}"


def _count(found: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    said = numbers.of(found["count"], found["of"], found["share"])
    if found["upper_bound"] is not None:
        said += f", could be {numbers.percent(found['upper_bound'])}"
    if not document["passes_known"]:
        said += "; not every reply was graded in both"
    return said


def _risks(document: Mapping[str, Any], name: str) -> Iterator[str]:
    for row in document["changes_by_risk"]:
        found = row[name]
        if found["count"] or len(document["changes_by_risk"]) > 1:
            under = f", {found['under_routed']:,} under-routed" if found["under_routed"] else ""
            risk = "no risk class" if row["risk"] is None else line(row["risk"])
            yield f"{risk}: {_count(found, {'passes_known': True})}{under}"


def _items(found: Mapping[str, Any]) -> Iterator[str]:
    for item in found["items"][:MOST_SHOWN]:
        ways = ", ".join(_WAYS.get(way, line(way)) for way in item["ways"])
        one, other = item["base"], item["candidate"]
        route = line(one["routed"])
        if other["routed"] != one["routed"]:
            route += f" → {line(other['routed'])}"
        status = " → ".join(line(side["status"]) for side in (one, other) if side["status"] is not None)
        required = f", needs {line(item['required'])}" if "required" in item else ""
        risk = "" if item["risk"] is None else f" ({line(item['risk'])}{required})"
        yield f"{line(item['id'])}{risk}: {ways}; {route}" + (f"; {status}" if status else "")
    rest = found["count"] - min(len(found["items"]), MOST_SHOWN)
    if rest > 0:
        yield f"and {rest:,} more (--json lists the first 1,000)"


def _gates(document: Mapping[str, Any]) -> Iterator[str]:
    for gate in document["gates"]:
        one, other = (_state(gate[side]) for side in ("base", "candidate"))
        change = one if one == other else f"{one} → {other}"
        yield f"{line(gate['label'])}: {change}" + (" (lost)" if gate["lost"] else "")
    if not document["gates"]:
        yield "none"


def _state(status: object) -> str:
    if status is None:
        return "absent"
    word = _STATE_WORDS.get(STATES.get(str(status), ""), "unknown")
    return f"{word}, not certified" if status == "estimate" else word


def _inputs(document: Mapping[str, Any]) -> Iterator[str]:
    differing = [row for row in document["inputs"] if not row["same"]]
    for row in differing:
        yield f"{line(row['input'])}: {line(row['base'] or 'none')} → {line(row['candidate'] or 'none')}"
    same = [line(row["input"]) for row in document["inputs"] if row["same"]]
    if same:
        yield f"the same in both: {', '.join(same)}"


def _condition(row: Mapping[str, Any]) -> str:
    word = {True: "MET", False: "not met", None: "CANNOT BE TOLD"}[row["met"]]
    return f"--fail-on {line(row['condition'])}: {word} ({line(row['detail'], 400)})"
