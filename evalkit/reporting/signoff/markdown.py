"""A sign-off as Markdown, short enough for the step summary of a CI run."""

from __future__ import annotations

from evalkit.reporting.language import Language, language
from evalkit.reporting.signoff import parts
from evalkit.reporting.signoff.checked import signoff_checked
from evalkit.reporting.signoff.gates import GateLine, gate_lines, rule_lines, verdict_box
from evalkit.reporting.signoff.origin import digest_of
from evalkit.reporting.text import markdown
from evalkit.reporting.verdict import Result

__all__ = ["render_signoff_markdown"]

_SIGNS = {"pass": "✅", "open": "❓", "fail": "❌"}


def render_signoff_markdown(document: Result, lang: str = "en") -> str:
    """Verdict, gates, stop rules, changes and digest as GitHub-flavoured Markdown; text of data is escaped."""
    signoff_checked(document)
    _ = language(lang)
    box = verdict_box(document, _)
    out = [f"## {_SIGNS[box.state]} {markdown(box.word)}: {markdown(document['name'], 120)}", ""]
    out += [f"**{markdown(box.headline.text, 400)}**"]
    if box.reasons:
        out += ["", *(f"- {markdown(reason.text, 600)}" for reason in box.reasons)]
    if box.uncertified:
        names = ", ".join(markdown(name) for name in box.uncertified)
        out += ["", _bold(_("Not certified"), names)]
    if box.next_step.text:
        out += ["", _bold(_("Next step"), markdown(box.next_step.text, 400))]
    out += _head(_("Gates") + ": " + _tally(box.tally, _)) + _gates(gate_lines(document, _), _)
    hit = [rule for rule in rule_lines(document, _) if rule.state != "pass"]
    if hit:
        out += _head(_("Stop rules"))
        for rule in hit:
            text = f"{markdown(rule.word)}: {markdown(rule.label)}. {markdown(rule.detail.text, 400)}"
            out.append(f"- {_SIGNS[rule.state]} {text}")
    changes = parts.changes(document, _)
    if changes:
        titles = [_("Figure"), _("Today"), _("Candidate"), _("Change")]
        out += [*_head(_("What changes")), _row(titles)]
        out += ["|:--|--:|--:|--:|"]
        out += [_row([_with(c.label.text, c.run), c.before, c.after, c.change]) for c in changes]
    return "\n".join([*out, "", _bold(_("Document digest"), markdown(digest_of(document))), ""])


def _bold(title: str, shown: str) -> str:
    return f"**{title}:** {shown}"


def _head(title: str) -> list[str]:
    return ["", f"### {title}", ""]


def _tally(counts: dict[str, int], _: Language) -> str:
    """The gates counted: "0 failed, 1 open, 8 passed (2 not certified)"."""
    head = _("%(fail)s failed, %(open)s open, %(passed)s passed",
             fail=counts["fail"], open=counts["open"], passed=counts["pass"])  # fmt: skip
    return head + (_(" (%(n)s not certified)", n=counts["uncertified"]) if counts["uncertified"] else "")


def _gates(lines: list[GateLine], _: Language) -> list[str]:
    if not lines:
        return [_("n/a (no gate could be computed)")]
    titles = [_("Result"), _("Gate"), _("Limit"), _("Estimate"), _("Bound"), "n", _("Kind"), ""]
    out = [_row(titles), "|:--|:--|--:|--:|--:|--:|:--|:--|"]
    for line in lines:
        word = f"{_SIGNS[line.state]} {markdown(f'{line.word}, {line.status}')}"
        cells = [_with(line.label.text, line.run), line.limit, line.estimate, line.bound]
        cells += [f"{line.n} {line.counted}".strip(), line.kind_word, " ".join(part.text for part in line.why)]
        out.append(f"| {word} {_row(cells)}")
    return out


def _with(label: str, run: str) -> str:
    return f"{label} ({run})" if run else label


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(markdown(cell, 600) for cell in cells) + " |"
