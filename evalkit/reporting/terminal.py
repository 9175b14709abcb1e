"""A result on the terminal: a short table and the verdict, in 80 columns, plain when piped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from .gates_view import AUDITED, GateRow, RuleRow, Verdict, gate_rows, rule_rows, verdict_view
from .points_view import chosen, pass_rate_sentence, policy_rows, thresholds
from .routers_view import router_rows
from .text import line
from .verdict import Result, checked

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

__all__ = ["gate_remarks", "plain_words", "render_terminal", "rule_lines", "simple_table", "verdict_lines"]

_STYLES = {"pass": "green", "open": "yellow", "fail": "bold red"}
_ASCII = str.maketrans({"≤": "<=", "≥": ">=", "−": "-", "…": "...", "·": "-", "↓": "v", "→": "->", "×": "x"})


def render_terminal(result: Result, console: Console) -> None:
    """Print gates, policies, triggered rules and the verdict. Text of data is never read as markup."""
    checked(result)
    words = plain_words(console)
    verdict = verdict_view(result)
    rows = gate_rows(result)
    table = simple_table(("Result", "Gate", "Limit", "Estimate", "Bound"), right={2, 3, 4})
    for row in rows:
        state = row.word if row.certified or row.state != "pass" else f"{row.word}, not certified"
        under = row.counts or (f"n {row.n}" if row.raw.get("n") else "")
        estimate = row.estimate + (f"\n{under}" if under else "")
        cells = (words(row.label), words(row.limit), words(estimate), words(row.bound))
        table.add_row(words(state, _STYLES[row.state]), *cells)
    if table.row_count:
        console.print(table)
    if result.get("label_audit"):
        console.print(words(AUDITED))
    gate_remarks(console, rows, verdict)
    console.print()
    policies = policy_rows(result)
    if policies:
        titles = ("USD per 1,000 requests", "Total", "Cost", "Passed", "Escalated", "Under-routed")
        table = simple_table(titles, right={1, 2, 3, 4, 5})
        for point in policies:
            figures = (point.total, point.cost, point.passed, point.escalated, point.under)
            short = (words(figure.partition(" (")[0]) for figure in figures)
            table.add_row(words(point.label, "bold" if point.chosen else ""), *short)
        console.print(table)
        console.print()
    routers, _ = router_rows(result)
    if len(routers) > 1:
        table = simple_table(("Router", "Verdict", "Total", "Cost", "Escalated", "AUC"), right={2, 3, 4, 5})
        for one in routers:
            shown = (one.total, one.cost, one.escalated, one.auc)
            short = (words(text.partition(" (")[0]) for text in shown)
            style = "bold" if one.chosen else ""
            table.add_row(words(one.name, style), words(one.word, _STYLES[one.state]), *short)
        console.print(table)
        console.print()
    rule_lines(console, rule_rows(result), verdict)
    now = chosen(result)
    if now:
        console.print(words(pass_rate_sentence(now.point, result["counts"])))
        cuts = thresholds(now.point.get("thresholds"), [tier["name"] for tier in result["tiers"]])
        rule_text = f" ({line(result['rule'])})" if result.get("rule") else ""
        console.print(words((f"Threshold {cuts}{rule_text}, " if cuts != "none" else "") + now.note))
    console.print()
    verdict_lines(console, verdict)


def gate_remarks(console: Console, rows: Sequence[GateRow], verdict: Verdict) -> None:
    """What the table of gates leaves to say, but for what stands as a reason below the verdict."""
    told, words = _told(verdict), plain_words(console)
    for row in rows:
        if row.message and not row.certified and not told & {row.message, f"{row.label}: {row.message}"}:
            style = "" if row.state == "pass" else _STYLES[row.state]
            console.print(words(f"  {row.label}: {row.message}", style))


def rule_lines(console: Console, rules: Sequence[RuleRow], verdict: Verdict) -> None:
    """The stop rules that are triggered or not known; their evidence where the verdict does not give it."""
    told, words = _told(verdict), plain_words(console)
    for rule in rules:
        if rule.state != "pass":
            evidence = "" if rule.detail in told else f". {rule.detail}"
            console.print(words(f"{rule.word}: {rule.label}{evidence}", _STYLES[rule.state]))


def verdict_lines(console: Console, verdict: Verdict) -> None:
    """The verdict with its reasons and the next step."""
    words = plain_words(console)
    style = _STYLES[{"approve": "pass", "reject": "fail"}.get(verdict.decision, "open")]
    console.print(words(f"{verdict.word}: {verdict.headline}", f"bold {style}"))
    for reason in verdict.reasons:
        console.print(words(f"  why: {reason}"))
    if verdict.uncertified:
        console.print(words(f"  not certified: {', '.join(verdict.uncertified)}", "yellow"))
    if verdict.next_step:
        console.print(words(f"  next: {verdict.next_step}"))


def _told(verdict: Verdict) -> set[str]:
    return {verdict.headline, *verdict.reasons}


def plain_words(console: Console) -> Callable[..., Text]:
    """How to make text of data printable on `console`: never markup, and in its encoding."""
    from rich.text import Text

    plain = not (console.encoding or "ascii").lower().replace("-", "").startswith("utf")

    def words(shown: str, style: str = "") -> Text:
        if plain:
            shown = (
                shown.translate(_ASCII)
                .encode(console.encoding or "ascii", "backslashreplace")
                .decode(console.encoding or "ascii")
            )
        return Text(shown, style=style, overflow="fold")

    return words


def simple_table(titles: tuple[str | Text, ...], *, right: set[int]) -> Table:
    """A table without a frame; columns at the positions `right` stand right. Titles of data are `plain_words`."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1), safe_box=True)
    for i, title in enumerate(titles):
        table.add_column(title, justify="right" if i in right else "left", overflow="fold", ratio=None)
    return table
