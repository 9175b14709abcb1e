"""A result as JUnit XML, so that a CI server shows each gate as a test."""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

from .gates_view import GateRow, gate_rows, rule_rows, verdict_view
from .text import xml_text
from .verdict import Result, checked

__all__ = ["case", "command_of", "render_junit"]


def render_junit(result: Result) -> str:
    """Each gate and each stop rule is a test case, and the verdict is one more.

    Broken limits are failures. An open gate is an error, never skipped: servers show a skipped test as green, and
    nothing measured is not a pass. The verdict's own case is green for an approval alone.
    """
    checked(result)
    verdict = verdict_view(result)
    study = xml_text(result["study"], 120)
    command = command_of(result)
    cases = [_gate_case(row) for row in gate_rows(result)]
    for rule in rule_rows(result):
        cases.append(
            case(
                "stop_rules",
                rule.label,
                rule.state,
                "stop_rule",
                f"{rule.word}: {rule.detail or 'no detail given'}",
            )
        )
    state = {"approve": "pass", "reject": "fail"}.get(verdict.decision, "open")
    words = [verdict.word, verdict.headline, *verdict.reasons, verdict.next_step]
    if verdict.uncertified:
        words.append(f"not certified: {', '.join(verdict.uncertified)}")
    cases.append(case("verdict", "verdict", state, verdict.decision, "; ".join(word for word in words if word)))
    failures = sum(kind == "fail" for kind, _ in cases)
    errors = sum(kind == "open" for kind, _ in cases)
    totals = f'tests="{len(cases)}" failures="{failures}" errors="{errors}" skipped="0"'
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f'<testsuites name="{command}" {totals}>',
            f"  <testsuite name={quoteattr(f'{command}: {study}')} {totals}>",
            *(text for _, text in cases),
            "  </testsuite>",
            "</testsuites>",
            "",
        ]
    )


def command_of(result: Result) -> str:
    """The command that made a result, by its schema."""
    known = {"evalkit.reasoning-budget/1": "evalkit reasoning-budget"}
    return known.get(str(result.get("schema")), "evalkit route-sweep")


def _gate_case(row: GateRow) -> tuple[str, str]:
    estimate = row.estimate + (f" ({row.counts})" if row.counts else "")
    parts = [
        row.status,
        f"limit {row.limit}",
        f"estimate {estimate}",
        f"bound {row.bound}",
        f"n {row.n}",
        row.spoken,
    ]
    return case(
        "gates",
        f"{row.label} [{row.name}]",
        row.state,
        f"gate.{row.raw['status']}",
        "; ".join(p for p in parts if p),
    )


def case(group: str, name: str, state: str, kind: str, message: str) -> tuple[str, str]:
    """(state, one test case as XML): what failed is a failure, what is open an error, what passes is neither."""
    head = f'    <testcase classname="evalkit.{group}" name={quoteattr(xml_text(name))}>'
    text = xml_text(message)
    if state == "pass":
        body = f"<system-out>{escape(text)}</system-out>"
    else:
        tag = "failure" if state == "fail" else "error"
        body = f"<{tag} type={quoteattr(kind)} message={quoteattr(text)}></{tag}>"
    return state, f"{head}{body}</testcase>"
