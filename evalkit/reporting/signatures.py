"""The signatures of a sign-off as lines of text: who decided what, with which key, and what is wrong with it."""

from __future__ import annotations

from evalkit.signoff.signatures import SignatureFinding, Signatures

from .text import line, moment

__all__ = ["signature_lines"]


def signature_lines(signatures: Signatures) -> list[str]:
    """A line for each signature, its reason and its problems below it; then who has not signed. Safe to print."""
    out: list[str] = []
    for finding in signatures.findings:
        out += _lines(finding)
    out += [f"not signed by {line(who)}" for who in signatures.missing]
    if any(finding.valid for finding in signatures.findings):
        out.append(f"decision by signature: {signatures.decision or 'open'}")
    if not signatures.findings:
        out.append("no signature")
    return out


def _lines(finding: SignatureFinding) -> list[str]:
    state = "valid" if finding.valid else "INVALID" if finding.problems else "not checked"
    said = finding.statement
    head = f"{state}: {line(finding.file)}"
    if said is None:
        out = [head]
    else:
        verdict = said.computed_verdict.replace("_", " ")
        override = f", against the computed verdict ({verdict})" if said.overrides else ""
        who = f"{line(said.name)} ({line(said.role)})"
        out = [f"{head}: {who}, {said.decision}{override}, {moment(said.signed_at)}", f"  key {line(finding.key)}"]
        out += [f"  reason: {line(row, 400)}" for row in (said.reason or "").splitlines() if row.strip()]
    if not finding.checked and not finding.problems:
        out.append("  the signer is not known: name the keys that count with --allowed-signers")
    out += [f"  wrong ({problem.code}): {problem.text}" for problem in finding.problems]
    return [*out, *(f"  note: {note}" for note in finding.notes)]
