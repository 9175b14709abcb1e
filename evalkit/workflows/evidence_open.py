"""evidence.zip unpacked: each file checked against files.json, and nothing that it does not name."""

from __future__ import annotations

import gzip
import hashlib
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalkit.errors import HIDDEN, visible
from evalkit.signoff.strict import BrokenFileError, strict_json
from evalkit.workflows.evidence_format import FILES, SCHEMA, RunOptions, is_role, is_table, safe_name

__all__ = ["Bundle", "open_evidence"]

MOST_BYTES = 8 * 2**30
"""Content of a bundle beyond this is not unpacked."""
MOST_FILES = 128
_MOST_INDEX = 2**24
_CHUNK = 2**20


@dataclass(frozen=True)
class Bundle:
    """An unpacked bundle: the study file, and by role the name that it uses and where the file is now."""

    folder: Path
    study: Path
    written: Mapping[str, str]
    paths: Mapping[str, Path]
    options: RunOptions
    sent: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    absent: tuple[str, ...] = ()
    hidden: Mapping[str, str] = field(default_factory=dict)


def open_evidence(path: Path, folder: Path) -> Bundle:
    """Unpack a bundle into the empty `folder`. Raises BrokenFileError with every file that is not as it should be.

    What files.json does not name is refused; no name of the zip is used as a path.
    """
    try:
        with zipfile.ZipFile(path) as file:
            return _opened(file, folder)
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError, RuntimeError) as error:
        raise BrokenFileError(f"is no zip that can be read: {visible(error, 200)}") from None


def _opened(file: zipfile.ZipFile, folder: Path) -> Bundle:
    infos = {info.filename: info for info in file.infolist()}
    if len(infos) != len(file.infolist()):
        raise BrokenFileError("holds a name twice")
    if len(infos) > MOST_FILES or sum(info.file_size for info in infos.values()) > MOST_BYTES:
        raise BrokenFileError("holds more than a bundle does")
    index = _index(file, infos)
    faults = [f"{visible(name)} is not named in {FILES}" for name in sorted(set(infos) - {FILES, *_names(index)})]
    written: dict[str, str] = {}
    paths: dict[str, Path] = {}
    for row in index["files"]:
        role, name = row["role"], row["name"]
        if name not in infos:
            faults.append(f"{visible(name)} is missing")
            continue
        target = folder / role / safe_name(name.rsplit("/", 1)[-1])
        digest, size = _unpack(file, infos[name], target)
        if digest != row["sha256"] or size != row["bytes"]:
            faults.append(f"{visible(name)} is not as {FILES} says: its bytes were changed")
        written[role], paths[role] = str(row["written"]), target
    if faults:
        raise BrokenFileError("; ".join(faults))
    if "study" not in paths or "looks" not in paths:
        raise BrokenFileError("holds no study and record of looks")
    for role in index["hidden"]:
        if role not in paths or not _hides(paths[role]):
            raise BrokenFileError(f"{FILES} says that something is hidden in its {role}, and nothing is")
    options = index["options"]
    return Bundle(
        folder,
        paths.pop("study"),
        written,
        paths,
        RunOptions(tuple(options["thresholds"] or ()), options["seed"], options.get("router")),
        index["sent"],
        tuple(f"{row['role']}: {row['written']}" for row in index["absent"]),
        index["hidden"],
    )


def _hides(path: Path) -> bool:
    """Whether anything was taken out of this copy."""
    content = path.read_bytes()
    try:
        raw = gzip.decompress(content) if path.name.lower().endswith(".gz") else content
    except (OSError, EOFError, zlib.error):
        return False
    return HIDDEN.encode() in raw


def _index(file: zipfile.ZipFile, infos: Mapping[str, zipfile.ZipInfo]) -> dict[str, Any]:
    if FILES not in infos or infos[FILES].file_size > _MOST_INDEX:
        raise BrokenFileError(f"holds no {FILES} that can be read")
    index = strict_json(file.read(infos[FILES]))
    if not isinstance(index, dict) or index.get("schema") != SCHEMA:
        raise BrokenFileError(f"{FILES} is none of this version")
    options, rows = index.get("options"), index.get("files")
    sound = (
        isinstance(rows, list)
        and all(_is_row(row) for row in rows)
        and len({row["role"] for row in rows}) == len(rows)
        and isinstance(options, dict)
        and set(options) in ({"thresholds", "seed"}, {"thresholds", "seed", "router"})
        and isinstance(options.get("router"), str | None)
        and isinstance(options["thresholds"], list | None)
        and all(isinstance(text, str) for text in options["thresholds"] or ())
        and type(options["seed"]) in {int, type(None)}
        and isinstance(index.get("sent"), dict)
        and all(isinstance(body, dict) for body in index["sent"].values())
        and isinstance(index.get("hidden"), dict)
        and all(is_table(role) for role in index["hidden"])
        and all(isinstance(text, str) for text in index["hidden"].values())
        and isinstance(index.get("absent"), list)
        and all(isinstance(row, dict) and _texts(row, "role", "written") for row in index["absent"])
    )
    if not sound:
        raise BrokenFileError(f"{FILES} does not hold what it should")
    return index


def _is_row(row: Any) -> bool:
    return (
        isinstance(row, dict)
        and set(row) == {"role", "written", "name", "sha256", "bytes"}
        and isinstance(row["role"], str)
        and is_role(row["role"])
        and _texts(row, "written", "name", "sha256")
        and type(row["bytes"]) is int
    )


def _texts(row: Mapping[str, Any], *keys: str) -> bool:
    return all(isinstance(row.get(key), str) for key in keys)


def _names(index: Mapping[str, Any]) -> set[str]:
    return {row["name"] for row in index["files"]}


def _unpack(file: zipfile.ZipFile, info: zipfile.ZipInfo, target: Path) -> tuple[str, int]:
    """(sha256, bytes) of a file of the zip, written to `target`."""
    target.parent.mkdir(parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    with file.open(info) as source, target.open("wb") as out:
        while chunk := source.read(_CHUNK):
            size += len(chunk)
            if size > info.file_size:
                raise BrokenFileError(f"{visible(info.filename)} is longer than the zip says")
            digest.update(chunk)
            out.write(chunk)
    return digest.hexdigest(), size
