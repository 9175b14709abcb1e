"""What a sign-off folder says of its own files: the digest of the document, and the hashes in the manifest.

signoff.json    `digest`: "sha256:<hex>" of the document without that key, as canonical JSON
manifest.json   `files`: [{path, sha256, bytes}], or that list alone; paths are relative to the folder
"""

from __future__ import annotations

import hashlib
import json
import stat
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from evalkit.errors import visible
from evalkit.signoff.strict import BrokenFileError, strict_json

__all__ = [
    "MANIFEST",
    "SIGNOFF",
    "canonical_json",
    "document_digest",
    "file_sha256",
    "folder_faults",
    "plain_hex",
    "read_signoff",
]

SIGNOFF = "signoff.json"
MANIFEST = "manifest.json"

MOST_BYTES = 64 * 2**20
"""A signoff.json or manifest.json beyond this is not read."""


def canonical_json(value: Any) -> bytes:
    """`value` as the one JSON text that stands for it: keys sorted, no spaces, ASCII. ValueError for NaN."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.encode("ascii")


def document_digest(document: Mapping[str, Any]) -> str:
    """`sha256:<hex>` of the document's canonical JSON without its own `digest`."""
    rest = {key: value for key, value in document.items() if key != "digest"}
    return f"sha256:{hashlib.sha256(canonical_json(rest)).hexdigest()}"


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file's bytes in lower-case hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def plain_hex(written: object) -> str | None:
    """A SHA-256 as 64 lower-case hex digits, given with or without `sha256:`; None for anything else."""
    if not isinstance(written, str):
        return None
    digits = written.removeprefix("sha256:")
    return digits if len(digits) == 64 and set(digits) <= set("0123456789abcdef") else None


def read_signoff(folder: Path) -> dict[str, Any]:
    """The document of a sign-off folder, its digest checked; BrokenFileError says what is wrong."""
    document = strict_json(_bytes(folder / SIGNOFF))
    if not isinstance(document, dict):
        raise BrokenFileError("holds no object")
    if document.get("schema") != "evalkit.signoff/1":
        said = visible(document.get("schema"))
        raise BrokenFileError(f'its schema is "{said}", where "evalkit.signoff/1" is known')
    if document.get("digest") != document_digest(document):
        raise BrokenFileError("its content does not have the digest that it states")
    return document


def folder_faults(folder: Path) -> list[tuple[str, str]]:
    """Every (file, what is wrong) that the hashes of a sign-off folder find; none where all is as written."""
    found: list[tuple[str, str]] = []
    try:
        read_signoff(folder)
    except BrokenFileError as error:
        found.append((SIGNOFF, str(error)))
    try:
        found += _manifest_faults(folder, strict_json(_bytes(folder / MANIFEST)))
    except BrokenFileError as error:
        found.append((MANIFEST, str(error)))
    return found


def _manifest_faults(folder: Path, manifest: Any) -> list[tuple[str, str]]:
    rows = manifest.get("files") if isinstance(manifest, dict) else manifest
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise BrokenFileError("holds no list of files")
    found: list[tuple[str, str]] = []
    seen: set[str] = set()
    for row in rows:
        name, hashed = row.get("path"), plain_hex(row.get("sha256"))
        if not _inside(name) or hashed is None:
            raise BrokenFileError(f'has a row that cannot be used: path "{visible(name)}"')
        if name in seen:
            raise BrokenFileError(f'names "{visible(name)}" twice')
        seen.add(name)
        path = folder / name
        if not path.is_file():
            found.append((name, "is missing"))
        elif not path.resolve().is_relative_to(folder.resolve()):
            found.append((name, "is a link that leads out of the folder"))
        elif path.stat().st_size != row.get("bytes", path.stat().st_size) or file_sha256(path) != hashed:
            found.append((name, f"is not as {MANIFEST} says: its bytes were changed"))
    if not seen:
        raise BrokenFileError("names no file")
    return found


def _inside(name: object) -> bool:
    """Whether a path stays inside the folder on every system."""
    if not isinstance(name, str) or not name or "\\" in name or ":" in name or "\0" in name:
        return False
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts


def _bytes(path: Path) -> bytes:
    try:
        if not stat.S_ISREG((found := path.stat()).st_mode):
            raise BrokenFileError("is no file")
        if found.st_size > MOST_BYTES:
            raise BrokenFileError(f"is larger than {MOST_BYTES // 2**20} MB")
        return path.read_bytes()
    except FileNotFoundError:
        raise BrokenFileError("is missing") from None
    except OSError as error:
        raise BrokenFileError(f"cannot be read: {error.strerror or type(error).__name__}") from None
