"""A sign-off on the terminal: the gates and the verdict, in 80 columns, plain when piped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalkit.reporting.language import Language, language
from evalkit.reporting.signoff import parts
from evalkit.reporting.signoff.checked import signoff_checked
from evalkit.reporting.signoff.gates import gate_lines, rule_lines, verdict_box
from evalkit.reporting.signoff.origin import digest_of
from evalkit.reporting.terminal import plain_words, simple_table
from evalkit.reporting.verdict import Result

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["render_signoff_terminal"]

_STYLES = {"pass": "green", "open": "yellow", "fail": "bold red"}


def render_signoff_terminal(document: Result, console: Console, lang: str = "en") -> None:
    """Print gates, changes, triggered rules and the verdict. Text of data is never read as markup."""
    signoff_checked(document)
    _ = language(lang)
    words = plain_words(console)
    box, lines = verdict_box(document, _), gate_lines(document, _)
    table = simple_table(
        tuple(words(title) for title in (_("Result"), _("Gate"), _("Limit"), _("Estimate"), _("Bound"))),
        right={2, 3, 4},
    )
    held = [line for line in lines if line.fact and line.state == "pass"]
    for line in lines:
        if line in held:
            continue
        state = line.word if line.certified or line.state != "pass" else f"{line.word}, {line.status}"
        label = line.label.text + (f"\n{line.run}" if line.run else "")
        estimate = line.estimate + (f"\nn {line.n}" if line.raw.get("n") is not None else "")
        # Why a number is not there stands on the page and among the reasons; the column is for numbers.
        numbers = (line.limit, estimate, line.bound)
        cells = (words(label), *(words(_without_reason(shown, _)) for shown in numbers))
        table.add_row(words(state, _STYLES[line.state]), *cells)
    if table.row_count:
        console.print(table)
    if held:
        # Of several runs, a condition that not all of them meet is named with those that do.
        unmet = {line.label.text for line in lines if line.fact and line.state != "pass"}
        names = list(
            dict.fromkeys(
                f"{line.label.text} ({line.run})" if line.run and line.label.text in unmet else line.label.text
                for line in held
            )
        )
        console.print(words(_("Conditions that hold") + ": " + "; ".join(names), _STYLES["pass"]))
    # What is open or failed is said once, among the reasons below.
    for line in lines:
        for part in line.why if line.state == "pass" else []:
            head = f"{line.run}, {line.label.text}" if line.run else line.label.text
            console.print(words(f"  {head}: {part.text}"))
    changes = parts.changes(document, _)
    if changes:
        console.print()
        table = simple_table(
            tuple(words(title) for title in (_("What changes"), _("Today"), _("Candidate"), _("Change"))),
            right={1, 2, 3},
        )
        for row in changes:
            label = row.label.text + (f" ({row.run})" if row.run else "")
            table.add_row(words(label), words(row.before), words(row.after), words(row.change))
        console.print(table)
    console.print()
    for rule in rule_lines(document, _):
        if rule.state != "pass":
            console.print(words(f"{rule.word}: {rule.label}. {rule.detail.text}", _STYLES[rule.state]))
    console.print(words(f"{box.word}: {box.headline.text}", f"bold {_STYLES[box.state]}"))
    for reason in box.reasons:
        console.print(words("  " + _("why: %(x)s", x=reason.text)))
    if box.uncertified:
        console.print(words("  " + _("not certified: %(names)s", names=", ".join(box.uncertified)), "yellow"))
    if box.next_step.text:
        console.print(words("  " + _("next: %(x)s", x=box.next_step.text)))
    console.print(words("  " + _("digest: %(x)s", x=digest_of(document))))


def _without_reason(shown: str, _: Language) -> str:
    missing = _("n/a (%(why)s)", why="").removesuffix(" ()")
    return missing if shown.startswith(f"{missing} (") else shown
