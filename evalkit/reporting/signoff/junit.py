"""A sign-off as JUnit XML, so that a CI server shows each gate as a test; the same in every language."""

from __future__ import annotations

from xml.sax.saxutils import quoteattr

from evalkit.reporting.junit import case
from evalkit.reporting.language import ENGLISH
from evalkit.reporting.signoff.checked import signoff_checked
from evalkit.reporting.signoff.gates import gate_lines, rule_lines, verdict_box
from evalkit.reporting.signoff.origin import digest_of
from evalkit.reporting.text import xml_text
from evalkit.reporting.verdict import Result

__all__ = ["render_signoff_junit"]


def render_signoff_junit(document: Result) -> str:
    """Each gate, each stop rule and the verdict is a test case; what is open is an error, never skipped.

    The verdict's own case is green for an approval alone.
    """
    signoff_checked(document)
    box = verdict_box(document, ENGLISH)
    cases = [
        case(
            "gates",
            f"{line.label.text} [{line.id}]",
            line.state,
            f"gate.{line.raw['status']}",
            f"{line.status}; {line.spoken}; n {line.n} {line.counted}".strip(),
        )
        for line in gate_lines(document, ENGLISH)
    ]
    cases += [
        case(
            "stop_rules",
            f"{rule.label} [{rule.run}]" if rule.run else rule.label,
            rule.state,
            "stop_rule",
            f"{rule.word}: {rule.detail.text or 'no detail given'}",
        )
        for rule in rule_lines(document, ENGLISH)
    ]
    words = [box.word, box.headline.text, *(reason.text for reason in box.reasons), box.next_step.text]
    if box.uncertified:
        words.append(f"not certified: {', '.join(box.uncertified)}")
    words.append(f"digest {digest_of(document)}")
    cases.append(case("verdict", "verdict", box.state, box.decision, "; ".join(word for word in words if word)))
    failures = sum(state == "fail" for state, _ in cases)
    errors = sum(state == "open" for state, _ in cases)
    totals = f'tests="{len(cases)}" failures="{failures}" errors="{errors}" skipped="0"'
    name = quoteattr(f"evalkit sign-off: {xml_text(document['name'], 120)}")
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f'<testsuites name="evalkit sign-off" {totals}>',
            f"  <testsuite name={name} {totals}>",
            *(text for _, text in cases),
            "  </testsuite>",
            "</testsuites>",
            "",
        ]
    )
