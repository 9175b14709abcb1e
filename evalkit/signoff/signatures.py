"""The signatures of a sign-off folder, checked: each valid, or what is wrong with it by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from evalkit.errors import InputError, visible
from evalkit.signoff.allowed_signers import TrustedKey
from evalkit.signoff.digest import SIGNOFF, file_sha256, read_signoff
from evalkit.signoff.dsse import MOST_BYTES, Envelope, pae, parse_envelope
from evalkit.signoff.signing import expiry, is_over, signature_files
from evalkit.signoff.ssh import ed25519_raw, parse_signature, verify_ed25519, verify_ssh
from evalkit.signoff.statement import Statement, parse_statement, utc_time
from evalkit.signoff.strict import BrokenFileError

__all__ = ["PROBLEMS", "Problem", "SignatureFinding", "Signatures", "verify_signatures"]

PROBLEMS = {
    "unreadable": "the file is no signature as evalkit writes one",
    "unknown_key": "the key is not among the allowed signers",
    "altered": "the signature is not one of that key over this payload: payload or signature was altered",
    "wrong_digest": "it signs another document than the one that is here",
    "name_not_of_key": "the key is not this name's",
    "key_not_for_sign_offs": "the key may not be used for sign-offs",
    "key_not_valid_then": "the key was not valid at the time of signing",
    "cannot_be_checked": "this kind of key cannot be checked here",
    "verdict_misstated": "it states another computed verdict than the document",
    "override_without_reason": "it decides otherwise than the computed verdict and gives no reason",
    "expired": "the sign-off's last day is over",
    "signed_before_document": "it was signed before the document was made",
    "signed_in_the_future": "its time of signing has not come yet",
    "earlier_signature_missing": "a signature that stood there before it is gone",
    "earlier_signature_changed": "a signature that stood there before it was changed",
    "not_a_signer_of_the_policy": "the policy names its signers, and this is none of them",
}
"""Every way in which a signature fails, by code."""

_CLOCKS_APART = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Problem:
    """`code` is one of PROBLEMS; `text` says it with the values."""

    code: str
    text: str


@dataclass(frozen=True, slots=True)
class SignatureFinding:
    """One signature file. statement is None where it cannot be read; key is the fingerprint that it names.

    `checked`: the signature was held against a list of keys. Without one nothing is known of who signed.
    """

    file: str
    statement: Statement | None
    key: str | None
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]
    checked: bool

    @property
    def valid(self) -> bool:
        """Whether it counts: checked against known keys, and nothing wrong."""
        return self.checked and not self.problems


@dataclass(frozen=True, slots=True)
class Signatures:
    """All signatures of a folder.

    missing   "role: name" of signers whom the policy names and who did not sign validly
    decision  approve, where everybody whom the policy names approved (somebody, where it names nobody) and nobody
              rejected; reject, where somebody did; None, where it is open
    """

    findings: tuple[SignatureFinding, ...]
    missing: tuple[str, ...]
    decision: str | None

    @property
    def faulty(self) -> bool:
        """Whether anything is wrong with any of them."""
        return any(finding.problems for finding in self.findings)


def verify_signatures(folder: Path, trusted: Sequence[TrustedKey] | None, *, now: datetime) -> Signatures:
    """Check every `signoff.<n>.sig.json` of a folder against the keys and against the document that is there.

    `trusted`: the keys of `read_allowed_signers`; None: none were named, so that all but the signer is checked.
    `now` (UTC): the time that expiry is held against. Nothing is written. Of the files, signoff.json and
    manifest.json are held against what was signed; `folder_faults` holds the others against the manifest. OSError
    where the folder cannot be read.
    """
    try:
        document: dict[str, Any] | None = read_signoff(folder)
    except BrokenFileError:
        document = None  # then no signature is one of what is here
    files = signature_files(folder)
    findings = tuple(_check(folder, path, document, trusted, now) for path in files)
    signers = _signers(document)
    valid = [f.statement for f in findings if f.valid and f.statement is not None]
    approving = [s for s in valid if s.decision == "approve"]
    missing = tuple(
        f"{role}: {name or 'anybody'}" for role, name in signers if not _has_signed((role, name), valid)
    )
    decision = None
    if len(approving) < len(valid):
        decision = "reject"
    elif approving and all(_has_signed(signer, approving) for signer in signers):
        decision = "approve"
    return Signatures(findings, missing, decision)


def _has_signed(signer: tuple[str, str | None], statements: Sequence[Statement]) -> bool:
    role, name = signer
    return any(s.role == role and name in {None, s.name} for s in statements)


def _check(
    folder: Path,
    path: Path,
    document: dict[str, Any] | None,
    trusted: Sequence[TrustedKey] | None,
    now: datetime,
) -> SignatureFinding:
    try:
        if not path.is_file():
            raise BrokenFileError("is no file")
        if path.stat().st_size > MOST_BYTES:
            raise BrokenFileError(f"is larger than {MOST_BYTES:,} bytes")
        envelope = parse_envelope(path.read_bytes())
    except (BrokenFileError, OSError) as error:
        return SignatureFinding(path.name, None, None, (Problem("unreadable", _plain(error)),), (), checked=False)
    problems: list[Problem] = []
    notes: list[str] = []
    try:
        statement = parse_statement(envelope.payload)
    except BrokenFileError as error:
        problems.append(Problem("unreadable", f"the statement in it: {error}"))
        statement = None
    if trusted is not None:
        problems += _key_problems(envelope, statement, trusted, now, notes)
    if statement is not None:
        problems += _content_problems(folder, path, statement, document, now)
    return SignatureFinding(
        path.name, statement, envelope.keyid, tuple(problems), tuple(notes), checked=trusted is not None
    )


def _key_problems(
    envelope: Envelope,
    statement: Statement | None,
    trusted: Sequence[TrustedKey],
    now: datetime,
    notes: list[str],
) -> list[Problem]:
    """What is wrong with who signed. A name, a time and a use are looked at only for a signature that holds."""
    keys = [key for key in trusted if key.fingerprint == envelope.keyid]
    if not keys:
        return [_problem("unknown_key", envelope.keyid)]
    holds = _holds(envelope, keys[0].blob)
    if holds is None:
        return [_problem("cannot_be_checked", "ssh-keygen is not installed")]
    if not holds:
        return [_problem("altered", keys[0].fingerprint)]
    if statement is None:
        return []
    signed_at = utc_time(statement.signed_at)
    assert signed_at is not None  # parse_statement saw to it
    named = [key for key in keys if key.is_for(statement.name)]
    if not named:
        return [_problem("name_not_of_key", statement.name)]
    usable = [key for key in named if key.may_sign_offs()]
    if not usable:
        return [_problem("key_not_for_sign_offs", f"line {named[0].line} of the allowed signers")]
    then = [key for key in usable if key.valid_at(signed_at)]
    if not then:
        return [_problem("key_not_valid_then", statement.signed_at)]
    if all(key.names is None for key in then):
        notes.append(f"the file with the key names nobody: that it is {visible(statement.name)}'s is not checked")
    if not any(key.valid_at(now) for key in then):
        notes.append("the key is no longer valid; that it was used in time rests on the signer's own clock")
    return []


def _holds(envelope: Envelope, blob: bytes) -> bool | None:
    """Whether the signature is one of this very key over the payload; None where that cannot be checked here."""
    message = pae(envelope.payload_type, envelope.payload)
    if envelope.signature.startswith(b"SSHSIG"):
        try:
            signature = parse_signature(envelope.signature)
            return signature.public_key == blob and verify_ssh(signature, message)
        except BrokenFileError:
            return False
    raw = ed25519_raw(blob)
    return raw is not None and verify_ed25519(raw, envelope.signature, message)


def _content_problems(
    folder: Path, path: Path, statement: Statement, document: dict[str, Any] | None, now: datetime
) -> list[Problem]:
    """What is wrong with what was signed, held against what is here."""
    found: list[Problem] = []
    for name, signed in statement.subject:
        file = folder / name
        if not file.is_file() or file_sha256(file) != signed:
            found.append(_problem("wrong_digest", f"{name} is not the file that was signed"))
    if statement.overrides and statement.reason is None:
        said = statement.computed_verdict.replace("_", " ")
        found.append(_problem("override_without_reason", f"{statement.decision} against {said}"))
    signed_at = utc_time(statement.signed_at)
    assert signed_at is not None
    if signed_at > now + _CLOCKS_APART:
        found.append(_problem("signed_in_the_future", statement.signed_at))
    found += _document_problems(statement, document, signed_at, now)
    for name, sha in statement.earlier:
        before = folder / Path(name).name
        if not before.is_file():
            found.append(_problem("earlier_signature_missing", name))
        elif before == path or file_sha256(before) != sha:
            found.append(_problem("earlier_signature_changed", name))
    return found


def _document_problems(
    statement: Statement, document: dict[str, Any] | None, signed_at: datetime, now: datetime
) -> list[Problem]:
    found: list[Problem] = []
    expires = statement.expires
    if document is not None:
        verdict = document.get("verdict")
        decision = verdict.get("decision") if isinstance(verdict, dict) else None
        if decision != statement.computed_verdict:
            found.append(
                _problem("verdict_misstated", f"{statement.computed_verdict}, and the document says {decision}")
            )
        if document.get("digest") != statement.document_digest:
            found.append(_problem("wrong_digest", f"the digest of {SIGNOFF} is another"))
        created = utc_time(document.get("created_at"))
        if created is not None and signed_at < created:
            found.append(_problem("signed_before_document", f"{statement.signed_at}, {document['created_at']}"))
        signers = _signers(document)
        if signers and not any(_has_signed(signer, [statement]) for signer in signers):
            found.append(_problem("not_a_signer_of_the_policy", f"{statement.role}: {statement.name}"))
        try:
            expires = expiry(document) or expires
        except InputError:
            found.append(_problem("wrong_digest", "release.expires is no date"))
    # A rejection does not run out.
    if statement.decision == "approve" and is_over(expires, now):
        found.append(_problem("expired", f"{expires}"))
    return found


def _signers(document: dict[str, Any] | None) -> list[tuple[str, str | None]]:
    """(role, name) of everybody whom the policy wants to sign; a role without a name is anybody's."""
    rows = (document or {}).get("signers")
    found: list[tuple[str, str | None]] = []
    for row in rows if isinstance(rows, list) else []:
        if isinstance(row, dict) and isinstance(row.get("role"), str):
            name = row.get("name")
            found.append((row["role"], name if isinstance(name, str) else None))
    return found


def _problem(code: str, values: str) -> Problem:
    return Problem(code, f"{PROBLEMS[code]} ({visible(values, 300)})")


def _plain(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"cannot be read: {error.strerror or type(error).__name__}"
    return str(error)
