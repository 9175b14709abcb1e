"""A person's decision on a sign-off folder, signed and put beside the document; the document is never touched."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from evalkit import __version__
from evalkit.errors import Fault, InputError, redact, visible
from evalkit.signoff.digest import MANIFEST, SIGNOFF, file_sha256, folder_faults, read_signoff
from evalkit.signoff.dsse import IN_TOTO, Envelope, dump_envelope, pae
from evalkit.signoff.keys import Signer
from evalkit.signoff.statement import (
    DECISIONS,
    MOST_NAME,
    MOST_REASON,
    SIGNATURE_NAME,
    Statement,
    statement_bytes,
    text_problem,
    utc_time,
)

__all__ = ["Choice", "expiry", "is_over", "sign_folder", "signature_files"]


@dataclass(frozen=True, slots=True)
class Choice:
    """Who decides what: a name, the role that it is decided in, approve or reject, and why."""

    name: str
    role: str
    decision: str
    reason: str | None = None


def signature_files(folder: Path) -> list[Path]:
    """The signature files of a folder in the order in which they were made."""
    found = [
        (int(match.group(1)), path) for path in folder.iterdir() if (match := SIGNATURE_NAME.fullmatch(path.name))
    ]
    return [path for _, path in sorted(found)]


def expiry(document: dict[str, Any]) -> str | None:
    """The last day on which the document's approval holds (YYYY-MM-DD, UTC); None where it has none.

    InputError where the document states one that is no date.
    """
    release = document.get("release")
    written = release.get("expires") if isinstance(release, dict) else None
    if written is None:
        return None
    if not isinstance(written, str) or utc_time(f"{written}T00:00:00Z") is None:
        what = f'release.expires is "{visible(written)}", which is no date'
        raise InputError(Fault(what, "make the document anew from a policy with a date", file=SIGNOFF))
    return written


def is_over(expires: str | None, now: datetime) -> bool:
    """Whether the last day is over at `now` (UTC)."""
    return expires is not None and now.strftime("%Y-%m-%d") > expires


def sign_folder(folder: Path, signer: Signer, choice: Choice, *, signed_at: str, now: datetime) -> Path:
    """Sign the document of a folder with `signer` and write the next `signoff.<n>.sig.json`; its path.

    `signed_at` is the time that the statement gives, `now` the time that the expiry is held against (both UTC).
    InputError, and nothing signed, where a file is not as its hash says, the approval is past its date, the choice
    cannot be stated, or it differs from the computed verdict without a reason.
    """
    subject = _subject(folder)
    faults = [
        Fault(what, "make the document anew, or bring back the file", file=str(folder / name))
        for name, what in folder_faults(folder)
    ]
    if faults:
        raise InputError(faults)
    document = read_signoff(folder)
    if _subject(folder) != subject:
        what = "was changed while it was being signed"
        raise InputError(Fault(what, "look at it again, then sign", file=str(folder / SIGNOFF)))
    statement = _statement(folder, document, choice, subject, signed_at)
    if is_over(statement.expires, now):
        what = f"the sign-off expired on {statement.expires}"
        raise InputError(Fault(what, "run sign-off again with a later date", file=str(folder / SIGNOFF)))
    payload = statement_bytes(statement)
    signed = signer.sign(pae(IN_TOTO, payload))
    return _write_next(folder, dump_envelope(Envelope(IN_TOTO, payload, signed.keyid, signed.signature)))


def _subject(folder: Path) -> tuple[tuple[str, str], ...]:
    """What is signed: the two files that stand for the folder, by their hashes."""
    try:
        return tuple((name, file_sha256(folder / name)) for name in (SIGNOFF, MANIFEST))
    except OSError as error:
        what = f"cannot be read: {error.strerror or type(error).__name__}"
        fix = "name the folder that sign-off wrote"
        raise InputError(Fault(what, fix, file=str(error.filename or folder))) from None


def _statement(
    folder: Path, document: dict[str, Any], choice: Choice, subject: tuple[tuple[str, str], ...], signed_at: str
) -> Statement:
    verdict, policy = document.get("verdict"), document.get("policy")
    computed = verdict.get("decision") if isinstance(verdict, dict) else None
    faults = _choice_faults(choice, computed)
    if computed not in {"approve", "reject", "insufficient_evidence"}:
        what = f'has the verdict "{visible(computed)}"'
        faults.append(Fault(what, "make the document anew", file=str(folder / SIGNOFF)))
    created = utc_time(document.get("created_at"))
    at = utc_time(signed_at)
    if created is not None and at is not None and at < created:
        what = f"was made at {document['created_at']}, after the time of signing, {signed_at}"
        faults.append(Fault(what, "set the clock of this computer", file=str(folder / SIGNOFF)))
    if faults:
        raise InputError(faults)
    hashed = policy.get("sha256") if isinstance(policy, dict) else None
    return Statement(
        subject=subject,
        name=choice.name,
        role=choice.role,
        decision=choice.decision,
        reason=choice.reason,
        computed_verdict=str(computed),
        signed_at=signed_at,
        document_digest=str(document["digest"]),
        policy=str(hashed or "none"),
        expires=expiry(document),
        earlier=tuple((path.name, file_sha256(path)) for path in signature_files(folder)),
        evalkit_version=__version__,
    )


def _choice_faults(choice: Choice, computed: object) -> list[Fault]:
    faults: list[Fault] = []
    texts = [("--name", choice.name, MOST_NAME), ("--role", choice.role, MOST_NAME)]
    if choice.reason is not None:
        texts.append(("--reason", choice.reason, MOST_REASON))
    for option, value, most in texts:
        problem = text_problem(value, most, lines=option == "--reason")
        if problem is not None:
            faults.append(Fault(problem, "write it in plain text", field=option))
        elif redact(value) != value:
            faults.append(Fault("looks like a key or password", "leave it out: all will read it", field=option))
    if choice.decision not in DECISIONS:
        what = f'"{visible(choice.decision)}" is no decision'
        faults.append(Fault(what, "write approve or reject", field="--decision"))
    elif choice.decision != computed and choice.reason is None:
        said = visible(computed).replace("_", " ")
        what = f"{choice.decision} is not the computed verdict ({said}), and no reason is given"
        faults.append(Fault(what, 'write one: --reason "..."', field="--decision"))
    return faults


def _write_next(folder: Path, content: bytes) -> Path:
    """Write the bytes under the next free number, taken in one step: two signers at once get two numbers."""
    taken = signature_files(folder)
    number = int(taken[-1].name.split(".")[1]) + 1 if taken else 1
    temporary = folder / f".signoff.{os.getpid()}.part"
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        while True:
            path = folder / f"signoff.{number}.sig.json"
            try:
                _take_name(temporary, path, content)
                return path
            except FileExistsError:
                number += 1
    except OSError as error:
        what = f"the signature cannot be written: {error.strerror or type(error).__name__}"
        raise InputError(Fault(what, "check the folder's permissions and space", file=str(folder))) from None
    finally:
        temporary.unlink(missing_ok=True)


def _take_name(temporary: Path, path: Path, content: bytes) -> None:
    """Put the finished file in place; FileExistsError where the name is taken, which a rename would overwrite."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        with path.open("xb") as file:
            file.write(content)
