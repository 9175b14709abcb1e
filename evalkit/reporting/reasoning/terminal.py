"""A ladder on the terminal: the table, what stops it, and the verdict, in 80 columns, plain when piped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalkit.reporting.gates_view import gate_rows, rule_rows, verdict_view
from evalkit.reporting.reasoning.advice import advice, focus
from evalkit.reporting.reasoning.checked import ladder_checked
from evalkit.reporting.reasoning.ladder_view import arm_rows, step_rows
from evalkit.reporting.terminal import gate_remarks, plain_words, rule_lines, simple_table, verdict_lines
from evalkit.reporting.text import line
from evalkit.reporting.verdict import Result

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["render_ladder_terminal"]

_STYLES = {"pass": "green", "open": "yellow", "fail": "bold red"}


def render_ladder_terminal(result: Result, console: Console) -> None:
    """Print ladder, steps, gates of the arm in focus, triggered rules and the verdict."""
    ladder_checked(result)
    words = plain_words(console)
    verdict, said = verdict_view(result), advice(result)
    here, word = focus(result)
    table = simple_table(
        ("USD per 1,000", "Passed", "Cost", "Tokens", "p95", "A point", "Limits"), right={1, 2, 3, 4, 5}
    )
    for row in arm_rows(result):
        short = (words(_head(cell)) for cell in (row.passed, row.cost, row.billed, row.p95, row.price))
        table.add_row(
            words(row.name, "bold" if row.here else ""), *short, words(row.limits, _STYLES[row.limits_state])
        )
    console.print(table)
    steps = step_rows(result)
    if steps:
        interval = f"{100 * result['confidence']:.4g} % interval"
        table = simple_table(("Step", "Gain", interval, "Better", "Worse", "Worth it"), right={1, 2, 3, 4})
        for step in steps:
            decided = step.decision.removesuffix(" at this n")  # in full it breaks over two lines
            cells = (step.gain, step.ends, step.better, step.worse, decided)
            table.add_row(words(step.name), *(words(cell.replace(" points", "")) for cell in cells))
        console.print()
        console.print(table)
    rows = gate_rows(result)
    if rows:
        title = words(f"Gate of {line(here['name'], 30)} ({word})")
        table = simple_table(("Result", title, "Limit", "Estimate", "Bound"), right={2, 3, 4})
        for gate in rows:
            state = gate.word if gate.certified or gate.state != "pass" else f"{gate.word}, not certified"
            estimate = gate.estimate + (f"\n{gate.counts}" if gate.counts else "")
            texts = (gate.label, gate.limit, estimate, gate.bound)
            table.add_row(words(state, _STYLES[gate.state]), *(words(shown) for shown in texts))
        console.print()
        console.print(table)
        gate_remarks(console, rows, verdict)
    console.print()
    rule_lines(console, rule_rows(result), verdict)
    for sentence in (said.choice, said.flat, said.next_point, said.worth):
        if sentence:
            console.print(words(sentence))
    console.print()
    verdict_lines(console, verdict)


def _head(cell: str) -> str:
    """The number of a cell without what stands in brackets behind it; page and result.json have the reasons."""
    return cell.partition(" (")[0]
