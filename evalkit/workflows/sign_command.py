"""The sign command: a person's decision on a sign-off folder, signed with that person's key."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from evalkit.errors import Fault, InputError, fitted, visible
from evalkit.workflows.provenance import utc_now

__all__ = ["SignOptions", "run"]


@dataclass(frozen=True)
class SignOptions:
    """What the command line gave."""

    folder: Path
    key: Path
    role: str
    name: str
    decision: str
    reason: str | None = None
    quiet: bool = False


def run(options: SignOptions) -> int:
    """Sign; 0 where it is signed. Raises InputError, and signs nothing, where anything is in the way."""
    from evalkit.signoff.dsse import parse_envelope
    from evalkit.signoff.keys import open_key
    from evalkit.signoff.signing import Choice, sign_folder
    from evalkit.signoff.statement import parse_statement

    if not options.folder.is_dir():
        what = "is not a folder"
        raise InputError(Fault(what, "name the folder that sign-off wrote", file=str(options.folder)))
    choice = Choice(options.name, options.role, options.decision, options.reason)
    path = sign_folder(options.folder, open_key(options.key), choice, signed_at=utc_now(), now=datetime.now(UTC))
    if options.quiet:
        print(visible(path, 400))
        return 0
    envelope = parse_envelope(path.read_bytes())
    said = parse_statement(envelope.payload)
    verdict = said.computed_verdict.replace("_", " ")
    against = f", against the computed verdict ({verdict})" if said.overrides else ", as computed"
    signed = f"signed: {said.decision}{against}, by {visible(said.name)} ({visible(said.role)})"
    print(fitted(signed, sys.stdout))
    print(f"document: {said.document_digest}" + (f", until {said.expires}" if said.expires else ""))
    print(f"key: {envelope.keyid}")
    print(f"signature: {visible(path, 400)}")
    return 0
