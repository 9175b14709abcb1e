"""What a signer signs: an in-toto Statement (version 1) about the document and the manifest, and the decision.

The subject is signoff.json and manifest.json by the SHA-256 of their bytes; the manifest names every other file.
The decision of a person is kept apart from the verdict that was computed; one that differs has a reason.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from evalkit.errors import visible
from evalkit.signoff.digest import (
    MANIFEST,
    SIGNOFF,
    canonical_json,
    plain_hex,
)
from evalkit.signoff.strict import BrokenFileError, exact_object, strict_json

__all__ = [
    "DECISIONS",
    "MOST_NAME",
    "MOST_REASON",
    "PREDICATE_TYPE",
    "SIGNATURE_NAME",
    "STATEMENT_TYPE",
    "Statement",
    "parse_statement",
    "statement_bytes",
    "text_problem",
    "utc_time",
]

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "urn:evalkit:signoff-decision:1"
DECISIONS = ("approve", "reject")
VERDICTS = ("approve", "reject", "insufficient_evidence")

MOST_NAME, MOST_REASON = 200, 4000
SIGNATURE_NAME = re.compile(r"signoff\.([1-9][0-9]{0,5})\.sig\.json")
"""The name of a signature file, with its number."""

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_PREDICATE = (
    "name", "role", "decision", "reason", "computed_verdict", "overrides", "signed_at", "document_digest",
    "policy", "expires", "earlier", "evalkit_version",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Statement:
    """One person's decision on one sign-off document.

    subject           (file, SHA-256 in hex) of signoff.json and manifest.json
    computed_verdict  approve, reject or insufficient_evidence, as the document says
    signed_at         UTC, as the signer's clock had it
    document_digest   "sha256:<hex>" as the document states it
    expires           the last day of the release's approval (YYYY-MM-DD), or None
    earlier           (file, SHA-256 in hex) of the signatures that stood there when this one was made
    """

    subject: tuple[tuple[str, str], ...]
    name: str
    role: str
    decision: str
    reason: str | None
    computed_verdict: str
    signed_at: str
    document_digest: str
    policy: str
    expires: str | None
    earlier: tuple[tuple[str, str], ...]
    evalkit_version: str

    @property
    def overrides(self) -> bool:
        """Whether the signer decided otherwise than the computed verdict."""
        return self.decision != self.computed_verdict


def statement_bytes(statement: Statement) -> bytes:
    """The statement as canonical JSON: the payload of an envelope."""
    return canonical_json(
        {
            "_type": STATEMENT_TYPE,
            "subject": [{"name": name, "digest": {"sha256": sha}} for name, sha in statement.subject],
            "predicateType": PREDICATE_TYPE,
            "predicate": {
                "name": statement.name,
                "role": statement.role,
                "decision": statement.decision,
                "reason": statement.reason,
                "computed_verdict": statement.computed_verdict,
                "overrides": statement.overrides,
                "signed_at": statement.signed_at,
                "document_digest": statement.document_digest,
                "policy": statement.policy,
                "expires": statement.expires,
                "earlier": [{"file": name, "sha256": sha} for name, sha in statement.earlier],
                "evalkit_version": statement.evalkit_version,
            },
        }
    )


def parse_statement(payload: bytes) -> Statement:
    """The statement in a payload, every field checked; BrokenFileError says what is wrong.

    A reason that an override lacks is not judged here, so that a reader can still show what was decided.
    """
    value = exact_object(strict_json(payload), "statement", ("_type", "subject", "predicateType", "predicate"))
    _is(value["_type"], STATEMENT_TYPE, "_type")
    _is(value["predicateType"], PREDICATE_TYPE, "predicateType")
    said = exact_object(value["predicate"], "predicate", _PREDICATE)
    subject = tuple(_subject(part) for part in _list(value["subject"], "subject"))
    if [name for name, _ in subject] != [SIGNOFF, MANIFEST]:
        raise BrokenFileError(f"subject: {SIGNOFF} and {MANIFEST} are wanted, in this order")
    earlier = tuple(_earlier(part) for part in _list(said["earlier"], "earlier"))
    for field in ("name", "role", "policy", "evalkit_version"):
        problem = text_problem(said[field], MOST_NAME)
        if problem is not None:
            raise BrokenFileError(f"{field} {problem}")
    if (
        said["reason"] is not None
        and (problem := text_problem(said["reason"], MOST_REASON, lines=True)) is not None
    ):
        raise BrokenFileError(f"reason {problem}")
    for field, known in (("decision", DECISIONS), ("computed_verdict", VERDICTS)):
        if said[field] not in known:
            raise BrokenFileError(f'{field} is "{visible(said[field])}", where {", ".join(known)} are known')
    if utc_time(said["signed_at"]) is None:
        raise BrokenFileError(f'signed_at "{visible(said["signed_at"])}" is no time in UTC')
    if plain_hex(said["document_digest"]) is None:
        raise BrokenFileError("document_digest is no SHA-256")
    if said["expires"] is not None and _day(said["expires"]) is None:
        raise BrokenFileError(f'expires "{visible(said["expires"])}" is no date')
    statement = Statement(
        subject=subject,
        earlier=earlier,
        **{key: said[key] for key in _PREDICATE if key not in {"overrides", "earlier"}},
    )
    if said["overrides"] is not statement.overrides:
        raise BrokenFileError("overrides contradicts decision and computed_verdict")
    return statement


def text_problem(value: object, most: int, *, lines: bool = False) -> str | None:
    """What is wrong with a text that people will read under a signature; None when it is fine.

    Control, format and bidirectional characters are refused, so that it reads as it was written.
    """
    if not isinstance(value, str):
        return "is no text"
    if not value.strip():
        return "is empty"
    if len(value) > most:
        return f"has {len(value):,} characters, where {most:,} are allowed"
    for ch in value:
        if lines and ch == "\n":
            continue
        if unicodedata.category(ch) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}:
            return f"holds the character U+{ord(ch):04X}, which cannot be seen"
    return None


def utc_time(value: object) -> datetime | None:
    """A time such as 2026-03-01T09:30:00Z; None for anything else."""
    if not isinstance(value, str) or _TIME.fullmatch(value) is None:
        return None
    try:
        return datetime.strptime(value, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError:
        return None


def _day(value: object) -> datetime | None:
    return utc_time(f"{value}T00:00:00Z") if isinstance(value, str) else None


def _subject(part: Any) -> tuple[str, str]:
    found = exact_object(part, "subject", ("name", "digest"))
    digest = exact_object(found["digest"], "digest", ("sha256",))
    return _name_and_hash(found["name"], digest["sha256"], "subject")


def _earlier(part: Any) -> tuple[str, str]:
    found = exact_object(part, "earlier", ("file", "sha256"))
    name, hashed = _name_and_hash(found["file"], found["sha256"], "earlier")
    if SIGNATURE_NAME.fullmatch(name) is None:
        raise BrokenFileError(f'earlier: "{visible(name)}" is no name of a signature')
    return name, hashed


def _name_and_hash(name: Any, sha: Any, what: str) -> tuple[str, str]:
    hashed = plain_hex(sha)
    if not isinstance(name, str) or hashed is None or hashed != sha:
        raise BrokenFileError(f"{what}: a file name and its SHA-256 in hex are wanted")
    return name, hashed


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise BrokenFileError(f"{what} is no list")
    return value


def _is(value: Any, wanted: str, what: str) -> None:
    if value != wanted:
        raise BrokenFileError(f'{what} is "{visible(value)}", where "{wanted}" is known')
