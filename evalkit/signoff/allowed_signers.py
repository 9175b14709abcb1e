"""Whose signature counts: a file of public keys, in the form that `ssh-keygen -Y verify` and git read.

    "Name Of A Person",mail@company.example namespaces="evalkit-signoff" ssh-ed25519 AAAA...
    release@company.example valid-before="20270101Z" ssh-ed25519 AAAA...

One line a key: names (patterns with * and ?, `!` excludes), options, type, key. A file with one bare public key (a
line of `ssh-keygen`, or an Ed25519 key in PEM) says nothing of names: the key is then trusted whatever name it
signs with, and a note says so. What cannot be read is refused with its line, never passed over.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from evalkit.errors import Fault, InputError, visible
from evalkit.signoff.keys import pem_public_blob
from evalkit.signoff.ssh import NAMESPACE, fingerprint, key_type
from evalkit.signoff.strict import BrokenFileError

__all__ = ["TrustedKey", "parse_allowed_signers", "read_allowed_signers"]

_MOST_BYTES = 1 << 20
_KEY_TYPE = re.compile(r"(?:ssh|ecdsa|sk)-[a-z0-9@.-]+")
_DATE = re.compile(r"(\d{4})(\d\d)(\d\d)(?:(\d\d)(\d\d)(\d\d)?)?Z")
_WORD = re.compile(r'(?:[^\s"]|"[^"]*")+')


@dataclass(frozen=True, slots=True)
class TrustedKey:
    """A public key (wire form) and what it may be used for.

    names        patterns of the names that may sign with it; None: the file names nobody
    namespaces   patterns of what it may sign; None: anything
    valid_after, valid_before  UTC, None where open
    """

    line: int
    blob: bytes
    names: tuple[str, ...] | None = None
    namespaces: tuple[str, ...] | None = None
    valid_after: datetime | None = None
    valid_before: datetime | None = None

    @property
    def fingerprint(self) -> str:
        """`SHA256:...`, as `ssh-keygen -l` prints it."""
        return fingerprint(self.blob)

    def is_for(self, name: str) -> bool:
        """Whether the file lets `name` sign with this key."""
        return self.names is None or _among(self.names, name)

    def may_sign_offs(self) -> bool:
        """Whether the key may be used for sign-offs, as its `namespaces` say."""
        return self.namespaces is None or _among(self.namespaces, NAMESPACE)

    def valid_at(self, moment: datetime) -> bool:
        """Whether the moment lies in the key's time."""
        early = self.valid_after is not None and moment < self.valid_after
        return not early and (self.valid_before is None or moment < self.valid_before)


def read_allowed_signers(path: Path) -> tuple[TrustedKey, ...]:
    """The keys in a file. InputError with every line that cannot be used, or where there is no key in it."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise InputError(Fault("is too large for a list of signers", "name the right file", file=str(path)))
        content = path.read_bytes()
    except OSError as error:
        what = f"cannot be read: {error.strerror or type(error).__name__}"
        raise InputError(Fault(what, "name a file of allowed signers", file=str(path))) from None
    return parse_allowed_signers(content, str(path))


def parse_allowed_signers(content: bytes, file: str) -> tuple[TrustedKey, ...]:
    """The keys in the content of a file called `file` in messages; InputError as `read_allowed_signers`."""
    if b"PRIVATE KEY-----" in content:
        raise InputError(Fault("holds a private key", "name a file of public keys; and keep this one", file))
    if content.lstrip().startswith(b"-----BEGIN"):
        blob = pem_public_blob(content)
        if blob is None:
            raise InputError(Fault("is no Ed25519 public key in PEM", "name a file of allowed signers", file))
        return (TrustedKey(1, blob),)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(Fault(f"byte {error.start} is no UTF-8", "save the file as UTF-8", file)) from None
    keys: list[TrustedKey] = []
    faults: list[Fault] = []
    for number, row in enumerate(text.split("\n"), 1):
        row = row.strip()
        if not row or row.startswith("#"):
            continue
        try:
            keys.append(_key(row, number))
        except BrokenFileError as error:
            faults.append(Fault(str(error), 'write: "name" ssh-ed25519 AAAA...', file, number))
    if len(keys) > 1:  # in a list a key without a name is a slip, which would let anybody's name pass
        fix = 'write: "name" ssh-ed25519 AAAA...'
        faults += [Fault("holds a key without a name", fix, file, key.line) for key in keys if key.names is None]
    if not keys and not faults:
        faults.append(Fault("holds no key", 'write one a line: "name" ssh-ed25519 AAAA...', file))
    if faults:
        raise InputError(faults)
    return tuple(keys)


def _key(row: str, line: int) -> TrustedKey:
    words = _WORD.findall(row)
    if _KEY_TYPE.fullmatch(words[0]):
        return TrustedKey(line, _blob(words, 0))
    names = tuple(part.strip() for part in words[0].replace('"', "").split(","))
    if not all(names) or row.count('"') % 2:
        raise BrokenFileError(f'the names "{visible(words[0])}" cannot be read')
    at = 1
    options: dict[str, str] = {}
    if len(words) > 1 and not _KEY_TYPE.fullmatch(words[1]):
        options, at = _options(words[1]), 2
    return TrustedKey(
        line,
        _blob(words, at),
        names,
        tuple(options["namespaces"].split(",")) if "namespaces" in options else None,
        _moment(options, "valid-after"),
        _moment(options, "valid-before"),
    )


def _options(word: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in re.findall(r'(?:[^,"]|"[^"]*")+', word):
        name, equals, value = part.partition("=")
        name = name.lower()
        if name not in {"namespaces", "valid-after", "valid-before"} or not equals:
            raise BrokenFileError(f'the option "{visible(part)}" is not known here')
        if name in found:
            raise BrokenFileError(f'the option "{name}" is given twice')
        found[name] = value.replace('"', "")
    return found


def _moment(options: dict[str, str], name: str) -> datetime | None:
    if name not in options:
        return None
    match = _DATE.fullmatch(options[name])
    if match is None:
        said = visible(options[name])
        raise BrokenFileError(f'{name} "{said}" is no time in UTC such as 20270101Z or 202701011200Z')
    try:
        return datetime(*(int(part or 0) for part in match.groups()), tzinfo=UTC)  # type: ignore[misc, arg-type]
    except ValueError:
        raise BrokenFileError(f'{name} "{visible(options[name])}" is no date') from None


def _blob(words: list[str], at: int) -> bytes:
    if len(words) < at + 2 or not _KEY_TYPE.fullmatch(words[at]):
        raise BrokenFileError("holds no key where one is wanted")
    try:
        blob = base64.b64decode(words[at + 1], validate=True)
        stated = key_type(blob)
    except (binascii.Error, ValueError):
        raise BrokenFileError("the key is no base64 of a public key") from None
    if stated != words[at]:
        raise BrokenFileError(f'the key is of the type "{visible(stated)}", not "{visible(words[at])}"')
    return blob


def _among(patterns: tuple[str, ...], name: str) -> bool:
    """Whether a list of patterns lets the name through; one with `!` that fits shuts it out."""
    fits = False
    for pattern in patterns:
        wanted = pattern.removeprefix("!")
        regex = "".join({"*": ".*", "?": "."}.get(ch, re.escape(ch)) for ch in wanted)
        if re.fullmatch(regex, name, re.DOTALL):
            if pattern.startswith("!"):
                return False
            fits = True
    return fits
